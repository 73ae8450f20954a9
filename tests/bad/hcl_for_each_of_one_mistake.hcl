cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "base" { instance_type = "small" }
group "web" {
  for_each = toset(["a", "b", "c"])
  template = template.base
  sise     = 2
  args     = { A = "{{ nope }}" }
}

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
group "names" {
  for_each = toset(["Big Ones", "Other Ones"])
  template = template.base
}

cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "base {
  instance_type = "small"
  sise          = 2
}
group "web" {
  template = template.base
  zones    = ["a" "b"]
  sise     = 1
}

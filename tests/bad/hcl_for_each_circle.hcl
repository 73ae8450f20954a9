cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "a" {
  for_each      = toset([template.b["x"]])
  instance_type = "small"
}
template "b" {
  for_each      = toset([template.a["x"]])
  instance_type = "small"
}

cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
vars {
  LARGE = 1e400
  FINE  = 12345678901234567890123
}
group "a" {
  instance_type = "small"
  size          = 2
}

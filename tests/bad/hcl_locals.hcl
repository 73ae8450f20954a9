cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
locals "x" {
  a = 1
  b {
    c = 2
  }
}

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
  D = "C:\Users"
}

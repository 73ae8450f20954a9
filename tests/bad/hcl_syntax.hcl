cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
group "web" {
  template: "x"
  size = 3,
  zones = ["a" "b"]
  labels = { a = "1" b = "2" }
}

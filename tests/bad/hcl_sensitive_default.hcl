cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
variable "password" {
  sensitive = true
  default   = hunter2("a")
}

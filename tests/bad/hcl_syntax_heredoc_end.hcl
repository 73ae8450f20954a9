cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "three" {
  userdata = join("", [<<EOT
    echo
  EOT, "x"])
}

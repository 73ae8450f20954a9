cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "one" {
  userdata = <<"EOT"
    echo
  EOT
}

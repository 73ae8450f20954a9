cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "base" {
  vars = { MOTD "Hello {{ .Instance.ID }}" }
}

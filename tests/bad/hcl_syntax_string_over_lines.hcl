cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "web" {
  userdata = "#!/bin/sh
    echo one
    echo two"
}

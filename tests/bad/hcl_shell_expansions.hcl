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
  userdata = "#!/bin/sh\necho ${x:-${y:?gone}}\n"
}

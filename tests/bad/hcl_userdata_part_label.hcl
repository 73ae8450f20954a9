cluster {
  id = "prod"
}
shard {
  id = "a"
  infra {
    provider = "aws"
    region   = "r"
    zone     = "z"
  }
}
template "a" {
  userdata {
    part "two" {
      content = "#!/bin/sh"
    }
  }
}

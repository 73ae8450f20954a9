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
    merge = "append"
    part {
      content = "#!/bin/sh"
      kind    = "text/x-shellscript"
    }
  }
}
template "b" {
  userdata {
    content = "x"
    part {
      content = "#!/bin/sh"
    }
  }
}

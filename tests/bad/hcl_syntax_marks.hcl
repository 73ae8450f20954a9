cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template “web” {
  instance_type == "small"
  userdata = "#!/bin/sh
    echo one
    echo two"
  args = { local.a = 1, Key = “x” }
}
group "web"
{
  template = "web”
  size = 'x'
}

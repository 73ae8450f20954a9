cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
image "debian" { provider = "sim" }
templates = { base = { instance_type = "small", userdata = { content = "x", source = "url" } } }
groups = { a = { vars = {} } }
template "worker" {
  instance_type = "small"
  file "motd" {
    kind     = "string"
    template = "x"
    path     = "/etc/motd"
  }
  userdata {
    encoding = "gzip"
    content  = "x"
  }
}

cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "worker" {
  instance_typ = "small"
  lifecycle {
    prevent_destory = true
  }
}
group "web" {
  size = 1
  template  = template.worker
  instances = 3
}
image "debian" {
  provider = "sim"
  filter {
    nam    = "name"
    values = ["x"]
  }
}
strick = true

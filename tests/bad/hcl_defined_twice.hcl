cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
cluster { id = "again" }
template "worker" { instance_type = "small" }
template "worker" { instance_type = "large" }
images = { debian = { provider = "sim", family = "debian" } }
image "debian" {
  provider = "sim"
  family   = "debian"
}
group "web" { template = template.worker }
group "default" "web" { template = template.worker }
variable "x" { default = 1 }
variable "x" { default = 2 }
locals { y = 1 }
locals { y = 2 }
template "args" {
  instance_type = "small"
  args { A = 1 }
  args = { B = 2 }
  labels = { a = "1", a = "2" }
}

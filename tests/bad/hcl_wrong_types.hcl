cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
variable "size" { default = "three" }
locals { zones = "z" }
template "worker" { instance_type = 5 }
group "web" {
  template   = template.worker
  size       = var.size
  zones      = local.zones
  protect    = "true"
  vars       = ["a"]
  depends_on = { a = "b" }
}

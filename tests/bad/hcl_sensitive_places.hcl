# What is recorded as it is can't be made of a secret.
variable "s" {
  default   = "correct-horse"
  sensitive = true
}
cluster { id = "test" }
shard {
  id = "dev"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "${var.s}-a"
  }
}
template "web" {
  instance_type = var.s
}
group "a" {
  size = 1
  template = template.web
  zones    = ["z", var.s]
  override "0" {
    instance_type = nonsensitive(var.s)
  }
}
group "b" {
  size = 1
  instance_type = substr(var.s, 0, 3)
  vars          = { PASSWORD = var.s }
}

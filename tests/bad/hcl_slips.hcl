# Each block that is called by a slip of the pen is one mistake, whatever uses what it defines.
cluster { id = "c" }
shard {
  id = "s"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
locals = { size = 2 }
varible "zone" { default = "z" }
tempalte "worker" {
  kind          = "wrk"
  arch          = "amd64"
  instance_type = "small"
}
imag "debian" {
  provider = "sim"
}
group "web" {
  template = template.worker
  size     = local.size
  zones    = [var.zone]
  args     = { ImageId = image.debian }
}
group "several" {
  for_each = toset(["a", null])
  template = template.worker
}

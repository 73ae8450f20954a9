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
  userdata = <<-EOT
    echo ${var.x
    echo done
  EOT
}

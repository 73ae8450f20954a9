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
  instance_type = "small"
  userdata = <<-EOT
    #!/bin/sh
    echo ${1:-x} ${var.x[}
  EOT
}
group "a" { size = 1 + }

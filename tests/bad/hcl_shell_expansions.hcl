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
  instance_type = "x ${#i}"
  userdata = <<-EOT
    #!/bin/bash
    echo "${files[@]}" ${i%%.*} ${f^^}
    echo ${x:-${y:?gone}} ${var.x} ${!y} ${1} $${z}
  EOT
}
group "a" { size = 1 + }

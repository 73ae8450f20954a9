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
    echo ${HOME} ${x}
    echo ${!y} ${x/a/b} "${files[*]}" ${x-y} ${cat.x} ${z ? "1" : "2"} ${vat[*]} ${vars}
  EOT
  depends_on = ["${HOME}", HOME, "a ${x-y}"]
  description = <<-EOT
    cd ${x#y}
    }
  EOT
}

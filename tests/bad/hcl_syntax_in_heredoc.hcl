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
    for file in "${files[@]}"; do
      echo ${file##*/}
    done
  EOT
}

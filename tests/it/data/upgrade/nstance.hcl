# What an older version's fixtures were made of; see tests/it/upgrade.rs.
variable "password" {
  type      = string
  sensitive = true
}
variable "latency" {
  type    = string
  default = "0s"
}

cluster { id = "prod" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
    options  = { seed = 1, latency = var.latency }
  }
}

vars = { PASSWORD = var.password, TEAM = "payments" }

template "vm" {
  kind          = "srv"
  arch          = "amd64"
  instance_type = "small"
  args = {
    ImageId = "debian-13"
    Login   = "admin:{{ .Vars.PASSWORD }}"
    Open    = "nothing to hide"
  }
  labels = { team = "{{ .Vars.TEAM }}" }
}

group "web" {
  template = "vm"
  size     = 3
  userdata = <<-EOT
    #!/bin/sh
    echo open line
    export PASSWORD='${var.password}'
    export ENCODED={{ printf "%x" .Vars.PASSWORD }}
    echo {{ .Instance.ID }}
  EOT
  file "env" {
    kind     = "env"
    template = { OPEN = "1", PASSWORD = "{{ .Vars.PASSWORD }}" }
  }
}

group "db" {
  template = "vm"
  size     = 1
}

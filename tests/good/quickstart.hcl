# examples/quickstart/nstance.jsonc in HCL: a test compares what the two plan.
variable "greeting" {
  type    = string
  default = "Hello"
}

cluster {
  id   = "quickstart"
  fqdn = "quickstart.internal"
}

shard {
  id = "local"
  infra {
    provider = "sim"
    region   = "local-1"
    zone     = "local-1a"
    options {
      latency = "20ms"
      subnets = {
        subnet-a = { zone = "local-1a", size = 251 }
        subnet-b = { zone = "local-1b", size = 250 + 1 }
      }
    }
  }
  subnet_pools = { main = [for letter in ["a", "b"] : "subnet-${letter}"] }
}

image "debian" {
  provider = "sim"
  filter {
    name   = "name"
    values = ["debian-13-amd64-*"]
  }
  sort  = "creation-date"
  order = "desc"
}

defaults {
  args {
    ImageId = image.debian
    Monitoring {
      Enabled = true
    }
  }
  vars {
    PACKAGES = ["curl", "chrony"]
  }
}

vars {
  ENVIRONMENT = "playground"
  GREETING    = var.greeting
}

template "machine" {
  kind          = "mac"
  arch          = "amd64"
  instance_type = "small"
  subnet_pool   = "main"

  userdata = <<-EOT
    #cloud-config
    hostname: {{ .Instance.Hostname }}
    fqdn: {{ .Instance.FQDN }}
    packages:
    {{- range .Vars.PACKAGES }}
    - {{ . }}
    {{- end }}
    {{- with .Vars.DISK }}
    mounts:
    - [{{ .device }}, {{ .path }}]
    {{- end }}
    runcmd:
    - [echo, {{ printf "%s from %s" .Vars.GREETING .Instance.Name | printf "%q" }}]
  EOT

  file "instance.env" {
    kind = "env"
    template = {
      INSTANCE_ID = "{{ .Instance.ID }}"
      ENVIRONMENT = "{{ .Vars.ENVIRONMENT }}"
      ADDRESS     = "{{ .Instance.IP4 }}"
      GROUP       = "{{ .Group.Tenant }}/{{ .Group.Name }}"
    }
  }
}

group "database" {
  template      = template.machine
  size          = 1
  instance_type = "large"
  vars = {
    PACKAGES = ["postgresql"]
    DISK     = { device = "/dev/sdb", path = "/var/lib/postgresql" }
  }
  protect = true
}

group "default" "web" {
  template   = template.machine
  size       = 3
  vars       = { PACKAGES = ["nginx"] }
  zones      = ["local-1a", "local-1b"]
  depends_on = [group.database]
  labels     = { tier = "web" }
}

group "workers" {
  template = template.machine
  size     = 2
  override "1" {
    instance_type = "medium"
  }
}

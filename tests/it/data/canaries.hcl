functions = "sprig"

variable "short" {
  type      = string
  sensitive = true
}
variable "pin" {
  type      = number
  sensitive = true
}
variable "long" {
  type      = string
  sensitive = true
}

cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
    options  = { seed = 1 }
  }
}

vars = {
  SHORT = var.short
  PIN   = var.pin
  LONG  = var.long
}

templates_lib = {
  gate = "{{ if .Vars.PIN }}gated-by-go{{ end }} ${var.short}"
}

group "web" {
  size          = 2
  instance_type = "small"
  labels        = { team = "x-${var.short}-${var.pin}" }
  args = {
    Name    = "n-${var.short}"
    Pin     = var.pin
    Half    = "${var.pin}/2"
    Chosen  = var.short == "x" ? "a" : "gated-by-hcl"
    Encoded = base64encode("x${var.short}")
    Made    = "{{ .Vars.SHORT | b64enc }} {{ .Vars.PIN }}"
    regex = "open"
  }
  userdata = <<-EOT
    #!/bin/sh
    echo open
    export SHORT='${var.short}' PIN=${var.pin}
    export SHORT='{{ .Vars.SHORT }}' PIN={{ .Vars.PIN }}
    %{ if var.pin > 5 ~}
    echo gated-by-hcl
    %{ endif ~}
    {{ if eq .Vars.SHORT "x" }}a{{ else }}gated-by-go{{ end }}
    {{ $seen := "" }}{{ range until 3 }}{{ if $.Vars.PIN }}{{ $seen = "gated-by-go" }}{{ end }}{{ end }}
    echo {{ $seen }}
    {{ include "gate" . }}
    {{ sha256sum .Vars.SHORT }} {{ printf "%x" .Vars.SHORT }}
    echo {{ .Instance.ID }}
  EOT
  file "env" {
    kind     = "env"
    template = { OPEN = "1", SHORT = var.short, PIN = "{{ .Vars.PIN }}" }
  }
  file "json" {
    kind     = "json"
    template = { open = [1], short = { deep = "{{ .Vars.SHORT }}" }, pin = var.pin }
  }
  file "string" {
    kind     = "string"
    template = "open\n{{ if .Vars.PIN }}gated-in-a-file{{ end }}\n${var.short}\n"
  }
  file "late" {
    kind     = "string"
    template = "{{ .Instance.IP4 }} ${var.short} {{ .Vars.PIN }}"
  }
  file "carried" {
    kind     = "string"
    template = "${var.short} {{ .Vars.PIN }}"
    deliver  = "userdata"
  }
  override "1" {
    vars = { SHORT = "other ${var.short}" }
    args = { Slot = var.pin }
  }
}

group "packed" {
  size          = 1
  instance_type = "small"
  userdata {
    content  = base64encode("#!/bin/sh\necho ${var.short} {{ .Vars.PIN }}\n")
    encoding = "base64"
    compress = "always"
  }
}

group "zipped" {
  instance_type = "small"
  userdata {
    content  = base64gzip("#!/bin/sh\necho ${var.short} ${var.pin}\n")
    encoding = "base64+gzip"
  }
}

group "layered" {
  size          = 1
  instance_type = "small"
  userdata {
    merge = "nstance"
    parts = [
      { content = "#cloud-config\npackages: [curl]\nhostname: h-${var.short}\n" },
      { content = "#cloud-config\nntp: {servers: [\"{{ .Vars.SHORT }}\"]}\nruncmd: [[echo, ${var.pin}]]\n" },
    ]
  }
}

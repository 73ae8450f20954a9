functions = "sprig"

variable "password" {
  type      = string
  sensitive = true
  validation {
    condition     = length(var.password) > 3
    error_message = "too short: ${var.password}"
  }
}
variable "database" {
  type      = object({ user = string, password = string, hosts = list(string) })
  sensitive = true
}
variable "pin" {
  type      = number
  sensitive = true
  default   = 9317
}
variable "enabled" {
  type      = bool
  sensitive = true
  default   = true
}

locals {
  login  = "user:${var.password}"
  script = <<-EOT
    #!/bin/sh
    echo open line
    export PASSWORD='${var.password}'
    export BASIC=${base64encode(local.login)}
    export DIGEST=${sha256(var.password)}
    export UPPER={{ .Vars.PASSWORD | upper }}
    export HEX={{ printf "%x" .Vars.PASSWORD }}
    export PART={{ trunc 9 .Vars.PASSWORD }}
    {{- range .Vars.NESTED.list }}
    export LIST={{ . | b64enc }}
    {{- end }}
    {{- if eq (len .Vars.PASSWORD) 17 }}
    echo it has seventeen
    {{- end }}
    {{ template "lib" . }}
    echo {{ .Instance.ID }}
  EOT
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
  PASSWORD = var.password
  NESTED   = { list = ["a", var.password, "b"], map = { deep = { er = upper(var.password) } } }
  LITERAL  = sensitive("literal-${strrev("canary of its own")}")
}

templates_lib = {
  lib = "key=${var.password} {{ .Vars.PASSWORD | upper }}"
}

template "base" {
  instance_type = "small"
  args = {
    Login     = "{{ printf \"%s:%s\" .Vars.PASSWORD \"x\" | b64enc }}"
    Database  = var.database
    Encoded   = urlencode("${var.password}/?")
    List      = [{ a = var.password, b = 1 }, "{{ .Vars.PASSWORD | sha256sum }}"]
    Pin       = var.pin
    Enabled   = var.enabled
    Open      = "nothing to hide"
  }
  labels = {
    token = "t-${lower(var.password)}"
    open  = "yes"
  }
}

group "web" {
  template = "base"
  size     = 2
  userdata = local.script
  file "env" {
    kind     = "env"
    template = { OPEN = "1", PASSWORD = "{{ .Vars.PASSWORD }}" }
  }
  file "late" {
    kind     = "string"
    template = "{{ .Instance.IP4 }} ${var.password}"
  }
  file "carried" {
    kind     = "json"
    template = { a = "{{ .Vars.PASSWORD | b64enc }}", open = "x" }
    deliver  = "userdata"
  }
  override "1" {
    vars = { PASSWORD = "other ${var.password}" }
  }
}

group "packed" {
  template = "base"
  size     = 1
  userdata {
    content  = base64encode("#!/bin/sh\necho ${var.password}\n")
    encoding = "base64"
    compress = "always"
  }
}

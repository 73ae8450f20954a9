# Every key there is but `source`, in HCL. The same in JSON and YAML stands beside it: a test holds
# the three to one plan, byte for byte.

# Set by --var, NSTANCE_VAR_release or --var-file.
variable "release" {
  type        = string
  default     = "2026.11"
  description = "What the machines run"
  nullable    = false
  validation {
    condition     = can(regex("^[0-9]+[.][0-9]+$", var.release))
    error_message = "A release is a year and a number, not ${var.release}."
  }
}

variable "sizes" {
  type    = object({ web = number, build = number })
  default = { web = 3, build = 1 }
}

variable "token" {
  type      = string
  default   = "not-a-secret"
  sensitive = true
}

locals {
  agent    = "10.0.0.1"
  owner    = "136693071363"
  subnets  = { a = 251, b = 251 }
  frequent = { frequency = "5s" }
}

# The default, written out: relative to this folder.
state = "sqlite:.nstance/{cluster}/{shard}.db"

cluster {
  id   = "reference"
  slug = "ref"
  fqdn = "${"reference"}.example.com"

  ca_cert = "file:../shared/ca.crt"
  # These three only the Nstance server reads.
  storage {
    provider = "s3"
    bucket   = "nstance"
  }
  secrets { provider = "object-storage" }
  leader_election = local.frequent
}

shard {
  id = "local-1a"
  infra {
    provider = "sim"
    region   = "local-1"
    zone     = "local-1a"
    options {
      seed = 7
      subnets = merge(
        { for letter, size in local.subnets : "subnet-${letter}" => { zone = "local-1${letter}", size = size } },
        { subnet-c = { zone = "local-1a", size = 20 } },
      )
    }
  }
  subnet_pools = {
    workers  = [for letter in keys(local.subnets) : "subnet-${letter}"]
    builders = ["subnet-c"]
  }
  dynamic_subnet_pools = ["workers"]
  advertise {
    health_addr       = "${local.agent}:8990"
    election_addr     = "${local.agent}:8991"
    registration_addr = "${local.agent}:8992"
    operator_addr     = "${local.agent}:8993"
    agent_addr        = "${local.agent}:8994"
  }
  request_timeout        = "20s"
  create_rate_limit      = "0ms"
  default_drain_timeout  = "2m"
  image_refresh_interval = "1h"
  expiry {
    eligible_age = "${30 * 24}h"
    forced_age   = "${60 * 24}h"
    ondemand_age = "24h"
  }
  # From here on only the server reads.
  bind {
    health_addr       = "0.0.0.0:8990"
    election_addr     = "0.0.0.0:8991"
    registration_addr = "0.0.0.0:8992"
    operator_addr     = "0.0.0.0:8993"
    agent_addr        = "0.0.0.0:8994"
  }
  leader_network { interface = "eth1" }
  leader_election       = local.frequent
  health_check_interval = "1m"
  shutdown_timeout      = "30s"
  garbage_collection { interval = "2m" }
  error_exit_jitter { min_delay = "10s" }
}

# Only those of the shard's provider can be used here; today's server refuses the others.
load_balancer "public" { provider = "sim" }
load_balancer "aws" {
  provider = "aws"
  target_groups = [{
    arn           = "arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/a/1"
    listener_port = 443
    target_port   = 8443
    proxy_port    = 9443
  }]
}
load_balancer "google" {
  provider                = "google"
  network_endpoint_groups = ["workers"]
  frontends               = [{ ip = "203.0.113.10", port = 443 }]
}
load_balancer "edge" {
  provider  = "tunnel"
  listeners = [{ target_port = 443, proxy_port = 9444 }]
}

# Older forms of two of these.
load_balancer "arns" {
  provider          = "aws"
  target_group_arns = ["arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/b/2"]
}
load_balancer "instance-group" {
  provider            = "gcp"
  instance_group_name = "workers"
}

image "debian" {
  provider = "sim"
  filter {
    name   = "name"
    values = ["debian-13-amd64-*"]
  }
  filter {
    name   = "owner-id"
    values = [local.owner]
  }
  owners   = [local.owner]
  sort     = "creation-date"
  order    = "desc"
  fallback = "ami-00000000000000000"
  on_newer = "new_only"
}

image "debian-12" {
  provider = "sim"
  family   = "debian-12"
  project  = "debian-cloud"
  sort     = "creation-date"
  order    = "desc"
}

# The server makes these; `cn`, `dns`, `ip` and `uri` are templates.
certificate "kubelet" {
  kind         = "client"
  cn           = "system:node:{{ .Instance.ID }}"
  organization = ["system:nodes"]
  dns          = ["{{ .Instance.Hostname }}"]
  ip           = ["{{ .Instance.IP4 }}"]
  uri          = []
  country      = ["DE"]
  province     = []
  locality     = []
  street       = []
  postal_code  = []
  ttl          = 24
}

# What the server runs itself. It creates and deletes the instances of a group of NAT instances.
nat = {
  default = {
    group                      = "nat"
    mode                       = "nat44"
    public_addresses           = [{ ipv4 = "192.0.2.10", allocation_id = "eipalloc-1" }]
    last_instance_grace_period = "10m"
    instance_type_ladder       = ["small", "medium"]
    scale_up_thresholds        = { cpu_percent = 70 }
    scale_down_thresholds      = { cpu_percent = 20 }
    scale_up_window            = "3m"
    scale_down_window          = "20m"
    cooldown                   = "10m"
    replacement_timeout        = "15m"
  }
}
tunnels = {
  edge = { image = "registry.example.com/tunnel@sha256:00", args = ["run"] }
}
server {
  files = {
    proxy = { kind = "json", template = { shard = "{{ .Server.Shard }}" } }
  }
}

# Prints the `.Nonce` of an instance that is about to be created, where a template reads it.
nonce_command = ["./sign-nonce", "--ttl", "5m"]

# Layers, the lowest first: vars, defaults, template, group, slot.
vars {
  ENVIRONMENT = "reference"
  RELEASE     = var.release
  MOTD        = "Braces: $${x}, $${y}, {{ .Z }}"
}

defaults {
  args {
    ImageId = image.debian
    Monitoring { Enabled = true }
  }
  vars {
    PACKAGES = ["curl", "chrony"]
    LIMITS   = { files = 64 * 1024, load = 1.5, none = null }
  }
  userdata {
    source   = "url"
    encoding = "plain"
    content  = "file:../shared/base.sh"
    compress = "auto"
  }
  update {
    max_creating = 10
    max_deleting = 0
  }
}

functions = "sprig"

templates_lib {
  greeting = <<-EOT
    # {{ .Instance.Name | upper }} of {{ .Cluster.Slug }}
  EOT
  release  = { source = "url", encoding = "plain", content = "file:../shared/release.tpl" }
}

template "worker" {
  kind          = "wrk"
  arch          = "amd64"
  instance_type = "small"
  subnet_pool   = "workers"
  args = {
    Token = "Bearer ${var.token}"
    Tags  = [{ Key = "a", Value = "{{ .Group.Name }}" }]
  }
  vars = { LIMITS = { load = 2 } }

  file "instance.env" {
    kind = "env"
    template = {
      INSTANCE_ID = "{{ .Instance.ID }}"
      ADDRESS     = "{{ .Instance.IP4 }}"
      ENVIRONMENT = "{{ .Vars.ENVIRONMENT }}"
    }
    deliver = "export"
  }
  file "app.json" {
    kind     = "json"
    template = { z = 1, name = "{{ .Instance.Name }}", a = [true, null, "x"] }
  }
  file "motd" {
    kind        = "string"
    template    = <<-EOT
      {{ template "release" . }}Welcome to {{ .Vars.ENVIRONMENT }}.
    EOT
    deliver     = "userdata"
    path        = "/etc/motd"
    permissions = "0644"
    owner       = "root:root"
  }
  file "token.key" {
    kind   = "secret"
    source = "reference/token"
  }
  file "data.json" {
    kind   = "storage"
    source = "{{ .Vars.ENVIRONMENT }}/data"
  }
  file "kubelet.crt" {
    kind     = "certificate"
    template = certificate.kubelet
    key      = { source = "agent", name = "kubelet.pub" }
  }

  update {
    order           = "create_first"
    max_surge       = "50%"
    max_unavailable = 0
    canaries        = 1
    canary_pause    = "1m"
    health {
      check            = "running"
      min_healthy_time = "10s"
      interval         = "2s"
      timeout          = "1s"
      retries          = 1
      deadline         = "15m"
    }
    on_failure    = "stop"
    max_failures  = 0
    zone_order    = "interleaved"
    opportunistic = false
  }
  lifecycle {
    prevent_destroy = false
    ignore_changes  = ["size", "tags.patched"]
    replace_on      = ["vars.RELEASE"]
    restart_on      = ["userdata"]
  }
  labels  = { tier = "worker" }
  protect = false
}

template "builder" {
  kind       = "bld"
  arch       = "amd64"
  moved_from = "default/old-builders"
}

groups_form = "nested"

group "web" {
  template       = template.worker
  size           = var.sizes.web
  instance_type  = "medium"
  subnet_pool    = "workers"
  args           = { Monitoring = { Interval = 60 } }
  vars           = { PACKAGES = ["nginx"] }
  drain_timeout  = "90s"
  load_balancers = [load_balancer.public]
  depends_on     = [group.builders, group.batch.night]
  zones          = [for letter in ["a", "b"] : "local-1${letter}"]
  override "2" {
    instance_type = "large"
    subnet_pool   = "builders"
    args          = { Canary = true }
    vars          = { CANARY = "yes" }
  }
  labels = { public = "true" }
  userdata {
    merge = "append"
    part {
      source   = "inline"
      encoding = "plain"
      content  = <<-EOT
        #cloud-config
        packages: [nginx]
        fqdn: {{ .Instance.FQDN }}
      EOT
      type     = "text/cloud-config"
      filename = "web.yaml"
      merge    = "dict(recurse_list)+list(append)"
    }
    part {
      content = <<-EOT
        #!/bin/sh
        systemctl enable --now nginx
      EOT
    }
  }
  lifecycle { prevent_destroy = true }
  protect    = true
  moved_from = "default/www"
}

group "default" "builders" {
  template      = template.builder
  kind          = "bld"
  arch          = "amd64"
  size          = var.sizes.build
  instance_type = "large"
  subnet_pool   = "builders"
  userdata      = <<-EOT
    #!/bin/sh
    echo "{{ .Instance.Number }} of {{ .Group.Name }}" \
      'builds'
  EOT
  file "motd" {
    kind     = "string"
    template = "Builds.\n"
  }
  update {
    max_surge = 1
    health    = "running"
  }
}

# The server's: without a size, and never planned.
group "default" "nat" {
  template      = template.worker
  instance_type = "small"
  update {
    health {
      check  = "http"
      port   = 8080
      path   = "/healthz"
      status = 200
    }
    drain { command = ["/usr/local/bin/drain", "--timeout=1m"] }
  }
}

group "batch" "night" {
  kind          = "bat"
  arch          = "amd64"
  instance_type = "small"
  subnet_pool   = "workers"
  size          = 2
  args          = { ImageId = image.debian-12 }
  userdata {
    source   = "inline"
    encoding = "base64"
    content  = base64encode("#!/bin/sh\necho night\n")
    compress = "never"
  }
}

# Texts with names in braces, in place of Go templates.
group "batch" "queue" {
  kind          = "que"
  arch          = "amd64"
  instance_type = "small"
  size          = 3
  zones = [
    { zone = "local-1a", tags = ["queue-1", "queue-3"] },
    { zone = "local-1b", tags = ["queue-2"] },
  ]
  rebalance    = true
  texts        = "placeholders"
  vars         = { for number in [1, 2, 3] : "port_queue-${number}" => "567${number}" }
  args         = { Name = "{instance.tag}-of-{instance_group.labels.team}" }
  labels       = { tag = "{instance.tag}" }
  group_labels = { team = "queues" }
  userdata     = <<-EOT
    #!/bin/sh
    listen {port_{instance.tag}}
  EOT
  update { minimal_action = "restart" }
}

destroy_budget {
  count   = 3
  percent = 20
}

strict = true

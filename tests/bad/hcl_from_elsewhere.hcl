cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
locals {
  common = {
    size     = "3"
    template = "wrker"
  }
  durations = ["5 minutes"]
}
template "worker" { instance_type = "small" }
group "a" {
  template = local.common.template
  size     = local.common.size
}
group "b" {
  template      = "worker"
  drain_timeout = local.durations[0]
}

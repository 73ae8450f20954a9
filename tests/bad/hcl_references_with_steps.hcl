cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "worker" { instance_type = "small" }
group "a" {
  template      = template.worker.name
  instance_type = template.worker.instance_type
}
group "b" { template = template }
group "c" { template = template["worker"] }
group "d" { template = template.worker["x"] }

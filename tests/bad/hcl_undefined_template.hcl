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
group "web" { template = template.wroker }
group "api" { template = template.something_else }

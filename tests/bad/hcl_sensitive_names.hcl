cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
locals { secret = sensitive("x") }
template "base" {
  instance_type = local.secret
  labels        = { (local.secret) = "y" }
}
group "a" {
  template = template.base
  size     = local.secret
}

cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "base" {
  for_each      = toset(["small", "large"])
  instance_type = each.key
}
group "all" { template = template.base }
group "near" { template = template.base["smal"] }
group "name" { template = template.base-lrge }
group "key" { template = template.base[0] }

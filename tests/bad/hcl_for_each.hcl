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
  secret = sensitive({ a = 1 })
}
template "base" { instance_type = "small" }
group "list" {
  for_each = ["a", "b"]
  template = template.base
}
group "sensitive" {
  for_each = local.secret
  template = template.base
}
group "same" {
  for_each = { a = 1, b = 2 }
  name     = "x"
  template = template.base
}
group "numbers" {
  for_each = toset([1, 2])
  name     = each.value > 1
}
group "null" {
  for_each = null
}
image "debian" {
  for_each = { a = 1 }
  provider = "sim"
}
group "names" {
  for_each = toset(["Big Ones"])
  template = template.base
}

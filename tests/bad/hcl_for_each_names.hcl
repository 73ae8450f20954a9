cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "base" { instance_type = "small" }
group "names" {
  for_each = toset(["Big Ones", "Other Ones"])
  template = template.base
}
locals {
  sizes = {
    small   = 1
    "L!"    = 2
  }
}
group "keys" {
  for_each = local.sizes
  size     = each.value
  template = template.base
}
group "made" {
  for_each = { for key, value in local.sizes : upper(key) => value }
  template = template.base
}
group "named" {
  for_each = { a = 1, b = 2 }
  name     = "${each.key}--x"
  template = template.base
}
group "Label" {
  for_each = toset(["a"])
  template = template.base
}

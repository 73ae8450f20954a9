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
  sizes = { a = "1", b = "x", c = "y", d = "z" }
}
group "web" {
  for_each      = local.sizes
  instance_type = "small"
  size          = tonumber(each.value)
  protect       = tobool({ a = "true", b = "false", d = "true" }[each.key])
  vars = {
    ALL = var.missing
    ONE = each.key == "a" ? regex("[0-9]", "x") : ""
  }
}

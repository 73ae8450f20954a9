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
  a = "${local.b}!"
  b = [local.c]
  c = { of = local.a }
  d = local.d
}
vars { A = local.a }

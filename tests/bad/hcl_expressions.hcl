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
  list = ["a", "b"]
  map  = { a = 1 }
}
vars {
  A = local.list[2]
  B = local.map.b
  C = 1 + "x"
  D = true ? 1 : [1]
  E = uper("x")
  F = join(",")
  G = "${local.list}"
  H = [for x in 5 : x]
  I = { for x in local.list : "same" => x }
  J = !"x"
  K = 1 / 0
  L = null + 1
  M = local.map.a.b
  N = upper(null)
}

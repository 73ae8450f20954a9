cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
variable "region" { default = "eu" }
locals { zones = ["a"] }
vars {
  A = var.regoin
  B = local.zonse
  C = region
  D = vra.region
  E = var
  F = each.key
  G = path.modul
  H = image.debian
  I = group.nope.web
  J = load_balancer.front
}

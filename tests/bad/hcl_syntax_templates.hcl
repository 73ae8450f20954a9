cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
vars {
  A = "${"
  B = "%{ if true }x"
  C = "${ 1 + }"
  D = "\x"
  E = 'single'
  F = "${var.x"
}

cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
variable "region" {
  type        = string
  description = "Where the fleet runs, such as eu-central-1"
}
variable "zones" { type = list(string) }
vars {
  REGION = var.region
  ZONES  = join(",", var.zones)
}

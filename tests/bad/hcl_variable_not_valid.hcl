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
  default = "mars"
  validation {
    condition     = contains(["eu", "us"], var.region)
    error_message = "There is no region ${var.region}."
  }
}
variable "token" {
  default   = "short"
  sensitive = true
  validation {
    condition     = length(var.token) > 10
    error_message = "The token ${var.token} is too short."
  }
}

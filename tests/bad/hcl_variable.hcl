cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
variable {}
variable "a" "b" {}
variable "1" { default = 1 }
variable "c" {
  typ       = string
  type      = "string"
  default   = local.x
  sensitive = "maybe"
  validation = { condition = true }
}
variable "d" {
  type    = list(strng)
  default = ["x"]
}
variable "e" {
  type    = number
  default = "five"
}
variable "f" {
  default  = null
  nullable = false
}
variable "g" {
  default = 1
  validation { condition = var.g > 0 }
  validation {
    condition     = var.g
    error_message = "no"
    message       = "no"
  }
}

cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
templte "worker" { instance_type = "small" }
resource "aws_instance" "web" { ami = "x" }
frobnicate {}
template { instance_type = "small" }
template "a" "b" { instance_type = "small" }
group "a" "b" "c" {}
cluster "x" { id = "y" }
variables = { region = { default = "eu" } }
template "worker" {
  dynamic "file" {
    for_each = ["a"]
  }
}

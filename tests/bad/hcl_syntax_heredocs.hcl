cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "one" {
  userdata = <<"EOT"
    echo
  EOT
}
template "two" {
  userdata = <<EOT echo
    echo
  EOT
}
template "three" {
  userdata = join("", [<<EOT
    echo
  EOT, "x"])
}
template "four" {
  userdata = <<EOT
    echo
  eot
}
group "a" { size = 1 + }
group "b" { size = /* three }

cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
template "web" {
  args = {
    ImageId = "ami-1"

group "web" {
  template = "web"
}

# The group of a specification, mapped onto AWS. `--sim` runs it on the embedded cloud, by the rules
# of AWS.
cluster { id = "web" }

shard {
  id = "eu-central-1"
  infra {
    provider = "aws"
    region   = "eu-central-1"
    zone     = "eu-central-1a"
  }
}

image "debian" {
  provider = "aws"
  owners   = ["136693071363"]
  filter {
    name   = "name"
    values = ["debian-13-amd64-*"]
  }
}

source {
  yandex = "../web.yaml"
  map {
    platform = { standard-v3 = "m7i.large" }
    image    = { fd80000000000example = "debian" }
    zone     = { ru-central1-a = "eu-central-1a", ru-central1-b = "eu-central-1b" }
  }
}

# The brokers of a specification, and a native group that starts after them.
cluster { id = "events" }

shard {
  id = "ru-central1"
  infra {
    provider = "yandex"
    region   = "ru-central1"
    zone     = "ru-central1-a"
  }
}

source {
  yandex = "../kafka.yaml"
  group  = "brokers"
}

group "clients" {
  kind          = "cli"
  arch          = "amd64"
  instance_type = "standard-v3"
  size          = 2
  zones         = ["ru-central1-a", "ru-central1-b"]
  depends_on    = ["brokers"]
  args          = { name = "client-{{ .Instance.Number }}" }
}

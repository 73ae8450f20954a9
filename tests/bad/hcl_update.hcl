cluster { id = "prod" }
shard {
  id = "local"
  infra {
    provider = "sim"
    region   = "here"
    zone     = "local-1a"
  }
}

defaults {
  update { max_surge = "0%" }
}

group "web" {
  size = 1
  update {
    order = "create_first"
    health {
      check = "tcp"
    }
    health { check = "running" }
  }
}

group "api" {
  size = 1
  update {
    order = "create_first"
    drain "command" { command = "drain" }
  }
}

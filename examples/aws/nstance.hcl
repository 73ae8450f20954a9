# A small fleet on EC2: two control nodes, workers in two zones behind a target group.

variable "ssh_key" {
  type        = string
  default     = "ops"
  description = "The name of a key pair of the account"
}

cluster {
  id = "example"
}

shard {
  id = "us-west-2"

  infra {
    provider = "aws"
    region   = "us-west-2"
    zone     = "us-west-2a"

    options = {
      # Credentials are found as every tool of AWS finds them; a role may be taken on top.
      # role_arn  = "arn:aws:iam::123456789012:role/nstance"
      ignore_tags = ["kubernetes.io/*"]
    }
  }

  subnet_pools = {
    control = ["subnet-0aa0000000000000a"]
    workers = ["subnet-0bb0000000000000a", "subnet-0bb0000000000000b"]
  }
}

# Debian says itself which image is its newest.
image "debian" {
  provider = "aws"
  ssm      = "/aws/service/debian/release/13/latest/arm64"
}

load_balancer "web" {
  provider          = "aws"
  target_group_arns = ["arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/web/0123456789abcdef"]
}

defaults {
  args = {
    ImageId = image.debian
    KeyName = var.ssh_key
    # Credentials of the instance only for who asks with a session token.
    MetadataOptions = {
      HttpTokens              = "required"
      HttpPutResponseHopLimit = 2
    }
    BlockDeviceMappings = [
      { DeviceName = "/dev/xvda", Ebs = { VolumeSize = 20, VolumeType = "gp3", Encrypted = true, DeleteOnTermination = true } },
    ]
    TagSpecifications = [
      { ResourceType = "instance", Tags = [{ Key = "team", Value = "platform" }] },
      { ResourceType = "volume", Tags = [{ Key = "team", Value = "platform" }] },
    ]
  }
}

template "control" {
  kind          = "ctl"
  arch          = "arm64"
  instance_type = "t4g.medium"
  subnet_pool   = "control"

  args = {
    SecurityGroupIds      = ["sg-0cc00000000000001"]
    IamInstanceProfile    = { Name = "example-control" }
    DisableApiTermination = true
  }

  userdata {
    source  = "inline"
    content = <<-EOT
      #cloud-config
      hostname: {{ .Instance.Hostname }}
      packages: [etcd-server]
    EOT
  }
}

template "worker" {
  kind          = "wrk"
  arch          = "arm64"
  instance_type = "m7g.large"
  subnet_pool   = "workers"

  args = {
    SecurityGroupIds   = ["sg-0cc00000000000002"]
    IamInstanceProfile = { Name = "example-worker" }
  }

  userdata {
    source  = "inline"
    content = <<-EOT
      #cloud-config
      hostname: {{ .Instance.Hostname }}
      runcmd:
        - [systemctl, enable, --now, worker@{{ .Instance.Zone }}.service]
    EOT
  }
}

group "default" "control" {
  template = "control"
  size     = 2
}

group "default" "workers" {
  template       = "worker"
  size           = 4
  zones          = ["us-west-2a", "us-west-2b"]
  load_balancers = ["web"]
  drain_timeout  = "2m"
}

cluster   {
  id="prod" # the cluster
    fqdn   =   "prod.example.com"   // its name
}

shard {
id = "a"
  infra = {
    provider="aws"
    region   =   "us-west-2"
  }

  subnet_pools = {
    workers = ["subnet-1",
      "subnet-2",
    ]
    control=[
      "subnet-3"
  ]
  }
}
locals {
  names = [for i in range( 3 ):"web-${i}"if i>0]
  map={
    for name in local.names :
    name=>length(name)
  }
  both = concat(["a"],   ["b"])[0]
  deep = [[1,2],[3,[4,5]]]
  nested = [{a=1},{b=2}]
  cond = var.x=="a"?[1]:{b=2}["b"]
  long = (
    var.a+
      var.b
  )
  not = !var.a
  neg = [-1,-2,- 3]
  paren = ((1+2)*3)
  text = <<EOT
   keep
     this
EOT
  after = 1
  # alone
  x = 1
  yyyy = 2 /* behind */
  zz = 3 # last
}
group "a" "b" {
  template = template.web
  overrides = {
    "0" = {instance_type="large"}
    "10" = {
      args={x=1}
    }
  }
  files = {
    "motd" = {kind="string",template="a\"b$${c}"}
  }
  lifecycle = { ignore_changes = [ "size" ] } # note
  for_each = toset( ["a","b"] )
  ref = each.value.x["y"].z
  splat = aws.x[*].y
  spread = max(local.list...)
  e = 1.5e+3
}

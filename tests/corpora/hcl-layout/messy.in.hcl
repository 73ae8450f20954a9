# A fleet
variable   "region"   {
type=string
    default   =   "eu-west-1"   # where
  description="The region"
}


locals {
  a=1
  bcd   =   [1,2,  3]
  e = { x=1,y =  2 }
  f = {
    one=1
    twentytwo   = 22 # two
    "quoted key" = "x"   // three
  }

  g = [
    1,
        2,
      3
  ]
  h = foo( 1,[ 2 ],{} )
  i=-1
  j = !true&&a>=1||b!= -2
  k = a?b:c
  l = [ for x in var.list : upper(x)if x!="" ]
  m = {for k,v in var.map:k=>v...}
  n = var.list[0].name
  o = var.list.*.name
  p = var.list[ * ].name
  q   =   "a ${upper("b{}")} c"
  r = 5%3*2-1/4
  s = (a+b)*-c
}
template "web" {
args={ImageId=image.debian}
userdata=<<-EOT
    #!/bin/sh
  echo ${x}
      EOT
  size = 3
  longer_name = 4
  vars = merge(
    local.a,
    {
    b=1
    },
  )
  dynamic = foo({
  a = 1
    bb = 2
  })
}

group "default"   "web"{
  # above
  template="web"


  size=3
  /* block */
  zones=["a","b"] # zones
}
empty {}
one_line { x=1 }

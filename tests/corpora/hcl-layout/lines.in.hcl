objects = [{
a = 1
}, {
  b = 2
}]
below = [
{
a = <<EOT
x
EOT
}, {
b = 2
},
2,
]
heredoc = [
<<EOT
x
EOT
, {
a = 1
}, {
b = 2
},
2,
]
call = f(<<-EOT
    x
    EOT
, 2)
made = [for x in y : {
a = 1
} if x > 1]
numbers = [1,
2,
3]
lists = [
[1,
2], [3,
4], [
5]
]
first = { a = 1
bb = 2 }
second = { a = 1, # one
bb = 2
ccc = 3
}
merged = merge(local.a, {
a = 1
}, f(b, {
c = 2
}), [
d])
either = a ? [
1
] : [
2
]
deep = f(g(
[
1
]), 2,
3)
sum = (
(a
-b) * 2
+ c)

# Comments
in_list = [ /* in */ 1 ]
in_call = f(/* in */ 1,/* b */2 /* c */ )
alone = [f(/* q */),[/* q */],{/* q */}]
steps = a/* x */.b[/* y */0]
minus = a/* x */ - /* y */1
e = 1 # short
ff = 12345 /* no comment behind it */
ggg = 3 # long
h = [ # opens
1 ] # closes
/* before */ i = 1
/* of two
   lines */ j = 1

# Spaces
k = "a"["b"]
l = [for x in(y):[x]if(x)||[x]==[1]]
m = {for x in[1]:x=>- x... if - x>1}
n = a.*[0]
o = f(a , b , )
p = [-a,a -b,(- a),a?- b:! c]

# Columns
éé = "é" # one
b = "日本" # two
family = "👨‍👩‍👧" # three
broken = f("${
  a
}")
ccc = "é" # four

group default "web" {
files = [
{ a = 1 }, { b = {
c = 1
} },
{ aaa = 1 }, {
b = 2 },
]
}

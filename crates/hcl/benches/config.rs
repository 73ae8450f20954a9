//! Reading, and reading and evaluating, 1 MB: ordinary blocks, one long string, a long heredoc, small
//! objects, one object of many keys.

use divan::{Bencher, black_box};
use nstance_hcl::{Body, Context, Entries, Evaluator, Item, NoFiles, Value, parse};

const GROUP: &str = r#"
# A group of machines.
group "tenant-a" "web-NUMBER" {
  template = "knc"
  size     = 3
  subnet   = "public-${region}"
  tags = {
    Name = "web-NUMBER"
    Team = "platform"
    Cost = "${team}-${region}"
  }
  userdata = <<-EOT
    #cloud-config
    hostname: {{ .Instance.ID }}
    write_files:
      - path: /etc/motd
        content: |
          Welcome to ${region} on this fine day of days
  EOT
  ports   = [for port in ports : port + 1 if port > 80]
  enabled = ports[0] > 3 && region == "eu" ? true : false
}
"#;

fn main() {
    divan::main();
}

fn text(name: &str) -> String {
    match name {
        "blocks" => (0..1900)
            .map(|number| GROUP.replace("NUMBER", &number.to_string()))
            .collect(),
        "string" => format!("a = \"{}\"\n", "x".repeat(1_000_000)),
        "heredoc" => format!("a = <<EOT\n{}EOT\n", "xy z\n".repeat(200_000)),
        "objects" => format!("a = [{}]\n", "{a=1,b=\"2\"},\n".repeat(77_000)),
        _ => {
            let keys: Vec<String> = (0..66_000).map(|key| format!("k{key} = {key}\n")).collect();
            format!("a = {{\n{}}}\n", keys.concat())
        }
    }
}

const TEXTS: [&str; 5] = ["blocks", "string", "heredoc", "objects", "keys"];

#[divan::bench(args = TEXTS)]
fn read(bencher: Bencher, name: &str) {
    let text = text(name);
    bencher
        .counter(divan::counter::BytesCount::of_str(&text))
        .bench(|| parse(black_box(&text), 0));
}

#[divan::bench(args = TEXTS)]
fn read_and_evaluate(bencher: Bencher, name: &str) {
    let text = text(name);
    let scope = Entries::from([
        ("region".into(), Value::from("eu")),
        ("team".into(), Value::from("platform")),
        (
            "ports".into(),
            Value::tuple([Value::from(80), Value::from(443)]),
        ),
    ]);
    let context = Context::new(&NoFiles);
    let evaluator = Evaluator::new(&scope, &context);
    bencher
        .counter(divan::counter::BytesCount::of_str(&text))
        .bench_local(|| {
            let body = parse(black_box(&text), 0).expect("it is valid");
            let mut values = Vec::new();
            evaluate(&body, evaluator, &mut values);
            values
        });
}

fn evaluate(body: &Body, evaluator: Evaluator<'_>, values: &mut Vec<Value>) {
    for item in &body.items {
        match item {
            Item::Attribute(attribute) => {
                values.push(
                    evaluator
                        .evaluate(&attribute.value)
                        .expect("it has a value"),
                );
            }
            Item::Block(block) => evaluate(&block.body, evaluator, values),
        }
    }
}

//! Parsing and rendering, and what data that isn't read costs. `benches/peers` compares with
//! other engines.
//!
//! `userdata` is a cloud-config of about 2 KB with 21 actions, all of them fields; `control_flow`
//! has ranges, conditions, variables, a pipeline and a template call.

use divan::{Bencher, black_box};
use nstance_gotemplate::{Environment, Map, Template, Value};

const USERDATA: &str = include_str!("templates/userdata.tmpl");
const USERDATA_DATA: &str = include_str!("templates/userdata.json");
const CONTROL_FLOW: &str = include_str!("templates/control_flow.tmpl");
const CONTROL_FLOW_DATA: &str = include_str!("templates/control_flow.json");

fn main() {
    divan::main();
}

fn data(json: &str) -> Value {
    let json: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    json.into()
}

fn parse(bencher: Bencher<'_, '_>, text: &str) {
    let environment = Environment::new();
    bencher.bench(|| Template::parse("t", black_box(text), &environment).expect("it parses"));
}

fn render(bencher: Bencher<'_, '_>, text: &str, data: &Value) {
    let template = Template::parse("t", text, &Environment::new()).expect("it parses");
    bencher.bench(|| template.render(black_box(data)).expect("it renders"));
}

#[divan::bench]
fn userdata_parse(bencher: Bencher<'_, '_>) {
    parse(bencher, USERDATA);
}

#[divan::bench]
fn userdata_render(bencher: Bencher<'_, '_>) {
    render(bencher, USERDATA, &data(USERDATA_DATA));
}

#[divan::bench]
fn control_flow_parse(bencher: Bencher<'_, '_>) {
    parse(bencher, CONTROL_FLOW);
}

#[divan::bench]
fn control_flow_render(bencher: Bencher<'_, '_>) {
    render(bencher, CONTROL_FLOW, &data(CONTROL_FLOW_DATA));
}

/// Userdata, with so many values beside those that it reads: in the root and in the vars.
#[divan::bench(args = [10, 10_000, 1_000_000])]
fn userdata_render_with_unread(bencher: Bencher<'_, '_>, unread: usize) {
    let Value::Map(root) = data(USERDATA_DATA) else {
        return;
    };
    let padded = |map: &Map| -> Value {
        let more = (0..unread).map(|index| (format!("Unread{index}").into(), "x".into()));
        Map::new(map.entries().iter().cloned().chain(more).collect()).into()
    };
    let parts = root.entries().iter().map(|(name, part)| match part {
        Value::Map(vars) if name.as_bytes() == b"Vars" => (name.clone(), padded(vars)),
        part => (name.clone(), part.clone()),
    });
    render(bencher, USERDATA, &padded(&Map::new(parts.collect())));
}

//! How often an execution asks for memory, and how many operations it takes: what must not depend
//! on what it doesn't read. Counted, never timed.

use allocation_counter::measure;
use nstance_gotemplate::{Environment, Limits, Map, Template, Value};

const USERDATA: &str = include_str!("../benches/templates/userdata.tmpl");
const USERDATA_DATA: &str = include_str!("../benches/templates/userdata.json");
const CONTROL_FLOW: &str = include_str!("../benches/templates/control_flow.tmpl");
const CONTROL_FLOW_DATA: &str = include_str!("../benches/templates/control_flow.json");

fn parsed(text: &str) -> Template {
    Template::parse("t", text, &Environment::new()).expect("it parses")
}

fn data(json: &str) -> Value {
    let json: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    json.into()
}

/// How many times memory is asked for by a second execution, which gives its output a new buffer.
fn allocations_once_warm(template: &Template, data: &Value) -> u64 {
    let render = || template.render(data).expect("it renders");
    let first = render();
    let info = measure(|| assert_eq!(render(), first));
    info.count_total
}

#[test]
fn the_output_takes_one_allocation_once_warm() {
    let (template, data) = (parsed(USERDATA), data(USERDATA_DATA));
    assert_eq!(allocations_once_warm(&template, &data), 1);
}

#[test]
fn control_flow_takes_no_more_but_for_strings_that_functions_make() {
    let (template, data) = (parsed(CONTROL_FLOW), data(CONTROL_FLOW_DATA));
    // Two of the four disks have their mount quoted by `printf`, which makes a string.
    let without = CONTROL_FLOW.replace(" | printf \"%q\"", "");
    assert_eq!(allocations_once_warm(&parsed(&without), &data), 1);
    assert!(allocations_once_warm(&template, &data) > 1);
}

#[test]
fn a_warm_buffer_is_all_that_is_needed() {
    let (template, data) = (parsed(USERDATA), data(USERDATA_DATA));
    let mut out = Vec::new();
    template.render_into(&data, &mut out).unwrap();
    let info = measure(|| {
        out.clear();
        template.render_into(&data, &mut out).unwrap();
    });
    assert_eq!(info.count_total, 0);
}

/// Data with so many keys beside those that are read, on every level.
fn padded(unread: usize) -> Value {
    let more = || (0..unread).map(|index| (format!("Unread{index}"), Value::from("x")));
    let part = |name: &str| -> Map {
        let read = [(name.to_owned(), Value::from("value"))];
        more().chain(read).collect()
    };
    let parts = [
        ("Vars".to_owned(), Value::from(part("A"))),
        ("Image".to_owned(), Value::from(part("B"))),
        ("Debug".to_owned(), Value::from(true)),
    ];
    Value::from(more().chain(parts).collect::<Map>())
}

#[test]
fn what_is_not_read_costs_nothing() {
    let text = "{{.Vars.A}}{{with .Image}}{{.B}}{{end}}{{if .Debug}}{{index .Vars \"A\"}}{{end}}";
    let template = parsed(text);
    let (few, many) = (padded(10), padded(10_000));
    assert_eq!(
        allocations_once_warm(&template, &few),
        allocations_once_warm(&template, &many)
    );
    assert_eq!(steps(text, &few), steps(text, &many));
}

/// The fewest steps that an execution can be limited to.
fn steps(text: &str, data: &Value) -> u64 {
    let enough = |steps: &u64| {
        let limits = Limits {
            steps: *steps,
            ..Limits::default()
        };
        let environment = Environment::new().with_limits(limits);
        let template = Template::parse("t", text, &environment).expect("it parses");
        template.render(data).is_ok()
    };
    (0..1000).find(enough).expect("that many are enough")
}

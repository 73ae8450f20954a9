//! Parsing and rendering, against `gtmpl`.
//!
//! `userdata` is a cloud-config of about 2 KB with 21 actions, all of them fields; `control_flow`
//! has ranges, conditions, variables, a pipeline and a template call.

use divan::{Bencher, black_box};
use gtmpl_value::Value as PeerValue;
use nstance_gotemplate::{Environment, Map, Struct, StructType, Template, Value};

const USERDATA: &str = include_str!("templates/userdata.tmpl");
const CONTROL_FLOW: &str = include_str!("templates/control_flow.tmpl");

fn main() {
    divan::main();
}

type Fields = &'static [(&'static str, &'static str)];

/// The data of `userdata`: its parts, and whether a part has fixed fields.
const PARTS: [(&str, bool, Fields); 6] = [
    (
        "Vars",
        false,
        &[
            ("ADMIN_USER", "admin"),
            (
                "SSH_KEY",
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGf5 admin@example.com",
            ),
            ("ENVIRONMENT", "production"),
            ("HTTP_PROXY", "http://proxy.internal:3128"),
            ("AGENT_VERSION", "v1.31.2"),
        ],
    ),
    (
        "Image",
        false,
        &[("debian_13_arm64", "ami-0abcdef1234567890")],
    ),
    (
        "Instance",
        true,
        &[
            ("ID", "knc0000000001r010000000000000"),
            ("Kind", "knc"),
            ("Arch", "arm64"),
            ("Type", "t4g.medium"),
            ("Hostname", "ip-10-0-1-5"),
            ("FQDN", "ip-10-0-1-5.internal"),
            ("IP4", "10.0.1.5"),
        ],
    ),
    (
        "Server",
        true,
        &[
            ("Shard", "eu-west-1a"),
            ("RegistrationAddr", "10.0.0.1:8992"),
            ("AgentAddr", "10.0.0.1:8994"),
        ],
    ),
    (
        "Provider",
        true,
        &[
            ("Kind", "aws"),
            ("Region", "eu-west-1"),
            ("Zone", "eu-west-1a"),
        ],
    ),
    ("Cluster", true, &[("ID", "prod-eu")]),
];

fn userdata_data() -> Value {
    let parts = PARTS.iter().map(|(name, fixed, fields)| {
        if *fixed {
            let part = StructType::new(name, fields.iter().map(|(field, _)| field));
            let values = fields
                .iter()
                .map(|(_, value)| Value::from(*value))
                .collect();
            Value::from(Struct::new(part, values))
        } else {
            Value::from(fields.iter().copied().collect::<Map>().string_typed())
        }
    });
    let root = StructType::new("Data", PARTS.iter().map(|(name, ..)| name));
    Value::from(Struct::new(root, parts.collect()))
}

fn peer_object(fields: Fields) -> PeerValue {
    let fields = fields.iter();
    PeerValue::Object(
        fields
            .map(|(key, value)| ((*key).to_owned(), PeerValue::from(*value)))
            .collect(),
    )
}

fn peer_userdata_data() -> PeerValue {
    let parts = PARTS.iter();
    PeerValue::Object(
        parts
            .map(|(name, _, fields)| ((*name).to_owned(), peer_object(fields)))
            .collect(),
    )
}

const DISKS: [Fields; 4] = [
    &[("Name", "sda"), ("Kind", "root"), ("Mount", "/")],
    &[
        ("Name", "sdb"),
        ("Kind", "data"),
        ("Mount", "/var/lib/data"),
    ],
    &[("Name", "sdc"), ("Kind", "data"), ("Mount", "")],
    &[("Name", "sdd"), ("Kind", "log"), ("Mount", "/var/log")],
];
const LABELS: Fields = &[("role", "worker"), ("team", "storage"), ("tier", "gold")];

fn control_flow_data() -> Value {
    let disks: Vec<Value> = DISKS
        .iter()
        .map(|disk| disk.iter().copied().collect::<Map>().into())
        .collect();
    let labels: Map = LABELS.iter().copied().collect();
    let root: Map = [
        ("Name", Value::from("worker-1")),
        ("Disks", Value::from(disks)),
        ("Labels", labels.into()),
        ("Debug", Value::from(false)),
        ("Verbose", Value::from(true)),
    ]
    .into_iter()
    .collect();
    root.into()
}

fn peer_control_flow_data() -> PeerValue {
    let disks: Vec<PeerValue> = DISKS.iter().map(|disk| peer_object(disk)).collect();
    let root = [
        ("Name", PeerValue::from("worker-1")),
        ("Disks", PeerValue::Array(disks)),
        ("Labels", peer_object(LABELS)),
        ("Debug", PeerValue::from(false)),
        ("Verbose", PeerValue::from(true)),
    ];
    PeerValue::Object(
        root.into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    )
}

fn parse_ours(bencher: Bencher<'_, '_>, text: &str) {
    let environment = Environment::new();
    bencher.bench(|| Template::parse("t", black_box(text), &environment).expect("it parses"));
}

fn parse_peer(bencher: Bencher<'_, '_>, text: &str) {
    bencher.bench(|| {
        let mut template = gtmpl::Template::default();
        template.parse(black_box(text)).expect("it parses");
        template
    });
}

fn render_ours(bencher: Bencher<'_, '_>, text: &str, data: &Value) {
    let template = Template::parse("t", text, &Environment::new()).expect("it parses");
    bencher.bench(|| template.render(black_box(data)).expect("it renders"));
}

fn render_peer(bencher: Bencher<'_, '_>, text: &str, data: PeerValue) {
    let mut template = gtmpl::Template::default();
    template.parse(text).expect("it parses");
    let context = gtmpl::Context::from(data);
    bencher.bench(|| template.render(black_box(&context)).expect("it renders"));
}

#[divan::bench]
fn userdata_parse_ours(bencher: Bencher<'_, '_>) {
    parse_ours(bencher, USERDATA);
}

#[divan::bench]
fn userdata_parse_gtmpl(bencher: Bencher<'_, '_>) {
    parse_peer(bencher, USERDATA);
}

#[divan::bench]
fn userdata_render_ours(bencher: Bencher<'_, '_>) {
    render_ours(bencher, USERDATA, &userdata_data());
}

#[divan::bench]
fn userdata_render_gtmpl(bencher: Bencher<'_, '_>) {
    render_peer(bencher, USERDATA, peer_userdata_data());
}

#[divan::bench]
fn control_flow_parse_ours(bencher: Bencher<'_, '_>) {
    parse_ours(bencher, CONTROL_FLOW);
}

#[divan::bench]
fn control_flow_parse_gtmpl(bencher: Bencher<'_, '_>) {
    parse_peer(bencher, CONTROL_FLOW);
}

#[divan::bench]
fn control_flow_render_ours(bencher: Bencher<'_, '_>) {
    render_ours(bencher, CONTROL_FLOW, &control_flow_data());
}

#[divan::bench]
fn control_flow_render_gtmpl(bencher: Bencher<'_, '_>) {
    render_peer(bencher, CONTROL_FLOW, peer_control_flow_data());
}

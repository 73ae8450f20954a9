//! Random layers of user data.
//!
//! In: random numbers. Out: layers as people might write them, and as nobody would.

use nstance_cloudinit::layers::{Layer, LayerPart};

use crate::fuzz::random::Random;

const KEYS: [&str; 12] = [
    "runcmd",
    "packages",
    "users",
    "write_files",
    "hostname",
    "ntp",
    "a",
    "b",
    "on",
    "1",
    "nested",
    "merge_type",
];
const SCALARS: [&str; 30] = [
    "one",
    "two words",
    "0644",
    "22:22",
    "yes",
    "off",
    "null",
    "~",
    "1.5",
    "1e3",
    "-.inf",
    ".nan",
    "2026-11-21",
    "2026-11-21 10:00:00",
    "52:54:00:12:34:56",
    "'quoted'",
    "\"\\u00e9\\n\"",
    "\u{e9}\u{65e5}",
    "!!binary aGk=",
    "!!set {x, y}",
    "!!omap [x: 1, y: 2]",
    "'# no comment'",
    "\"0644\"",
    "''",
    "{}",
    "[]",
    "12",
    "default",
    "! x",
    "''' it'''",
];
/// What no part survives.
const BROKEN: [&str; 4] = ["a: b", "=", "2026-13-40", "*nothing"];
const MERGERS: [&str; 18] = [
    "list(append)+dict(recurse_list)+str()",
    "list(append)+dict(recurse_list,recurse_str)+str(append)",
    "list(prepend)+dict(recurse_array)",
    "list(no_replace)+dict(recurse_list)",
    "list(replace,recurse_dict,recurse_list)+dict(recurse_list,no_replace)",
    "dict(replace)+list()+str()",
    "dict(allow_delete,recurse_list)+list(append)",
    "dict()",
    "list(append)",
    "str(append)+dict(recurse_str)",
    "dict(recurse_str)+str()",
    "List(Append) + Dict(Recurse-List)",
    "list(append) dict()",
    "lists(append)+dict()",
    "list",
    "",
    "dict(unknown)",
    "dict(recurse_list)+list(append,recurse_str)+list(replace)",
];
const PATCHES: [&str; 6] = [
    r#"[{"op": "add", "path": "/patched", "value": [1, "x"]}]"#,
    r#"[{"op": "add", "path": "/runcmd/-", "value": "last"}]"#,
    r#"[{"op": "remove", "path": "/a"}]"#,
    r#"[{"op": "replace", "path": "/hostname", "value": null}]"#,
    r#"[{"op": "test", "path": "/a", "value": 1}]"#,
    "[",
];

/// One to four layers.
pub(super) fn layers(random: &mut Random) -> Vec<Layer> {
    let count = random.between(1, 4);
    (0..count)
        .map(|number| Layer {
            name: format!("layer {number}"),
            parts: (0..random.between(1, 2)).map(|_| part(random)).collect(),
            ..Layer::default()
        })
        .collect()
}

fn part(random: &mut Random) -> LayerPart {
    let others = [
        "#!/bin/sh\necho \u{e9}\n",
        "#cloud-boothook\necho boot\n",
        "#!/bin/sh\r\necho windows",
    ];
    match random.below(12) {
        0 => LayerPart::new(random.pick(&others)),
        1 => LayerPart::new(format!("#cloud-config-jsonp {}", random.pick(&PATCHES))),
        _ => {
            let mut part = LayerPart::new(config(random));
            if random.one_in(4) {
                part.merge = Some(random.pick(&MERGERS).to_owned());
                part.content_type = Some("text/cloud-config".to_owned());
            }
            part
        }
    }
}

fn config(random: &mut Random) -> String {
    let mut text = String::from("#cloud-config\n");
    if random.one_in(2) {
        let mergers = random.pick(&MERGERS);
        let name = random.pick(&["merge_how", "merge_type", "merge_how"]);
        text.push_str(&format!("{name}: '{mergers}'\n"));
    }
    for _ in 0..random.between(1, 5) {
        let key = random.pick(&KEYS);
        // What is said of merging is said above.
        if key == "merge_type" && !random.one_in(8) {
            continue;
        }
        text.push_str(key);
        text.push(':');
        value(random, 1, &mut text);
    }
    if random.one_in(20) {
        text.push_str("broken: [\n");
    }
    text
}

/// A value behind a colon or a dash, up to the end of its line.
fn value(random: &mut Random, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match random.below(if depth > 3 { 3 } else { 8 }) {
        0..=2 => {
            text.push(' ');
            text.push_str(if random.one_in(60) {
                random.pick(&BROKEN)
            } else {
                random.pick(&SCALARS)
            });
            text.push('\n');
        }
        3 | 4 => {
            text.push('\n');
            for _ in 0..random.between(1, 3) {
                text.push_str(&format!("{indent}-"));
                item(random, depth, text);
            }
        }
        5 => text.push_str(&format!(" |\n{indent}first\n{indent}  second\n\n")),
        _ => {
            text.push('\n');
            let names = ["name", "path", "x", "y", "content"];
            let first = random.below(names.len());
            for number in 0..random.between(1, 3) {
                let name = names[(first + number) % names.len()];
                text.push_str(&format!("{indent}{name}:"));
                value(random, depth + 1, text);
            }
        }
    }
}

fn item(random: &mut Random, depth: usize, text: &mut String) {
    let named = ["name", "path"];
    if random.one_in(3) {
        let indent = "  ".repeat(depth + 1);
        let name = random.pick(&named);
        let which = random.pick(&["one", "two", "/x", "[1]"]);
        text.push_str(&format!(" {name}: {which}\n{indent}more:"));
        value(random, depth + 2, text);
    } else {
        value(random, depth + 1, text);
    }
}

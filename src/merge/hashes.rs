//! Nstance's two hashes of a group's merged configuration, before rendering.
//!
//! In: a [`MergedGroup`]. Out: `sha256:` and hex. Must not: render.
//!
//! *infra* covers what requires a new instance, *runtime* what is pushed to an existing one. Both
//! hash the JSON that Go's `encoding/json` writes after it reads the configuration: every number is
//! a float64, keys are sorted, and `<`, `>`, `&` are escaped.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::Layer;
use super::deep::Merged;
use super::group::{MergedGroup, MergedSlot};
use crate::config::model::{
    Encoding, File, FileContent, Includes, TextSource, Userdata, UserdataSource,
};
use crate::config::node::Node;
use crate::config::source::Spanned;
use crate::digest::sha256_hex;

/// The two hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashes {
    /// Over args, instance type, subnet pool, userdata, kind and arch.
    pub infra: String,
    /// Over vars and files.
    pub runtime: String,
}

/// Both hashes of a group, or of one of its slots that has an override.
pub fn hashes(group: &MergedGroup<'_>, slot: Option<&MergedSlot>) -> Hashes {
    let args = slot.map_or(group.args.as_ref(), |slot| slot.args.as_ref());
    let vars = slot.map_or(group.vars.as_ref(), |slot| slot.vars.as_ref());
    let instance_type = slot.map_or(&group.instance_type, |slot| &slot.instance_type);
    let pool = slot.map_or(group.subnet_pool.as_ref(), |slot| slot.subnet_pool.as_ref());

    let mut infra = String::from("{\"args\":");
    write_object(&mut infra, args);
    write_field(&mut infra, "instance_type", instance_type);
    write_field(
        &mut infra,
        "subnet_pool",
        pool.map_or("", |pool| &pool.value),
    );
    match group.userdata.single() {
        Some((_, text)) => {
            infra.push_str(",\"userdata\":{");
            write_text(&mut infra, text);
            infra.push('}');
        }
        None => write_layers(&mut infra, group.userdata.joined()),
    }
    write_field(&mut infra, "kind", &group.kind);
    write_field(&mut infra, "arch", group.arch.as_str());
    infra.push('}');

    let mut runtime = String::from("{\"vars\":");
    write_object(&mut runtime, vars);
    runtime.push_str(",\"files\":{");
    let mut names: Vec<_> = group.files.iter().collect();
    names.sort_by_key(|(name, _)| *name);
    for (index, (name, (_, file))) in names.into_iter().enumerate() {
        if index > 0 {
            runtime.push(',');
        }
        write_string(&mut runtime, name);
        runtime.push(':');
        write_file(&mut runtime, &file.value);
    }
    runtime.push_str("}}");

    Hashes {
        infra: digest(&infra),
        runtime: digest(&runtime),
    }
}

fn digest(json: &str) -> String {
    format!("sha256:{}", sha256_hex(json.as_bytes()))
}

/// Writes a single text in Nstance's form.
fn write_text(out: &mut String, text: &TextSource) {
    let source = text.source.map_or("", |source| match source {
        UserdataSource::Inline => "inline",
        UserdataSource::Url => "url",
    });
    let encoding = text.encoding.map_or("", |encoding| match encoding {
        Encoding::Plain => "plain",
        Encoding::Base64 => "base64",
        Encoding::Gzip => "gzip",
        Encoding::Base64Gzip => "base64+gzip",
    });
    write_present(out, &[("source", source), ("encoding", encoding)]);
    write_field(out, "content", &text.content.value);
}

/// Writes joined layers; Nstance has no form for them.
fn write_layers<'a>(out: &mut String, layers: impl Iterator<Item = (Layer, &'a Userdata)>) {
    let mut layers = layers.peekable();
    if layers.peek().is_none() {
        return;
    }
    out.push_str(",\"userdata\":{\"layers\":[");
    for (index, (_, layer)) in layers.enumerate() {
        out.push_str(if index > 0 { ",{" } else { "{" });
        write_field(out, "merge", layer.joining().as_str());
        if layer.includes == Includes::Fetch {
            write_field(out, "includes", "fetch");
        }
        out.push_str(",\"parts\":[");
        for (index, part) in layer.parts.iter().enumerate() {
            out.push_str(if index > 0 { ",{" } else { "{" });
            write_text(out, &part.text);
            let text = |value: &Option<Spanned<Arc<str>>>| {
                value
                    .as_ref()
                    .map_or_else(|| "".into(), |value| Arc::clone(&value.value))
            };
            let (kind, filename, merge) = (
                text(&part.content_type),
                text(&part.filename),
                text(&part.merge),
            );
            write_present(
                out,
                &[("type", &kind), ("filename", &filename), ("merge", &merge)],
            );
            out.push('}');
        }
        out.push_str("]}");
    }
    out.push_str("]}");
}

fn write_file(out: &mut String, file: &File) {
    out.push('{');
    write_present(out, &[("kind", file.content.kind())]);
    match &file.content {
        FileContent::Env(template) | FileContent::Json(template) => {
            out.push_str(",\"template\":");
            write_node(out, template);
        }
        FileContent::String(template) => write_field(out, "template", &template.value),
        FileContent::Erb(erb) => {
            write_field(out, "template", &erb.template.value);
            for (key, node) in [
                ("properties", &erb.properties),
                ("context", &erb.context),
                ("instances", &erb.instances),
            ] {
                if let Some(node) = node {
                    out.push_str(&format!(",\"{key}\":"));
                    write_node(out, node);
                }
            }
        }
        FileContent::Secret(source) | FileContent::Storage(source) => {
            write_field(out, "source", &source.value);
        }
        FileContent::Certificate { template, key } => {
            write_field(out, "template", &template.value);
            match key.as_ref() {
                Some(key) if key.as_str() == Some("") => {}
                Some(key) if key.as_str().is_some() => {
                    write_field(out, "key", key.as_str().unwrap_or_default());
                }
                Some(key) => {
                    let field = |name: &str| key.get(name).and_then(Node::as_str);
                    out.push_str(",\"key\":{");
                    let [source, name] =
                        ["source", "name"].map(|name| field(name).unwrap_or_default());
                    write_present(out, &[("source", source), ("name", name)]);
                    out.push('}');
                }
                None => {}
            }
        }
    }
    out.push('}');
}

fn write_object(out: &mut String, object: Option<&Merged>) {
    match object {
        Some(object) => go_json(out, &object.to_json()),
        None => out.push_str("{}"),
    }
}

fn write_node(out: &mut String, node: &Node) {
    go_json(out, &node.to_json());
}

fn write_present(out: &mut String, fields: &[(&str, &str)]) {
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        write_field(out, name, value);
    }
}

fn write_field(out: &mut String, name: &str, value: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    write_string(out, name);
    out.push(':');
    write_string(out, value);
}

/// What Go's `json.Marshal` writes for a value that `json.Unmarshal` read into an `any`.
pub fn go_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => write_number(out, value.as_f64().unwrap_or(0.0)),
        Value::String(value) => write_string(out, value),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                go_json(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                go_json(out, value);
            }
            out.push('}');
        }
    }
}

/// Go writes the shortest digits that read back, with an exponent below 1e-6 and from 1e21.
fn write_number(out: &mut String, value: f64) {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        // Go leaves an exponent's sign in place and drops a leading zero: e-9, e+21.
        let sign = if exponent.starts_with('-') { "" } else { "+" };
        let _ = write!(out, "{digits}e{sign}{exponent}");
    } else {
        let _ = write!(out, "{value}");
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", character as u32);
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_json_as_go_does() {
        for (value, expected) in [
            (
                json!({"b": 1, "a": [true, null]}),
                r#"{"a":[true,null],"b":1}"#,
            ),
            (
                json!("<a href=\"x\">&</a>"),
                r#""\u003ca href=\"x\"\u003e\u0026\u003c/a\u003e""#,
            ),
            (json!("tab\tline\nnul\u{1}"), "\"tab\\tline\\nnul\\u0001\""),
            (json!(10250), "10250"),
            (json!(1_234_567), "1234567"),
            (json!(0.1), "0.1"),
            (json!(1e21), "1e+21"),
            (json!(1e20), "100000000000000000000"),
            (json!(0.000_000_1), "1e-7"),
            (json!(1.5e-9), "1.5e-9"),
            (json!(-0.000_001), "-0.000001"),
            (json!(9_007_199_254_740_993_u64), "9007199254740992"),
        ] {
            let mut out = String::new();
            go_json(&mut out, &value);
            assert_eq!(out, expected);
        }
    }
}

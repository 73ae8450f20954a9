//! The rules of Proxmox, for which there is no client.
//!
//! In: the args of one group, layer by layer. Out: what they lack. Must not: look at other args.

use crate::config::node::{Node, NodeValue};

use super::rules::effective;

/// What the merged args lack, in words; `layers` are lowest first.
pub fn lacking(layers: &[&Node]) -> Vec<&'static str> {
    let value = |name: &str| effective(layers, name).map(|entry| &entry.value.value);
    let is_text = |name: &str| match value(name) {
        Some(NodeValue::String(text)) => !text.is_empty(),
        _ => false,
    };
    let has_id = match value("TemplateVMID") {
        Some(NodeValue::Number(number)) => number.as_f64() != Some(0.0),
        _ => false,
    };
    let mut lacking = Vec::new();
    if !is_text("StoragePool") {
        lacking.push("args lack `StoragePool`");
    }
    if has_id == is_text("TemplateName") {
        lacking.push("args need one of `TemplateVMID` and `TemplateName`");
    }
    lacking
}

//! placeholder
use crate::config::node::Node;
use crate::diagnostic::Diagnostics;
use crate::provider::rules::Effect;

pub fn check_args(_args: &Node, _findings: &mut Diagnostics) {}

pub fn effect(_path: &str) -> Effect {
    Effect::Replace
}
pub fn managed_tags(
    _who: &crate::provider::rules::Ownership<'_>,
) -> std::collections::BTreeMap<String, String> {
    Default::default()
}
pub fn user_tags(
    _args: &serde_json::Map<String, serde_json::Value>,
) -> std::collections::BTreeMap<String, String> {
    Default::default()
}

//! placeholder
use crate::config::node::Node;
use crate::diagnostic::Diagnostics;
use crate::provider::rules::Effect;

pub fn check_args(_args: &Node, _findings: &mut Diagnostics) {}

pub fn effect(_path: &str) -> Effect {
    Effect::Replace
}

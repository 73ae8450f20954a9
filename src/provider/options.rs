//! Reads the values in `shard.infra.options`, for all providers.
//!
//! In: a [`Node`]. Out: its value, or a finding with the expected type. Must not: know any option.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::duration::parse_duration;
use crate::config::node::{Entry, Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::provider::limits::Rate;

/// Reads values and reports the expected types.
pub(super) struct Reader<'a> {
    pub(super) findings: &'a mut Diagnostics,
}

/// The entries of an object that aren't null.
pub(super) fn given(node: &Node) -> Vec<(&str, &Node)> {
    let entries = node.entries().iter();
    entries
        .filter(|entry| entry.value.value != NodeValue::Null)
        .map(|entry| (&*entry.key, &entry.value))
        .collect()
}

/// A number; `None` if it isn't one.
pub(super) fn number(node: &Node) -> Option<f64> {
    match &node.value {
        NodeValue::Number(number) => number.as_f64(),
        _ => None,
    }
}

impl Reader<'_> {
    pub(super) fn wrong(&mut self, key: &str, node: &Node, wanted: &str) {
        self.not(&format!("`{key}`"), node, wanted);
    }

    pub(super) fn not(&mut self, name: &str, node: &Node, wanted: &str) {
        self.findings.push(
            Diagnostic::error(format!("{name} must be {wanted}"))
                .at(node.span, format!("this is {}", node.type_name())),
        );
    }

    /// The entries of an object with `known` keys, without nulls; `None` if it isn't an object.
    /// Messages call it `name`. `unknown` returns the finding for another key, or `None` to accept
    /// it.
    pub(super) fn object<'n>(
        &mut self,
        name: &str,
        node: &'n Node,
        known: &[&str],
        unknown: impl Fn(&Entry) -> Option<Diagnostic>,
    ) -> Option<Vec<(&'n str, &'n Node)>> {
        let NodeValue::Object(entries) = &node.value else {
            self.not(name, node, "an object");
            return None;
        };
        for entry in entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
            let near = nearest(&entry.key, known.iter().copied());
            self.findings
                .extend(unknown(entry).map(|finding| finding.suggest(near)));
        }
        Some(given(node))
    }

    pub(super) fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        let text = node.as_str().filter(|text| !text.is_empty());
        if text.is_none() {
            self.wrong(key, node, "a string that isn't empty");
        }
        text.map(str::to_owned)
    }

    pub(super) fn flag(&mut self, key: &str, node: &Node) -> bool {
        if let NodeValue::Bool(value) = node.value {
            return value;
        }
        self.wrong(key, node, "true or false");
        false
    }

    pub(super) fn whole(
        &mut self,
        key: &str,
        node: &Node,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let number = match &node.value {
            NodeValue::Number(number) => number.as_u64().filter(|number| range.contains(number)),
            _ => None,
        };
        if number.is_none() {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            self.wrong(key, node, &wanted);
        }
        number
    }

    /// A rate in calls per second; must be greater than 0.
    pub(super) fn call_rate(&mut self, key: &str, node: &Node) -> Option<f64> {
        let rate = number(node).filter(|rate| *rate > 0.0 && rate.is_finite());
        if rate.is_none() {
            self.wrong(key, node, "calls a second, more than 0");
        }
        rate
    }

    pub(super) fn duration(&mut self, key: &str, node: &Node, default: Duration) -> Duration {
        let Some(text) = node.as_str() else {
            self.wrong(key, node, "a duration such as \"300ms\" or \"1m30s\"");
            return default;
        };
        parse_duration(text).unwrap_or_else(|error| {
            self.findings.push(
                Diagnostic::error(format!("`{key}` isn't a duration"))
                    .at(node.span, error.to_string()),
            );
            default
        })
    }
}

/// An address that begins with `http://` or `https://`.
pub(super) fn url(read: &mut Reader<'_>, key: &str, node: &Node) -> Option<String> {
    let text = read.text(key, node)?;
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let is_url = rest.is_some_and(|rest| !rest.is_empty());
    if !is_url {
        read.findings.push(
            Diagnostic::error(format!("`{key}` isn't a URL"))
                .at(node.span, "expected `https://` or `http://` and a host"),
        );
    }
    is_url.then_some(text)
}

/// `burst` and `per_second`; what is left out or wrong is as in `default`.
pub(super) fn rate(read: &mut Reader<'_>, key: &str, node: &Node, default: Rate) -> Rate {
    let mut rate = default;
    let unknown = |entry: &Entry| {
        let finding = Diagnostic::error(format!("`{}` isn't a part of `{key}`", entry.key));
        Some(finding.at(entry.key_span, format!("not known in `{key}`")))
    };
    let entries = read.object(&format!("`{key}`"), node, &["burst", "per_second"], unknown);
    for (part, value) in entries.unwrap_or_default() {
        match part {
            "burst" => match number(value) {
                Some(number) if number >= 1.0 && number.fract() == 0.0 && number <= 1e9 => {
                    rate.burst = number as u32;
                }
                _ => read.wrong(part, value, "a whole number, at least 1"),
            },
            "per_second" => {
                rate.per_second = read.call_rate(part, value).unwrap_or(rate.per_second);
            }
            _ => {}
        }
    }
    rate
}

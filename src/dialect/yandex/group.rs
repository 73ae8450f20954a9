//! Writes a checked specification as a native group.
//!
//! In: the typed document. Out: the group's object, and findings about what native groups do
//! otherwise. Must not: check single values; `values` did.

use std::sync::Arc;
use std::time::Duration;

use super::deal::Zone;
use super::names::{Names, items};
use super::schema::Role;
use super::values::Field;
use super::{Size, Specification, at, number, start, text};
use crate::config::duration;
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// The name of instances whose template has none.
const DEFAULT_NAME: &str = "{instance_group.id}-{instance.short_id}";

/// An object under construction; every generated key has the place of the value it comes from.
struct Object(Vec<Entry>);

impl Object {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn add(&mut self, key: &str, value: Node) {
        self.0.push(Entry::placed(key, value));
    }

    fn text(&mut self, key: &str, span: Span, text: &str) {
        self.add(key, Node::new(span, NodeValue::String(text.into())));
    }

    fn number(&mut self, key: &str, span: Span, number: u32) {
        self.add(key, Node::new(span, NodeValue::Number(number.into())));
    }

    fn flag(&mut self, key: &str, span: Span) {
        self.add(key, Node::new(span, NodeValue::Bool(true)));
    }

    fn node(self, span: Span) -> Node {
        Node::new(span, NodeValue::Object(self.0))
    }
}

/// The native group of a specification without errors.
pub(super) fn specification(
    typed: &Node,
    names: &Names,
    zones: &[Zone],
    size: &Size,
    update: Option<Node>,
) -> Specification {
    let top = start(typed.span);
    let template = typed.get("instance_template");
    let mut group = Object::new();
    group.text("texts", top, "placeholders");
    if let Some(platform) = template.and_then(|template| template.get("platform_id")) {
        group.add("instance_type", platform.clone());
    }
    group.number("size", size.span, size.target);
    let policy = at(typed, &["allocation_policy", "zones"]).map_or(top, |zones| zones.span);
    let listed = zones.iter().map(zone_object).collect();
    group.add("zones", Node::new(policy, NodeValue::Array(listed)));
    group.flag("rebalance", policy);
    if let Some(variables) = typed.get("variables") {
        group.add("vars", variables_object(variables, names));
    }
    if let Some(labels) = template.and_then(|template| template.get("labels")) {
        group.add("labels", labels.clone());
    }
    let labels = typed.get("labels");
    if let Some(labels) = labels.filter(|labels| !labels.entries().is_empty()) {
        group.add("group_labels", labels.clone());
    }
    if let Some(template) = template {
        group.add("args", args(template));
        let userdata = at(template, &["metadata", "user-data"]);
        if let Some(userdata) = userdata.filter(|text| text.as_str() != Some("")) {
            group.add("userdata", userdata.clone());
        }
    }
    if let Some(update) = update {
        group.add("update", update);
    }
    if let Some(protection) = typed.get("deletion_protection")
        && protection.value == NodeValue::Bool(true)
    {
        group.flag("protect", protection.span);
    }
    let balancer = ["load_balancer_spec", "target_group_spec", "name"];
    Specification {
        group: group.node(typed.span),
        load_balancer: text(typed, &balancer).map(Into::into),
    }
}

fn zone_object(zone: &Zone) -> Node {
    let mut object = Object::new();
    object.text("zone", zone.span, &zone.id);
    if let Some(first) = zone.tags.first() {
        let tags = zone.tags.iter().map(|tag| {
            let text = NodeValue::String(Arc::clone(&tag.value));
            Node::new(tag.span, text)
        });
        object.add(
            "tags",
            Node::new(first.span, NodeValue::Array(tags.collect())),
        );
    }
    object.node(zone.span)
}

fn variables_object(variables: &Node, names: &Names) -> Node {
    let mut object = Object::new();
    for (variable, (key, value)) in items(Some(variables)).iter().zip(&names.variables) {
        let span = |key| variable.get(key).map_or(variable.span, |node| node.span);
        object.0.push(Entry {
            key: Arc::clone(key),
            key_span: span("key"),
            value: Node::new(span("value"), NodeValue::String(Arc::clone(value))),
        });
    }
    object.node(variables.span)
}

/// The instance template without what native groups have keys for.
fn args(template: &Node) -> Node {
    let mut args = Object::new();
    if text(template, &["name"]).is_none() {
        let place = start(template.span);
        args.text("name", place, DEFAULT_NAME);
    }
    for entry in template.entries() {
        let mut entry = entry.clone();
        match &*entry.key {
            "platform_id" | "labels" => continue,
            "name" | "hostname" if entry.value.as_str() == Some("") => continue,
            "metadata" => {
                if let NodeValue::Object(entries) = &mut entry.value.value {
                    entries.retain(|entry| &*entry.key != "user-data");
                    if entries.is_empty() {
                        continue;
                    }
                }
            }
            _ => {}
        }
        args.0.push(entry);
    }
    args.node(template.span)
}

/// The native `update` of a deploy policy and its health checks.
pub(super) fn update(typed: &Node, fields: &[Field], findings: &mut Diagnostics) -> Option<Node> {
    let policy = typed.get("deploy_policy")?;
    let mut update = Object::new();
    let limit = |key| {
        let span = policy.get(key).map_or(policy.span, |node| node.span);
        (span, number(policy, &[key]).unwrap_or(0))
    };
    let (mut unavailable, mut surge) = (limit("max_unavailable"), limit("max_expansion"));
    if unavailable.1 == 0 && surge.1 == 0 {
        let place = start(policy.span);
        let place = ["max_unavailable", "max_expansion"]
            .into_iter()
            .find_map(|key| Some(policy.get(key)?.span))
            .unwrap_or(place);
        findings.push(
            Diagnostic::error("`max_unavailable` and `max_expansion` can't both be 0")
                .at(place, "no instance can be replaced")
                .hint("raise one of them"),
        );
        return None;
    }
    let is_fixed = |field: &&Field| {
        let is_address = matches!(field.role, Role::Address(_) | Role::PublicAddress);
        (is_address || &*field.key == "disk_id") && !field.text.is_empty()
    };
    if surge.1 > 0
        && let Some(fixed) = fields.iter().find(is_fixed)
    {
        let (what, has) = match &*fixed.key {
            "disk_id" => ("disks", "a disk"),
            _ => ("addresses", "an address"),
        };
        let warning = Diagnostic::warning(format!(
            "`max_expansion` counts as 0 in a group with fixed {what}"
        ))
        .at(surge.0, format!("two instances can't share {has}"))
        .related(fixed.span, "fixed here");
        findings.push(if unavailable.1 == 0 {
            unavailable = (surge.0, 1);
            warning.hint("instances are replaced one at a time: write `max_unavailable: 1`")
        } else {
            warning
        });
        surge.1 = 0;
    }
    update.number("max_unavailable", unavailable.0, unavailable.1);
    update.number("max_surge", surge.0, surge.1);
    for key in ["max_creating", "max_deleting"] {
        let (span, most) = limit(key);
        if most > 0 {
            update.number(key, span, most);
        }
    }
    let word = |key| Some((policy.get(key)?.span, text(policy, &[key])?));
    if let Some((span, "OPPORTUNISTIC")) = word("strategy") {
        update.flag("opportunistic", span);
    }
    match word("minimal_action") {
        Some((span, "RESTART")) => update.text("minimal_action", span, "restart"),
        Some((span, "RECREATE")) => update.text("minimal_action", span, "replace"),
        _ => {}
    }
    if let Some(health) = health(typed, policy, findings) {
        update.add("health", health);
    }
    Some(update.node(policy.span))
}

/// The native `update.health`; `None` without health checks and startup duration.
fn health(typed: &Node, policy: &Node, findings: &mut Diagnostics) -> Option<Node> {
    let duration = |node: &Node, key: &str| {
        let NodeValue::Number(millis) = &node.get(key)?.value else {
            return None;
        };
        Some((node.get(key)?.span, Duration::from_millis(millis.as_u64()?)))
    };
    let startup = duration(policy, "startup_duration").filter(|(_, time)| !time.is_zero());
    let checks = typed.get("health_checks_spec");
    let specs = items(checks.and_then(|checks| checks.get("health_check_specs")));
    let span = specs.first().map(|check| check.span);
    let span = span.or_else(|| Some(startup?.0))?;
    let mut health = Object::new();
    if let [first, rest @ ..] = specs {
        if let Some(second) = rest.first() {
            let place = start(second.span);
            findings.push(
                Diagnostic::warning("nstance uses the first health check only")
                    .at(place, "ignored")
                    .related(span, "used"),
            );
        }
        let (check, options) = match first.get("tcp_options") {
            Some(options) => ("tcp", options),
            None => ("http", first.get("http_options")?),
        };
        health.text("check", options.span, check);
        for entry in options.entries() {
            let value = match entry.value.as_str() {
                Some("") => continue,
                Some(path) if !path.starts_with('/') => {
                    let path = format!("/{path}").into();
                    Node::new(entry.value.span, NodeValue::String(path))
                }
                _ => entry.value.clone(),
            };
            health.0.push(Entry {
                value,
                ..entry.clone()
            });
        }
        for (key, default) in [("interval", 2), ("timeout", 1)] {
            let default = (span, Duration::from_secs(default));
            let (span, time) = duration(first, key).unwrap_or(default);
            health.text(key, span, &shown(time));
        }
        // The threshold counts the failure that makes an instance unhealthy, `retries` doesn't.
        let threshold = number(first, &["unhealthy_threshold"]).filter(|threshold| *threshold > 0);
        let place = first.get("unhealthy_threshold");
        let place = place.map_or(span, |node| node.span);
        health.number("retries", place, threshold.unwrap_or(2) - 1);
    }
    if let Some((span, time)) = startup {
        health.text("min_healthy_time", span, &shown(time));
    }
    // Yandex counts the time for health checks from the end of the startup, nstance from the
    // creation.
    let limit = checks.and_then(|checks| duration(checks, "max_checking_health_duration"));
    if let Some((span, limit)) = limit {
        let startup = startup.map_or(Duration::ZERO, |(_, time)| time);
        health.text("deadline", span, &shown(startup + limit));
    }
    Some(health.node(span))
}

/// A duration without loss of milliseconds.
fn shown(time: Duration) -> String {
    match time.subsec_millis() {
        0 => duration::shown(time),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// Keys that are ignored without a warning from [`super::translate`], and what that means.
const WITHOUT_EQUAL: [(&str, &str); 9] = [
    (
        "folder_id",
        "the folder belongs to the cloud's configuration, not to a group",
    ),
    ("description", "groups have no description"),
    (
        "service_account_id",
        "nstance manages the instances with its own credentials",
    ),
    (
        "scale_policy.test_auto_scale",
        "nstance doesn't scale by metrics",
    ),
    (
        "auto_healing_policy",
        "failed instances stay until `nstance apply` replaces them",
    ),
    (
        "load_balancer_spec.max_opening_traffic_duration",
        "nstance doesn't wait for a load balancer to open traffic",
    ),
    (
        "load_balancer_spec.ignore_health_checks",
        "nstance doesn't use a load balancer's health checks",
    ),
    (
        "load_balancer_spec.target_group_spec.description",
        "nstance doesn't create target groups",
    ),
    (
        "load_balancer_spec.target_group_spec.labels",
        "nstance doesn't create target groups",
    ),
];

/// The parts of a specification that [`super::translate`] leaves out silently, each with its place.
pub fn without_equal(root: &Node) -> Vec<(Span, String)> {
    let mut notes = Vec::new();
    for (path, note) in WITHOUT_EQUAL {
        let (owners, last) = path.rsplit_once('.').unwrap_or(("", path));
        let owners: Vec<_> = owners.split_terminator('.').collect();
        let entries = at(root, &owners).map(Node::entries).unwrap_or_default();
        let entry = entries.iter().find(|entry| *entry.key == *last);
        if let Some(entry) = entry.filter(|entry| entry.value.value != NodeValue::Null) {
            notes.push((entry.key_span, format!("`{path}`: {note}")));
        }
    }
    let checks = items(at(root, &["health_checks_spec", "health_check_specs"]));
    if let Some(threshold) = checks.first().and_then(|it| it.get("healthy_threshold")) {
        let note = "`healthy_threshold`: one successful check is enough; `min_healthy_time` asks \
                    for more";
        notes.push((threshold.span, note.to_owned()));
    }
    notes
}

//! Reads specifications of Yandex Instance Groups.
//!
//! In: the YAML of a `CreateInstanceGroupRequest`. Out: a group in nstance's own schema, each value
//! with its place in the specification, or all errors. Must not: know live instances.
//!
//! `read` makes the document, `values` checks it against `schema`, `instances` renders a fresh deal
//! of instances to check names and addresses, and `group` writes the group.

mod deal;
mod group;
mod instances;
mod names;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod values;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::config::node::{Node, NodeValue};
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, counted};
use crate::merge::zones::share;
use crate::render::placeholders::{self, GROUP_LABEL, INSTANCE_LABEL};

use deal::{Zone, deal};
use names::{Names, is_system, items};
use values::Field;

pub use group::without_equal;
pub use read::{LARGEST, read};

/// A group's specification in nstance's own schema.
#[derive(Debug)]
pub struct Specification {
    /// An object with the keys of a native group.
    pub group: Node,
    /// The name of the network load balancer's target group, if it has one.
    pub load_balancer: Option<Arc<str>>,
}

/// Whether a document has the shape of an instance group's specification.
pub fn is_specification(root: &Node) -> bool {
    let has = |key| root.get(key).is_some();
    has("instance_template")
        && (has("scale_policy") || has("allocation_policy"))
        && !["cluster", "groups", "shard"].into_iter().any(has)
}

/// Checks a specification and translates it to a native group.
///
/// Fails after it reported all errors of the document.
pub fn translate(root: &Node, findings: &mut Diagnostics) -> Result<Specification, Reported> {
    let before = findings.errors();
    let names = Names::of(root);
    let (typed, fields) = values::read(root, &names, findings);
    let typed = typed.ok_or(Reported)?;
    check_variables(&typed, findings);
    let failed = check_names(&fields, findings);
    check_disk_names(&typed, findings);
    warn_of_ignored(&typed, findings);
    let zones = zones(&typed);
    let size = size(&typed, zones.len(), findings);
    let errors = findings.errors();
    check_zones(&zones, findings);
    if let Some(size) = &size {
        check_tags(&zones, size, findings);
        // Instances with one tag also have one name and one address, and those without one have
        // placeholders in them.
        if findings.errors() == errors {
            let slots = deal(&zones, size.target);
            instances::check(&slots, &fields, &names, failed, findings);
        }
    }
    let update = group::update(&typed, &fields, findings);
    match size {
        Some(size) if findings.errors() == before => {
            Ok(group::specification(&typed, &names, &zones, &size, update))
        }
        _ => Err(Reported),
    }
}

/// The first byte of a value, for findings about a whole object.
fn start(span: Span) -> Span {
    Span {
        end: span.start + 1,
        ..span
    }
}

/// The value at a path of keys.
fn at<'n>(node: &'n Node, path: &[&str]) -> Option<&'n Node> {
    path.iter().try_fold(node, |node, key| node.get(key))
}

/// The whole number at a path of keys.
fn number(node: &Node, path: &[&str]) -> Option<u32> {
    match &at(node, path)?.value {
        NodeValue::Number(number) => number.as_u64()?.try_into().ok(),
        _ => None,
    }
}

/// The text at a path of keys, if it isn't empty.
fn text<'n>(node: &'n Node, path: &[&str]) -> Option<&'n str> {
    at(node, path)?.as_str().filter(|text| !text.is_empty())
}

/// How many instances there are.
struct Size {
    target: u32,
    /// How many tags there must be.
    tags: u32,
    /// The key that demands the tags.
    key: &'static str,
    span: Span,
}

/// The size; without metrics, an autoscaled group keeps its initial one.
fn size(typed: &Node, zones: usize, findings: &mut Diagnostics) -> Option<Size> {
    if let Some(node) = at(typed, &["scale_policy", "fixed_scale", "size"]) {
        let target = number(node, &[])?;
        return Some(Size {
            target,
            tags: target,
            key: "size",
            span: node.span,
        });
    }
    let scale = at(typed, &["scale_policy", "auto_scale"])?;
    let node = scale.get("initial_size")?;
    let initial = number(node, &[])?;
    let has_workload = items(scale.get("custom_rules"))
        .iter()
        .any(|rule| text(rule, &["rule_type"]) == Some("WORKLOAD"));
    if !has_workload {
        let is_regional = text(scale, &["auto_scale_type"]) == Some("REGIONAL");
        let least = if is_regional { 1 } else { zones as u32 };
        if initial < least {
            findings.push(
                Diagnostic::error(format!("`initial_size` can't be {initial}"))
                    .at(node.span, format!("expected at least {least}"))
                    .hint("without a `WORKLOAD` rule, a zonal group starts with one instance in each zone, a regional one with one"),
            );
        }
        if let Some(least) = scale.get("min_zone_size")
            && number(least, &[]) == Some(0)
        {
            findings.push(
                Diagnostic::error("`min_zone_size` can't be 0 without a `WORKLOAD` rule")
                    .at(least.span, "expected at least 1"),
            );
        }
    }
    let most = number(scale, &["max_size"]).filter(|most| *most > 0);
    let least = number(scale, &["min_zone_size"]).unwrap_or(0) * zones as u32;
    let target = initial.max(least).min(most.unwrap_or(100));
    findings.push(
        Diagnostic::warning("nstance doesn't scale by metrics")
            .at(
                node.span,
                format!("the group keeps {}", counted(target as usize, "instance")),
            )
            .hint("change `initial_size` to scale it"),
    );
    Some(Size {
        target,
        tags: most.unwrap_or(target),
        key: if most.is_some() {
            "max_size"
        } else {
            "initial_size"
        },
        span: node.span,
    })
}

fn zones(typed: &Node) -> Vec<Zone> {
    let zones = items(at(typed, &["allocation_policy", "zones"]));
    let zone = |node: &Node| {
        let id = node.get("zone_id")?;
        let tags = items(node.get("instance_tags_pool")).iter();
        let tags = tags.filter_map(|tag| Some(Spanned::new(tag.as_str()?.into(), tag.span)));
        Some(Zone {
            id: id.as_str()?.into(),
            span: id.span,
            tags: tags.collect(),
        })
    };
    zones.iter().filter_map(zone).collect()
}

/// Reports values that repeat an earlier one.
fn check_unique<'n>(
    what: &str,
    values: impl Iterator<Item = (&'n str, Span)>,
    findings: &mut Diagnostics,
) {
    let mut known = HashMap::new();
    for (value, span) in values {
        if let Some(first) = known.insert(value, span) {
            findings.push(
                Diagnostic::error(format!("duplicate {what} `{value}`"))
                    .at(span, "defined again here")
                    .related(first, "first defined here")
                    .hint("remove or rename one of the two"),
            );
        }
    }
}

fn check_variables(typed: &Node, findings: &mut Diagnostics) {
    let keys = || {
        let variables = items(typed.get("variables")).iter();
        variables.filter_map(|variable| {
            let key = variable.get("key")?;
            Some((key.as_str()?, key.span))
        })
    };
    check_unique("variable", keys(), findings);
    for (key, span) in keys() {
        let is_label = key.starts_with(GROUP_LABEL) || key.starts_with(INSTANCE_LABEL);
        if is_system(key) || is_label {
            findings.push(
                Diagnostic::error(format!("`{key}` is a system variable"))
                    .at(span, "a variable can't have this key")
                    .hint("rename the variable"),
            );
        }
    }
}

/// Checks that names and hostnames contain a placeholder that makes them unique, as the service
/// does: by their text, also for a single instance. Returns the places of the others.
fn check_names(fields: &[Field], findings: &mut Diagnostics) -> HashSet<Span> {
    use schema::Role::{Hostname, Name};
    let mut failed = HashSet::new();
    for field in fields {
        let has = |name: &str| placeholders::find(&field.text).any(|(_, key)| key == name);
        let is_unique = ["instance.short_id", "instance.index", "instance.tag"]
            .into_iter()
            .any(has)
            || has("instance.zone_id") && has("instance.index_in_zone");
        if !matches!(field.role, Name | Hostname) || is_unique || field.text.is_empty() {
            continue;
        }
        failed.insert(field.span);
        findings.push(
            Diagnostic::error(format!("`{}` isn't unique in each instance", field.key))
                .at(field.span, "no placeholder makes it unique")
                .hint(
                    "add `{instance.index}`, `{instance.short_id}`, `{instance.tag}`, or both \
                     `{instance.zone_id}` and `{instance.index_in_zone}`",
                ),
        );
    }
    failed
}

fn check_disk_names(typed: &Node, findings: &mut Diagnostics) {
    let disks = items(at(typed, &["instance_template", "secondary_disk_specs"]));
    let named = |disk: &&Node| text(disk, &["name"]).is_some();
    let name = disks.iter().find(named).and_then(|disk| disk.get("name"));
    if let (Some(name), Some(unnamed)) = (name, disks.iter().find(|disk| !named(disk))) {
        let place = start(unnamed.span);
        findings.push(
            Diagnostic::error("a secondary disk lacks `name`")
                .at(place, "`name` must be given here")
                .related(name.span, "another disk has a name")
                .hint("name all secondary disks or none"),
        );
    }
    let names = disks.iter().filter_map(|disk| disk.get("name"));
    let names = names.filter_map(|name| Some((name.as_str()?, name.span)));
    check_unique(
        "disk name",
        names.filter(|(name, _)| !name.is_empty()),
        findings,
    );
}

fn warn_of_ignored(typed: &Node, findings: &mut Diagnostics) {
    if let Some(fqdn) = at(typed, &["instance_template", "fqdn"]) {
        findings.push(
            Diagnostic::warning("`fqdn` is documented, but not part of the API")
                .at(fqdn.span, "the service may ignore it")
                .hint("set `hostname`"),
        );
    }
    if let Some(balancer) = typed.get("application_load_balancer_spec") {
        findings.push(
            Diagnostic::warning("nstance doesn't support application load balancers")
                .at(start(balancer.span), "instances aren't registered with it"),
        );
    }
}

fn check_zones(zones: &[Zone], findings: &mut Diagnostics) {
    let ids = zones.iter().map(|zone| (&*zone.id, zone.span));
    check_unique("zone", ids, findings);
    let tags = zones.iter().flat_map(|zone| &zone.tags);
    check_unique("tag", tags.map(|tag| (&*tag.value, tag.span)), findings);
}

/// Checks that there are enough tags: in total, and in each zone.
fn check_tags(zones: &[Zone], size: &Size, findings: &mut Diagnostics) {
    let with_tags = zones.iter().find(|zone| !zone.tags.is_empty());
    let (Some(with_tags), total) = (with_tags, zones.iter().map(|zone| zone.tags.len()).sum())
    else {
        return;
    };
    if let Some(bare) = zones.iter().find(|zone| zone.tags.is_empty()) {
        findings.push(
            Diagnostic::error(format!("zone `{}` has no tags", bare.id))
                .at(bare.span, "`instance_tags_pool` must be given here")
                .related(with_tags.span, "this zone has tags")
                .hint("give tags to all zones or to none"),
        );
        return;
    }
    let needed = size.tags as usize;
    if needed > total {
        let tags = counted(total, "tag");
        findings.push(
            Diagnostic::error(format!("the group has {tags} for {needed} instances"))
                .at(size.span, format!("`{}` requires {needed} tags", size.key))
                .hint("add tags to `instance_tags_pool`"),
        );
        return;
    }
    for (index, zone) in zones.iter().enumerate() {
        let needed = share(zones.len(), size.target, index);
        if zone.tags.len() < needed {
            let tags = counted(zone.tags.len(), "tag");
            findings.push(
                Diagnostic::error(format!(
                    "zone `{}` has {tags} for {needed} instances",
                    zone.id
                ))
                .at(zone.span, format!("requires {needed} tags"))
                .related(size.span, "instances are dealt to the zones in turn"),
            );
        }
    }
}

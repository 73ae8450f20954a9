//! Whether what a plan creates can be had: instance types that exist and run the right
//! architecture, and limits that would be reached.
//!
//! In: a plan, and a cloud. Out: findings; what can't be created is left out of the plan. May not:
//! ask anything for a plan that creates nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::plan::change::{Action, Change, LeftOut, Plan, Summary};
use crate::provider::{Cloud, InstanceType, WantedCapacity};
use crate::render::renderer::GroupRenderer;

/// Checks what a plan creates, and what it gives another type.
pub(super) fn check(
    plan: &mut Plan,
    groups: &[GroupRenderer<'_>],
    cloud: &dyn Cloud,
) -> Diagnostics {
    let mut findings = Diagnostics::default();
    let types: BTreeSet<&str> = plan.changes.iter().filter_map(new_type).collect();
    let names: Vec<String> = types.into_iter().map(str::to_owned).collect();
    if names.is_empty() {
        return findings;
    }
    let known = match cloud.instance_types(&names) {
        Ok(Some(known)) => known,
        Ok(None) => return findings,
        Err(error) => {
            let mut finding = Diagnostic::warning(format!(
                "the instance types aren't checked: {}",
                error.told()
            ));
            finding.hints.extend(error.hint);
            findings.push(finding);
            return findings;
        }
    };
    let mut left_out: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut near: BTreeMap<String, Option<String>> = BTreeMap::new();
    plan.changes.retain(|change| {
        let Some((name, arch)) = new_type(change).zip(new_arch(change)) else {
            return true;
        };
        let found = known.iter().find(|it| it.name == name);
        if found.is_some_and(|it| it.architectures.iter().any(|own| own == arch)) {
            return true;
        }
        let place = place(groups, &change.address);
        let finding = match found {
            Some(found) => wrong_architecture(found, arch, place),
            None => {
                let near = near
                    .entry(name.to_owned())
                    .or_insert_with(|| cloud.near_instance_type(name));
                unknown(name, near.as_deref(), place)
            }
        };
        let group = change.address.group.to_string();
        let why = finding.summary.clone();
        findings.push(finding.about(&change.address.group));
        left_out.entry(group).or_insert((0, why)).0 += 1;
        false
    });
    if !left_out.is_empty() {
        leave_out(plan, left_out);
    }
    for limit in cloud.limits_ahead(&wanted(plan)) {
        findings
            .push(Diagnostic::warning(limit).hint(
                "Ask for more in Service Quotas before applying, or make the groups smaller",
            ));
    }
    findings
}

/// The instance type that a change asks the cloud for.
fn new_type(change: &Change) -> Option<&str> {
    let changes = match change.action {
        Action::Create | Action::CreateThenDelete | Action::DeleteThenCreate => true,
        Action::Update => change
            .attributes
            .iter()
            .any(|attribute| attribute.path == "instance_type"),
        Action::Delete | Action::Adopt | Action::Forget | Action::NoOp => false,
    };
    let head = &change.after.as_deref()?.spec.head;
    (changes && !head.instance_type.is_empty()).then_some(&*head.instance_type)
}

fn new_arch(change: &Change) -> Option<&str> {
    Some(&change.after.as_deref()?.spec.head.arch)
}

fn place(groups: &[GroupRenderer<'_>], address: &Address) -> Option<Span> {
    let group = groups
        .iter()
        .map(|renderer| &renderer.group.merged)
        .find(|group| group.name == address.group)?;
    group.place_of(address.slot, "instance_type")
}

fn wrong_architecture(found: &InstanceType, arch: &str, place: Option<Span>) -> Diagnostic {
    let runs = found.architectures.join(" and ");
    let finding = Diagnostic::error(format!(
        "the instance type `{}` runs {runs}, and `arch` is {arch}",
        found.name
    ))
    .hint(format!(
        "Choose a type that runs {arch}, or set `arch` (and an image for it)"
    ));
    match place {
        Some(place) => finding.at(place, format!("runs {runs}")),
        None => finding,
    }
}

fn unknown(name: &str, near: Option<&str>, place: Option<Span>) -> Diagnostic {
    let mut finding =
        Diagnostic::error(format!("there is no instance type `{name}` in this region"));
    if let Some(place) = place {
        finding = finding.at(place, "no type of this region has this name");
    }
    match near {
        Some(near) => finding.hint(format!("there is `{near}`")),
        None => finding,
    }
}

/// Brings what a plan says of itself up to date with the changes that are left.
fn leave_out(plan: &mut Plan, left_out: BTreeMap<String, (usize, String)>) {
    let mut summary = Summary {
        no_op: plan.summary.no_op,
        ..Summary::default()
    };
    for change in &plan.changes {
        summary.count(change.action);
    }
    plan.summary = summary;
    let changed: BTreeSet<String> = plan
        .changes
        .iter()
        .map(|change| change.address.group.to_string())
        .collect();
    plan.groups.retain(|group| changed.contains(&group.name));
    plan.left_out
        .extend(left_out.into_iter().map(|(address, (count, why))| LeftOut {
            address,
            count,
            why,
        }));
}

/// How many more instances of each type there will be at once. Replacements come one at a time.
fn wanted(plan: &Plan) -> Vec<WantedCapacity> {
    let mut counts: BTreeMap<(&str, bool), (usize, usize)> = BTreeMap::new();
    for change in &plan.changes {
        let Some(after) = change.after.as_deref() else {
            continue;
        };
        let market = after.spec.args.get("InstanceMarketOptions");
        let spot = market.and_then(|it| it.get("MarketType")?.as_str()) == Some("spot");
        let key = (&*after.spec.head.instance_type, spot);
        match change.action {
            Action::Create => counts.entry(key).or_default().0 += 1,
            Action::CreateThenDelete => counts.entry(key).or_default().1 = 1,
            _ => {}
        }
    }
    counts
        .into_iter()
        .map(
            |((name, interruptible), (created, replaced))| WantedCapacity {
                instance_type: name.to_owned(),
                count: created + replaced,
                interruptible,
            },
        )
        .collect()
}

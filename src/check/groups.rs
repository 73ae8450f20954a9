//! Checks that templates and groups refer to names that exist, and are complete.
//!
//! In: one template or group of a decoded configuration. Out: findings. Must not: check args; the
//! provider's rules do.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::model::{Common, FileContent, Group, Lifecycle, ProviderKind, Template};
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics, counted, nearest};
use crate::merge::group::size_of;
use crate::provider::rules::{Effect, Rules};

use super::{Checker, Purpose, names, unknown_reference};

impl Checker<'_> {
    pub(super) fn common(&self, common: &Common, findings: &mut Diagnostics) {
        if let Some(userdata) = &common.userdata {
            self.userdata(userdata, findings);
        }
        if let Some(pool) = &common.subnet_pool {
            self.pool_exists(pool, findings);
        }
        for (_, file) in &common.files {
            if let FileContent::Certificate { template, .. } = &file.value.content
                && !self.config.certificates.contains_key(&template.value)
                && !self.broken.maps.contains("certificates")
            {
                findings.push(unknown_reference(
                    "certificate",
                    template,
                    "`certificates`",
                    names(&self.config.certificates),
                ));
            }
        }
        for path in &common.lifecycle.ignore_changes {
            check_path("ignore_changes", path, true, findings);
        }
        for path in &common.lifecycle.replace_on {
            check_path("replace_on", path, false, findings);
        }
        if let Some(provider) = self.provider() {
            for path in &common.lifecycle.restart_on {
                check_restart(path, provider.value, &common.lifecycle, findings);
            }
        }
    }

    pub(super) fn group(&self, group: &Group, purpose: Purpose, findings: &mut Diagnostics) {
        let config = self.config;
        if let Some(name) = &group.template
            && !config.templates.contains_key(&name.value)
            && !self.broken.maps.contains("templates")
        {
            findings.push(unknown_reference(
                "template",
                name,
                "`templates`",
                names(&config.templates),
            ));
        }
        self.group_load_balancers(group, findings);
        let mut zones: HashMap<&str, Span> = HashMap::new();
        for zone in &group.zones {
            let name = &zone.name;
            if let Some(first) = zones.insert(name, name.span) {
                findings.push(
                    Diagnostic::error(format!("duplicate zone `{}` in `zones`", name.value))
                        .at(name.span, "here again")
                        .related(first, "first listed here"),
                );
            }
        }
        check_tags(group, findings);
        for (_, differs) in &group.overrides {
            if let Some(pool) = &differs.value.subnet_pool {
                self.pool_exists(pool, findings);
            }
        }
        let template = self.template_of(group);
        let is_broken = self.broken.groups.contains(&group.name);
        let size = (!is_broken || group.size.is_some()).then(|| size_of(group));
        let is_servers = config.server_groups.contains(&group.name);
        let is_planned = purpose.is_complete() && !is_servers;
        if size == Some(0) && group.size.is_none() && is_planned {
            findings.push(
                Diagnostic::warning(format!(
                    "group `{}` has no `size`, so it has no instances",
                    group.name
                ))
                .at(group.span, "`size` is missing here")
                .hint("Write its `size`, or `\"size\": 0`"),
            );
        }
        for (slot, differs) in &group.overrides {
            if let Some(size) = size
                && *slot >= size
            {
                findings.push(
                    Diagnostic::warning(format!(
                        "the override of slot {slot} has no effect: the group has {size} {}",
                        if size == 1 { "slot" } else { "slots" }
                    ))
                    .at(differs.span, "no such slot")
                    .hint("slots are numbered from 0"),
                );
            }
        }
        if purpose.is_complete() {
            self.complete(group, template, findings);
        }
    }

    fn group_load_balancers(&self, group: &Group, findings: &mut Diagnostics) {
        let known = &self.config.load_balancers;
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for name in &group.load_balancers {
            if let Some(first) = seen.insert(name, name.span) {
                findings.push(
                    Diagnostic::error(format!("duplicate load balancer `{}`", name.value))
                        .at(name.span, "here again")
                        .related(first, "first listed here"),
                );
                continue;
            }
            let Some(balancer) = known.get(&name.value) else {
                let is_broken = self.broken.load_balancers.contains(&name.value);
                if !is_broken && !self.broken.maps.contains("load_balancers") {
                    findings.push(unknown_reference(
                        "load balancer",
                        name,
                        "`load_balancers`",
                        names(known),
                    ));
                }
                continue;
            };
            if let Some(shard) = self.provider()
                && let Some(provider) = balancer.value.provider
                && shard.value != provider
            {
                findings.push(
                    Diagnostic::warning(format!(
                        "load balancer `{}` is of provider `{}`, the shard is of `{}`",
                        name.value,
                        provider.as_str(),
                        shard.as_str()
                    ))
                    .at(name.span, "instances aren't registered with it")
                    .related(balancer.span, "it is defined here")
                    .related(shard.span, "the shard's provider"),
                );
            }
        }
    }

    /// Checks that a group's kind and architecture are set, since no instance can be created without
    /// them. A new instance's type is checked when it is planned.
    fn complete(&self, group: &Group, template: Option<&Template>, findings: &mut Diagnostics) {
        let Some(provider) = self.provider().filter(|_| !self.is_broken(group)) else {
            return;
        };
        let has = |given: fn(&Common) -> bool| {
            given(&group.common) || template.is_some_and(|template| given(&template.common))
        };
        let mut lacking = Vec::new();
        // The embedded cloud accepts the defaults that `render` uses.
        if provider.value != ProviderKind::Sim {
            if !has(|common| common.kind.is_some()) {
                lacking.push("`kind`");
            }
            if !has(|common| common.arch.is_some()) {
                lacking.push("`arch`");
            }
        }
        if lacking.is_empty() {
            return;
        }
        let list = lacking.join(", ");
        let diagnostic = Diagnostic::error(format!("group `{}` lacks {list}", group.name));
        let diagnostic = match &group.template {
            Some(name) => diagnostic.at(
                name.span,
                format!(
                    "neither the group nor template `{}` says {list}",
                    name.value
                ),
            ),
            None => diagnostic.at(
                group.span,
                format!("has no template, and doesn't say {list}"),
            ),
        };
        findings.push(diagnostic.hint(match &group.template {
            Some(name) => format!("give {list} in template `{}`, or in the group", name.value),
            None => format!("give {list} in the group, or name a `template` that has it"),
        }));
    }
}

/// The parts of an instance that `lifecycle` accepts.
const ROOTS: &[&str] = &[
    "args",
    "vars",
    "userdata",
    "files",
    "tags",
    "labels",
    "instance_type",
    "load_balancers",
    "kind",
    "arch",
    "subnet_pool",
    "subnet",
    "zone",
];

/// Checks a path of `restart_on`: a change of it must be one that replaces by default and that a
/// restart can apply too.
fn check_restart(
    path: &Spanned<Arc<str>>,
    provider: ProviderKind,
    lifecycle: &Lifecycle,
    findings: &mut Diagnostics,
) {
    let before = findings.len();
    check_path("restart_on", path, false, findings);
    if findings.len() > before {
        return;
    }
    let rules = Rules::of(provider);
    let is_for = rules.restartable();
    if !is_for.contains(&&*path.value) {
        let list: Vec<String> = is_for.iter().map(|path| format!("`{path}`")).collect();
        let told = if list.is_empty() {
            format!("with `{}`, it is for no path", provider.as_str())
        } else {
            format!("it is for {}", list.join(", "))
        };
        findings.push(
            Diagnostic::error(format!("`{}` can't stand in `restart_on`", path.value))
                .at(path.span, told)
                .hint(match rules.effect(&path.value) {
                    Effect::InPlace => "Leave it out: it changes while the instance runs",
                    Effect::Restart => "Leave it out: a change of it always stops and starts",
                    Effect::Replace => "Leave it out: only a new instance can have another",
                }),
        );
        return;
    }
    let replaced = lifecycle
        .replace_on
        .iter()
        .find(|other| other.value == path.value);
    if let Some(other) = replaced {
        findings.push(
            Diagnostic::error(format!(
                "`{}` stands in both `replace_on` and `restart_on`",
                path.value
            ))
            .at(path.span, "stopped and started")
            .related(other.span, "a new instance")
            .hint("Keep the one that changes should take"),
        );
    }
}

fn check_path(key: &str, path: &Spanned<Arc<str>>, size_counts: bool, findings: &mut Diagnostics) {
    let (root, rest) = match path.split_once('.') {
        Some((root, rest)) => (root, Some(rest)),
        None => (&*path.value, None),
    };
    let known = ROOTS
        .iter()
        .copied()
        .chain(size_counts.then_some("size"))
        .collect::<Vec<_>>();
    if !known.contains(&root) {
        let diagnostic = Diagnostic::error(format!("`{}` can't stand in `{key}`", path.value))
            .at(path.span, format!("`{root}` isn't a part of an instance"));
        let near = nearest(root, known.iter().copied());
        findings.push(diagnostic.suggest_or_list(near, "paths start with", known));
        return;
    }
    let nested = matches!(root, "args" | "vars" | "files" | "tags" | "labels");
    match rest {
        Some(rest) if !nested => findings.push(
            Diagnostic::error(format!("`{}` can't stand in `{key}`", path.value))
                .at(path.span, format!("`{root}` has no parts"))
                .hint(format!("write `{root}` instead of `{root}.{rest}`")),
        ),
        // File names may start with a dot.
        Some(rest) if root != "files" && rest.split('.').any(str::is_empty) => findings.push(
            Diagnostic::error(format!("`{}` can't stand in `{key}`", path.value))
                .at(path.span, "a name is missing beside a dot"),
        ),
        _ => {}
    }
}

/// Reports tags that occur twice, and zones with fewer tags than slots.
fn check_tags(group: &Group, findings: &mut Diagnostics) {
    let mut known: HashMap<&str, Span> = HashMap::new();
    for tag in group.zones.iter().flat_map(|zone| &zone.tags) {
        if let Some(first) = known.insert(tag, tag.span) {
            findings.push(
                Diagnostic::error(format!("duplicate tag `{}`", tag.value))
                    .at(tag.span, "here again")
                    .related(first, "first listed here"),
            );
        }
    }
    if known.is_empty() {
        return;
    }
    let count = group.zones.len() as u32;
    let size = size_of(group);
    for (index, zone) in group.zones.iter().enumerate() {
        let slots = (size + count - 1 - index as u32) / count;
        if zone.tags.len() < slots as usize {
            findings.push(
                Diagnostic::error(format!(
                    "zone `{}` has {} for {}",
                    zone.name.value,
                    counted(zone.tags.len(), "tag"),
                    counted(slots as usize, "slot")
                ))
                .at(zone.name.span, "each slot needs a tag of its own")
                .hint("Add tags, or leave them out in all zones"),
            );
        }
    }
}

//! Decodes `templates` and `groups`, and what they share.
//!
//! In: the top-level object. Out: [`Template`]s and [`Group`]s. Must not: look up a group's
//! template.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::address::GroupName;
use crate::config::model::{
    Arch, Common, Consumed, Group, GroupZone, Label, Lifecycle, Named, Provided, SlotOverride,
    Template, Texts,
};
use crate::config::node::{Entry, NodeValue};
use crate::config::schema::tables::{self, LARGEST_GROUP};
use crate::config::source::Spanned;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::threads::{self, GROUPS_A_THREAD};

use super::check_id;
use super::form::decide;
use super::reader::{Object, item_text, text, wrong_type};
use super::{files, update, userdata};

/// The form of `groups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Tenant → group → fields.
    Nested,
    /// Group → fields; the tenant is `default`.
    Flat,
}

pub(super) fn template(entry: &Entry, findings: &mut Diagnostics) -> Option<Template> {
    let name = format!("template `{}`", entry.key);
    let object = Object::open(
        &entry.value,
        entry.key_span,
        name,
        &tables::TEMPLATE,
        findings,
    )?;
    Some(Template {
        common: common(&object, findings),
        moved_from: moved_from(&object, findings),
    })
}

/// The groups of a configuration.
#[derive(Default)]
pub(super) struct Groups {
    /// The groups in the order written.
    pub(super) all: Vec<Group>,
    /// The groups with errors.
    pub(super) broken: HashSet<GroupName>,
}

pub(super) fn groups(
    top: &Object<'_>,
    form: Option<Spanned<Form>>,
    findings: &mut Diagnostics,
) -> Groups {
    let mut groups = Groups::default();
    let Some(section) = top.get("groups") else {
        return groups;
    };
    let NodeValue::Object(entries) = &section.value.value else {
        wrong_type(&section.value, "`groups`", "an object", findings);
        return groups;
    };
    let form = match form {
        Some(form) => Some(form.value),
        // An invalid `groups_form` is already reported.
        None if top.get("groups_form").is_some() => {
            decide(section, entries, &mut Diagnostics::default())
        }
        None => decide(section, entries, findings),
    };
    let Some(form) = form else {
        return groups;
    };
    let mut written: Vec<(&str, &Entry)> = Vec::new();
    match form {
        Form::Flat => written.extend(entries.iter().map(|entry| ("default", entry))),
        Form::Nested => {
            for tenant in entries {
                check_id("tenant", &tenant.key, tenant.key_span, findings);
                let NodeValue::Object(members) = &tenant.value.value else {
                    wrong_type(
                        &tenant.value,
                        &format!("tenant `{}`", tenant.key),
                        "an object of groups",
                        findings,
                    );
                    continue;
                };
                written.extend(members.iter().map(|entry| (&*tenant.key, entry)));
            }
        }
    }
    let read = threads::map(&written, GROUPS_A_THREAD, |(tenant, entry)| {
        let mut found = Diagnostics::default();
        let name = GroupName::new(tenant, &entry.key);
        (group(name, form, entry, &mut found), found)
    });
    // Reuses the vector's memory.
    let all = read.into_iter().map(|(group, mut found)| {
        if !found.is_empty() {
            for finding in &mut found {
                finding.address = Some(group.name.to_string());
            }
            if found.has_errors() {
                groups.broken.insert(group.name.clone());
            }
            findings.extend(found);
        }
        group
    });
    groups.all = all.collect();
    groups
}

fn group(name: GroupName, form: Form, entry: &Entry, findings: &mut Diagnostics) -> Group {
    check_id("group", &entry.key, entry.key_span, findings);
    let mut group = Group {
        name,
        span: entry.key_span,
        template: None,
        common: Common::default(),
        size: None,
        replicas: None,
        drain_timeout: None,
        load_balancers: Vec::new(),
        depends_on: Vec::new(),
        zones: Vec::new(),
        rebalance: false,
        texts: Texts::default(),
        group_labels: None,
        overrides: IndexMap::new(),
        moved_from: None,
    };
    let title = format!("group `{}`", group.name);
    let before = findings.len();
    let Some(object) = Object::open(
        &entry.value,
        entry.key_span,
        title,
        &tables::GROUP,
        findings,
    ) else {
        // Add a hint: a value that isn't an object may be a field of a group that was taken for a
        // tenant.
        if form == Form::Nested && findings.len() > before {
            for finding in findings.iter_mut().skip(before) {
                finding.hints.push(
                    "`groups` is read as tenants with groups; if they have no tenants, say \
                     `\"groups_form\": \"flat\"`"
                        .to_owned(),
                );
            }
        }
        return group;
    };
    group.template = object.text("template", findings);
    group.common = common(&object, findings);
    group.drain_timeout = object.drain_timeout("drain_timeout", findings);
    group.load_balancers = object.texts("load_balancers", findings);
    group.depends_on = object.texts("depends_on", findings);
    group.zones = zones(&object, findings);
    size(&object, &mut group, findings);
    group.rebalance = object
        .flag("rebalance", findings)
        .is_some_and(|set| set.value);
    group.texts = object
        .choice("texts", &TEXTS, findings)
        .map_or_else(Texts::default, |texts| texts.value);
    group.group_labels = object
        .get("group_labels")
        .map(|_| labels(&object, "group_labels", findings));
    group.overrides = overrides(&object, findings);
    group.moved_from = moved_from(&object, findings);
    group
}

/// The size of a group: as written, or so many in each zone.
fn size(object: &Object<'_>, group: &mut Group, findings: &mut Diagnostics) {
    group.size = object.whole("size", LARGEST_GROUP, findings);
    let Some(replicas) = object.whole("replicas", LARGEST_GROUP, findings) else {
        return;
    };
    if let Some(size) = group.size {
        findings.push(
            Diagnostic::error("a group has `size` or `replicas`, not both")
                .at(replicas.span, "instances in each zone")
                .related(size.span, "instances in all zones"),
        );
        return;
    }
    let zones = group.zones.len().max(1) as u32;
    let size = replicas.value.saturating_mul(zones);
    if size > LARGEST_GROUP {
        findings.push(
            Diagnostic::error(format!("{size} instances are too many for a group"))
                .at(replicas.span, format!("in each of {zones} zones"))
                .hint(format!("The largest size is {LARGEST_GROUP}")),
        );
        return;
    }
    group.size = Some(Spanned::new(size, replicas.span));
    group.replicas = Some(replicas.value);
}

fn common(object: &Object<'_>, findings: &mut Diagnostics) -> Common {
    let files = files::files(object, findings);
    Common {
        kind: kind(object, findings),
        arch: arch(object, findings),
        instance_type: object.filled("instance_type", findings),
        subnet_pool: object.filled("subnet_pool", findings),
        args: object.object("args", findings),
        vars: object.vars("vars", findings),
        files,
        userdata: userdata::userdata(object, findings),
        lifecycle: lifecycle(object, findings),
        labels: labels(object, "labels", findings),
        protect: object.flag("protect", findings),
        update: update::update(object, findings),
        provides: provides(object, findings),
        consumes: consumes(object, findings),
    }
}

/// What other groups can read of a group.
fn provides(owner: &Object<'_>, findings: &mut Diagnostics) -> Named<Provided> {
    owner.named("provides", findings, |entry, findings| {
        check_link_name(entry, findings);
        let title = format!("link `{}`", entry.key);
        let table = &tables::PROVIDED;
        let object = Object::open(&entry.value, entry.key_span, title, table, findings)?;
        Some(Provided {
            link_type: link_type(&object, &entry.key, findings),
            properties: object.object("properties", findings),
        })
    })
}

/// What a group reads of others.
fn consumes(owner: &Object<'_>, findings: &mut Diagnostics) -> Named<Consumed> {
    owner.named("consumes", findings, |entry, findings| {
        check_link_name(entry, findings);
        let title = format!("link `{}`", entry.key);
        let table = &tables::CONSUMED;
        let object = Object::open(&entry.value, entry.key_span, title, table, findings)?;
        Some(Consumed {
            link_type: link_type(&object, &entry.key, findings),
            from: object.filled("from", findings),
            link: object.filled("link", findings),
            optional: object
                .flag("optional", findings)
                .is_some_and(|set| set.value),
        })
    })
}

fn check_link_name(entry: &Entry, findings: &mut Diagnostics) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if entry.key.is_empty() || !entry.key.bytes().all(is_plain) {
        findings.push(
            Diagnostic::error(format!("`{}` can't be the name of a link", entry.key))
                .at(entry.key_span, "expected letters, digits, `_` and `-`"),
        );
    }
}

fn link_type(object: &Object<'_>, name: &Arc<str>, findings: &mut Diagnostics) -> Arc<str> {
    let written = object.filled("type", findings);
    written.map_or_else(|| Arc::clone(name), |written| written.value)
}

/// The values of `texts`.
const TEXTS: [(&str, Texts); 2] = [
    ("templates", Texts::Templates),
    ("placeholders", Texts::Placeholders),
];

/// The labels at a key.
fn labels(object: &Object<'_>, key: &str, findings: &mut Diagnostics) -> Named<Label> {
    object.named(key, findings, |entry, findings| {
        text(entry, findings).map(|text| Label {
            text: text.value,
            is_sensitive: !entry.value.sensitivity.is_open(),
            span: text.span,
        })
    })
}

/// The zones of a group: names, or objects with tags.
fn zones(object: &Object<'_>, findings: &mut Diagnostics) -> Vec<GroupZone> {
    let Some(entry) = object.get("zones") else {
        return Vec::new();
    };
    let NodeValue::Array(items) = &entry.value.value else {
        wrong_type(&entry.value, "`zones`", "a list of zones", findings);
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| {
            if matches!(item.value, NodeValue::Object(_)) {
                let title = "an item of `zones`";
                let zone = Object::open(item, item.span, title, &tables::ZONE, findings)?;
                return Some(GroupZone {
                    name: zone.required_text("zone", findings)?,
                    tags: zone.texts("tags", findings),
                });
            }
            let name = item_text(item, format_args!("an item of `zones`"), findings)?;
            if name.is_empty() {
                findings.push(
                    Diagnostic::error("an item of `zones` is empty")
                        .at(name.span, "expected the name of a zone"),
                );
                return None;
            }
            Some(GroupZone {
                name,
                tags: Vec::new(),
            })
        })
        .collect()
}

fn arch(object: &Object<'_>, findings: &mut Diagnostics) -> Option<Spanned<Arch>> {
    let choices = [("amd64", Arch::Amd64), ("arm64", Arch::Arm64)];
    let other_name = match object.get("arch").and_then(|entry| entry.value.as_str()) {
        Some("x86_64" | "x86-64" | "x64") => Some("amd64"),
        Some("aarch64") => Some("arm64"),
        _ => None,
    };
    let before = findings.len();
    let arch = object.choice("arch", &choices, findings);
    if let Some(name) = other_name {
        for finding in findings.iter_mut().skip(before) {
            finding.hints = vec![format!("it is called `{name}` here")];
        }
    }
    arch
}

fn kind(object: &Object<'_>, findings: &mut Diagnostics) -> Option<Spanned<Arc<str>>> {
    let kind = object.text("kind", findings)?;
    if kind.len() == 3 && kind.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Some(kind);
    }
    findings.push(
        Diagnostic::error(format!("`{}` can't be a `kind`", kind.value))
            .at(kind.span, "expected three lower-case letters")
            .hint("it starts the ids of the instances, such as `knd` in `knd06bgm77…`"),
    );
    None
}

fn lifecycle(owner: &Object<'_>, findings: &mut Diagnostics) -> Lifecycle {
    let Some(object) = owner
        .get("lifecycle")
        .and_then(|entry| Object::of_entry(entry, &tables::LIFECYCLE, findings))
    else {
        return Lifecycle::default();
    };
    Lifecycle {
        prevent_destroy: object.flag("prevent_destroy", findings),
        ignore_changes: object.texts("ignore_changes", findings),
        replace_on: object.texts("replace_on", findings),
        restart_on: object.texts("restart_on", findings),
    }
}

fn moved_from(object: &Object<'_>, findings: &mut Diagnostics) -> Option<Spanned<GroupName>> {
    let text = object.text("moved_from", findings)?;
    if let Ok(name) = text.value.parse::<GroupName>() {
        return Some(Spanned::new(name, text.span));
    }
    let mut diagnostic =
        Diagnostic::error(format!("`{}` can't be the name of a group", text.value))
            .at(text.span, "expected `tenant/group`");
    if crate::address::is_id(&text) {
        diagnostic = diagnostic.hint(format!("did you mean `default/{}`?", text.value));
    }
    findings.push(diagnostic);
    None
}

fn overrides(
    owner: &Object<'_>,
    findings: &mut Diagnostics,
) -> IndexMap<u32, Spanned<SlotOverride>> {
    let mut overrides = IndexMap::new();
    let Some(section) = owner.get("overrides") else {
        return overrides;
    };
    let NodeValue::Object(entries) = &section.value.value else {
        wrong_type(
            &section.value,
            "`overrides`",
            "an object from slot numbers to what differs there",
            findings,
        );
        return overrides;
    };
    for entry in entries {
        let plain = entry.key.bytes().all(|byte| byte.is_ascii_digit())
            && (&*entry.key == "0" || !entry.key.starts_with('0'));
        let slot = entry
            .key
            .parse::<u32>()
            .ok()
            .filter(|slot| plain && *slot < LARGEST_GROUP);
        let Some(slot) = slot else {
            findings.push(
                Diagnostic::error(format!("`{}` isn't the number of a slot", entry.key))
                    .at(entry.key_span, "expected a slot, such as `\"0\"`")
                    .hint("slots are numbered from 0"),
            );
            continue;
        };
        let title = format!("the override of slot {slot}");
        let table = &tables::OVERRIDE;
        let Some(object) = Object::open(&entry.value, entry.key_span, title, table, findings)
        else {
            continue;
        };
        let differs = SlotOverride {
            instance_type: object.filled("instance_type", findings),
            subnet_pool: object.filled("subnet_pool", findings),
            args: object.object("args", findings),
            vars: object.vars("vars", findings),
        };
        overrides.insert(slot, Spanned::new(differs, entry.key_span));
    }
    overrides
}

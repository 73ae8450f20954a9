//! The document tree to the typed model.
//!
//! In: a [`Node`] in any configuration language. Out: the [`Config`], as far as it can be read, and
//! every value that has the wrong shape. May not: compare one part with another (that is `check`).
//!
//! Reading goes on after a finding: what is broken is left out or empty, and [`Gaps`] says so, so
//! that nothing reports what follows from it.

mod files;
mod form;
mod groups;
mod images;
mod reader;
mod shard;
mod userdata;

use std::collections::HashSet;
use std::sync::Arc;

use super::model::{Config, Defaults, DestroyBudget, Functions, Gaps};
use super::node::{Entry, Node};
use super::schema::tables;
use super::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(super) use form::reads_as_group;
pub use form::{GroupsForm, groups_form};
use reader::Object;

/// Reads a configuration. `None` if the document isn't an object.
pub fn decode(root: &Node, findings: &mut Diagnostics) -> Option<Config> {
    let start = Span {
        end: root.span.start + 1,
        ..root.span
    };
    let top = Object::open(root, start, "the configuration", &tables::TOP, findings)?;
    let cluster = shard::cluster(&top, findings);
    let (shard, provider_known, pools_are_open) = shard::shard(&top, findings);
    let maps = [
        "images",
        "templates",
        "templates_lib",
        "load_balancers",
        "certificates",
    ];
    let mut names: HashSet<_> = maps.into_iter().filter(|key| top.is_open(key)).collect();
    names.extend(pools_are_open.then_some("subnet_pools"));
    let load_balancers = images::load_balancers(&top, findings);
    let images = images::images(&top, findings);
    let certificates = top.named("certificates", findings, |_, _| Some(()));
    let vars = top.object("vars", findings);
    let (defaults, defaults_are_open) = defaults(&top, findings);
    let vars_are_open = defaults_are_open || top.is_open("vars");
    let mut broken_templates = HashSet::new();
    let templates = top.named("templates", findings, |entry, findings| {
        let before = findings.len();
        let template = groups::template(entry, findings);
        if findings.len() > before {
            broken_templates.insert(Arc::clone(&entry.key));
        }
        // A template that can't be read is there all the same: its groups aren't to blame.
        Some(template.unwrap_or_else(groups::unreadable_template))
    });
    let functions = top.choice(
        "functions",
        &[("go", Functions::Go), ("sprig", Functions::Sprig)],
        findings,
    );
    // Where it can't be read, nothing that it may bring is missing.
    let otherwise = if top.lacks("functions") {
        Functions::Go
    } else {
        Functions::Sprig
    };
    let before = findings.len();
    let templates_lib = top.named("templates_lib", findings, userdata::snippet);
    names.extend((findings.len() > before).then_some("templates_lib"));
    let form = top.choice(
        "groups_form",
        &[
            ("nested", groups::Form::Nested),
            ("flat", groups::Form::Flat),
        ],
        findings,
    );
    let groups = groups::groups(&top, form, findings);
    names.extend(groups.are_open.then_some("groups"));
    let destroy_budget = destroy_budget(&top, findings);
    let strict = top.flag("strict", findings);

    let broken = |section: &str, is_known: &dyn Fn(&str) -> bool| {
        let entries = top.get(section).map(|section| section.value.entries());
        let names = entries.unwrap_or_default().iter().map(|entry| &entry.key);
        let broken = names.filter(|name| !is_known(name));
        broken.cloned().collect()
    };
    let is_named = |one: &Entry| images::is_image_name(&one.key);
    let are_named = |entry: &Entry| entry.value.entries().iter().all(is_named);
    if !top.get("images").is_none_or(are_named) {
        // What templates call it by can't be told.
        names.insert("images");
    }
    let gaps = Gaps {
        provider: !provider_known,
        vars: vars_are_open,
        values: false,
        load_balancers: broken("load_balancers", &|name| load_balancers.contains_key(name)),
        images: broken("images", &|name| images.contains_key(name)),
        names,
        templates: broken_templates,
        groups: groups.broken,
    };
    Some(Config {
        cluster,
        shard,
        load_balancers,
        images,
        certificates,
        vars,
        defaults,
        templates,
        functions: functions.map_or(otherwise, |functions| functions.value),
        templates_lib,
        groups: groups.all,
        destroy_budget,
        strict: strict.is_some_and(|strict| strict.value),
        twins: Vec::new(),
        gaps,
    })
}

/// Gives the defaults, and whether they may have more vars than could be read.
fn defaults(top: &Object<'_>, findings: &mut Diagnostics) -> (Defaults, bool) {
    if top.lacks("defaults") {
        return (Defaults::default(), false);
    }
    let Some(object) = top
        .get("defaults")
        .and_then(|entry| Object::of_entry(entry, &tables::DEFAULTS, findings))
    else {
        let defaults = Defaults {
            userdata: Some(userdata::unreadable(top.place)),
            ..Defaults::default()
        };
        return (defaults, true);
    };
    let defaults = Defaults {
        args: object.object("args", findings),
        vars: object.object("vars", findings),
        userdata: userdata::userdata(&object, findings),
    };
    (defaults, object.is_open("vars"))
}

fn destroy_budget(top: &Object<'_>, findings: &mut Diagnostics) -> DestroyBudget {
    let fallback = DestroyBudget::default();
    let Some(object) = top
        .get("destroy_budget")
        .and_then(|entry| Object::of_entry(entry, &tables::DESTROY_BUDGET, findings))
    else {
        return fallback;
    };
    let count = object.whole("count", u32::MAX, findings);
    let percent = object.whole("percent", 100, findings);
    DestroyBudget {
        count: count.map_or(fallback.count, |count| count.value),
        percent: percent.map_or(fallback.percent, |percent| percent.value),
    }
}

/// Reports a name that isn't an id, and says how it could be one.
pub(super) fn check_id(what: &str, text: &str, span: Span, findings: &mut Diagnostics) {
    use crate::address::{LONGEST_ID, is_id};
    if is_id(text) {
        return;
    }
    let reason = if text.is_empty() {
        "it is empty".to_owned()
    } else if text.len() > LONGEST_ID {
        format!("it has {} characters, {LONGEST_ID} are allowed", text.len())
    } else if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        "it has upper-case letters".to_owned()
    } else if let Some(stranger) = text
        .chars()
        .find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-'))
    {
        format!("it has a `{stranger}`")
    } else if text.contains("--") {
        "it has two hyphens in a row".to_owned()
    } else {
        "it starts or ends with a hyphen".to_owned()
    };
    let mut diagnostic = Diagnostic::error(format!("`{text}` can't be the id of a {what}"))
        .at(span, reason)
        .hint(format!(
            "ids are lower-case letters, digits and single hyphens between them, \
             at most {LONGEST_ID} characters"
        ));
    let candidate = text
        .to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-");
    if is_id(&candidate) {
        diagnostic = diagnostic.hint(format!("`{candidate}` would do"));
    }
    findings.push(diagnostic);
}

/// A text that isn't there: empty, at the place where it should be.
fn absent(place: Span) -> Spanned<Arc<str>> {
    Spanned::new("".into(), place)
}

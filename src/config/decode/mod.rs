//! The document tree to the typed model.
//!
//! In: a [`Node`] in any configuration language. Out: the [`Config`], as far as it can be read, and
//! every value that has the wrong shape. May not: compare one part with another (that is `check`).
//!
//! Reading goes on after a finding: what is broken is left out or empty, and [`Decoded`] says so,
//! so that no check reports what follows from it.

mod files;
mod form;
mod groups;
mod images;
mod reader;
mod shard;
mod userdata;

use std::collections::HashSet;
use std::sync::Arc;

use super::model::{Config, Defaults, DestroyBudget, Functions};
use super::node::{Node, NodeValue};
use super::schema::tables;
use super::source::{Span, Spanned};
use crate::address::GroupName;
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(super) use form::reads_as_group;
pub use form::{GroupsForm, groups_form};
use reader::Object;

/// A configuration as far as it could be read.
#[derive(Debug)]
pub struct Decoded {
    /// What was read; broken parts are left out or empty.
    pub config: Config,
    /// Whether `shard.infra.provider` could be read: nothing is judged by a guessed provider.
    pub provider_known: bool,
    /// Every name in `load_balancers`, broken ones too.
    pub declared_load_balancers: HashSet<Arc<str>>,
    /// Maps of names that may have more than could be read: nothing else is missing in them.
    pub open: HashSet<&'static str>,
    /// Whether templates may call or name what couldn't be read: they can't be judged then.
    pub templates_are_open: bool,
    /// Templates and groups with findings: what they lack may only be unreadable.
    pub broken_templates: HashSet<Arc<str>>,
    /// The same for groups.
    pub broken_groups: HashSet<GroupName>,
}

/// Reads a configuration. `None` if the document isn't an object.
pub fn decode(root: &Node, findings: &mut Diagnostics) -> Option<Decoded> {
    let start = Span {
        end: root.span.start + 1,
        ..root.span
    };
    let top = Object::open(root, start, "the configuration", &tables::TOP, findings)?;
    let cluster = shard::cluster(&top, findings);
    let (shard, provider_known, pools_are_open) = shard::shard(&top, findings);
    let of_names = ["templates", "load_balancers", "certificates"].into_iter();
    let mut open: HashSet<_> = of_names.filter(|key| top.is_open(key)).collect();
    open.extend(pools_are_open.then_some("subnet_pools"));
    let load_balancers = images::load_balancers(&top, findings);
    let before = findings.len();
    let images = images::images(&top, findings);
    let mut templates_are_open = findings.len() > before;
    let certificates = top.named("certificates", findings, |_, _| Some(()));
    let vars = top.object("vars", findings);
    let defaults = defaults(&top, findings);
    let mut broken_templates = HashSet::new();
    let templates = top.named("templates", findings, |entry, findings| {
        let before = findings.len();
        let template = groups::template(entry, findings);
        if findings.len() > before {
            broken_templates.insert(Arc::clone(&entry.key));
        }
        // A template that can't be read is there all the same: its groups aren't to blame.
        Some(template.unwrap_or_default())
    });
    let before = findings.len();
    let functions = top.choice(
        "functions",
        &[("go", Functions::Go), ("sprig", Functions::Sprig)],
        findings,
    );
    let templates_lib = top.named("templates_lib", findings, userdata::snippet);
    templates_are_open |= findings.len() > before;
    let shared = ["images", "functions", "templates_lib"];
    templates_are_open |= shared
        .iter()
        .any(|key| top.get(key).is_none() && !top.lacks(key));
    let form = top.choice(
        "groups_form",
        &[
            ("nested", groups::Form::Nested),
            ("flat", groups::Form::Flat),
        ],
        findings,
    );
    let (groups, broken_groups) = groups::groups(&top, form, findings);
    let destroy_budget = destroy_budget(&top, findings);
    let strict = top.flag("strict", findings);

    let declared_load_balancers = match top.get("load_balancers").map(|entry| &entry.value.value) {
        Some(NodeValue::Object(entries)) => {
            entries.iter().map(|entry| Arc::clone(&entry.key)).collect()
        }
        _ => HashSet::new(),
    };
    Some(Decoded {
        config: Config {
            cluster,
            shard,
            load_balancers,
            images,
            certificates,
            vars,
            defaults,
            templates,
            functions: functions.map_or_else(Functions::default, |functions| functions.value),
            templates_lib,
            groups,
            destroy_budget,
            strict: strict.is_some_and(|strict| strict.value),
            twins: Vec::new(),
        },
        provider_known,
        declared_load_balancers,
        open,
        templates_are_open,
        broken_templates,
        broken_groups,
    })
}

fn defaults(top: &Object<'_>, findings: &mut Diagnostics) -> Defaults {
    let Some(object) = top
        .get("defaults")
        .and_then(|entry| Object::of_entry(entry, &tables::DEFAULTS, findings))
    else {
        return Defaults::default();
    };
    Defaults {
        args: object.object("args", findings),
        vars: object.object("vars", findings),
        userdata: userdata::userdata(&object, findings),
    }
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

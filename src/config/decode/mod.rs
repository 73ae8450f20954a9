//! Decodes the document tree into the typed model.
//!
//! In: a [`Node`] from any configuration language. Out: the [`Config`], as far as it is valid, and
//! a finding for each value of the wrong shape. Must not: compare one part with another (`check`
//! does).
//!
//! Decoding continues after an error: the invalid part stays empty, and [`Broken`] names it, so
//! that checks don't report consequences of it.

mod accept;
mod files;
pub(super) mod form;
mod groups;
mod images;
mod reader;
mod server;
mod shard;
mod source;
mod update;
mod userdata;

use std::collections::HashSet;
use std::sync::Arc;

use super::model::{Config, Defaults, DestroyBudget, Dns, Functions};
use super::node::Node;
use super::schema::tables;
use super::source::{Span, Spanned};
use crate::address::GroupName;
use crate::diagnostic::{Diagnostic, Diagnostics, Reported};

pub(super) use form::reads_as_group;
pub use form::{GroupsForm, groups_form};
use reader::Object;
pub use source::{BoshMap, BoshSource, Source, YandexMap, YandexSource, source};

/// A decoded configuration before its checks; invalid parts are missing or empty.
#[derive(Debug)]
pub struct Draft {
    /// The valid parts.
    pub(crate) config: Config,
    /// The invalid parts; checks suppress consequences of them.
    pub(crate) broken: Broken,
}

impl Draft {
    /// Returns the configuration.
    ///
    /// Fails if decoding or the checks found errors.
    pub(crate) fn finish(self, findings: &Diagnostics) -> Result<Config, Reported> {
        if findings.has_errors() {
            return Err(Reported);
        }
        let mut config = self.config;
        let servers = &config.server_groups;
        config.groups.retain(|group| !servers.contains(&group.name));
        Ok(config)
    }
}

/// Parts that failed to decode, whose errors were reported.
#[derive(Debug, Default)]
pub(crate) struct Broken {
    /// Whether `shard.infra.provider` is invalid.
    pub(crate) provider: bool,
    /// Maps in which some names are invalid.
    pub(crate) maps: HashSet<&'static str>,
    /// Invalid load balancers.
    pub(crate) load_balancers: HashSet<Arc<str>>,
    /// Whether `defaults` has an error.
    pub(crate) defaults: bool,
    /// Templates with an error.
    pub(crate) templates: HashSet<Arc<str>>,
    /// Groups with an error.
    pub(crate) groups: HashSet<GroupName>,
}

/// Decodes a configuration.
///
/// Fails if the document isn't an object.
pub(super) fn decode(root: &Node, findings: &mut Diagnostics) -> Result<Draft, Reported> {
    let start = Span {
        end: root.span.start + 1,
        ..root.span
    };
    let top =
        Object::open(root, start, "the configuration", &tables::TOP, findings).ok_or(Reported)?;
    let cluster = shard::cluster(&top, findings);
    let (shard, provider_known, pools_are_open) = shard::shard(&top, findings);
    let maps = ["templates", "load_balancers", "certificates"];
    let mut maps: HashSet<_> = maps.into_iter().filter(|key| top.is_open(key)).collect();
    maps.extend(pools_are_open.then_some("subnet_pools"));
    let state = top.get("state");
    let state = state.and_then(|entry| reader::filled_text(entry, findings));
    let load_balancers = images::load_balancers(&top, findings);
    let images = images::images(&top, findings);
    let certificates = top.named("certificates", findings, server::certificate);
    let server_files = server::files(&top, findings);
    let nat = top.named("nat", findings, server::nat);
    let server_groups = nat
        .iter()
        .map(|(tenant, nat)| GroupName::new(tenant, &nat.value.group.value))
        .collect();
    let nonce_command = top.texts("nonce_command", findings);
    let dns = dns(&top, findings);
    let vars = top.vars("vars", findings);
    let before = findings.errors();
    let defaults = defaults(&top, findings);
    let defaults_broken = findings.errors() > before;
    let mut broken_templates = HashSet::new();
    let templates = top.named("templates", findings, |entry, findings| {
        let before = findings.errors();
        let template = groups::template(entry, findings);
        if findings.errors() > before {
            broken_templates.insert(Arc::clone(&entry.key));
        }
        // An invalid template still counts as defined, since its groups are correct.
        Some(template.unwrap_or_default())
    });
    let functions = top.choice(
        "functions",
        &[("go", Functions::Go), ("sprig", Functions::Sprig)],
        findings,
    );
    let templates_lib = top.named("templates_lib", findings, userdata::snippet);
    let form = top.choice(
        "groups_form",
        &[
            ("nested", groups::Form::Nested),
            ("flat", groups::Form::Flat),
        ],
        findings,
    );
    let groups = groups::groups(&top, form, findings);
    let destroy_budget = destroy_budget(&top, findings);
    let accept = accept::accept(&top, findings);
    let strict = top.flag("strict", findings);

    let written = top
        .get("load_balancers")
        .map(|section| section.value.entries());
    let written = written.unwrap_or_default().iter().map(|entry| &entry.key);
    let broken = Broken {
        provider: !provider_known,
        maps,
        load_balancers: written
            .filter(|name| !load_balancers.contains_key(*name))
            .cloned()
            .collect(),
        defaults: defaults_broken,
        templates: broken_templates,
        groups: groups.broken,
    };
    let config = Config {
        cluster,
        shard,
        state,
        load_balancers,
        images,
        certificates,
        server_files,
        nat,
        server_groups,
        nonce_command: nonce_command.into_iter().map(|word| word.value).collect(),
        dns,
        vars,
        defaults,
        templates,
        functions: functions.map_or(Functions::Go, |functions| functions.value),
        templates_lib,
        groups: groups.all,
        destroy_budget,
        accept,
        strict: strict.is_some_and(|strict| strict.value),
    };
    Ok(Draft { config, broken })
}

fn defaults(top: &Object<'_>, findings: &mut Diagnostics) -> Defaults {
    let object = top
        .get("defaults")
        .and_then(|entry| Object::of_entry(entry, &tables::DEFAULTS, findings));
    object.map_or_else(Defaults::default, |object| Defaults {
        args: object.object("args", findings),
        vars: object.vars("vars", findings),
        userdata: userdata::userdata(&object, findings),
        update: update::update(&object, findings),
    })
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

/// Reports a name that isn't a valid id, and suggests one.
/// What DNS names end in.
fn dns(top: &Object<'_>, findings: &mut Diagnostics) -> Dns {
    let object = top
        .get("dns")
        .and_then(|entry| Object::of_entry(entry, &tables::DNS, findings));
    object.map_or_else(Dns::default, |object| {
        let text = |key, findings: &mut Diagnostics| Some(object.filled(key, findings)?.value);
        Dns {
            namespace: text("namespace", findings),
            domain: text("domain", findings),
        }
    })
}

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

/// An empty text at the place where one is missing.
fn absent(place: Span) -> Spanned<Arc<str>> {
    Spanned::new("".into(), place)
}

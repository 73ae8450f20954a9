//! Finds what today's Nstance server would drop, refuse or render differently, for
//! `validate --server-compatible`.
//!
//! In: a configuration and its compiled groups. Out: warnings. Must not: look at keys; loading does.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::model::{Config, Deliver, FileContent, ProviderKind};
use crate::config::node::Node;
use crate::config::source::{SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::render::cache::Compiled;
use crate::render::group::CompiledGroup;

/// The args that the server passes on to AWS.
const AWS_ARGS: &[&str] = &[
    "ImageId",
    "SecurityGroupIds",
    "IamInstanceProfile",
    "BlockDeviceMappings",
    "MetadataOptions",
    "Ipv6AddressCount",
    "PrivateDnsNameOptions",
    "TagSpecifications",
];

/// The functions of Go's templates.
const FUNCTIONS: &[&str] = &[
    "and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or",
    "print", "printf", "println", "slice", "urlquery",
];

/// The endings of files that the server's agents take.
const ENDINGS: &[&str] = &[".crt", ".key", ".pub", ".json", ".env"];

/// The warnings of a configuration.
pub fn warnings(config: &Config, groups: &[CompiledGroup<'_>], sources: &SourceMap) -> Diagnostics {
    let mut findings = Diagnostics::default();
    load_balancers(config, &mut findings);
    args(config, &mut findings);
    for group in groups {
        let merged = &group.merged;
        if merged.userdata.top().is_none() {
            findings.push(warning(
                format!("group `{}` has no userdata", merged.name),
                merged.span,
                "the Nstance server creates no instances of it",
            ));
        }
        group.visit(&mut |is_file, compiled| {
            reads(config, is_file, compiled, sources, &mut findings);
        });
        for (name, (_, file)) in &merged.files {
            let is_exported = file.value.deliver == Deliver::Export;
            if is_exported && !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                findings.push(warning(
                    format!("file `{name}` doesn't reach an agent"),
                    file.span,
                    format!("agents take {}", ENDINGS.join(", ")),
                ));
            }
            if let FileContent::Erb(_) = &file.value.content {
                findings.push(warning(
                    format!("file `{name}` is of kind `erb`"),
                    file.span,
                    "the Nstance server doesn't know this kind",
                ));
            }
            if let FileContent::Env(variables) = &file.value.content {
                let is_taken = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
                for variable in variables.entries() {
                    if !variable.key.bytes().all(is_taken) {
                        findings.push(warning(
                            format!("agents refuse the variable `{}`", variable.key),
                            variable.key_span,
                            "names are capital letters, digits and `_`",
                        ));
                    }
                }
            }
        }
    }
    findings
}

fn warning(summary: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(summary).at(span, label)
}

/// Load balancers that no group names, or groups of two tenants.
fn load_balancers(config: &Config, findings: &mut Diagnostics) {
    let mut tenants: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for group in &config.groups {
        for name in &group.load_balancers {
            let named = tenants.entry(&name.value).or_default();
            named.insert(group.name.tenant());
        }
    }
    for (name, balancer) in &config.load_balancers {
        let of = tenants.get(&**name).map_or(0, BTreeSet::len);
        let what = match of {
            0 => "is named by no group",
            1 => continue,
            _ => "is named by groups of several tenants",
        };
        findings.push(warning(
            format!("load balancer `{name}` {what}"),
            balancer.span,
            "the Nstance server refuses it",
        ));
    }
}

/// Args that the server drops.
fn args(config: &Config, findings: &mut Diagnostics) {
    let provider = config.shard.infra.provider.value;
    let is_passed_on = |name: &str| match provider {
        ProviderKind::Aws => AWS_ARGS.contains(&name),
        // Its short names begin with a capital letter.
        ProviderKind::Gcp => name.starts_with(|first: char| first.is_ascii_uppercase()),
        _ => true,
    };
    let of_templates = config.templates.values();
    let of_templates = of_templates.filter_map(|template| template.value.common.args.as_ref());
    let of_groups = config.groups.iter();
    let of_groups = of_groups.filter_map(|group| group.common.args.as_ref());
    let all = config.defaults.args.iter().chain(of_templates);
    for entry in all.chain(of_groups).flat_map(Node::entries) {
        if !is_passed_on(&entry.key) {
            findings.push(warning(
                format!("the Nstance server drops `{}` of args", entry.key),
                entry.key_span,
                "only nstance passes it on",
            ));
        }
    }
}

/// Data and functions that the server's templates don't have.
fn reads(
    config: &Config,
    is_file: bool,
    compiled: &Compiled,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) {
    // The key `texts` is reported.
    if compiled.is_placeholder_text() {
        return;
    }
    let reads = compiled.template.reads();
    for access in &reads.paths {
        let path = access.path.as_str();
        if is_known(config, is_file, path) {
            continue;
        }
        let place = compiled.place_of(&access.template);
        findings.push(warning(
            format!("templates of the Nstance server don't have `{path}` here"),
            place.at(sources, access.offset),
            "only nstance has it",
        ));
    }
    for function in &reads.functions {
        if !FUNCTIONS.contains(&function.as_str()) {
            findings.push(warning(
                format!("templates of the Nstance server have no function `{function}`"),
                compiled.place.span(),
                "a template here calls it",
            ));
        }
    }
}

fn is_known(config: &Config, is_file: bool, path: &str) -> bool {
    let mut names = path.split('.').skip(1);
    let (root, field) = (names.next(), names.next());
    match (root, field) {
        (Some("Var" | "Group" | "Template"), _) => false,
        (Some("Cluster"), Some(field)) => matches!(field, "ID" | "CACert"),
        (Some("Instance"), Some(field)) => match field {
            "ID" | "Kind" | "Arch" | "Type" => true,
            "IP4" | "IP6" => is_file,
            // The cloud's own name on AWS, and on the others the id.
            "Hostname" => is_file && config.shard.infra.provider.value != ProviderKind::Aws,
            _ => false,
        },
        _ => true,
    }
}

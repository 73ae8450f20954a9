//! Every rule that compares one part of a configuration with another.
//!
//! In: a decoded configuration. Out: findings, each with its place and what would be right. May
//! not: change the configuration, or report what follows from a finding that `decode` made.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::decode::Decoded;
use super::jsonc::template_span;
use super::model::{
    Common, Config, Encoding, FileContent, Group, LoadBalancer, Named, ProviderKind, Template,
    Userdata, UserdataSource,
};
use super::node::{Node, NodeValue};
use super::source::{SourceMap, Span, Spanned};
use crate::address::GroupName;
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::provider::rules::Rules;

/// What a configuration is loaded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be planned: every group must say what its instances are.
    Plan,
    /// To be rendered only: a group may lack `kind`, `arch` and `instance_type`.
    Render,
}

/// Finds everything that doesn't fit together.
pub fn check(decoded: &Decoded, purpose: Purpose, sources: &SourceMap, findings: &mut Diagnostics) {
    let checker = Checker {
        decoded,
        config: &decoded.config,
        sources,
    };
    checker.pools(findings);
    checker.images(findings);
    checker.options(findings);
    checker.overridden_vars(findings);
    checker.args(findings);
    if let Some(userdata) = &checker.config.defaults.userdata {
        checker.userdata(userdata, findings);
    }
    for (_, template) in &checker.config.templates {
        checker.common(&template.value.common, findings);
    }
    for group in &checker.config.groups {
        let before = findings.len();
        checker.common(&group.common, findings);
        checker.group(group, purpose, findings);
        for finding in findings.iter_mut().skip(before) {
            finding.address = Some(group.name.to_string());
        }
    }
    checker.moves(findings);
}

struct Checker<'a> {
    decoded: &'a Decoded,
    config: &'a Config,
    sources: &'a SourceMap,
}

impl Checker<'_> {
    /// The provider, unless it couldn't be read.
    fn provider(&self) -> Option<Spanned<ProviderKind>> {
        self.decoded
            .provider_known
            .then_some(self.config.shard.infra.provider)
    }

    fn pools(&self, findings: &mut Diagnostics) {
        let shard = &self.config.shard;
        let mut owners: HashMap<&str, (&str, Span)> = HashMap::new();
        for (pool, subnets) in &shard.subnet_pools {
            for subnet in &subnets.value {
                let Some((first, place)) = owners.insert(subnet, (pool, subnet.span)) else {
                    continue;
                };
                let summary = if first == &**pool {
                    format!("Subnet `{}` stands twice in pool `{pool}`", subnet.value)
                } else {
                    format!(
                        "Subnet `{}` is in two pools, `{first}` and `{pool}`",
                        subnet.value
                    )
                };
                findings.push(
                    Diagnostic::error(summary)
                        .at(subnet.span, "here again")
                        .related(place, "it stands here first"),
                );
            }
        }
        for pool in &shard.dynamic_subnet_pools {
            self.pool_exists(pool, findings);
        }
    }

    fn pool_exists(&self, pool: &Spanned<Arc<str>>, findings: &mut Diagnostics) {
        let pools = &self.config.shard.subnet_pools;
        if !pools.contains_key(&pool.value) {
            findings.push(unknown_reference(
                "Subnet pool",
                pool,
                "`shard.subnet_pools`",
                names(pools),
            ));
        }
    }

    fn images(&self, findings: &mut Diagnostics) {
        let Some(shard) = self.provider() else {
            return;
        };
        for (name, image) in &self.config.images {
            let provider = image.value.provider;
            if provider.value != shard.value {
                findings.push(
                    Diagnostic::error(format!(
                        "Image `{name}` is of provider `{}`, the shard is of `{}`",
                        provider.as_str(),
                        shard.as_str()
                    ))
                    .at(provider.span, format!("expected `{}`", shard.as_str()))
                    .related(shard.span, "the shard's provider"),
                );
            }
        }
    }

    /// Options are each provider's own, so a stranger is no error; it is no use either.
    fn options(&self, findings: &mut Diagnostics) {
        let known: &[&str] = match self.provider().map(|provider| provider.value) {
            Some(ProviderKind::Aws) => &["profile", "endpoint_url"],
            Some(ProviderKind::Gcp) => &["project_id", "endpoint", "userdata_key"],
            _ => return,
        };
        let Some(Node {
            value: NodeValue::Object(entries),
            ..
        }) = &self.config.shard.infra.options
        else {
            return;
        };
        for entry in entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
            let diagnostic = Diagnostic::warning(format!(
                "Nothing reads the option `{}` of this provider",
                entry.key
            ))
            .at(entry.key_span, "has no effect");
            findings.push(match nearest(&entry.key, known.iter().copied()) {
                Some(name) => diagnostic.hint(format!("did you mean `{name}`?")),
                None => diagnostic,
            });
        }
    }

    /// `--var` sets top-level vars, which `defaults.vars` hides key by key.
    fn overridden_vars(&self, findings: &mut Diagnostics) {
        let (Some(vars), Some(defaults)) = (&self.config.vars, &self.config.defaults.vars) else {
            return;
        };
        let NodeValue::Object(entries) = &vars.value else {
            return;
        };
        let overridden = entries.iter().filter(|entry| {
            let source = self.sources.get(entry.value.span.source);
            source.name.strip_prefix("--var ") == Some(&*entry.key)
        });
        for entry in overridden {
            if let Some(hiding) = defaults.get(&entry.key) {
                findings.push(
                    Diagnostic::warning(format!(
                        "`--var {}` has no effect: `defaults.vars` sets it too, and wins",
                        entry.key
                    ))
                    .at(hiding.span, "this value is used")
                    .hint("move it to the top-level `vars`"),
                );
            }
        }
    }

    /// Each layer's args by themselves, then what only shows once they are merged.
    fn args(&self, findings: &mut Diagnostics) {
        let Some(provider) = self.provider() else {
            return;
        };
        let rules = Rules::of(provider.value);
        let config = self.config;
        let mut layer = |args: &Option<Node>, address: Option<&GroupName>| {
            if let Some(args) = args {
                let before = findings.len();
                rules.check_args(args, findings);
                if let Some(address) = address {
                    for finding in findings.iter_mut().skip(before) {
                        finding.address = Some(address.to_string());
                    }
                }
            }
        };
        layer(&config.defaults.args, None);
        for (_, template) in &config.templates {
            layer(&template.value.common.args, None);
        }
        for group in &config.groups {
            layer(&group.common.args, Some(&group.name));
            for (_, differs) in &group.overrides {
                layer(&differs.value.args, Some(&group.name));
            }
        }
        for group in &config.groups {
            let template = self.template_of(group);
            let mut layers: Vec<&Node> = config.defaults.args.iter().collect();
            layers.extend(template.and_then(|template| template.common.args.as_ref()));
            layers.extend(&group.common.args);
            if layers.len() > 1 {
                rules.check_merged_args(&layers, findings);
            }
            for (_, differs) in &group.overrides {
                if let Some(args) = &differs.value.args {
                    layers.push(args);
                    rules.check_merged_args(&layers, findings);
                    layers.pop();
                }
            }
        }
    }

    fn template_of(&self, group: &Group) -> Option<&Template> {
        let name = group.template.as_ref()?;
        self.config
            .templates
            .get(&name.value)
            .map(|template| &template.value)
    }

    fn common(&self, common: &Common, findings: &mut Diagnostics) {
        if let Some(userdata) = &common.userdata {
            self.userdata(userdata, findings);
        }
        if let Some(pool) = &common.subnet_pool {
            self.pool_exists(pool, findings);
        }
        for (_, file) in &common.files {
            if let FileContent::Certificate { template, .. } = &file.value.content
                && !template.contains("{{")
                && !self.config.certificates.contains_key(&template.value)
            {
                findings.push(unknown_reference(
                    "Certificate",
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
    }

    fn group(&self, group: &Group, purpose: Purpose, findings: &mut Diagnostics) {
        let config = self.config;
        if let Some(name) = &group.template
            && !config.templates.contains_key(&name.value)
        {
            findings.push(unknown_reference(
                "Template",
                name,
                "`templates`",
                names(&config.templates),
            ));
        }
        self.group_load_balancers(group, findings);
        let mut zones: HashMap<&str, Span> = HashMap::new();
        for zone in &group.zones {
            if let Some(first) = zones.insert(zone, zone.span) {
                findings.push(
                    Diagnostic::error(format!("Zone `{}` stands twice in `zones`", zone.value))
                        .at(zone.span, "here again")
                        .related(first, "it stands here first"),
                );
            }
        }
        for (_, differs) in &group.overrides {
            if let Some(pool) = &differs.value.subnet_pool {
                self.pool_exists(pool, findings);
            }
        }
        let template = self.template_of(group);
        let size = group
            .common
            .size
            .or(template.and_then(|template| template.common.size))
            .map_or(1, |size| size.value);
        for (slot, differs) in &group.overrides {
            if *slot >= size {
                findings.push(
                    Diagnostic::warning(format!(
                        "The override of slot {slot} has no effect: the group has {size} {}",
                        if size == 1 { "slot" } else { "slots" }
                    ))
                    .at(differs.span, "no such slot")
                    .hint("slots are numbered from 0"),
                );
            }
        }
        if purpose == Purpose::Plan {
            self.complete(group, template, findings);
        }
    }

    fn group_load_balancers(&self, group: &Group, findings: &mut Diagnostics) {
        let known = &self.config.load_balancers;
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for name in &group.load_balancers {
            if let Some(first) = seen.insert(name, name.span) {
                findings.push(
                    Diagnostic::error(format!(
                        "Load balancer `{}` stands twice in `load_balancers`",
                        name.value
                    ))
                    .at(name.span, "here again")
                    .related(first, "it stands here first"),
                );
                continue;
            }
            let Some(balancer) = known.get(&name.value) else {
                let broken = self.decoded.declared_load_balancers.contains(&name.value);
                if !broken {
                    findings.push(unknown_reference(
                        "Load balancer",
                        name,
                        "`load_balancers`",
                        names(known),
                    ));
                }
                continue;
            };
            let provider = match balancer.value {
                LoadBalancer::Aws { .. } => ProviderKind::Aws,
                LoadBalancer::Gcp { .. } => ProviderKind::Gcp,
                LoadBalancer::Sim => ProviderKind::Sim,
            };
            if let Some(shard) = self.provider()
                && shard.value != provider
            {
                findings.push(
                    Diagnostic::error(format!(
                        "Load balancer `{}` is of provider `{}`, the shard is of `{}`",
                        name.value,
                        provider.as_str(),
                        shard.as_str()
                    ))
                    .at(name.span, "can't be used here")
                    .related(balancer.span, "it is defined here")
                    .related(shard.span, "the shard's provider"),
                );
            }
        }
    }

    /// What a group's instances are must be known before one can be created.
    fn complete(&self, group: &Group, template: Option<&Template>, findings: &mut Diagnostics) {
        let unreadable = self.decoded.broken_groups.contains(&group.name)
            || group.template.as_ref().is_some_and(|name| {
                template.is_none() || self.decoded.broken_templates.contains(&name.value)
            });
        let Some(provider) = self.provider().filter(|_| !unreadable) else {
            return;
        };
        let has = |given: fn(&Common) -> bool| {
            given(&group.common) || template.is_some_and(|template| given(&template.common))
        };
        let mut lacking = Vec::new();
        if !has(|common| common.instance_type.is_some()) {
            lacking.push("`instance_type`");
        }
        // The embedded cloud makes do with what `render` assumes.
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
        let diagnostic = Diagnostic::error(format!("Group `{}` lacks {list}", group.name));
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

    fn userdata(&self, userdata: &Userdata, findings: &mut Diagnostics) {
        let content = &userdata.content;
        let url = userdata.source == Some(UserdataSource::Url);
        if url {
            let good = ["https://", "http://", "file:"]
                .iter()
                .any(|scheme| content.len() > scheme.len() && content.starts_with(scheme));
            if !good {
                findings.push(
                    Diagnostic::error("The `content` of this userdata isn't a URL")
                        .at(content.span, "expected `https://…`, `http://…` or `file:…`")
                        .hint(
                            "with `\"source\": \"url\"` the content is an address; \
                             a file beside the configuration is `file:NAME`",
                        ),
                );
            }
            return;
        }
        match userdata.encoding {
            None | Some(Encoding::Plain) => {}
            Some(Encoding::Gzip) => findings.push(
                Diagnostic::error("`\"encoding\": \"gzip\"` needs `\"source\": \"url\"`")
                    .at(userdata.span, "JSON can't hold gzipped bytes")
                    .hint("use `base64+gzip` for content that stands here"),
            ),
            Some(encoding @ (Encoding::Base64 | Encoding::Base64Gzip)) => {
                self.base64(content, encoding == Encoding::Base64Gzip, findings);
            }
        }
    }

    /// Checks base64 as Go reads it: line breaks count for nothing, padding is a must.
    fn base64(&self, content: &Spanned<Arc<str>>, gzipped: bool, findings: &mut Diagnostics) {
        let mut offsets = Vec::with_capacity(content.len());
        let mut plain = Vec::with_capacity(content.len());
        for (offset, byte) in content.bytes().enumerate() {
            if !matches!(byte, b'\n' | b'\r') {
                offsets.push(offset);
                plain.push(byte);
            }
        }
        match BASE64.decode(&plain) {
            Ok(bytes) => {
                if gzipped {
                    let mut sink = Vec::new();
                    let whole = flate2::read::MultiGzDecoder::new(&*bytes)
                        .take(LARGEST_USERDATA)
                        .read_to_end(&mut sink);
                    if let Err(error) = whole {
                        findings.push(
                            Diagnostic::error("The `content` isn't gzipped")
                                .at(content.span, format!("can't be unpacked: {error}"))
                                .hint("`\"encoding\": \"base64\"` is for content that isn't"),
                        );
                    }
                }
            }
            Err(error) => {
                let (offset, label) = match error {
                    base64::DecodeError::InvalidByte(offset, byte) => {
                        let byte = char::from(byte);
                        (
                            offset,
                            if byte.is_ascii() && !byte.is_ascii_control() {
                                format!("`{byte}` isn't a base64 character here")
                            } else {
                                "not a base64 character".to_owned()
                            },
                        )
                    }
                    base64::DecodeError::InvalidLastSymbol { offset, .. } => (
                        offset,
                        "the last character has bits that nothing uses".to_owned(),
                    ),
                    base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                        (
                            plain.len(),
                            "it ends too early: its length with `=` must be a multiple of 4"
                                .to_owned(),
                        )
                    }
                };
                let offset = offsets.get(offset).copied().unwrap_or(content.len());
                let place = template_span(self.sources, content.span, offset);
                findings.push(
                    Diagnostic::error("The `content` isn't base64")
                        .at(place, label)
                        .hint("`\"encoding\": \"plain\"` is for text as it is"),
                );
            }
        }
    }

    fn moves(&self, findings: &mut Diagnostics) {
        let mut claimed: HashMap<&GroupName, (&GroupName, Span)> = HashMap::new();
        let existing: HashMap<&GroupName, Span> = self
            .config
            .groups
            .iter()
            .map(|group| (&group.name, group.span))
            .collect();
        for group in &self.config.groups {
            let inherited = self
                .template_of(group)
                .and_then(|template| template.moved_from.as_ref());
            let Some(from) = group.moved_from.as_ref().or(inherited) else {
                continue;
            };
            if let Some(place) = existing.get(&from.value) {
                findings.push(
                    Diagnostic::error(format!("Group `{}` still exists", from.value))
                        .at(from.span, "can't have moved from a group that is there")
                        .related(*place, "it is defined here")
                        .about(&group.name),
                );
            } else if let Some((first, place)) =
                claimed.insert(&from.value, (&group.name, from.span))
            {
                findings.push(
                    Diagnostic::error(format!(
                        "Two groups say that they were `{}`: `{first}` and `{}`",
                        from.value, group.name
                    ))
                    .at(from.span, "here again")
                    .related(place, "claimed here first")
                    .about(&group.name),
                );
            }
        }
    }
}

/// Base64 as Go's standard encoding reads it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// No cloud takes userdata that unpacks to more than this.
const LARGEST_USERDATA: u64 = 64 << 20;

/// The parts of an instance that `lifecycle` can name.
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
        findings.push(match nearest(root, known.iter().copied()) {
            Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
            None => diagnostic.hint(format!(
                "paths start with {}",
                known
                    .iter()
                    .map(|root| format!("`{root}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            )),
        });
        return;
    }
    let nested = matches!(root, "args" | "vars" | "files" | "tags" | "labels");
    match rest {
        Some(rest) if !nested => findings.push(
            Diagnostic::error(format!("`{}` can't stand in `{key}`", path.value))
                .at(path.span, format!("`{root}` has no parts"))
                .hint(format!("write `{root}` instead of `{root}.{rest}`")),
        ),
        Some(rest) if rest.split('.').any(str::is_empty) => findings.push(
            Diagnostic::error(format!("`{}` can't stand in `{key}`", path.value))
                .at(path.span, "a name is missing beside a dot"),
        ),
        _ => {}
    }
}

fn names<T>(map: &Named<T>) -> impl Iterator<Item = &str> + Clone {
    map.keys().map(|name| &**name)
}

/// The finding that nothing has this name.
fn unknown_reference<'n>(
    what: &str,
    name: &Spanned<Arc<str>>,
    section: &str,
    known: impl Iterator<Item = &'n str> + Clone,
) -> Diagnostic {
    let word = what.to_lowercase();
    let diagnostic = Diagnostic::error(format!("{what} `{}` isn't defined", name.value))
        .at(name.span, format!("no {word} has this name"));
    if let Some(near) = nearest(name, known.clone()) {
        return diagnostic.hint(format!("did you mean `{near}`?"));
    }
    let listed = known
        .clone()
        .take(8)
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>();
    match (listed.is_empty(), known.count() > listed.len()) {
        (true, _) => diagnostic.hint(format!("define it in {section}, which is empty")),
        (false, false) => diagnostic.hint(format!("{section} has {}", listed.join(", "))),
        (false, true) => diagnostic.hint(format!("{section} has {}, …", listed.join(", "))),
    }
}

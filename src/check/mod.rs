//! Checks references within a configuration, and its provider's rules.
//!
//! In: a decoded configuration. Out: findings, each with a place and a correction. Must not: change
//! the configuration, or report consequences of a decoding error.

mod groups;
pub mod server;
mod update;
mod userdata;

use std::collections::HashMap;
use std::sync::Arc;

use crate::address::GroupName;
use crate::config::decode::{Broken, Draft};
use crate::config::model::{Config, FileContent, Group, Named, ProviderKind, Template};
use crate::config::node::{Node, NodeValue};
use crate::config::source::{Language, SourceMap, Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::provider::aws::AwsOptions;
use crate::provider::gcp::GcpOptions;
use crate::provider::rules::Rules;
use crate::provider::sim::SimOptions;
use crate::threads::{self, GROUPS_A_THREAD};

/// What a configuration is loaded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Planning: every group must be complete.
    Plan,
    /// The same, with warnings of what today's Nstance server doesn't know.
    Server,
    /// Commands that render nothing: only the cluster, the shard and the load balancers are needed.
    Identity,
    /// Rendering only: `kind`, `arch` and `instance_type` are optional.
    Render,
}

impl Purpose {
    /// Whether every group must be complete.
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Plan | Self::Server)
    }
}

/// Adds a finding for each unknown reference and each violated rule.
pub(crate) fn check(
    draft: &Draft,
    purpose: Purpose,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) {
    let checker = Checker {
        config: &draft.config,
        broken: &draft.broken,
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
    for (_, snippet) in &checker.config.templates_lib {
        checker.snippet(&snippet.value, findings);
    }
    for (_, template) in &checker.config.templates {
        checker.common(&template.value.common, findings);
    }
    let found = threads::map(&checker.config.groups, GROUPS_A_THREAD, |group| {
        let mut found = Diagnostics::default();
        checker.group_args(group, &mut found);
        checker.common(&group.common, &mut found);
        checker.group(group, purpose, &mut found);
        for finding in &mut found {
            finding.address = Some(group.name.to_string());
        }
        checker.merged_args(group, &mut found);
        checker.update(group, &mut found);
        found
    });
    findings.extend(found.into_iter().flatten());
    checker.moves(findings);
    checker.nat(findings);
    checker.server_files(findings);
}

/// The args of a group's overrides.
fn overriding_args(group: &Group) -> impl Iterator<Item = &Node> {
    let overrides = group.overrides.values();
    overrides.filter_map(|differs| differs.value.args.as_ref())
}

struct Checker<'a> {
    config: &'a Config,
    broken: &'a Broken,
    sources: &'a SourceMap,
}

impl Checker<'_> {
    /// Whether a part that seems to be missing may have failed to decode.
    fn is_broken(&self, group: &Group) -> bool {
        self.broken.groups.contains(&group.name)
            || group.template.as_ref().is_some_and(|name| {
                !self.config.templates.contains_key(&name.value)
                    || self.broken.templates.contains(&name.value)
            })
    }

    /// The provider; `None` if it failed to decode.
    fn provider(&self) -> Option<Spanned<ProviderKind>> {
        let provider = self.config.shard.infra.provider;
        (!self.broken.provider).then_some(provider)
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
                    format!("duplicate subnet `{}` in pool `{pool}`", subnet.value)
                } else {
                    format!(
                        "subnet `{}` is in two pools, `{first}` and `{pool}`",
                        subnet.value
                    )
                };
                findings.push(
                    Diagnostic::error(summary)
                        .at(subnet.span, "here again")
                        .related(place, "first listed here"),
                );
            }
        }
        for pool in &shard.dynamic_subnet_pools {
            self.pool_exists(pool, findings);
        }
    }

    fn pool_exists(&self, pool: &Spanned<Arc<str>>, findings: &mut Diagnostics) {
        let pools = &self.config.shard.subnet_pools;
        if !pools.contains_key(&pool.value) && !self.broken.maps.contains("subnet_pools") {
            findings.push(unknown_reference(
                "subnet pool",
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
                        "image `{name}` is of provider `{}`, the shard is of `{}`",
                        provider.as_str(),
                        shard.as_str()
                    ))
                    .at(provider.span, format!("expected `{}`", shard.as_str()))
                    .related(shard.span, "the shard's provider"),
                );
            }
        }
    }

    /// Checks the provider's options. An unknown option is a warning, since it has no effect.
    fn options(&self, findings: &mut Diagnostics) {
        let options = self.config.shard.infra.options.as_ref();
        match self.provider().map(|provider| provider.value) {
            Some(ProviderKind::Aws) => {
                AwsOptions::from_node(options, findings);
            }
            Some(ProviderKind::Gcp) => {
                GcpOptions::from_node(options, findings);
            }
            Some(ProviderKind::Sim) => {
                SimOptions::from_node(options, findings);
            }
            _ => {}
        }
    }

    /// Warns if `--var` sets a var that `defaults.vars` overrides.
    fn overridden_vars(&self, findings: &mut Diagnostics) {
        let (Some(vars), Some(defaults)) = (&self.config.vars, &self.config.defaults.vars) else {
            return;
        };
        let NodeValue::Object(entries) = &vars.value else {
            return;
        };
        for entry in entries {
            let source = self.sources.get(entry.value.span.source);
            if source.language == Language::Plain
                && let Some(hiding) = defaults.get(&entry.key)
            {
                findings.push(
                    Diagnostic::warning(format!(
                        "`{}` has no effect: `defaults.vars` sets it too, and wins",
                        source.name
                    ))
                    .at(hiding.span, "this value is used")
                    .hint("move it to the top-level `vars`"),
                );
            }
        }
    }

    /// Checks the args that groups share: those of `defaults` and of templates.
    fn args(&self, findings: &mut Diagnostics) {
        let Some(provider) = self.provider() else {
            return;
        };
        let rules = Rules::of(provider.value);
        let templates = self.config.templates.values();
        let of_templates = templates.filter_map(|template| template.value.common.args.as_ref());
        for args in self.config.defaults.args.iter().chain(of_templates) {
            rules.check_args(args, findings);
        }
    }

    /// A group's own args.
    fn group_args(&self, group: &Group, findings: &mut Diagnostics) {
        let Some(provider) = self.provider() else {
            return;
        };
        let rules = Rules::of(provider.value);
        for args in group.common.args.iter().chain(overriding_args(group)) {
            rules.check_args(args, findings);
        }
    }

    /// Checks a group's merged args. Groups with the same error share one finding.
    fn merged_args(&self, group: &Group, findings: &mut Diagnostics) {
        let Some(provider) = self.provider() else {
            return;
        };
        let rules = Rules::of(provider.value);
        let template = self.template_of(group);
        let mut layers: Vec<&Node> = self.config.defaults.args.iter().collect();
        layers.extend(template.and_then(|template| template.common.args.as_ref()));
        layers.extend(&group.common.args);
        let whole = !self.is_broken(group);
        for lacking in rules.lacking_args(&layers).into_iter().filter(|_| whole) {
            findings.push(
                Diagnostic::error(format!("group `{}`: {lacking}", group.name))
                    .at(group.span, "of this group")
                    .about(&group.name),
            );
        }
        if layers.len() > 1 {
            rules.check_merged_args(&layers, findings);
        }
        for args in overriding_args(group) {
            layers.push(args);
            rules.check_merged_args(&layers, findings);
            layers.pop();
        }
    }

    fn template_of(&self, group: &Group) -> Option<&Template> {
        let name = group.template.as_ref()?;
        self.config
            .templates
            .get(&name.value)
            .map(|template| &template.value)
    }

    /// Checks the server's own files, which have plain names and no certificates.
    fn server_files(&self, findings: &mut Diagnostics) {
        for (name, file) in &self.config.server_files {
            if name.contains('/') {
                findings.push(
                    Diagnostic::error(format!(
                        "`{name}` can't be the name of a file of the server"
                    ))
                    .at(file.span, "it contains a path separator"),
                );
            }
            let what = match file.value.content {
                FileContent::Certificate { .. } => "a certificate",
                FileContent::Erb(_) => "of kind `erb`",
                _ => continue,
            };
            findings.push(
                Diagnostic::error(format!("file `{name}` of the server is {what}"))
                    .at(file.span, "only instances have these"),
            );
        }
    }

    /// Checks the groups of NAT instances.
    fn nat(&self, findings: &mut Diagnostics) {
        for (tenant, nat) in &self.config.nat {
            let named = &nat.value.group;
            let Ok(name) = format!("{tenant}/{}", named.value).parse::<GroupName>() else {
                findings.push(
                    Diagnostic::error(format!("`{}` isn't the name of a group", named.value))
                        .at(named.span, "expected a group of the tenant"),
                );
                continue;
            };
            let Some(group) = self.config.group(&name) else {
                let groups = self
                    .config
                    .groups
                    .iter()
                    .filter(|group| group.name.tenant() == &**tenant);
                let groups: Vec<&str> = groups.map(|group| group.name.name()).collect();
                findings.push(
                    Diagnostic::error(format!("tenant `{tenant}` has no group `{}`", named.value))
                        .at(named.span, "no such group")
                        .suggest(nearest(named, groups.iter().copied())),
                );
                continue;
            };
            if let Some(size) = group.size {
                findings.push(
                    Diagnostic::error(format!("group `{name}` can't have a `size`"))
                        .at(size.span, "the server sizes groups of NAT instances")
                        .related(named.span, "`nat` names it here"),
                );
            }
            let own = group.common.instance_type.as_ref();
            let ladder = &nat.value.instance_types;
            if own.is_none_or(|own| !ladder.iter().any(|known| known.value == own.value)) {
                findings.push(
                    Diagnostic::error(format!(
                        "the `instance_type` of group `{name}` must be in `instance_type_ladder`"
                    ))
                    .at(own.map_or(group.span, |own| own.span), "of this group")
                    .related(named.span, "`nat` names it here"),
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
                    Diagnostic::error(format!("group `{}` still exists", from.value))
                        .at(from.span, "can't have moved from a group that is there")
                        .related(*place, "it is defined here")
                        .about(&group.name),
                );
            } else if let Some((first, place)) =
                claimed.insert(&from.value, (&group.name, from.span))
            {
                findings.push(
                    Diagnostic::error(format!(
                        "two groups say that they were `{}`: `{first}` and `{}`",
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

fn names<T>(map: &Named<T>) -> impl Iterator<Item = &str> + Clone {
    map.keys().map(|name| &**name)
}

/// The finding for a reference to an unknown name.
fn unknown_reference<'n>(
    what: &str,
    name: &Spanned<Arc<str>>,
    section: &str,
    known: impl Iterator<Item = &'n str> + Clone,
) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("{what} `{}` isn't defined", name.value))
        .at(name.span, format!("no {what} has this name"));
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

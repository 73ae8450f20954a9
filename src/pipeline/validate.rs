//! Validates templates by rendering some instances of each group.
//!
//! In: a whole configuration. Out: findings. Must not: query a cloud or the network.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Compiled, prepare, renderer};
use crate::address::{Address, GroupName};
use crate::check::server;
use crate::config::load::Loaded;
use crate::config::model::Config;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, gather};
use crate::merge::deep::Merged;
use crate::plan::links;
use crate::provider::rules::Rules;
use crate::render::cache::Place;
use crate::render::data::{InstanceFacts, nonce_placeholder};
use crate::render::group::CompiledGroup;
use crate::render::hints::replaced_layers;
use crate::render::instance::Report;
use crate::render::links::{LinkSet, Unknown};
use crate::render::renderer::GroupRenderer;
use crate::render::sampling;
use crate::spec::InstanceSpec;
use crate::stage;
use crate::threads::{self, GROUPS_A_THREAD};

/// Adds the errors of templates and rendering to the findings of a configuration without errors.
/// With `strict`, unset vars are errors.
pub fn validate(loaded: &mut Loaded, strict: bool) {
    let Some(config) = &loaded.config else {
        return;
    };
    let (sources, directory) = (&loaded.sources, &loaded.directory);
    let found = match prepare(config, sources, directory, false, |_| None, strict) {
        Ok(prepared) => {
            let mut found = prepared.findings;
            replaced_layers(config, &prepared.bodies, &mut found);
            found.extend(stage::timed("render samples", || {
                try_groups(config, &prepared.compiled, sources, strict)
            }));
            if loaded.server_compatible {
                found.extend(server::warnings(config, &prepared.compiled.groups, sources));
            }
            found
        }
        Err(found) => found,
    };
    // Sorted by place, since different stages found them.
    let all = std::mem::take(&mut loaded.findings).into_iter();
    let mut all: Vec<_> = all.chain(found).collect();
    all.sort_by_key(|finding| finding.label.as_ref().map(|label| label.span));
    loaded.findings.extend(all);
}

/// Renders some instances of each group and returns their findings.
pub(super) fn try_groups(
    config: &Config,
    compiled: &Compiled<'_>,
    sources: &SourceMap,
    strict: bool,
) -> Diagnostics {
    let rules = Rules::of(config.shard.infra.provider.value);
    let strict = config.strict || strict;
    // Any id will do.
    let names = config.images.keys().cloned();
    let ids: BTreeMap<_, _> = names.map(|name| (name, Some("image".into()))).collect();
    let looked = sampling::first(config);
    let by_name: HashMap<&GroupName, &CompiledGroup<'_>> = compiled
        .groups
        .iter()
        .map(|group| (&group.merged.name, group))
        .collect();
    let trials = threads::map(&compiled.groups, GROUPS_A_THREAD, |group| {
        let is_looked_into = looked.contains(&group.merged.name);
        let renderer = renderer(config, group, &ids, rules, "").looking_into(is_looked_into);
        let renderer = if group.links.is_empty() {
            renderer
        } else {
            let find = |provider: &GroupName| {
                let found = by_name.get(provider)?;
                Some(super::renderer(config, found, &ids, rules, ""))
            };
            let links = example_links(compiled, group, &find);
            renderer.with_links(&links, Unknown::StandIn)
        };
        let report = try_group(&renderer, Report::of_trial());
        let names = group.merged.vars.as_ref().and_then(Merged::entries);
        let names = names.into_iter().flatten().map(|(name, _)| &**name);
        report.findings(sources, &names, strict)
    });
    let mut findings = gather(trials.into_iter().flatten());
    // A configuration can be checked without Ruby, short of its ERB.
    findings.extend(compiled.erb.finding(sources).map(|finding| Diagnostic {
        severity: Severity::Warning,
        ..finding
    }));
    findings
}

/// The links of a group as they are when all groups are new.
fn example_links<'a>(
    compiled: &Compiled<'a>,
    group: &CompiledGroup<'_>,
    find: &dyn Fn(&GroupName) -> Option<GroupRenderer<'a>>,
) -> LinkSet {
    let each = group.links.iter().map(|link| {
        let provider = link.provider.as_ref()?;
        let renderer = find(&provider.group)?;
        let merged = &renderer.group.merged;
        let properties = compiled.properties.get(&provider.key());
        let members = (0..merged.size).map(|slot| {
            let place = merged.place_of_new(slot);
            let fixed = renderer.fixed_address_of(slot, "", &place);
            links::member(&renderer, slot, &place, fixed.map(Arc::from), None)
        });
        let members = members.collect();
        Some(links::facts(
            &renderer,
            properties,
            members,
            &mut Report::of_trial(),
        ))
    });
    let names = group.links.iter().map(|link| Arc::clone(&link.name));
    names.zip(each).collect()
}

/// Renders some instances of a group: those with overrides, and the first and the last, where
/// templates that compute with slot numbers fail.
fn try_group(renderer: &GroupRenderer<'_>, mut report: Report) -> Report {
    let group = &renderer.group.merged;
    let overridden = group
        .overrides
        .keys()
        .copied()
        .filter(|slot| *slot < group.size);
    let mut slots: BTreeSet<u32> = overridden.collect();
    // Slots without overrides differ most at the ends.
    // A group without instances is tried, too: another may size it.
    let mut ends = (0..group.size.max(1)).filter(|slot| !slots.contains(slot));
    let ends = [ends.next(), ends.next_back()];
    let mut try_slot = |slot: u32| {
        let facts = renderer.example(slot);
        let address = Address::new(group.name.clone(), slot);
        let spec = renderer.render(&address, &facts, &BTreeMap::new(), &mut report)?;
        if !only_prints_nonce(renderer, &address, &facts, &spec) {
            report.failure(
                "`.Nonce` is used for more than printing",
                Place::Behind(group.span),
                "in args or userdata of this group".to_owned(),
                Some(
                    "Write `{{ .Nonce }}` by itself: it isn't known before the instance is created"
                        .to_owned(),
                ),
                &address,
            );
        }
        Some(spec)
    };
    let first = ends[0].and_then(&mut try_slot);
    if !first.is_some_and(|spec| renderer.stands_for_others(&spec)) {
        slots.extend(ends[1]);
    }
    for slot in slots {
        try_slot(slot);
    }
    renderer.check_userdata(0, &mut report);
    report
}

/// Whether args and userdata only print `.Nonce`, so that a nonce can be put in its place later: with
/// another one, nothing else of them changes.
fn only_prints_nonce(
    renderer: &GroupRenderer<'_>,
    address: &Address,
    facts: &InstanceFacts,
    spec: &InstanceSpec,
) -> bool {
    const OTHER: &str = "Zq7.x_9-";
    if !renderer.group.reads_nonce {
        return true;
    }
    let other = InstanceFacts {
        trial_nonce: Some(OTHER),
        ..facts.clone()
    };
    let mut ignored = Report::of_trial();
    let Some(with_other) = renderer.render(address, &other, &BTreeMap::new(), &mut ignored) else {
        return false;
    };
    let text = |spec: &InstanceSpec, nonce: &str| {
        let userdata = spec.userdata.as_ref();
        let userdata = userdata.map_or("", |userdata| userdata.value.content.display());
        let args = serde_json::to_string(&spec.args.value).expect("its keys are strings");
        format!("{args}{userdata}").replace(nonce, "")
    };
    text(spec, &nonce_placeholder(&facts.id)) == text(&with_other, OTHER)
}

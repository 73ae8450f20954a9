//! Everything that can be found without asking a cloud or the network.
//!
//! In: a loaded configuration, mistakes and all. Out: what else is wrong with it: its templates, and
//! what some instances of each group are rendered to. May not: tell what follows from what couldn't
//! be read.

use std::collections::{BTreeMap, BTreeSet};

use super::{compile_each, renderer};
use crate::address::Address;
use crate::config::load::Loaded;
use crate::config::model::Config;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostics, gather};
use crate::merge::deep::Merged;
use crate::provider::rules::Rules;
use crate::render::data::InstanceFacts;
use crate::render::group::Bodies;
use crate::render::hints::replaced_layers;
use crate::render::instance::Report;
use crate::render::renderer::GroupRenderer;
use crate::render::sampling;
use crate::resolve::fetch;

/// Adds to the findings of a configuration what its templates, its files and its instances have.
/// With `strict`, vars that aren't set are errors.
pub fn validate(loaded: &mut Loaded, strict: bool) {
    let found = untold(loaded, strict);
    // Found by different stages; people read from the top.
    let all = std::mem::take(&mut loaded.findings).into_iter();
    let mut all: Vec<_> = all.chain(found).collect();
    all.sort_by_key(|finding| finding.label.as_ref().map(|label| label.span));
    loaded.findings.extend(all);
}

/// What [`validate`] adds.
pub fn untold(loaded: &Loaded, strict: bool) -> Diagnostics {
    let mut found = Diagnostics::default();
    if let Some(config) = &loaded.config {
        let bodies = fetch::bodies(config, &loaded.directory, false, |_| None, &mut found);
        replaced_layers(config, &bodies, &mut found);
        try_groups(config, &loaded.sources, &bodies, strict, &mut found);
    }
    found
}

/// Parses the templates of all groups, and renders some instances of each.
pub(super) fn try_groups(
    config: &Config,
    sources: &SourceMap,
    bodies: &Bodies,
    strict: bool,
    findings: &mut Diagnostics,
) {
    let rules = Rules::of(config.shard.infra.provider.value);
    let strict = config.strict || strict;
    // One id stands for any.
    let names = config.images.keys().cloned();
    let ids: BTreeMap<_, _> = names.map(|name| (name, Some("image".into()))).collect();
    let looked = sampling::first(config);
    let (trials, _) = compile_each(config, sources, bodies, findings, |group| {
        let is_looked_into = looked.contains(&group.merged.name);
        let renderer = renderer(config, &group, &ids, rules).looking_into(is_looked_into);
        let report = try_group(&renderer, Report::of_trial());
        let names = group.merged.vars.as_ref().and_then(Merged::entries);
        let names = names.into_iter().flatten().map(|(name, _)| &**name);
        report.findings(sources, &names, strict)
    });
    findings.extend(gather(trials.into_iter().flatten()));
}

/// Renders some instances of a group: the first and the last, which fail where slots are counted
/// wrong, and those with overrides.
fn try_group(renderer: &GroupRenderer<'_>, mut report: Report) -> Report {
    let group = &renderer.group.merged;
    let overridden = group
        .overrides
        .keys()
        .copied()
        .filter(|slot| *slot < group.size);
    let mut slots: BTreeSet<u32> = overridden.collect();
    // Those without overrides differ most at the ends.
    let mut ends = (0..group.size).filter(|slot| !slots.contains(slot));
    let ends = [ends.next(), ends.next_back()];
    let mut try_slot = |slot: u32| {
        let facts = InstanceFacts::example(group, slot, &renderer.head(slot).instance_type);
        let address = Address::new(group.name.clone(), slot);
        renderer.render(&address, &facts, &BTreeMap::new(), &mut report)
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

//! Plans a whole configuration.
//!
//! In: [`Inputs`]. Out: a [`Plan`] and findings. Must not: do I/O.
//!
//! Groups are planned in dependency order by `group`. This module plans instances of removed groups
//! and computes the totals.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::actual::{ActualInstance, ActualInstances};
use super::change::ServerInstance;
use super::change::{
    Action, Change, Deletions, DriftKind, LeftOut, Mode, Plan, PlannedGroup, PlannedImage, Reason,
    RulesName, Summary,
};
use super::exclusive::leave_out_duplicates;
use super::group::GroupPlanner;
use super::inputs::{Inputs, Options};
use super::links::Providers;
use super::planned::Planned;
use super::rollout::{Assumed, Bounds, Impossible, Member, Rollout, is_limited};
use crate::address::{Address, GroupName};
use crate::config::model::ProviderKind;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::merge::hashes::hashes;
use crate::render::instance::Report;
use crate::render::links::{LinkSet, Unknown};
use crate::resolve::subnets::Placer;

/// Computes the plan, and the links of each group that consumes some.
pub fn build(
    inputs: &Inputs<'_>,
    placer: &mut Placer<'_>,
) -> (Plan, BTreeMap<String, LinkSet>, Diagnostics) {
    let lineage = inputs.lineage();
    let mut actual = ActualInstances::new(inputs.snapshot, inputs.observed);
    // The server creates and deletes them.
    actual.leave_out(&inputs.config.server_groups);
    let mut gathered = Planned::default();
    let configured: BTreeSet<&str> = inputs
        .groups
        .iter()
        .map(|renderer| renderer.group.merged.name.as_str())
        .collect();
    let moves: HashMap<&str, &GroupName> = inputs
        .config
        .groups
        .iter()
        .filter_map(|group| Some((group.name.as_str(), &group.moved_from.as_ref()?.value)))
        .collect();
    let mut planners = Vec::with_capacity(inputs.groups.len());
    for renderer in inputs.groups {
        let name = &renderer.group.merged.name;
        let mut own = actual.take(name.as_str());
        let mut moved_from = None;
        if own.is_empty()
            && let Some(former) = moves.get(name.as_str())
            && !configured.contains(former.as_str())
        {
            own = actual.take(former.as_str());
            moved_from = (!own.is_empty()).then(|| (*former).clone());
        }
        let planner = GroupPlanner {
            inputs,
            renderer,
            other: None,
            lineage: &lineage,
            deposed: actual.deposed_slots(moved_from.as_ref().unwrap_or(name).as_str()),
            moved_from,
            bounds: Bounds::of(&renderer.group.merged.update, renderer.group.merged.size),
        };
        planners.push((planner, own));
    }
    plan_groups(inputs, &planners, placer, &mut gathered);
    plan_leftovers(inputs, &mut actual, &mut gathered);
    let records = inputs
        .snapshot
        .map_or(&[][..], |snapshot| &snapshot.records);
    leave_out_duplicates(records, &mut gathered);
    let rollouts = rollouts(inputs, &mut gathered);
    let mut findings = std::mem::take(&mut gathered.findings);
    findings.extend(target_warning(inputs.options));
    let links = std::mem::take(&mut gathered.links);
    (
        assemble(inputs, lineage, gathered, rollouts),
        links,
        findings,
    )
}

/// Plans all configured groups, each with the links that it consumes.
fn plan_groups(
    inputs: &Inputs<'_>,
    planners: &[(GroupPlanner<'_>, BTreeMap<u32, ActualInstance<'_>>)],
    placer: &mut Placer<'_>,
    gathered: &mut Planned,
) {
    let linked: HashSet<&GroupName> = inputs
        .groups
        .iter()
        .flat_map(|renderer| &renderer.group.links)
        .filter_map(|link| Some(&link.provider.as_ref()?.group))
        .collect();
    let mut providers = Providers::default();
    let mut renderers = HashMap::new();
    if inputs.options.mode == Mode::Normal {
        for (planner, own) in planners {
            let name = &planner.renderer.group.merged.name;
            if linked.contains(name) {
                providers.add(planner, own);
                renderers.insert(name, planner.renderer);
            }
        }
    }
    for (planner, own) in planners {
        let renderer = planner.renderer;
        let name = &renderer.group.merged.name;
        let before = gathered.changes.len();
        if renderer.group.links.is_empty() || inputs.options.mode != Mode::Normal {
            planner.plan(own, placer, gathered);
        } else {
            let mut report = Report::default();
            let links = providers.links_of(planner, &renderers, &mut report);
            let none = std::iter::empty::<&str>();
            let found = report.findings(inputs.sources, &none, inputs.options.strict);
            gathered.findings.extend(found);
            plan_linked(planner, own, &links, placer, gathered);
            gathered.links.insert(name.to_string(), links);
        }
        if linked.contains(name) {
            providers.note(name, &gathered.changes[before..]);
        }
    }
}

/// Plans a group with its links. If an address isn't known, two renderers with different stand-ins
/// show what depends on it.
fn plan_linked(
    planner: &GroupPlanner<'_>,
    own: &BTreeMap<u32, ActualInstance<'_>>,
    links: &LinkSet,
    placer: &mut Placer<'_>,
    gathered: &mut Planned,
) {
    let is_late = links.values().flatten().any(|facts| !facts.is_known());
    let linked = planner.renderer.with_links(links, Unknown::StandIn);
    let with_other = || planner.renderer.with_links(links, Unknown::OtherStandIn);
    let other = is_late.then(with_other);
    let planner = GroupPlanner {
        renderer: &linked,
        other: other.as_ref(),
        moved_from: planner.moved_from.clone(),
        deposed: planner.deposed.clone(),
        ..*planner
    };
    planner.plan(own, placer, gathered);
}

/// Plans what belongs to no configured group: removed groups, deposed and duplicate instances.
fn plan_leftovers(inputs: &Inputs<'_>, actual: &mut ActualInstances<'_>, gathered: &mut Planned) {
    let mut groups: Vec<_> = actual.by_group.drain().collect();
    groups.sort_by_key(|(name, _)| *name);
    for (name, slots) in groups {
        let group = GroupName::from(Arc::<str>::from(name));
        for (slot, instance) in slots {
            let address = Address::new(group.clone(), slot);
            if !inputs.options.selects(&address) {
                continue;
            }
            match instance {
                ActualInstance::Recorded { record, presence } => {
                    let reason = match inputs.options.mode {
                        Mode::Destroy => Reason::Destroy,
                        Mode::Normal => Reason::GroupRemoved,
                        Mode::RefreshOnly => Reason::RefreshOnly,
                    };
                    gathered.end(inputs, &address, record, presence, None, reason);
                }
                ActualInstance::Unrecorded(observation) => {
                    gathered.adopt_as_reported(inputs, &address, observation);
                }
            }
        }
    }
    let mut deposed: Vec<_> = actual
        .deposed
        .drain()
        .flat_map(|(_, records)| records)
        .collect();
    deposed.sort_by(|(a, _), (b, _)| a.instance_id.cmp(&b.instance_id));
    for (record, presence) in deposed {
        let address = Address::new(Arc::clone(&record.group).into(), record.slot);
        if inputs.options.selects(&address) {
            let id = Some(record.provider_id.clone());
            let before = gathered.changes.len();
            gathered.end(inputs, &address, record, presence, id, Reason::Deposed);
            for change in &mut gathered.changes[before..] {
                change.successor = successor(inputs, &address);
            }
        }
    }
    for observation in &actual.duplicates {
        let address = observation
            .group
            .as_deref()
            .and_then(|group| group.parse::<GroupName>().ok())
            .zip(observation.slot)
            .map(|(group, slot)| Address::new(group, slot));
        let is_selected = match &address {
            Some(address) => inputs.options.selects(address),
            None => inputs.options.targets.is_empty(),
        };
        if !is_selected {
            continue;
        }
        match address {
            Some(address) => {
                gathered.note_unrecorded(&address, observation, DriftKind::Duplicate);
                gathered.findings.push(
                    Diagnostic::warning(format!(
                        "`{}` claims a slot that another instance has",
                        observation.provider_id
                    ))
                    .about(&address)
                    .hint("Look at both; delete the one that isn't needed, or give it another slot with `nstance import`"),
                );
            }
            None => {
                gathered.of_server.push(ServerInstance {
                    provider_id: observation.provider_id.clone(),
                    group: observation.group.clone(),
                });
                gathered.findings.push(
                    Diagnostic::warning(format!(
                        "`{}` carries this shard's tags, but names no group and slot",
                        observation.provider_id
                    ))
                    .hint("Record it with `nstance import ADDR PROVIDER_ID`, or remove its tags"),
                );
            }
        }
    }
}

/// The provider id of the recorded instance in a slot, unless it is missing.
fn successor(inputs: &Inputs<'_>, address: &Address) -> Option<String> {
    let live = inputs
        .snapshot?
        .live(address.group.as_str(), address.slot)?;
    let is_there = |id: &str| inputs.observed.is_none_or(|seen| seen.get(id).is_some());
    is_there(&live.provider_id).then(|| live.provider_id.clone())
}

fn target_warning(options: &Options) -> Option<Diagnostic> {
    (!options.targets.is_empty() || !options.excludes.is_empty()).then(|| {
        Diagnostic::warning("only a part of the configuration is planned")
            .detail("`--target` and `--exclude` leave out the rest, drifted or not")
    })
}

/// The rollout of each configured group with changes. Leaves out changes that the limits of their
/// group forbid.
fn rollouts(inputs: &Inputs<'_>, gathered: &mut Planned) -> HashMap<GroupName, Rollout> {
    let mut by_group: HashMap<&GroupName, Vec<&Change>> = HashMap::new();
    for change in gathered.changes.iter().chain(&gathered.held_back) {
        by_group
            .entry(&change.address.group)
            .or_default()
            .push(change);
    }
    let changed: HashSet<&str> = gathered
        .changes
        .iter()
        .filter_map(|change| Some(&*change.before.as_deref()?.instance_id))
        .collect();
    let mut found = HashMap::new();
    let mut impossible = Vec::new();
    for renderer in inputs.groups {
        let group = &renderer.group.merged;
        let Some(changes) = by_group.get(&group.name) else {
            continue;
        };
        let changes = changes.iter().copied();
        let update = &group.update;
        match Rollout::of(update, group.size, &group.zone_names(), &changes) {
            Ok(mut rollout) => {
                if changes.clone().any(is_limited) {
                    rollout.members = members(inputs, &group.name, &changed);
                }
                found.insert(group.name.clone(), rollout);
            }
            // What is held back may wait for another limit.
            Err(_)
                if !gathered
                    .changes
                    .iter()
                    .any(|change| change.address.group == group.name) => {}
            Err(Impossible(assumed)) => impossible.push((group, assumed)),
        }
    }
    let mut refused = Vec::new();
    for (group, assumed) in impossible {
        let what = match assumed {
            Assumed::Exclusive => "an arg that only one instance can have",
            Assumed::Restart => "a change that restarts instances",
        };
        let span = group.update.max_unavailable.map(|amount| amount.span);
        let finding = Diagnostic::error(format!(
            "`max_unavailable` of group `{}` is 0, and there is {what}",
            group.name
        ));
        refused.push((
            group.name.clone(),
            finding
                .at(span.unwrap_or(group.span), "no instance may be unavailable")
                .about(&group.name)
                .hint("Set it to at least 1, or leave the change out"),
        ));
    }
    for (name, finding) in refused {
        gathered.findings.push(finding);
        let before = gathered.changes.len();
        gathered
            .changes
            .retain(|change| change.address.group != name || !is_limited(change));
        gathered.left_out.push(LeftOut {
            address: name.to_string(),
            count: before - gathered.changes.len(),
            why: "its limits forbid the change".to_owned(),
        });
    }
    found
}

/// The recorded instances of a group that the plan doesn't change.
fn members(inputs: &Inputs<'_>, group: &GroupName, changed: &HashSet<&str>) -> Vec<Member> {
    let records = inputs
        .snapshot
        .iter()
        .flat_map(|snapshot| &snapshot.records);
    records
        .filter(|record| *record.group == *group.as_str() && !record.deposed)
        .filter(|record| !changed.contains(record.instance_id.as_str()))
        .map(|record| Member {
            address: Address::new(group.clone(), record.slot),
            instance_id: record.instance_id.as_str().into(),
            provider_id: record.provider_id.clone(),
            load_balancers: (inputs.specs)(record.spec)
                .map(|spec| spec.head.load_balancers.clone())
                .unwrap_or_default(),
        })
        .collect()
}

fn assemble(
    inputs: &Inputs<'_>,
    lineage: String,
    mut gathered: Planned,
    mut rollouts: HashMap<GroupName, Rollout>,
) -> Plan {
    gathered.changes.sort_by(Change::order);
    gathered.held_back.sort_by(Change::order);
    gathered
        .drift
        .sort_by(|a, b| (&a.address, &a.provider_id).cmp(&(&b.address, &b.provider_id)));
    let summary = Summary::of(&gathered.changes, &gathered.held_back, gathered.no_op);
    let mut by_group: BTreeMap<String, usize> = BTreeMap::new();
    for change in &gathered.changes {
        if change.action == Action::Delete && change.deposed.is_none() {
            *by_group
                .entry(change.address.group.to_string())
                .or_default() += 1;
        }
    }
    let protecting: HashSet<&GroupName> = inputs
        .groups
        .iter()
        .map(|renderer| &renderer.group.merged)
        .filter(|group| group.protect)
        .map(|group| &group.name)
        .collect();
    // For groups that are no longer configured, the record's protection applies.
    let protected: BTreeSet<String> = gathered
        .changes
        .iter()
        .filter(|change| change.action == Action::Delete && change.deposed.is_none())
        .filter(|change| {
            protecting.contains(&change.address.group)
                || change
                    .before
                    .as_deref()
                    .is_some_and(|before| before.protected)
                    && inputs.config.group(&change.address.group).is_none()
        })
        .map(|change| change.address.group.to_string())
        .collect();
    let deletions = Deletions {
        by_group,
        recorded: inputs.snapshot.map_or(0, |snapshot| snapshot.records.len()),
        budget_count: inputs.config.destroy_budget.count,
        budget_percent: inputs.config.destroy_budget.percent,
        protected: protected.into_iter().collect(),
    };
    let images = inputs
        .images
        .images
        .iter()
        .filter_map(|(name, image)| {
            let image = image.as_ref().ok()?;
            let planned = PlannedImage {
                id: image.id.to_string(),
                source: image.source.as_str().to_owned(),
                resolved_at: image.resolved_at,
            };
            Some((name.to_string(), planned))
        })
        .collect();
    let removes_group = |change: &Change| change.reasons.contains(&Reason::GroupRemoved);
    let read_from = if gathered.changes.iter().any(removes_group) {
        inputs.sources.files().map(str::to_owned).collect()
    } else {
        Vec::new()
    };
    Plan {
        mode: inputs.options.mode,
        cluster: inputs.identity.cluster.clone(),
        shard: inputs.identity.shard.clone(),
        provider: inputs.identity.provider.clone(),
        rules: match inputs.rules.kind() {
            ProviderKind::Aws => RulesName::Aws,
            ProviderKind::Gcp => RulesName::Gcp,
            ProviderKind::Yandex => RulesName::Yandex,
            ProviderKind::Sim | ProviderKind::Proxmox => RulesName::Sim,
        },
        provider_name: inputs.provider_name.to_owned(),
        lineage,
        serial: inputs.snapshot.map_or(0, |snapshot| snapshot.meta.serial),
        new_state: inputs.snapshot.is_none(),
        read_from,
        created_at: inputs.now,
        target: inputs.options.target.clone(),
        last_good: BTreeMap::new(),
        late: BTreeMap::new(),
        manifest: None,
        images,
        sizes: inputs
            .groups
            .iter()
            .map(|renderer| &renderer.group.merged)
            .map(|group| (group.name.to_string(), group.size))
            .collect(),
        groups: planned_groups(
            inputs,
            gathered.changes.iter().chain(&gathered.held_back),
            &mut rollouts,
        ),
        changes: gathered.changes,
        held_back: gathered.held_back,
        unchanged: gathered.unchanged,
        drift: gathered.drift,
        of_server: gathered.of_server,
        summary,
        left_out: gathered.left_out,
        deletions,
    }
}

/// The changed groups that a group depends on, directly or through unchanged groups.
fn changed_before(
    name: &GroupName,
    dependencies: &HashMap<GroupName, Vec<GroupName>>,
    changed: &BTreeSet<&GroupName>,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<&GroupName> = BTreeSet::new();
    let mut ahead: VecDeque<&GroupName> = dependencies.get(name).into_iter().flatten().collect();
    while let Some(before) = ahead.pop_front() {
        if !seen.insert(before) {
            continue;
        }
        if changed.contains(before) {
            found.push(before.to_string());
        } else {
            ahead.extend(dependencies.get(before).into_iter().flatten());
        }
    }
    found
}

/// The groups with changes, in the order of apply. Removed groups come last, since nothing can
/// depend on them.
fn planned_groups<'a>(
    inputs: &Inputs<'_>,
    changes: impl Iterator<Item = &'a Change>,
    rollouts: &mut HashMap<GroupName, Rollout>,
) -> Vec<PlannedGroup> {
    let changed: BTreeSet<&GroupName> = changes.map(|change| &change.address.group).collect();
    let mut groups: Vec<PlannedGroup> = inputs
        .groups
        .iter()
        .map(|renderer| renderer.group)
        .filter(|group| changed.contains(&group.merged.name))
        .map(|group| PlannedGroup {
            name: group.merged.name.to_string(),
            after: changed_before(&group.merged.name, inputs.dependencies, &changed),
            rollout: rollouts.remove(&group.merged.name),
            config_hash: if group.reads_nonce {
                hashes(&group.merged, None).runtime
            } else {
                String::new()
            },
        })
        .collect();
    let known: BTreeSet<String> = groups.iter().map(|group| group.name.clone()).collect();
    groups.extend(
        changed
            .iter()
            .map(ToString::to_string)
            .filter(|name| !known.contains(name))
            .map(|name| PlannedGroup {
                name,
                after: Vec::new(),
                config_hash: String::new(),
                rollout: None,
            }),
    );
    groups
}

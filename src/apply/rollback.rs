//! Plans the way back of groups whose rollout failed.
//!
//! In: the plan of the rollout, and a snapshot of the state after it stopped. Out: a plan that leads
//! to what was last good: new instances are deleted, predecessors that still exist stay, and what is
//! gone is created again from its [`Fallback`]. Must not: ask a cloud.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use nstance_state::{Record, Snapshot};

use crate::address::Address;
use crate::config::model::OnFailure;
use crate::plan::change::{
    Action, Change, Deletions, Fallback, InstanceView, Mode, Plan, PlannedGroup, Reason, Summary,
};
use crate::plan::rollout::{Member, Rollout};

/// The plan that brings these groups back; without changes if there is nothing to do.
pub fn plan(failed: &Plan, groups: &[usize], snapshot: &Snapshot) -> Plan {
    let records: HashMap<&str, &Record> = snapshot
        .records
        .iter()
        .map(|record| (record.instance_id.as_str(), record))
        .collect();
    let mut changes = Vec::new();
    let mut planned = Vec::new();
    for index in groups {
        let group = &failed.groups[*index];
        let own = |change: &&Change| change.address.group.as_str() == group.name;
        let own: Vec<&Change> = failed.changes.iter().filter(own).collect();
        let surges = group
            .rollout
            .as_ref()
            .is_some_and(|rollout| rollout.max_surge > 0);
        let back: Vec<Change> = own
            .iter()
            .filter_map(|change| reverse(change, &records, surges))
            .collect();
        // What doesn't change on the way back counts for its limits.
        let changed: HashSet<&Address> = back.iter().map(|change| &change.address).collect();
        let stays = |change: &&&Change| !changed.contains(&change.address);
        let staying = own.iter().filter(stays).filter_map(|change| {
            let mut sides = change.before.iter().chain(&change.after);
            let (view, record) =
                sides.find_map(|view| Some((view, records.get(&*view.instance_id)?)))?;
            Some(Member {
                address: change.address.clone(),
                instance_id: Arc::clone(&view.instance_id),
                provider_id: record.provider_id.clone(),
                load_balancers: view.spec.head.load_balancers.clone(),
            })
        });
        let staying: Vec<Member> = staying.collect();
        planned.push(PlannedGroup {
            after: Vec::new(),
            rollout: group.rollout.as_ref().map(|rollout| {
                let mut rollout = way_back(rollout, &own);
                rollout.members.extend(staying);
                rollout
            }),
            ..group.clone()
        });
        changes.extend(back);
    }
    changes.sort_by(Change::order);
    Plan {
        mode: Mode::Normal,
        summary: Summary::of(&changes, &[], 0),
        changes,
        held_back: Vec::new(),
        unchanged: Vec::new(),
        drift: Vec::new(),
        left_out: Vec::new(),
        deletions: Deletions::default(),
        last_good: BTreeMap::new(),
        manifest: None,
        groups: planned,
        ..failed.clone()
    }
}

/// The policy of the way back: the same limits for the earlier size, without canaries, and it stops
/// at the first failure.
fn way_back(rollout: &Rollout, changes: &[&Change]) -> Rollout {
    let was_there = |change: &&&Change| {
        change.before.is_some() && change.deposed.is_none() && change.action != Action::Forget
    };
    let before = changes.iter().filter(was_there).count() + rollout.members.len();
    Rollout {
        size: before as u32,
        canaries: 0,
        canary_pause: None,
        on_failure: OnFailure::Stop,
        max_failures: 0,
        ..rollout.clone()
    }
}

/// The change that takes another back, if there is anything to take back.
fn reverse(change: &Change, records: &HashMap<&str, &Record>, surges: bool) -> Option<Change> {
    let recorded = |view: Option<&InstanceView>| {
        let view = view?;
        let record = records.get(&*view.instance_id)?;
        Some(InstanceView::of_record(
            record,
            Arc::clone(&view.spec),
            view.digest,
        ))
    };
    let old = recorded(change.before.as_deref());
    let new = recorded(change.after.as_deref());
    let back = |action| Change {
        drain_timeout_ms: change.drain_timeout_ms,
        ..Change::new(change.address.clone(), action, vec![Reason::RolledBack])
    };
    let again = |action, before: Option<InstanceView>| {
        let Fallback { view, deferred } = change.fallback.as_deref()?.clone();
        Some(Change {
            before: before.map(Box::new),
            after: Some(Box::new(view)),
            deferred,
            ..back(action)
        })
    };
    match change.action {
        Action::Create if change.before.is_none() => Some(Change {
            before: Some(Box::new(new?)),
            ..back(Action::Delete)
        }),
        Action::Create | Action::CreateThenDelete | Action::DeleteThenCreate => match (new, old) {
            (None, Some(_)) => None,
            // The predecessor gets its slot back.
            (Some(new), Some(old)) => Some(Change {
                before: Some(Box::new(new)),
                after: Some(Box::new(old)),
                ..back(Action::Delete)
            }),
            (Some(new), None) => {
                let action = if surges && change.action != Action::DeleteThenCreate {
                    Action::CreateThenDelete
                } else {
                    Action::DeleteThenCreate
                };
                again(action, Some(new))
            }
            (None, None) => again(Action::Create, None),
        },
        Action::Update => {
            let planned = change.after.as_deref()?;
            let now = recorded(Some(planned))?;
            let record = records.get(&*planned.instance_id)?;
            if record.spec != planned.digest || planned.version == Some(record.version) {
                return None;
            }
            let attributes = change.attributes.iter().cloned();
            let before = change.before.as_deref()?;
            Some(Change {
                before: Some(Box::new(now.clone())),
                after: Some(Box::new(InstanceView {
                    spec: Arc::clone(&before.spec),
                    digest: before.digest,
                    images: before.images.clone(),
                    marks: Arc::clone(&before.marks),
                    protected: before.protected,
                    ..now
                })),
                attributes: attributes
                    .map(|mut attribute| {
                        std::mem::swap(&mut attribute.before, &mut attribute.after);
                        attribute.unknown = false;
                        attribute.written_at = None;
                        attribute
                    })
                    .collect(),
                ..back(Action::Update)
            })
        }
        Action::Delete if change.deposed.is_none() && old.is_none() => again(Action::Create, None),
        Action::Delete | Action::Adopt | Action::Forget | Action::NoOp => None,
    }
}

//! Collects the plans of all groups, and plans changes that don't depend on a configuration.
//!
//! In: records and observations. Out: changes. Must not: look at the configuration.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use nstance_state::Record;

use super::actual::Presence;
use super::change::{
    Action, Change, Drift, DriftKind, DriftedAttribute, InstanceView, LeftOut, Mode, Reason,
    ServerInstance,
};
use super::drift;
use super::inputs::{Inputs, new_instance_id};
use crate::address::{Address, InstanceId};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::rules::Rules;
use crate::provider::{LifecycleState, Observation};
use crate::render::links::LinkSet;
use crate::spec::SpecBody;

/// The results of all groups so far.
#[derive(Debug, Default)]
pub struct Planned {
    /// All changes except no-ops.
    pub changes: Vec<Change>,
    /// Replacements in protected groups, and what `opportunistic` leaves to later.
    pub held_back: Vec<Change>,
    /// No-ops, if the caller requested them.
    pub unchanged: Vec<Change>,
    /// The number of no-ops.
    pub no_op: usize,
    /// The differences between record and cloud.
    pub drift: Vec<Drift>,
    /// Instances of the Nstance server.
    pub of_server: Vec<ServerInstance>,
    /// Instances that couldn't be planned.
    pub left_out: Vec<LeftOut>,
    /// The findings.
    pub findings: Diagnostics,
    /// The links of each group that consumes some.
    pub links: BTreeMap<String, LinkSet>,
    /// The ids of all recorded and planned instances; computed on first use.
    instance_ids: Option<HashSet<Arc<str>>>,
}

impl Planned {
    /// Plans to delete a recorded instance, or to forget it if it no longer exists.
    pub fn end(
        &mut self,
        inputs: &Inputs<'_>,
        address: &Address,
        record: &Record,
        presence: Presence<'_>,
        deposed: Option<String>,
        reason: Reason,
    ) {
        let Some(before) = inputs.recorded_view(record) else {
            self.left_out(address, "its recorded spec can't be read");
            return;
        };
        let missing = matches!(presence, Presence::Missing);
        if missing {
            self.note_missing(inputs, address, record, &before);
        }
        if inputs.options.mode == Mode::RefreshOnly && !missing {
            self.no_op += 1;
            return;
        }
        if !missing && let Some(finding) = protected(inputs.rules, address, &before, "deleted") {
            self.findings.push(finding);
            self.left_out(address, "it is protected against deletion");
            return;
        }
        let (action, reason) = if missing {
            (Action::Forget, Reason::Missing)
        } else {
            (Action::Delete, reason)
        };
        self.changes.push(Change {
            deposed,
            before: Some(Box::new(before)),
            drain_timeout_ms: inputs.drain_timeout_ms(address),
            ..Change::new(address.clone(), action, vec![reason])
        });
    }

    /// Plans to record an unrecorded instance. `wanted`, the spec of its slot, supplies values that
    /// the cloud doesn't report.
    pub fn adopt(
        &mut self,
        inputs: &Inputs<'_>,
        address: &Address,
        observation: &Observation,
        wanted: Option<&SpecBody>,
    ) {
        let Ok(attributes) = observation.attributes() else {
            self.left_out(address, "what the cloud reports of it can't be read");
            return;
        };
        let kind = observation
            .instance_id
            .as_deref()
            .and_then(|id| id.get(..3))
            .unwrap_or("ins");
        let empty = SpecBody::empty(kind);
        let mut body = drift::body_from(&attributes, wanted.unwrap_or(&empty), inputs.rules);
        // It is recorded in its current pool; the next plan moves it.
        let subnet = observation.subnet.as_deref();
        body.head
            .subnet_pool
            .take_if(|pool| !inputs.config.shard.pool_has(pool, subnet));
        let as_wanted = wanted.is_some_and(|wanted| *wanted == body);
        if !as_wanted {
            self.findings.push(
                Diagnostic::warning(format!(
                    "`{}` will be recorded as the cloud reports it",
                    observation.provider_id
                ))
                .about(address)
                .detail(match inputs.options.mode {
                    Mode::Destroy => "destroying again after that deletes it",
                    Mode::Normal | Mode::RefreshOnly => {
                        "it isn't what the configuration says; the plan after this one changes it"
                    }
                }),
            );
        }
        let generation = inputs.snapshot.map_or(0, |snapshot| {
            snapshot.generation(address.group.as_str(), address.slot)
        });
        let lineage = inputs.lineage();
        // A manual copy has the tags of its original, and must not take over the original's record.
        let known = self.instance_ids.get_or_insert_with(|| {
            let records = inputs
                .snapshot
                .iter()
                .flat_map(|snapshot| &snapshot.records);
            records
                .map(|record| record.instance_id.as_str().into())
                .collect()
        });
        let instance_id = match observation.instance_id.as_deref() {
            Some(id) if !known.contains(id) => InstanceId::from(id),
            _ => new_instance_id(kind, inputs.now, &lineage, address, generation + 1),
        };
        known.insert(instance_id.as_str().into());
        let id = instance_id.as_str().into();
        let after = InstanceView::unrecorded(observation, id, generation + 1, body);
        self.changes.push(Change {
            importing: Some(observation.provider_id.clone()),
            after: Some(Box::new(after)),
            ..Change::new(address.clone(), Action::Adopt, vec![Reason::Unrecorded])
        });
    }

    /// Plans to record an unrecorded instance as the cloud reports it.
    pub fn adopt_as_reported(
        &mut self,
        inputs: &Inputs<'_>,
        address: &Address,
        observation: &Observation,
    ) {
        self.note_unrecorded(address, observation, DriftKind::Unknown);
        self.adopt(inputs, address, observation, None);
    }

    /// Adds the drift of a recorded instance that no longer exists, with the cloud's reason.
    pub fn note_missing(
        &mut self,
        inputs: &Inputs<'_>,
        address: &Address,
        record: &Record,
        before: &InstanceView,
    ) {
        let ended = inputs
            .observed
            .and_then(|observed| observed.ended_because(&record.provider_id));
        let changes = ended.map(|reason| DriftedAttribute {
            path: drift::STATE.to_owned(),
            recorded: Some(LifecycleState::Running.as_str().into()),
            observed: Some(reason.into()),
            ignored: false,
        });
        self.drift.push(Drift {
            address: address.to_string(),
            kind: DriftKind::Missing,
            provider_id: record.provider_id.clone(),
            changes: changes.into_iter().collect(),
            accepted: false,
            accepted_because: Vec::new(),
            expired: Vec::new(),
            before: Some(Box::new(before.clone())),
        });
    }

    /// Adds the drift of an unrecorded instance.
    pub fn note_unrecorded(
        &mut self,
        address: &Address,
        observation: &Observation,
        kind: DriftKind,
    ) {
        self.drift.push(Drift {
            address: address.to_string(),
            kind,
            provider_id: observation.provider_id.clone(),
            changes: Vec::new(),
            accepted: false,
            accepted_because: Vec::new(),
            expired: Vec::new(),
            before: None,
        });
    }

    /// Adds an address that couldn't be planned.
    pub fn left_out(&mut self, address: &Address, why: &str) {
        self.left_out.push(LeftOut {
            address: address.to_string(),
            count: 1,
            why: why.to_owned(),
        });
    }
}

/// The error that the cloud would refuse to delete this instance, reported before apply tries.
pub(super) fn protected(
    rules: Rules,
    address: &Address,
    before: &InstanceView,
    what: &str,
) -> Option<Diagnostic> {
    let name = rules.protection(&before.spec.args)?;
    // Addressed to the group, so that equal findings of its slots are kept once.
    let group = &address.group;
    Some(
        Diagnostic::error(format!(
            "instances of {group} would be {what}, and the cloud refuses that: `{name}` is set"
        ))
        .about(group)
        .hint(format!(
            "Set `{name}` to false and apply that first, with nothing else changed"
        ))
        .hint("Or leave the instances out with `--exclude`"),
    )
}

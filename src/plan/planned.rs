//! What all groups' plans add up to, and the changes that are alike wherever they come from.
//!
//! In: records and observations. Out: changes. Must not: look at the configuration.

use std::collections::HashSet;
use std::sync::Arc;

use nstance_state::Record;

use super::actual::Presence;
use super::change::{
    Action, Change, Drift, DriftKind, DriftedAttribute, InstanceView, LeftOut, Mode, Reason,
};
use super::drift;
use super::inputs::{Inputs, new_instance_id};
use crate::address::{Address, InstanceId};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::{LifecycleState, Observation};
use crate::spec::SpecBody;

/// What all groups' plans add up to.
#[derive(Debug, Default)]
pub struct Planned {
    /// Everything but what stays as it is.
    pub changes: Vec<Change>,
    /// What stays as it is, where the caller asked to keep it.
    pub unchanged: Vec<Change>,
    /// How many stay as they are.
    pub no_op: usize,
    /// What differs between record and cloud.
    pub drift: Vec<Drift>,
    /// What could not be planned.
    pub left_out: Vec<LeftOut>,
    /// What there is to report.
    pub findings: Diagnostics,
    /// The ids of instances that are recorded or about to be; made when first needed.
    instance_ids: Option<HashSet<Arc<str>>>,
}

impl Planned {
    /// Plans the end of a recorded instance: deleted if it is there, forgotten if it is gone.
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
        if !missing && let Some(finding) = protected(inputs, address, &before, "deleted") {
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

    /// Plans to record an instance that carries our tags. `wanted` is what its slot should have,
    /// and stands for what the cloud doesn't report.
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
        // It is recorded in the pool that it is in; the plan after this one moves it.
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
        // A copy made by hand carries its original's tags: it mustn't take its original's record.
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

    /// Plans to record an instance that carries our tags as the cloud reports it.
    pub fn adopt_as_reported(
        &mut self,
        inputs: &Inputs<'_>,
        address: &Address,
        observation: &Observation,
    ) {
        self.note_unrecorded(address, observation, DriftKind::Unknown);
        self.adopt(inputs, address, observation, None);
    }

    /// Notes that a recorded instance is gone, and why, if the cloud says so.
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
        });
        self.drift.push(Drift {
            address: address.to_string(),
            kind: DriftKind::Missing,
            provider_id: record.provider_id.clone(),
            changes: changes.into_iter().collect(),
            accepted: false,
            before: Some(Box::new(before.clone())),
        });
    }

    /// Notes an instance that isn't recorded.
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
            before: None,
        });
    }

    /// Notes that one address could not be planned.
    pub fn left_out(&mut self, address: &Address, why: &str) {
        self.left_out.push(LeftOut {
            address: address.to_string(),
            count: 1,
            why: why.to_owned(),
        });
    }
}

/// Said before it is tried: the cloud would refuse to delete this instance.
pub(super) fn protected(
    inputs: &Inputs<'_>,
    address: &Address,
    before: &InstanceView,
    what: &str,
) -> Option<Diagnostic> {
    let name = inputs.rules.protection(&before.spec.args)?;
    // One for all slots of the group: the same finding is kept once.
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

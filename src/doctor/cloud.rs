//! Compares the record with the cloud.
//!
//! In: a plan, the observation, and the record. Out: findings, and a repair plan that makes the
//! record match the cloud and changes nothing else. Must not: query the cloud.
//!
//! The repair plan takes the adopt, forget and leftover-delete changes from the plan; it never
//! changes a group. It skips instances with an open intent, since the next apply settles that
//! first.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use nstance_state::Snapshot;

use super::{Check, Examination, Finding, Severity};
use crate::address::{Address, GroupName};
use crate::diagnostic::Diagnostics;
use crate::diagnostic::counted;
use crate::plan::change::{
    Action, AttributeChange, Change, Deletions, Drift, DriftKind, DriftedAttribute, InstanceView,
    Mode, Plan, PlannedGroup, Reason, RecordAttributes, Summary,
};
use crate::plan::drift::{STATE, body_from};
use crate::plan::inputs::{Options, new_instance_id};
use crate::provider::Observation;
use crate::refresh::Observed;
use crate::sensitivity::Marks;
use crate::spec::SpecBody;

/// The inputs of the comparison.
pub struct Compared<'a> {
    /// The plan of the whole configuration.
    pub plan: &'a Plan,
    /// The snapshot that the plan is based on.
    pub snapshot: Option<&'a Snapshot>,
    /// The observation.
    pub observed: &'a Observed,
    /// The selection.
    pub options: &'a Options,
    /// Whether another process is running; then no repair is proposed.
    pub is_busy: bool,
}

/// Compares them.
pub fn examine(compared: &Compared<'_>) -> Examination {
    let mut repair = Repair {
        compared,
        open: compared
            .snapshot
            .iter()
            .flat_map(|snapshot| &snapshot.intents)
            .map(|intent| intent.address.as_str())
            .collect(),
        changes: Vec::new(),
        findings: Vec::new(),
        drifted: 0,
        unsettled: 0,
    };
    for drift in &compared.plan.drift {
        repair.drift(drift);
    }
    repair.deposed();
    repair.nameless();
    let mut examination = Examination::default();
    let count = counted(compared.observed.count(), "instance");
    let wrong = repair
        .findings
        .iter()
        .filter(|finding| finding.severity != Severity::Note)
        .count();
    let open = match repair.unsettled {
        0 => String::new(),
        open => format!(", {open} left open by an apply"),
    };
    let how = match wrong {
        0 => ", as recorded".to_owned(),
        wrong => format!(", {wrong} not as recorded"),
    };
    let how = if wrong == 0 && !open.is_empty() {
        ""
    } else {
        &how
    };
    let cloud = &compared.plan.provider_name;
    examination.say(Check::Cloud, format!("{count} of {cloud}{how}{open}"));
    if repair.drifted > 0 {
        let drifted = counted(repair.drifted, "instance");
        repair.findings.push(
            Finding::new(
                Check::Cloud,
                Severity::Note,
                "drift",
                format!("{drifted} changed outside nstance"),
                "they are known and ours, but not as they were made",
            )
            .advise("See what changed: nstance drift"),
        );
    }
    let plan = repair.plan();
    examination.findings = repair.findings;
    examination.findings.sort_by_key(|finding| finding.severity);
    examination.repair = plan;
    examination
}

/// The result if the cloud couldn't be queried.
pub fn unasked(reasons: Diagnostics) -> Examination {
    let mut examination = Examination::default();
    examination.say(Check::Cloud, "it couldn't be asked");
    for reason in reasons {
        let mut finding = Finding::new(
            Check::Cloud,
            Severity::Error,
            "unasked",
            reason.summary,
            "record and cloud couldn't be compared; check the credentials, and that it can be reached",
        );
        finding.advice = reason.hints;
        examination.findings.push(finding);
    }
    examination
}

/// The result if there is no record.
pub fn skipped() -> Examination {
    let mut examination = Examination::default();
    examination.say(Check::Cloud, "not compared, since the record can't be read");
    examination
}

struct Repair<'a> {
    compared: &'a Compared<'a>,
    /// Addresses with open intents.
    open: HashSet<&'a str>,
    changes: Vec<Change>,
    findings: Vec<Finding>,
    /// The number of instances with drift that this command doesn't repair.
    drifted: usize,
    /// The number of instances whose record depends on an open intent.
    unsettled: usize,
}

impl Repair<'_> {
    /// Adds a change to the repair plan; returns its action, or `None` if its address is excluded.
    fn propose(&mut self, change: Change) -> Option<Action> {
        let action = change.action;
        let address = change.address.to_string();
        let selected = self.compared.options.selects(&change.address);
        if self.compared.is_busy || self.open.contains(address.as_str()) || !selected {
            return None;
        }
        self.changes.push(change);
        Some(action)
    }

    /// The plan's change of an instance.
    fn planned(&self, is_it: impl Fn(&Change) -> bool) -> Option<Change> {
        self.compared
            .plan
            .changes
            .iter()
            .find(|change| is_it(change))
            .cloned()
    }

    fn drift(&mut self, drift: &Drift) {
        let id = drift.provider_id.as_str();
        // The finding about the journal covers it.
        if self.open.contains(drift.address.as_str()) && drift.kind != DriftKind::Changed {
            self.unsettled += 1;
            return;
        }
        match drift.kind {
            DriftKind::Unknown => self.orphan(drift),
            DriftKind::Missing => self.missing(drift),
            DriftKind::Duplicate => self.duplicate(drift),
            DriftKind::Changed => {
                let rules = self.compared.plan.rules();
                let is_managed = |path: &str| {
                    path.strip_prefix("tags.")
                        .is_some_and(|key| rules.is_managed_tag(key))
                };
                if drift.changes.iter().any(|change| is_managed(&change.path)) {
                    self.stripped(drift);
                } else if drift.changes.iter().any(|change| change.path == STATE) {
                    self.findings.push(
                        Finding::new(
                            Check::Cloud,
                            Severity::Note,
                            "stopped",
                            format!("{} doesn't run: {id}", drift.address),
                            "it is recorded and there, but stopped",
                        )
                        .about(&drift.address, Some(id))
                        .advise("The next apply starts it"),
                    );
                } else {
                    self.drifted += 1;
                }
            }
        }
    }

    /// An instance with this shard's tags that has no record.
    fn orphan(&mut self, drift: &Drift) {
        let id = drift.provider_id.as_str();
        let adoption = self.planned(|change| {
            change.action == Action::Adopt && change.importing.as_deref() == Some(id)
        });
        let action = adoption.and_then(|change| self.propose(change));
        let finding = Finding::new(
            Check::Cloud,
            Severity::Warning,
            "orphan",
            format!("{id} isn't recorded, and carries the tags of {}", drift.address),
            "it was made by an apply whose record is lost, or forgotten by hand: it runs and costs, and nothing looks after it",
        )
        .about(&drift.address, Some(id))
        .repaired_by(action);
        self.findings.push(if action.is_some() {
            finding
        } else {
            finding.advise(format!("Record it: nstance import {} {id}", drift.address))
        });
    }

    /// A recorded instance that doesn't exist.
    fn missing(&mut self, drift: &Drift) {
        let id = drift.provider_id.as_str();
        let own = |change: &Change| {
            change
                .before
                .as_deref()
                .is_some_and(|before| before.provider_id.as_deref() == Some(id))
        };
        // The plan may replace it, but only an apply creates instances.
        let forget = |address| Change::new(address, Action::Forget, vec![Reason::Missing]);
        let forgetting = self.planned(own).map(|change| Change {
            deposed: change.deposed,
            before: change.before,
            drain_timeout_ms: change.drain_timeout_ms,
            ..forget(change.address)
        });
        let forgetting = forgetting.or_else(|| {
            Some(Change {
                before: drift.before.clone(),
                ..forget(drift.address.parse().ok()?)
            })
        });
        let action = forgetting.and_then(|change| self.propose(change));
        self.findings.push(
            Finding::new(
                Check::Cloud,
                Severity::Warning,
                "missing",
                format!("{} is recorded as {id}, which isn't there", drift.address),
                "it was deleted by someone else; the next apply makes a new one if the slot is wanted",
            )
            .about(&drift.address, Some(id))
            .repaired_by(action),
        );
    }

    /// An instance that claims another's slot.
    fn duplicate(&mut self, drift: &Drift) {
        let id = drift.provider_id.as_str();
        let unrecorded = &self.compared.observed.unrecorded;
        let observation = unrecorded
            .iter()
            .find(|instance| instance.provider_id == id);
        let address: Option<Address> = drift.address.parse().ok();
        let deletion = observation
            .zip(address)
            .and_then(|(observation, address)| self.deletion(&address, observation));
        let action = deletion.and_then(|change| self.propose(change));
        self.findings.push(
            Finding::new(
                Check::Cloud,
                Severity::Warning,
                "duplicate",
                format!("{id} claims {}, which another instance has", drift.address),
                "it is a copy with its original's tags, or was made twice: it runs and costs, and nothing looks after it",
            )
            .about(&drift.address, Some(id))
            .repaired_by(action)
            .advise("If it is the one to keep, record it in a slot of its own: nstance import ADDR PROVIDER_ID"),
        );
    }

    /// Deletes an unrecorded instance. It gets a new instance id, since the one in its tags may be
    /// its original's, whose record must remain.
    fn deletion(&self, address: &Address, observation: &Observation) -> Option<Change> {
        let plan = self.compared.plan;
        let attributes = observation.attributes().ok()?;
        let kind = observation
            .instance_id
            .as_deref()
            .and_then(|id| id.get(..3))
            .unwrap_or("ins");
        let body = body_from(&attributes, &SpecBody::empty(kind), plan.rules());
        let generation = self.compared.snapshot.map_or(0, |snapshot| {
            snapshot.generation(address.group.as_str(), address.slot)
        });
        let whose = format!("{} {}", plan.lineage, observation.provider_id);
        let instance_id = new_instance_id(kind, plan.created_at, &whose, address, generation);
        let mut before =
            InstanceView::unrecorded(observation, instance_id.as_str().into(), generation, body);
        if plan.holds_secrets() {
            // Without a record it isn't known what is sensitive, so mask everything.
            before.marks = Arc::new(Marks::whole());
        }
        Some(Change {
            deposed: Some(observation.provider_id.clone()),
            before: Some(Box::new(before)),
            ..Change::new(address.clone(), Action::Delete, vec![Reason::Duplicate])
        })
    }

    /// An instance that lost ownership tags.
    fn stripped(&mut self, drift: &Drift) {
        let id = drift.provider_id.as_str();
        // An update sends all tags, so report all that differ.
        let tags = drift.changes.iter();
        let attributes: Vec<AttributeChange> = tags
            .filter(|change| change.path.starts_with("tags."))
            .map(DriftedAttribute::undo)
            .collect();
        let names: Vec<&str> = attributes
            .iter()
            .filter_map(|attribute| attribute.path.strip_prefix("tags."))
            .collect();
        let summary = format!(
            "{} has lost tags of its own: {}",
            drift.address,
            names.join(", ")
        );
        let update =
            drift
                .address
                .parse()
                .ok()
                .zip(drift.before.clone())
                .map(|(address, before)| Change {
                    after: Some(before.clone()),
                    before: Some(before),
                    attributes,
                    ..Change::new(address, Action::Update, vec![Reason::Drifted])
                });
        let action = update.and_then(|change| self.propose(change));
        self.findings.push(
            Finding::new(
                Check::Cloud,
                Severity::Warning,
                "tags",
                summary,
                "by its tags an instance is found when the record is lost, or an apply was interrupted: without them it would be lost too",
            )
            .about(&drift.address, Some(id))
            .repaired_by(action),
        );
    }

    /// Deposed instances, whose successors were created.
    fn deposed(&mut self) {
        let left: Vec<Change> = self
            .compared
            .plan
            .changes
            .iter()
            .filter(|change| change.action == Action::Delete && change.deposed.is_some())
            .cloned()
            .collect();
        for change in left {
            let address = change.address.clone();
            let id = change.deposed.clone().unwrap_or_default();
            let action = self.propose(change);
            self.findings.push(
                Finding::new(
                    Check::Cloud,
                    Severity::Warning,
                    "deposed",
                    format!("{id} of {address} is still there after its successor was made"),
                    "an apply could not delete it, or was interrupted; the next one does",
                )
                .about(&address, Some(&id))
                .repaired_by(action),
            );
        }
    }

    /// Instances whose tags name an owner but no slot.
    fn nameless(&mut self) {
        for instance in &self.compared.observed.unrecorded {
            let group = instance.group.as_deref();
            let is_named = group.is_some_and(|group| group.parse::<GroupName>().is_ok());
            if is_named && instance.slot.is_some() {
                continue;
            }
            let id = instance.provider_id.as_str();
            let mut finding = Finding::new(
                Check::Cloud,
                Severity::Warning,
                "nameless",
                format!("{id} carries this shard's tags, but they name no group and slot"),
                "tags were removed or written by hand: what it is for can't be told, so no plan touches it",
            )
            .advise(format!("Record it where it belongs: nstance import ADDR {id}"))
            .advise("Or remove the tags that make it this shard's");
            finding.provider_id = Some(id.to_owned());
            self.findings.push(finding);
        }
    }

    /// The repair plan.
    fn plan(&mut self) -> Option<Plan> {
        if self.changes.is_empty() {
            return None;
        }
        let plan = self.compared.plan;
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_by(|a, b| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed)));
        let mut summary = Summary::default();
        for change in &changes {
            summary.count(change.action);
        }
        let changed: BTreeSet<String> = changes
            .iter()
            .map(|change| change.address.group.to_string())
            .collect();
        let protected: BTreeSet<String> = changes
            .iter()
            .filter(|change| change.action == Action::Delete && self.is_protected(&change.address))
            .map(|change| change.address.group.to_string())
            .collect();
        Some(Plan {
            mode: Mode::Normal,
            cluster: plan.cluster.clone(),
            shard: plan.shard.clone(),
            provider: plan.provider.clone(),
            rules: plan.rules,
            provider_name: plan.provider_name.clone(),
            lineage: plan.lineage.clone(),
            serial: plan.serial,
            new_state: plan.new_state,
            read_from: Vec::new(),
            created_at: plan.created_at,
            target: String::new(),
            last_good: BTreeMap::new(),
            late: BTreeMap::new(),
            manifest: None,
            images: BTreeMap::new(),
            changes,
            held_back: Vec::new(),
            unchanged: Vec::new(),
            drift: Vec::new(),
            of_server: Vec::new(),
            summary,
            left_out: Vec::new(),
            deletions: Deletions {
                protected: protected.into_iter().collect(),
                by_group: BTreeMap::new(),
                ..plan.deletions.clone()
            },
            sizes: plan.sizes.clone(),
            // The changes don't depend on each other.
            groups: changed
                .into_iter()
                .map(|name| PlannedGroup {
                    name,
                    after: Vec::new(),
                    config_hash: String::new(),
                    rollout: None,
                })
                .collect(),
        })
    }

    /// Whether the record of the slot's instance marks its group as protected.
    fn is_protected(&self, address: &Address) -> bool {
        let live = self
            .compared
            .snapshot
            .and_then(|snapshot| snapshot.live(address.group.as_str(), address.slot));
        live.is_some_and(|record| RecordAttributes::parse(&record.attributes).protected)
    }
}

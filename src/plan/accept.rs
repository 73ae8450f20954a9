//! Marks the drift that the configuration accepts.
//!
//! In: a [`Plan`] and `accept`. Out: the plan with its drift marked, and the changes that only undo
//! accepted drift. Must not: change what apply would do.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::change::{Action, Change, Drift, Plan, Reason, Summary};
use super::diff::covers;
use crate::address::Address;
use crate::config::model::Acceptance;
use crate::config::source::SourceMap;

/// An item of `accept`, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedBecause {
    /// `reason`
    pub reason: String,
    /// `until`, as written.
    pub until: Option<String>,
    /// `file:line:column`
    pub written_at: String,
}

impl AcceptedBecause {
    fn of(acceptance: &Acceptance, sources: &SourceMap) -> Self {
        let until = acceptance.until.as_ref();
        Self {
            reason: acceptance.reason.to_string(),
            until: until.map(|until| until.text.to_string()),
            written_at: sources.place(acceptance.span),
        }
    }

    /// As in JSON.
    pub fn to_json(&self) -> Value {
        json!({"reason": self.reason, "until": self.until, "written_at": self.written_at})
    }
}

/// Marks drift that `accept` covers at the time of the plan, and drift whose acceptance has ended.
pub fn accept(plan: &mut Plan, acceptances: &[Acceptance], sources: &SourceMap) {
    let now = plan.created_at;
    for drift in &mut plan.drift {
        // `ignore_changes` covers it already, or its tags are invalid.
        let (false, Ok(address)) = (drift.accepted, drift.address.parse::<Address>()) else {
            continue;
        };
        let about = acceptances.iter();
        let about = about.filter(|acceptance| acceptance.address.matches(&address));
        let (valid, ended): (Vec<_>, Vec<_>) = about.partition(|acceptance| {
            let until = acceptance.until.as_ref();
            until.is_none_or(|until| now < until.end)
        });
        let used = |from: &[&Acceptance]| -> Vec<AcceptedBecause> {
            let used = from.iter().filter(|acceptance| match &acceptance.path {
                None => true,
                Some(path) => drift.changes.iter().any(|it| covers(path, &it.path)),
            });
            used.map(|acceptance| AcceptedBecause::of(acceptance, sources))
                .collect()
        };
        let accepted = if valid.iter().any(|acceptance| acceptance.path.is_none()) {
            true
        } else {
            // A missing instance is more than a difference of its attributes.
            drift.is_changed()
                && drift.changes.iter().all(|change| {
                    let mut paths = valid.iter().filter_map(|it| it.path.as_deref());
                    change.ignored || paths.any(|path| covers(path, &change.path))
                })
        };
        drift.expired = if accepted { Vec::new() } else { used(&ended) };
        drift.accepted_because = if accepted { used(&valid) } else { Vec::new() };
        drift.accepted = accepted;
    }
}

/// The counts of the changes that are drift from the configuration.
pub fn counted(plan: &Plan) -> Summary {
    if plan.drift.iter().all(|it| it.accepted_because.is_empty()) {
        return plan.summary;
    }
    let undoing = Undoing::of(plan);
    let held_back = plan.held_back.iter();
    let mut summary = Summary {
        no_op: plan.summary.no_op,
        held_back: held_back.filter(|it| !undoing.is_all_of(it)).count(),
        ..Summary::default()
    };
    for change in plan.changes.iter().filter(|it| !undoing.is_all_of(it)) {
        summary.count(change.action);
    }
    summary
}

/// The changes that are drift from the configuration: all but those that only undo accepted drift.
pub fn counted_changes(plan: &Plan) -> Vec<Change> {
    let undoing = Undoing::of(plan);
    let changes = plan.changes.iter();
    changes
        .filter(|it| !undoing.is_all_of(it))
        .cloned()
        .collect()
}

/// What undoes accepted drift.
struct Undoing<'p>(HashMap<&'p str, &'p Drift>);

impl<'p> Undoing<'p> {
    fn of(plan: &'p Plan) -> Self {
        let accepted = plan.drift.iter();
        let accepted = accepted.filter(|drift| !drift.accepted_because.is_empty());
        Self(
            accepted
                .map(|drift| (drift.address.as_str(), drift))
                .collect(),
        )
    }

    /// Whether a change does no more.
    fn is_all_of(&self, change: &Change) -> bool {
        let drift = self.0.get(change.address.to_string().as_str());
        drift.is_some_and(|drift| undoes(change, drift))
    }
}

/// Whether a change does no more than undo a drift.
fn undoes(change: &Change, drift: &Drift) -> bool {
    match change.action {
        Action::Create | Action::Forget => change.reasons.contains(&Reason::Missing),
        Action::Adopt => change.reasons.contains(&Reason::Unrecorded),
        Action::Update | Action::CreateThenDelete | Action::DeleteThenCreate => {
            let mut attributes = change.attributes.iter();
            !change.attributes.is_empty()
                && attributes.all(|attribute| {
                    let mut drifted = drift.changes.iter();
                    drifted.any(|it| covers(&it.path, &attribute.path))
                })
        }
        Action::Delete | Action::NoOp => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::config::model::Deadline;
    use crate::config::source::{SourceMap, Span};
    use crate::plan::change::DriftKind;
    use crate::report::testing::{drift, empty, now};

    fn acceptance(sources: &mut SourceMap, address: &str, path: &str, end: i64) -> Acceptance {
        Acceptance {
            address: address.parse().unwrap(),
            path: (!path.is_empty()).then(|| path.into()),
            reason: "known".into(),
            until: (end != 0).then(|| Deadline {
                text: "a day".into(),
                end: Timestamp(end),
            }),
            span: Span {
                source: sources.add("a.jsonc", "x"),
                start: 0,
                end: 1,
            },
        }
    }

    #[test]
    fn drift_is_accepted_by_address_path_and_date() {
        use DriftKind::{Changed, Missing};
        let now = now().0;
        // The attributes that drift: state, tags.Owner, tags.cost.centre.
        for (kind, acceptances, accepted, expired) in [
            (Changed, &[("default/web", "", 0)][..], true, 0),
            (Changed, &[("default/web/3", "", 0)], true, 0),
            (Changed, &[("default/web/2", "", 0)], false, 0),
            (Changed, &[("default/db", "", 0)], false, 0),
            (Changed, &[("default/web", "tags", 0)], false, 0),
            (
                Changed,
                &[("default/web", "tags", 0), ("default/web/3", "state", 0)],
                true,
                0,
            ),
            (Changed, &[("default/web", "", now)], false, 1),
            (Changed, &[("default/web", "", now + 1)], true, 0),
            (
                Changed,
                &[("default/web", "", now), ("default/web", "tags", now)],
                false,
                2,
            ),
            (Missing, &[("default/web", "state", 0)], false, 0),
            (Missing, &[("default/web", "", 0)], true, 0),
        ] {
            let mut sources = SourceMap::default();
            let acceptances: Vec<_> = acceptances
                .iter()
                .map(|(address, path, end)| acceptance(&mut sources, address, path, *end))
                .collect();
            let mut plan = empty();
            plan.drift.push(drift("default/web", 3, kind));
            accept(&mut plan, &acceptances, &sources);
            let found = &plan.drift[0];
            assert_eq!(found.accepted, accepted, "{acceptances:#?}");
            assert_eq!(found.expired.len(), expired, "{acceptances:#?}");
            assert_eq!(found.accepted_because.is_empty(), !accepted);
        }
    }
}

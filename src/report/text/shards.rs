//! Headings and totals of a run over several shards.
//!
//! In: names and counts of each. Out: headings and totals. Must not: show instances.

use super::paint::Style;
use crate::diagnostic::counted;
use crate::plan::change::Summary;
use crate::report::events::{Done, done_counts, planned_counts};

/// The heading of a shard's text.
pub fn heading(cluster: &str, shard: &str, style: Style<'_>) -> String {
    style.bold(&format!("Shard {shard} of cluster {cluster}"))
}

/// The last line of a plan of several shards: the sum over shards that could be planned.
pub fn plan_total(plans: &[Option<Summary>], style: Style<'_>) -> String {
    let all = plans.len();
    let mut sum = Summary::default();
    for summary in plans.iter().flatten() {
        sum.add(summary);
    }
    let changing = plans
        .iter()
        .flatten()
        .filter(|summary| summary.has_changes())
        .count();
    let failed = plans.iter().filter(|plan| plan.is_none()).count();
    let shards = counted(all, "shard");
    let mut line = if changing > 0 {
        format!(
            "{} {} in {changing} of {shards}.",
            style.bold("Total:"),
            planned_counts(&sum)
        )
    } else if failed == all {
        style.danger("Planning failed.")
    } else {
        let planned = counted(all - failed, "shard");
        format!("{} {planned} planned.", style.success("No changes."))
    };
    if failed > 0 {
        line.push_str(&format!(
            " {} could not be planned.",
            counted(failed, "shard")
        ));
    }
    line
}

/// The last line of `drift` over several shards; `None` for one that wasn't examined.
pub fn drift_total(shards: &[(String, Option<bool>)], style: Style<'_>) -> String {
    let drifted: Vec<&str> = shards
        .iter()
        .filter(|(_, drifted)| *drifted == Some(true))
        .map(|(name, _)| name.as_str())
        .collect();
    let unseen = shards
        .iter()
        .filter(|(_, drifted)| drifted.is_none())
        .count();
    let all = counted(shards.len(), "shard");
    let mut line = if !drifted.is_empty() {
        format!(
            "{} {} of {all}: {}.",
            style.bold("Drift in"),
            drifted.len(),
            drifted.join(", ")
        )
    } else if unseen == shards.len() {
        style.danger("No shard could be looked at.")
    } else {
        format!("{} {all} looked at.", style.success("No drift."))
    };
    if unseen > 0 && unseen < shards.len() {
        line.push_str(&format!(
            " {} could not be looked at.",
            counted(unseen, "shard")
        ));
    }
    line
}

/// The outcome of an apply in one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardEnd {
    /// There were no changes.
    Unchanged,
    /// All changes were done.
    Done,
    /// A change, the state or the cloud failed.
    Failed,
    /// Its rollout waits.
    Waiting,
    /// A signal interrupted it.
    Interrupted,
    /// It wasn't started.
    NotTried,
}

impl ShardEnd {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
            Self::NotTried => "not_tried",
        }
    }
}

/// The outcomes of all shards, with counts if known.
pub fn ends(shards: &[(String, ShardEnd, Option<Done>)], style: Style<'_>) -> String {
    let width = shards
        .iter()
        .map(|(name, ..)| name.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = format!("{}\n", style.bold("Shards:"));
    for (name, end, done) in shards {
        let word = &end.as_str().replace('_', " ");
        let word = match end {
            ShardEnd::Done | ShardEnd::Unchanged => style.success(word),
            ShardEnd::Failed => style.danger(word),
            ShardEnd::Waiting | ShardEnd::Interrupted | ShardEnd::NotTried => style.warning(word),
        };
        text.push_str(&format!("    {name:width$}  {word}"));
        let begun = !matches!(end, ShardEnd::Unchanged | ShardEnd::NotTried);
        if let Some(done) = done.filter(|_| begun) {
            text.push_str(&format!(": {}", done_counts(done)));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::report::text::Signs;

    const PLAIN: Style<'_> = Style {
        color: false,
        width: 100,
        shard: None,
        signs: Signs::Indented,
    };

    fn summary(create: usize, delete: usize) -> Summary {
        Summary {
            create,
            delete,
            ..Summary::default()
        }
    }

    #[test]
    fn a_total_says_how_many_shards_change_and_how_many_failed() {
        for (plans, expected) in [
            (
                vec![
                    Some(summary(2, 0)),
                    Some(summary(1, 3)),
                    Some(summary(0, 0)),
                ],
                "Total: 3 to add, 0 to change, 3 to destroy in 2 of 3 shards.",
            ),
            (
                vec![Some(summary(2, 0)), None],
                "Total: 2 to add, 0 to change, 0 to destroy in 1 of 2 shards. 1 shard could not be planned.",
            ),
            (
                vec![Some(summary(0, 0)), Some(summary(0, 0))],
                "No changes. 2 shards planned.",
            ),
            (
                vec![Some(summary(0, 0)), None, None],
                "No changes. 1 shard planned. 2 shards could not be planned.",
            ),
            (
                vec![None, None],
                "Planning failed. 2 shards could not be planned.",
            ),
        ] {
            assert_eq!(plan_total(&plans, PLAIN), expected);
        }
    }

    #[test]
    fn a_drift_total_names_the_shards() {
        let named = |ends: &[Option<bool>]| -> Vec<(String, Option<bool>)> {
            ["a", "b", "c"]
                .map(str::to_owned)
                .into_iter()
                .zip(ends.iter().copied())
                .collect()
        };
        for (ends, expected) in [
            (
                &[Some(true), Some(false), Some(true)],
                "Drift in 2 of 3 shards: a, c.",
            ),
            (
                &[Some(false), Some(false), Some(false)],
                "No drift. 3 shards looked at.",
            ),
            (
                &[Some(true), None, Some(false)],
                "Drift in 1 of 3 shards: a. 1 shard could not be looked at.",
            ),
            (&[None, None, None], "No shard could be looked at."),
        ] {
            assert_eq!(drift_total(&named(ends), PLAIN), expected);
        }
    }

    #[test]
    fn an_ending_says_of_each_shard_what_came_of_it() {
        let done = Done {
            added: 3,
            ..Done::default()
        };
        let shards = [
            ("us-west-2a".to_owned(), ShardEnd::Done, Some(done)),
            ("b".to_owned(), ShardEnd::Failed, Some(Done::default())),
            ("c".to_owned(), ShardEnd::Unchanged, Some(Done::default())),
            ("d".to_owned(), ShardEnd::NotTried, Some(Done::default())),
            ("e".to_owned(), ShardEnd::Failed, None),
        ];
        insta::assert_snapshot!(ends(&shards, PLAIN), @r"
        Shards:
            us-west-2a  done: 3 added, 0 changed, 0 destroyed
            b           failed: 0 added, 0 changed, 0 destroyed
            c           unchanged
            d           not tried
            e           failed
        ");
    }
}

//! Checks whether the user permitted what a plan requires.
//!
//! In: a plan and the options. Out: a failure that names the missing option. Must not: prompt.

use clap::Args;

use super::failure::Failure;
use super::selection::{AllowedGroups, Selection};
use super::session::Session;
use crate::address::InShard;
use crate::diagnostic::{Diagnostic, counted};
use crate::plan::change::{Allowance, Plan, Refusal};

/// What apply may do without asking.
#[derive(Debug, Args)]
pub struct Approval {
    /// Apply without a prompt
    #[arg(long)]
    pub auto_approve: bool,
    /// Allow deletions beyond the budget or in a protected group
    ///
    /// May repeat. `all` allows every group.
    #[arg(long, value_name = "GROUP|all")]
    pub allow_delete: Vec<InShard<AllowedGroups>>,
    /// Apply incomplete plans, and the other shards if one fails
    #[arg(long)]
    pub continue_on_error: bool,
}

/// Fails if a saved plan is stale; names the rows that changed.
pub fn refuse_stale(moved: &[String]) -> Result<(), Failure> {
    if moved.is_empty() {
        return Ok(());
    }
    let shown: Vec<_> = moved.iter().take(10).cloned().collect();
    let more = moved.len().saturating_sub(shown.len());
    let mut detail = shown.join("\n");
    if more > 0 {
        detail.push_str(&format!("\nand {more} more"));
    }
    Err(Failure::new(
        Diagnostic::error("the saved plan is stale: the state has moved on since it was made")
            .detail(detail)
            .hint("Make a new plan and look at it: nstance plan --out FILE"),
    ))
}

/// Fails if the plan requires an option that wasn't given.
pub fn refuse(
    session: &Session<'_>,
    plan: &Plan,
    approval: &Approval,
    chosen: &Selection,
) -> Result<(), Failure> {
    let allowance = Allowance {
        deletes: &|group| chosen.allows_delete(group),
        incomplete: approval.continue_on_error,
    };
    let allow = |group: &str| format!("Allow it: --allow-delete {}", session.name(group));
    let deletions = &plan.deletions;
    let finding = match plan.refusal(&allowance) {
        None => return Ok(()),
        Some(Refusal::Incomplete) => {
            let names: Vec<_> = plan
                .left_out
                .iter()
                .map(|left| {
                    let address = session.name(&left.address);
                    format!("{address} ({}): {}", left.count, left.why)
                })
                .collect();
            Diagnostic::error("the plan leaves something out, so it isn't applied")
                .detail(names.join("\n"))
                .hint("Fix that, or apply the rest with --continue-on-error")
        }
        Some(Refusal::Protected(groups)) => {
            let names = groups
                .iter()
                .map(|group| format!("`{}`", session.name(group)));
            let names: Vec<_> = names.collect();
            Diagnostic::error(format!(
                "instances of a protected group would be deleted: {}",
                names.join(", ")
            ))
            .hint(allow(groups[0]))
        }
        Some(Refusal::OverBudget(budgeted)) => Diagnostic::error(format!(
            "{} would be deleted, which is more than the destroy budget allows",
            counted(budgeted, "instance")
        ))
        .detail(format!(
            "the budget is {} or {} percent of the {} recorded, whichever is more",
            counted(deletions.budget_count as usize, "instance"),
            deletions.budget_percent,
            deletions.recorded
        ))
        .hint(allow(
            deletions
                .by_group
                .keys()
                .next()
                .map_or("all", String::as_str),
        ))
        .hint("Or raise `destroy_budget` in the configuration"),
    };
    Err(finding.into())
}

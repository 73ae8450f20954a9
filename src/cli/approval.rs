//! What an apply may do: what the user allowed, and what a plan asks for.
//!
//! In: a plan and the options. Out: a failure that says what to allow. May not: ask.

use clap::Args;

use super::failure::Failure;
use super::selection::Deletable;
use super::session::Session;
use crate::address::InShard;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::fault_injection::Sabotage;
use crate::plan::change::{Mode, Plan};

/// What apply may do without asking.
#[derive(Debug, Args)]
pub struct Consent {
    /// Don't ask before applying
    #[arg(long)]
    pub auto_approve: bool,
    /// Allow deletions beyond the destroy budget and in protected groups: a group, or `all`; may
    /// repeat
    #[arg(long, value_name = "GROUP|all")]
    pub allow_delete: Vec<InShard<Deletable>>,
    /// Apply the rest of a plan that had to leave something out, and the other shards where one
    /// fails
    #[arg(long)]
    pub continue_on_error: bool,
}

/// Refuses a saved plan whose rows have moved on, and names them.
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

/// Refuses what the user didn't allow.
pub fn refuse(
    session: &Session<'_>,
    plan: &Plan,
    consent: &Consent,
    allow_delete: &[Deletable],
) -> Result<(), Failure> {
    if plan.errored() && !consent.continue_on_error {
        let mut findings = Diagnostics::default();
        let names: Vec<_> = plan
            .left_out
            .iter()
            .map(|left| {
                let address = session.name(&left.address);
                format!("{address} ({}): {}", left.count, left.why)
            })
            .collect();
        findings.push(
            Diagnostic::error("the plan leaves something out, so it isn't applied")
                .detail(names.join("\n"))
                .hint("Mend that, or apply the rest with --continue-on-error"),
        );
        return Err(findings.into());
    }
    let allowed = |group: &str| allow_delete.iter().any(|allowed| allowed.covers(group));
    let deletions = &plan.deletions;
    let protected: Vec<_> = deletions
        .protected
        .iter()
        .filter(|group| !allowed(group))
        .collect();
    // A destroy that asks has its prompt; one that doesn't still spares what is protected.
    let exempt = plan.mode == Mode::Destroy && !consent.auto_approve;
    if !protected.is_empty() && !exempt {
        let names: Vec<_> = protected
            .iter()
            .map(|group| format!("`{}`", session.name(group)))
            .collect();
        return Err(Failure::new(
            Diagnostic::error(format!(
                "instances of a protected group would be deleted: {}",
                names.join(", ")
            ))
            .hint(format!(
                "Allow it: --allow-delete {}",
                session.name(protected[0])
            )),
        ));
    }
    if let Some(budgeted) = deletions.forbidden(plan.mode, allowed, Sabotage::None) {
        return Err(Failure::new(
            Diagnostic::error(format!(
                "{budgeted} instances would be deleted, which is more than the destroy budget allows"
            ))
            .detail(format!(
                "the budget is {} instances or {} percent of the {} recorded, whichever is more",
                deletions.budget_count, deletions.budget_percent, deletions.recorded
            ))
            .hint(format!(
                "Allow it: --allow-delete {}",
                session.name(deletions.by_group.keys().next().map_or("all", |group| group.as_str()))
            ))
            .hint("Or raise `destroy_budget` in the configuration"),
        ));
    }
    Ok(())
}

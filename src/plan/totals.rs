//! What a plan amounts to: how many of each action, what it leaves out, what it may delete.
//!
//! In: nothing (data only). Out: counts. May not: decide anything but whether a budget is exceeded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::change::{Action, Mode};
use crate::fault_injection::Sabotage;

/// How many of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Created.
    pub create: usize,
    /// Changed in place.
    pub update: usize,
    /// Replaced.
    pub replace: usize,
    /// Deleted.
    pub delete: usize,
    /// Recorded.
    pub adopt: usize,
    /// Dropped from the record.
    pub forget: usize,
    /// Left as they are.
    pub no_op: usize,
}

impl Summary {
    /// Counts one.
    pub fn count(&mut self, action: Action) {
        match action {
            Action::Create => self.create += 1,
            Action::Update => self.update += 1,
            Action::CreateThenDelete | Action::DeleteThenCreate => self.replace += 1,
            Action::Delete => self.delete += 1,
            Action::Adopt => self.adopt += 1,
            Action::Forget => self.forget += 1,
            Action::NoOp => self.no_op += 1,
        }
    }

    /// Counts what another plan has.
    pub fn add(&mut self, other: &Self) {
        self.create += other.create;
        self.update += other.update;
        self.replace += other.replace;
        self.delete += other.delete;
        self.adopt += other.adopt;
        self.forget += other.forget;
        self.no_op += other.no_op;
    }

    /// What Terraform's line calls "to add": a replacement counts here and as destroyed.
    pub fn added(&self) -> usize {
        self.create + self.replace
    }

    /// What Terraform's line calls "to destroy".
    pub fn destroyed(&self) -> usize {
        self.delete + self.replace
    }

    /// Whether anything but no-op is planned.
    pub fn has_changes(&self) -> bool {
        self.create + self.update + self.replace + self.delete + self.adopt + self.forget > 0
    }
}

/// Instances that could not be planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// `tenant/group`, or one slot of it.
    pub address: String,
    /// How many instances.
    pub count: usize,
    /// Why.
    pub why: String,
}

/// Deletions against the destroy budget and protected groups.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deletions {
    /// Deletions by group (replacements aside).
    pub by_group: BTreeMap<String, usize>,
    /// Recorded instances.
    pub recorded: usize,
    /// `destroy_budget.count`
    pub budget_count: u32,
    /// `destroy_budget.percent`
    pub budget_percent: u32,
    /// Protected groups that lose instances.
    pub protected: Vec<String>,
}

impl Deletions {
    /// All deletions.
    pub fn total(&self) -> usize {
        self.by_group.values().sum()
    }

    /// Whether there are more than both limits of the budget.
    pub fn exceeds_budget(&self) -> bool {
        self.exceeds(self.total())
    }

    /// How many deletions the budget forbids to apply, those of `allowed` groups aside: all or
    /// none. A destroy is exempt: deletions are what it is for.
    pub fn forbidden(
        &self,
        mode: Mode,
        allowed: impl Fn(&str) -> bool,
        sabotage: Sabotage,
    ) -> Option<usize> {
        let groups = self.by_group.iter();
        let budgeted: usize = groups
            .filter(|(group, _)| !allowed(group))
            .map(|(_, count)| count)
            .sum();
        let is_bound = mode != Mode::Destroy && sabotage != Sabotage::NoBudget;
        (is_bound && self.exceeds(budgeted)).then_some(budgeted)
    }

    /// Whether that many deletions are more than both limits of the budget.
    fn exceeds(&self, count: usize) -> bool {
        count > self.budget_count as usize
            && count * 100 > self.budget_percent as usize * self.recorded
    }
}

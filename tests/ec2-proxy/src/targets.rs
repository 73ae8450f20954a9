//! The health of targets: moto has every running target as `healthy` at once.
//!
//! In: calls about target groups, and what a test says of targets. Out: moto's answers with other
//! states. Must not: register anything.

use std::collections::HashMap;

use crate::http::Request;
use crate::proxy::{Answer, Shared};
use crate::query::Query;
use crate::states;
use crate::world::Habits;
use crate::xml::Element;

/// A state that `DescribeTargetHealth` shows in place of `healthy`.
#[derive(Clone, Debug)]
pub struct Health {
    state: String,
    reason: String,
    ids: Vec<String>,
    others: bool,
    after: usize,
    looks: usize,
}

impl Health {
    /// Of these targets.
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a str>, state: &str, reason: &str) -> Self {
        Self {
            state: state.to_owned(),
            reason: reason.to_owned(),
            ids: ids.into_iter().map(str::to_owned).collect(),
            others: false,
            after: 0,
            looks: usize::MAX,
        }
    }

    /// Of all targets but these.
    pub fn of_others<'a>(
        ids: impl IntoIterator<Item = &'a str>,
        state: &str,
        reason: &str,
    ) -> Self {
        Self {
            others: true,
            ..Self::of(ids, state, reason)
        }
    }

    /// Once so many calls of `DeregisterTargets` were made.
    #[must_use]
    pub fn after_deregistrations(self, after: usize) -> Self {
        Self { after, ..self }
    }

    /// For so many looks. A look is a call of `DescribeTargetHealth` that shows it.
    #[must_use]
    pub fn looks(self, looks: usize) -> Self {
        Self { looks, ..self }
    }

    fn is_for(&self, id: &str) -> bool {
        self.looks > 0 && self.after == 0 && self.others != self.ids.iter().any(|one| one == id)
    }
}

/// What is known of targets beyond what moto knows.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    pub(crate) health: Vec<Health>,
    /// Looks that are left, by target group and id.
    initial: HashMap<(String, String), u32>,
    draining: HashMap<(String, String), u32>,
}

/// `RegisterTargets` and `DeregisterTargets`.
pub(crate) fn change(shared: &Shared, query: &Query, request: &Request) -> Answer {
    let answer = states::pass(shared, query, request)?;
    let habits = shared.world().habits;
    shared.targets().changed(query, &habits);
    Ok(answer)
}

/// `DescribeTargetHealth`.
pub(crate) fn describe(shared: &Shared, query: &Query, request: &Request) -> Answer {
    let mut answer = states::pass(shared, query, request)?;
    if let Some(members) = answer.at_mut("DescribeTargetHealthResult/TargetHealthDescriptions") {
        shared.targets().show(query, members);
    }
    Ok(answer)
}

impl Targets {
    fn changed(&mut self, query: &Query, habits: &Habits) {
        let registers = query.action == "RegisterTargets";
        for id in ids(query) {
            let key = (arn(query), id.to_owned());
            self.initial.remove(&key);
            self.draining.remove(&key);
            let (begun, looks) = if registers {
                (&mut self.initial, habits.initial)
            } else {
                (&mut self.draining, habits.draining)
            };
            begun.insert(key, looks);
        }
        if !registers {
            for health in &mut self.health {
                health.after = health.after.saturating_sub(1);
            }
        }
    }

    fn show(&mut self, query: &Query, members: &mut Element) {
        let arn = arn(query);
        // moto leaves out what was deregistered, unless it is asked for by its id.
        let listed = |members: &Element, id: &str| {
            let mut members = members.children.iter();
            members.any(|member| member.text_at("Target/Id") == id)
        };
        let asked: Vec<&str> = ids(query).collect();
        let draining = self.draining.keys().filter(|(of, _)| *of == arn);
        let hidden: Vec<String> = draining
            .map(|(_, id)| id.clone())
            .filter(|id| asked.is_empty() && !listed(members, id))
            .collect();
        for id in hidden {
            let target = vec![Element::leaf("Id", id)];
            let member = vec![Element::node("Target", target)];
            members.children.push(Element::node("member", member));
        }
        let mut seen = Vec::new();
        members.children.retain_mut(|member| {
            let id = member.text_at("Target/Id").to_owned();
            let key = (arn.clone(), id.clone());
            let shown = if let Some(left) = self.draining.get_mut(&key) {
                if !take(left) {
                    return !asked.is_empty();
                }
                ("draining", "Target.DeregistrationInProgress")
            } else if member.text_at("TargetHealth/State") != "healthy" {
                return true;
            } else if self.initial.get_mut(&key).is_some_and(take) {
                ("initial", "Elb.RegistrationInProgress")
            } else {
                let found = self.health.iter().position(|health| health.is_for(&id));
                let Some(found) = found else { return true };
                seen.push(found);
                let health = &self.health[found];
                (&*health.state, &*health.reason)
            };
            let parts = vec![
                Element::leaf("State", shown.0),
                Element::leaf("Reason", shown.1),
            ];
            member.put(Element::node("TargetHealth", parts));
            true
        });
        seen.dedup();
        for index in seen {
            let looks = &mut self.health[index].looks;
            *looks = looks.saturating_sub(usize::from(*looks != usize::MAX));
        }
    }
}

/// Counts a look; whether there was one left.
fn take(left: &mut u32) -> bool {
    let was = *left;
    *left = was.saturating_sub(1);
    was > 0
}

fn arn(query: &Query) -> String {
    query.get("TargetGroupArn").unwrap_or_default().to_owned()
}

fn ids(query: &Query) -> impl Iterator<Item = &str> {
    (1..).map_while(|number| query.get(&format!("Targets.member.{number}.Id")))
}

//! The engine where there is no capacity: the pool's next subnet, with a token and an intent of its
//! own, as long as nothing can have been made.

use std::collections::{BTreeMap, BTreeSet};

use nstance::apply::engine::{Call, Limits, TaskEnd, TaskId};
use nstance::plan::change::{Mode, Plan};
use nstance::provider::CloudErrorKind::{Ambiguous, Capacity, Quota};
use nstance::provider::sim::SimOptions;

use crate::fleet::{Fleet, Group};
use crate::rehearsal::{Answer, Happening, Rehearsal, bad, good};
use crate::run::plan_of;
use crate::world::World;

/// Orders that each property is tried in.
const SEEDS: u64 = 40;

fn plan(size: u32) -> Plan {
    let group = Group {
        pool: true,
        ..Group::new("web", size)
    };
    let world = World::new(SimOptions::default());
    plan_of(&world, &Fleet::of([group]), Mode::Normal).unwrap()
}

fn limits(parallelism: usize) -> Limits {
    Limits {
        parallelism,
        ..Limits::default()
    }
}

/// What was asked for each instance: subnets, in order. No token is used for two of them.
struct Asked {
    subnets: BTreeMap<TaskId, Vec<String>>,
    tokens: BTreeMap<String, String>,
}

impl Asked {
    fn of(
        plan: &Plan,
        seed: u64,
        answer: impl Fn(&str, usize) -> Option<Answer>,
    ) -> (Self, Vec<(TaskId, TaskEnd)>, Vec<Happening>) {
        let mut asked = Self {
            subnets: BTreeMap::new(),
            tokens: BTreeMap::new(),
        };
        let mut rehearsal = Rehearsal::new(plan, limits(3));
        let outcome = rehearsal.run(seed, |task, call, count| {
            let Call::Create(request) = call else {
                return good(call);
            };
            let subnet = request.subnet.clone().unwrap();
            let before = asked.tokens.insert(request.token.clone(), subnet.clone());
            assert!(before.is_none_or(|before| before == subnet), "seed {seed}");
            let answer = answer(&subnet, count).unwrap_or_else(|| good(call));
            asked.subnets.entry(task).or_default().push(subnet);
            answer
        });
        let log = rehearsal.log.into_iter().map(|(_, it)| it).collect();
        (asked, outcome.undone, log)
    }
}

#[test]
fn the_next_subnet_is_asked_with_an_intent_of_its_own() {
    let plan = plan(1);
    let (asked, undone, log) = Asked::of(&plan, 1, |subnet, _| {
        (subnet != "sub-c").then(|| bad(Capacity))
    });
    assert!(undone.is_empty());
    assert_eq!(asked.subnets[&0], ["sub-a", "sub-b", "sub-c"]);
    assert_eq!(asked.tokens.len(), 3);
    let asked_once = |is_good| {
        [
            Happening::Intended(0),
            Happening::Called(0, "create"),
            Happening::Answered(0, is_good),
            Happening::Settled(0),
        ]
    };
    assert_eq!(log, [false, false, true].map(asked_once).concat());
}

#[test]
fn where_no_subnet_has_capacity_it_fails_and_leaves_nothing_open() {
    let plan = plan(1);
    let (asked, undone, log) = Asked::of(&plan, 1, |_, _| Some(bad(Capacity)));
    assert_eq!(asked.subnets[&0], ["sub-a", "sub-b", "sub-c"]);
    assert!(
        matches!(&undone[..], [(0, TaskEnd::Failed(_))]),
        "{undone:?}"
    );
    assert_eq!(log.last(), Some(&Happening::Settled(0)));
}

#[test]
fn an_instance_that_may_be_there_already_is_not_made_elsewhere() {
    let plan = plan(1);
    let (asked, undone, _) = Asked::of(&plan, 1, |_, count| match count {
        0 => Some(bad(Ambiguous)),
        _ => Some(bad(Capacity)),
    });
    assert_eq!(asked.subnets[&0], ["sub-a", "sub-a"]);
    assert!(
        matches!(&undone[..], [(0, TaskEnd::Unsettled(_))]),
        "{undone:?}"
    );
}

#[test]
fn other_refusals_are_the_same_in_every_subnet() {
    let (asked, undone, _) = Asked::of(&plan(1), 1, |_, _| Some(bad(Quota)));
    assert_eq!(asked.subnets[&0], ["sub-a"]);
    assert!(
        matches!(&undone[..], [(0, TaskEnd::Failed(_))]),
        "{undone:?}"
    );
}

#[test]
fn not_every_instance_has_to_find_out() {
    let plan = plan(200);
    for seed in 0..SEEDS {
        let (asked, undone, _) = Asked::of(&plan, seed, |subnet, _| {
            (subnet == "sub-a").then(|| bad(Capacity))
        });
        assert!(undone.is_empty(), "seed {seed}");
        let refused: BTreeSet<_> = asked
            .subnets
            .iter()
            .filter(|(_, subnets)| subnets.len() > 1)
            .map(|(task, _)| *task)
            .collect();
        // Those whose intents were stored ahead of their calls ask; those after them know.
        assert!(refused.len() < 100, "seed {seed}: {} asked", refused.len());
        assert!(
            asked
                .subnets
                .values()
                .all(|subnets| subnets.last().unwrap() == "sub-b")
        );
    }
}

//! The engine by itself: what it commands, and when, whatever the cloud answers in whatever order.

use std::collections::BTreeMap;
use std::time::Duration;

use nstance::apply::engine::{Call, Limits, TaskEnd, TaskId};
use nstance::plan::change::{Action, Mode, Plan};
use nstance::provider::CloudErrorKind;
use nstance::provider::sim::SimOptions;

use crate::arrival::arrive_unharmed as arrive;
use crate::fleet::{Fleet, Group};
use crate::rehearsal::{Happening, Rehearsal, bad, good};
use crate::run::plan_of;
use crate::world::World;

/// Orders that each property is tried in.
const SEEDS: u64 = 40;

fn limits(parallelism: usize) -> Limits {
    Limits {
        parallelism,
        ..Limits::default()
    }
}

/// `back` needs `base`, `front` needs `back`; `aside` needs nothing.
fn tower(size: u32) -> Fleet {
    let group = |name, depends_on: &[&'static str]| Group {
        depends_on: depends_on.to_vec(),
        ..Group::new(name, size)
    };
    Fleet::of([
        group("base", &[]),
        group("back", &["base"]),
        group("front", &["back"]),
        group("aside", &[]),
    ])
}

fn plan_from_nothing(fleet: &Fleet) -> Plan {
    plan_of(&World::new(SimOptions::default()), fleet, Mode::Normal).unwrap()
}

/// The plan that leads from one fleet to another.
fn plan_between(from: &Fleet, to: &Fleet, mode: Mode) -> Plan {
    let mut world = World::new(SimOptions::default());
    arrive(&mut world, from, Mode::Normal, 1).unwrap();
    plan_of(&world, to, mode).unwrap()
}

#[test]
fn no_more_calls_are_under_way_than_allowed_and_no_fewer_than_possible() {
    let plan = plan_from_nothing(&Fleet::of([Group::new("web", 12)]));
    for parallelism in 1..6 {
        let mut most = 0;
        for seed in 0..SEEDS {
            let mut rehearsal = Rehearsal::new(&plan, limits(parallelism));
            // The rehearsal itself asserts the upper limit.
            let outcome = rehearsal.run(seed, |_, call, count| match (seed % 3, count) {
                (0, 0) => bad(CloudErrorKind::Throttled),
                (1, 0) => bad(CloudErrorKind::Ambiguous),
                _ => good(call),
            });
            assert!(outcome.is_complete());
            let mut under_way = 0_usize;
            for (_, happening) in &rehearsal.log {
                match happening {
                    Happening::Called(..) => under_way += 1,
                    Happening::Answered(..) => under_way -= 1,
                    _ => {}
                }
                most = most.max(under_way);
            }
        }
        assert_eq!(most, parallelism);
    }
}

#[test]
fn every_call_follows_its_stored_intent() {
    let from = tower(2);
    let mut to = tower(3);
    to.groups[0].image = "img-b";
    to.groups[1].colour = "red";
    to.groups[3].size = 1;
    let plan = plan_between(&from, &to, Mode::Normal);
    for seed in 0..SEEDS {
        let mut rehearsal = Rehearsal::new(&plan, limits(4));
        let outcome = rehearsal.run(seed, |_, call, _| good(call));
        assert!(outcome.is_complete(), "{outcome:?}");
        let mut intended: BTreeMap<TaskId, bool> = BTreeMap::new();
        for (_, happening) in &rehearsal.log {
            match happening {
                Happening::Intended(task) => drop(intended.insert(*task, true)),
                Happening::Settled(task) => drop(intended.insert(*task, false)),
                Happening::Called(task, _) => assert!(intended[task], "seed {seed}"),
                _ => {}
            }
        }
        assert!(intended.values().all(|open| !open));
    }
}

#[test]
fn creations_keep_their_distance_and_nothing_else_does() {
    let fleet = Fleet::of([Group::new("old", 4)]);
    let wanted = Fleet::of([Group::new("web", 6)]);
    let plan = plan_between(&fleet, &wanted, Mode::Normal);
    for seed in 0..SEEDS {
        let limits = Limits {
            create_interval: Duration::from_secs(3),
            ..limits(4)
        };
        let mut rehearsal = Rehearsal::new(&plan, limits);
        let outcome = rehearsal.run(seed, |_, call, _| good(call));
        assert!(outcome.is_complete());
        let creates: Vec<_> = rehearsal
            .log
            .iter()
            .filter(|(_, happening)| matches!(happening, Happening::Called(_, "create")))
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(creates.len(), 6);
        for pair in creates.windows(2) {
            assert!(
                pair[1].since(pair[0]) >= Duration::from_secs(3),
                "seed {seed}: {creates:?}"
            );
        }
        let last_delete = rehearsal.places(|h| matches!(h, Happening::Called(_, "delete")));
        let last_create = rehearsal.places(|h| matches!(h, Happening::Called(_, "create")));
        assert!(
            last_delete.last() < last_create.last(),
            "deletions wait for nobody"
        );
    }
}

#[test]
fn a_failure_stops_its_group_and_what_depends_on_it_and_nothing_else() {
    let plan = plan_from_nothing(&tower(6));
    for seed in 0..SEEDS {
        let mut rehearsal = Rehearsal::new(&plan, limits(2));
        let fails = |task: TaskId| {
            let address = &plan.changes[task].address;
            address.group.name() == "back" && address.slot == 1
        };
        let outcome = rehearsal.run(seed, |task, call, _| {
            if fails(task) {
                bad(CloudErrorKind::Invalid)
            } else {
                good(call)
            }
        });
        // `front` was never begun; `back` ended with what was under way; the others are whole.
        assert_eq!(rehearsal.calls_of("front"), [0; 0]);
        assert_eq!(rehearsal.calls_of("base").len(), 6);
        assert_eq!(rehearsal.calls_of("aside").len(), 6);
        let failed =
            rehearsal.places(|h| matches!(h, Happening::Answered(task, false) if fails(*task)));
        let settled = rehearsal.places(|h| matches!(h, Happening::Settled(task) if fails(*task)));
        assert_eq!((failed.len(), settled.len()), (1, 1));
        for place in rehearsal.calls_of("back") {
            assert!(place < settled[0], "seed {seed}: a call after the failure");
        }
        for (task, end) in &outcome.undone {
            let address = &plan.changes[*task].address;
            let expected = match (address.group.name(), end) {
                ("back", TaskEnd::Failed(_)) => fails(*task),
                ("back" | "front", TaskEnd::NotTried) => !fails(*task),
                _ => false,
            };
            assert!(expected, "seed {seed}: {address}: {end:?}");
        }
        assert_eq!(
            outcome.done.create + outcome.undone.len(),
            plan.changes.len()
        );
    }
}

/// Asserts that all of `first` was recorded before any of `second` was called.
fn assert_order(rehearsal: &Rehearsal<'_>, first: &str, second: &str) {
    let settled = rehearsal
        .places(|h| matches!(h, Happening::Settled(task) if rehearsal.group_of(*task) == first));
    let called = rehearsal.calls_of(second);
    assert!(!settled.is_empty() && !called.is_empty());
    assert!(
        settled.last() < called.first(),
        "{first} isn't over before {second} begins"
    );
}

#[test]
fn groups_come_after_those_they_depend_on_and_go_before_them() {
    let fleet = tower(2);
    let there = plan_from_nothing(&fleet);
    let back = plan_between(&fleet, &fleet, Mode::Destroy);
    for seed in 0..SEEDS {
        let mut rehearsal = Rehearsal::new(&there, limits(5));
        assert!(rehearsal.run(seed, |_, call, _| good(call)).is_complete());
        assert_order(&rehearsal, "base", "back");
        assert_order(&rehearsal, "back", "front");

        let mut rehearsal = Rehearsal::new(&back, limits(5));
        assert!(rehearsal.run(seed, |_, call, _| good(call)).is_complete());
        assert_order(&rehearsal, "front", "back");
        assert_order(&rehearsal, "back", "base");
    }
}

#[test]
fn the_order_holds_through_groups_that_stay_as_they_are() {
    let from = tower(1);
    let mut to = tower(1);
    to.groups[0].size = 3;
    to.groups[2].size = 3;
    let plan = plan_between(&from, &to, Mode::Normal);
    for seed in 0..SEEDS {
        let mut rehearsal = Rehearsal::new(&plan, limits(5));
        assert!(rehearsal.run(seed, |_, call, _| good(call)).is_complete());
        assert_order(&rehearsal, "base", "front");
    }
}

#[test]
fn replacements_come_one_at_a_time_unless_the_policy_says_more() {
    let from = Fleet::of([Group::new("web", 3)]);
    let mut to = Fleet::of([Group::new("web", 5)]);
    to.groups[0].image = "img-b";
    let plan = plan_between(&from, &to, Mode::Normal);
    let replaces = |task: &TaskId| plan.changes[*task].action == Action::CreateThenDelete;
    assert_eq!((0..plan.changes.len()).filter(replaces).count(), 3);
    for seed in 0..SEEDS {
        let mut rehearsal = Rehearsal::new(&plan, limits(5));
        let outcome = rehearsal.run(seed, |_, call, count| match count {
            0 if seed % 2 == 0 => bad(CloudErrorKind::Throttled),
            _ => good(call),
        });
        assert!(outcome.is_complete());
        let mut current: Option<TaskId> = None;
        let mut answered = 0;
        for (_, happening) in &rehearsal.log {
            match happening {
                Happening::Intended(task) if replaces(task) => {
                    assert!(
                        current.is_none_or(|current| current == *task),
                        "seed {seed}"
                    );
                    current = Some(*task);
                }
                // The next one may begin before the last one's end is recorded.
                Happening::Answered(task, true) if replaces(task) => {
                    answered += 1;
                    if answered % 2 == 0 {
                        current = None;
                    }
                }
                _ => {}
            }
        }
        assert_eq!(answered, 6, "each is created and its predecessor deleted");
    }
}

#[test]
fn a_replacement_that_fails_is_the_last() {
    let from = Fleet::of([Group::new("web", 3)]);
    let mut to = from.clone();
    to.groups[0].image = "img-b";
    let plan = plan_between(&from, &to, Mode::Normal);
    for seed in 0..SEEDS {
        let mut rehearsal = Rehearsal::new(&plan, limits(5));
        let outcome = rehearsal.run(seed, |_, call, _| match call {
            Call::Delete(_) => bad(CloudErrorKind::Denied),
            _ => good(call),
        });
        let ends: Vec<_> = outcome.undone.iter().map(|(_, end)| end).collect();
        assert!(
            matches!(
                ends[..],
                [TaskEnd::Unfinished(_), TaskEnd::NotTried, TaskEnd::NotTried]
            ),
            "{ends:?}"
        );
        assert_eq!(rehearsal.calls_of("web").len(), 2);
    }
}

#[test]
fn tries_and_waits_are_bounded_and_grow() {
    let plan = plan_from_nothing(&Fleet::of([Group::new("web", 1)]));
    let limits = Limits {
        tries: 9,
        first_wait: Duration::from_millis(400),
        longest_wait: Duration::from_secs(5),
        ..limits(2)
    };
    for (kind, is_known) in [
        (CloudErrorKind::Throttled, true),
        (CloudErrorKind::Transient, true),
        (CloudErrorKind::Ambiguous, false),
    ] {
        for seed in 0..SEEDS {
            let mut rehearsal = Rehearsal::new(&plan, limits);
            let outcome = rehearsal.run(seed, |_, _, _| bad(kind));
            assert_eq!(rehearsal.calls_of("web").len(), 9);
            let mut answered = None;
            let mut tries = 0;
            for (at, happening) in &rehearsal.log {
                match happening {
                    Happening::Answered(..) => answered = Some(*at),
                    Happening::Called(..) => {
                        if let Some(answered) = answered {
                            let full = Duration::from_millis(400 << (tries - 1))
                                .min(Duration::from_secs(5));
                            let wait = at.since(answered);
                            assert!(wait >= full / 2 && wait <= full, "{wait:?} of {full:?}");
                        }
                        tries += 1;
                    }
                    _ => {}
                }
            }
            let [(0, end)] = &outcome.undone[..] else {
                panic!("{outcome:?}");
            };
            match end {
                TaskEnd::Failed(_) => assert!(is_known),
                TaskEnd::Unsettled(_) => assert!(!is_known),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_wrong_request_is_not_tried_again() {
    let plan = plan_from_nothing(&Fleet::of([Group::new("web", 1)]));
    for kind in [
        CloudErrorKind::Capacity,
        CloudErrorKind::Quota,
        CloudErrorKind::Invalid,
        CloudErrorKind::Denied,
        CloudErrorKind::Unavailable,
    ] {
        let mut rehearsal = Rehearsal::new(&plan, limits(2));
        rehearsal.run(1, |_, _, _| bad(kind));
        assert_eq!(rehearsal.calls_of("web").len(), 1, "{kind:?}");
    }
}

#[test]
fn a_lost_answer_leaves_every_kind_of_step_open() {
    let from = Fleet::of([Group::new("web", 1), Group::new("gone", 1)]);
    let mut to = Fleet::of([Group::new("web", 1), Group::new("new", 1)]);
    to.groups[0].colour = "red";
    let plan = plan_between(&from, &to, Mode::Normal);
    // Lost once, then refused: whether it happened the first time isn't known.
    let mut rehearsal = Rehearsal::new(&plan, limits(5));
    let outcome = rehearsal.run(1, |_, _, count| match count {
        0 => bad(CloudErrorKind::Ambiguous),
        _ => bad(CloudErrorKind::Denied),
    });
    assert_eq!(outcome.undone.len(), 3);
    for (task, end) in &outcome.undone {
        assert!(
            matches!(end, TaskEnd::Unsettled(_)),
            "{}: {end:?}",
            plan.changes[*task].address
        );
    }
    assert_eq!(
        rehearsal.places(|happening| matches!(happening, Happening::Settled(_))),
        [0; 0]
    );
}

#[test]
fn a_stop_lets_calls_end_and_starts_none() {
    let from = Fleet::of([Group::new("web", 3)]);
    let mut to = Fleet::of([Group::new("web", 8), Group::new("store", 4)]);
    to.groups[0].image = "img-b";
    let plan = plan_between(&from, &to, Mode::Normal);
    let mut cut_short = 0;
    for seed in 0..SEEDS {
        for stops_after in [0, 3, 9, 20, 35] {
            let mut rehearsal = Rehearsal::new(&plan, limits(3));
            rehearsal.stops_after = Some(stops_after);
            let outcome = rehearsal.run(seed, |_, call, count| match count {
                0 if seed % 3 == 0 => bad(CloudErrorKind::Throttled),
                _ => good(call),
            });
            let stop = rehearsal.places(|happening| *happening == Happening::Stopped)[0];
            let calls = rehearsal.places(|happening| matches!(happening, Happening::Called(..)));
            assert!(calls.iter().all(|place| *place < stop), "seed {seed}");
            // Every intent that was stored is settled, and every good answer is recorded.
            let count = |is_meant: fn(&Happening) -> bool| rehearsal.places(is_meant).len();
            assert_eq!(
                count(|happening| matches!(happening, Happening::Intended(_))),
                count(|happening| matches!(happening, Happening::Settled(_))),
                "seed {seed}"
            );
            assert!(outcome.stopped);
            let ended_well = |end: &TaskEnd| {
                matches!(
                    end,
                    TaskEnd::NotTried | TaskEnd::Unfinished(_) | TaskEnd::Failed(_)
                )
            };
            assert!(outcome.undone.iter().all(|(_, end)| ended_well(end)));
            cut_short += usize::from(!outcome.is_complete());
        }
    }
    assert!(cut_short > 100, "{cut_short}");
}

#[test]
fn a_used_token_is_followed_by_the_next_when_nothing_is_found() {
    let plan = plan_from_nothing(&Fleet::of([Group::new("web", 1)]));
    let mut tokens = Vec::new();
    let mut rehearsal = Rehearsal::new(&plan, limits(1));
    let outcome = rehearsal.run(1, |_, call, _| match call {
        Call::Create(request) => {
            tokens.push(request.token.clone());
            if tokens.len() == 1 {
                bad(CloudErrorKind::TokenMismatch)
            } else {
                good(call)
            }
        }
        _ => good(call),
    });
    assert!(outcome.is_complete());
    assert_eq!(tokens.len(), 2);
    assert_ne!(tokens[0], tokens[1]);
    // The second token has an intent of its own before it is used.
    let order: Vec<_> = rehearsal
        .log
        .iter()
        .map(|(_, happening)| happening.clone())
        .collect();
    assert_eq!(
        order,
        [
            Happening::Intended(0),
            Happening::Called(0, "create"),
            Happening::Answered(0, false),
            Happening::Called(0, "find"),
            Happening::Answered(0, true),
            Happening::Settled(0),
            Happening::Intended(0),
            Happening::Called(0, "create"),
            Happening::Answered(0, true),
            Happening::Settled(0),
        ]
    );
}

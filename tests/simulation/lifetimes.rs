//! Random lifetimes: fleets that change, clouds that fail, processes that die, people who meddle.

use std::time::Duration;

use nstance::plan::change::Mode;
use nstance::provider::CloudErrorKind;
use nstance::provider::sim::SimOptions;
use nstance::provider::sim::options::{FailRule, Operation};

use crate::chance::Chance;
use crate::crash_points::arrive;
use crate::fleet::{Fleet, Group};
use crate::run::{Course, Mutation, apply};
use crate::world::{Broken, World};

/// How many lifetimes a test run has, unless `NSTANCE_SIM_SEEDS` says otherwise.
const SEEDS: u64 = 300;

/// One lifetime: some runs in bad weather, then the way home in good weather.
pub(crate) fn live(seed: u64, mutation: Option<Mutation>) -> Result<(), Broken> {
    let mut chance = Chance::new(seed);
    let mut world = World::new(weather(&mut chance));
    let mut fleet = Fleet::nothing();
    for episode in 0..2 + chance.below(3) {
        change(&mut fleet, &mut chance);
        world.weather = SimOptions {
            // What is on the way isn't seen earlier because the weather changed.
            stale_listing: world.weather.stale_listing,
            ..weather(&mut chance)
        };
        let course = Course {
            seed: chance.next(),
            mode: if chance.happens(8) {
                Mode::Destroy
            } else {
                Mode::Normal
            },
            replace: if chance.happens(10) {
                vec!["default/web/0".to_owned()]
            } else {
                Vec::new()
            },
            dies_at: chance.happens(50).then(|| chance.below(30)),
            stops_after: chance.happens(15).then(|| chance.below(40)),
            mutation,
        };
        let ran = apply(&world, &fleet, &course)
            .map_err(|broken| format!("episode {episode}: {broken}, {course:?}, {fleet:#?}"))?;
        world
            .check()
            .map_err(|broken| format!("episode {episode}: {broken}, {ran:?}, {course:?}"))?;
        meddle(&mut world, &mut chance);
        if chance.happens(60) {
            world.pass(Duration::from_millis(chance.below(20_000) as u64));
        }
    }
    // The faults end; what the cloud is like by nature stays.
    world.weather = SimOptions {
        stale_listing: world.weather.stale_listing,
        boot_time: world.weather.boot_time,
        ..SimOptions::default()
    };
    world.pass(Duration::from_secs(10));
    arrive_with(&mut world, &fleet, chance.next(), mutation)
}

fn arrive_with(
    world: &mut World,
    fleet: &Fleet,
    seed: u64,
    mutation: Option<Mutation>,
) -> Result<(), Broken> {
    match mutation {
        None => arrive(world, fleet, Mode::Normal, seed),
        Some(_) => {
            for round in 0..3 {
                let course = Course {
                    seed: seed.wrapping_add(round),
                    mutation,
                    ..Course::default()
                };
                apply(world, fleet, &course)?;
                world.check()?;
                world.pass(Duration::from_secs(3));
            }
            world.pass(Duration::from_mins(1));
            world.check_arrived(fleet)
        }
    }
}

fn weather(chance: &mut Chance) -> SimOptions {
    let rate = |chance: &mut Chance, percent: usize, highest: usize| {
        if chance.happens(percent) {
            chance.below(highest) as f64 / 100.0
        } else {
            0.0
        }
    };
    let mut weather = SimOptions {
        seed: chance.next(),
        boot_time: Duration::from_millis(chance.one_of(&[0, 0, 900])),
        stale_listing: Duration::from_millis(chance.one_of(&[0, 2_000, 8_000])),
        error_rate: rate(chance, 40, 30),
        lost_answer_rate: rate(chance, 50, 50),
        throttle: chance.happens(20).then_some(3.0),
        ..SimOptions::default()
    };
    if chance.happens(20) {
        weather.capacity = [("small".to_owned(), chance.below(3) as u32)].into();
    }
    if chance.happens(40) {
        weather.fail = (0..=chance.below(3)).map(|_| fail_rule(chance)).collect();
    }
    weather
}

/// Any call may fail in any way, but for a cloud that denies an instance which it has.
fn fail_rule(chance: &mut Chance) -> FailRule {
    FailRule {
        operation: chance.one_of(&[
            Operation::Create,
            Operation::Create,
            Operation::Update,
            Operation::Delete,
            Operation::List,
            Operation::Describe,
        ]),
        after: chance.below(3) as u64,
        count: 1 + chance.below(3) as u64,
        error: chance.one_of(&[
            CloudErrorKind::Throttled,
            CloudErrorKind::Transient,
            CloudErrorKind::Ambiguous,
            CloudErrorKind::Ambiguous,
            CloudErrorKind::Capacity,
            CloudErrorKind::Quota,
            CloudErrorKind::Invalid,
            CloudErrorKind::Denied,
            CloudErrorKind::TokenMismatch,
            CloudErrorKind::Unavailable,
        ]),
    }
}

fn change(fleet: &mut Fleet, chance: &mut Chance) {
    for name in ["web", "store"] {
        if chance.happens(25) {
            let known = fleet.groups.iter().position(|group| group.name == name);
            match known {
                Some(place) => drop(fleet.groups.remove(place)),
                None => fleet.groups.push(Group::new(name, 1)),
            }
        }
    }
    if fleet.groups.is_empty() && chance.happens(80) {
        fleet.groups.push(Group::new("web", 2));
    }
    let needed = fleet.groups.iter().any(|group| group.name == "store");
    for group in &mut fleet.groups {
        if chance.happens(50) {
            group.size = chance.below(4) as u32;
        }
        if chance.happens(25) {
            group.image = chance.one_of(&["img-a", "img-b", "img-c"]);
        }
        if chance.happens(25) {
            group.instance_type = chance.one_of(&["small", "big"]);
        }
        if chance.happens(25) {
            group.colour = chance.one_of(&["blue", "red", "green"]);
        }
        if chance.happens(15) {
            group.file = !group.file;
        }
        group.fixed_address = None;
        if group.name == "web" && group.size == 1 && chance.happens(30) {
            group.fixed_address = Some("100.64.9.9");
        }
        group.depends_on = if group.name == "web" && needed && chance.happens(50) {
            vec!["store"]
        } else {
            Vec::new()
        };
    }
}

/// Somebody changes the cloud behind our back, or loses the state.
fn meddle(world: &mut World, chance: &mut Chance) {
    // Whoever takes our tags off an instance that isn't recorded yet takes it from us.
    let settled = world
        .snapshot()
        .is_some_and(|snapshot| snapshot.intents.is_empty());
    for row in world.live() {
        let mut admin = world.admin();
        let id = row.provider_id;
        if chance.happens(8) {
            admin.delete(&id).unwrap();
            continue;
        }
        if chance.happens(8) {
            admin.set_tag(&id, "stray", Some("1")).unwrap();
        }
        if chance.happens(8) {
            admin.set_tag(&id, "colour", Some("white")).unwrap();
        }
        if chance.happens(5) {
            admin.set_type(&id, "huge").unwrap();
        }
        if chance.happens(5) {
            admin.stop(&id).unwrap();
        }
        if chance.happens(5) && settled && !world.lost.contains(&id) {
            let key = chance.one_of(&["nstance:managed", "nstance:slot", "nstance:instance-id"]);
            admin.set_tag(&id, key, None).unwrap();
        }
    }
    if chance.happens(4) && settled {
        let ours = |row: &nstance::provider::sim::admin::InstanceRow| {
            row.cluster.is_some() && row.address.is_some()
        };
        if world.live().iter().all(ours) {
            world.lose_state();
        }
    }
}

pub(crate) fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn live_all(part: u64) {
    let first = number_from("NSTANCE_SIM_FIRST").unwrap_or(0);
    let count = number_from("NSTANCE_SIM_SEEDS").unwrap_or(SEEDS);
    let mut broken = Vec::new();
    for seed in (first..first + count).filter(|seed| seed % 2 == part) {
        if let Err(error) = live(seed, None) {
            broken.push(format!("seed {seed}: {error}"));
        }
    }
    assert!(
        broken.is_empty(),
        "{} of {count} lifetimes broke; run one again with NSTANCE_SIM_FIRST=SEED \
         NSTANCE_SIM_SEEDS=1\n{}",
        broken.len(),
        broken.join("\n\n")
    );
}

#[test]
fn lifetimes_of_even_seeds_lose_nothing_and_arrive() {
    live_all(0);
}

#[test]
fn lifetimes_of_odd_seeds_lose_nothing_and_arrive() {
    live_all(1);
}

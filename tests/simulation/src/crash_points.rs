//! Small fleets, every scenario, and a death at every point of it.

use std::time::Duration;

use nstance::plan::change::Mode;
use nstance::provider::sim::SimOptions;
use nstance::sabotage::Sabotage;

use crate::arrival::arrive;
use crate::fleet::{Fleet, Group};
use crate::run::{Course, End, apply};
use crate::world::{Broken, World};

/// What changes, and how it is brought about.
struct Scenario {
    name: &'static str,
    from: Fleet,
    to: Fleet,
    mode: Mode,
    loses_state: bool,
}

impl Scenario {
    fn new(name: &'static str, from: Fleet, to: Fleet) -> Self {
        Self {
            name,
            from,
            to,
            mode: Mode::Normal,
            loses_state: false,
        }
    }

    /// The world before it.
    fn begin(&self, weather: &SimOptions) -> World {
        let mut world = World::new(weather.clone());
        arrive(&mut world, &self.from, Mode::Normal, 1, Sabotage::None).unwrap();
        if self.loses_state {
            world.lose_state();
        }
        world
    }

    fn course(&self, seed: u64) -> Course {
        Course {
            seed,
            mode: self.mode,
            allow_delete: true,
            ..Course::default()
        }
    }
}

fn scenarios(size: u32) -> Vec<Scenario> {
    let web = |change: &dyn Fn(&mut Group)| {
        let mut group = Group::new("web", size);
        change(&mut group);
        Fleet::of([group])
    };
    let plain = || web(&|_| {});
    let fixed = |image| {
        let mut group = Group::new("web", 1);
        group.fixed_address = Some("100.64.9.9");
        group.image = image;
        Fleet::of([group])
    };
    let mut all = vec![
        Scenario::new("create", Fleet::nothing(), plain()),
        Scenario::new(
            "create with a file that waits",
            Fleet::nothing(),
            web(&|group| group.file = true),
        ),
        Scenario::new("scale up", plain(), web(&|group| group.size += 2)),
        Scenario::new("scale down", plain(), web(&|group| group.size -= 1)),
        Scenario::new("update", plain(), web(&|group| group.instance_type = "big")),
        Scenario::new("replace", plain(), web(&|group| group.image = "img-b")),
        Scenario::new("remove the group", plain(), Fleet::nothing()),
        Scenario {
            mode: Mode::Destroy,
            ..Scenario::new("destroy", plain(), plain())
        },
        Scenario {
            loses_state: true,
            ..Scenario::new("adopt", plain(), plain())
        },
        Scenario {
            loses_state: true,
            ..Scenario::new("adopt and replace", plain(), web(&|g| g.image = "img-b"))
        },
    ];
    if size == 1 {
        all.push(Scenario::new(
            "replace at one address",
            fixed("img-a"),
            fixed("img-b"),
        ));
    }
    all
}

/// A cloud that shows what it has a little late.
fn late() -> SimOptions {
    SimOptions {
        stale_listing: Duration::from_secs(5),
        boot_time: Duration::from_secs(1),
        ..SimOptions::default()
    }
}

fn fair() -> SimOptions {
    SimOptions::default()
}

/// Runs a scenario with a death at each of its points, or a Ctrl-C at each of its steps; then
/// with another death while that is mended. Answers how many cases there were.
fn exhaust(
    scenario: &Scenario,
    weather: &SimOptions,
    seeds: u64,
    stops: bool,
) -> Result<usize, Broken> {
    let mut cases = 0;
    let beginning = scenario.begin(weather);
    for seed in 0..seeds {
        let undisturbed = apply(&beginning.copy(), &scenario.to, &scenario.course(seed))?;
        let last = if stops {
            undisturbed.steps
        } else {
            undisturbed.points
        };
        for at in 0..=last {
            let mut world = beginning.copy();
            let mut course = scenario.course(seed);
            if stops {
                course.stops_after = Some(at);
            } else {
                course.dies_at = Some(at);
            }
            let case = format!("seed {seed}, at {at}, stops: {stops}");
            let result = apply(&world, &scenario.to, &course).and_then(|ran| {
                world.check()?;
                if !stops && at % 3 == 0 && matches!(ran.end, End::Died) {
                    // Dies again where it mends.
                    let again = Course {
                        dies_at: Some(at / 3),
                        ..scenario.course(seed + 7)
                    };
                    apply(&world, &scenario.to, &again)?;
                    world.check()?;
                }
                arrive(
                    &mut world,
                    &scenario.to,
                    scenario.mode,
                    seed + 100,
                    Sabotage::None,
                )
            });
            let late = !weather.stale_listing.is_zero();
            result
                .map_err(|broken| format!("{}, {case}, late: {late}: {broken}", scenario.name))?;
            cases += 1;
        }
    }
    Ok(cases)
}

fn exhaust_all(size: u32, weathers: &[SimOptions], seeds: u64, stops: bool) {
    let mut cases = 0;
    let mut broken = Vec::new();
    for scenario in scenarios(size) {
        for weather in weathers {
            match exhaust(&scenario, weather, seeds, stops) {
                Ok(count) => cases += count,
                Err(error) => broken.push(error),
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
    println!("{cases} cases of {size} instances, stopped: {stops}");
    assert!(cases > 100, "{cases}");
}

#[test]
fn one_instance_survives_a_death_at_every_point() {
    exhaust_all(1, &[fair(), late()], 2, false);
}

#[test]
fn two_instances_survive_a_death_at_every_point() {
    exhaust_all(2, &[fair(), late()], 1, false);
}

#[test]
fn three_instances_survive_a_death_at_every_point() {
    exhaust_all(3, &[late()], 1, false);
}

#[test]
fn four_instances_survive_a_death_at_every_point() {
    exhaust_all(4, &[late()], 1, false);
}

#[test]
fn an_interrupt_at_every_step_loses_nothing() {
    exhaust_all(2, &[fair(), late()], 1, true);
}

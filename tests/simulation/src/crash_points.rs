//! Small fleets, every scenario, and a death at every point of it.
//!
//! In: a size, and how it ends. Out: how many cases there were, or the first that broke.

use std::time::Duration;

use nstance::fault_injection::InjectedFault;
use nstance::plan::change::Mode;
use nstance::provider::sim::SimOptions;

use crate::arrival::arrive;
use crate::fleet::{Fleet, Group, Link};
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
        arrive(&mut world, &self.from, Mode::Normal, 1, InjectedFault::None).unwrap();
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
    let linked = |link: fn(&'static str) -> Link, image| {
        let mut web = Group::new("web", size);
        web.link = Some(link("db"));
        let mut db = Group::new("db", 1);
        db.image = image;
        Fleet::of([web, db])
    };
    all.push(Scenario::new(
        "create with another group's address",
        Fleet::nothing(),
        linked(Link::Userdata, "img-a"),
    ));
    all.push(Scenario::new(
        "replace a group whose address is in files",
        linked(Link::File, "img-a"),
        linked(Link::File, "img-b"),
    ));
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

/// How a run ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The process dies.
    Death,
    /// The power fails, and with it what wasn't synced.
    PowerCut,
    /// Ctrl-C.
    Stop,
}

/// Runs a scenario with an end at each of its points or steps; then with another while that is
/// mended. Answers how many cases there were.
fn exhaust(
    scenario: &Scenario,
    weather: &SimOptions,
    seed: u64,
    ending: Ending,
) -> Result<usize, Broken> {
    let mut cases = 0;
    let beginning = scenario.begin(weather);
    let undisturbed = apply(&beginning.copy(), &scenario.to, &scenario.course(seed))?;
    let last = if ending == Ending::Stop {
        undisturbed.steps
    } else {
        undisturbed.points
    };
    for at in 0..=last {
        let mut world = beginning.copy();
        let mut course = scenario.course(seed);
        course.watched = true;
        match ending {
            Ending::Stop => course.stops_after = Some(at),
            Ending::Death | Ending::PowerCut => course.dies_at = Some(at),
        }
        course.loses_power = ending == Ending::PowerCut;
        let result = apply(&world, &scenario.to, &course).and_then(|ran| {
            world.check()?;
            if at % 3 == 0 && matches!(ran.end, End::Died) {
                // Dies again where it mends.
                let again = Course {
                    dies_at: Some(at / 3),
                    seed: seed + 7,
                    ..course
                };
                apply(&world, &scenario.to, &again)?;
                world.check()?;
            }
            let (to, mode) = (&scenario.to, scenario.mode);
            arrive(&mut world, to, mode, seed + 100, InjectedFault::None)
        });
        let late = !weather.stale_listing.is_zero();
        result.map_err(|broken| {
            let name = scenario.name;
            format!("{name}, seed {seed}, {ending:?} at {at}, late: {late}: {broken}")
        })?;
        cases += 1;
    }
    Ok(cases)
}

/// Every scenario of fleets of that size, with an end at each point, in so many orders. Answers how
/// many cases there were.
pub fn exhaust_all(size: u32, orders: u64, ending: Ending) -> Result<usize, Broken> {
    let mut cases = 0;
    for scenario in scenarios(size) {
        for weather in [fair(), late()] {
            for seed in 0..orders {
                cases += exhaust(&scenario, &weather, seed, ending)?;
            }
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survives(size: u32, orders: u64, ending: Ending) {
        let cases = exhaust_all(size, orders, ending).unwrap();
        assert!(cases > 100, "{cases}");
    }

    #[test]
    fn one_instance_survives_a_death_at_every_point() {
        survives(1, 2, Ending::Death);
    }

    #[test]
    fn two_instances_survive_a_death_at_every_point() {
        survives(2, 1, Ending::Death);
    }

    #[test]
    fn an_interrupt_at_every_step_loses_nothing() {
        survives(2, 1, Ending::Stop);
    }
}

//! Random lifetimes: fleets that change, clouds that fail, processes that die, people who meddle.

use std::time::Duration;

use nstance::apply::engine::Request;
use nstance::fault_injection::InjectedFault;
use nstance::plan::change::Mode;
use nstance::provider::CloudErrorKind;
use nstance::provider::sim::SimOptions;
use nstance::provider::sim::options::{FailRule, Operation, SubnetOption};

use crate::arrival::arrive;
use crate::chance::Chance;
use crate::disk::Trouble;
use crate::fleet::{Fleet, Group};
use crate::policy::Policy;
use crate::run::{Course, End, Ran, SavedPlan, Task, apply, apply_both};
use crate::world::{Broken, World};

/// How many of a hundred lifetimes have rollouts with policies, checks, load balancers and zones.
const POLICIED: usize = 50;

/// How many of a hundred lifetimes are looked at after every single step.
const WATCHED: usize = 30;

/// One lifetime: some runs in bad weather, then the way home in good weather.
/// `tell` hears what happens.
pub fn live(
    seed: u64,
    injected_fault: InjectedFault,
    tell: &mut dyn FnMut(&str),
) -> Result<(), Broken> {
    let mut life = Lifetime::new(seed, injected_fault, tell);
    for episode in 0..2 + life.chance.below(3) {
        if !life.repeats() {
            change(&mut life.fleet, &mut life.chance);
            life.change_policies();
        }
        let health = life.health_weather();
        life.world.weather = SimOptions {
            unhealthy: health.unhealthy,
            healthy_after: health.healthy_after,
            // What is on the way isn't seen earlier because the weather changed.
            stale_listing: life.world.weather.stale_listing,
            ..weather(&mut life.chance)
        };
        let happened = if life.chance.happens(15) {
            life.two_at_once()
        } else {
            life.one_alone()
        };
        happened.map_err(|broken| format!("episode {episode}: {broken}"))?;
        life.pass_time();
    }
    life.come_home()
}

/// A world, those who live in it, and what they know.
struct Lifetime<'a> {
    tell: &'a mut dyn FnMut(&str),
    chance: Chance,
    world: World,
    fleet: Fleet,
    /// A plan that somebody made and hasn't carried out.
    saved: Option<Box<SavedPlan>>,
    injected_fault: InjectedFault,
    watched: bool,
    /// What rollouts are like, if there is more to them than replacing one by one. Apart, so that
    /// the rest is as it was without it.
    rollouts: Option<Chance>,
}

impl<'a> Lifetime<'a> {
    fn new(seed: u64, injected_fault: InjectedFault, tell: &'a mut dyn FnMut(&str)) -> Self {
        let mut chance = Chance::new(seed);
        let world = World::new(weather(&mut chance));
        let watched = chance.happens(WATCHED);
        let mut rollouts = Chance::new(seed ^ 0x7011_0075);
        Self {
            tell,
            chance,
            world,
            fleet: Fleet::nothing(),
            saved: None,
            injected_fault,
            watched,
            rollouts: rollouts.happens(POLICIED).then_some(rollouts),
        }
    }

    /// Whether somebody runs the same again.
    fn repeats(&mut self) -> bool {
        self.rollouts
            .as_mut()
            .is_some_and(|chance| chance.happens(40))
    }

    /// Groups change how they are replaced.
    fn change_policies(&mut self) {
        if let Some(chance) = &mut self.rollouts {
            change_policies(&mut self.fleet, chance);
        }
    }

    /// Which instances are sick by nature.
    fn health_weather(&mut self) -> SimOptions {
        let mut weather = SimOptions::default();
        let Some(chance) = &mut self.rollouts else {
            return weather;
        };
        if chance.happens(30) {
            let share = chance.one_of(&[0.5, 1.0]);
            weather.unhealthy = [("img-c".to_owned(), share)].into();
        }
        weather.healthy_after = Duration::from_secs(chance.one_of(&[0, 0, 2, 10]));
        weather
    }

    fn course(&mut self) -> Course {
        let chance = &mut self.chance;
        let mut course = Course {
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
            allow_delete: chance.happens(60),
            dies_at: chance.happens(45).then(|| chance.below(30)),
            loses_power: chance.happens(50),
            stops_after: chance.happens(15).then(|| chance.below(40)),
            patience: chance.below(3) * 10,
            injected_fault: self.injected_fault,
            watched: self.watched,
            ..Course::default()
        };
        if let Some(chance) = &mut self.rollouts {
            course.meddling = chance.one_of(&[0, 0, 1, 3]);
            course.releases = chance.happens(30);
            course.retries = chance.happens(50);
            if chance.happens(30) {
                let requests = [
                    Request::Promote,
                    Request::Promote,
                    Request::Pause,
                    Request::Abort,
                ];
                course.asks = (0..=chance.below(2))
                    .map(|_| (chance.below(60), chance.one_of(&requests)))
                    .collect();
                course.asks.sort_by_key(|(at, _)| *at);
            }
        }
        if let Some(saved) = self.saved.take_if(|_| chance.happens(60)) {
            course.task = Task::Follow(saved);
        } else if chance.happens(15) {
            course.task = Task::Plan;
        }
        course
    }

    /// What may go wrong with the disk.
    fn trouble(&mut self) -> Trouble {
        let chance = &mut self.chance;
        let mut trouble = Trouble::default();
        match chance.below(100) {
            0..14 => trouble.cut_at = Some(chance.below(120) as u64),
            14..20 => {
                trouble.fails_at = Some((chance.below(80) as u64, 1 + chance.below(4) as u64));
            }
            20..26 => trouble.room = Some(chance.below(60_000) as u64),
            _ => {}
        }
        trouble
    }

    fn one_alone(&mut self) -> Result<(), Broken> {
        let mut course = self.course();
        course.trouble = self.trouble();
        course.loses_power |= course.trouble.cut_at.is_some();
        let ran = apply(&self.world, &self.fleet, &course)
            .map_err(|broken| format!("{broken}, {course:?}, {:#?}", self.fleet))?;
        self.look_at(ran, &course)
    }

    fn two_at_once(&mut self) -> Result<(), Broken> {
        let both = [self.course(), self.course()];
        // The other one may have an older or a newer configuration.
        let mut theirs = self.fleet.clone();
        if self.chance.happens(40) {
            change(&mut theirs, &mut self.chance);
            if let Some(chance) = &mut self.rollouts {
                change_policies(&mut theirs, chance);
            }
        }
        let pairs = [(&self.fleet, &both[0]), (&theirs, &both[1])];
        let ran = apply_both(&self.world, pairs, self.chance.next())
            .map_err(|broken| format!("{broken}, {both:?}, {:#?} and {theirs:#?}", self.fleet))?;
        for (ran, course) in ran.into_iter().zip(&both) {
            self.look_at(ran, course)?;
        }
        Ok(())
    }

    fn look_at(&mut self, ran: Ran, course: &Course) -> Result<(), Broken> {
        (self.tell)(&format!("{course:?}, {:?}\n  {ran:?}", self.fleet));
        self.world
            .check()
            .map_err(|broken| format!("{broken}, {ran:?}, {course:?}"))?;
        if let End::Planned(saved) = ran.end {
            self.saved = Some(saved);
        }
        Ok(())
    }

    fn pass_time(&mut self) {
        // Somebody leaves it alone for a while.
        let rests = self
            .rollouts
            .as_mut()
            .is_some_and(|chance| chance.happens(40));
        if !rests {
            meddle(&mut self.world, &mut self.chance);
        }
        if let Some(chance) = &mut self.rollouts {
            for row in self.world.live() {
                let mut admin = self.world.admin();
                match chance.below(20) {
                    0..3 => drop(admin.fail(&row.provider_id).unwrap()),
                    3..6 => drop(admin.recover(&row.provider_id).unwrap()),
                    _ => {}
                }
            }
        }
        if self.chance.happens(60) {
            let milliseconds = self.chance.below(20_000) as u64;
            self.world.pass(Duration::from_millis(milliseconds));
        }
    }

    /// The faults end; what the cloud is like by nature stays.
    fn come_home(mut self) -> Result<(), Broken> {
        self.world.weather = SimOptions {
            stale_listing: self.world.weather.stale_listing,
            boot_time: self.world.weather.boot_time,
            healthy_after: self.world.weather.healthy_after,
            ..SimOptions::default()
        };
        for row in self.world.live() {
            self.world.admin().recover(&row.provider_id).unwrap();
        }
        for policy in self
            .fleet
            .groups
            .iter_mut()
            .filter_map(|it| it.policy.as_mut())
        {
            // What it forbids never comes about.
            if policy.forbids() {
                policy.max_unavailable = None;
            }
        }
        self.world.pass(Duration::from_secs(10));
        let seed = self.chance.next();
        arrive(
            &mut self.world,
            &self.fleet,
            Mode::Normal,
            seed,
            self.injected_fault,
        )
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
    if chance.happens(30) {
        let subnet = |chance: &mut Chance| SubnetOption {
            zone: chance.happens(30).then(|| "za".to_owned()),
            size: 251,
            capacity: chance.happens(70).then(|| chance.below(3) as u32),
        };
        weather.subnets = ["sub-a", "sub-b", "sub-c"]
            .map(|id| (id.to_owned(), subnet(chance)))
            .into();
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
        if chance.happens(20) {
            group.pool = !group.pool;
        }
        group.fixed_address = None;
        if !group.pool && group.name == "web" && group.size == 1 && chance.happens(30) {
            group.fixed_address = Some("100.64.9.9");
        }
        group.depends_on = if group.name == "web" && needed && chance.happens(50) {
            vec!["store"]
        } else {
            Vec::new()
        };
    }
}

fn change_policies(fleet: &mut Fleet, chance: &mut Chance) {
    for group in &mut fleet.groups {
        if chance.happens(30) {
            group.policy = chance.happens(80).then(|| Policy::draw(chance));
        }
        if chance.happens(40) {
            group.size = chance.below(7) as u32;
        }
        if chance.happens(30) {
            group.image = chance.one_of(&["img-a", "img-b", "img-c"]);
        }
        if chance.happens(20) {
            group.balanced = !group.balanced;
        }
        if chance.happens(10) {
            group.zones = !group.zones;
        }
        // A subnet is in one zone.
        group.pool &= !group.zones;
        if group.size != 1 {
            group.fixed_address = None;
        }
    }
}

/// Somebody changes the cloud behind our back, or loses the state.
fn meddle(world: &mut World, chance: &mut Chance) {
    world.touch();
    // Whoever takes our tags off an instance that isn't recorded yet takes it from us.
    let settled = world.is_settled;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A taste of them, without the disk's faults: `cargo xtask simulate` has many more.
    #[test]
    fn lifetimes_lose_nothing_and_arrive() {
        for seed in 0..100 {
            if let Err(broken) = live(seed, InjectedFault::None, &mut |_| {}) {
                panic!("seed {seed}: {broken}");
            }
        }
    }
}

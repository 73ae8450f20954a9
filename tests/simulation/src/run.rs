//! Runs of `nstance apply`: one, or two at once; and what is left when one of them dies.

use std::sync::Mutex;

use nstance::apply::driver::ask;
use nstance::apply::engine::{Call, Outcome, Request, TaskId};
use nstance::fault_injection::InjectedFault;
use nstance::plan::change::{Mode, Plan};
use nstance::provider::Owner;

use crate::chance::Chance;
use crate::disk::Trouble;
use crate::fleet::Fleet;
use crate::person::{Person, options, plan};
use crate::promise::Promise;
use crate::turns::Turns;
use crate::watch::{Fuse, Leave, WatchedCloud, lock, until_death};
use crate::world::{Broken, World};

/// What a run does.
#[derive(Debug, Clone, Default)]
pub(crate) enum Task {
    /// Makes a plan and carries it out.
    #[default]
    Apply,
    /// Carries out a plan that was made before.
    Follow(Box<SavedPlan>),
    /// Makes a plan and keeps it.
    Plan,
}

impl Task {
    /// What names the saved plan, if there is one.
    pub(crate) fn digest(&self) -> Option<&str> {
        match self {
            Self::Follow(saved) => Some(&saved.digest),
            Self::Apply | Self::Plan => None,
        }
    }
}

/// A plan that was saved, and what its rows were like then.
#[derive(Debug, Clone)]
pub(crate) struct SavedPlan {
    pub(crate) plan: Plan,
    /// What was declared.
    pub(crate) fleet: Fleet,
    /// What names its file.
    pub(crate) digest: String,
    /// By our id, or by address where a slot was empty.
    pub(crate) rows: Vec<(String, Option<String>)>,
}

/// How a run goes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Course {
    pub(crate) seed: u64,
    pub(crate) task: Task,
    pub(crate) mode: Mode,
    /// Replace these.
    pub(crate) replace: Vec<String>,
    /// Deletions beyond the budget are allowed.
    pub(crate) allow_delete: bool,
    /// Dies at that point.
    pub(crate) dies_at: Option<usize>,
    /// Then it is the power that fails, not the process alone.
    pub(crate) loses_power: bool,
    /// What the disk does.
    pub(crate) trouble: Trouble,
    /// Gets Ctrl-C after that many steps.
    pub(crate) stops_after: Option<usize>,
    /// How often a held lock is tried again.
    pub(crate) patience: usize,
    pub(crate) injected_fault: InjectedFault,
    /// Of a hundred steps, how many somebody meddles after.
    pub(crate) meddling: usize,
    /// Replacements that an opportunistic group leaves to later are allowed.
    pub(crate) releases: bool,
    /// What is asked of the rollout from elsewhere, after that many steps.
    pub(crate) asks: Vec<(usize, Request)>,
    /// A rollout that was rolled back may be tried again.
    pub(crate) retries: bool,
    /// Look after each step whether all is as it must be.
    pub(crate) watched: bool,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End {
    Died,
    /// Recovery or planning gave up on the cloud; nothing was done after it.
    GaveUp,
    /// Somebody else holds the state.
    Locked,
    /// The plan was made of rows that have moved on.
    Stale,
    /// The plan deletes more than the budget allows.
    OverBudget,
    /// The disk failed.
    DiskFailed,
    /// It was rolled back before, and isn't tried again.
    RolledBack,
    /// Nothing was planned.
    Empty,
    /// A plan was made, and kept.
    Planned(Box<SavedPlan>),
    Applied(Box<Outcome>),
}

/// A run that ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: End,
    /// How many points it passed where it could have died.
    pub(crate) points: usize,
    /// How many steps its engine took.
    pub(crate) steps: usize,
}

/// What a dying process leaves behind, and what the harness watches.
#[derive(Default)]
pub(crate) struct Afterlife {
    /// Requests on their way to the cloud.
    pub(crate) in_flight: Mutex<Vec<(TaskId, Call)>>,
    pub(crate) leave: Mutex<Leave>,
    pub(crate) promise: Mutex<Promise>,
    pub(crate) steps: Mutex<usize>,
}

/// The plan that `plan` would show, with nothing done.
pub(crate) fn plan_of(world: &World, fleet: &Fleet, mode: Mode) -> Result<Plan, String> {
    let exists = world.state_path().exists();
    let mut store = exists.then(|| world.backend().open_to_write(None).unwrap());
    let (options, clock) = (options(fleet, mode, &[]), &*world.clock);
    plan(fleet, &options, store.as_deref_mut(), &world.cloud(), clock)
}

pub(crate) fn owner() -> Owner {
    let identity = World::identity();
    Owner {
        cluster: identity.cluster,
        shard: identity.shard,
    }
}

/// Runs `apply` once. What is true afterwards is for [`World::check`] to say.
pub(crate) fn apply(world: &World, fleet: &Fleet, course: &Course) -> Result<Ran, Broken> {
    if let Some(disk) = world.disk() {
        disk.arrange(course.trouble);
    }
    let fuse = Fuse::new(course.dies_at).with_disk(world.disk());
    let fuse = if course.watched {
        fuse.watching(world)
    } else {
        fuse
    };
    let ran = run(world, fleet, course, &fuse)?;
    let was_seen = fuse.last_seen();
    let at_a_point = matches!(ran.end, End::Died) && course.trouble.cut_at.is_none();
    drop(fuse);
    if let Some(disk) = world.disk() {
        if course.loses_power && disk.is_off() {
            disk.after_power_cut(&mut Chance::new(course.seed ^ 0x00ff));
            if let Some(seen) = was_seen.filter(|_| at_a_point) {
                let left = world.snapshot()?.as_ref().map(World::text_of);
                if left.as_ref() != Some(&seen) {
                    return Err(format!(
                        "a power cut took what was committed: {seen}, then {left:?}"
                    ));
                }
            }
        } else {
            disk.after_death();
        }
    }
    Ok(ran)
}

/// Runs two at once, in a seeded order.
pub(crate) fn apply_both(
    world: &World,
    both: [(&Fleet, &Course); 2],
    seed: u64,
) -> Result<[Ran; 2], Broken> {
    let turns = &Turns::of(2, seed);
    let [first, second] = std::thread::scope(|scope| {
        let people = [0, 1].map(|person| {
            let (fleet, course) = both[person];
            scope.spawn(move || {
                let _taken = turns.begin(person);
                let fuse = Fuse::new(course.dies_at).in_turns(turns, person);
                let fuse = if course.watched {
                    fuse.watching(world)
                } else {
                    fuse
                };
                let ran = run(world, fleet, course, &fuse);
                drop(fuse);
                ran
            })
        });
        people.map(|person| {
            person
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    Ok([first?, second?])
}

fn run(world: &World, fleet: &Fleet, course: &Course, fuse: &Fuse<'_>) -> Result<Ran, Broken> {
    let after = Afterlife::default();
    let cloud = world.cloud();
    let watched = WatchedCloud {
        cloud: &cloud,
        world,
        fuse,
        leave: &after.leave,
        promise: &after.promise,
    };
    let person = Person {
        world,
        fleet,
        course,
        fuse,
        cloud: &watched,
        after: &after,
    };
    let mut end = until_death(|| person.run()).unwrap_or(End::Died);
    person.leave_behind();
    if matches!(end, End::DiskFailed) && world.disk().is_some_and(crate::disk::Disk::is_off) {
        end = End::Died;
    }
    if matches!(end, End::Died | End::DiskFailed) {
        // What was on its way may still arrive.
        let mut chance = Chance::new(course.seed ^ 0xdead);
        for (_, call) in lock(&after.in_flight).drain(..) {
            if chance.happens(50) {
                let _ = ask(&cloud, &*world.clock, &owner(), call, course.injected_fault);
            }
        }
    }
    if let Some(broken) = fuse.broken() {
        return Err(broken);
    }
    let leave = lock(&after.leave);
    if !leave.unplanned.is_empty() {
        return Err(format!("without a plan: {:?}", leave.unplanned));
    }
    let steps = *lock(&after.steps);
    Ok(Ran {
        end,
        points: fuse.passed(),
        steps,
    })
}

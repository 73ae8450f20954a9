//! Runs the engine with threads, a store and a cloud.
//!
//! In: a plan, and its [`World`]. Out: the [`Outcome`]. Must not: decide anything; it executes the
//! engine's commands and returns their results as events.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use nstance_state::{ApplyId, NewApply, RolloutId, StateError, Store, Write};

use super::availability;
use super::checks::{self, CommandError};
use super::engine::{
    ADDRESS_WAIT, Answer, Call, Command, DrainRequest, Engine, Event, Limits, Note, Outcome,
    Progress, Starts, SurveyRequest, TaskId,
};
use super::export::Exporter;
use super::journal::{self, StoreOperation};
use super::nonce::NonceRequest;
use super::nonce_command::{self, PATIENCE};
use super::rollout_record::{self, RolloutRecord};
use super::stages;
use crate::clock::{Clock, Timestamp};
use crate::fault_injection::InjectedFault;
use crate::plan::change::Plan;
use crate::provider::{Cloud, CloudError, Observation, Owner};

/// How often requests of `nstance rollout` are read.
const REQUEST_POLL: Duration = Duration::from_secs(1);

/// How often the signal counter is polled while nothing happens.
const SIGNAL_POLL: Duration = Duration::from_millis(100);

/// The environment of an apply.
pub struct World<'a> {
    /// The record.
    pub store: &'a mut dyn Store,
    /// The cloud.
    pub cloud: &'a dyn Cloud,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Writes exported files.
    pub exporter: &'a Exporter,
    /// The number of signals so far: after one, operations in progress finish; after two, apply
    /// stops immediately.
    pub signals: &'a AtomicUsize,
    /// The apply's entry in the history.
    pub apply: Option<ApplyId>,
    /// The program that makes nonces, and its arguments.
    pub nonce_command: &'a [Arc<str>],
    /// The record of the rollout, if one is kept.
    pub rollout: Option<RolloutId>,
}

/// Why an apply ended early.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The store failed; operations in progress remain open in the journal.
    #[error("the state can't be written: {0}")]
    Store(#[from] StateError),
    /// A second signal.
    #[error("stopped at once; {0} calls were under way and are open in the journal")]
    Killed(usize),
}

/// How an apply begins.
#[derive(Debug)]
pub struct Beginning {
    /// Its entry in the history.
    pub entry: NewApply,
    /// How it is recorded as a rollout.
    pub record: RolloutRecord,
    /// How far an earlier apply of the plan came.
    pub starts: Starts,
}

/// How an apply ended, and the way back of groups that failed.
#[derive(Debug)]
pub struct Applied {
    /// The outcome of the plan.
    pub outcome: Outcome,
    /// The plan of the way back and its outcome, if groups went back.
    pub back: Option<(Plan, Outcome)>,
}

/// Applies a plan with its own entry in the history, then removes specs that nothing refers to.
/// Calls `tell` with all progress.
///
/// Fails with [`DriveError`]; the entry then stays open, which means interrupted.
pub fn apply(
    plan: &Plan,
    limits: Limits,
    seed: u64,
    beginning: Beginning,
    mut world: World<'_>,
    tell: &mut dyn FnMut(&Plan, &Progress),
) -> Result<Applied, DriveError> {
    let begun = rollout_record::begin(
        plan,
        world.store,
        world.clock.now(),
        beginning.entry,
        &beginning.record,
    )?;
    (world.apply, world.rollout) = (begun.apply, begun.rollout);
    let mut told = |step: &Progress| tell(plan, step);
    let (made, outcome) =
        stages::drive_all(plan, limits, seed, beginning.starts, &mut world, &mut told)?;
    let mut back = None;
    if let Some(way) = begun.back(&made, &outcome, world.store, world.clock.now())? {
        let mut told = |step: &Progress| tell(&way, step);
        let none = Starts::default();
        let came = drive(&way, limits, seed, &none, &mut world, &mut told)?;
        back = Some((way, came));
    }
    let applied = Applied { outcome, back };
    begun.finish(plan, &applied, world.store, world.clock.now())?;
    Ok(applied)
}

/// Applies a plan. Calls `tell` with all progress.
///
/// Fails if the store fails, or on a second signal.
pub fn drive(
    plan: &Plan,
    limits: Limits,
    seed: u64,
    starts: &Starts,
    world: &mut World<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Outcome, DriveError> {
    let mut engine = Engine::new(plan, limits, seed, starts);
    let owner = Owner {
        cluster: plan.cluster.clone(),
        shard: plan.shard.clone(),
    };
    let (call_sender, call_receiver) = mpsc::channel::<Job>();
    let (event_sender, event_receiver) = mpsc::channel();
    let call_receiver = Arc::new(Mutex::new(call_receiver));
    let (cloud, clock) = (world.cloud, world.clock);
    let words = world.nonce_command;
    let failed = AtomicBool::new(false);
    let mut creating = HashSet::new();
    std::thread::scope(|scope| {
        for _ in 0..limits.parallelism.min(plan.changes.len()).max(1) {
            let calls = Arc::clone(&call_receiver);
            let events = event_sender.clone();
            let owner = &owner;
            let failed = &failed;
            scope.spawn(move || {
                loop {
                    // The lock is held only while receiving.
                    let taken = calls.lock().map(|calls| calls.recv());
                    let Ok(Ok(job)) = taken else { return };
                    if failed.load(Ordering::SeqCst) {
                        return;
                    }
                    let event = match job {
                        Job::Call(task, call) => {
                            let result = ask(cloud, clock, owner, call, limits.injected_fault);
                            let result = Box::new(result);
                            Event::Called { task, result }
                        }
                        Job::Nonce(task, request) => {
                            let made = nonce_command::run(words, &request, PATIENCE);
                            Event::NonceMade { task, made }
                        }
                        Job::Survey(group, request) => {
                            let result = availability::survey(cloud, &request);
                            Event::Surveyed { group, result }
                        }
                        Job::Drain(task, request) => {
                            let result = drain(&request);
                            Event::Drained { task, result }
                        }
                    };
                    if events.send(event).is_err() {
                        return;
                    }
                }
            });
        }
        let injected_fault = limits.injected_fault;
        let result = run(
            &mut engine,
            world,
            &call_sender,
            &event_receiver,
            &mut creating,
            injected_fault,
            tell,
        );
        // Stops idle workers; busy ones stop after their call.
        failed.store(result.is_err(), Ordering::SeqCst);
        drop((call_sender, event_sender));
        if matches!(result, Err(DriveError::Store(_))) {
            for event in event_receiver {
                if let Event::Called { task, result } = event
                    && creating.contains(&task)
                    && let Ok(Answer::Instance(Some(made))) = *result
                {
                    tell_unrecorded(plan, task, made.provider_id, tell);
                }
            }
        }
        result
    })?;
    Ok(engine.outcome())
}

/// What a worker does.
enum Job {
    /// Ask the cloud.
    Call(TaskId, Call),
    /// Run the nonce command.
    Nonce(TaskId, NonceRequest),
    /// Find out which instances of a group are available.
    Survey(usize, SurveyRequest),
    /// Run a drain command.
    Drain(TaskId, DrainRequest),
}

/// Runs a drain command. One that takes too long has had its time.
///
/// Fails if it can't be run, or fails.
fn drain(request: &DrainRequest) -> Result<(), String> {
    let DrainRequest {
        words,
        subject,
        timeout,
    } = request;
    match checks::run(words, subject, *timeout, "the drain command") {
        Ok(()) | Err(CommandError::TimedOut(_)) => Ok(()),
        Err(CommandError::Failed(why)) => Err(why),
    }
}

/// Runs the engine until its end. `creating` are the tasks whose latest call creates an instance.
///
/// Fails if the store fails, or on a second signal.
fn run(
    engine: &mut Engine<'_>,
    world: &mut World<'_>,
    jobs: &mpsc::Sender<Job>,
    answers: &mpsc::Receiver<Event>,
    creating: &mut HashSet<TaskId>,
    injected_fault: InjectedFault,
    tell: &mut dyn FnMut(&Progress),
) -> Result<(), DriveError> {
    let mut events = Vec::new();
    if world.rollout.is_some() {
        events.extend(requests(world.store, world.clock.now())?);
    }
    events.push(Event::Start);
    let mut under_way = 0_usize;
    let mut stopping = false;
    let mut asked_at = None;
    let begin = |under_way: &mut usize, job| {
        *under_way += 1;
        jobs.send(job).expect("workers live as long as this runs");
    };
    loop {
        let mut wave: Vec<(TaskId, StoreOperation)> = Vec::new();
        let mut notes: Vec<Note> = Vec::new();
        for event in events.drain(..) {
            for command in engine.step(event, world.clock.now()) {
                match command {
                    Command::Store(task, operation) => wave.push((task, operation)),
                    Command::Note(note) => notes.push(note),
                    Command::Call(task, call) => {
                        if matches!(call, Call::Create(_) | Call::Find { .. }) {
                            creating.insert(task);
                        } else {
                            creating.remove(&task);
                        }
                        begin(&mut under_way, Job::Call(task, call));
                    }
                    Command::MakeNonce(task, request) => {
                        begin(&mut under_way, Job::Nonce(task, request));
                    }
                    Command::Survey(group, request) => {
                        begin(&mut under_way, Job::Survey(group, request));
                    }
                    Command::Drain(task, request) => {
                        begin(&mut under_way, Job::Drain(task, request));
                    }
                    Command::Export(address, spec) => {
                        if let Err(error) = world.exporter.write(&address, &spec.files) {
                            tell(&Progress::ExportFailed {
                                address,
                                error: error.to_string(),
                            });
                        }
                    }
                    Command::Unexport(address) => {
                        if let Err(error) = world.exporter.remove(&address) {
                            tell(&Progress::ExportFailed {
                                address,
                                error: error.to_string(),
                            });
                        }
                    }
                    Command::Tell(progress) => tell(&progress),
                }
            }
        }
        let notes = world
            .rollout
            .map(|rollout| journal::notes(rollout, notes))
            .unwrap_or_default();
        if !wave.is_empty() || !notes.is_empty() {
            // Results that already arrived join the wave, so that a busy apply commits less often.
            let made: Vec<(TaskId, String)> = wave.iter().flat_map(made).collect();
            let (tasks, operations): (Vec<_>, Vec<_>) = wave.into_iter().unzip();
            let committed = journal::commit(
                world.store,
                world.clock.now(),
                world.apply,
                operations,
                notes,
                injected_fault,
            );
            let ids = match committed {
                Ok(ids) => ids,
                Err(error) => {
                    for (task, provider_id) in made {
                        tell_unrecorded(engine.plan, task, provider_id, tell);
                    }
                    return Err(error.into());
                }
            };
            events.extend(
                tasks
                    .into_iter()
                    .zip(ids)
                    .map(|(task, intent)| Event::Stored { task, intent }),
            );
            continue;
        }
        if engine.is_over() {
            return Ok(());
        }
        match world.signals.load(Ordering::SeqCst) {
            1 if !stopping => {
                stopping = true;
                events.push(Event::Stop);
                continue;
            }
            0 | 1 => {}
            _ => return Err(DriveError::Killed(under_way)),
        }
        let now = world.clock.now();
        if world.rollout.is_some() && asked_at.is_none_or(|at| now.since(at) >= REQUEST_POLL) {
            asked_at = Some(now);
            events.extend(requests(world.store, world.clock.now())?);
            if !events.is_empty() {
                continue;
            }
        }
        let wait = engine.next_wake(now).map(|at| at.since(now));
        if under_way == 0
            && let Some(wait) = wait
        {
            tell(&Progress::Tick);
            // Nothing else can happen during this wait. A simulated clock doesn't really wait.
            world.clock.sleep(wait.min(SIGNAL_POLL));
            events.push(Event::Tick);
            continue;
        }
        tell(&Progress::Tick);
        match answers.recv_timeout(wait.unwrap_or(SIGNAL_POLL).min(SIGNAL_POLL)) {
            Ok(event) => {
                under_way -= 1;
                events.push(event);
                while let Ok(event) = answers.try_recv() {
                    under_way -= 1;
                    events.push(event);
                }
            }
            Err(_) => events.push(Event::Tick),
        }
    }
}

/// The provider ids that an operation records.
fn made((task, operation): &(TaskId, StoreOperation)) -> Vec<(TaskId, String)> {
    match operation {
        StoreOperation::Settle(settlement) => {
            let records = settlement.puts.iter();
            records
                .map(|record| (*task, record.provider_id.clone()))
                .collect()
        }
        StoreOperation::Intend { .. } => Vec::new(),
    }
}

/// Tells of an instance that was made and can't be recorded.
fn tell_unrecorded(
    plan: &Plan,
    task: TaskId,
    provider_id: String,
    tell: &mut dyn FnMut(&Progress),
) {
    let before = plan.changes[task].before.as_deref();
    let known = before.and_then(|before| before.provider_id.as_ref());
    if known != Some(&provider_id) {
        tell(&Progress::Unrecorded { task, provider_id });
    }
}

/// Executes a call, after its delay if it has one.
///
/// Fails if the cloud fails.
pub fn ask(
    cloud: &dyn Cloud,
    clock: &dyn Clock,
    owner: &Owner,
    call: Call,
    injected_fault: InjectedFault,
) -> Result<Answer, CloudError> {
    let instance = match call {
        Call::Create(request) => Some(cloud.create(&request)?),
        Call::Update(request) => Some(cloud.update(&request)?),
        Call::Delete(request) => {
            cloud.delete(&request)?;
            None
        }
        Call::Find { instance_id } => {
            if injected_fault != InjectedFault::NoWindow {
                clock.sleep(cloud.visibility_window());
            }
            find(cloud, owner, &instance_id)?
        }
        Call::Describe { provider_id } => {
            clock.sleep(ADDRESS_WAIT);
            cloud.describe(&[provider_id])?.into_iter().next()
        }
        Call::Register(request) => {
            cloud.register(&request)?;
            None
        }
        Call::Deregister(request) => {
            cloud.deregister(&request)?;
            None
        }
        Call::Look(request) => return availability::look(cloud, &request).map(Answer::Looked),
        Call::Targets(request) => {
            return availability::targets(cloud, &request).map(Answer::Targets);
        }
    };
    Ok(Answer::Instance(instance))
}

/// The requests of `nstance rollout`, as events; they are removed from the state.
///
/// Fails if the store fails.
pub fn requests(store: &mut dyn Store, now: Timestamp) -> Result<Vec<Event>, StateError> {
    let asked = store.rollout_requests()?;
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let done = asked
        .iter()
        .map(|asked| Write::RemoveRequest { id: asked.id });
    store.commit(now.into(), done.collect())?;
    let events = asked.into_iter().filter_map(|asked| {
        Some(Event::Asked {
            request: super::engine::Request::parse(&asked.kind)?,
            group: asked.group,
        })
    });
    Ok(events.collect())
}

/// The live instance with this instance id; `None` if the listing lacks it.
///
/// Fails if the cloud fails.
pub fn find(
    cloud: &dyn Cloud,
    owner: &Owner,
    instance_id: &str,
) -> Result<Option<Observation>, CloudError> {
    let mut page: Option<String> = None;
    loop {
        let listed = cloud.list(owner, page.as_deref())?;
        let found = listed
            .instances
            .into_iter()
            .find(|o| o.state.is_live() && o.instance_id.as_deref() == Some(instance_id));
        if found.is_some() {
            return Ok(found);
        }
        page = listed.next;
        if page.is_none() {
            return Ok(None);
        }
    }
}

//! Runs the engine with threads, a store and a cloud.
//!
//! In: a plan, and its [`World`]. Out: the [`Outcome`]. Must not: decide anything; it executes the
//! engine's commands and returns their results as events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use nstance_state::{ApplyId, NewApply, StateError, Store, Write};

use super::engine::{
    ADDRESS_WAIT, Call, Command, Engine, Event, Limits, Outcome, Progress, TaskId,
};
use super::export::Exporter;
use super::journal::{self, StoreOperation};
use super::nonce::NonceRequest;
use super::nonce_command::{self, PATIENCE};
use crate::clock::Clock;
use crate::fault_injection::InjectedFault;
use crate::plan::change::Plan;
use crate::provider::{Cloud, CloudError, Observation, Owner};

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

/// Applies a plan with its own entry in the history, then removes specs that nothing refers to.
/// Calls `tell` with all progress.
///
/// Fails with [`DriveError`]; the entry then stays open, which means interrupted.
pub fn apply(
    plan: &Plan,
    limits: Limits,
    seed: u64,
    entry: NewApply,
    mut world: World<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Outcome, DriveError> {
    let now = world.clock.now().into();
    let started = world.store.commit(now, vec![Write::StartApply(entry)])?;
    world.apply = started.apply;
    let outcome = drive(plan, limits, seed, &mut world, tell)?;
    let finish = Write::FinishApply {
        id: started.apply,
        status: outcome.status(),
        summary_json: serde_json::to_string(&outcome.done).expect("its keys are strings"),
    };
    let now = world.clock.now().into();
    let last = vec![finish, Write::CollectGarbage];
    world.store.commit(now, last)?;
    Ok(outcome)
}

/// Applies a plan. Calls `tell` with all progress.
///
/// Fails if the store fails, or on a second signal.
pub fn drive(
    plan: &Plan,
    limits: Limits,
    seed: u64,
    world: &mut World<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Outcome, DriveError> {
    let mut engine = Engine::new(plan, limits, seed);
    let owner = Owner {
        cluster: plan.cluster.clone(),
        shard: plan.shard.clone(),
    };
    let (call_sender, call_receiver) = mpsc::channel::<(TaskId, Job)>();
    let (event_sender, event_receiver) = mpsc::channel();
    let call_receiver = Arc::new(Mutex::new(call_receiver));
    let (cloud, clock) = (world.cloud, world.clock);
    let words = world.nonce_command;
    std::thread::scope(|scope| {
        for _ in 0..limits.parallelism.min(plan.changes.len()).max(1) {
            let calls = Arc::clone(&call_receiver);
            let events = event_sender.clone();
            let owner = &owner;
            scope.spawn(move || {
                loop {
                    // The lock is held only while receiving.
                    let taken = calls.lock().map(|calls| calls.recv());
                    let Ok(Ok((task, job))) = taken else { return };
                    let event = match job {
                        Job::Call(call) => {
                            let result = ask(cloud, clock, owner, call, limits.injected_fault);
                            let result = Box::new(result);
                            Event::Called { task, result }
                        }
                        Job::Nonce(request) => {
                            let made = nonce_command::run(words, &request, PATIENCE);
                            Event::NonceMade { task, made }
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
            injected_fault,
            tell,
        );
        // Stops idle workers; busy ones stop after their call.
        drop(call_sender);
        result
    })?;
    Ok(engine.outcome())
}

/// What a worker does.
enum Job {
    /// Ask the cloud.
    Call(Call),
    /// Run the nonce command.
    Nonce(NonceRequest),
}

fn run(
    engine: &mut Engine<'_>,
    world: &mut World<'_>,
    jobs: &mpsc::Sender<(TaskId, Job)>,
    answers: &mpsc::Receiver<Event>,
    injected_fault: InjectedFault,
    tell: &mut dyn FnMut(&Progress),
) -> Result<(), DriveError> {
    let mut events = vec![Event::Start];
    let mut under_way = 0_usize;
    let mut stopping = false;
    loop {
        let mut wave: Vec<(TaskId, StoreOperation)> = Vec::new();
        for event in events.drain(..) {
            for command in engine.step(event, world.clock.now()) {
                match command {
                    Command::Store(task, operation) => wave.push((task, operation)),
                    Command::Call(task, call) => {
                        under_way += 1;
                        jobs.send((task, Job::Call(call)))
                            .expect("workers live as long as this runs");
                    }
                    Command::MakeNonce(task, request) => {
                        under_way += 1;
                        jobs.send((task, Job::Nonce(request)))
                            .expect("workers live as long as this runs");
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
        if !wave.is_empty() {
            // Results that already arrived join the wave, so that a busy apply commits less often.
            let (tasks, operations): (Vec<_>, Vec<_>) = wave.into_iter().unzip();
            let ids = journal::commit(
                world.store,
                world.clock.now(),
                world.apply,
                operations,
                injected_fault,
            )?;
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
        let wait = engine.next_wake(now).map(|at| at.since(now));
        if under_way == 0
            && let Some(wait) = wait
        {
            // Nothing else can happen during this wait. A simulated clock doesn't really wait.
            world.clock.sleep(wait.min(SIGNAL_POLL));
            events.push(Event::Tick);
            continue;
        }
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

/// Executes a call, after its delay if it has one.
///
/// Fails if the cloud fails.
pub fn ask(
    cloud: &dyn Cloud,
    clock: &dyn Clock,
    owner: &Owner,
    call: Call,
    injected_fault: InjectedFault,
) -> Result<Option<Observation>, CloudError> {
    match call {
        Call::Create(request) => cloud.create(&request).map(Some),
        Call::Update(request) => cloud.update(&request).map(Some),
        Call::Delete(request) => cloud.delete(&request).map(|()| None),
        Call::Find { instance_id } => {
            if injected_fault != InjectedFault::NoWindow {
                clock.sleep(cloud.visibility_window());
            }
            find(cloud, owner, &instance_id)
        }
        Call::Describe { provider_id } => {
            clock.sleep(ADDRESS_WAIT);
            Ok(cloud.describe(&[provider_id])?.into_iter().next())
        }
        Call::Observe { provider_id } => Ok(cloud.describe(&[provider_id])?.into_iter().next()),
    }
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

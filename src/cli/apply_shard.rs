//! Applies one shard.
//!
//! In: a session, and the options. Out: the locked shard, its plan (made or loaded, checked and
//! shown), and the applied plan. Must not: prompt, or know of other shards.

use std::path::PathBuf;
use std::time::Duration;

use nstance_state::{Held, RolloutId, Store, Write};

use super::apply_log;
use super::approval::refuse_stale;
use super::console;
use super::exit;
use super::failure::Failure;
use super::live_page::LivePage;
use super::outcome::{ShardOutcome, Span, conclude};
use super::page;
use super::plan;
use super::plan_args::PlanArgs;
use super::plan_files::SavedPlan;
use super::progress::{ApplyProgress, Board};
use super::rollout;
use super::selection::Selection;
use super::session::Session;
use super::signals::Graceful;
use super::state_edit::{back_up, entry};
use crate::address::Address;
use crate::apply::driver::{Beginning, World, apply};
use crate::apply::engine::{Limits, Starts};
use crate::apply::export::Exporter;
use crate::apply::recover::recover_with_entry;
use crate::apply::resume;
use crate::apply::rollout_record::{self, OpenRollout, RolloutRecord};
use crate::apply::staleness::moved_on;
use crate::apply::steps::Start;
use crate::clock::Timestamp;
use crate::diagnostic::{Diagnostics, Severity, counted};
use crate::fault_injection::InjectedFault;
use crate::merge::group::size_of;
use crate::pipeline::{Caches, PlanError, Prepared};
use crate::plan::change::Plan;
use crate::plan::rollout::Rollout;
use crate::provider::retry::RetryingReads;
use crate::provider::{Cloud, Owner};
use crate::refresh::refresh;
use crate::report::events::{self, Events};
use crate::report::text;
use crate::stage;

/// A shard whose lock this process holds.
pub struct LockedShard<'s, 'g> {
    session: &'s Session<'g>,
    /// Its groups, if a plan is made.
    prepared: Option<Prepared<'s>>,
    cloud: Box<dyn Cloud>,
    lock: Box<dyn Held>,
}

/// A shard with a plan that is ready to be applied.
pub struct ReadyShard<'s, 'g> {
    /// Its session.
    pub session: &'s Session<'g>,
    /// The plan.
    pub plan: Plan,
    /// The findings of making it.
    pub findings: Diagnostics,
    digest: Option<String>,
    caches: Caches,
    cloud: Box<dyn Cloud>,
    store: Option<Box<dyn Store>>,
    lock: Box<dyn Held>,
    /// The rollout that the plan continues.
    continued: Option<Continued>,
    page: Option<LivePage>,
}

/// A rollout of an earlier apply.
struct Continued {
    id: RolloutId,
    started_at: Timestamp,
    /// Whether the plan is the way back.
    goes_back: bool,
    starts: Starts,
    /// What is left of the plan.
    remaining: Plan,
}

impl<'s, 'g> LockedShard<'s, 'g> {
    /// Locks a shard. With `plans`, compiles its templates first.
    ///
    /// Fails if a template has an error, or if the lock is held.
    pub fn lock(session: &'s Session<'g>, operation: &str, plans: bool) -> Result<Self, Failure> {
        let prepared = if plans { Some(prepare(session)?) } else { None };
        let cloud = session.cloud()?;
        let lock = session.lock(operation)?;
        Ok(Self {
            session,
            prepared,
            cloud,
            lock,
        })
    }

    /// Settles open intents, then checks a saved plan.
    ///
    /// Fails if the plan is stale, or if it was rolled back and isn't retried.
    pub fn follow(
        self,
        mut saved: SavedPlan,
        chosen: &Selection,
        retries: bool,
    ) -> Result<ReadyShard<'s, 'g>, Failure> {
        let refused = saved.plan.release(|group| chosen.allows_replace(group));
        if refused.has_errors() {
            return Err(refused.into());
        }
        let sizes = &saved.plan.sizes;
        let store = self.settled(&|address| {
            let size = sizes.get(address.group.as_str());
            size.is_some_and(|size| address.slot < *size)
        })?;
        if let Some(state) = store.as_deref()
            && let Some(found) = OpenRollout::of(state)?
            && found.has_digest(&saved.digest)
            && let Ok(continued) = self.continued(state, &found)?
        {
            return Ok(self.go_on(store, found.plan, continued));
        }
        let snapshot = store.as_ref().map(|store| store.snapshot()).transpose()?;
        let clock = &*self.session.clock;
        let moved = moved_on(
            &saved.plan,
            snapshot.as_ref(),
            &*self.cloud,
            clock,
            InjectedFault::None,
        )
        .map_err(|error| {
            let doing = "the instances can't be listed";
            PlanError::Cloud { doing, error }
        })?;
        refuse_stale(&moved)?;
        refuse_rolled_back(store.as_deref(), &saved.plan, retries)?;
        Ok(self.work(store, saved.plan, Some(saved.digest), Caches::default()))
    }

    /// Settles open intents, then makes a plan; returns it with its findings.
    ///
    /// Fails if planning fails, or if the plan was rolled back and isn't retried.
    pub fn plan(
        mut self,
        shape: &PlanArgs,
        chosen: &Selection,
        retries: bool,
    ) -> Result<(ReadyShard<'s, 'g>, Diagnostics), Failure> {
        let config = self.session.config();
        let mut store = self.settled(&|address| {
            let group = config.group(&address.group);
            group.is_some_and(|group| address.slot < size_of(group))
        })?;
        let options = shape.options(self.session, chosen, false)?;
        let mut open = None;
        let mut why_not = None;
        if let Some(state) = store.as_deref()
            && let Some(found) = OpenRollout::of(state)?
        {
            if found.is_continued_by(&options, shape.refresh_images) {
                match self.continued(state, &found)? {
                    Ok(continued) => {
                        let work = self.go_on(store, found.plan, continued);
                        return Ok((work, Diagnostics::default()));
                    }
                    Err(why) => why_not = Some(format!("it can't be continued: {why}")),
                }
            }
            open = Some(found);
        }
        let cloud = shape.refresh.then_some(&*self.cloud);
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => prepare(self.session)?,
        };
        let images = shape.refresh_images;
        let mut made = plan::make_of(
            self.session,
            prepared,
            store.as_deref_mut(),
            cloud,
            images,
            &options,
            None,
        )?;
        let plan = &mut made.plan;
        plan.deletions.allow(|group| chosen.allows_delete(group));
        made.findings
            .extend(plan.release(|group| chosen.allows_replace(group)));
        if let Some(mut note) = open.and_then(|found| found.superseded_by(&made.plan)) {
            note.detail = why_not;
            made.findings.push(note);
        }
        refuse_rolled_back(store.as_deref(), &made.plan, retries)?;
        let findings = plan::all_findings(self.session, made.findings);
        let work = self.work(store, made.plan, None, made.caches);
        Ok((work, findings))
    }

    fn work(
        self,
        store: Option<Box<dyn Store>>,
        plan: Plan,
        digest: Option<String>,
        caches: Caches,
    ) -> ReadyShard<'s, 'g> {
        ReadyShard {
            session: self.session,
            plan,
            findings: Diagnostics::default(),
            digest,
            caches,
            cloud: self.cloud,
            store,
            lock: self.lock,
            continued: None,
            page: None,
        }
    }

    /// How far an open rollout came; the inner result fails with the reason if the state or the
    /// cloud no longer fits its plan.
    ///
    /// Fails if the state or the cloud fails.
    fn continued(
        &self,
        store: &dyn Store,
        found: &OpenRollout,
    ) -> Result<Result<Continued, String>, Failure> {
        let OpenRollout { stored, plan, .. } = found;
        let snapshot = store.snapshot()?;
        let clock = &*self.session.clock;
        let cloud = RetryingReads::new(&*self.cloud, clock);
        let owner = self.owner();
        let observed = refresh(&cloud, &owner, Some(&snapshot), clock.now(), |_| {});
        let observed = observed.map_err(|error| {
            let doing = "the instances can't be listed";
            PlanError::Cloud { doing, error }
        })?;
        Ok(
            resume::starts(plan, stored, &snapshot, &observed).and_then(|starts| {
                let mut remaining = resume::remaining(plan, &starts);
                for group in &mut remaining.groups {
                    if let Some(rollout) = &mut group.rollout {
                        rollout.canaries = canaries_left(plan, &group.name, rollout, &starts);
                    }
                }
                if remaining.changes.is_empty() {
                    return Err("all of its changes are done".to_owned());
                }
                Ok(Continued {
                    id: stored.id,
                    started_at: stored.started_at.into(),
                    goes_back: found.goes_back(),
                    starts,
                    remaining,
                })
            }),
        )
    }

    /// The shard with the plan of a rollout that goes on.
    fn go_on(
        self,
        store: Option<Box<dyn Store>>,
        plan: Plan,
        continued: Continued,
    ) -> ReadyShard<'s, 'g> {
        let mut work = self.work(store, plan, None, Caches::default());
        work.continued = Some(continued);
        work
    }

    fn owner(&self) -> Owner {
        let identity = self.session.identity();
        Owner {
            cluster: identity.cluster,
            shard: identity.shard,
        }
    }

    /// The state, after settling the open intents of earlier runs. `wanted` returns whether an
    /// address is still configured.
    ///
    /// Fails if the state or the cloud fails.
    fn settled(
        &self,
        wanted: &dyn Fn(&Address) -> bool,
    ) -> Result<Option<Box<dyn Store>>, Failure> {
        let session = self.session;
        let Some(mut store) = session.open_to_write()? else {
            return Ok(None);
        };
        if store.open_intents()?.is_empty() {
            return Ok(Some(store));
        }
        back_up(session, &*store)?;
        let owner = self.owner();
        let settled = stage::timed("settle journal", || {
            recover_with_entry(
                &mut *store,
                &*self.cloud,
                &*session.clock,
                &owner,
                entry("recovery", None),
                wanted,
            )
        })?;
        for one in &settled {
            let (address, operation) = (session.name(&one.address), one.operation.as_str());
            let result = &one.result;
            tracing::info!(target: apply_log::TARGET, address, operation, result, "settled");
        }
        for one in settled.iter().filter(|_| !session.globals.quiet) {
            console::error(&format!(
                "{}: settled an interrupted {}: it {}\n",
                session.name(&one.address),
                one.operation.as_str(),
                one.result
            ));
        }
        Ok(Some(store))
    }
}

/// The number of a group's canaries that aren't done.
fn canaries_left(plan: &Plan, group: &str, rollout: &Rollout, starts: &Starts) -> u32 {
    let changes = plan.changes.iter().enumerate();
    let own = changes.filter(|(_, change)| change.address.group.as_str() == group);
    let stages = rollout.stages(own);
    let canaries = stages.iter().filter(|stage| stage.is_canary);
    let canaries = canaries.flat_map(|stage| &stage.changes);
    let is_open = |task: &&usize| !matches!(starts.tasks[**task], Start::Done { .. });
    canaries.filter(is_open).count() as u32
}

/// Fails if the plan was rolled back, unless it is retried.
fn refuse_rolled_back(
    store: Option<&dyn Store>,
    plan: &Plan,
    retries: bool,
) -> Result<(), Failure> {
    let Some(store) = store.filter(|_| !retries) else {
        return Ok(());
    };
    match rollout::rolled_back(store, plan, Severity::Error)? {
        Some(finding) => Err(Failure::new(finding)),
        None => Ok(()),
    }
}

/// Prints a plan as events.
fn plan_events(session: &Session<'_>, plan: &Plan) {
    let now = session.clock.now();
    let events = Events::of(plan).in_shard(session.label.as_deref());
    let drifts = plan.drift.iter();
    let drifts = drifts.filter_map(|drift| events.resource_drift(now, drift));
    let changes = plan.changes.iter();
    let changes = changes.filter_map(|change| events.planned_change(now, change));
    for event in drifts.chain(changes) {
        session.event(event);
    }
    session.event(events::plan_summary(now, &plan.summary));
}

/// A seed that differs between processes and shards, so that their retries spread out.
fn retry_seed(session: &Session<'_>) -> u64 {
    let label = session.label.as_deref().unwrap_or_default();
    let own = label.bytes().fold(0_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    session.clock.now().0 as u64 ^ u64::from(std::process::id()) << 32 ^ own << 16
}

impl ReadyShard<'_, '_> {
    /// Shows the plan.
    pub fn show(&self, findings: &Diagnostics) {
        let plan = match &self.continued {
            Some(continued) => {
                let done = self.plan.changes.len() - continued.remaining.changes.len();
                let total = counted(self.plan.changes.len(), "change");
                let what = if continued.goes_back {
                    "rollback of the rollout"
                } else {
                    "rollout"
                };
                let started = continued.started_at;
                console::error(&format!(
                    "Continuing the {what} of {started}: {done} of {total} done.\n"
                ));
                &continued.remaining
            }
            None => &self.plan,
        };
        if self.session.globals.json {
            self.session.finding_events(findings);
            plan_events(self.session, plan);
        } else {
            console::print(&text::plan(plan, self.session.style()));
            self.session.tell(findings);
        }
    }

    /// Writes the page of the plan, which the apply keeps up to date.
    ///
    /// Fails if the file can't be written.
    pub fn write_page(&mut self, path: PathBuf) -> Result<(), Failure> {
        let page = page::of(self.session, &self.plan, &self.findings);
        self.page = Some(LivePage::write(page, path)?);
        Ok(())
    }

    /// Ends a shard without changes; saves its cache entries.
    ///
    /// Fails if the state can't be written.
    pub fn leave(self) -> Result<ShardOutcome, Failure> {
        if let Some(mut store) = self.store {
            let now = self.session.clock.now();
            self.caches.save(&mut *store, now)?;
            // Groups that are as configured are good.
            let good = rollout_record::last_good(&self.plan);
            let mut writes: Vec<Write> = good.map(|(_, write)| write).collect();
            let manifest = self.plan.manifest.as_ref();
            writes.extend(manifest.and_then(|manifest| manifest.done(now)));
            if !writes.is_empty() {
                store.commit(now.into(), writes)?;
            }
        }
        let outcome = ShardOutcome::unchanged(&self.plan);
        Ok(ShardOutcome {
            plan: Some(Box::new(self.plan)),
            ..outcome
        })
    }

    /// Applies the plan and reports the result, including failures.
    pub fn apply(
        mut self,
        operation: &str,
        max_wait: Duration,
        board: &Board,
        signals: &Graceful,
    ) -> ShardOutcome {
        let session = self.session;
        let mut page = self.page.take();
        let driven = self.drive(operation, max_wait, board, signals, &mut page);
        if let Some(page) = page {
            page.finish(session, &driven);
        }
        match driven {
            Ok(ended) => ended,
            Err(failure) => {
                console::aside(|| session.fail(&failure));
                ShardOutcome::broken(failure.code)
            }
        }
    }

    fn drive(
        self,
        operation: &str,
        max_wait: Duration,
        board: &Board,
        signals: &Graceful,
        page: &mut Option<LivePage>,
    ) -> Result<ShardOutcome, Failure> {
        let (session, plan, cloud) = (self.session, &self.plan, &*self.cloud);
        let now = session.clock.now();
        let mut store = match self.store {
            Some(store) => {
                back_up(session, &*store)?;
                store
            }
            None => session.create_state(&plan.identity(), &plan.lineage)?,
        };
        self.caches.save(&mut *store, now)?;
        let nonce_command = &session.config().nonce_command;
        let limits = Limits {
            parallelism: session
                .globals
                .parallelism
                .map_or(cloud.parallelism(), usize::from),
            wait_timeout: cloud.wait_timeout(),
            max_wait,
            create_interval: session.config().shard.create_rate_limit,
            // The embedded cloud's instances need none.
            makes_nonces: !nonce_command.is_empty() || !session.uses_sim(),
            nonce_lifetime: session.config().shard.registration_timeout,
            ..Limits::default()
        };
        let exporter = Exporter::new(&session.exports());
        let (starts, record) = match self.continued {
            Some(known) => (
                known.starts,
                RolloutRecord::of_known(known.id, known.goes_back),
            ),
            None => (
                Starts::default(),
                RolloutRecord::of_new(plan, self.digest.as_deref(), &*store)?,
            ),
        };
        let goes_back = matches!(record, RolloutRecord::GoingBack(_));
        let mut progress = ApplyProgress::new(session, board, plan, &starts);
        if let Some(page) = page {
            page.begin(session, plan, &starts);
        }
        let (changes, parallelism) = (plan.changes.len(), limits.parallelism);
        let shard = session.identity().shard;
        tracing::info!(target: apply_log::TARGET, shard, changes, parallelism, "apply began");
        let applied = stage::timed("apply changes", || {
            apply(
                plan,
                limits,
                retry_seed(session),
                Beginning {
                    entry: entry(operation, self.digest),
                    record,
                    starts,
                },
                World {
                    store: &mut *store,
                    cloud,
                    clock: &*session.clock,
                    exporter: &exporter,
                    signals: signals.count(),
                    apply: None,
                    nonce_command,
                    rollout: None,
                },
                &mut |of, step| {
                    if !std::ptr::eq(of, plan) {
                        progress.go_back(of);
                    }
                    apply_log::log(session, of, step);
                    progress.tell(step);
                    if let Some(page) = page {
                        page.tell(session, (plan, of), step);
                    }
                },
            )
        });
        progress.finish();
        let applied = applied.map_err(|error| {
            let mut failure = Failure::from(error);
            failure.code = signals.code().unwrap_or(exit::ERROR);
            failure
        })?;
        if let Some(page) = page {
            page.count(plan, &applied);
        }
        drop(self.lock);
        let span = Span {
            begun: now,
            ended: session.clock.now(),
        };
        let outcome = console::aside(|| {
            let ended = conclude(session, plan, &applied, goes_back, signals.code(), span);
            progress.summarize();
            ended
        });
        Ok(ShardOutcome {
            plan: Some(Box::new(self.plan)),
            ..outcome
        })
    }
}

/// Compiles the groups before anything is locked or written, so that invalid input changes nothing.
///
/// Fails if the configuration or a template has an error.
fn prepare<'s>(session: &'s Session<'_>) -> Result<Prepared<'s>, Failure> {
    let store = session.open_to_read()?;
    plan::prepare(session, store.as_deref())
        .map_err(|findings| plan::all_findings(session, findings).into())
}

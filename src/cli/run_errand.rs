//! `nstance jobs run-errand`: an instance for an errand, until it stops.

use std::time::{Duration, Instant};

use clap::Args;

use super::failure::{Failure, Failures};
use super::fleet::Fleet;
use super::session::Session;
use super::signals::Graceful;
use super::{Ending, Globals, Wait, apply, console, exit, show, signals, unplaced};
use crate::address::{GroupName, Selector};
use crate::check::Purpose;
use crate::diagnostic::Diagnostic;
use crate::dialect::bosh::id_of;
use crate::provider::{LifecycleState, Observation};

/// The time between two looks at the instances.
const INTERVAL: Duration = Duration::from_secs(5);

/// On the embedded cloud, nothing takes time.
const SIM_INTERVAL: Duration = Duration::from_millis(100);

/// Options of `jobs run-errand`.
#[derive(Debug, Args)]
pub struct RunErrand {
    /// The instance group with `lifecycle: errand`
    group: String,
    /// Stop waiting after this time, and remove the instance
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = super::duration)]
    timeout: Wait,
    /// Keep the instance when it has stopped
    ///
    /// The next `nstance apply` removes it.
    #[arg(long)]
    keep_alive: bool,
}

/// Runs `jobs run-errand`.
pub fn run(globals: &Globals, command: &RunErrand) -> Ending {
    let Some(id) = id_of(&command.group) else {
        let finding = Diagnostic::error(format!("`{}` is not an errand", command.group));
        return Err(unplaced(finding));
    };
    let group = Selector::Group(GroupName::new("default", &id));
    let running = Globals {
        errand: Some(id.to_string()),
        ..globals.clone()
    };
    let outcome = match apply::group(&running, &group)? {
        exit::SUCCESS => wait_for(&running, &group, command),
        code => Ok(Outcome::NotCreated(code)),
    };
    if let Ok(Outcome::Interrupted(code)) = outcome {
        console::error("The errand still runs; the next `nstance apply` removes its instance.\n");
        return Ok(code);
    }
    let overdue = || Diagnostic::error(format!("errand `{}` did not stop in time", command.group));
    match outcome {
        Ok(Outcome::Stopped) if command.keep_alive => {
            console::error("The errand stopped; the next `nstance apply` removes its instance.\n");
            return Ok(exit::SUCCESS);
        }
        Ok(Outcome::TimedOut) if command.keep_alive => {
            let hint =
                "the next `nstance apply` removes its instance; give it longer with --timeout";
            return Err(unplaced(overdue().hint(hint)));
        }
        _ => {}
    }
    // Whatever happened, its instance isn't left behind.
    let exists = Fleet::load(globals, Purpose::Identity).is_ok_and(|fleet| {
        fleet
            .shards
            .iter()
            .any(|session| has_instances(session, &group))
    });
    let removed = if exists {
        apply::group(globals, &group)
    } else {
        Ok(exit::SUCCESS)
    };
    match outcome? {
        Outcome::Stopped => removed,
        Outcome::NotCreated(code) => removed.map(|_| code),
        Outcome::Interrupted(code) => Ok(code),
        Outcome::TimedOut => Err(unplaced(
            overdue().hint("Its instance is removed; give it longer with --timeout"),
        )),
    }
}

fn wait_for(running: &Globals, group: &Selector, command: &RunErrand) -> Result<Outcome, Failures> {
    let interrupt = signals::graceful();
    let fleet = Fleet::load(running, Purpose::Identity)?;
    let session = fleet.only("`jobs run-errand`")?;
    let outcome = wait(session, group, command, &interrupt)?;
    Ok(interrupt.code().map_or(outcome, Outcome::Interrupted))
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Stopped,
    TimedOut,
    /// It wasn't created: the exit code of apply.
    NotCreated(u8),
    /// By a signal: its exit code.
    Interrupted(u8),
}

fn has_instances(session: &Session<'_>, group: &Selector) -> bool {
    instances(session, group).is_ok_and(|ids| !ids.is_empty())
}

/// The provider ids of the group's recorded instances.
fn instances(session: &Session<'_>, group: &Selector) -> Result<Vec<String>, Failure> {
    let Some(store) = session.open_to_read()? else {
        return Ok(Vec::new());
    };
    let records = store.snapshot()?.records.into_iter();
    let of_group = records.filter(|record| group.matches(&show::address(record)));
    Ok(of_group.map(|record| record.provider_id).collect())
}

/// Waits until no instance of the group runs.
fn wait(
    session: &Session<'_>,
    group: &Selector,
    command: &RunErrand,
    interrupt: &Graceful,
) -> Result<Outcome, Failure> {
    let ids = instances(session, group)?;
    let cloud = session.cloud()?;
    let begin = Instant::now();
    let interval = if session.uses_sim() {
        SIM_INTERVAL
    } else {
        INTERVAL
    };
    if !session.globals.quiet {
        console::error("Waiting until the errand stops.\n");
    }
    loop {
        let runs = |seen: &Observation| {
            matches!(
                seen.state,
                LifecycleState::Pending | LifecycleState::Running
            )
        };
        match cloud.describe(&ids) {
            Ok(seen) if !seen.iter().any(runs) => return Ok(Outcome::Stopped),
            Err(error) if !error.kind.is_retryable() => {
                return Err(Failure::new(
                    Diagnostic::error(format!("cannot look at errand `{}`", command.group))
                        .detail(error.summary())
                        .hint("The next `nstance apply` removes its instance"),
                ));
            }
            Ok(_) | Err(_) => {}
        }
        if begin.elapsed() >= command.timeout.0 || interrupt.code().is_some() {
            return Ok(Outcome::TimedOut);
        }
        std::thread::sleep(interval);
    }
}

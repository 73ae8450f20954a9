//! `nstance state migrate`: prepare a server for states, and move a state to another place.
//!
//! In: a state, and where it is to be. Out: the same state there, verified; the former one is only
//! read from then on. Must not: mark a state as moved before its copy is complete.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use nstance_state::{
    ApplyStatus, Backend, Identity, Prepared, StateError, Store, Timestamp, Write,
};

use super::backend;
use super::failure::Failure;
use super::fleet::Reply;
use super::session::Session;
use super::state_edit::entry;
use crate::diagnostic::Diagnostic;

/// Options of `state migrate`.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Move the state to this URL
    ///
    /// `postgresql://HOST/DATABASE`, whose tables must exist, or `sqlite:PATH`. The state is only
    /// read at its former place from then on.
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,
}

/// Runs `state migrate` for a shard.
pub(super) fn run(session: &Session<'_>, command: &Migrate) -> Result<Reply, Failure> {
    match &command.to {
        None => prepare(session),
        Some(url) => move_to(session, url),
    }
}

fn prepare(session: &Session<'_>) -> Result<Reply, Failure> {
    let backend = session.backend()?;
    let Some(Prepared { before, now }) = backend.prepare()? else {
        return Ok(Reply::text(format!(
            "Nothing to do: {} is a file, which the next apply upgrades\n",
            backend.place().display()
        )));
    };
    let place = backend.url();
    Ok(Reply::text(match before {
        0 => format!("Made the tables of version {now}: {place}\n"),
        before if before == now => {
            format!("Nothing to do: the tables have version {now}: {place}\n")
        }
        before => format!("Upgraded the tables from version {before} to {now}: {place}\n"),
    }))
}

fn move_to(session: &Session<'_>, url: &str) -> Result<Reply, Failure> {
    let identity = session.identity();
    let source = session.backend()?;
    let target = backend::of_url(url, Path::new(""), &identity, session.keys())?;
    if source.place() == target.place() {
        return Err(Failure::new(Diagnostic::error(format!(
            "the state is there already: {}",
            target.place().display()
        ))));
    }
    let lock = session.lock("state migrate")?;
    let Some(mut store) = session.open_as_it_is()? else {
        return session.need_state().map(|_| Reply::text(""));
    };
    let now: Timestamp = session.clock.now().into();
    let _target_lock = target.lock(lock.info().clone(), Duration::ZERO, &mut |_| {})?;
    // Nobody changes it while the lock is held, and a state that was moved can't be moved again.
    store.lead()?;
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::say(format!("no copy of the state can be made: {error}")))?;
    let copy = folder.path().join("state.db");
    store.backup(&copy)?;
    // An earlier run may have ended before it marked the source.
    let exists = match target.receive(&copy) {
        Ok(()) => None,
        Err(error @ StateError::Exists { .. }) => Some(error),
        Err(error) => return Err(error.into()),
    };
    if !is_same(&*store, &*target, &identity)? {
        return Err(match exists {
            Some(error) => error.into(),
            None => Failure::say(format!(
                "the copy differs from the state, so nothing was moved; remove the copy: {}",
                target.place().display()
            )),
        });
    }
    let url = target.url();
    store.commit(now, vec![Write::MarkMoved { to: url.clone() }])?;
    let mut moved = target.open_to_write(Some(&identity))?;
    if moved.meta()?.key.is_none() || moved.unlock().is_ok() {
        let batch = vec![
            Write::StartApply(entry("state migrate", None)),
            Write::FinishApply {
                id: None,
                status: ApplyStatus::Succeeded,
                summary_json: "{}".to_owned(),
            },
        ];
        moved.commit(now, batch)?;
    }
    Ok(Reply::text(format!(
        "Moved to {}\nName it in the configuration, \"state\": \"{url}\", or with --state. {} is \
         only read from now on\n",
        target.place().display(),
        source.place().display()
    )))
}

/// Whether a state there is this one.
///
/// Fails if it can't be read.
fn is_same(store: &dyn Store, target: &dyn Backend, identity: &Identity) -> Result<bool, Failure> {
    let other = target.open_to_read(Some(identity))?;
    let (own, others) = (store.meta()?, other.meta()?);
    Ok(
        (own.lineage, own.serial, own.key) == (others.lineage, others.serial, others.key)
            && store.outline()? == other.outline()?,
    )
}

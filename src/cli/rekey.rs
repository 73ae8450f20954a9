//! `nstance state rekey`: encrypt states with another key.
//!
//! In: the source of the new key. Out: states encrypted with it. Must not: change a state whose
//! current key is missing, or use a key that isn't stored on disk or known to the user.

use std::path::PathBuf;

use clap::Args;
use nstance_state::{ApplyStatus, Key, NewKey, Write};
use zeroize::Zeroizing;

use super::failure::{Failure, Failures};
use super::fleet::{Fleet, Form, Reply};
use super::keys::{self, KeyFile, secret};
use super::session::Session;
use super::state_edit::entry;
use super::{Ending, unplaced};
use crate::config::source::SourceMap;
use crate::diagnostic::Diagnostic;

/// The environment variable with the new key.
const NEW_KEY: &str = "NSTANCE_NEW_STATE_KEY";
/// The environment variable with a passphrase for the new key.
const NEW_PASSPHRASE: &str = "NSTANCE_NEW_STATE_PASSPHRASE";

/// Options of `state rekey`.
#[derive(Debug, Args)]
pub struct Rekey {
    /// Read the new key from this file, which is made if missing
    ///
    /// Without it, the new key comes from `NSTANCE_NEW_STATE_KEY` or
    /// `NSTANCE_NEW_STATE_PASSPHRASE`, or is generated and written to the key file.
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
}

/// The source of the new key.
enum Source {
    Given(Key),
    Passphrase(Zeroizing<String>),
    /// The first key of a given file.
    File(KeyFile),
    /// A generated key, added to the key file.
    Generated,
}

impl Source {
    fn of(command: &Rekey) -> Result<Self, Failure> {
        let file = command.new_key_file.clone();
        match (file, secret(NEW_KEY), secret(NEW_PASSPHRASE)) {
            (None, None, None) => Ok(Self::Generated),
            (Some(file), None, None) => Ok(Self::File(KeyFile::new(file))),
            (None, Some(text), None) => keys::parsed(&text, NEW_KEY)
                .map(Self::Given)
                .map_err(keys::failure),
            (None, None, Some(phrase)) => Ok(Self::Passphrase(phrase)),
            _ => Err(Failure::new(
                Diagnostic::error("there are several new keys").hint(format!(
                    "Give one of --new-key-file, {NEW_KEY} and {NEW_PASSPHRASE}"
                )),
            )),
        }
    }
}

/// Runs `state rekey`.
pub fn run(fleet: &Fleet<'_>, command: &Rekey) -> Ending {
    let source = Source::of(command).map_err(unplaced)?;
    // Change no state if one of them can't be opened with its current key.
    let mut failures = Failures::default();
    for session in &fleet.shards {
        let opened = session.need_state().and_then(|store| Ok(store.unlock()?));
        if let Err(failure) = opened {
            failures.push(failure, SourceMap::default());
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    // Shards that share a key file also share the new key.
    let mut generated: Vec<(String, Key)> = Vec::new();
    Ok(fleet.each(Form::Plain, |_, session| {
        rekey(session, &source, &mut generated)
    }))
}

fn rekey(
    session: &Session<'_>,
    source: &Source,
    generated: &mut Vec<(String, Key)>,
) -> Result<Reply, Failure> {
    let _lock = session.lock("state rekey")?;
    let Some(mut store) = session.open_as_it_is()? else {
        return session.need_state().map(|_| Reply::text(""));
    };
    store.unlock()?;
    let (new, place) = new_key(session, source, generated)?;
    let old = store.meta()?.key.map(|need| need.id);
    if old == Some(new.key.id()) {
        return Err(Failure::new(
            Diagnostic::error(format!("the state has the key {} already", new.key.id()))
                .hint("Give another, or none: then one is made"),
        ));
    }
    // From here on, both keys are available: the new one is stored, and the old one was kept.
    session.keys.remember(&new.key);
    let batch = vec![
        Write::StartApply(entry("state rekey", None)),
        Write::Rekey(new.clone()),
        Write::FinishApply {
            id: None,
            status: ApplyStatus::Succeeded,
            summary_json: "{}".to_owned(),
        },
    ];
    store.commit(session.clock.now().into(), batch)?;
    let scrubbed = store.scrub()?;
    if session.globals.quiet {
        return Ok(Reply::text(""));
    }
    let mut text = format!(
        "{} is sealed with the key {} now, {place}\n",
        session.name(session.identity().shard),
        new.key.id()
    );
    if let Some(old) = old {
        text.push_str(&format!(
            "Backups and saved plans that were made before still need the key {old}\n"
        ));
    }
    if !scrubbed {
        text.push_str("What its file held before is overwritten by a later apply: someone reads it now, or the disk is full\n");
    }
    Ok(Reply::text(text))
}

/// The new key, stored on disk if it was generated, and a text about its source.
///
/// Fails if the key can't be read or stored.
fn new_key(
    session: &Session<'_>,
    source: &Source,
    generated: &mut Vec<(String, Key)>,
) -> Result<(NewKey, String), Failure> {
    let mut make = |file: &KeyFile| -> Result<Key, Failure> {
        let name = file.to_string();
        if let Some((_, key)) = generated.iter().find(|(path, _)| *path == name) {
            return Ok(key.clone());
        }
        let key = file.put_new()?;
        generated.push((name, key.clone()));
        Ok(key)
    };
    Ok(match source {
        Source::Given(key) => (key.clone().into(), format!("the one of {NEW_KEY}")),
        Source::Passphrase(phrase) => (
            session.keys.derive(phrase)?,
            format!("made of {NEW_PASSPHRASE}"),
        ),
        Source::File(file) => {
            let key = match file.read(false).map_err(keys::failure)?.into_iter().next() {
                Some(key) => key,
                None => make(file)?,
            };
            (key.into(), format!("the first of {file}"))
        }
        Source::Generated if !session.backend()?.makes_keys() => {
            return Err(Failure::new(
                Diagnostic::error("no key is made for a state that several machines use").hint(
                    format!("Give one of --new-key-file, {NEW_KEY} and {NEW_PASSPHRASE}"),
                ),
            ));
        }
        Source::Generated => {
            let file = session.keys.file();
            (
                make(file)?.into(),
                format!("a new one, the first of {file}"),
            )
        }
    })
}

//! `nstance state pull` and `push`: the state as one portable document.
//!
//! In: a state, or a document (or a backup) to replace it. Out: the document; the replaced state,
//! all or nothing. Must not: accept a document of another identity, an older or an inconsistent
//! one.

use std::io::Read;
use std::path::Path;

use nstance_state::{
    Contents, Document, DocumentError, Identity, SpecDigest, StateError, Store, Write,
};

use super::failure::Failure;
use super::fleet::Reply;
use super::session::Session;
use super::state_edit::{Step, operate};
use crate::diagnostic::{Diagnostic, Diagnostics, counted};
use crate::limited;
use crate::spec::SpecBody;

/// The first bytes of every `SQLite` database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// The size limit of a document, in bytes: enough for a million instances.
const LARGEST_DOCUMENT: u64 = 1 << 30;
/// The number of a document's problems that are reported.
const PROBLEMS: usize = 10;

/// Prints the state's document.
///
/// Fails if the state can't be read.
pub fn pull(session: &Session<'_>) -> Result<Reply, Failure> {
    let store = session.need_state()?;
    let (key, derivation) = session.document_key(&*store)?;
    let document = Document::new(&Contents::of(&*store)?, &key, derivation.as_ref());
    Ok(Reply::text(document.to_text()))
}

/// The document or backup to push.
pub struct Given {
    /// Its name in messages.
    name: String,
    source: Source,
}

enum Source {
    Document(Box<Document>),
    /// A backup, which is itself a state.
    Backup(Box<dyn Store>),
}

impl Given {
    /// Reads a document, or a backup; `-` is standard input.
    ///
    /// Fails if it is neither.
    pub fn read(session: &Session<'_>, file: &Path) -> Result<Self, Failure> {
        let is_stdin = file == Path::new("-");
        let name = if is_stdin {
            "standard input".to_owned()
        } else {
            file.display().to_string()
        };
        let unreadable =
            |error: std::io::Error| Failure::say(format!("{name} can't be read: {error}"));
        let mut input: Box<dyn Read> = if is_stdin {
            Box::new(std::io::stdin().lock())
        } else {
            Box::new(std::fs::File::open(file).map_err(unreadable)?)
        };
        let start = limited::read(input.by_ref().take(SQLITE.len() as u64), LARGEST_DOCUMENT);
        let start = start.map_err(unreadable)?;
        if start == SQLITE && !is_stdin {
            let store = session.open_backup(file)?;
            return Ok(Self {
                name,
                source: Source::Backup(store),
            });
        }
        let bytes =
            limited::read((&start[..]).chain(input), LARGEST_DOCUMENT).map_err(unreadable)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| DocumentError::NotADocument("it isn't UTF-8".to_owned()));
        let document = text.and_then(|text| Document::parse(&text));
        let document = document.map_err(|error| unusable(&name, &error))?;
        Ok(Self {
            name,
            source: Source::Document(Box::new(document)),
        })
    }

    fn identity(&self) -> Result<Identity, StateError> {
        match &self.source {
            Source::Document(document) => Ok(document.identity()),
            Source::Backup(store) => Ok(store.meta()?.identity),
        }
    }

    fn contents(self, session: &Session<'_>) -> Result<Contents, Failure> {
        match self.source {
            Source::Document(document) => {
                let key = session.key_of_document(&document)?;
                let opened = document.open(&key);
                opened.map_err(|error| unusable(&self.name, &error))
            }
            Source::Backup(store) => Ok(Contents::of(&*store)?),
        }
    }
}

fn unusable(name: &str, error: &DocumentError) -> Failure {
    let finding = Diagnostic::error(format!("{name} can't be pushed: {error}"));
    Failure::new(match error {
        DocumentError::Format(_) => finding.hint("Use the version of nstance that pulled it"),
        _ => finding.hint("Pull it again: nstance state pull > FILE"),
    })
}

/// Replaces the state.
///
/// Fails if the document belongs to another state, is inconsistent, or is older than the state
/// without `force`.
pub fn push(session: &Session<'_>, file: &Path, force: bool) -> Result<Reply, Failure> {
    let given = Given::read(session, file)?;
    let name = given.name.clone();
    let (own, its) = (session.identity(), given.identity()?);
    if own != its {
        return Err(Failure::new(
            Diagnostic::error(format!("{name} is the state of {its}, not of {own}"))
                .hint("Push it with the configuration that it was pulled with"),
        ));
    }
    let contents = given.contents(session)?;
    refuse_unsound(&name, &contents)?;
    let _lock = session.lock("state push")?;
    let said = match session.open_to_write()? {
        Some(mut store) => over(session, &mut *store, &name, contents, force)?,
        None => anew(session, contents)?,
    };
    Ok(Reply::text(if session.globals.quiet {
        String::new()
    } else {
        said
    }))
}

/// Fails if a document is inconsistent.
fn refuse_unsound(name: &str, contents: &Contents) -> Result<(), Failure> {
    let is_spec = |digest: SpecDigest, bytes: &[u8]| {
        serde_json::from_slice::<SpecBody>(bytes)
            .is_ok_and(|body| body.into_spec().digest() == digest)
    };
    let problems = contents.problems(&is_spec);
    if problems.is_empty() {
        return Ok(());
    }
    let mut told: Vec<String> = problems.iter().take(PROBLEMS).cloned().collect();
    if problems.len() > PROBLEMS {
        told.push(format!("and {} more", problems.len() - PROBLEMS));
    }
    let findings: Diagnostics =
        Diagnostic::error(format!("{name} can't be pushed: it isn't sound"))
            .detail(told.join("\n"))
            .hint("Pull it again, or push a backup: they are listed by nstance doctor")
            .into();
    Err(findings.into())
}

/// Creates a missing state from a document, with its lineage and serial, so that saved plans stay
/// valid.
///
/// Fails if the state can't be written.
fn anew(session: &Session<'_>, contents: Contents) -> Result<String, Failure> {
    let mut store = session.create_state(&contents.identity, &contents.lineage)?;
    let steps: Vec<Step> = contents
        .records
        .iter()
        .map(|record| Step {
            before: None,
            after: Some(record.clone()),
        })
        .collect();
    let serial = contents.serial;
    let restore = vec![Write::Restore(Box::new(contents))];
    operate(session, &mut *store, "state push", &steps, restore)?;
    Ok(format!(
        "The state is made, with {}, at serial {serial}\n",
        counted(steps.len(), "record"),
    ))
}

fn over(
    session: &Session<'_>,
    store: &mut dyn Store,
    name: &str,
    contents: Contents,
    force: bool,
) -> Result<String, Failure> {
    let now = Contents::of(store)?;
    if now.lineage != contents.lineage {
        return Err(Failure::new(
            Diagnostic::error(format!("{name} is another state"))
                .detail(format!(
                    "its lineage is {}, that of the state there is {}",
                    contents.lineage, now.lineage
                ))
                .hint(format!(
                    "Move the state away first if it is to take its place: {}",
                    store.place().display()
                )),
        ));
    }
    if now.says(&contents) {
        return Ok("Nothing to do: the state says the same already\n".to_owned());
    }
    if contents.serial < now.serial && !force {
        return Err(Failure::new(
            Diagnostic::error(format!("{name} is older than the state"))
                .detail(format!(
                    "its serial is {}, and the state is at {}",
                    contents.serial, now.serial
                ))
                .hint("See what was done since: nstance state history")
                .hint("Push it all the same with --force: what was recorded since is then unknown, and the next plan adopts it"),
        ));
    }
    let differing = now.differences(&contents);
    let steps: Vec<Step> = differing
        .into_iter()
        .map(|(before, after)| Step {
            before: before.cloned(),
            after: after.cloned(),
        })
        .collect();
    let replace = Write::Replace {
        now: Box::new(now),
        contents: Box::new(contents),
    };
    operate(session, store, "state push", &steps, vec![replace])?;
    Ok(format!(
        "The state is replaced: {} changed, serial {}\n",
        counted(steps.len(), "record"),
        store.meta()?.serial
    ))
}

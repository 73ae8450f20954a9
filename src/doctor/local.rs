//! Checks local files: the state, its journal, its lock and backups.
//!
//! In: [`Local`] facts, and the time. Out: findings. Must not: do I/O.

use nstance_state::{Apply, ApplyStatus, Intent, LockInfo, Operation, Problem, ProblemKind};

use super::{Check, Examination, Finding, Severity};
use crate::clock::Timestamp;
use crate::diagnostic::counted;
use crate::report::age;

/// Facts about a shard's files.
#[derive(Debug)]
pub struct Local {
    /// The state's path.
    pub path: String,
    /// The state.
    pub state: State,
    /// The process that holds the lock.
    pub holder: Option<LockInfo>,
    /// The holder in a stale lock.
    pub remains: Option<LockInfo>,
    /// Files that only their owner should access.
    pub files: Vec<FileFacts>,
    /// Whether the state is backed up before it is changed.
    pub has_backups: bool,
    /// Backups of the state, latest first.
    pub backups: Vec<String>,
}

/// The result of opening the state.
#[derive(Debug)]
pub enum State {
    /// It doesn't exist.
    Missing,
    /// It exists and can't be opened.
    Unusable {
        /// The error.
        why: String,
        /// How to fix it.
        hints: Vec<String>,
        /// Whether only a backup can replace it.
        is_lost: bool,
    },
    /// It was opened.
    Open {
        /// Its serial.
        serial: u64,
        /// The number of records.
        records: usize,
        /// Its problems.
        problems: Vec<Problem>,
        /// Its open intents.
        intents: Vec<Intent>,
        /// The latest entry of its history.
        latest: Option<Box<Apply>>,
    },
}

/// A file and its permissions.
#[derive(Debug)]
pub struct FileFacts {
    /// Its path.
    pub path: String,
    /// Its permission bits; 0 on systems without them.
    pub mode: u32,
    /// Whether its owner must be able to write it.
    pub is_written: bool,
}

/// Evaluates the facts.
pub fn examine(local: &Local, now: Timestamp) -> Examination {
    let mut examination = Examination::default();
    state(local, &mut examination);
    journal(local, now, &mut examination);
    lock(local, now, &mut examination);
    files(local, &mut examination);
    backups(local, &mut examination);
    examination.findings.sort_by_key(|finding| finding.severity);
    examination
}

fn state(local: &Local, examination: &mut Examination) {
    let path = &local.path;
    match &local.state {
        State::Missing => {
            examination.say(Check::State, format!("there is none at {path}"));
            if !local.backups.is_empty() {
                let finding = Finding::new(
                    Check::State,
                    Severity::Error,
                    "lost",
                    format!("the state is gone: {path}"),
                    "it was there: its backups are. Without it instances that carry this shard's tags are adopted by the next apply, as the cloud reports them",
                );
                examination.findings.push(restoring(local, finding));
            }
        }
        State::Unusable {
            why,
            hints,
            is_lost,
        } => {
            examination.say(Check::State, "it can't be used");
            let mut finding = Finding::new(
                Check::State,
                Severity::Error,
                "unusable",
                why,
                "nothing can be planned or applied; the instances in the cloud aren't touched by it",
            );
            finding.advice.clone_from(hints);
            examination.findings.push(if *is_lost {
                restoring(local, finding)
            } else {
                finding
            });
        }
        State::Open {
            serial,
            records,
            problems,
            ..
        } => {
            let verdict = if problems.is_empty() {
                "sound"
            } else {
                "not sound"
            };
            let records = counted(*records, "record");
            examination.say(
                Check::State,
                format!("{verdict}: {records}, serial {serial}, {path}"),
            );
            for problem in problems {
                let finding = Finding::new(
                    Check::State,
                    Severity::Error,
                    problem_kind(problem.kind),
                    format!("the state isn't sound: {}", problem.detail),
                    problem_meaning(problem.kind),
                );
                examination.findings.push(restoring(local, finding));
            }
        }
    }
}

/// Adds the steps to restore a backup.
fn restoring(local: &Local, finding: Finding) -> Finding {
    let Some(newest) = local.backups.first() else {
        return finding.advise(
            "There is no backup; without a state, the next plan adopts what carries this shard's tags",
        );
    };
    let finding = if matches!(local.state, State::Missing) {
        finding
    } else {
        finding.advise(format!(
            "Move it away, its -wal and -shm with it, and keep them: {}",
            local.path
        ))
    };
    finding.advise(format!(
        "Put the newest backup in its place: nstance state push {newest}"
    ))
}

fn problem_kind(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Damage => "damage",
        ProblemKind::Reference => "reference",
        ProblemKind::Content => "content",
        ProblemKind::Journal => "journal-contradiction",
        ProblemKind::Record => "record-contradiction",
    }
}

fn problem_meaning(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Damage => "the file was damaged on disk: what it says can't be relied on",
        ProblemKind::Reference => "a row names another that isn't there: something was lost",
        ProblemKind::Content => {
            "what an instance was made from can't be read: it can't be compared"
        }
        ProblemKind::Journal => "what was intended and what is recorded contradict each other",
        ProblemKind::Record => "a record says what the state as a whole can't say",
    }
}

fn journal(local: &Local, now: Timestamp, examination: &mut Examination) {
    let State::Open {
        intents, latest, ..
    } = &local.state
    else {
        return;
    };
    let running = local.holder.is_some();
    examination.say(
        Check::Journal,
        match (intents.len(), running) {
            (0, _) => "nothing is open".to_owned(),
            (count, true) => format!("{} under way", counted(count, "change")),
            (count, false) => format!("{} left open", counted(count, "change")),
        },
    );
    for intent in intents {
        let since = age(now.since(intent.opened_at.into()));
        let what = match intent.operation {
            Operation::Create => "creation",
            Operation::Update => "change",
            Operation::Delete => "deletion",
            Operation::Register => "registration",
            Operation::Deregister => "deregistration",
            Operation::Drain => "draining",
        };
        let (severity, kind, state) = if running {
            (Severity::Note, "under-way", "is under way")
        } else {
            (Severity::Warning, "unsettled", "has no known end")
        };
        let meaning = match intent.operation {
            Operation::Create => {
                "the next apply looks for it by its tags: there, it is recorded; not there and still wanted, it is asked for again with the same token, which makes no second one"
            }
            Operation::Update => "the next apply compares it with what it should be",
            Operation::Delete => "the next apply looks whether it is gone, and forgets it if it is",
            Operation::Register | Operation::Deregister | Operation::Drain => {
                "the next apply does it again if it is still needed"
            }
        };
        let finding = Finding::new(
            Check::Journal,
            severity,
            kind,
            format!(
                "the {what} of {} {state}, begun {since} ago",
                intent.address
            ),
            meaning,
        )
        .about(&intent.address, intent.provider_id.as_deref());
        examination.findings.push(if running {
            finding
        } else {
            finding.advise("Settle it, before anything else is done: nstance apply")
        });
    }
    let Some(latest) = latest.as_deref() else {
        return;
    };
    if intents.is_empty()
        && matches!(
            latest.status,
            ApplyStatus::Interrupted | ApplyStatus::Failed
        )
    {
        let how = match latest.status {
            ApplyStatus::Failed => "could not do everything",
            _ => "was interrupted",
        };
        examination.findings.push(
            Finding::new(
                Check::Journal,
                Severity::Note,
                "incomplete",
                format!(
                    "the latest {} {how}: entry {} of the history",
                    latest.operation, latest.id.0
                ),
                "what it did is recorded, and nothing is left open",
            )
            .advise("See what is left to do: nstance plan"),
        );
    }
}

fn lock(local: &Local, now: Timestamp, examination: &mut Examination) {
    match (&local.holder, &local.remains) {
        (Some(holder), _) => {
            let since = if holder.is_signed() {
                format!(", for {}", age(now.since(holder.since.into())))
            } else {
                String::new()
            };
            examination.say(Check::Lock, format!("held by {holder}{since}"));
            examination.findings.push(
                Finding::new(
                    Check::Lock,
                    Severity::Note,
                    "held",
                    format!("the lock is held by {holder}{since}"),
                    "what is said of journal and cloud here may be what that process is doing",
                )
                .advise("Look again when it has ended; the lock ends with it"),
            );
        }
        (None, Some(remains)) => {
            examination.say(Check::Lock, "free");
            examination.findings.push(
                Finding::new(
                    Check::Lock,
                    Severity::Note,
                    "stale",
                    format!("{remains} died with the lock"),
                    "it holds nothing any more: whoever locks next clears what it left",
                )
                .advise(format!("Clear it: nstance state unlock {}", remains.id)),
            );
        }
        (None, None) => examination.say(Check::Lock, "free"),
    }
}

fn files(local: &Local, examination: &mut Examination) {
    let mut open = 0;
    for file in &local.files {
        let path = &file.path;
        if file.mode & 0o077 != 0 {
            open += 1;
            examination.findings.push(
                Finding::new(
                    Check::Files,
                    Severity::Warning,
                    "readable-by-others",
                    format!("others may read {path}: its mode is {:o}", file.mode),
                    "it holds what instances are made from, or opens it",
                )
                .advise(format!("Keep it to yourself: chmod 600 {path}")),
            );
        }
        if file.is_written && file.mode != 0 && file.mode & 0o200 == 0 {
            examination.findings.push(
                Finding::new(
                    Check::Files,
                    Severity::Note,
                    "read-only",
                    format!("{path} can't be written: its mode is {:o}", file.mode),
                    "planning works, applying doesn't",
                )
                .advise(format!("If it should be written: chmod 600 {path}")),
            );
        }
    }
    if !local.files.is_empty() {
        examination.say(
            Check::Files,
            match open {
                0 => "nobody else may read them".to_owned(),
                count => format!("others may read {count} of {}", local.files.len()),
            },
        );
    }
}

fn backups(local: &Local, examination: &mut Examination) {
    if !local.has_backups || matches!(local.state, State::Missing) && local.backups.is_empty() {
        return;
    }
    examination.say(
        Check::Backups,
        match &local.backups[..] {
            [] => "none yet: they are made before records change".to_owned(),
            [newest, ..] => {
                let count = counted(local.backups.len(), "backup");
                format!("{count}, the newest {newest}")
            }
        },
    );
}

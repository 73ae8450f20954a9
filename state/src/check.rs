//! Whether a state is sound.
//!
//! In: an open state. Out: every [`Problem`] found. It changes nothing.

use rusqlite::Connection;

use crate::error::Result;
use crate::store::{Store, unpacked};

/// How many problems of one kind are told.
const LIMIT: usize = 100;

/// What a [`Problem`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// The file itself: a page or an index is damaged.
    Damage,
    /// A row refers to a row that isn't there.
    Reference,
    /// A stored spec, request or fetched body can't be read.
    Content,
    /// The journal contradicts the records.
    Journal,
    /// A record contradicts the state as a whole.
    Record,
}

/// Something that is wrong with a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it is about.
    pub kind: ProblemKind,
    /// What is wrong, as a lower-case fragment.
    pub detail: String,
}

/// A question whose every answer is a problem.
struct Question {
    kind: ProblemKind,
    sql: &'static str,
}

const QUESTIONS: &[Question] = &[
    Question {
        kind: ProblemKind::Damage,
        sql: "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
    },
    Question {
        kind: ProblemKind::Reference,
        sql: "SELECT 'a row of ' || \"table\" || ' refers to a row of ' || parent
                  || ' that is missing' FROM pragma_foreign_key_check",
    },
    Question {
        kind: ProblemKind::Journal,
        sql: "SELECT 'the creation of ' || address || ' is open, but ' || instance_id
                  || ' is recorded'
              FROM journal JOIN instances USING (instance_id)
              WHERE closed_at IS NULL AND operation = 'create'",
    },
    Question {
        kind: ProblemKind::Journal,
        sql: "SELECT 'the ' || operation || ' of ' || address || ' is open, but ' || instance_id
                  || ' is not recorded'
              FROM journal
              WHERE closed_at IS NULL AND operation IN ('update', 'delete')
                  AND instance_id NOT IN (SELECT instance_id FROM instances)",
    },
    Question {
        kind: ProblemKind::Journal,
        sql: "SELECT 'the history has ' || count(*) || ' applies as running'
              FROM applies WHERE status = 'running' HAVING count(*) > 1",
    },
    Question {
        kind: ProblemKind::Record,
        sql: "SELECT 'the record of ' || instance_id || ' has version ' || version
                  || ', later than the serial of the state'
              FROM instances WHERE version > (SELECT serial FROM meta WHERE id = 1)",
    },
];

/// Where something packed is stored: a name for it, its length and its body.
const CONTENTS: &[&str] = &[
    "SELECT 'the spec ' || lower(hex(digest)), size, body FROM specs",
    "SELECT 'the request of intent ' || id, size, request FROM journal WHERE request IS NOT NULL",
    "SELECT 'what was fetched from ' || url, size, body FROM fetched",
];

impl Store {
    /// Looks for everything that could be wrong with the state, and reads all of it to do so. No
    /// problem, no entry.
    pub fn check(&self) -> Result<Vec<Problem>> {
        self.read(|connection| {
            let mut problems = Vec::new();
            for question in QUESTIONS {
                tolerant(&mut problems, |problems| {
                    ask(connection, question, problems)
                })?;
            }
            for sql in CONTENTS {
                tolerant(&mut problems, |problems| {
                    open_all(connection, sql, problems)
                })?;
            }
            Ok(problems)
        })
    }
}

fn ask(
    connection: &Connection,
    question: &Question,
    problems: &mut Vec<Problem>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(question.sql)?;
    for detail in statement.query_map((), |row| row.get(0))?.take(LIMIT) {
        problems.push(Problem {
            kind: question.kind,
            detail: detail?,
        });
    }
    Ok(())
}

fn open_all(
    connection: &Connection,
    sql: &str,
    problems: &mut Vec<Problem>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(())?;
    let mut told = 0;
    while let Some(row) = rows.next()? {
        if let Err(error) = unpacked(row, 1, 2) {
            let name: String = row.get(0)?;
            let detail = format!("{name} can't be read: {error}");
            problems.push(Problem {
                kind: ProblemKind::Content,
                detail,
            });
            told += 1;
            if told == LIMIT {
                break;
            }
        }
    }
    Ok(())
}

/// Damage that stops a question is an answer too; the other questions are still asked.
fn tolerant(
    problems: &mut Vec<Problem>,
    look: impl FnOnce(&mut Vec<Problem>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    match look(problems) {
        Err(error) if is_damage(&error) => {
            let problem = Problem {
                kind: ProblemKind::Damage,
                detail: error.to_string(),
            };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
            Ok(())
        }
        done => done,
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}

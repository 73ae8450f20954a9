//! Checks the consistency of a state.
//!
//! In: an open state. Out: all [`Problem`]s. Must not: change anything.

use std::fmt::Write as _;

use crate::error::{Result, StateError};
use crate::history::{ENTRIES, entry};
use crate::keys;
use crate::rollout::{self, GROUPS, LAST_GOOD, PLANS, ROLLOUTS, SLOTS};
use crate::row_crypto::RowCrypto;
use crate::seal::{KeyId, key_of};
use crate::snapshot::{INTENTS, intent};
use crate::sql::{self, Next, Row, Sql, Value};
use crate::sql_store::{
    Engine, FETCHED, OBSERVATION_CACHE, SPECS, SqlStore, fetched, observation_cache, spec,
};

/// The maximum number of problems of one kind.
const LIMIT: usize = 100;

/// The subject of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// The file: a page or an index is damaged.
    Damage,
    /// A row refers to a missing row.
    Reference,
    /// A stored spec, request, fetched body, cache, entry of the history, or rollout can't be read.
    Content,
    /// The journal contradicts the records.
    Journal,
    /// A record contradicts the state as a whole.
    Record,
}

/// A problem of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its subject.
    pub kind: ProblemKind,
    /// The problem, as a lower-case fragment.
    pub detail: String,
}

/// A query whose rows are problems.
#[derive(Debug)]
pub struct Check {
    kind: ProblemKind,
    sql: &'static str,
}

impl Check {
    /// A query for damage.
    pub(crate) const fn damage(sql: &'static str) -> Self {
        let kind = ProblemKind::Damage;
        Self { kind, sql }
    }

    /// A query for rows that refer to missing rows.
    pub(crate) const fn reference(sql: &'static str) -> Self {
        let kind = ProblemKind::Reference;
        Self { kind, sql }
    }
}

const CHECKS: &[Check] = &[
    Check {
        kind: ProblemKind::Journal,
        sql: "SELECT 'the creation of ' || address || ' is open, but ' || instance_id
                  || ' is recorded'
              FROM journal JOIN instances USING (instance_id)
              WHERE closed_at IS NULL AND operation = 'create'",
    },
    // Instances to delete may be unrecorded duplicates.
    Check {
        kind: ProblemKind::Journal,
        sql: "SELECT 'the ' || operation || ' of ' || address || ' is open, but ' || instance_id
                  || ' is not recorded'
              FROM journal
              WHERE closed_at IS NULL AND operation = 'update'
                  AND instance_id NOT IN (SELECT instance_id FROM instances)",
    },
    Check {
        kind: ProblemKind::Journal,
        sql: "SELECT 'the history has ' || count(*) || ' applies as running'
              FROM applies WHERE status = 'running' HAVING count(*) > 1",
    },
    Check {
        kind: ProblemKind::Record,
        sql: "SELECT 'the record of ' || instance_id || ' has version ' || version
                  || ', later than the serial of the state'
              FROM instances WHERE version > (SELECT serial FROM meta WHERE id = 1)",
    },
];

/// Where compressed content is stored.
struct Content {
    /// Its name in messages.
    what: &'static str,
    sql: &'static str,
    /// The column that identifies the row.
    name: usize,
    /// The encrypted column, if there is one.
    sealed: Option<usize>,
    /// Reads a row as normal operations do.
    open: fn(&Row<'_>, &RowCrypto) -> sql::Result<()>,
}

const CONTENTS: &[Content] = &[
    Content {
        what: "the spec",
        sql: SPECS,
        name: 0,
        sealed: Some(2),
        open: |row, crypto| spec(row, crypto).map(drop),
    },
    Content {
        what: "the request of intent",
        sql: INTENTS,
        name: 0,
        sealed: Some(13),
        open: |row, crypto| intent(row, crypto, crypto).map(drop),
    },
    Content {
        what: "what was fetched from",
        sql: FETCHED,
        name: 0,
        sealed: Some(3),
        open: |row, crypto| fetched(row, crypto).map(drop),
    },
    Content {
        what: "the cache of observations",
        sql: OBSERVATION_CACHE,
        name: 0,
        sealed: Some(2),
        open: |row, crypto| observation_cache(row, crypto).map(drop),
    },
    Content {
        what: "the entry of the history",
        sql: ENTRIES,
        name: 0,
        sealed: Some(11),
        open: |row, crypto| entry(row, crypto).map(drop),
    },
    Content {
        what: "the rollout",
        sql: ROLLOUTS,
        name: 0,
        sealed: None,
        open: |row, _| rollout::rollout(row).map(drop),
    },
    Content {
        what: "the plan of rollout",
        sql: PLANS,
        name: 0,
        sealed: Some(4),
        open: |row, crypto| rollout::plan(row, crypto).map(drop),
    },
    Content {
        what: "the rollout of group",
        sql: GROUPS,
        name: 1,
        sealed: Some(4),
        open: |row, crypto| rollout::group(row, crypto).map(drop),
    },
    Content {
        what: "the rollout of slot",
        sql: SLOTS,
        name: 1,
        sealed: Some(5),
        open: |row, crypto| rollout::slot(row, crypto).map(drop),
    },
    Content {
        what: "what last succeeded in group",
        sql: LAST_GOOD,
        name: 0,
        sealed: Some(2),
        open: |row, crypto| rollout::last_good(row, crypto).map(drop),
    },
];

impl<E: Engine> SqlStore<E> {
    /// Reads the whole state and returns all problems. Without the key, encrypted content is only
    /// checked for its key and format.
    ///
    /// Fails if the state can't be read.
    pub fn check(&self) -> Result<Vec<Problem>> {
        let look = |sql: &dyn Sql, crypto: Option<&RowCrypto>| {
            let mut problems = Vec::new();
            for check in self.engine.damage().iter().chain(CHECKS) {
                tolerant(&mut problems, |problems| run_check(sql, check, problems))?;
            }
            let (need, _) = keys::need(sql)?;
            for content in CONTENTS {
                tolerant(&mut problems, |problems| {
                    let wrong = |row: &Row<'_>| match (crypto, &need) {
                        (Some(crypto), _) => {
                            (content.open)(row, crypto).err().map(|e| e.to_string())
                        }
                        (None, Some(need)) => {
                            let sealed = content.sealed?;
                            outside(row, sealed, need.id)
                        }
                        (None, None) => None,
                    };
                    open_all(sql, content, wrong, problems)
                })?;
            }
            Ok(problems)
        };
        match self.read_opened(|sql, crypto| look(sql, Some(crypto))) {
            Err(StateError::NoKey { .. }) => self.read(|sql| look(sql, None)),
            checked => checked,
        }
    }
}

/// The problem of encrypted content, as far as it is visible without the key.
fn outside(row: &Row<'_>, column: usize, needed: KeyId) -> Option<String> {
    let sealed: Option<Vec<u8>> = match row.get(column) {
        Ok(sealed) => sealed,
        Err(error) => return Some(error.to_string()),
    };
    match key_of(&sealed?) {
        Ok(id) if id == needed => None,
        Ok(given) => Some(format!("it is sealed with another key, {given}")),
        Err(error) => Some(error.to_string()),
    }
}

fn run_check(sql: &dyn Sql, check: &Check, problems: &mut Vec<Problem>) -> sql::Result<()> {
    let mut found = 0;
    sql.query(check.sql, &[], &mut |row| {
        problems.push(Problem {
            kind: check.kind,
            detail: row.get(0)?,
        });
        found += 1;
        Ok(if found == LIMIT { Next::End } else { Next::Row })
    })
}

fn open_all(
    sql: &dyn Sql,
    content: &Content,
    wrong: impl Fn(&Row<'_>) -> Option<String>,
    problems: &mut Vec<Problem>,
) -> sql::Result<()> {
    let mut reported = 0;
    sql.query(content.sql, &[], &mut |row| {
        let Some(why) = wrong(row) else {
            return Ok(Next::Row);
        };
        let name = match row.value(content.name)? {
            Value::Integer(id) => id.to_string(),
            Value::Text(name) => name.to_owned(),
            Value::Blob(name) => hex(name),
            Value::Null => String::new(),
        };
        problems.push(Problem {
            kind: ProblemKind::Content,
            detail: format!("{} {name} can't be read: {why}", content.what),
        });
        reported += 1;
        Ok(if reported == LIMIT {
            Next::End
        } else {
            Next::Row
        })
    })
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Runs a check; turns its failure by damage into a problem, so that other checks still run.
fn tolerant(
    problems: &mut Vec<Problem>,
    look: impl FnOnce(&mut Vec<Problem>) -> sql::Result<()>,
) -> sql::Result<()> {
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

fn is_damage(error: &sql::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let sql::Error::Sqlite(error) = error else {
        return false;
    };
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}

//! A session with a server, and its statements.
//!
//! In: statements of this crate. Out: rows. Must not: know what a state is, except for the setting
//! that names one.
//!
//! A statement is translated in two ways: `?1` is `$1`, and what is unique within a state is unique
//! together with it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error as StdError;

use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Statement};

use crate::sql::{self, Columns, Next, Row, Sql, Value};

/// The version of the schema that this crate reads and writes.
pub(super) const SCHEMA: u32 = 1;

/// A session.
pub(super) struct Session {
    client: RefCell<Client>,
    statements: RefCell<HashMap<String, Statement>>,
    /// The newest ids that this transaction assigned, by table. Its end stores them.
    ids: RefCell<HashMap<String, i64>>,
}

impl Session {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client: RefCell::new(client),
            statements: RefCell::default(),
            ids: RefCell::default(),
        }
    }

    /// Whether the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        self.client.borrow().is_closed()
    }

    /// Executes statements without parameters, in one message.
    ///
    /// Fails with the server's error.
    pub(super) fn batch(&self, statements: &str) -> sql::Result<()> {
        Ok(self.client.borrow_mut().batch_execute(statements)?)
    }

    /// Begins a transaction in which statements see one state.
    ///
    /// Fails with the server's error.
    pub(super) fn begin(&self, how: &str, state: i64) -> sql::Result<()> {
        self.ids.borrow_mut().clear();
        self.batch(&format!(
            "BEGIN {how}; SET LOCAL search_path TO nstance_views; \
             SET LOCAL nstance.state = '{state}'; SET LOCAL lock_timeout = '10s'; \
             SET LOCAL synchronous_commit TO on"
        ))
    }

    /// Ends a transaction without an effect, as far as that is possible.
    pub(super) fn roll_back(&self) {
        // A connection that is lost has ended its transaction.
        let _ = self.batch("ROLLBACK");
    }

    /// Stores the newest ids that this transaction assigned.
    ///
    /// Fails with the server's error.
    pub(super) fn store_ids(&self) -> sql::Result<()> {
        let ids = std::mem::take(&mut *self.ids.borrow_mut());
        for (table, last) in ids {
            self.execute(
                "INSERT INTO counters (name, last) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET last = excluded.last",
                sql::params![table, last],
            )?;
        }
        Ok(())
    }

    fn prepared(&self, sql: &str) -> sql::Result<Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.borrow_mut().prepare(&translated(sql))?;
        let mut known = self.statements.borrow_mut();
        known.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// A statement as `PostgreSQL` takes it.
fn translated(sql: &str) -> String {
    sql.replace("ON CONFLICT (", "ON CONFLICT (state, ")
        .replace('?', "$")
}

impl Sql for Session {
    fn execute(&self, sql: &str, params: &[Value<'_>]) -> sql::Result<usize> {
        let statement = self.prepared(sql)?;
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|value| value as _).collect();
        let changed = self.client.borrow_mut().execute(&statement, &params)?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn query(
        &self,
        sql: &str,
        params: &[Value<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> sql::Result<Next>,
    ) -> sql::Result<()> {
        let statement = self.prepared(sql)?;
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|value| value as _).collect();
        let rows = self.client.borrow_mut().query(&statement, &params)?;
        for row in &rows {
            if each(&Row(row))? == Next::End {
                break;
            }
        }
        Ok(())
    }

    fn next_id(&self, table: &str) -> sql::Result<i64> {
        let next = self.newest_id(table)? + 1;
        self.ids.borrow_mut().insert(table.to_owned(), next);
        Ok(next)
    }

    fn newest_id(&self, table: &str) -> sql::Result<i64> {
        if let Some(known) = self.ids.borrow().get(table) {
            return Ok(*known);
        }
        let newest = (self as &dyn Sql).row(
            "SELECT last FROM counters WHERE name = ?1",
            sql::params![table],
            |row| row.get::<i64>(0),
        )?;
        Ok(newest.unwrap_or(0))
    }

    fn raise_id(&self, table: &str, to: i64) -> sql::Result<()> {
        self.ids.borrow_mut().insert(table.to_owned(), to);
        Ok(())
    }

    fn schema_version(&self) -> sql::Result<u32> {
        Ok(SCHEMA)
    }

    fn most_lookups(&self) -> usize {
        100
    }
}

impl Columns for postgres::Row {
    fn value(&self, column: usize) -> sql::Result<Value<'_>> {
        Ok(self.try_get(column)?)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(integer) if *of == Type::INT4 => i32::try_from(*integer)?.to_sql(of, out),
            Self::Integer(integer) => integer.to_sql(of, out),
            Self::Text(text) => text.to_sql(of, out),
            Self::Blob(bytes) => bytes.to_sql(of, out),
        }
    }

    fn accepts(of: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::TEXT, Type::BYTEA].contains(of)
    }

    to_sql_checked!();
}

impl<'v> FromSql<'v> for Value<'v> {
    fn from_sql(of: &Type, raw: &'v [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *of {
            Type::INT4 => Self::Integer(i32::from_sql(of, raw)?.into()),
            Type::INT8 => Self::Integer(i64::from_sql(of, raw)?),
            Type::BOOL => Self::Integer(bool::from_sql(of, raw)?.into()),
            Type::BYTEA => Self::Blob(raw),
            _ => Self::Text(<&str>::from_sql(of, raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(of: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::BOOL, Type::TEXT, Type::BYTEA].contains(of)
    }
}

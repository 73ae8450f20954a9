//! What the statements of this crate need of a database, so that each is written once.
//!
//! In: a statement, with parameters `?1`, `?2`. Out: rows, or how many were changed. Statements are
//! of the SQL that `SQLite` and `PostgreSQL` share. Must not: begin or end a transaction.

use std::fmt;
use std::sync::Arc;

use crate::model::SpecDigest;

/// A database in a transaction.
pub trait Sql {
    /// Executes a statement; returns the number of changed rows.
    ///
    /// Fails with the database's error.
    fn execute(&self, sql: &str, params: &[Value<'_>]) -> Result<usize>;

    /// Calls `each` with each row, until it returns [`Next::End`].
    ///
    /// Fails with the database's error, or that of `each`.
    fn query(
        &self,
        sql: &str,
        params: &[Value<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> Result<Next>,
    ) -> Result<()>;

    /// The next id of a table whose ids are assigned before rows are written. An id is never
    /// returned again, once the transaction has committed.
    ///
    /// Fails with the database's error.
    fn next_id(&self, table: &str) -> Result<i64>;

    /// The newest id that [`Sql::next_id`] returned; 0 if there is none.
    ///
    /// Fails with the database's error.
    fn newest_id(&self, table: &str) -> Result<i64>;

    /// Sets the newest id of a table, in a state that was just created.
    ///
    /// Fails with the database's error.
    fn raise_id(&self, table: &str, to: i64) -> Result<()>;

    /// The version of the schema.
    ///
    /// Fails with the database's error.
    fn schema_version(&self) -> Result<u32>;

    /// How many specs [`crate::SqliteStore::specs`] asks for at most one by one. More are read with
    /// all others, where every statement is a message to a server.
    fn most_lookups(&self) -> usize {
        usize::MAX
    }
}

/// Whether a query goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Row,
    End,
}

impl dyn Sql + '_ {
    /// All rows.
    ///
    /// Fails with the database's error, or that of `read`.
    pub fn rows<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<C> {
        let mut rows = Vec::new();
        self.query(sql, params, &mut |row| {
            rows.push(read(row)?);
            Ok(Next::Row)
        })?;
        Ok(rows.into_iter().collect())
    }

    /// The first row, if there is one.
    ///
    /// Fails with the database's error, or that of `read`.
    pub fn row<T>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let (mut found, mut read) = (None, Some(read));
        self.query(sql, params, &mut |row| {
            if let Some(read) = read.take() {
                found = Some(read(row)?);
            }
            Ok(Next::End)
        })?;
        Ok(found)
    }

    /// The first row.
    ///
    /// Fails with the database's error, with that of `read`, or if there is no row.
    pub fn one<T>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.row(sql, params, read)?.ok_or(Error::NoRow)
    }
}

/// A parameter, or a value in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'v> {
    Null,
    Integer(i64),
    Text(&'v str),
    Blob(&'v [u8]),
}

/// The parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::sql::ToValue::to_value(&$value)),*]
    };
}
pub(crate) use params;

/// What can be a parameter.
pub(crate) trait ToValue {
    fn to_value(&self) -> Value<'_>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl ToValue for $type {
            fn to_value(&self) -> Value<'_> {
                // Beyond this are no serials, generations, sizes or times.
                Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }

        impl FromValue for $type {
            fn from_value(value: Value<'_>) -> Option<Self> {
                match value {
                    Value::Integer(integer) => Self::try_from(integer).ok(),
                    _ => None,
                }
            }
        }
    )*};
}
integers!(i64, u32, u64, usize);

impl ToValue for bool {
    fn to_value(&self) -> Value<'_> {
        Value::Integer(i64::from(*self))
    }
}

impl ToValue for str {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToValue for String {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl ToValue for SpecDigest {
    fn to_value(&self) -> Value<'_> {
        Value::Blob(&self.0)
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue + ?Sized> ToValue for Arc<T> {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToValue::to_value)
    }
}

/// What can be read from a row.
pub trait FromValue: Sized {
    /// `None` if the value is of another type.
    fn from_value(value: Value<'_>) -> Option<Self>;
}

impl FromValue for bool {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Integer(integer) => Some(integer != 0),
            _ => None,
        }
    }
}

impl FromValue for String {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }
}

impl FromValue for Arc<str> {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(Arc::from(text)),
            _ => None,
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Blob(bytes) => Some(bytes.to_owned()),
            _ => None,
        }
    }
}

impl<const N: usize> FromValue for [u8; N] {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Blob(bytes) => bytes.try_into().ok(),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A row of a query.
pub struct Row<'r>(pub(crate) &'r dyn Columns);

/// The values of a row, as a database has them.
pub(crate) trait Columns {
    /// Fails if there is no such column, or if its type is none of [`Value`]'s.
    fn value(&self, column: usize) -> Result<Value<'_>>;
}

impl Row<'_> {
    /// The value of a column.
    ///
    /// Fails if it is of another type.
    pub fn get<T: FromValue>(&self, column: usize) -> Result<T> {
        let value = self.value(column)?;
        T::from_value(value).ok_or_else(|| unreadable(column, "it has an unexpected type"))
    }

    /// The value of a column, of any type.
    ///
    /// Fails if there is no such column.
    pub fn value(&self, column: usize) -> Result<Value<'_>> {
        self.0.value(column)
    }

    /// The text of a column.
    ///
    /// Fails if it is no text.
    pub fn text(&self, column: usize) -> Result<&str> {
        match self.value(column)? {
            Value::Text(text) => Ok(text),
            _ => Err(unreadable(column, "it has no text")),
        }
    }

    /// The bytes of a column.
    ///
    /// Fails if it has none.
    pub fn blob(&self, column: usize) -> Result<&[u8]> {
        match self.value(column)? {
            Value::Blob(bytes) => Ok(bytes),
            _ => Err(unreadable(column, "it has no bytes")),
        }
    }
}

/// The result of a statement.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a statement failed.
#[derive(Debug)]
pub enum Error {
    /// `SQLite` refused.
    Sqlite(rusqlite::Error),
    /// `PostgreSQL` refused, or is gone.
    #[cfg(feature = "postgres")]
    Postgres(postgres::Error),
    /// A column can't be decrypted, or has invalid content.
    Content { column: usize, why: String },
    /// A row is missing that must exist.
    NoRow,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(formatter),
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => error.fmt(formatter),
            Self::Content { column, why } => write!(formatter, "column {column}: {why}"),
            Self::NoRow => formatter.write_str("a row is missing"),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

#[cfg(feature = "postgres")]
impl From<postgres::Error> for Error {
    fn from(error: postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// The error that a column can't be decrypted or has invalid content.
pub(crate) fn unreadable(column: usize, why: impl fmt::Display) -> Error {
    let why = why.to_string();
    Error::Content { column, why }
}

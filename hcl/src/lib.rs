//! Terraform's configuration language, with positions.

mod context;
mod convert;
mod error;
mod eval;
pub mod format;
pub mod functions;
mod number;
mod scope;
mod syntax;
mod types;
mod value;

pub use context::{Context, Files, Folder, LimitReached, Limits, NoFiles};
pub use convert::{ConvertError, PathStep, convert, unify};
pub use error::{Error, Span, nearest};
pub use eval::Evaluator;
pub use number::{Number, NumberError};
pub use scope::{NoNames, Reference, Scope, undefined};
pub use syntax::*;
pub use types::{ObjectType, Type};
pub use value::{Entries, Kind, Value};

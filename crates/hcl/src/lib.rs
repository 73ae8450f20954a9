//! Terraform's configuration language, with positions.
//!
//! A text is [parsed](parse) into blocks, attributes and expressions; an expression is evaluated by an
//! [`Evaluator`], to which a [`Scope`] says what names mean:
//!
//! ```
//! use nstance_hcl::{Context, Entries, Evaluator, NoFiles, Value, parse};
//!
//! let text = "size = [for n in counts : n * 2][1]\nname = \"web-${region}\"\n";
//! let body = parse(text, 0)?;
//!
//! let scope = Entries::from([
//!     ("counts".into(), Value::tuple([Value::from(1), Value::from(2)])),
//!     ("region".into(), Value::from("eu")),
//! ]);
//! let context = Context::new(&NoFiles);
//! let evaluator = Evaluator::new(&scope, &context);
//! let values: Result<Vec<Value>, _> =
//!     body.attributes().map(|attribute| evaluator.evaluate(&attribute.value)).collect();
//! let values = values.map_err(|errors| errors[0].clone())?;
//! assert_eq!(values, [Value::from(4), Value::from("web-eu")]);
//! # Ok::<(), nstance_hcl::Error>(())
//! ```
//!
//! The reference is Terraform 1.0.3: what `terraform console` prints for a value is what
//! [`format::console`] gives. Where the two differ on purpose is in the crate's README.
//!
//! Every [`Error`] has a place. Parsing stops at the first, evaluating collects those that don't
//! follow from others. A [`Value`] knows where it was written, through functions that pass it on, and
//! whether it is sensitive, as is all that was made with it. No input makes the crate panic, recurse without bound or use memory without bound.

#[cfg(feature = "conformance")]
pub mod conformance;
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

//! Go's `text/template`, exactly.
//!
//! A template is parsed once, in an [`Environment`], and executed many times, on [`Value`]s:
//!
//! ```
//! use nstance_gotemplate::{Environment, Map, Template, Value};
//!
//! let environment = Environment::new();
//! let template = Template::parse("greeting", "Hello {{ .Name | printf \"%q\" }}!", &environment)?;
//! let data = Value::from(Map::from_iter([("Name", "world")]));
//! assert_eq!(template.render(&data)?.output, b"Hello \"world\"!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The reference is Go 1.27: lexer, parser, execution, built-in functions, and `fmt` as far as
//! templates print with it. What is ours on top: positions and hints in every error, limits on what
//! a template may cost, [unset](Value::Unset) and [unknown](Value::Unknown) values, what a template
//! [reads](Template::reads), and which bytes of its output are [sensitive](Template::trace).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod code;
#[cfg(feature = "conformance")]
pub mod conformance;
mod dict;
mod dispose;
mod environment;
mod error;
mod exec;
mod format;
mod function;
mod functions;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "gtmpl")]
mod gtmpl;
#[cfg(feature = "serde_json")]
mod json;
mod library;
mod map;
mod number;
mod parse;
mod quote;
mod reads;
mod report;
mod sensitive;
#[cfg(feature = "sprig")]
pub mod sprig;
mod template;
mod unicode;
mod value;

pub use dict::Dict;
pub use environment::{Environment, Limits, MissingKey};
pub use error::{Caller, Earlier, ExecError, ExecErrorKind, Found, ParseError, Problem};
pub use function::{Budget, BudgetedBody, Function, FunctionBody, FunctionError, Kind};
pub use library::{Library, LibraryError};
pub use map::{Map, Struct, StructType};
pub use reads::Reads;
pub use report::{Access, Call, Rendered, Report};
pub use sensitive::{Sensitive, Trace};
pub use template::Template;
pub use value::{ItemType, List, Text, Unknown, Value};

/// The README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

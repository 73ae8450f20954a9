//! YAML 1.1, as PyYAML's `safe_load` reads it, and as it reads back what is written here.
//!
//! In: a text. Out: a [`Value`], or a [`YamlError`] with its place. May not: read anything otherwise
//! than PyYAML 6 does, on purpose or not; what surprises there surprises here.

mod compose;
mod construct;
mod cursor;
mod emit;
mod error;
mod remarks;
mod scalars;
mod scanner;
mod tag;
mod tags;
mod text;
mod time;
mod token;

pub(crate) use construct::decode_base64;
pub use emit::{Marked, TooLarge, emit, emit_marked, is_safe_plain, quoted};
pub use error::{Kind, Mark, YamlError};
pub use remarks::{Plain, Remark, Remarks, remarks};
pub use text::Text;

use crate::value::{Data, Value};

/// Reads the one document of a text; `layer` is where its values are said to be from. A text
/// without a document is null.
pub fn load(text: &str, layer: u32) -> Result<Value, YamlError> {
    match compose::compose(text)? {
        None => Ok(Value::new(Data::Null)),
        Some(document) => construct::Constructor::new(&document, layer).value(document.root),
    }
}

//! Formats configuration files and converts them to another language.
//!
//! In: the text of one file, or an evaluated document. Out: another text. Must not: read or write
//! files.

pub mod convert;
#[cfg(test)]
mod convert_tests;
mod hcl_layout;
mod hcl_tokens;
mod hcl_writer;
mod jsonc_layout;
#[cfg(test)]
mod tests;
mod yaml_writer;

use crate::config;
use crate::config::node::{Node, NodeValue};
use crate::config::source::{Language, SourceId, SourceMap};
use crate::diagnostic::Diagnostics;

/// The preferred maximum line length, in columns.
const WIDTH: usize = 100;

/// Formats the text of a source: the same tokens and comments with standard whitespace. Returns
/// `None` for YAML, which has its own formatters.
///
/// Fails if the text has a syntax error.
pub fn layout(sources: &SourceMap, source: SourceId) -> Result<Option<String>, Diagnostics> {
    let source_text = sources.get(source);
    let text = &*source_text.text;
    match source_text.language {
        Language::Yaml | Language::Plain => Ok(None),
        Language::Jsonc => {
            config::jsonc::read(source, text).map_err(|error| *error)?;
            let laid_out = jsonc_layout::lay_out(text);
            // Keep CRLF line endings if the first line has one.
            let is_windows = text
                .split('\n')
                .next()
                .is_some_and(|line| line.ends_with('\r'));
            Ok(Some(if is_windows {
                laid_out.replace("\r\n", "\n").replace('\n', "\r\n")
            } else {
                laid_out
            }))
        }
        Language::Hcl => {
            config::hcl::parse(source, sources).map_err(|error| *error)?;
            Ok(Some(hcl_layout::lay_out(text)))
        }
    }
}

/// Whether a value may be written on one line: a scalar, an empty container, a list of scalars.
fn is_short(node: &Node) -> bool {
    let is_scalar = |node: &Node| match &node.value {
        NodeValue::Array(items) => items.is_empty(),
        NodeValue::Object(entries) => entries.is_empty(),
        _ => true,
    };
    match &node.value {
        NodeValue::Array(items) => items.iter().all(is_scalar),
        _ => is_scalar(node),
    }
}

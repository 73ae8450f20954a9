//! Texts of configurations: laid out anew, or in another language.
//!
//! In: the text of one file. Out: another text that means the same, with its comments. May not:
//! read or write files, or know the schema beyond its sections.

mod attach;
mod comments;
pub mod convert;
#[cfg(test)]
mod convert_tests;
#[cfg(test)]
mod convert_variables_tests;
mod document;
mod from_hcl;
mod from_hcl_values;
mod hcl;
mod hcl_expression;
mod hcl_layout;
mod hcl_text;
mod hcl_tokens;
mod jsonc;
#[cfg(test)]
mod tests;
mod yaml;

use crate::config;
use crate::config::source::{Language, SourceId, SourceMap};
use crate::diagnostic::Diagnostics;
use attach::attach;
use document::Wording;

/// How long lines become, where there is a choice.
const WIDTH: usize = 100;

/// Lays out the text of a source: the same values and comments, in the one layout there is for
/// them. `None` for a language that isn't laid out; where the text can't be read, the findings say
/// why.
pub fn layout(sources: &SourceMap, source: SourceId) -> Result<Option<String>, Diagnostics> {
    let source_text = sources.get(source);
    let text = &*source_text.text;
    let laid_out = match source_text.language {
        Language::Yaml | Language::Plain => return Ok(None),
        Language::Jsonc => {
            let mut findings = Diagnostics::default();
            let root = config::jsonc::read(source, text, &mut findings);
            match root.filter(|_| !findings.has_errors()) {
                Some(root) => {
                    let document = attach(&root, text, Language::Jsonc, Wording::Written);
                    jsonc::write(&document, Wording::Written)
                }
                None => return Err(findings),
            }
        }
        Language::Hcl => {
            let mut findings = Diagnostics::default();
            match config::hcl::parse(source, sources, &mut findings) {
                Some(_) => hcl_layout::lay_out(text),
                None => return Err(findings),
            }
        }
    };
    // Who writes lines with carriage returns gets them back.
    let first = text.find('\n').map(|at| text[..at].ends_with('\r'));
    Ok(Some(match source_text.language {
        Language::Jsonc if first == Some(true) => {
            laid_out.replace("\r\n", "\n").replace('\n', "\r\n")
        }
        _ => laid_out,
    }))
}

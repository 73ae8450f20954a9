//! HCL, read into [`Node`](super::node::Node)s.
//!
//! In: the HCL files of a configuration, the values of its variables, the names that its other
//! files define. Out: a document for each file, every value with its place; what is wrong. May
//! not: know more of the schema than what its blocks are called.
//!
//! Parsing and evaluating are the crate `nstance_hcl`'s. Here is what names mean (`scope`, `known`),
//! what blocks become (`blocks`, `instances`), and how values become nodes (`tree`).

mod blocks;
mod document;
mod folders;
mod instances;
mod known_names;
mod locals;
mod named_blocks;
mod object_builder;
mod scope;
mod span_map;
#[cfg(test)]
pub(super) mod tests;
mod tree;
mod unknown;

use std::path::Path;
use std::sync::Arc;

use nstance_hcl::{Body, Document, Expression, ExpressionKind};

use super::source::{SourceId, SourceMap, Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(super) use document::document;
pub(super) use folders::Folders;
pub(super) use known_names::Known;
pub(super) use scope::{At, Made, Module, Values};
pub(super) use span_map::{Places, named};

/// One file, parsed.
#[derive(Debug)]
pub(super) struct File {
    pub(super) body: Body,
    /// Where functions such as `file` start from; `None`: nothing can be read.
    pub(super) folder: Option<Arc<Path>>,
    /// Whether it changes what the others say.
    pub(super) overrides: bool,
}

/// Parses a file. `None` where it can't be parsed; findings then say why.
pub(crate) fn parse(
    source: SourceId,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) -> Option<Document> {
    match nstance_hcl::parse(&sources.get(source).text, source.0) {
        Ok(document) => Some(document),
        Err(errors) => {
            explain(&errors, source, sources, findings);
            None
        }
    }
}

/// Parses a file as far as it can be; findings say what can't.
pub(super) fn parse_on(
    source: SourceId,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) -> Option<Document> {
    let (document, errors) = nstance_hcl::parse_on(&sources.get(source).text, source.0);
    explain(&errors, source, sources, findings);
    document
}

fn explain(
    errors: &[nstance_hcl::Error],
    source: SourceId,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) {
    let places = Places::default();
    let text = &sources.get(source).text;
    findings.extend(errors.iter().map(|error| {
        bare_template(source, text, error).unwrap_or_else(|| places.finding(sources, error))
    }));
}

/// What is wrong where an error is due to a Go template without quotes around it.
fn bare_template(source: SourceId, text: &str, error: &nstance_hcl::Error) -> Option<Diagnostic> {
    let at = error.span.start as usize;
    let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let end = text[at..]
        .find('\n')
        .map_or(text.len(), |length| at + length);
    let start = line + text[line..at].rfind("{{")?;
    let before = text[line..start].trim_end();
    if !before.ends_with(['=', ',', '[', ':', '(']) {
        return None;
    }
    let end = text[start..end]
        .find("}}")
        .map_or(end, |length| start + length + 2);
    let template = &text[start..end];
    let quoted = template.replace('\\', "\\\\").replace('"', "\\\"");
    Some(
        Diagnostic::error("a Go template stands in a text")
            .at(
                Span::new(source, start, end),
                "this has no quotes around it",
            )
            .hint(format!(
                "write `\"{quoted}\"`, or text over several lines as `<<-EOT … EOT`"
            )),
    )
}

/// The files that a file includes. They are read before anything is evaluated, so their names are
/// written out.
pub(super) fn includes(
    file: &File,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) -> Vec<Spanned<Arc<str>>> {
    let Some(attribute) = file.body.attribute("include") else {
        return Vec::new();
    };
    let items = match &attribute.value.kind {
        ExpressionKind::Tuple(items) => &items[..],
        _ => std::slice::from_ref(&attribute.value),
    };
    let places = Places::default();
    let mut name = |item: &Expression| {
        let span = places.span(sources, item.span);
        match &item.kind {
            ExpressionKind::String(path) => return Some(Spanned::new(Arc::clone(path), span)),
            ExpressionKind::Unreadable => return None,
            _ => {}
        }
        findings.push(
            Diagnostic::error("`include` must name files")
                .at(span, "expected a string that is written out")
                .hint("Name one file, or several in a list: `[\"common.hcl\", \"groups/*.hcl\"]`"),
        );
        None
    };
    items.iter().filter_map(&mut name).collect()
}

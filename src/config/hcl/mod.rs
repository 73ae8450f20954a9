//! Reads HCL into [`Node`](super::node::Node)s.
//!
//! In: the HCL files of a configuration, the values of its variables, the names that its other
//! files define. Out: a document for each file, every value with its place; errors. Must not: know
//! more of the schema than the names of blocks.
//!
//! The crate `nstance_hcl` parses and evaluates. This module resolves names (`scope`,
//! `known_names`), converts blocks (`blocks`, `instances`), and converts values to nodes (`tree`).

mod blocks;
mod folders;
mod instances;
mod known_names;
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

use nstance_hcl::{Body, Expression, ExpressionKind};

use super::source::{SourceId, SourceMap, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(super) use blocks::{BLOCKS, document};
pub(super) use folders::Folders;
pub(super) use known_names::Known;
pub(super) use scope::{At, Module, Values};
pub(super) use span_map::{Places, named};

/// One parsed file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) body: Body,
    /// The folder that functions such as `file` start from; `None` if they can't read files.
    pub(super) folder: Option<Arc<Path>>,
    /// Whether it is an override file.
    pub(super) overrides: bool,
}

/// Parses a file.
///
/// Fails with its first syntax error.
pub(crate) fn parse(source: SourceId, sources: &SourceMap) -> Result<Body, Box<Diagnostic>> {
    nstance_hcl::parse(&sources.get(source).text, source.0)
        .map_err(|error| Box::new(Places::default().finding(sources, &error)))
}

/// The files that a file includes. They are read before evaluation, so they must be literals.
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
        if let ExpressionKind::String(path) = &item.kind {
            return Some(Spanned::new(Arc::clone(path), span));
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

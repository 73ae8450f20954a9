//! `locals`: what names there are.
//!
//! In: the files of a configuration. Out: the expression of each local. May not: evaluate it.

use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_hcl::{Expression, Item};

use super::{File, Places};
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// One local.
#[derive(Clone, Copy)]
pub(in crate::config) struct Local<'f> {
    pub(super) expression: &'f Expression,
    pub(super) name: nstance_hcl::Span,
    pub(super) file: &'f File,
}

/// All of a configuration, by name.
pub(in crate::config) type Locals<'f> = BTreeMap<Arc<str>, Local<'f>>;

/// Finds the locals. Those of override files replace others.
pub(super) fn collect<'f>(
    files: &'f [File],
    places: &Places,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) -> Locals<'f> {
    let mut locals = Locals::new();
    let (overrides, plain): (Vec<&File>, Vec<&File>) =
        files.iter().partition(|file| file.overrides);
    for file in plain.into_iter().chain(overrides) {
        let blocks = file.body.blocks();
        for block in blocks.filter(|block| &*block.kind.name == "locals") {
            if let Some(label) = block.labels.first() {
                findings.push(
                    Diagnostic::error("a `locals` block has no name")
                        .at(places.span(sources, label.span), "take this out")
                        .hint("what is in it has names: `locals { … }`"),
                );
            }
            for item in &block.body.items {
                let attribute = match item {
                    Item::Attribute(attribute) => attribute,
                    Item::Block(inner) => {
                        let name = &inner.kind.name;
                        findings.push(
                            Diagnostic::error("a `locals` block holds values, no blocks")
                                .at(places.span(sources, inner.header), "this is a block")
                                .hint(format!("write an object: `{name} = {{ … }}`")),
                        );
                        continue;
                    }
                };
                let local = Local {
                    expression: &attribute.value,
                    name: attribute.name.span,
                    file,
                };
                let name = &attribute.name.name;
                match locals.get(name) {
                    Some(first) if !file.overrides => {
                        let first: &Local<'_> = first;
                        findings.push(
                            Diagnostic::error(format!("`local.{name}` is defined twice"))
                                .at(places.span(sources, local.name), "here again")
                                .related(
                                    places.span(sources, first.name),
                                    "it is defined here first",
                                )
                                .hint("remove or rename one of the two"),
                        );
                    }
                    _ => {
                        locals.insert(Arc::clone(name), local);
                    }
                }
            }
        }
    }
    locals
}

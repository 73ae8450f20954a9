//! Recognizes files in a configuration's folder that belong to something else.
//!
//! In: a parsed file. Out: the error that it isn't part of a configuration, if so.

use std::path::Path;
use std::sync::Arc;

use nstance_hcl::Item;

use crate::config::evaluate::Content;
use crate::config::hcl::{BLOCKS, Places};
use crate::config::node::{Node, NodeValue};
use crate::config::schema::tables;
use crate::config::source::{SourceMap, Span};
use crate::diagnostic::{Diagnostic, nearest};
use crate::dialect::bosh::is_manifest;
use crate::dialect::yandex::is_specification;

/// The error for a file that has content, but no key or block of a configuration. A misspelt key, and
/// any key of a file called `nstance…`, is reported when the schema is checked.
pub(super) fn foreign(content: &Content, sources: &SourceMap) -> Option<Diagnostic> {
    let names = top_level(content, sources);
    let known = || tables::TOP.names().chain(BLOCKS.iter().copied());
    let is_known = |name: &str| known().any(|key| key == name) || nearest(name, known()).is_some();
    let (first, place) = names.first()?;
    if matches!(content, Content::Tree(root) if is_specification(root)) {
        let file = &sources.get(place.source).name;
        let finding = Diagnostic::error(format!(
            "{file} is a specification of a Yandex instance group"
        ));
        return Some(
            finding
                .at(*place, format!("`{first}` is not a key of configurations"))
                .hint(format!(
                    "Plan it alone: -c {file}; or name it in a configuration: \
                     `source: {{yandex: …}}`"
                )),
        );
    }
    if matches!(content, Content::Tree(root) if is_manifest(root)) {
        let file = &sources.get(place.source).name;
        let finding = Diagnostic::error(format!("{file} is a deployment manifest of BOSH"));
        return Some(
            finding
                .at(*place, format!("`{first}` is not a key of configurations"))
                .hint(format!(
                    "Plan it alone: -c {file} --from bosh --releases DIR; or name it in a configuration: \
                     `source: {{bosh: …}}`"
                )),
        );
    }
    let is_groups = matches!(content, Content::Tree(root) if is_groups_file(root));
    if !is_groups && names.iter().any(|(name, _)| is_known(name)) {
        return None;
    }
    let file = &sources.get(place.source).name;
    let name = Path::new(file).file_name()?.to_string_lossy();
    if name.starts_with("nstance") {
        return None;
    }
    let finding = if is_groups {
        Diagnostic::error(format!("{file} is a groups file of the Nstance server"))
            .at(*place, "a tenant's groups")
            .hint("Add it with --groups, or move its content below the key `groups`")
    } else {
        Diagnostic::error(format!("{file} is not part of an nstance configuration"))
            .at(*place, format!("`{first}` is not a key of configurations"))
    };
    Some(finding.hint("Name the configuration's files: -c FILE"))
}

/// The keys or blocks that a file consists of.
fn top_level(content: &Content, sources: &SourceMap) -> Vec<(Arc<str>, Span)> {
    match content {
        Content::Tree(root) => {
            let entries = root.entries().iter();
            entries
                .filter(|entry| &*entry.key != "$schema")
                .map(|entry| (Arc::clone(&entry.key), entry.key_span))
                .collect()
        }
        Content::Hcl(file) => {
            let places = Places::default();
            let names = file.body.items.iter().map(|item| match item {
                Item::Attribute(attribute) => &attribute.name,
                Item::Block(block) => &block.kind,
            });
            names
                .map(|name| (Arc::clone(&name.name), places.span(sources, name.span)))
                .collect()
        }
    }
}

/// Whether a document is tenants, each with groups by name.
fn is_groups_file(root: &Node) -> bool {
    let is_group = |node: &Node| {
        let mut keys = node.entries().iter();
        keys.any(|entry| tables::GROUP.key(&entry.key).is_some())
    };
    let is_ours = |name: &str| tables::TOP.key(name).is_some();
    root.entries().iter().all(|tenant| {
        let groups = tenant.value.entries();
        matches!(tenant.value.value, NodeValue::Object(_))
            && !is_ours(&tenant.key)
            && !groups.is_empty()
            && groups.iter().all(|group| is_group(&group.value))
    })
}

//! Converts labelled blocks, and expands those with `for_each`.
//!
//! In: a block with labels. Out: its object at the labels' path. Must not: read its body; `blocks`
//! does.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use nstance_hcl::Block;

use super::blocks::Of;
use super::instances::Instance;
use super::object_builder::Object;
use super::scope::At;
use crate::address::is_id;
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics};

impl At<'_> {
    pub(super) fn named(
        &self,
        path: &str,
        key: &'static str,
        (block, labels): (&Block, std::ops::RangeInclusive<usize>),
        inner: Of,
        repeats: bool,
        object: &mut Object,
    ) {
        let kind = &*block.kind.name;
        let count = block.labels.len();
        if !labels.contains(&count) {
            let form = match kind {
                "group" => "`group \"NAME\" { … }` or `group \"TENANT\" \"NAME\" { … }`".to_owned(),
                _ => format!("`{kind} \"NAME\" {{ … }}`"),
            };
            let what = if count == 0 {
                format!("this `{kind}` has no name")
            } else {
                format!("this `{kind}` has too many names")
            };
            let place = match block.labels.get(*labels.end()) {
                Some(label) => label.span,
                None => block.kind.span,
            };
            self.find(
                Diagnostic::error(what)
                    .at(
                        self.module.span(place),
                        if count == 0 {
                            "a name must follow"
                        } else {
                            "one too many"
                        },
                    )
                    .hint(format!("write {form}")),
            );
            return object.fail();
        }
        let key: Arc<str> = key.into();
        if !repeats {
            self.labelled(path, &key, block, None, object, inner);
            return;
        }
        let Some(instances) = self.module.instances_of(block) else {
            // `for_each` failed; still report the errors of its body.
            let failed = Instance::failed(block);
            let at = At {
                each: Some(&failed),
                ..*self
            };
            let _ = at.object(inner, path, &block.body);
            return object.fail();
        };
        let span = self.module.span(block.span);
        self.module.collected.borrow_mut().repeated.push(span);
        let earlier = self.module.take_findings();
        let turn = |instance: &Instance| {
            let at = At {
                each: Some(instance),
                ..*self
            };
            at.labelled(path, &key, block, Some(instance), object, inner);
            (Arc::clone(&instance.key), self.module.take_findings())
        };
        let turns: Vec<_> = instances.iter().map(turn).collect();
        let found = name_keys(turns, span);
        for finding in earlier.into_iter().chain(found) {
            self.find(finding);
        }
    }

    /// Puts a block's object at its labels. For an `instance`, its name replaces the last label. A
    /// group without a tenant belongs to `default`.
    pub(super) fn labelled(
        &self,
        path: &str,
        key: &Arc<str>,
        block: &Block,
        instance: Option<&Instance>,
        object: &mut Object,
        inner: Of,
    ) {
        let kind_span = self.module.span(block.kind.span);
        let mut path = format!("{path}{key}.");
        let Some(mut names) = object.names("", key, kind_span, self) else {
            return object.fail();
        };
        if &**key == "groups" && block.labels.len() == 1 {
            let Some(tenant) = names.names(&path, &"default".into(), kind_span, self) else {
                return;
            };
            names = tenant;
            path.push_str("default.");
        }
        let Some((last, outer)) = block.labels.split_last() else {
            return;
        };
        for label in outer {
            let span = self.module.span(label.span);
            let Some(next) = names.names(&path, &label.name, span, self) else {
                return;
            };
            names = next;
            path.push_str(&format!("{}.", label.name));
        }
        let name = instance.map_or(&last.name, |instance| &instance.name);
        let body_path = format!("{path}{name}.");
        let body = self.object(inner, &body_path, &block.body);
        let Ok(node) = body.node(self.module.span(block.span)) else {
            return names.fail();
        };
        let key_span = self.module.span(match instance {
            // The label is valid, so the error is about what determines the name.
            Some(instance) if &**key == "groups" && is_id(&last.name) && !is_id(name) => {
                instance.named_by
            }
            _ => last.span,
        });
        names.put(&path, Arc::clone(name), key_span, node, self);
    }
}

/// Joins the findings of all instances of the block at `block`. A finding that only some instances
/// have says for which keys.
fn name_keys(turns: Vec<(Arc<str>, Diagnostics)>, block: Span) -> Vec<Diagnostic> {
    let count = turns.len();
    let mut found: Vec<(Diagnostic, Vec<Arc<str>>)> = Vec::new();
    let mut places: HashMap<Diagnostic, usize> = HashMap::new();
    for (key, findings) in turns {
        for finding in findings {
            let place = *places.entry(finding.clone()).or_insert(found.len());
            match found.get_mut(place) {
                Some((_, keys)) => keys.push(Arc::clone(&key)),
                None => found.push((finding, vec![Arc::clone(&key)])),
            }
        }
    }
    let named = found.into_iter().map(|(mut finding, keys)| {
        // A finding outside of the block doesn't depend on the key.
        let is_within = |place: Span| {
            place.source == block.source && block.start <= place.start && place.end <= block.end
        };
        let label = finding.label.as_ref();
        if keys.len() < count && label.is_some_and(|label| is_within(label.span)) {
            let mut told = match &finding.detail {
                Some(detail) => format!("{detail}\n"),
                None => String::new(),
            };
            let _ = match &keys[..] {
                [first, _, _, ..] => {
                    let more = keys.len() - 1;
                    write!(
                        told,
                        "With the key `{first}` of `for_each`, and {more} more"
                    )
                }
                [first, other] => {
                    write!(told, "With the keys `{first}` and `{other}` of `for_each`")
                }
                _ => write!(told, "With the key `{}` of `for_each`", keys[0]),
            };
            finding.detail = Some(told);
        }
        finding
    });
    named.collect()
}

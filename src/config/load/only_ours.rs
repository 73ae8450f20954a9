//! Finds what today's Nstance server doesn't know, or wants, for `validate --server-compatible`.
//!
//! In: the document of a configuration. Out: a warning, with its path, for each key that only nstance
//! reads, each form that the server doesn't read, and each key that it wants. Must not: look at
//! templates; `check::server` does.

use crate::config::decode::{GroupsForm, groups_form};
use crate::config::node::{Node, NodeValue};
use crate::config::schema::{Key, Shape, Table, tables};
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// The keys that the server wants, by the object's path.
const WANTED: &[(&str, &[&str])] = &[
    ("", &["templates"]),
    ("cluster", &["secrets"]),
    ("shard", &["bind", "advertise", "subnet_pools"]),
    ("shard.bind", ADDRESSES),
    ("shard.advertise", ADDRESSES),
    ("images.*", &["sort", "order"]),
    ("groups.*.*", &["template"]),
];

const ADDRESSES: &[&str] = &[
    "health_addr",
    "election_addr",
    "registration_addr",
    "operator_addr",
    "agent_addr",
];

/// Names of providers that the server doesn't know.
const PROVIDERS: &[&str] = &["sim", "gcp", "yandex"];

/// Adds the warnings.
pub(super) fn only_ours(root: &Node, findings: &mut Diagnostics) {
    let mut walk = Walk {
        is_flat: groups_form(root) == Some(GroupsForm::Flat),
        path: Vec::new(),
        findings,
    };
    walk.object(root, &tables::TOP);
}

struct Walk<'n, 'f> {
    is_flat: bool,
    path: Vec<&'n str>,
    findings: &'f mut Diagnostics,
}

impl<'n> Walk<'n, '_> {
    fn warn(&mut self, span: Span, what: &str, label: &str) {
        let path = self.path.join(".");
        let finding = Diagnostic::warning(format!("`{path}` {what}"));
        self.findings.push(finding.at(span, label));
    }

    /// Runs a function with a path that is one key longer.
    fn within(&mut self, key: &'n str, run: impl FnOnce(&mut Self)) {
        self.path.push(key);
        run(self);
        self.path.pop();
    }

    fn object(&mut self, node: &'n Node, table: &'static Table) {
        self.wanted(node);
        for entry in node.entries() {
            let Some(key) = table.key(&entry.key) else {
                continue;
            };
            if entry.value.value == NodeValue::Null {
                continue;
            }
            self.within(&entry.key, |walk| {
                if key.ours {
                    let what = "isn't known to the Nstance server";
                    walk.warn(entry.key_span, what, "only nstance reads it");
                }
                walk.entry(key, &entry.value);
                walk.value(&entry.value, key.shape);
            });
        }
    }

    /// Warns of missing keys.
    fn wanted(&mut self, node: &'n Node) {
        let is_here = |pattern: &str| {
            let mut names = pattern.split('.').filter(|name| !name.is_empty());
            let mut path = self.path.iter();
            path.all(|key| names.next().is_some_and(|name| name == "*" || name == *key))
                && names.next().is_none()
        };
        let here = WANTED.iter().find(|(pattern, _)| is_here(pattern));
        for key in here.map_or(&[][..], |(_, keys)| keys) {
            if node.get(key).is_none() {
                self.within(key, |walk| {
                    walk.warn(node.span, "is missing", "the Nstance server wants it");
                });
            }
        }
    }

    /// Forms of a value that the server doesn't read.
    fn entry(&mut self, key: &Key, value: &'n Node) {
        let span = value.span;
        match (key.name, &value.value) {
            ("provider", NodeValue::String(word)) if PROVIDERS.contains(&&**word) => {
                self.warn(
                    span,
                    "isn't a provider of the Nstance server",
                    "only nstance knows it",
                );
            }
            ("userdata", NodeValue::String(_)) => {
                let label = "the Nstance server wants an object";
                self.warn(span, "is a text", label);
            }
            ("key", NodeValue::String(_)) => {
                let label = "the Nstance server wants `{source, name}`";
                self.warn(span, "is a text", label);
            }
            ("vars", NodeValue::Object(vars)) => {
                for var in vars {
                    let is_text = matches!(var.value.value, NodeValue::String(_) | NodeValue::Null);
                    if !is_text {
                        self.within(&var.key, |walk| {
                            let label = "the vars of the Nstance server are texts";
                            walk.warn(var.value.span, "isn't a text", label);
                        });
                    }
                }
            }
            ("groups", _) if self.is_flat => {
                let label = "the Nstance server wants tenants, each with its groups";
                self.warn(span, "has no tenants", label);
            }
            ("bind" | "advertise", NodeValue::Object(_)) => self.wanted(value),
            _ => {}
        }
    }

    fn value(&mut self, node: &'n Node, shape: Shape) {
        match shape {
            Shape::Object(table) | Shape::TextOr(table) | Shape::WordOr(_, table)
                // `shard.advertise` was looked at by its entry.
                if !matches!(self.path[..], ["shard", "advertise"]) => {
                    self.object(node, table);
                }
            Shape::Groups => {
                for member in node.entries() {
                    self.within(&member.key, |walk| {
                        if walk.is_flat {
                            walk.object(&member.value, &tables::GROUP);
                        } else {
                            walk.value(&member.value, GROUPS_OF_TENANT);
                        }
                    });
                }
            }
            Shape::Named(inner) | Shape::Images(inner) | Shape::Files(inner) => {
                for member in node.entries() {
                    self.within(&member.key, |walk| walk.value(&member.value, *inner));
                }
            }
            _ => {}
        }
    }
}

const GROUPS_OF_TENANT: Shape = Shape::Named(&Shape::Object(&tables::GROUP));

//! Collects the names that references such as `template.web` can use.
//!
//! In: the documents of a configuration, in any language. Out: the names that they define. Must
//! not: evaluate anything; `instances` handles blocks with `for_each`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use nstance_hcl::{Block, Body, Expression, ExpressionKind, Item, ObjectKey};

use super::blocks::BLOCKS;
use crate::config::assemble::Document;
use crate::config::decode::reads_as_group;
use crate::config::node::{Entry, Node, NodeValue};

/// The kinds of blocks that references can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::config) enum Kind {
    Template,
    Image,
    Group,
    LoadBalancer,
    Certificate,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Template,
        Self::Image,
        Self::Group,
        Self::LoadBalancer,
        Self::Certificate,
    ];

    /// The name of the block and the reference.
    pub(super) fn singular(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Image => "image",
            Self::Group => "group",
            Self::LoadBalancer => "load_balancer",
            Self::Certificate => "certificate",
        }
    }

    /// The configuration key that holds them.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Template => "templates",
            Self::Image => "images",
            Self::Group => "groups",
            Self::LoadBalancer => "load_balancers",
            Self::Certificate => "certificates",
        }
    }

    pub(super) fn of_singular(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.singular() == name)
    }

    pub(super) fn of_plural(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.plural() == name)
    }
}

/// The names that a configuration defines.
#[derive(Debug, Default)]
pub(in crate::config) struct Known {
    names: BTreeMap<Kind, BTreeSet<Arc<str>>>,
    /// Groups as (tenant, group).
    groups: HashSet<(Arc<str>, Arc<str>), RandomState>,
    /// Kinds with names that an expression computes, so any name may exist.
    open: HashSet<Kind>,
    /// Whether a top-level key or block has an unknown name, which is reported. It may define any
    /// name.
    has_misnamed: bool,
    /// Whether `groups` or `groups_form` is set as an attribute rather than by blocks.
    groups_are_said: bool,
}

impl Known {
    /// For configurations without expressions and blocks.
    pub(in crate::config) fn without_references() -> Self {
        Self {
            groups_are_said: true,
            ..Self::default()
        }
    }

    /// Adds the names of a JSONC or YAML document.
    pub(in crate::config) fn tree(&mut self, root: &Node) {
        for entry in root.entries() {
            self.groups_are_said |= matches!(&*entry.key, "groups" | "groups_form");
            let Some(kind) = Kind::of_plural(&entry.key) else {
                continue;
            };
            for named in entry.value.entries() {
                let fields = named.value.entries();
                // `size: ${var.size}` may become a number, so either form is possible.
                let interpolated = |field: &Entry| {
                    let text = field.value.as_str();
                    text.is_some_and(|text| text.contains("${"))
                };
                let is_group = kind != Kind::Group || reads_as_group(&named.value);
                if !is_group {
                    let groups = fields.iter();
                    self.groups
                        .extend(groups.map(|group| (named.key.clone(), group.key.clone())));
                }
                if is_group || fields.iter().any(interpolated) {
                    self.add(kind, &named.key);
                }
            }
            if !matches!(entry.value.value, NodeValue::Object(_)) {
                self.open.insert(kind);
            }
        }
    }

    /// Adds the names of an HCL file.
    pub(in crate::config) fn body(&mut self, body: &Body) {
        for item in &body.items {
            match item {
                Item::Attribute(attribute) => {
                    let name = &*attribute.name.name;
                    self.groups_are_said |= matches!(name, "groups" | "groups_form");
                    self.has_misnamed |= matches!(name, "locals" | "variables");
                    if let Some(kind) = Kind::of_plural(name) {
                        self.expression(kind, &attribute.value);
                    }
                }
                Item::Block(block) => self.block(block),
            }
        }
    }

    fn block(&mut self, block: &Block) {
        let kind = &*block.kind.name;
        self.groups_are_said |= kind == "groups";
        self.has_misnamed |=
            !BLOCKS.contains(&kind) || kind == "variable" && block.labels.len() != 1;
        if let Some(kind) = Kind::of_plural(kind) {
            if !block.labels.is_empty() {
                self.open.insert(kind);
                return;
            }
            for item in &block.body.items {
                match item {
                    Item::Attribute(attribute) if kind == Kind::Group => {
                        self.group_or_tenant(&attribute.name.name, &attribute.value);
                    }
                    Item::Attribute(attribute) => self.add(kind, &attribute.name.name),
                    // This is a tenant with groups, or a group: either name may be meant.
                    Item::Block(_) if kind == Kind::Group => {
                        self.open.insert(kind);
                    }
                    Item::Block(named) => self.add(kind, &named.kind.name),
                }
            }
            return;
        }
        if block.body.attribute("for_each").is_some() {
            let kind = Kind::of_singular(kind);
            // Without a valid label, its name is unknown.
            self.open
                .extend(kind.filter(|kind| !matches!(kind, Kind::Template | Kind::Group)));
            return;
        }
        match (Kind::of_singular(kind), &block.labels[..]) {
            (Some(Kind::Group), [tenant, group]) => {
                self.groups
                    .insert((tenant.name.clone(), group.name.clone()));
            }
            (Some(kind), [name]) => self.add(kind, &name.name),
            (Some(kind), _) => {
                self.open.insert(kind);
            }
            (None, _) => {}
        }
    }

    fn expression(&mut self, kind: Kind, expression: &Expression) {
        let ExpressionKind::Object(items) = &expression.kind else {
            self.open.insert(kind);
            return;
        };
        for item in items {
            let name = match &item.key {
                ObjectKey::Name(name) => &name.name,
                ObjectKey::Expression(Expression {
                    kind: ExpressionKind::String(name),
                    ..
                }) => name,
                ObjectKey::Expression(_) => {
                    self.open.insert(kind);
                    continue;
                }
            };
            if kind == Kind::Group {
                self.group_or_tenant(name, &item.value);
            } else {
                self.add(kind, name);
            }
        }
    }

    fn group_or_tenant(&mut self, name: &Arc<str>, value: &Expression) {
        let ExpressionKind::Object(items) = &value.kind else {
            self.open.insert(Kind::Group);
            return;
        };
        self.add(Kind::Group, name);
        for item in items {
            if let ObjectKey::Name(inner) = &item.key {
                self.groups.insert((name.clone(), inner.name.clone()));
            }
        }
    }

    fn add(&mut self, kind: Kind, name: &Arc<str>) {
        if kind == Kind::Group {
            static DEFAULT: LazyLock<Arc<str>> = LazyLock::new(|| "default".into());
            self.groups.insert((Arc::clone(&DEFAULT), name.clone()));
        } else {
            self.names.entry(kind).or_default().insert(name.clone());
        }
    }

    /// Sets `groups_form` to nested if only blocks define groups.
    pub(in crate::config) fn settle_groups(&self, documents: &mut [Document]) {
        if self.groups_are_said {
            return;
        }
        let mut plain = documents.iter_mut().filter(|document| !document.overrides);
        let Some((root, span)) = plain.find_map(|document| {
            let entries = document.root.entries().iter();
            let span = entries
                .filter(|entry| &*entry.key == "groups")
                .map(|entry| entry.key_span)
                .next()?;
            Some((&mut document.root, span))
        }) else {
            return;
        };
        if let NodeValue::Object(entries) = &mut root.value {
            entries.push(Entry {
                key: "groups_form".into(),
                key_span: span,
                value: Node::new(span, NodeValue::String("nested".into())),
            });
        }
    }

    /// Whether this name is defined.
    pub(super) fn has(&self, kind: Kind, name: &str) -> bool {
        self.open.contains(&kind)
            || self
                .names
                .get(&kind)
                .is_some_and(|names| names.contains(name))
    }

    /// Whether this group is defined.
    pub(super) fn has_group(&self, tenant: &str, group: &str) -> bool {
        self.groups.contains(&(tenant.into(), group.into()))
    }

    /// Whether an unknown name may be defined in a misnamed block.
    pub(super) fn has_misnamed(&self) -> bool {
        self.has_misnamed
    }

    /// Whether names of this kind are only known after evaluation.
    pub(super) fn is_open(&self, kind: Kind) -> bool {
        self.open.contains(&kind)
    }

    /// All names of a kind; groups as references write them.
    pub(super) fn names(&self, kind: Kind) -> Vec<String> {
        if kind == Kind::Group {
            let shown = |(tenant, group): &(Arc<str>, Arc<str>)| match &**tenant {
                "default" => group.to_string(),
                _ => format!("{tenant}.{group}"),
            };
            let mut groups: Vec<_> = self.groups.iter().collect();
            groups.sort();
            return groups.into_iter().map(shown).collect();
        }
        let names = self.names.get(&kind).into_iter().flatten();
        names.map(ToString::to_string).collect()
    }
}

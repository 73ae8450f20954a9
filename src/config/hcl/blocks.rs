//! Blocks to objects: `template "web" { … }` to `{"templates": {"web": { … }}}`.
//!
//! In: items of a file. Out: an object, as another language would give it. May not: check what is in
//! it beyond the names of blocks; `decode` does.

use std::sync::Arc;

use nstance_hcl::{Attribute, Block, Body, Expression, ExpressionKind, Item};

use super::instances::Instance;
use super::known::Kind;
use super::scope::At;
use crate::address::is_id;
use crate::config::assemble::twice;
use crate::config::node::{Entry, Keys, Node, NodeValue};
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, nearest};

/// The blocks of a file itself.
const BLOCKS: &[&str] = &[
    "cluster",
    "shard",
    "image",
    "template",
    "group",
    "load_balancer",
    "certificate",
    "defaults",
    "vars",
    "variable",
    "locals",
    "templates_lib",
    "destroy_budget",
    "images",
    "templates",
    "groups",
    "load_balancers",
    "certificates",
];

/// Terraform's own.
const TERRAFORM: &[&str] = &[
    "resource",
    "data",
    "module",
    "provider",
    "terraform",
    "output",
    "moved",
    "import",
    "removed",
    "check",
    "ephemeral",
];

/// What a body is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// A file.
    Top,
    /// `images`, `templates`, …: each block in it is one, by its name.
    Names(Kind),
    /// An `image`.
    Image,
    /// A `template` or `group`, with `for_each` or without.
    Instances(bool),
    /// `cluster`, `shard`, …: each block in it stands once.
    Section,
    /// `userdata` of `defaults`, a template or a group.
    Userdata,
    /// Anything: a block that repeats makes a list.
    Free,
}

/// What a block becomes.
enum Becomes {
    /// An object that stands once.
    Once(Of),
    /// An object by the block's labels, of which there are so many, in the map of this key.
    Named(&'static str, std::ops::RangeInclusive<usize>, Of),
    /// An item of the list of this key.
    Item(&'static str),
    /// An object; a list where the block repeats; with labels maps.
    Any,
}

impl Of {
    fn kind(kind: Kind, repeats: bool) -> Self {
        match kind {
            Kind::Image => Self::Image,
            Kind::Template | Kind::Group => Self::Instances(repeats),
            Kind::LoadBalancer => Self::Section,
            Kind::Certificate => Self::Free,
        }
    }

    fn becomes(self, block: &Block) -> Becomes {
        let name = &*block.kind.name;
        match self {
            Self::Top => {
                if let Some(kind) = Kind::of_singular(name) {
                    let repeats = block.body.attribute("for_each").is_some();
                    let labels = 1..=1 + usize::from(kind == Kind::Group);
                    return Becomes::Named(kind.plural(), labels, Self::kind(kind, repeats));
                }
                match name {
                    "images" => Becomes::Once(Self::Names(Kind::Image)),
                    "templates" => Becomes::Once(Self::Names(Kind::Template)),
                    "load_balancers" => Becomes::Once(Self::Names(Kind::LoadBalancer)),
                    "certificates" | "groups" | "vars" => Becomes::Once(Self::Free),
                    "templates_lib" => Becomes::Any,
                    _ => Becomes::Once(Self::Section),
                }
            }
            Self::Names(kind) => Becomes::Once(Self::kind(kind, false)),
            Self::Image if name == "filter" => Becomes::Item("filters"),
            Self::Instances(_) if name == "file" => Becomes::Named("files", 1..=1, Self::Free),
            Self::Instances(_) if name == "override" => {
                Becomes::Named("overrides", 1..=1, Self::Section)
            }
            Self::Instances(_) | Self::Section if name == "userdata" => {
                Becomes::Once(Self::Userdata)
            }
            Self::Userdata if name == "part" => Becomes::Item("parts"),
            Self::Image | Self::Instances(_) | Self::Section | Self::Userdata => {
                Becomes::Once(Self::Free)
            }
            Self::Free => Becomes::Any,
        }
    }

    /// Whether an attribute is for us rather than for the object.
    fn takes(self, attribute: &str) -> bool {
        match self {
            Self::Top => attribute == "include",
            Self::Instances(true) => matches!(attribute, "for_each" | "name"),
            _ => false,
        }
    }
}

/// An object in the making.
#[derive(Default)]
pub(super) struct Object {
    fields: Vec<Field>,
    keys: Keys,
}

struct Field {
    key: Arc<str>,
    key_span: Span,
    value: Making,
}

enum Making {
    /// What an attribute gave, or a block that stands once.
    Done(Node),
    /// Blocks of one name: an object, or a list.
    Blocks(Vec<Node>),
    /// Blocks that are always a list.
    Items(Vec<Node>),
    /// By labels; where the first of them stands.
    Names(Span, Box<Object>),
}

impl Object {
    pub(super) fn node(self, span: Span) -> Node {
        let entries = self.fields.into_iter().map(|field| {
            let value = match field.value {
                Making::Done(node) => node,
                Making::Names(span, names) => names.node(span),
                Making::Blocks(mut nodes) if nodes.len() == 1 => nodes.remove(0),
                Making::Blocks(nodes) | Making::Items(nodes) => Node {
                    span: nodes[0].span,
                    value: NodeValue::Array(nodes),
                },
            };
            Entry {
                key: field.key,
                key_span: field.key_span,
                value,
            }
        });
        let value = NodeValue::Object(entries.collect());
        Node { span, value }
    }

    fn place(&mut self, key: &str) -> Option<usize> {
        self.keys.place(&self.fields, |field| &field.key, key)
    }

    fn field(&mut self, key: &str) -> Option<&mut Field> {
        let place = self.place(key)?;
        Some(&mut self.fields[place])
    }

    fn push(&mut self, key: Arc<str>, key_span: Span, value: Making) {
        self.fields.push(Field {
            key,
            key_span,
            value,
        });
    }

    /// Puts a value at a key that must be free; of two maps of names the entries must.
    fn put(&mut self, path: &str, key: Arc<str>, key_span: Span, node: Node, at: &At<'_>) {
        match self.field(&key) {
            None => self.push(key, key_span, Making::Done(node)),
            Some(Field {
                value: Making::Names(_, names),
                ..
            }) if matches!(node.value, NodeValue::Object(_) | NodeValue::Unknown) => {
                let path = format!("{path}{key}.");
                match node.value {
                    NodeValue::Object(entries) => {
                        for entry in entries {
                            names.put(&path, entry.key, entry.key_span, entry.value, at);
                        }
                    }
                    _ => names.keep_place("", node.span),
                }
            }
            Some(first) => {
                at.twice(&format!("{path}{key}"), first.key_span, key_span);
                if let Making::Done(first) = &mut first.value {
                    first.may_have_more(node.span);
                }
            }
        }
    }

    /// The map of names at a key.
    fn names(
        &mut self,
        path: &str,
        key: &Arc<str>,
        key_span: Span,
        at: &At<'_>,
    ) -> Option<&mut Self> {
        let place = self.place(key).unwrap_or_else(|| {
            let names = Making::Names(key_span, Box::default());
            self.push(Arc::clone(key), key_span, names);
            self.fields.len() - 1
        });
        let field = &mut self.fields[place];
        if let Making::Done(node) = &mut field.value
            && node.value == NodeValue::Unknown
        {
            node.value = NodeValue::Object(vec![Entry::unknown(node.span)]);
        }
        if let Making::Done(node) = &mut field.value
            && let NodeValue::Object(entries) = &mut node.value
        {
            let fields = std::mem::take(entries).into_iter().map(|entry| Field {
                key: entry.key,
                key_span: entry.key_span,
                value: Making::Done(entry.value),
            });
            let names = Self {
                fields: fields.collect(),
                keys: Keys::default(),
            };
            field.value = Making::Names(node.span, Box::new(names));
        }
        match &mut field.value {
            Making::Names(_, names) => Some(names),
            _ => {
                at.twice(&format!("{path}{key}"), field.key_span, key_span);
                None
            }
        }
    }

    /// Puts what isn't known at a key, if that is free.
    fn keep_place(&mut self, key: &str, span: Span) {
        if self.place(key).is_none() {
            self.push(key.into(), span, Making::Done(Node::unknown(span)));
        }
    }

    /// Adds a block to those of its name.
    fn add(
        &mut self,
        path: &str,
        key: Arc<str>,
        key_span: Span,
        node: Node,
        list: bool,
        at: &At<'_>,
    ) {
        match self.field(&key) {
            None if list => self.push(key, key_span, Making::Items(vec![node])),
            None => self.push(key, key_span, Making::Blocks(vec![node])),
            Some(Field {
                value: Making::Blocks(nodes) | Making::Items(nodes),
                ..
            }) => nodes.push(node),
            Some(first) => at.twice(&format!("{path}{key}"), first.key_span, key_span),
        }
    }

    /// Whether another object can be added: what both have is maps of names that can.
    pub(super) fn takes(&mut self, other: &Self) -> bool {
        other.fields.iter().all(|more| match self.field(&more.key) {
            None => true,
            Some(Field {
                value: Making::Names(_, names),
                ..
            }) => matches!(&more.value, Making::Names(_, more) if names.takes(more)),
            Some(_) => false,
        })
    }

    /// Adds one that it takes.
    pub(super) fn extend(&mut self, other: Self) {
        for more in other.fields {
            match (self.place(&more.key), more.value) {
                (Some(place), Making::Names(_, more)) => {
                    if let Making::Names(_, names) = &mut self.fields[place].value {
                        names.extend(*more);
                    }
                }
                (_, value) => self.push(more.key, more.key_span, value),
            }
        }
    }
}

impl At<'_> {
    fn find(&self, finding: Diagnostic) {
        self.module.made.borrow_mut().findings.push(finding);
    }

    fn twice(&self, path: &str, first: Span, second: Span) {
        self.find(twice(path, first, second));
    }

    /// The object of a body; `path` is what it is called, with a dot behind it.
    fn object(&self, of: Of, path: &str, body: &Body) -> Object {
        let mut object = Object::default();
        self.items(of, path, &body.items, &mut object);
        object
    }

    /// Adds what stands in a body, or in a part of it.
    pub(super) fn items(&self, of: Of, path: &str, items: &[Item], object: &mut Object) {
        for item in items {
            match item {
                Item::Attribute(attribute) => self.attribute(of, path, attribute, object),
                Item::Block(block) => self.block(of, path, block, object),
            }
        }
    }

    fn attribute(&self, of: Of, path: &str, attribute: &Attribute, object: &mut Object) {
        let name = &attribute.name;
        if of.takes(&name.name) {
            return;
        }
        let key_span = self.module.span(name.span);
        if of == Of::Top && &*name.name == "locals" {
            self.find(
                Diagnostic::error("`locals` is a block")
                    .at(key_span, "this is an argument")
                    .hint("write `locals { … }`, without `=`"),
            );
            return;
        }
        if of == Of::Top && &*name.name == "variables" {
            self.find(
                Diagnostic::error("in HCL a variable is a block")
                    .at(key_span, "this is the form of other languages")
                    .hint("write `variable \"NAME\" { … }` for each"),
            );
            return;
        }
        let mut node = self.node(&attribute.value);
        if matches!(of, Of::Instances(_)) && &*name.name == "depends_on" {
            node = all_of_several(node, &attribute.value);
        }
        object.put(path, Arc::clone(&name.name), key_span, node, self);
    }

    /// Keeps a place for a block that can't be read, where one called `name` has its own: what it
    /// would have defined isn't missed.
    fn keep_place(&self, name: &str, block: &Block, object: &mut Object) {
        let span = self.module.span(block.span);
        let Some(kind) = Kind::of_singular(name) else {
            return object.keep_place(name, span);
        };
        let names = object.names("", &kind.plural().into(), span, self);
        let names = match kind {
            Kind::Group => names.and_then(|names| names.names("", &"default".into(), span, self)),
            _ => names,
        };
        if let Some(names) = names {
            // By no name: its own isn't known.
            names.keep_place("", span);
        }
    }

    fn block(&self, of: Of, path: &str, block: &Block, object: &mut Object) {
        let kind = &block.kind;
        let kind_span = self.module.span(kind.span);
        if of == Of::Top {
            match &*kind.name {
                "variable" | "locals" => return,
                name if !BLOCKS.contains(&name) => {
                    let near = nearest(name, BLOCKS.iter().copied());
                    self.find(unknown_block(name, near, kind_span));
                    if let Some(near) = near {
                        self.keep_place(near, block, object);
                    }
                    return;
                }
                _ => {}
            }
        } else if &*kind.name == "dynamic" {
            self.find(
                Diagnostic::error("there are no `dynamic` blocks")
                    .at(kind_span, "not known here")
                    .hint("write a list or an object with `for`: `filters = [for f in … : { … }]`"),
            );
            if let [label] = &block.labels[..] {
                object.keep_place(&label.name, self.module.span(block.span));
            }
            return;
        }
        let becomes = of.becomes(block);
        let repeats = of == Of::Top && block.body.attribute("for_each").is_some();
        if repeats && !matches!(&*kind.name, "group" | "template") {
            let place = block.body.attribute("for_each");
            let place = place.map_or(kind.span, |found| found.name.span);
            let finding = Diagnostic::error(format!("`{}` blocks have no `for_each`", kind.name))
                .at(
                    self.module.span(place),
                    "works in `group` and `template` blocks",
                );
            self.find(match Kind::of_singular(&kind.name) {
                Some(kind) => finding.hint(format!(
                    "write the whole map: `{} = {{ for key in … : key => {{ … }} }}`",
                    kind.plural()
                )),
                None => finding,
            });
            self.keep_place(&kind.name, block, object);
            return;
        }
        if let (Becomes::Once(_) | Becomes::Item(_), Some(label)) = (&becomes, block.labels.first())
        {
            self.find(
                Diagnostic::error(format!("a `{}` block has no label", kind.name))
                    .at(self.module.span(label.span), "take this out"),
            );
        }
        match becomes {
            Becomes::Named(key, labels, inner) => {
                self.named(path, key, (block, labels), inner, repeats, object);
            }
            Becomes::Once(inner) => {
                let path_here = format!("{path}{}.", kind.name);
                let node = self
                    .object(inner, &path_here, &block.body)
                    .node(self.module.span(block.span));
                object.put(path, Arc::clone(&kind.name), kind_span, node, self);
            }
            Becomes::Item(key) => {
                let node = self
                    .object(Of::Section, "", &block.body)
                    .node(self.module.span(block.span));
                object.add(path, key.into(), kind_span, node, true, self);
            }
            Becomes::Any if block.labels.is_empty() => {
                let node = self
                    .object(Of::Free, "", &block.body)
                    .node(self.module.span(block.span));
                object.add(path, Arc::clone(&kind.name), kind_span, node, false, self);
            }
            Becomes::Any => {
                let key = Arc::clone(&kind.name);
                self.labelled(path, &key, block, None, object, Of::Free);
            }
        }
    }

    fn named(
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
            self.keep_place(kind, block, object);
            return;
        }
        let key: Arc<str> = key.into();
        if !repeats {
            self.labelled(path, &key, block, None, object, inner);
            return;
        }
        let Some(instances) = self.module.instances_of(block) else {
            self.keep_place(kind, block, object);
            return;
        };
        let span = self.module.span(block.span);
        self.module.made.borrow_mut().repeated.push(span);
        for instance in instances.iter() {
            let at = At {
                each: Some(instance),
                ..*self
            };
            at.labelled(path, &key, block, Some(instance), object, inner);
        }
    }

    /// Puts a block below its labels, the last of them replaced by the name of `instance`; a group
    /// without a tenant below `default`.
    fn labelled(
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
            return;
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
        let node = self
            .object(inner, &body_path, &block.body)
            .node(self.module.span(block.span));
        let key_span = self.module.span(match instance {
            // What is wrong with the name isn't the label's.
            Some(instance) if &**key == "groups" && is_id(&last.name) && !is_id(name) => {
                instance.named_by
            }
            _ => last.span,
        });
        names.put(&path, Arc::clone(name), key_span, node, self);
    }
}

/// A list in which a block with `for_each` stands for all that it makes, as a block alone stands
/// for itself. Objects that are written out stay: they are none.
fn all_of_several(list: Node, expression: &Expression) -> Node {
    let is_object = |expression: &Expression| matches!(expression.kind, ExpressionKind::Object(_));
    let elements = match &expression.kind {
        ExpressionKind::Tuple(elements) => &elements[..],
        _ => &[],
    };
    let items = match list.value {
        NodeValue::Array(items) => items,
        NodeValue::Object(_) if !is_object(expression) => vec![list.clone()],
        NodeValue::String(_) if matches!(expression.kind, ExpressionKind::Traversal(_)) => {
            vec![list.clone()]
        }
        _ => return list,
    };
    let each = items.into_iter().enumerate().flat_map(|(index, item)| {
        let is_written = elements.get(index).is_some_and(is_object);
        match item.value {
            NodeValue::Object(entries) if !is_written => {
                entries.into_iter().map(|entry| entry.value).collect()
            }
            _ => vec![item],
        }
    });
    Node {
        span: list.span,
        value: NodeValue::Array(each.collect()),
    }
}

/// The finding that there is no such block; `near` is the one probably meant.
fn unknown_block(name: &str, near: Option<&str>, place: Span) -> Diagnostic {
    let finding =
        Diagnostic::error(format!("there is no block `{name}`")).at(place, "unknown block");
    if TERRAFORM.contains(&name) {
        return finding.hint(
            "this block is Terraform's; here a fleet is `image`, `template` and `group` blocks",
        );
    }
    match near {
        Some(near) => finding.hint(format!("did you mean `{near}`?")),
        None => finding.hint(format!(
            "blocks are {}",
            BLOCKS[..13]
                .iter()
                .map(|block| format!("`{block}`"))
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}

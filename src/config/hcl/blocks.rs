//! Converts blocks to objects: `template "web" { … }` to `{"templates": {"web": { … }}}`.
//!
//! In: items of a file. Out: an object, as in other languages. Must not: validate more than the
//! names of blocks; `decode` does.

use std::sync::Arc;

use nstance_hcl::{Attribute, Block, Body, Expression, ExpressionKind, Item};

use super::File;
use super::known_names::Kind;
use super::object_builder::Object;
use super::scope::{At, Module};
use crate::config::assemble::twice;
use crate::config::node::{Node, NodeValue};
use crate::config::schema::tables;
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Reported, nearest};

/// The blocks of a file itself.
pub(in crate::config) const BLOCKS: &[&str] = &[
    "cluster",
    "shard",
    "source",
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
    "nat",
    "tunnels",
    "server",
    "images",
    "templates",
    "groups",
    "load_balancers",
    "certificates",
];

/// Blocks with a label, and the syntax of one.
const LABELLED: &[(&str, &str)] = &[
    ("images", "image \"NAME\" { … }"),
    ("templates", "template \"NAME\" { … }"),
    ("groups", "group \"NAME\" { … }"),
    ("load_balancers", "load_balancer \"NAME\" { … }"),
    ("certificates", "certificate \"NAME\" { … }"),
];

/// Blocks of Terraform that nstance doesn't have.
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

/// The context of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// A file.
    Top,
    /// `images`, `templates`, …: each block in it is one entry, by its name.
    Names(Kind),
    /// An `image`.
    Image,
    /// A `template` or `group`; whether it has `for_each`.
    Instances(bool),
    /// `cluster`, `shard`, …: each block in it occurs once.
    Section,
    /// `userdata` of `defaults`, a template or a group.
    Userdata,
    /// Anything else: repeated blocks become a list.
    Free,
}

/// What a block is converted to.
enum Becomes {
    /// An object; the block must not repeat.
    Once(Of),
    /// An object at the block's labels, in the map of this key; with the number of labels allowed.
    Named(&'static str, std::ops::RangeInclusive<usize>, Of),
    /// An item of the list at this key.
    Item(&'static str),
    /// An object, or a list if the block repeats; labels become nested maps.
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
            Self::Instances(_) if matches!(name, "provides" | "consumes") => Becomes::Any,
            // Its blocks, `health` and `drain`, can't repeat either.
            Self::Instances(_) | Self::Section if name == "update" => Becomes::Once(Self::Section),
            Self::Userdata if name == "part" => Becomes::Item("parts"),
            Self::Image | Self::Instances(_) | Self::Section | Self::Userdata => {
                Becomes::Once(Self::Free)
            }
            Self::Free => Becomes::Any,
        }
    }

    /// Whether an attribute is evaluated by this module and not part of the object.
    fn takes(self, attribute: &str) -> bool {
        match self {
            Self::Top => attribute == "include",
            Self::Instances(true) => matches!(attribute, "for_each" | "name"),
            _ => false,
        }
    }
}

/// The document of a file.
///
/// Fails if any part of it fails; errors are reported.
pub(in crate::config) fn document(module: &Module<'_>, file: &File) -> Result<Node, Reported> {
    let at = At {
        module,
        folder: file.folder.as_ref(),
        each: None,
    };
    let object = at.object(Of::Top, "", &file.body);
    object.node(module.span(file.body.span))
}

impl At<'_> {
    pub(super) fn find(&self, finding: Diagnostic) {
        self.module.find(finding);
    }

    pub(super) fn twice(&self, path: &str, first: Span, second: Span) {
        self.find(twice(path, first, second));
    }

    /// The object of a body; `path` is its path in messages, with a trailing dot.
    pub(super) fn object(&self, of: Of, path: &str, body: &Body) -> Object {
        let mut object = Object::default();
        for item in &body.items {
            match item {
                Item::Attribute(attribute) => self.attribute(of, path, attribute, &mut object),
                Item::Block(block) => self.block(of, path, block, &mut object),
            }
        }
        object
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
        let Ok(mut node) = self.node(&attribute.value) else {
            return object.fail();
        };
        if matches!(of, Of::Instances(_)) && &*name.name == "depends_on" {
            node = all_of_several(node, &attribute.value);
        }
        object.put(path, Arc::clone(&name.name), key_span, node, self);
    }

    fn block(&self, of: Of, path: &str, block: &Block, object: &mut Object) {
        let kind = &block.kind;
        let kind_span = self.module.span(kind.span);
        if of == Of::Top {
            match &*kind.name {
                "variable" | "locals" => return,
                "dynamic" => {
                    self.find(
                        Diagnostic::error("there are no `dynamic` blocks")
                            .at(kind_span, "not known here")
                            .hint("`group` and `template` blocks may have a `for_each`"),
                    );
                    return object.fail();
                }
                name if !block.labels.is_empty() && LABELLED.iter().any(|one| one.0 == name) => {
                    self.find(no_label_here(block, self.module.span(block.labels[0].span)));
                    return object.fail();
                }
                name if !BLOCKS.contains(&name) => {
                    let near = nearest(name, BLOCKS.iter().copied());
                    self.find(unknown_block(name, near, kind_span));
                    return object.fail();
                }
                _ => {}
            }
        } else if &*kind.name == "dynamic" {
            self.find(
                Diagnostic::error("there are no `dynamic` blocks")
                    .at(kind_span, "not known here")
                    .hint("write a list or an object with `for`: `filters = [for f in … : { … }]`"),
            );
            return object.fail();
        }
        if matches!(of, Of::Instances(_))
            && !block.labels.is_empty()
            && !matches!(&*kind.name, "file" | "override")
            && tables::GROUP.key(&kind.name).is_none()
            && let Some(near) = nearest(&kind.name, ["file", "override"])
        {
            self.find(
                Diagnostic::error(format!("there is no block `{}` here", kind.name))
                    .at(kind_span, "unknown block")
                    .hint(format!("did you mean `{near}`?")),
            );
            return object.fail();
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
            return object.fail();
        }
        if let (Becomes::Once(_) | Becomes::Item(_), Some(label)) = (&becomes, block.labels.first())
        {
            self.find(
                Diagnostic::error(format!("`{}` blocks have no label", kind.name))
                    .at(self.module.span(label.span), "take this out"),
            );
        }
        match becomes {
            Becomes::Named(key, labels, inner) => {
                self.named(path, key, (block, labels), inner, repeats, object);
            }
            Becomes::Once(inner) => {
                let path_here = format!("{path}{}.", kind.name);
                match self
                    .object(inner, &path_here, &block.body)
                    .node(self.module.span(block.span))
                {
                    Ok(node) => object.put(path, Arc::clone(&kind.name), kind_span, node, self),
                    Err(Reported) => object.fail(),
                }
            }
            Becomes::Item(key) => {
                match self
                    .object(Of::Section, "", &block.body)
                    .node(self.module.span(block.span))
                {
                    Ok(node) => object.add(path, key.into(), kind_span, node, true, self),
                    Err(Reported) => object.fail(),
                }
            }
            Becomes::Any if block.labels.is_empty() => {
                match self
                    .object(Of::Free, "", &block.body)
                    .node(self.module.span(block.span))
                {
                    Ok(node) => {
                        object.add(path, Arc::clone(&kind.name), kind_span, node, false, self);
                    }
                    Err(Reported) => object.fail(),
                }
            }
            Becomes::Any => {
                let key = Arc::clone(&kind.name);
                self.labelled(path, &key, block, None, object, Of::Free);
            }
        }
    }
}

/// Expands references in a list: a block with `for_each` becomes all of its instances, also if it
/// is referred to without a list. Leaves literal objects alone.
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
        value: NodeValue::Array(each.collect()),
        ..list
    }
}

/// The error that a block for several entries has a label.
fn no_label_here(block: &Block, place: Span) -> Diagnostic {
    let (name, label) = (&block.kind.name, &block.labels[0].name);
    let written = LABELLED.iter().find(|one| one.0 == &**name);
    let written = written.map_or("", |one| one.1).replace("NAME", label);
    Diagnostic::error(format!("`{name}` blocks have no label"))
        .at(place, "names stand in it")
        .hint(format!("write `{written}`"))
}

/// The error that a block is unknown; `near` is the likely correction.
fn unknown_block(name: &str, near: Option<&str>, place: Span) -> Diagnostic {
    let finding =
        Diagnostic::error(format!("there is no block `{name}`")).at(place, "unknown block");
    if TERRAFORM.contains(&name) {
        return finding.hint(
            "this block is Terraform's; here a fleet is `image`, `template` and `group` blocks",
        );
    }
    finding.suggest_or_list(near, "blocks are", BLOCKS[..14].iter().copied())
}

//! Places a foreign group on the configured provider.
//!
//! In: a specification, and the map that `source` has. Out: a native group for the provider, with
//! what it needs beside it. Must not: check a specification; `dialect::yandex` does.
//!
//! Yandex's own args stay as they are on `yandex` and on the embedded cloud. On other clouds, the
//! map names the instance type, image and zones, and what has no equal is reported.

use std::sync::Arc;

use crate::config::decode::{YandexMap, YandexSource};
use crate::config::model::Named;
use crate::config::node::{Entry, Node, NodeValue, section};
use crate::diagnostic::{Diagnostic, Diagnostics, Reported};
use crate::dialect::yandex::Specification;

/// A group on the configured provider.
pub struct Placed {
    /// The group.
    pub group: Node,
    /// Its template, which has the same name.
    pub template: Option<Node>,
    /// A load balancer, by name.
    pub load_balancer: Option<(Arc<str>, Node)>,
}

/// What the ids of instances start with; a specification has no word for it.
const KIND: &str = "ins";

/// The architecture of all platforms of Yandex Cloud.
const ARCH: &str = "amd64";

/// How a cloud calls what specifications say.
struct Words {
    image: &'static str,
    /// The arg with the private address of an instance.
    address: Option<&'static str>,
    /// The label that names an instance.
    name: &'static str,
}

fn words(provider: &str) -> Option<Words> {
    match provider {
        "aws" => Some(Words {
            image: "ImageId",
            address: Some("PrivateIpAddress"),
            name: "Name",
        }),
        "google" | "gcp" => Some(Words {
            image: "SourceImage",
            address: None,
            name: "name",
        }),
        _ => None,
    }
}

/// Replaces the zones of a specification's document by those of the map, in the keys of its variables,
/// too, since texts look them up by zone.
pub fn rename_zones(
    document: &mut Node,
    provider: &str,
    source: &YandexSource,
    findings: &mut Diagnostics,
) {
    let lookup = Lookup {
        source,
        is_required: words(provider).is_some(),
    };
    for variable in items(member(document, "variables")) {
        if let Some(key) = member(variable, "key")
            && let NodeValue::String(text) = &mut key.value
        {
            let mut zones = source.map.zone.iter();
            if let Some((zone, mapped)) = zones.find(|(zone, _)| text.contains(&***zone)) {
                *text = text.replace(&**zone, &mapped.value).into();
            }
        }
    }
    let policy = member(document, "allocation_policy");
    let zones = items(policy.and_then(|policy| member(policy, "zones")));
    for zone in zones.iter_mut().filter_map(|zone| member(zone, "zone_id")) {
        lookup.replace(zone, "zone", &source.map.zone, findings);
    }
}

/// The items of a list.
fn items(list: Option<&mut Node>) -> &mut [Node] {
    match list.map(|list| &mut list.value) {
        Some(NodeValue::Array(items)) => items,
        _ => &mut [],
    }
}

/// The value at a key of an object.
fn member<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    match &mut node.value {
        NodeValue::Object(entries) => {
            let entry = entries.iter_mut().find(|entry| &*entry.key == key)?;
            Some(&mut entry.value)
        }
        _ => None,
    }
}

/// Places the group of a specification on a provider.
///
/// Fails if the map lacks a name.
pub fn place(
    specification: Specification,
    name: &Arc<str>,
    provider: &str,
    source: &YandexSource,
    root: &Node,
    findings: &mut Diagnostics,
) -> Result<Placed, Reported> {
    let Specification {
        mut group,
        load_balancer,
    } = specification;
    let words = words(provider);
    let before = findings.errors();
    let lookup = Lookup {
        source,
        is_required: words.is_some(),
    };
    let NodeValue::Object(entries) = &mut group.value else {
        return Err(Reported);
    };
    for (key, value) in [("kind", KIND), ("arch", ARCH)] {
        let value = NodeValue::String(value.into());
        entries.push(Entry::placed(key, Node::new(group.span, value)));
    }
    for entry in &mut *entries {
        if &*entry.key == "instance_type" {
            lookup.replace(&mut entry.value, "platform", &source.map.platform, findings);
        }
    }
    if let Some(pool) = &source.subnet_pool {
        let text = NodeValue::String(Arc::clone(&pool.value));
        entries.push(Entry::placed("subnet_pool", Node::new(pool.span, text)));
    }
    let balancer = load_balancer.filter(|name| {
        let known = root.get("load_balancers").and_then(|all| all.get(name));
        words.is_none() || known.is_some()
    });
    if let Some(name) = &balancer {
        let text = Node::new(group.span, NodeValue::String(Arc::clone(name)));
        let list = NodeValue::Array(vec![text]);
        entries.push(Entry::placed("load_balancers", Node::new(group.span, list)));
    }
    let load_balancer = balancer.map(|name| {
        let provider = NodeValue::String(provider.into());
        let provider = Entry::placed("provider", Node::new(group.span, provider));
        let balancer = Node::new(group.span, NodeValue::Object(vec![provider]));
        (name, balancer)
    });
    let template = match words {
        Some(words) => {
            let cloud = Cloud {
                words,
                provider,
                lookup,
            };
            cloud.translate(name, entries, root, findings)
        }
        None => None,
    };
    if findings.errors() > before {
        return Err(Reported);
    }
    Ok(Placed {
        group,
        template,
        load_balancer,
    })
}

struct Lookup<'s> {
    source: &'s YandexSource,
    is_required: bool,
}

impl Lookup<'_> {
    /// Replaces a name by what the map has for it.
    fn replace(
        &self,
        node: &mut Node,
        what: &str,
        map: &Named<Arc<str>>,
        findings: &mut Diagnostics,
    ) {
        if let Some(text) = self.find(node, what, map, findings) {
            node.value = NodeValue::String(text);
        }
    }

    fn find(
        &self,
        node: &Node,
        what: &str,
        map: &Named<Arc<str>>,
        findings: &mut Diagnostics,
    ) -> Option<Arc<str>> {
        let name = node.as_str()?;
        let found = map.get(name).map(|found| Arc::clone(&found.value));
        if found.is_none() && self.is_required {
            let YandexMap { span, .. } = self.source.map;
            findings.push(
                Diagnostic::error(format!("{what} `{name}` is not mapped"))
                    .at(node.span, "another cloud has another name for it")
                    .related(
                        span.unwrap_or(self.source.yandex.span),
                        "the map of `source`",
                    )
                    .hint(format!("Add it: `map: {{{what}: {{\"{name}\": \"…\"}}}}`")),
            );
        }
        found
    }
}

/// A cloud with other args.
struct Cloud<'s> {
    words: Words,
    provider: &'s str,
    lookup: Lookup<'s>,
}

impl Cloud<'_> {
    /// Replaces args by those of the cloud; returns the template with the image.
    fn translate(
        &self,
        name: &Arc<str>,
        entries: &mut Vec<Entry>,
        root: &Node,
        findings: &mut Diagnostics,
    ) -> Option<Node> {
        let index = entries.iter().position(|entry| &*entry.key == "args")?;
        let args = std::mem::replace(&mut entries[index].value.value, NodeValue::Null);
        let span = entries[index].value.span;
        let args = Node::new(span, args);
        let mut own = Vec::new();
        let mut unused = Vec::new();
        let mut image = None;
        for arg in args.entries() {
            match &*arg.key {
                "name" => {
                    let labels = section(entries, "labels", arg.value.span);
                    labels.push(Entry::placed(self.words.name, arg.value.clone()));
                }
                "boot_disk_spec" => {
                    let disk = arg.value.get("disk_spec");
                    image = disk.and_then(|disk| disk.get("image_id")).cloned();
                }
                "network_interface_specs" => {
                    let address = address(&arg.value);
                    match (address, self.words.address) {
                        (Some(address), Some(arg)) => own.push(Entry::placed(arg, address.clone())),
                        (Some(_), None) => unused.push(arg),
                        (None, _) => {}
                    }
                }
                // The instance type has them.
                "resources_spec" => {}
                "metadata" if arg.value.entries().is_empty() => {}
                _ => unused.push(arg),
            }
        }
        entries[index].value.value = NodeValue::Object(own);
        if let Some(first) = unused.first() {
            let names: Vec<String> = unused.iter().map(|arg| format!("`{}`", arg.key)).collect();
            findings.push(
                Diagnostic::warning(format!(
                    "{} has no equal of {}",
                    self.provider,
                    names.join(", ")
                ))
                .at(first.key_span, "ignored")
                .hint("Write what it stands for in `defaults.args`"),
            );
        }
        let image = self.image(&image?, root, findings)?;
        let args = Node::new(
            span,
            NodeValue::Object(vec![Entry::placed(self.words.image, image)]),
        );
        let template = Node::new(span, NodeValue::Object(vec![Entry::placed("args", args)]));
        let text = NodeValue::String(Arc::clone(name));
        entries.push(Entry::placed("template", Node::new(span, text)));
        Some(template)
    }

    /// The image of the cloud: a template that reads a look-up, or an id.
    fn image(&self, id: &Node, root: &Node, findings: &mut Diagnostics) -> Option<Node> {
        let map = &self.lookup.source.map.image;
        let mapped = self.lookup.find(id, "image", map, findings)?;
        let is_look_up = root.get("images").and_then(|images| images.get(&mapped));
        let text: Arc<str> = if is_look_up.is_some() {
            format!("{{{{ index .Image \"{mapped}\" }}}}").into()
        } else {
            mapped
        };
        Some(Node::new(id.span, NodeValue::String(text)))
    }
}

/// The private IPv4 address of the first network interface.
fn address(interfaces: &Node) -> Option<&Node> {
    let NodeValue::Array(interfaces) = &interfaces.value else {
        return None;
    };
    let first = interfaces.first()?;
    first.get("primary_v4_address_spec")?.get("address")
}

//! Adds the group that a document of another program describes: the one that `source` names, or the
//! configuration itself.
//!
//! In: a configuration's document. Out: the document with the group, without `source`. Must not:
//! decode the group.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Loaded;
use crate::address::{LONGEST_ID, is_id};
use crate::config::decode::{GroupsForm, Source, groups_form, source};
use crate::config::files;
use crate::config::node::{Entry, Node, NodeValue, section};
use crate::config::source::{SourceId, Span};
use crate::config::variables::Dialect;
use crate::diagnostic::{Diagnostic, Reported};
use crate::dialect::mapping;
use crate::dialect::yandex::{self, Specification};

/// The keys of a specification; a document without any of them is another one.
const SPECIFICATION_KEYS: [&str; 4] = [
    "instance_template",
    "scale_policy",
    "deploy_policy",
    "allocation_policy",
];

/// The tenant of the group.
const TENANT: &str = "default";

impl Loaded {
    /// The configuration of a specification that stands alone: its cluster is called after its
    /// folder. `None` if the text isn't one.
    pub(super) fn standalone(&mut self, file: &Path, source: SourceId, text: &str) -> Option<Node> {
        let is_one = |root: &Node| match self.from {
            Some(Dialect::Yandex) => true,
            Some(Dialect::Nstance | Dialect::Bosh) => false,
            None => yandex::is_specification(root),
        };
        let may_be = self.is_named_file
            && source == SourceId(0)
            && (self.from.is_some() || text.contains("instance_template"));
        // What can't be read is reported when the specification is read.
        let root = match may_be.then(|| yandex::read(source, text))? {
            Ok(root) => Some(root).filter(is_one)?,
            Err(_) if self.from == Some(Dialect::Yandex) => {
                Node::new(Span::new(source, 0, 0), NodeValue::Null)
            }
            Err(_) => return None,
        };
        self.is_specification = true;
        let top = Span::new(source, 0, 0);
        let text = |text: &str| Node::new(top, NodeValue::String(text.into()));
        let zone = zone_of(&root).unwrap_or("none");
        let region = zone.rsplit_once('-').map_or(zone, |(region, _)| region);
        let infra = object(
            top,
            [
                ("provider", text("yandex")),
                ("region", text(region)),
                ("zone", text(zone)),
            ],
        );
        let shard = object(top, [("id", text(&id_of(region))), ("infra", infra)]);
        let folder = std::path::absolute(self.directory.as_path()).ok();
        let folder = folder.as_deref().and_then(Path::file_name);
        let folder = folder
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Some(object(
            top,
            [
                ("cluster", object(top, [("id", text(&id_of(&folder)))])),
                ("shard", shard),
                ("source", object(top, [("yandex", text(&name))])),
            ],
        ))
    }

    /// Replaces `source` by the group that it describes.
    ///
    /// Fails if the document that it names is invalid.
    pub(super) fn add_source(
        &mut self,
        mut root: Node,
        working_dir: &Path,
    ) -> Result<Node, Reported> {
        let Some(source) = source(&root, &mut self.findings)? else {
            return Ok(root);
        };
        // Its own name may change, and an address may not.
        let stem = Path::new(&*source.yandex.value).file_stem();
        let stem = stem.unwrap_or_default().to_string_lossy();
        let name: Arc<str> = source.group.clone().unwrap_or_else(|| id_of(&stem).into());
        let provider = root.get("shard").and_then(|shard| shard.get("infra"));
        let provider = provider.and_then(|infra| infra.get("provider")?.as_str());
        let provider: Arc<str> = provider.unwrap_or_default().into();
        let specification = self.specification(&source, &provider, working_dir)?;
        let placed = mapping::place(
            specification,
            &name,
            &provider,
            &source,
            &root,
            &mut self.findings,
        )?;
        let NodeValue::Object(entries) = &mut root.value else {
            return Ok(root);
        };
        entries.retain(|entry| &*entry.key != "source");
        if let Some(template) = placed.template {
            section(entries, "templates", template.span).push(Entry::placed(&name, template));
        }
        if let Some((name, balancer)) = placed.load_balancer {
            let balancers = section(entries, "load_balancers", balancer.span);
            if !balancers.iter().any(|entry| *entry.key == *name) {
                balancers.push(Entry::placed(&name, balancer));
            }
        }
        self.add_group(root, &name, placed.group)
    }

    fn add_group(&mut self, mut root: Node, name: &str, group: Node) -> Result<Node, Reported> {
        let form = groups_form(&root);
        let NodeValue::Object(entries) = &mut root.value else {
            return Ok(root);
        };
        let mut groups = section(entries, "groups", group.span);
        if form != Some(GroupsForm::Flat) || groups.is_empty() {
            groups = section(groups, TENANT, group.span);
        }
        if let Some(first) = groups.iter().find(|entry| *entry.key == *name) {
            let finding = Diagnostic::error(format!("duplicate group `{TENANT}/{name}`"));
            self.findings.push(
                finding
                    .at(first.key_span, "defined here")
                    .related(group.span, "and by `source`")
                    .hint("Give one of them another name"),
            );
            return Err(Reported);
        }
        groups.push(Entry::placed(name, group));
        Ok(root)
    }

    /// The specification in a file beside the one that names it.
    fn specification(
        &mut self,
        source: &Source,
        provider: &str,
        working_dir: &Path,
    ) -> Result<Specification, Reported> {
        let file = &source.yandex;
        let names_it = PathBuf::from(&self.sources.get(file.span.source).name);
        let folder = names_it.parent().unwrap_or(Path::new(""));
        let path = files::tidy(&folder.join(&*file.value));
        self.inputs.file(&working_dir.join(&path));
        let text = match files::read_as("specification", &path, working_dir) {
            Ok(text) => text,
            Err(finding) => {
                self.findings.push(finding.at(file.span, "named here"));
                return Err(Reported);
            }
        };
        let id = if path == names_it {
            file.span.source
        } else {
            self.sources.add(path.display().to_string(), text.clone())
        };
        let mut root = self
            .findings
            .keep(yandex::read(id, &text))
            .ok_or(Reported)?;
        let has = |key: &&str| root.get(key).is_some();
        if !SPECIFICATION_KEYS.iter().any(has) {
            let start = Span::new(id, 0, 1.min(text.len()));
            self.findings.push(
                Diagnostic::error(format!(
                    "not a specification of Yandex Cloud: {}",
                    path.display()
                ))
                .at(start, "`instance_template` is missing")
                .hint("It is the YAML that `yc compute instance-group create --file` reads"),
            );
            return Err(Reported);
        }
        mapping::rename_zones(&mut root, provider, source, &mut self.findings);
        self.unless_errors(())?;
        self.without_equal.extend(yandex::without_equal(&root));
        yandex::translate(&root, &mut self.findings)
    }
}

/// The first zone of a specification.
fn zone_of(root: &Node) -> Option<&str> {
    let zones = root.get("allocation_policy")?.get("zones")?;
    match &zones.value {
        NodeValue::Array(items) => items.first()?.get("zone_id")?.as_str(),
        _ => None,
    }
}

/// A text as an id: lower case, with single hyphens in place of all else.
fn id_of(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let mut id = words.join("-").to_ascii_lowercase();
    id.truncate(LONGEST_ID);
    let id = id.trim_end_matches('-');
    if is_id(id) {
        id.to_owned()
    } else {
        "fleet".to_owned()
    }
}

fn object<const N: usize>(span: Span, entries: [(&str, Node); N]) -> Node {
    let entries = entries
        .into_iter()
        .map(|(key, value)| Entry::placed(key, value));
    Node::new(span, NodeValue::Object(entries.collect()))
}

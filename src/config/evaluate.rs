//! Evaluates variables and expressions.
//!
//! In: the files of a configuration, values of variables. Out: [`Evaluated`]: a document without
//! expressions for each file. Must not: know the schema.

use std::path::Path;
use std::sync::Arc;

use nstance_hcl::Item;

use super::assemble::Document;
use super::hcl::{self, Folders, Known, Module, Places};
use super::model::Config;
use super::node::{Alias, Entry, Node, NodeValue};
use super::source::{SourceMap, Span};
use super::variables::{self, Declarations, Given, Origin, Secrets, Setting, interpolate};
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, all};

/// One parsed file.
pub(super) struct Parsed {
    /// Its content.
    pub(super) content: Content,
    /// Whether it is an override file.
    pub(super) overrides: bool,
    /// Its folder.
    pub(super) folder: Option<Arc<Path>>,
}

/// The content of a file.
pub(super) enum Content {
    /// A JSONC or YAML document, which may contain interpolations.
    Tree(Node),
    /// HCL blocks and expressions.
    Hcl(hcl::File),
}

/// The inputs of an evaluation.
pub(super) struct Evaluation<'a> {
    /// The given values of variables.
    pub(super) given: &'a Given,
    /// The folder that var-files are relative to.
    pub(super) working_dir: &'a Path,
    /// The folders that functions may read.
    pub(super) folders: &'a Folders,
}

/// The result of an evaluation.
pub(super) struct Evaluated {
    /// A document for each file, in order.
    pub(super) documents: Result<Vec<Document>, Reported>,
    /// Given values for top-level `vars`, if no variables are declared.
    pub(super) overrides: Vec<(Entry, Origin)>,
    /// Variables with their values.
    pub(super) variables: Vec<Setting>,
    /// The texts of sensitive values.
    pub(super) secrets: Secrets,
    /// The size of all values that expressions produced, in bytes.
    pub(super) size: usize,
    /// References to values written elsewhere.
    pub(super) aliases: Vec<Alias>,
    /// Blocks that `for_each` expands; an error in one instance usually occurs in all.
    pub(super) repeated: Vec<Span>,
}

/// A file's tree, or `None` for an HCL file; whether it overrides; its folder.
pub(super) type Tree = (Option<Node>, bool, Option<Arc<Path>>);

/// The files of a configuration, grouped by language.
pub(super) struct Prepared {
    /// All files, in order.
    pub(super) trees: Vec<Tree>,
    /// The HCL files.
    pub(super) files: Vec<hcl::File>,
    /// The declared variables.
    pub(super) declarations: Declarations,
    /// The names that references can use.
    pub(super) known: Known,
}

/// Collects declarations and names from files.
pub(super) fn prepare(
    documents: Vec<Parsed>,
    sources: &SourceMap,
    places: &Places,
    findings: &mut Diagnostics,
) -> Prepared {
    let mut declarations = Declarations::default();
    let mut trees = Vec::new();
    let mut files = Vec::new();
    for document in documents {
        match document.content {
            Content::Tree(root) => {
                trees.push((Some(root), document.overrides, document.folder));
            }
            Content::Hcl(file) => {
                trees.push((None, document.overrides, document.folder));
                files.push(file);
            }
        }
    }
    let mut reading = variables::Reading {
        sources,
        places,
        findings,
    };
    // Override files come second, since they change existing declarations.
    for pass in [false, true] {
        for (root, overrides, folder) in &mut trees {
            if let Some(root) = root
                && *overrides == pass
            {
                declarations.take(root, pass, folder.as_ref(), &mut reading);
            }
        }
        for file in files.iter().filter(|file| file.overrides == pass) {
            declarations.blocks(file, &mut reading);
        }
    }
    let known = if files.is_empty() && declarations.is_empty() {
        Known::without_references()
    } else {
        let mut known = Known::default();
        for root in trees.iter().filter_map(|(root, ..)| root.as_ref()) {
            known.tree(root);
        }
        for file in &files {
            known.body(&file.body);
        }
        known
    };
    Prepared {
        trees,
        files,
        declarations,
        known,
    }
}

impl Evaluation<'_> {
    /// Evaluates variables, then all expressions.
    pub(super) fn run(
        &self,
        documents: Vec<Parsed>,
        sources: &mut SourceMap,
        findings: &mut Diagnostics,
    ) -> Evaluated {
        let places = Places::default();
        let Prepared {
            mut trees,
            mut files,
            declarations,
            known,
        } = prepare(documents, sources, &places, findings);
        let settled = variables::settle(
            &declarations,
            self.given,
            self.working_dir,
            sources,
            findings,
        );
        let missing: Vec<Diagnostic> = settled.missing.values().cloned().collect();
        let is_reduced = self.given.identity_only && !missing.is_empty();
        if is_reduced {
            keep_identity(&mut trees, &mut files);
        } else {
            findings.extend(missing.clone());
        }
        let texts = (&*sources, &places);
        let module = Module::new(texts, &files, &settled.values, &known, self.folders);
        settled.keep_secrets(&declarations, &module);
        let variables = settled.settings(&declarations, &module);
        variables::validate(&declarations, &settled, &module);
        let mut files_left = files.iter();
        let documents = trees.into_iter().map(|(root, overrides, folder)| {
            let root = match root {
                Some(mut root) => {
                    if !declarations.is_empty() {
                        interpolate(&mut root, &module, folder.as_ref())?;
                    }
                    root
                }
                None => hcl::document(&module, files_left.next().ok_or(Reported)?)?,
            };
            Ok(Document { root, overrides })
        });
        let documents = all(documents).map(|mut documents| {
            known.settle_groups(&mut documents);
            documents
        });
        if is_reduced && documents.is_err() {
            // Why a value isn't known.
            findings.extend(missing);
        }
        let overrides = settled.overrides.into_iter().map(|given| {
            let entry = Entry {
                key: given.name,
                key_span: given.place,
                value: module.node(&given.value, given.place, false)?,
            };
            Ok((entry, given.origin))
        });
        let overrides = all(overrides);
        let mut made = module.finish();
        made.secrets.extend(settled.texts);
        made.secrets.remove("");
        findings.extend(made.findings);
        for (span, holes) in made.holes {
            sources.record_holes(span, holes);
        }
        Evaluated {
            documents,
            // Why one has no value is among the findings.
            overrides: overrides.unwrap_or_default(),
            variables,
            secrets: Secrets(made.secrets.into_iter().collect()),
            size: made.size,
            aliases: made.aliases,
            repeated: made.repeated,
        }
    }
}

/// The keys and blocks that identify a shard, its state and its cloud, and those that they may refer
/// to.
const IDENTITY: [&str; 9] = [
    "nonce_command",
    "cluster",
    "shard",
    "state",
    "load_balancer",
    "load_balancers",
    "locals",
    "variable",
    "variables",
];

/// Reduces a configuration to what identifies its shard, its state and its cloud.
fn keep_identity(trees: &mut [Tree], files: &mut [hcl::File]) {
    for (root, ..) in trees {
        if let Some(NodeValue::Object(entries)) = root.as_mut().map(|root| &mut root.value) {
            entries.retain(|entry| IDENTITY.contains(&&*entry.key));
        }
    }
    for file in files {
        file.body.items.retain(|item| {
            let name = match item {
                Item::Attribute(attribute) => &attribute.name.name,
                Item::Block(block) => &block.kind.name,
            };
            IDENTITY.contains(&&**name)
        });
    }
}

/// Applies given values to the top-level `vars`, if no variables are declared.
pub(super) fn add_overrides(root: &mut Node, overrides: &[(Entry, Origin)]) {
    let (NodeValue::Object(top), Some((first, _))) = (&mut root.value, overrides.first()) else {
        return;
    };
    let at = top.iter().position(|entry| &*entry.key == "vars");
    let at = at.unwrap_or_else(|| {
        top.push(Entry {
            key: "vars".into(),
            key_span: first.key_span,
            value: Node::new(first.value.span, NodeValue::Object(Vec::new())),
        });
        top.len() - 1
    });
    // `decode` reports `vars` that aren't an object.
    let NodeValue::Object(vars) = &mut top[at].value.value else {
        return;
    };
    for (entry, _) in overrides {
        match vars.iter_mut().find(|known| known.key == entry.key) {
            Some(known) => known.value = entry.value.clone(),
            None => vars.push(entry.clone()),
        }
    }
}

/// The top-level vars as settings.
pub(super) fn top_level_vars(config: &Config, overrides: &[(Entry, Origin)]) -> Vec<Setting> {
    let entries = config.vars.as_ref().map(Node::entries).unwrap_or_default();
    let setting = |entry: &Entry| {
        let given = overrides.iter().find(|(given, _)| given.key == entry.key);
        Setting {
            name: Arc::clone(&entry.key),
            declared: None,
            description: None,
            of: None,
            sensitive: false,
            value: Some(entry.value.to_json()),
            origin: given.map_or(Origin::Default(entry.key_span), |(_, origin)| *origin),
        }
    };
    entries.iter().map(setting).collect()
}

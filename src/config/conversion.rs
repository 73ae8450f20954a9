//! What a conversion to another language must know of a configuration.
//!
//! In: the text of one file, where it lies, values of variables. Out: what the names in it stand
//! for ([`Names`]), and what the whole of it means ([`Meaning`]). May not: write anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use nstance_hcl::{Block, Body, Expression, StepKind, Value};

use super::assemble::Document;
use super::decode::{GroupsForm, groups_form};
use super::evaluate::{Prepared, prepare};
use super::hcl::{self, At, File, Folders, Module, Places};
use super::load::read_as;
use super::node::{Entry, Node, NodeValue};
use super::source::{SourceMap, Span};
use super::variables::{self, Given, Reading, Secrets, interpolate};
use crate::diagnostic::{Diagnostic, Diagnostics};

pub(crate) use super::hcl::Instance;

/// A file to be converted.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Its path as people see it; its extension says the language.
    pub file: &'a Path,
    /// The file that the text stands for, where that is another one.
    pub original: &'a Path,
    /// The files of the configuration that it is a part of; none if it is one by itself.
    pub whole: &'a [PathBuf],
    /// Its text.
    pub text: &'a str,
    /// Where paths start from.
    pub working_dir: &'a Path,
    /// Values of variables.
    pub given: &'a Given,
}

/// What an expression depends on, through locals too.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Variables, by name.
    pub(crate) variables: BTreeSet<Arc<str>>,
    /// Whether there is any other name in it.
    pub(crate) names: bool,
    /// Whether one of these stands for more than the name of a block, or a turn of `for_each`.
    pub(crate) values: bool,
}

/// The names of a configuration, as one of its files sees them.
pub(crate) struct Names<'m> {
    module: &'m Module<'m>,
    file: Option<&'m File>,
    folder: Option<&'m Arc<Path>>,
    /// Whether any variable is declared, so that `${ }` has a meaning everywhere.
    pub(crate) interpolated: bool,
    /// Variables whose values aren't given.
    pub(crate) missing: BTreeSet<Arc<str>>,
}

impl Input<'_> {
    fn absolute_folder(&self) -> Option<Arc<Path>> {
        self.working_dir.join(self.file).parent().map(Arc::from)
    }

    fn folders(&self) -> Folders {
        Folders::new(self.absolute_folder(), Some(self.working_dir.to_owned()))
    }

    /// Does something with the names of the configuration. Where it can't be read, or something is
    /// wrong that was needed, the findings say so.
    pub(crate) fn with_names<T>(
        &self,
        work: impl FnOnce(&Names<'_>, &mut Diagnostics) -> T,
    ) -> (SourceMap, Result<(T, Diagnostics), Diagnostics>) {
        let (mut sources, mut findings, documents) = read_as(self);
        let Some(documents) = documents else {
            return (sources, Err(findings));
        };
        let is_hcl = matches!(
            documents.first().map(|document| &document.content),
            Some(super::evaluate::Content::Hcl(_))
        );
        let places = Places::default();
        let prepared = prepare(documents, &sources, &places, &mut findings);
        let Prepared {
            files,
            declarations,
            known,
            ..
        } = &prepared;
        let mut settled = variables::settle(
            declarations,
            self.given,
            self.working_dir,
            &mut sources,
            &mut findings,
        );
        settled.stand_in(declarations);
        let folders = self.folders();
        let folder = self.absolute_folder();
        let module = Module::new((&sources, &places), files, &settled.values, known, &folders);
        let names = Names {
            module: &module,
            file: files.first().filter(|_| is_hcl),
            folder: folder.as_ref(),
            interpolated: !declarations.is_empty(),
            missing: settled.missing.keys().cloned().collect(),
        };
        let done = work(&names, &mut findings);
        findings.extend(module.findings());
        if findings.has_errors() {
            return (sources, Err(findings));
        }
        (sources, Ok((done, findings)))
    }

    /// What the configuration means.
    pub(crate) fn meaning(&self) -> Result<Meaning, Diagnostics> {
        let (mut sources, mut findings, documents) = read_as(self);
        let Some(documents) = documents else {
            return Err(findings);
        };
        let places = Places::default();
        let Prepared {
            mut trees,
            files,
            declarations,
            known,
        } = prepare(documents, &sources, &places, &mut findings);
        let mut settled = variables::settle(
            &declarations,
            self.given,
            self.working_dir,
            &mut sources,
            &mut findings,
        );
        settled.stand_in(&declarations);
        let folders = self.folders();
        let module = Module::new(
            (&sources, &places),
            &files,
            &settled.values,
            &known,
            &folders,
        );
        settled.keep_secrets(&declarations, &module);
        let variables = settled.settings(&declarations, &module);
        for (root, _, folder) in &mut trees {
            if let Some(root) = root
                && !declarations.is_empty()
            {
                interpolate(root, &module, folder.as_ref());
            }
        }
        let roots: Vec<Node> = files
            .iter()
            .map(|file| hcl::document(&module, file))
            .collect();
        let made = module.finish();
        findings.extend(made.findings);
        let mut roots = roots.into_iter();
        let mut documents: Vec<Document> = trees
            .into_iter()
            .filter_map(|(root, overrides, _)| {
                let root = root.or_else(|| roots.next())?;
                Some(Document { root, overrides })
            })
            .collect();
        known.settle_groups(&mut documents);
        if findings.has_errors() || documents.is_empty() {
            return Err(findings);
        }
        let described = variables.iter().map(|variable| {
            format!(
                "{}: {:?} {:?} {} {:?}",
                variable.name,
                variable.of,
                variable.description,
                variable.sensitive,
                variable.value
            )
        });
        let root = documents.remove(0).root;
        Ok(Meaning {
            form: groups_form(&root),
            root,
            variables: described.collect(),
            secrets: Secrets(made.secrets.into_iter().collect()),
            files: sources.iter().count(),
        })
    }
}

/// What a configuration means.
#[derive(Debug)]
pub(crate) struct Meaning {
    /// The file itself, without expressions.
    pub(crate) root: Node,
    /// How its groups are laid out.
    pub(crate) form: Option<GroupsForm>,
    /// Its variables, described.
    pub(crate) variables: Vec<String>,
    /// What mustn't be shown.
    pub(crate) secrets: Secrets,
    /// How many files it is made of.
    pub(crate) files: usize,
}

impl<'m> Names<'m> {
    /// What the file holds, if it is HCL.
    pub(crate) fn body(&self) -> Option<&'m Body> {
        self.file.map(|file| &file.body)
    }

    fn at<'i>(&'i self, each: Option<&'i Instance>) -> At<'i> {
        At {
            module: self.module,
            folder: self.folder,
            each,
        }
    }

    /// The value of an expression, in a turn of `for_each`.
    pub(crate) fn value(
        &self,
        expression: &Expression,
        each: Option<&Instance>,
    ) -> Result<Value, Vec<Diagnostic>> {
        self.at(each)
            .value(expression)
            .map_err(|errors| self.module.explained(&errors))
    }

    /// A value that refers to nothing; what is wrong is found.
    pub(crate) fn constant(
        &self,
        expression: &Expression,
        findings: &mut Diagnostics,
    ) -> Option<Value> {
        let places = Places::default();
        Reading {
            sources: self.module.texts(),
            places: &places,
            findings,
        }
        .constant(expression)
    }

    /// A value as a node, all of it at one place.
    pub(crate) fn node(&self, value: &Value, place: Span) -> Node {
        placed(self.module.node(value, place, false), place)
    }

    /// The turns of a block with `for_each`; what is wrong is found.
    pub(crate) fn instances(&self, block: &Block) -> Option<Rc<[Instance]>> {
        self.module.instances_of(block)
    }

    /// The expression of a local.
    pub(crate) fn local(&self, name: &str) -> Option<&'m Expression> {
        self.module.local_expression(name)
    }

    /// What an expression depends on; `each` on nothing but itself.
    pub(crate) fn reads(&self, expression: &Expression) -> Reads {
        let mut reads = Reads::default();
        let mut seen = BTreeSet::new();
        let mut next = vec![expression];
        let mut first = true;
        while let Some(expression) = next.pop() {
            expression.references(&mut |reference| {
                let step = match reference.steps.first().map(|step| &step.kind) {
                    Some(StepKind::Attribute(name)) => Some(&name.name),
                    Some(StepKind::Index(Expression {
                        kind: nstance_hcl::ExpressionKind::String(name),
                        ..
                    })) => Some(name),
                    _ => None,
                };
                match (&*reference.root.name, step) {
                    ("var", Some(name)) => {
                        reads.variables.insert(Arc::clone(name));
                        return;
                    }
                    ("local", Some(name)) => {
                        reads.values = true;
                        if seen.insert(Arc::clone(name)) {
                            next.extend(self.local(name));
                        }
                    }
                    ("path", _) => reads.values = true,
                    _ => {}
                }
                reads.names |= first;
            });
            first = false;
        }
        reads
    }
}

/// The same with one place for everything in it.
fn placed(mut node: Node, place: Span) -> Node {
    node.span = place;
    node.value = match node.value {
        NodeValue::Array(items) => {
            let items = items.into_iter().map(|item| placed(item, place));
            NodeValue::Array(items.collect())
        }
        NodeValue::Object(entries) => {
            let entries = entries.into_iter().map(|entry| Entry {
                key_span: place,
                value: placed(entry.value, place),
                ..entry
            });
            NodeValue::Object(entries.collect())
        }
        other => other,
    };
    node
}

//! Resolves names in expressions: `var.x`, `local.x`, `each.key`, `path.root`, `template.x`, …
//!
//! In: variables with their values, the files with their locals, the known names. Out: values for
//! the evaluator; locals are evaluated on first use. By-products of evaluation ([`Collected`]).
//! Must not: convert blocks.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use nstance_hcl::{Context, Error, Evaluator, Expression, Item, Reference, Scope, Value};

use super::instances::{Instance, Repeated};
use super::known_names::{Kind, Known};
use super::unknown::{ROOTS, first_name, undefined};
use super::{File, Folders, Places};
use crate::config::node::Alias;
use crate::config::source::{Hole, SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Variables by name; `None` for one whose error was reported.
pub(in crate::config) type Values = BTreeMap<Arc<str>, Option<Value>>;

/// The maximum nesting of expressions, including the locals they refer to: what fits on a small
/// stack.
const DEEPEST: u32 = 200;

/// The maximum number of references recorded for "it is used here".
const MOST_ALIASES: usize = 100_000;

/// By-products of evaluation.
#[derive(Debug, Default)]
pub(in crate::config) struct Collected {
    pub(in crate::config) findings: Diagnostics,
    /// The interpolations of literals, to map positions in values to the file.
    pub(in crate::config) holes: Vec<(Span, Vec<Hole>)>,
    /// The texts of sensitive values.
    pub(in crate::config) secrets: BTreeSet<Arc<str>>,
    /// References to values written elsewhere.
    pub(in crate::config) aliases: Vec<Alias>,
    /// Blocks that `for_each` expands.
    pub(in crate::config) repeated: Vec<Span>,
    /// The size of all values in documents, in bytes.
    pub(in crate::config) size: usize,
}

/// A value that is evaluated on first use.
pub(super) enum State<T> {
    Running,
    /// Evaluated; `None` if its error was reported.
    Done(Option<T>),
}

/// The names of a configuration, for evaluation.
pub(in crate::config) struct Module<'a> {
    pub(super) sources: &'a SourceMap,
    pub(super) places: &'a Places,
    pub(super) known: &'a Known,
    pub(super) repeated: Vec<Repeated<'a>>,
    pub(super) instances: RefCell<HashMap<usize, State<Rc<[Instance]>>>>,
    pub(super) collected: RefCell<Collected>,
    variables: &'a Values,
    locals: Locals<'a>,
    local_values: RefCell<HashMap<Arc<str>, State<Value>>>,
    /// The stack of names being evaluated, to detect dependency cycles.
    running: RefCell<Vec<String>>,
    folders: &'a Folders,
    context: Context<'a>,
    aliases: Cell<usize>,
    /// Shell expansions that HCL reads as interpolations, each with its parameter's name.
    pub(super) expansions: RefCell<Vec<(Span, Span)>>,
}

impl<'a> Module<'a> {
    pub(in crate::config) fn new(
        (sources, places): (&'a SourceMap, &'a Places),
        files: &'a [File],
        variables: &'a Values,
        known: &'a Known,
        folders: &'a Folders,
    ) -> Self {
        let mut collected = Collected::default();
        let locals = collect_locals(files, places, sources, &mut collected.findings);
        let mut context = Context::new(folders);
        context.limits.depth = DEEPEST;
        Self {
            sources,
            places,
            known,
            repeated: Repeated::collect(files),
            instances: RefCell::default(),
            collected: RefCell::new(collected),
            variables,
            locals,
            local_values: RefCell::default(),
            running: RefCell::default(),
            folders,
            context,
            aliases: Cell::new(0),
            expansions: RefCell::default(),
        }
    }

    /// Evaluates unused locals for their errors; returns the by-products.
    pub(in crate::config) fn finish(self) -> Collected {
        for (name, local) in &self.locals {
            // Evaluation reports its errors.
            let _ = self.local(name, local.name, local.name);
        }
        self.collected.into_inner()
    }

    /// The expression of a local.
    pub(in crate::config) fn local_expression(&self, name: &str) -> Option<&'a Expression> {
        self.locals.get(name).map(|local| local.expression)
    }

    /// Adds errors to the findings.
    pub(in crate::config) fn report(&self, errors: &[Error]) {
        let mut collected = self.collected.borrow_mut();
        for error in errors {
            collected
                .findings
                .push(self.places.finding(self.sources, error));
        }
    }

    /// Removes and returns the findings so far.
    pub(super) fn take_findings(&self) -> Diagnostics {
        std::mem::take(&mut self.collected.borrow_mut().findings)
    }

    /// Converts a span of the HCL crate.
    pub(in crate::config) fn span(&self, span: nstance_hcl::Span) -> Span {
        self.places.span(self.sources, span)
    }

    /// Adds a finding.
    pub(in crate::config) fn find(&self, finding: Diagnostic) {
        self.collected.borrow_mut().findings.push(finding);
    }

    /// The source texts of spans.
    pub(in crate::config) fn texts(&self) -> &SourceMap {
        self.sources
    }

    /// A file number for an expression within a string.
    pub(in crate::config) fn snippet(&self, span: Span, offset: usize) -> u32 {
        self.places.snippet(span, offset)
    }

    /// Records the interpolations of a literal.
    pub(in crate::config) fn keep_holes(&self, span: Span, holes: Vec<Hole>) {
        self.collected.borrow_mut().holes.push((span, holes));
    }

    /// Records that the value written at `target` is used at `span`.
    pub(super) fn used(&self, span: Span, target: Span) {
        if self.aliases.get() < MOST_ALIASES {
            self.aliases.set(self.aliases.get() + 1);
            self.collected
                .borrow_mut()
                .aliases
                .push(Alias { span, target });
        }
    }

    /// Runs `work` with `what` on the stack that detects dependency cycles.
    pub(super) fn run<T>(&self, what: String, work: impl FnOnce() -> T) -> T {
        self.running.borrow_mut().push(what);
        let done = work();
        self.running.borrow_mut().pop();
        done
    }

    /// The dependency-cycle error: the name used at `span` is being evaluated already.
    pub(super) fn circle(&self, what: &str, span: nstance_hcl::Span) -> Error {
        let running = self.running.borrow();
        let start = running.iter().position(|name| name == what).unwrap_or(0);
        let mut chain: Vec<String> = running[start..]
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        chain.push(format!("`{what}`"));
        let summary = match &chain[..] {
            [_, _] => format!("`{what}` refers to itself"),
            _ => format!("dependency cycle: {}", chain.join(" → ")),
        };
        Error::new(span, summary).detail("this closes the cycle")
    }

    fn variable(&self, reference: &Reference<'_>) -> Result<Value, Vec<Error>> {
        let (name, span) = first_name(reference, "var.region")?;
        match self.variables.get(name) {
            Some(Some(value)) => Ok(value.clone()),
            // Its error was reported.
            Some(None) => Err(Vec::new()),
            None if self.known.has_misnamed() => Err(Vec::new()),
            None => {
                let names = self.variables.keys().map(AsRef::as_ref);
                let define = format!(
                    "declare it: in HCL `variable \"{name}\" {{ … }}`, else below `variables`"
                );
                Err(vec![undefined("variable", name, span, names, define)])
            }
        }
    }

    /// `span` is the name's, `whole` the reference's.
    fn local(
        &self,
        name: &str,
        span: nstance_hcl::Span,
        whole: nstance_hcl::Span,
    ) -> Result<Value, Vec<Error>> {
        let what = format!("local.{name}");
        match self.local_values.borrow().get(name) {
            // Its error was reported.
            Some(State::Done(result)) => return result.clone().ok_or_else(Vec::new),
            Some(State::Running) => return Err(vec![self.circle(&what, whole)]),
            None => {}
        }
        let Some(local) = self.locals.get(name) else {
            if self.known.has_misnamed() {
                return Err(Vec::new());
            }
            let names = self.locals.keys().map(AsRef::as_ref);
            let define = format!("define it: `locals {{ {name} = … }}`");
            return Err(vec![undefined("local", name, span, names, define)]);
        };
        let name: Arc<str> = name.into();
        self.local_values
            .borrow_mut()
            .insert(Arc::clone(&name), State::Running);
        let at = At {
            module: self,
            folder: local.file.folder.as_ref(),
            each: None,
        };
        let result = self.run(what, || at.evaluate(local.expression));
        if let Some(value) = &result {
            at.record_holes(local.expression, value);
        }
        self.local_values
            .borrow_mut()
            .insert(name, State::Done(result.clone()));
        result.ok_or_else(Vec::new)
    }
}

/// The context of an expression.
#[derive(Clone, Copy)]
pub(in crate::config) struct At<'m> {
    pub(in crate::config) module: &'m Module<'m>,
    /// The folder of its file.
    pub(in crate::config) folder: Option<&'m Arc<Path>>,
    /// The instance of the enclosing `for_each`.
    pub(in crate::config) each: Option<&'m Instance>,
}

impl At<'_> {
    /// The value of an expression.
    ///
    /// Fails with the errors of evaluation.
    pub(in crate::config) fn value(&self, expression: &Expression) -> Result<Value, Vec<Error>> {
        let folders = self.module.folders;
        let before = folders.enter(self.folder.cloned());
        let result = Evaluator::new(self, &self.module.context).evaluate(expression);
        folders.enter(before);
        result
    }

    /// The value of an expression; on failure reports the errors and returns `None`.
    pub(in crate::config) fn evaluate(&self, expression: &Expression) -> Option<Value> {
        self.value(expression)
            .map_err(|errors| self.module.report(&errors))
            .ok()
    }

    fn each(&self, reference: &Reference<'_>) -> Result<Value, Vec<Error>> {
        let (name, span) = first_name(reference, "each.key")?;
        let Some(instance) = self.each else {
            return Err(vec![
                Error::new(reference.root.span, "`each` has no meaning here")
                    .detail("this isn't in a block with `for_each`")
                    .hint("`group` and `template` blocks may have a `for_each`"),
            ]);
        };
        match name {
            _ if instance.has_failed => Err(Vec::new()),
            "key" => Ok(Value::string(Arc::clone(&instance.key)).with_span(instance.span)),
            "value" => Ok(instance.value.clone()),
            _ => Err(vec![
                Error::new(span, format!("`each` has no `{name}`"))
                    .detail("there are `each.key` and `each.value`"),
            ]),
        }
    }

    fn path(&self, reference: &Reference<'_>) -> Result<Value, Vec<Error>> {
        let (name, span) = first_name(reference, "path.root")?;
        match self.module.folders.named(name) {
            Some(path) => Ok(Value::string(path)),
            None => Err(vec![
                Error::new(span, format!("`path` has no `{name}`"))
                    .detail("there are `path.module`, `path.root` and `path.cwd`"),
            ]),
        }
    }
}

impl Scope for At<'_> {
    fn resolve(&self, reference: Reference<'_>) -> Result<(Value, usize), Vec<Error>> {
        let root = reference.root;
        match &*root.name {
            "var" => Ok((self.module.variable(&reference)?, 1)),
            "local" => {
                let (name, span) = first_name(&reference, "local.name")?;
                Ok((self.module.local(name, span, root.span.to(span))?, 1))
            }
            "each" => Ok((self.each(&reference)?, 1)),
            "path" => Ok((self.path(&reference)?, 1)),
            name => match Kind::of_singular(name) {
                Some(kind) => self.reference(kind, &reference),
                None => Err(self.module.nothing_named(name, root.span)),
            },
        }
    }

    fn names(&self) -> Vec<String> {
        ROOTS.map(str::to_owned).into()
    }
}

/// One local.
#[derive(Clone, Copy)]
struct Local<'f> {
    expression: &'f Expression,
    name: nstance_hcl::Span,
    file: &'f File,
}

/// All locals of a configuration, by name.
type Locals<'f> = BTreeMap<Arc<str>, Local<'f>>;

/// Collects the locals. Those of override files replace others.
fn collect_locals<'f>(
    files: &'f [File],
    places: &Places,
    sources: &SourceMap,
    findings: &mut Diagnostics,
) -> Locals<'f> {
    let mut locals = Locals::new();
    let (overrides, plain): (Vec<&File>, Vec<&File>) =
        files.iter().partition(|file| file.overrides);
    for file in plain.into_iter().chain(overrides) {
        let blocks = file.body.blocks();
        for block in blocks.filter(|block| &*block.kind.name == "locals") {
            if let Some(label) = block.labels.first() {
                findings.push(
                    Diagnostic::error("a `locals` block has no name")
                        .at(places.span(sources, label.span), "take this out")
                        .hint("what is in it has names: `locals { … }`"),
                );
            }
            for item in &block.body.items {
                let attribute = match item {
                    Item::Attribute(attribute) => attribute,
                    Item::Block(inner) => {
                        let name = &inner.kind.name;
                        findings.push(
                            Diagnostic::error("a `locals` block holds values, no blocks")
                                .at(places.span(sources, inner.header), "this is a block")
                                .hint(format!("write an object: `{name} = {{ … }}`")),
                        );
                        continue;
                    }
                };
                let local = Local {
                    expression: &attribute.value,
                    name: attribute.name.span,
                    file,
                };
                let name = &attribute.name.name;
                match locals.get(name) {
                    Some(first) if !file.overrides => {
                        let first: &Local<'_> = first;
                        findings.push(
                            Diagnostic::error(format!("`local.{name}` is defined twice"))
                                .at(places.span(sources, local.name), "here again")
                                .related(
                                    places.span(sources, first.name),
                                    "it is defined here first",
                                )
                                .hint("remove or rename one of the two"),
                        );
                    }
                    _ => {
                        locals.insert(Arc::clone(name), local);
                    }
                }
            }
        }
    }
    locals
}

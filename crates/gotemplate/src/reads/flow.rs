//! Runs code on paths in place of values.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{LONGEST_PATH, Path, Paths, add, extend, inexact, root};
use super::{Analysis, Reads};
use crate::code::{Code, Op};
use crate::environment::nearest;
use crate::function::Action;
use crate::functions::Builtin;
use crate::report::{Access, Call};
use crate::template::Set;
use crate::value::{ReadSite, Value};

/// More possible paths than this are taken for all paths.
const MOST_PATHS: usize = 32;

/// More reads than this are taken for reading everything: no person writes so many.
pub(super) const MOST_READS: usize = 200_000;

/// Rounds after which the analysis gives up, and takes everything for read.
const ROUNDS: usize = 40;

/// An entry of the stack: what it may be, and the string that it is, if it is a constant.
#[derive(Clone, Debug, Default)]
struct Entry {
    paths: Paths,
    constant: Option<String>,
}

struct Block {
    outer: Paths,
    /// Where the part begins that is executed with the outer dot.
    otherwise: Option<u32>,
}

pub(super) struct Flow<'s> {
    set: &'s Set,
    /// The dot that each template may be called with.
    dots: BTreeMap<u32, Paths>,
    /// What variables may be, by template and name.
    variables: BTreeMap<(u32, u32), Paths>,
    used: BTreeSet<(String, ReadSite)>,
    tested: BTreeSet<(String, ReadSite)>,
    anything: bool,
    sites: BTreeMap<ReadSite, Option<String>>,
    functions: BTreeSet<String>,
    templates: BTreeSet<String>,
    calls: BTreeMap<ReadSite, u32>,
    changed: bool,
}

impl<'s> Flow<'s> {
    pub(super) fn new(set: &'s Set) -> Self {
        Self {
            set,
            dots: BTreeMap::new(),
            variables: BTreeMap::new(),
            used: BTreeSet::new(),
            tested: BTreeSet::new(),
            anything: false,
            sites: BTreeMap::new(),
            functions: BTreeSet::new(),
            templates: BTreeSet::new(),
            calls: BTreeMap::new(),
            changed: false,
        }
    }

    pub(super) fn analyse(mut self, main: u32) -> Analysis {
        let root = root(true);
        self.dots.insert(main, root.clone());
        self.variables.insert((main, 0), root);
        let mut rounds = 0;
        loop {
            self.changed = false;
            let reachable: Vec<u32> = self.dots.keys().copied().collect();
            for code in reachable {
                Walk::new(&mut self, code).walk();
            }
            rounds += 1;
            if !self.changed {
                break;
            }
            if rounds == ROUNDS || self.used.len() + self.tested.len() > MOST_READS {
                self.anything = true;
                break;
            }
        }
        let reads = Reads {
            paths: self.list(self.used.union(&self.tested)),
            tested: self.list(self.tested.difference(&self.used)),
            anything: self.anything,
            calls: self.list_calls(),
            functions: self.functions,
            templates: self.templates,
        };
        Analysis {
            reads,
            sites: self.sites,
        }
    }

    fn list<'r>(&self, reads: impl Iterator<Item = &'r (String, ReadSite)>) -> Vec<Access> {
        let access = |(path, site): &(String, ReadSite)| {
            let code = self.set.code(site.code);
            Access {
                path: path.clone(),
                offset: code.sites[site.operation as usize].start as usize,
                template: code.source.name.as_ref().to_owned(),
            }
        };
        reads.map(access).collect()
    }

    fn list_calls(&self) -> Vec<Call> {
        let call = |(site, name): (&ReadSite, &u32)| {
            let code = self.set.code(site.code);
            let target = self.set.callee(site.code, *name);
            let name = &code.names[*name as usize];
            Call {
                name: name.as_ref().to_owned(),
                template: code.source.name.as_ref().to_owned(),
                offset: code.sites[site.operation as usize].start as usize,
                target: target.map(|index| self.set.code(index).source.name.as_ref().to_owned()),
                nearest: match target {
                    Some(_) => None,
                    None => nearest(name, self.set.names()),
                },
            }
        };
        self.calls.iter().map(call).collect()
    }

    /// Adds what a place may hold; notes whether that is news.
    fn join(into: &mut Paths, from: &Paths, changed: &mut bool) {
        let before = into.len();
        add(into, from);
        if into.len() > MOST_PATHS {
            // Everything, and it stays so.
            *changed |= before <= MOST_PATHS && *into != root(false);
            *into = root(false);
        } else {
            *changed |= into.len() != before;
        }
    }

    fn note(&mut self, paths: &Paths, tested: bool) {
        if self.used.len() + self.tested.len() > MOST_READS {
            self.anything = true;
            return;
        }
        for (path, site) in paths {
            if path.text.is_empty() {
                // Testing the root says nothing of what is in it.
                self.anything |= !tested || !path.exact;
            } else if tested {
                self.tested.insert((path.text.clone(), *site));
            } else {
                self.used.insert((path.text.clone(), *site));
            }
        }
    }
}

/// One pass over one template's code.
struct Walk<'f, 's> {
    flow: &'f mut Flow<'s>,
    code: &'s Code,
    index: u32,
    dot: Paths,
    stack: Vec<Entry>,
    blocks: Vec<Block>,
    /// What jumps bring to an operation.
    arrivals: BTreeMap<u32, Paths>,
    site: ReadSite,
}

impl<'f, 's> Walk<'f, 's> {
    fn new(flow: &'f mut Flow<'s>, index: u32) -> Self {
        let code = flow.set.code(index);
        let dot = flow.dots.get(&index).cloned().unwrap_or_default();
        let site = ReadSite {
            code: index,
            operation: 0,
        };
        Self {
            flow,
            code,
            index,
            dot,
            stack: Vec::new(),
            blocks: Vec::new(),
            arrivals: BTreeMap::new(),
            site,
        }
    }

    fn walk(mut self) {
        for (operation, op) in self.code.ops.iter().enumerate() {
            self.site.operation = operation as u32;
            if let Some(paths) = self.arrivals.remove(&self.site.operation)
                && let Some(top) = self.stack.last_mut()
            {
                add(&mut top.paths, &paths);
                top.constant = None;
            }
            if let Some(block) = self.blocks.last()
                && block.otherwise == Some(self.site.operation)
            {
                self.dot = block.outer.clone();
            }
            self.step(*op);
        }
    }

    fn push(&mut self, paths: Paths) {
        self.stack.push(Entry {
            paths,
            constant: None,
        });
    }

    fn pop(&mut self) -> Entry {
        self.stack.pop().unwrap_or_default()
    }

    fn field(&mut self, base: &Paths, path: u32) -> Paths {
        let mut paths = base.clone();
        for name in self.code.path(path) {
            paths = extend(&paths, name, self.site);
        }
        // Whether its value is used or not: that it is there is looked at. Not so of the root's own
        // fields, which are looked at only to get at what is in them: `index .Image "a"` reads one
        // image, not all.
        let deep = |path: &Path| !path.exact || path.text.matches('.').count() > 1;
        let looked_at: Paths = paths
            .iter()
            .filter(|(path, _)| deep(path))
            .map(|(path, site)| (path.clone(), *site))
            .collect();
        self.flow.note(&looked_at, true);
        self.name_site(&paths);
        paths
    }

    /// Notes what an operation reads, for reports: that is, if it is one path.
    fn name_site(&mut self, paths: &Paths) {
        let single = match paths.keys().next() {
            Some(only) if paths.len() == 1 && only.exact && !only.text.is_empty() => {
                Some(only.text.clone())
            }
            _ => None,
        };
        self.flow.sites.insert(self.site, single);
    }

    /// Whether dot is the root, and can be nothing else.
    fn dot_is_root(&self) -> bool {
        let mut paths = self.dot.keys();
        let only = paths
            .next()
            .is_some_and(|path| path.exact && path.text.is_empty());
        only && paths.next().is_none()
    }

    /// What most actions are, without a detour over sets of paths.
    fn print_of_root(&mut self, path: u32) {
        let short = self.code.path(path).count() < LONGEST_PATH;
        let reads = self.flow.used.len() + self.flow.tested.len();
        if !short || reads > MOST_READS {
            let paths = self.field(&root(true), path);
            self.flow.note(&paths, false);
            return;
        }
        let text = self.code.path_text(path);
        self.flow.sites.insert(self.site, Some(text.clone()));
        self.flow.used.insert((text, self.site));
    }

    fn variable(&self, name: u32) -> Paths {
        self.flow
            .variables
            .get(&(self.index, name))
            .cloned()
            .unwrap_or_default()
    }

    fn set_variable(&mut self, code: u32, name: u32, paths: &Paths) {
        let changed = &mut self.flow.changed;
        Flow::join(
            self.flow.variables.entry((code, name)).or_default(),
            paths,
            changed,
        );
    }

    fn used(&mut self, entry: &Entry) {
        self.flow.note(&entry.paths, false);
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Constant { constant } => {
                let constant = match &self.code.constants[constant as usize] {
                    Value::Str(text) => String::from_utf8(text.as_bytes().to_vec()).ok(),
                    _ => None,
                };
                self.stack.push(Entry {
                    paths: Paths::new(),
                    constant,
                });
            }
            Op::Nil | Op::Fail { .. } => self.push(Paths::new()),
            Op::Dot { .. } => {
                let paths = self.dot.clone();
                self.name_site(&paths);
                self.push(paths);
            }
            Op::Variable { name, .. } => {
                let paths = self.variable(name);
                self.name_site(&paths);
                self.push(paths);
            }
            Op::Field { path, flags } => {
                if flags.piped {
                    self.pop();
                }
                let paths = self.field(&self.dot.clone(), path);
                self.push(paths);
            }
            Op::PrintField { path } if self.dot_is_root() => self.print_of_root(path),
            Op::PrintField { path } => {
                let paths = self.field(&self.dot.clone(), path);
                self.flow.note(&paths, false);
            }
            Op::VariableField { name, path, flags } => {
                if flags.piped {
                    self.pop();
                }
                let paths = self.field(&self.variable(name), path);
                self.push(paths);
            }
            Op::ChainField { path, flags } => {
                let base = self.pop();
                if flags.piped {
                    self.pop();
                }
                let paths = self.field(&base.paths, path);
                self.push(paths);
            }
            Op::Call {
                function,
                arguments,
                piped,
                ..
            } => {
                self.call(function, arguments as usize, piped);
            }
            Op::ShortCircuit { target, .. } => {
                let entry = self.pop();
                self.flow.note(&entry.paths, true);
                add(self.arrivals.entry(target).or_default(), &entry.paths);
            }
            Op::Declare { name } | Op::Assign { name } => {
                let paths = self.stack.last().cloned().unwrap_or_default().paths;
                self.set_variable(self.index, name, &paths);
            }
            Op::Pop => {
                self.pop();
            }
            Op::Print => {
                let entry = self.pop();
                self.name_site(&entry.paths);
                self.used(&entry);
            }
            Op::Enter => self.blocks.push(Block {
                outer: self.dot.clone(),
                otherwise: None,
            }),
            Op::Leave => {
                if let Some(block) = self.blocks.pop() {
                    self.dot = block.outer;
                }
            }
            Op::If { .. } => {
                let entry = self.pop();
                self.flow.note(&entry.paths, true);
            }
            Op::With { target, .. } => {
                let entry = self.pop();
                self.flow.note(&entry.paths, true);
                self.inside(entry.paths, target);
            }
            Op::Range { range } => {
                let entry = self.pop();
                self.name_site(&entry.paths);
                self.used(&entry);
                let within: Paths = inexact(entry.paths);
                let info = self.code.ranges[range as usize];
                for name in &info.variables[..usize::from(info.variable_count)] {
                    self.set_variable(self.index, *name, &within);
                }
                self.inside(within, info.otherwise);
            }
            Op::Template { name, argument } => self.template(name, argument),
            Op::Text { .. }
            | Op::CheckFormat { .. }
            | Op::CheckArgument { .. }
            | Op::Unwrap
            | Op::Next { .. }
            | Op::Unwind { .. }
            | Op::Jump { .. }
            | Op::Return => {}
        }
    }

    fn inside(&mut self, dot: Paths, otherwise: u32) {
        self.dot = dot;
        if let Some(block) = self.blocks.last_mut() {
            block.otherwise = Some(otherwise);
        }
    }

    fn call(&mut self, function: u32, count: usize, piped: bool) {
        let callee = &self.code.functions[function as usize];
        self.flow.functions.insert(callee.name.as_ref().to_owned());
        let first = self.stack.len().saturating_sub(count + usize::from(piped));
        let mut arguments = self.stack.split_off(first);
        if piped && !arguments.is_empty() {
            arguments.rotate_left(1);
        }
        if callee.is(Builtin::Index) && !arguments.is_empty() {
            let paths = self.index(arguments);
            self.name_site(&paths);
            self.push(paths);
            return;
        }
        match callee.action() {
            // What the text reads can't be told, unless it is executed.
            Some(Action::Tpl) => self.flow.anything = true,
            Some(Action::Include) => self.include(&arguments),
            _ => {}
        }
        let included = matches!(callee.action(), Some(Action::Include));
        if included && let [name, _] = &arguments[..] {
            // What the template reads of its dot was looked at there.
            self.flow.note(&name.paths, false);
            self.push(Paths::new());
            return;
        }
        let tests = callee.tests_truth() && callee.is(Builtin::Not);
        let mut all = Paths::new();
        for argument in arguments {
            self.flow.note(&argument.paths, tests);
            add(&mut all, &argument.paths);
        }
        self.name_site(&all);
        // A function's result isn't followed: all of its arguments count as read.
        self.push(Paths::new());
    }

    fn index(&mut self, mut arguments: Vec<Entry>) -> Paths {
        let mut paths = arguments.remove(0).paths;
        for argument in arguments {
            match argument.constant {
                Some(key) if !key.contains('.') => paths = extend(&paths, &key, self.site),
                _ => {
                    self.flow.note(&paths, false);
                    self.flow.note(&argument.paths, false);
                    paths = inexact(paths);
                }
            }
        }
        paths
    }

    fn include(&mut self, arguments: &[Entry]) {
        let [name, data] = arguments else {
            return;
        };
        let Some(name) = &name.constant else {
            self.flow.anything = true;
            return;
        };
        self.flow.templates.insert(name.clone());
        if let Some(called) = self.flow.set.lookup(name) {
            self.pass(called, &data.paths);
        }
    }

    /// Passes a dot to a template.
    fn pass(&mut self, called: u32, dot: &Paths) {
        let changed = &mut self.flow.changed;
        *changed |= !self.flow.dots.contains_key(&called);
        Flow::join(self.flow.dots.entry(called).or_default(), dot, changed);
        self.set_variable(called, 0, dot);
    }

    fn template(&mut self, name: u32, argument: bool) {
        let dot = if argument {
            self.pop().paths
        } else {
            Paths::new()
        };
        self.flow
            .templates
            .insert(self.code.names[name as usize].as_ref().to_owned());
        self.flow.calls.insert(self.site, name);
        let Some(called) = self.flow.set.callee(self.index, name) else {
            return;
        };
        self.pass(called, &dot);
    }
}

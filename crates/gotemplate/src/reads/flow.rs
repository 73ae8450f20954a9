//! Runs code on paths in place of values.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{LONGEST_PATH, Path, Paths, add, extend, inexact, root};
use super::{Analysis, Reads};
use crate::code::{Code, Op};
use crate::environment::nearest;
use crate::function::Action;
use crate::functions::Builtin;
use crate::report::{Access, Call};
use crate::sensitive::{Sensitive, Trace};
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
    /// Made of something sensitive, wherever its paths lead.
    is_sensitive: bool,
}

struct Block {
    outer: Paths,
    /// Something sensitive decides what of it is executed.
    is_sensitive: bool,
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
    /// What is sensitive, if that is to be followed.
    sensitive: Option<&'s Sensitive>,
    trace: Trace,
    sensitive_variables: BTreeSet<(u32, u32)>,
    /// Templates whose output may have something sensitive in it.
    sensitive_outputs: BTreeSet<u32>,
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
            sensitive: None,
            trace: Trace::default(),
            sensitive_variables: BTreeSet::new(),
            sensitive_outputs: BTreeSet::new(),
        }
    }

    /// Follows what is sensitive.
    pub(super) fn trace(mut self, main: u32, sensitive: &'s Sensitive) -> Trace {
        self.sensitive = Some(sensitive);
        self.trace.end = self.set.end();
        self.trace.everything = !sensitive.is_literal(self.set);
        for number in self.set.base..self.set.end() {
            let code = self.set.code(number);
            let ranges = sensitive.text(code);
            let in_text = code.ops.iter().any(|op| match op {
                Op::Text { start, end } => ranges
                    .iter()
                    .any(|range| range.start < *end as usize && (*start as usize) < range.end),
                _ => false,
            });
            if in_text {
                self.trace.texts.insert(number, ranges.to_vec());
                self.sensitive_outputs.insert(number);
            }
        }
        // An analysis that gives up treats every read as sensitive.
        let is_complete = self.follow(main);
        self.trace.everything |= !is_complete;
        self.trace
    }

    /// Follows paths until there is nothing new; whether that came to an end.
    fn follow(&mut self, main: u32) -> bool {
        let root = root(true);
        self.dots.insert(main, root.clone());
        self.variables.insert((main, 0), root);
        let mut rounds = 0;
        loop {
            self.changed = false;
            let reachable: Vec<u32> = self.dots.keys().copied().collect();
            for code in reachable {
                Walk::new(self, code).walk();
            }
            rounds += 1;
            if !self.changed {
                return true;
            }
            if rounds == ROUNDS || self.used.len() + self.tested.len() > MOST_READS {
                self.anything = true;
                return false;
            }
        }
    }

    pub(super) fn analyse(mut self, main: u32) -> Analysis {
        self.follow(main);
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
    arrivals: BTreeMap<u32, Entry>,
    site: ReadSite,
    /// Up to this operation, something sensitive decides whether it is executed.
    sensitive_until: u32,
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
            sensitive_until: 0,
        }
    }

    fn walk(mut self) {
        for (operation, op) in self.code.ops.iter().enumerate() {
            self.site.operation = operation as u32;
            if let Some(arrived) = self.arrivals.remove(&self.site.operation)
                && let Some(top) = self.stack.last_mut()
            {
                add(&mut top.paths, &arrived.paths);
                top.constant = None;
                top.is_sensitive |= arrived.is_sensitive;
            }
            if let Some(block) = self.blocks.last()
                && block.otherwise == Some(self.site.operation)
            {
                self.dot = block.outer.clone();
            }
            if self.is_hidden() {
                self.touch();
            }
            self.step(*op);
        }
    }

    fn push(&mut self, paths: Paths) {
        self.push_made(paths, false);
    }

    fn push_made(&mut self, paths: Paths, is_sensitive: bool) {
        self.stack.push(Entry {
            paths,
            constant: None,
            is_sensitive,
        });
    }

    /// Whether something sensitive decides if the operation is executed.
    fn is_hidden(&self) -> bool {
        self.flow.sensitive.is_some()
            && (self.flow.trace.whole.contains(&self.index)
                || self.site.operation < self.sensitive_until
                || self.blocks.iter().any(|block| block.is_sensitive))
    }

    /// Notes that the operation handles something sensitive.
    fn touch(&mut self) {
        self.flow.changed |= self.flow.trace.operations.insert(self.site);
        self.flow.changed |= self.flow.sensitive_outputs.insert(self.index);
    }

    /// Whether any of these paths leads to something sensitive, or contains some. Of what is only
    /// `tested`, what is in it doesn't count.
    fn leads_to_sensitive(&self, paths: &Paths, tested: bool) -> bool {
        let Some(sensitive) = self.flow.sensitive else {
            return false;
        };
        paths.keys().any(|path| {
            if tested && path.exact {
                sensitive.holds_whole(&path.text)
            } else {
                sensitive.holds_part(&path.text)
            }
        })
    }

    /// Whether a value that is used is sensitive; notes that it is handled here.
    fn takes_sensitive(&mut self, entry: &Entry, tested: bool) -> bool {
        let takes = entry.is_sensitive || self.leads_to_sensitive(&entry.paths, tested);
        if takes {
            self.touch();
        }
        takes
    }

    /// All that a template writes is sensitive.
    fn hide(&mut self, code: u32) {
        self.flow.changed |= self.flow.trace.whole.insert(code);
        self.flow.changed |= self.flow.sensitive_outputs.insert(code);
    }

    fn push_read(&mut self, paths: Paths, is_sensitive: bool) {
        if is_sensitive || self.leads_to_sensitive(&paths, true) {
            self.touch();
        }
        self.push_made(paths, is_sensitive);
    }

    fn holds_sensitive(&self, variable: u32) -> bool {
        let variable = (self.index, variable);
        self.flow.sensitive_variables.contains(&variable)
    }

    fn keep_sensitive(&mut self, variable: u32) {
        let variable = (self.index, variable);
        self.flow.changed |= self.flow.sensitive_variables.insert(variable);
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
                    constant,
                    ..Entry::default()
                });
            }
            Op::Nil | Op::Fail { .. } => self.push(Paths::new()),
            Op::Dot { .. } => {
                let paths = self.dot.clone();
                self.name_site(&paths);
                self.push_read(paths, false);
            }
            Op::Variable { name, .. } => {
                let paths = self.variable(name);
                self.name_site(&paths);
                self.push_read(paths, self.holds_sensitive(name));
            }
            Op::Field { path, flags } => {
                if flags.piped {
                    self.pop();
                }
                let paths = self.field(&self.dot.clone(), path);
                self.push_read(paths, false);
            }
            Op::PrintField { path } if self.flow.sensitive.is_none() && self.dot_is_root() => {
                self.print_of_root(path);
            }
            Op::PrintField { path } => {
                let paths = self.field(&self.dot.clone(), path);
                self.flow.note(&paths, false);
                if self.leads_to_sensitive(&paths, false) {
                    self.touch();
                }
            }
            Op::VariableField { name, path, flags } => {
                if flags.piped {
                    self.pop();
                }
                let paths = self.field(&self.variable(name), path);
                self.push_read(paths, self.holds_sensitive(name));
            }
            Op::ChainField { path, flags } => {
                let base = self.pop();
                if flags.piped {
                    self.pop();
                }
                let paths = self.field(&base.paths, path);
                self.push_read(paths, base.is_sensitive);
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
                let is_sensitive = self.takes_sensitive(&entry, true);
                if is_sensitive {
                    self.sensitive_until = self.sensitive_until.max(target);
                }
                let arrived = self.arrivals.entry(target).or_default();
                add(&mut arrived.paths, &entry.paths);
                arrived.is_sensitive |= is_sensitive;
            }
            Op::Declare { name } | Op::Assign { name } => {
                let value = self.stack.last().cloned().unwrap_or_default();
                self.set_variable(self.index, name, &value.paths);
                if value.is_sensitive || self.is_hidden() {
                    self.keep_sensitive(name);
                }
            }
            Op::Pop => {
                self.pop();
            }
            Op::Print => {
                let entry = self.pop();
                self.name_site(&entry.paths);
                self.used(&entry);
                self.takes_sensitive(&entry, false);
            }
            Op::Enter => self.blocks.push(Block {
                outer: self.dot.clone(),
                is_sensitive: false,
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
                self.decide(&entry, true);
            }
            Op::With { target, .. } => {
                let entry = self.pop();
                self.flow.note(&entry.paths, true);
                self.decide(&entry, true);
                self.inside(entry.paths, target);
            }
            Op::Range { range } => {
                let entry = self.pop();
                self.name_site(&entry.paths);
                self.used(&entry);
                self.decide(&entry, false);
                let is_hidden = self.is_hidden();
                let within: Paths = inexact(entry.paths);
                let info = self.code.ranges[range as usize];
                for name in &info.variables[..usize::from(info.variable_count)] {
                    self.set_variable(self.index, *name, &within);
                    if is_hidden {
                        self.keep_sensitive(*name);
                    }
                }
                self.inside(within, info.otherwise);
            }
            Op::Template { name, argument } => self.template(name, argument),
            Op::CheckFormat { .. } | Op::CheckArgument { .. } => {
                let top = self.stack.last().cloned().unwrap_or_default();
                self.takes_sensitive(&top, false);
            }
            // What comes before it in the loop depends on it as well.
            Op::Unwind { .. } if self.is_hidden() => self.hide(self.index),
            Op::Text { .. }
            | Op::Unwrap
            | Op::Next { .. }
            | Op::Unwind { .. }
            | Op::Jump { .. }
            | Op::Return => {}
        }
    }

    /// The value decides what of the block is executed.
    fn decide(&mut self, entry: &Entry, tested: bool) {
        if self.takes_sensitive(entry, tested)
            && let Some(block) = self.blocks.last_mut()
        {
            block.is_sensitive = true;
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
            let (paths, is_sensitive) = self.index(arguments);
            self.name_site(&paths);
            self.push_read(paths, is_sensitive);
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
            let is_sensitive = self.makes_sensitive(&arguments);
            self.push_made(Paths::new(), is_sensitive);
            return;
        }
        let tests = callee.tests_truth() && callee.is(Builtin::Not);
        let mut all = Paths::new();
        let mut is_sensitive = false;
        for argument in arguments {
            self.flow.note(&argument.paths, tests);
            is_sensitive |= self.takes_sensitive(&argument, tests);
            add(&mut all, &argument.paths);
        }
        if callee.changes_arguments() && (is_sensitive || self.is_hidden()) {
            // Whatever has the changed value, has something sensitive from now on.
            self.flow.changed |= !self.flow.trace.everything;
            self.flow.trace.everything = true;
        }
        self.name_site(&all);
        // A function's result isn't followed: all of its arguments count as read.
        self.push_made(Paths::new(), is_sensitive);
    }

    /// Whether what `include` makes may have something sensitive in it.
    fn makes_sensitive(&mut self, arguments: &[Entry]) -> bool {
        let [name, data] = arguments else {
            return false;
        };
        match &name.constant {
            Some(name) => {
                let called = self.flow.set.lookup(name);
                let outputs = &self.flow.sensitive_outputs;
                called.is_some_and(|called| outputs.contains(&called))
            }
            None => {
                let from_data =
                    self.takes_sensitive(name, false) | self.takes_sensitive(data, false);
                from_data || !self.flow.trace.texts.is_empty()
            }
        }
    }

    /// What is found at the keys or indices, and whether it is made of something sensitive.
    fn index(&mut self, mut arguments: Vec<Entry>) -> (Paths, bool) {
        let base = arguments.remove(0);
        let (mut paths, mut is_sensitive) = (base.paths, base.is_sensitive);
        for argument in arguments {
            match argument.constant {
                Some(key) if !key.contains('.') => paths = extend(&paths, &key, self.site),
                _ => {
                    is_sensitive |= self.takes_sensitive(&argument, false);
                    self.flow.note(&paths, false);
                    self.flow.note(&argument.paths, false);
                    paths = inexact(paths);
                }
            }
        }
        (paths, is_sensitive)
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
            self.pass(called, data);
        }
    }

    /// Passes a dot to a template.
    fn pass(&mut self, called: u32, dot: &Entry) {
        let changed = &mut self.flow.changed;
        *changed |= !self.flow.dots.contains_key(&called);
        let dots = self.flow.dots.entry(called).or_default();
        Flow::join(dots, &dot.paths, changed);
        self.set_variable(called, 0, &dot.paths);
        if dot.is_sensitive || self.is_hidden() {
            self.hide(called);
        }
        if dot.is_sensitive {
            self.touch();
        }
    }

    fn template(&mut self, name: u32, argument: bool) {
        let dot = if argument {
            self.pop()
        } else {
            Entry::default()
        };
        self.flow
            .templates
            .insert(self.code.names[name as usize].as_ref().to_owned());
        self.flow.calls.insert(self.site, name);
        let Some(called) = self.flow.set.callee(self.index, name) else {
            return;
        };
        self.pass(called, &dot);
        if self.flow.sensitive_outputs.contains(&called) {
            self.flow.changed |= self.flow.sensitive_outputs.insert(self.index);
        }
    }
}

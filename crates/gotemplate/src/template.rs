//! Templates: parsed once, executed many times.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::code::{Code, Op};
use crate::environment::Environment;
use crate::error::{ExecError, ParseError};
use crate::exec;
use crate::library::{Library, Links, links};
use crate::parse;
use crate::reads::{Analysis, Reads};
use crate::report::{Rendered, Report};
use crate::sensitive::{Sensitive, Trace};
use crate::value::Value;

/// A parsed template with those associated with it. Cloning it is cheap, and clones can be executed
/// by several threads at once.
#[derive(Clone)]
pub struct Template {
    set: Arc<Set>,
    main: u32,
}

/// Templates that can call one another: those of a text, and a library's. The text's come first,
/// and hide the library's of the same name.
pub(crate) struct Set {
    /// The number of the first code: not 0 in what `tpl` adds to an execution.
    pub(crate) base: u32,
    own: Vec<Code>,
    own_links: Vec<Links>,
    /// The numbers of the text's templates, and of those that a text given to `tpl` can call.
    own_names: BTreeMap<Arc<str>, u32>,
    library: Library,
    /// The library's links, where the text defines what the library calls.
    relinked: Option<Vec<Links>>,
    pub(crate) environment: Environment,
    /// One for each of the text's codes, made when it is first asked for.
    analyses: Vec<OnceLock<Analysis>>,
    /// The same for the library's, if any of them is asked for.
    library_analyses: OnceLock<Vec<OnceLock<Analysis>>>,
    /// For each of the text's codes, the length of its latest output: the next one will be about as
    /// long.
    lengths: Vec<AtomicUsize>,
}

impl Template {
    /// Parses a text as the template `name`.
    pub fn parse(name: &str, text: &str, environment: &Environment) -> Result<Self, ParseError> {
        Self::parse_with(name, text, environment, &[])
    }

    /// Parses `associated` templates (name and text) first, in their order, then the text. A later
    /// definition takes the place of an earlier one unless it is empty, as in Go.
    pub fn parse_with(
        name: &str,
        text: &str,
        environment: &Environment,
        associated: &[(&str, &str)],
    ) -> Result<Self, ParseError> {
        let mut definitions = parse::Definitions::new();
        for (name, text) in associated.iter().copied().chain([(name, text)]) {
            for (name, code) in parse::parse(name, text, environment)? {
                if !code.empty || !definitions.contains_key(&name) {
                    definitions.insert(name, code);
                }
            }
        }
        Ok(Self::of(name, definitions, environment, Library::default()))
    }

    /// Parses a text that can call the templates of a library. What it defines itself takes the
    /// place of the library's of that name, unless it is empty; for this template alone.
    pub fn parse_in(
        name: &str,
        text: &str,
        environment: &Environment,
        library: &Library,
    ) -> Result<Self, ParseError> {
        let mut definitions = parse::parse(name, text, environment)?;
        definitions.retain(|name, code| !code.empty || library.index_of(name).is_none());
        Ok(Self::of(name, definitions, environment, library.clone()))
    }

    fn of(
        name: &str,
        definitions: parse::Definitions,
        environment: &Environment,
        library: Library,
    ) -> Self {
        let set = Arc::new(Set::new(definitions, environment, library));
        let main = set.lookup(name).unwrap_or_default();
        Self { set, main }
    }

    /// The template's name.
    pub fn name(&self) -> &str {
        &self.set.code(self.main).name
    }

    /// The text that it was parsed from.
    pub fn text(&self) -> &str {
        &self.set.code(self.main).source.text
    }

    /// The associated template of that name.
    pub fn lookup(&self, name: &str) -> Option<Self> {
        let main = self.set.lookup(name)?;
        Some(Self {
            set: Arc::clone(&self.set),
            main,
        })
    }

    /// What the template can read. Conservative: it may name more than an execution reads, never
    /// less.
    pub fn reads(&self) -> &Reads {
        &self.set.analysis(self.main).reads
    }

    /// Whether all it does is to insert values of fields into its text: then it can't fail for one
    /// data and not for another, if both have the same fields.
    pub fn only_inserts(&self) -> bool {
        let operations = &self.set.code(self.main).ops;
        operations.iter().all(Op::only_inserts)
    }

    /// Executes the template.
    pub fn render(&self, data: &Value) -> Result<Rendered, ExecError> {
        // None of a library's template: it is called by others, not executed by itself.
        let latest = self.set.lengths.get(self.main as usize);
        let length = latest.map_or(0, |length| length.load(Ordering::Relaxed));
        let mut output = Vec::with_capacity(with_slack(length));
        let report = self.render_into(data, &mut output)?;
        if let Some(latest) = latest {
            latest.store(output.len(), Ordering::Relaxed);
        }
        Ok(Rendered { output, report })
    }

    /// Executes the template, appending to `out`. After an error `out` has what was written before.
    pub fn render_into(&self, data: &Value, out: &mut Vec<u8>) -> Result<Report, ExecError> {
        exec::execute(&self.set, self.main, data, out, None)
    }

    /// Which of its operations handle what is sensitive; none where it reads nothing that is.
    pub fn trace(&self, sensitive: &Sensitive) -> Option<Trace> {
        self.set
            .analysis(self.main)
            .trace(&self.set, self.main, sensitive)
    }

    /// The same as [`Template::render_into`]; the report and the error say what was sensitive.
    pub fn render_traced(
        &self,
        data: &Value,
        trace: &Trace,
        out: &mut Vec<u8>,
    ) -> Result<Report, ExecError> {
        exec::execute(&self.set, self.main, data, out, Some(trace))
    }
}

/// Room for an output that is a little longer than the last one.
fn with_slack(length: usize) -> usize {
    length.saturating_add(length / 16)
}

impl fmt::Debug for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Template")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl Set {
    fn new(definitions: parse::Definitions, environment: &Environment, library: Library) -> Self {
        let own_names: BTreeMap<Arc<str>, u32> = definitions.keys().cloned().zip(0..).collect();
        let own: Vec<Code> = definitions.into_values().collect();
        let find = |name: &str| {
            let own_index = own_names.get(name).copied();
            own_index.or_else(|| Some(own.len() as u32 + library.index_of(name)?))
        };
        let own_links = own.iter().map(|code| links(code, find)).collect();
        let relinked = own_names.keys().any(|name| library.calls(name)).then(|| {
            let codes = library.codes().iter();
            codes.map(|code| links(code, find)).collect()
        });
        Self {
            base: 0,
            lengths: own.iter().map(|_| AtomicUsize::new(0)).collect(),
            analyses: own.iter().map(|_| OnceLock::new()).collect(),
            own,
            own_links,
            own_names,
            library,
            relinked,
            environment: environment.clone(),
            library_analyses: OnceLock::new(),
        }
    }

    /// Templates that come with those of another set, and before them. Their numbers begin at
    /// `base`.
    pub(crate) fn within(outer: &Self, base: u32, definitions: parse::Definitions) -> Self {
        let reachable = outer.names().filter_map(|name| {
            let number = outer.lookup(name)?;
            Some((Arc::from(name), number))
        });
        let mut own_names: BTreeMap<Arc<str>, u32> = reachable.collect();
        own_names.extend(definitions.keys().cloned().zip(base..));
        let own: Vec<Code> = definitions.into_values().collect();
        let find = |name: &str| own_names.get(name).copied();
        Self {
            base,
            lengths: Vec::new(),
            analyses: own.iter().map(|_| OnceLock::new()).collect(),
            own_links: own.iter().map(|code| links(code, find)).collect(),
            own,
            own_names,
            library: Library::default(),
            relinked: None,
            environment: outer.environment.clone(),
            library_analyses: OnceLock::new(),
        }
    }

    /// The number after that of the last code.
    pub(crate) fn end(&self) -> u32 {
        self.base + (self.own.len() + self.library.codes().len()) as u32
    }

    /// The code of a number of this set.
    pub(crate) fn code(&self, number: u32) -> &Code {
        let index = (number - self.base) as usize;
        match self.own.get(index) {
            Some(code) => code,
            None => &self.library.codes()[index - self.own.len()],
        }
    }

    /// The template that a name in a code's table stands for.
    pub(crate) fn callee(&self, code: u32, name: u32) -> Option<u32> {
        let (code, name) = ((code - self.base) as usize, name as usize);
        if let Some(links) = self.own_links.get(code) {
            return links[name];
        }
        let in_library = code - self.own.len();
        match &self.relinked {
            Some(links) => links[in_library][name],
            None => Some(self.own.len() as u32 + self.library.links()[in_library][name]?),
        }
    }

    /// The number of the template of that name.
    pub(crate) fn lookup(&self, name: &str) -> Option<u32> {
        let own = self.own_names.get(name).copied();
        own.or_else(|| Some(self.own.len() as u32 + self.library.index_of(name)?))
    }

    pub(crate) fn analysis(&self, main: u32) -> &Analysis {
        let index = main as usize;
        let cell = self.analyses.get(index).unwrap_or_else(|| {
            let cells = self.library_analyses.get_or_init(|| {
                self.library
                    .codes()
                    .iter()
                    .map(|_| OnceLock::new())
                    .collect()
            });
            &cells[index - self.own.len()]
        });
        cell.get_or_init(|| Analysis::of(self, main))
    }

    /// The names of all templates that can be called.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.own_names.keys().map(AsRef::as_ref);
        own.chain(self.library.names())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fields_tell_is_what_following_them_tells() {
        let long = format!("{{{{ .A{} }}}}", ".B".repeat(30));
        for text in [
            "",
            "text",
            "{{ .B }} {{ .A.B.C }}{{ .A }}\n{{ .B }}",
            "{{ .Instance.Hostname }} is {{ .Vars.NAME }}",
            &long,
            "{{ .A | len }}{{ with .B }}{{ .C }}{{ end }}",
        ] {
            let template = Template::parse("t", text, &Environment::new()).unwrap();
            let followed = Analysis::followed(&template.set, template.main);
            assert_eq!(*template.reads(), followed.reads, "{text}");
        }
    }
}

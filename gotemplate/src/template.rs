//! Templates: parsed once, executed many times.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::code::Code;
use crate::environment::{Environment, Limits, MissingKey};
use crate::error::{ExecError, ParseError};
use crate::exec;
use crate::parse;
use crate::reads::{Analysis, Reads};
use crate::report::{Rendered, Report};
use crate::value::Value;

/// A parsed template with those associated with it. Cloning it is cheap, and clones can be executed
/// by several threads at once.
#[derive(Clone)]
pub struct Template {
    set: Arc<Set>,
    main: u32,
}

/// Templates that can call one another.
pub(crate) struct Set {
    pub(crate) codes: Vec<Code>,
    by_name: BTreeMap<Arc<str>, u32>,
    pub(crate) missing_key: MissingKey,
    pub(crate) limits: Limits,
    /// One for each code, made when it is first asked for.
    analyses: Vec<OnceLock<Analysis>>,
    /// For each code, the length of its latest output: the next one will be about as long.
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
        let set = Arc::new(Set::new(definitions, environment));
        let main = set.by_name.get(name).copied().unwrap_or_default();
        Ok(Self { set, main })
    }

    /// The template's name.
    pub fn name(&self) -> &str {
        &self.set.codes[self.main as usize].name
    }

    /// The associated template of that name.
    pub fn lookup(&self, name: &str) -> Option<Self> {
        let main = *self.set.by_name.get(name)?;
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

    /// Executes the template.
    pub fn render(&self, data: &Value) -> Result<Rendered, ExecError> {
        let length = &self.set.lengths[self.main as usize];
        let mut output = Vec::with_capacity(with_slack(length.load(Ordering::Relaxed)));
        let report = self.render_into(data, &mut output)?;
        length.store(output.len(), Ordering::Relaxed);
        Ok(Rendered { output, report })
    }

    /// Executes the template, appending to `out`. After an error `out` has what was written before.
    pub fn render_into(&self, data: &Value, out: &mut Vec<u8>) -> Result<Report, ExecError> {
        exec::execute(&self.set, self.main, data, out)
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
    fn new(definitions: parse::Definitions, environment: &Environment) -> Self {
        let by_name: BTreeMap<Arc<str>, u32> = definitions.keys().cloned().zip(0..).collect();
        let mut codes: Vec<Code> = definitions.into_values().collect();
        for code in &mut codes {
            code.templates = code
                .names
                .iter()
                .map(|name| by_name.get(name).copied())
                .collect();
        }
        let lengths = codes.iter().map(|_| AtomicUsize::new(0)).collect();
        let analyses = codes.iter().map(|_| OnceLock::new()).collect();
        Self {
            codes,
            by_name,
            missing_key: environment.missing_key(),
            limits: environment.limits().clone(),
            analyses,
            lengths,
        }
    }

    pub(crate) fn analysis(&self, main: u32) -> &Analysis {
        self.analyses[main as usize].get_or_init(|| Analysis::of(self, main))
    }

    pub(crate) fn template_names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(AsRef::as_ref)
    }
}

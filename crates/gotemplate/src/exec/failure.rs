//! From what went wrong at an operation to an error that points into the template.

use super::found::{self, At, Sight};
use super::machine::Call;
use crate::code::{Code, Op, Site};
use crate::error::{Caller, Context, ExecError, ExecErrorKind, Problem};
use crate::parse::{line_of, show};
use crate::quote::quoted;
use crate::template::Set;
use crate::value::{ReadSite, Value};

/// What went wrong, before it is located. Boxed, because every step may return one.
#[derive(Debug)]
pub(super) struct Failure(Box<Detail>);

#[derive(Debug)]
struct Detail {
    /// Go's words.
    go: String,
    /// Ours, where they say more.
    message: Option<String>,
    hint: Option<String>,
    kind: ExecErrorKind,
    sights: Vec<(At, Sight)>,
    is_sensitive: bool,
}

/// Of the templates that called one another, so many are told, and the outermost.
const CALLERS: usize = 8;

pub(super) type Step<T> = Result<T, Failure>;

impl Failure {
    pub(super) fn new(go: impl Into<String>) -> Self {
        Self::of_kind(go.into(), ExecErrorKind::Template)
    }

    pub(super) fn of_function(go: String) -> Self {
        Self::of_kind(go, ExecErrorKind::Function)
    }

    pub(super) fn limit(name: &'static str, message: String) -> Self {
        Self::of_kind(message, ExecErrorKind::Limit(name))
    }

    fn of_kind(go: String, kind: ExecErrorKind) -> Self {
        Self(Box::new(Detail {
            go,
            message: None,
            hint: None,
            kind,
            sights: Vec::new(),
            is_sensitive: false,
        }))
    }

    pub(super) fn with_message(mut self, message: String) -> Self {
        self.0.message = Some(message);
        self
    }

    pub(super) fn with_sensitive(mut self, is_sensitive: bool) -> Self {
        self.0.is_sensitive = is_sensitive;
        self
    }

    pub(super) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.0.hint = hint;
        self
    }

    /// The same, saying where in a text given to `tpl` it is.
    pub(super) fn within_text(mut self, code: &Code, operation: u32) -> Self {
        let at = code.sites[operation as usize].start as usize;
        let text = &code.source.text;
        let detail = &mut *self.0;
        let problem = Problem::new(String::new(), "", text, at, None, String::new());
        let message = detail.message.take().unwrap_or_else(|| detail.go.clone());
        let (line, column) = (problem.line, problem.column);
        detail.message = Some(format!(
            "{message} at line {line}, column {column} of the text given to tpl"
        ));
        // What was there was there in the text, not where that was given.
        detail.sights.clear();
        self
    }

    /// Says what was there.
    pub(super) fn having_found(mut self, at: At, value: &Value) -> Self {
        self.0.sights.push((at, Sight::of(value)));
        self
    }

    /// The error, located at an operation of a template that `main` and `calls` led to.
    pub(super) fn locate(
        self,
        set: &Set,
        main: u32,
        at: ReadSite,
        calls: &[Call<'_>],
    ) -> ExecError {
        let detail = *self.0;
        let code = set.code(at.code);
        let site = code.sites[at.operation as usize];
        let source = &code.source;
        let node = match code.ops[at.operation as usize] {
            // Go shows a template's name quoted its own way.
            Op::Template {
                name,
                argument: false,
            } => {
                let name = quoted(&code.names[name as usize]);
                format!("{}template {name}{}", source.left, source.right)
            }
            _ => show(source, site),
        };
        let place = place(&source.text, site);
        let executing = quoted(&code.name);
        let go = format!(
            "template: {}:{place}: executing {executing} at <{node}>: {}",
            source.name, detail.go
        );
        let message = detail.message.unwrap_or(detail.go);
        let problem = Problem::new(
            message,
            &source.name,
            &source.text,
            site.start as usize,
            detail.hint,
            go,
        );
        let context = Context {
            executing: code.name.as_ref().to_owned(),
            expression: node,
            found: found::named(set, main, at, detail.sights),
            callers: callers(set, calls),
            is_sensitive: detail.is_sensitive,
        };
        ExecError::new(problem, detail.kind, context)
    }
}

/// The calls that led to where the machine is, the latest first.
fn callers(set: &Set, calls: &[Call<'_>]) -> Vec<Caller> {
    let outermost = calls.first().filter(|_| calls.len() > CALLERS);
    calls
        .iter()
        .rev()
        .take(CALLERS)
        .chain(outermost)
        // Texts given to `tpl` aren't places of the set.
        .filter(|call| call.code_index < set.end())
        .filter_map(|call| {
            let code = set.code(call.code_index);
            let operation = call.next - 1;
            let Op::Template { name, .. } = code.ops[operation] else {
                return None;
            };
            Some(Caller {
                template: code.source.name.as_ref().to_owned(),
                offset: code.sites[operation].start as usize,
                called: code.names[name as usize].as_ref().to_owned(),
            })
        })
        .collect()
}

/// Go's line, from 1, and byte in the line, from 0.
fn place(text: &str, site: Site) -> String {
    let before = &text.as_bytes()[..site.position as usize];
    let line = line_of(text, before.len());
    let line_start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |newline| newline + 1);
    format!("{line}:{}", before.len() - line_start)
}

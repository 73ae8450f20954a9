//! `include` and `tpl`: templates whose output is a string.
//!
//! They run on the machine's own stack of calls, under the limits of the one execution. What they
//! write goes to the output's end and is cut off there when they return.

use std::collections::BTreeSet;

use super::failure::{Failure, Step};
use super::item::Item;
use super::machine::{Call, Machine};
use super::unknown::is_absent;
use crate::function::{Action, Kind};
use crate::parse;
use crate::quote::quoted;
use crate::sensitive;
use crate::template::Set;
use crate::value::{ReadSite, Text, Unknown, Value};

/// What parsing a byte of a text counts.
const STEPS_A_BYTE: u64 = 16;

/// What was put aside while output is captured.
pub(super) struct Capture {
    /// Where the captured output begins.
    start: usize,
    unknown: BTreeSet<ReadSite>,
}

/// A text that `tpl` was given.
pub(super) struct Parsed<'d> {
    pub(super) set: &'d Set,
    /// The call that it was first given to, in the template proper.
    pub(super) from: ReadSite,
}

impl Machine<'_, '_> {
    /// Calls the template that the first argument names or, for `tpl`, is.
    pub(super) fn call_captured(&mut self, action: &Action, first: usize) -> Step<()> {
        let data = self.stack.pop();
        let name = self.pop();
        self.stack.truncate(first);
        let name = match name.value() {
            Value::Unknown(unknown) => {
                let unknown = unknown.read_at(self.here());
                self.stack.push(Item::owned(Value::Unknown(unknown)));
                return Ok(());
            }
            value => Text::from(value.as_bytes().unwrap_or_default()),
        };
        let code = match action {
            Action::Tpl => self.text(&name)?,
            _ => {
                let name = String::from_utf8_lossy(name.as_bytes());
                let found = self.scope().lookup(&name);
                found.ok_or_else(|| self.undefined_template(&name, true))?
            }
        };
        let data = data.unwrap_or_else(|| Item::owned(Value::Missing));
        let dot = if is_absent(data.value()) {
            Item::owned(Value::Missing)
        } else {
            data.unwrapped()
        };
        let capture = Capture {
            start: self.out.len(),
            unknown: std::mem::take(&mut self.unknown),
        };
        self.enter(code, dot, Some(Box::new(capture)))
    }

    /// The code of a text, parsed unless it was before.
    fn text(&mut self, text: &Text) -> Step<u32> {
        let scope = self.scope();
        let key = (scope.base, text.clone());
        if let Some(known) = self.texts_known.get(&key) {
            return Ok(*known);
        }
        self.charge(STEPS_A_BYTE * (64 + text.as_bytes().len() as u64))?;
        let source = std::str::from_utf8(text.as_bytes())
            .map_err(|_| tpl_failure("the text isn't UTF-8"))?;
        let definitions = parse::parse("tpl", source, &self.set.environment).map_err(|error| {
            let hint = error.hint.clone();
            let place = format!("line {}, column {}", error.line, error.column);
            tpl_failure(&format!("{} at {place} of the text", error.message)).with_hint(hint)
        })?;
        let base = match self.parsed.last() {
            Some(last) => last.set.end(),
            None => self.set.end(),
        };
        let from = self.here_in_template();
        let set = Set::within(scope, base, definitions);
        let set = self.texts_end.push(set);
        self.parsed.push(Parsed { set, from });
        let code = set
            .lookup("tpl")
            .ok_or_else(|| tpl_failure("the text defines no template"))?;
        self.texts_known.insert(key, code);
        Ok(code)
    }

    /// Ends a captured call: its output becomes a value.
    pub(super) fn end_capture(&mut self, capture: Capture) -> Step<()> {
        let text = self.out.split_off(capture.start);
        sensitive::truncate(&mut self.sensitive, capture.start);
        let unknown = std::mem::replace(&mut self.unknown, capture.unknown);
        self.charge((text.len() / 8) as u64)?;
        let value = if unknown.is_empty() {
            Value::Str(text.into())
        } else {
            let reason = "the template's output isn't known yet".to_owned();
            Value::Unknown(Unknown::new(reason, unknown.into_iter().collect()))
        };
        self.stack.push(Item::owned(value));
        Ok(())
    }

    /// Gives up on the captures that an error ended.
    pub(super) fn drop_captures(&mut self) {
        let captures = self.calls.iter_mut().filter_map(|call| call.capture.take());
        let mut outermost = None;
        for capture in captures {
            outermost.get_or_insert(capture.start);
            self.unknown.extend(capture.unknown);
        }
        if let Some(start) = outermost {
            self.out.truncate(start);
            sensitive::truncate(&mut self.sensitive, start);
        }
    }

    /// The operation that is being executed or, within a text given to `tpl`, the call of that.
    pub(super) fn here_in_template(&self) -> ReadSite {
        let here = self.here();
        if here.code < self.set.end() {
            return here;
        }
        let in_template = |call: &&Call<'_>| call.code_index < self.set.end();
        let call = self.calls.iter().rev().find(in_template);
        call.map_or(here, Call::site)
    }
}

fn tpl_failure(message: &str) -> Failure {
    Failure::of_function(format!("error calling tpl: {message}"))
}

impl Machine<'_, '_> {
    /// Fails unless the top is of a kind; nil and what isn't there stand for an empty map or list.
    pub(super) fn check_argument(&mut self, kind: Kind) -> Step<()> {
        let value = self.top().value();
        match kind.check(value) {
            Ok(()) => Ok(()),
            Err(message) => Err(Failure::new(message)),
        }
    }

    pub(super) fn undefined_template(&self, name: &str, included: bool) -> Failure {
        let names = self.scope().names();
        let hint = crate::environment::nearest(name, names);
        let hint = hint.map(|near| format!("did you mean {}?", quoted(&near)));
        let failure = if included {
            let name = quoted(name);
            Failure::of_function(format!(
                "error calling include: template {name} not defined"
            ))
        } else {
            Failure::new(format!("template {} not defined", quoted(name)))
        };
        failure.with_hint(hint)
    }
}

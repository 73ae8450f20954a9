//! Calls: of functions, built in or not, and of templates.

use super::failure::{Failure, Step};
use super::found::At;
use super::include::Capture;
use super::item::Item;
use super::machine::{Call, ITEMS_A_STEP, Machine};
use super::unknown::Search;
use crate::code::{Body, Code};
use crate::format;
use crate::function::{Action, Budget, FunctionError, Reason};
use crate::functions::{Argument, Builtin, Failure as CallFailure};
use crate::parse::show;
use crate::value::Value;

/// What a function takes and makes counts one step for so many bytes.
const BYTES_A_STEP: usize = 8;

impl<'d> Machine<'d, '_> {
    pub(super) fn check_format(&mut self, literal: bool) -> Step<()> {
        let code = self.code;
        let site = code.sites[self.next - 1];
        let value = self.top().value();
        if value.as_bytes().is_some() || matches!(value, Value::Unknown(_)) {
            return Ok(());
        }
        let go = match value {
            Value::Nil if literal => "cannot assign nil to string".to_owned(),
            _ if literal => format!("expected string; found {}", show(&code.source, site)),
            Value::Missing => "invalid value; expected string".to_owned(),
            other => format!(
                "wrong type for value; expected string; got {}",
                other.go_type()
            ),
        };
        Err(Failure::new(go))
    }

    /// One argument of `and` or `or`: decides, or gives way to the next.
    pub(super) fn short_circuit(&mut self, or: bool, piped: bool, target: u32) {
        let item = self.pop();
        let unknown = self.is_unknown(&item);
        if unknown || item.value().truth() == or {
            if piped {
                self.pop();
            }
            self.stack.push(item);
            self.next = target as usize;
        }
    }

    pub(super) fn call(
        &mut self,
        function: u32,
        count: usize,
        piped: bool,
        tested: bool,
    ) -> Step<()> {
        let callee = &self.code.functions[function as usize];
        let total = count + usize::from(piped);
        let first = self.stack.len().saturating_sub(total);
        if piped {
            self.stack[first..].rotate_left(1);
        }
        if piped && let Body::Other(callee) = &callee.body {
            self.check_argument(callee.kind(total - 1))?;
        }
        let mut search = Search::new(self.steps.saturating_mul(ITEMS_A_STEP));
        let unknown = search.among(&callee.body, &self.stack[first..]);
        let taken: usize = self.stack[first..]
            .iter()
            .filter_map(|item| item.value().as_bytes())
            .map(<[u8]>::len)
            .sum();
        self.charge((taken / BYTES_A_STEP) as u64 + search.visited / ITEMS_A_STEP)?;
        if let Some(mut unknown) = unknown {
            if unknown.reads().is_empty() {
                unknown = unknown.read_at(self.here());
            }
            self.stack.truncate(first);
            self.stack.push(Item::owned(Value::Unknown(unknown)));
            return Ok(());
        }
        let limits = self.set.environment.limits();
        let mut given = Vec::new();
        let result = match &callee.body {
            Body::Builtin(builtin) => {
                let shown = || match self.stack.last() {
                    Some(final_value) if count == 0 => described(final_value.value()),
                    _ => first_argument(self.code, self.next - 1),
                };
                let call = |arguments: &[Argument<'_>]| {
                    builtin.call(arguments, limits.output_bytes, limits.printf_width, shown)
                };
                match &self.stack[first..] {
                    // Two at most is what calls nearly always have: no allocation for those.
                    [one] => call(&[argument(one)]),
                    [one, two] => call(&[argument(one), argument(two)]),
                    items => call(&items.iter().map(argument).collect::<Vec<_>>()),
                }
            }
            Body::Other(function) => {
                let action = function.action();
                if matches!(action, Action::Include | Action::Tpl) {
                    return self.call_captured(action, first);
                }
                let kept = std::mem::take(&mut self.kept);
                let mut budget = Budget::new(self.steps, limits.output_bytes, kept);
                given = self
                    .stack
                    .drain(first..)
                    .map(|item| match item.into_value() {
                        Value::Missing => Value::Nil,
                        value => value,
                    })
                    .collect();
                let result = match action {
                    Action::Budgeted(body) => body(&mut budget, &given),
                    Action::Plain(body) => body(&given),
                    Action::Include | Action::Tpl => Ok(Value::Nil),
                };
                (self.steps, self.kept) = budget.end();
                match result.map_err(FunctionError::into_reason) {
                    Ok(value) => Ok(value),
                    Err(Reason::Message(message)) => Err(CallFailure::Error(message)),
                    Err(Reason::Output) => Err(CallFailure::TooBig),
                    Err(Reason::Steps) => return Err(self.step_limit()),
                }
            }
        };
        let value = result.map_err(|failure| match failure {
            CallFailure::Error(message) => {
                let name = &callee.name;
                let go = format!("error calling {name}: {message}");
                let failure = Failure::of_function(go);
                let left = self.stack[first..].iter().map(Item::value);
                arguments_found(failure, left.chain(&given), count)
            }
            CallFailure::TooBig => self.output_limit(),
            CallFailure::TooWide(width) => {
                let limit = limits.printf_width;
                let message =
                    format!("a width or precision of {width} is above the limit of {limit}");
                Failure::limit("printf_width", message)
            }
        })?;
        // What isn't in something that isn't set is told with that.
        let is_within_unset = matches!(self.stack.get(first).map(Item::value), Some(Value::Unset));
        self.stack.truncate(first);
        match &value {
            Value::Str(text) => self.charge((text.as_bytes().len() / BYTES_A_STEP) as u64)?,
            Value::Unset if !tested && !is_within_unset && callee.is(Builtin::Index) => {
                self.unset.insert(self.here());
            }
            _ => {}
        }
        let item = match value {
            // Fresh from the data, or from the function itself.
            Value::Unknown(unknown) if unknown.reads().is_empty() => {
                Value::Unknown(unknown.read_at(self.here()))
            }
            value => value,
        };
        self.stack.push(Item::owned(item).unwrapped());
        Ok(())
    }

    pub(super) fn call_template(&mut self, name: u32, argument: bool) -> Step<()> {
        let dot = if argument {
            self.pop()
        } else {
            Item::owned(Value::Missing)
        };
        let Some(code_index) = self.scope().callee(self.code_index, name) else {
            return Err(self.undefined_template(&self.code.names[name as usize], false));
        };
        self.enter(code_index, dot, None)
    }

    /// Goes on with a template's code, and comes back when that ends.
    pub(super) fn enter(
        &mut self,
        code_index: u32,
        dot: Item<'d>,
        capture: Option<Box<Capture>>,
    ) -> Step<()> {
        let limit = self.set.environment.limits().template_depth;
        if self.calls.len() >= limit as usize {
            let go = format!("exceeded maximum template depth ({limit})");
            let message = format!("templates call one another deeper than the limit of {limit}");
            return Err(Failure::limit("template_depth", go).with_message(message));
        }
        let outer = std::mem::replace(&mut self.dot, dot.clone());
        self.calls.push(Call {
            code_index: self.code_index,
            next: self.next,
            dot: outer,
            first_variable: self.first_variable,
            capture,
        });
        self.first_variable = self.variables.len();
        self.variables.push((0, dot));
        self.code_index = code_index;
        self.code = self.code_at(code_index);
        self.next = 0;
        Ok(())
    }
}

/// Says what a function was given: `count` arguments as written, then what was piped.
fn arguments_found<'v>(
    failure: Failure,
    values: impl Iterator<Item = &'v Value>,
    count: usize,
) -> Failure {
    values.enumerate().fold(failure, |failure, (index, value)| {
        let at = if index < count {
            At::Argument(index)
        } else {
            At::Piped
        };
        failure.having_found(at, value)
    })
}

fn argument<'i>(item: &'i Item<'_>) -> Argument<'i> {
    Argument {
        value: item.value(),
        interface: item.interface,
    }
}

/// A value as Go's `%v` shows it, for messages.
pub(super) fn shown(value: &Value) -> String {
    String::from_utf8_lossy(&format::with_verb(value, b'v')).into_owned()
}

/// Go's `reflect.Value.String`: what a value that was piped is called.
fn described(value: &Value) -> String {
    match value {
        Value::Str(text) | Value::Number(text) => {
            String::from_utf8_lossy(text.as_bytes()).into_owned()
        }
        other => format!("<{} Value>", other.go_type()),
    }
}

/// What a call's first argument looks like in the source.
fn first_argument(code: &Code, operation: usize) -> String {
    let call = show(&code.source, code.sites[operation]);
    call.split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned()
}

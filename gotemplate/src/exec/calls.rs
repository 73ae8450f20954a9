//! Calls: of functions, built in or not, and of templates.

use super::failure::{Failure, Step};
use super::item::Item;
use super::machine::{Call, ITEMS_A_STEP, Machine};
use super::unknown::Search;
use crate::code::{Body, Code};
use crate::environment::nearest;
use crate::format;
use crate::functions::{Argument, Builtin, Failure as CallFailure};
use crate::parse::show;
use crate::quote::quoted;
use crate::value::Value;

/// What a function takes and makes counts one step for so many bytes.
const BYTES_A_STEP: usize = 8;

impl Machine<'_, '_> {
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
        let mut search = Search::default();
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
        let limits = &self.set.limits;
        let result = match &callee.body {
            Body::Builtin(builtin) => {
                let shown = || first_argument(self.code, self.next - 1);
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
                let arguments: Vec<Value> = self
                    .stack
                    .drain(first..)
                    .map(|item| match item.into_value() {
                        Value::Missing => Value::Nil,
                        value => value,
                    })
                    .collect();
                function
                    .call(&arguments)
                    .map_err(|error| CallFailure::Error(error.to_string()))
            }
        };
        self.stack.truncate(first);
        let value = result.map_err(|failure| match failure {
            CallFailure::Error(message) => {
                let name = &callee.name;
                Failure::of_function(format!("error calling {name}: {message}"))
            }
            CallFailure::TooBig => self.output_limit(),
        })?;
        match &value {
            Value::Str(text) => self.charge((text.as_bytes().len() / BYTES_A_STEP) as u64)?,
            Value::Unset if !tested && callee.is(Builtin::Index) => {
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
        let Some(code_index) = self.code.templates[name as usize] else {
            let name = &self.code.names[name as usize];
            let hint = nearest(name, self.set.template_names());
            let hint = hint.map(|near| format!("did you mean {}?", quoted(&near)));
            let go = format!("template {} not defined", quoted(name));
            return Err(Failure::new(go).with_hint(hint));
        };
        let limit = self.set.limits.template_depth;
        if self.calls.len() >= limit as usize {
            let message = format!("exceeded maximum template depth ({limit})");
            return Err(Failure::limit("template_depth", message));
        }
        let outer = std::mem::replace(&mut self.dot, dot.clone());
        self.calls.push(Call {
            code_index: self.code_index,
            next: self.next,
            dot: outer,
            first_variable: self.first_variable,
        });
        self.first_variable = self.variables.len();
        self.variables.push((0, dot));
        self.code_index = code_index;
        self.code = &self.set.codes[code_index as usize];
        self.next = 0;
        Ok(())
    }
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

/// What a call's first argument looks like in the source.
fn first_argument(code: &Code, operation: usize) -> String {
    let call = show(&code.source, code.sites[operation]);
    call.split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned()
}

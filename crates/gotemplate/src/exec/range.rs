//! Ranges: what can be iterated over, and one iteration after the other.

use super::calls::shown;
use super::failure::{Failure, Step};
use super::found::At;
use super::item::{Held, Item};
use super::machine::{Iteration, Machine};
use crate::value::Value;

impl Machine<'_, '_> {
    pub(super) fn begin_range(&mut self, range: u32) -> Step<()> {
        let info = self.code.ranges[range as usize];
        let mut item = self.pop();
        if self.is_unknown(&item) {
            self.skip_to(info.end);
            return Ok(());
        }
        if let Value::Dict(dict) = item.value() {
            // As it is now: Go, too, looks up the keys and values first.
            item = Item::owned(Value::Map(dict.map()));
        }
        let length = match item.value() {
            Value::Int(_) | Value::Int64(_) | Value::Uint8(_) if info.variable_count > 1 => {
                let shown = shown(item.value());
                return Err(Failure::new(format!(
                    "can't use {shown} to iterate over more than one variable"
                ))
                .having_found(At::Whole, item.value()));
            }
            Value::Int(count) | Value::Int64(count) => usize::try_from(*count).unwrap_or(0),
            Value::Uint8(count) => (*count).into(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            Value::Nil | Value::Missing | Value::Unset => 0,
            other => {
                let shown = shown(other);
                let go = format!("range can't iterate over {shown}");
                return Err(Failure::new(go).having_found(At::Whole, other));
            }
        };
        if length == 0 {
            self.next = info.otherwise as usize;
            return Ok(());
        }
        let variables = self.variables.len();
        let dot = self.dot.clone();
        let block = self.block();
        block.dot = Some(dot);
        block.iteration = Some(Iteration {
            over: item.held,
            index: 0,
            length,
            variables,
        });
        self.iterate(range)
    }

    /// Begins the next iteration, or goes to the end.
    pub(super) fn iterate(&mut self, range: u32) -> Step<()> {
        let info = self.code.ranges[range as usize];
        let iteration = self.block().iteration.as_mut();
        let iteration = iteration.expect("`Range` comes before `Next`");
        if iteration.index == iteration.length {
            self.next = info.end as usize;
            return Ok(());
        }
        let index = iteration.index;
        iteration.index += 1;
        let variables = iteration.variables;
        let (key, item) = match &iteration.over {
            Held::Borrowed(over) => part(over, index),
            Held::Owned(over) => {
                let (key, item) = part(over, index);
                // The collection itself may go away before its item does.
                let interface = item.interface;
                let key = Item::owned(key.into_value());
                (
                    key,
                    Item::owned(item.into_value()).through_interface(interface),
                )
            }
        };
        self.variables.truncate(variables);
        let names = info.variables;
        match (info.variable_count, info.assigns) {
            (0, _) => {}
            (1, true) => *self.variable(names[0])? = item.clone(),
            (_, true) => {
                *self.variable(names[0])? = key;
                *self.variable(names[1])? = item.clone();
            }
            (count, false) => {
                self.variables[variables - 1].1 = item.clone();
                if count > 1 {
                    self.variables[variables - 2].1 = key;
                }
            }
        }
        self.dot = item;
        self.next = info.body as usize;
        Ok(())
    }
}

/// The key and the item at an index of what is ranged over.
fn part(over: &Value, index: usize) -> (Item<'_>, Item<'_>) {
    let number = || Item::owned(Value::Int(index as i64));
    match over {
        Value::List(list) => {
            let item = Item::borrowed(&list.items()[index]);
            (number(), item.through_interface(list.is_of_any()))
        }
        Value::Map(map) => {
            let (key, value) = &map.entries()[index];
            let value = Item::borrowed(value).through_interface(!map.is_string_typed());
            (Item::owned(Value::Str(key.clone())), value)
        }
        Value::Int64(_) => (number(), Item::owned(Value::Int64(index as i64))),
        Value::Uint8(_) => (number(), Item::owned(Value::Uint8(index as u8))),
        _ => (number(), number()),
    }
}

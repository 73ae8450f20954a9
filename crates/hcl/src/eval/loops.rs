//! `for` expressions.

use std::sync::Arc;

use super::{Frame, Run, Scoped, described};
use crate::error::{Error, Span};
use crate::syntax::{Expression, For};
use crate::types::Type;
use crate::value::{Entries, Kind, Value};

/// What one element gives.
enum Turn {
    /// The condition is false.
    LeftOut,
    /// For an object with a key.
    Result(Option<Arc<str>>, Value),
}

impl Run<'_> {
    pub(super) fn for_expression(
        &mut self,
        made: &For,
        span: Span,
        frame: Scoped<'_>,
    ) -> Option<Value> {
        let collection = self.value(&made.collection, frame)?;
        let turns = self.turns(&collection, &made.collection)?;
        let mut sensitive = collection.sensitive;
        let mut list = Vec::new();
        let mut groups: Vec<(Arc<str>, Vec<Value>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        let mut first_error = None;
        for (key, value) in turns {
            self.charge(1, 0, span)?;
            let inner = Frame {
                outer: frame,
                key: made.key_name.as_ref().map(|name| (name, key)),
                value: (&made.value_name, value),
            };
            let before = self.errors.len();
            match self.turn(made, Some(&inner), &mut sensitive) {
                Some(Turn::LeftOut) => {}
                Some(Turn::Result(None, result)) => list.push(result),
                Some(Turn::Result(Some(key), result)) => {
                    let place = *places.entry(key.clone()).or_insert(groups.len());
                    if place == groups.len() {
                        groups.push((key, vec![result]));
                    } else if made.groups {
                        groups[place].1.push(result);
                    } else {
                        let at = made.key.as_ref().map_or(span, |key| key.span);
                        let shown = if sensitive {
                            String::new()
                        } else {
                            format!(" \"{key}\"")
                        };
                        return self.fail(
                            Error::new(at, format!("Two elements have the key{shown}")).hint(
                                "to have all of one key in a list, put `...` behind the value",
                            ),
                        );
                    }
                }
                None => {
                    // One turn's errors stand for those of the others.
                    let errors = self.errors.split_off(before);
                    first_error.get_or_insert(errors);
                    break;
                }
            }
        }
        if let Some(errors) = first_error {
            self.errors.extend(errors);
            return None;
        }
        let result = if made.key.is_none() {
            Value::tuple(list)
        } else {
            let entries: Entries = groups
                .into_iter()
                .filter_map(|(key, mut values)| {
                    let value = if made.groups {
                        Value::tuple(values)
                    } else {
                        values.pop()?
                    };
                    Some((key, value))
                })
                .collect();
            Value::object(entries)
        };
        Some(result.with_span(span).or_sensitive(sensitive))
    }

    /// Key and result of one turn.
    fn turn(&mut self, made: &For, frame: Scoped<'_>, sensitive: &mut bool) -> Option<Turn> {
        if let Some(condition) = &made.condition {
            let value = self.value(condition, frame)?;
            let what = "The condition of `for`";
            let value = self.converted(&value, &Type::Bool, condition.span, what)?;
            *sensitive |= value.sensitive;
            if !value.as_bool()? {
                return Some(Turn::LeftOut);
            }
        }
        let key = match &made.key {
            None => None,
            Some(expression) => {
                let key = self.value(expression, frame)?;
                *sensitive |= key.sensitive;
                Some(self.key(&key, expression.span)?)
            }
        };
        Some(Turn::Result(key, self.value(&made.result, frame)?))
    }

    /// Key and value of each turn.
    pub(super) fn turns(
        &mut self,
        collection: &Value,
        written: &Expression,
    ) -> Option<Vec<(Value, Value)>> {
        match &collection.kind {
            Kind::Tuple(elements) | Kind::List(_, elements) => Some(
                elements
                    .iter()
                    .enumerate()
                    .map(|(index, element)| (Value::number(index), element.clone()))
                    .collect(),
            ),
            Kind::Set(_, elements) => Some(
                elements
                    .iter()
                    .map(|element| (element.clone(), element.clone()))
                    .collect(),
            ),
            Kind::Object(entries) | Kind::Map(_, entries) => Some(
                entries
                    .iter()
                    .map(|(key, element)| (Value::string(key.clone()), element.clone()))
                    .collect(),
            ),
            Kind::Null(_) | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => self.fail(
                Error::new(
                    written.span,
                    "`for` goes through lists, sets, maps and objects",
                )
                .detail(format!("this is {}", described(collection))),
            ),
        }
    }
}

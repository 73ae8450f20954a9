//! The order of a set's elements: by value for strings, numbers and booleans; else by a text of
//! each element that is different for different elements, as go-cty has it.

use std::cmp::Ordering;

use super::{Kind, Value};

pub(super) fn ordered(mut elements: Vec<Value>) -> Vec<Value> {
    if elements.iter().all(|element| rank(element).is_some()) {
        elements.sort_by(compare_primitives);
        elements.dedup();
        return elements;
    }
    let mut keyed: Vec<_> = elements
        .into_iter()
        .map(|element| (key(&element), element))
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.dedup_by(|a, b| a.0 == b.0 && a.1 == b.1);
    keyed.into_iter().map(|(_, element)| element).collect()
}

/// `null` comes last.
fn rank(value: &Value) -> Option<u8> {
    match value.kind {
        Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => Some(0),
        Kind::Null(_) => Some(1),
        _ => None,
    }
}

fn compare_primitives(a: &Value, b: &Value) -> Ordering {
    match (&a.kind, &b.kind) {
        (Kind::Bool(a), Kind::Bool(b)) => a.cmp(b),
        (Kind::Number(a), Kind::Number(b)) => a.cmp(b),
        (Kind::String(a), Kind::String(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn key(value: &Value) -> String {
    let mut text = String::new();
    write_key(value, &mut text);
    text
}

fn write_key(value: &Value, text: &mut String) {
    match &value.kind {
        Kind::Null(_) => text.push('~'),
        Kind::Bool(value) => text.push(if *value { 'T' } else { 'F' }),
        Kind::Number(number) => text.push_str(&number.to_string()),
        Kind::String(string) => text.push_str(&crate::format::quote(string)),
        Kind::Tuple(elements) => write_elements(elements.iter(), ['<', '>'], text),
        Kind::Object(entries) => write_elements(entries.values(), ['<', '>'], text),
        Kind::List(_, elements) | Kind::Set(_, elements) => {
            write_elements(elements.iter(), ['[', ']'], text);
        }
        Kind::Map(_, entries) => {
            text.push('{');
            for (name, element) in entries.iter() {
                text.push_str(&crate::format::quote(name));
                text.push(':');
                write_key(element, text);
                text.push(';');
            }
            text.push('}');
        }
    }
}

fn write_elements<'a>(
    elements: impl Iterator<Item = &'a Value>,
    [open, close]: [char; 2],
    text: &mut String,
) {
    text.push(open);
    for element in elements {
        write_key(element, text);
        text.push(';');
    }
    text.push(close);
}

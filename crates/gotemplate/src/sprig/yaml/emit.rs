//! From a value to YAML: libyaml's emitter, told what go-yaml tells its own.

use std::cmp::Ordering;

use libyaml_safer::{Emitter, Encoding, Event, MappingStyle, ScalarStyle, SequenceStyle};

use super::resolve::{Scalar, is_base60, resolve};
use crate::function::{Budget, FunctionError};
use crate::sprig::arguments::{DEPTH, fail, map, too_deep};
use crate::sprig::json;
use crate::unicode::is_letter;
use crate::value::Value;

/// Writes a document.
pub(super) fn write(budget: &mut Budget, value: &Value) -> Result<Vec<u8>, FunctionError> {
    let mut out = Vec::new();
    let mut emitter = Emitter::new();
    emitter.set_output_string(&mut out);
    emitter.set_unicode(true);
    let mut writer = Writer {
        budget,
        emitter,
        wide: Vec::new(),
        has_placeholder: false,
    };
    writer.emit(Event::stream_start(Encoding::Utf8))?;
    writer.emit(Event::document_start(None, &[], true))?;
    writer.value(value, 0)?;
    writer.emit(Event::document_end(true))?;
    writer.emit(Event::stream_end())?;
    let Writer {
        wide,
        has_placeholder,
        ..
    } = writer;
    // Newer libyaml says that a text with line breaks at its end has ended; go-yaml doesn't.
    if out.ends_with(b"\n...\n") {
        out.truncate(out.len() - 4);
    }
    if !wide.is_empty() && !has_placeholder {
        out = with_wide(&out, &wide);
    }
    budget.check_size(out.len())?;
    Ok(out)
}

/// go-yaml escapes the characters that UTF-16 has two units for, libyaml doesn't: this one, which
/// both escape and which can't be in a text, goes through the emitter in place of them.
const PLACEHOLDER: char = '\u{fffe}';
const ESCAPED_PLACEHOLDER: &str = "\\uFFFE";

/// The output with the characters that placeholders stand for.
fn with_wide(out: &[u8], wide: &[char]) -> Vec<u8> {
    let text = String::from_utf8_lossy(out);
    let mut made = String::with_capacity(text.len());
    let mut wide = wide.iter();
    for (index, part) in text.split(ESCAPED_PLACEHOLDER).enumerate() {
        if index > 0
            && let Some(character) = wide.next()
        {
            made.push_str(&format!("\\U{:08X}", u32::from(*character)));
        }
        made.push_str(part);
    }
    made.into_bytes()
}

struct Writer<'b, 'w> {
    budget: &'b mut Budget,
    emitter: Emitter<'w>,
    /// The characters that placeholders stand for, in order.
    wide: Vec<char>,
    /// What an escaped placeholder looks like is somewhere in the texts themselves.
    has_placeholder: bool,
}

impl Writer<'_, '_> {
    fn emit(&mut self, event: Event) -> Result<(), FunctionError> {
        self.emitter
            .emit(event)
            .map_err(|error| FunctionError::new(error.to_string()))
    }

    fn value(&mut self, value: &Value, depth: u32) -> Result<(), FunctionError> {
        if depth > DEPTH {
            return too_deep();
        }
        // A line begins with as many spaces as it is deep.
        self.budget.charge(1 + depth as usize / 4)?;
        match value {
            Value::Nil | Value::Missing => self.plain("null"),
            Value::Bool(truth) => self.plain(if *truth { "true" } else { "false" }),
            Value::Int(number) | Value::Int64(number) => self.plain(&number.to_string()),
            Value::Uint8(number) => self.plain(&number.to_string()),
            Value::Float(number) => {
                let shown = float(*number)?;
                self.plain(&shown)
            }
            Value::Complex(..) => fail("json: unsupported type: complex128"),
            Value::Number(text) => {
                let shown = String::from_utf8_lossy(text.as_bytes()).into_owned();
                self.plain(&shown)
            }
            Value::Str(text) => self.text(text.as_bytes()),
            Value::Unset => self.text(b""),
            Value::List(list) => {
                let style = SequenceStyle::Block;
                self.emit(Event::sequence_start(None, None, true, style))?;
                for item in list.items() {
                    self.value(item, depth + 1)?;
                }
                self.emit(Event::sequence_end())
            }
            Value::Map(_) | Value::Dict(_) => {
                let map = map(value);
                let entries = map.entries().iter();
                let entries = entries.map(|(key, item)| (key.as_bytes(), item));
                self.mapping(entries.collect(), depth)
            }
            Value::Struct(fields) => match fields.text() {
                Some(text) => self.text(text.as_bytes()),
                None => {
                    let fields = fields.fields();
                    let fields = fields.map(|(name, item)| (name.as_bytes(), item));
                    self.mapping(fields.collect(), depth)
                }
            },
            Value::Unknown(_) => fail("the value isn't known yet"),
        }
    }

    fn mapping(&mut self, entries: Vec<(&[u8], &Value)>, depth: u32) -> Result<(), FunctionError> {
        let named = entries.into_iter().map(|(key, item)| {
            let name: Vec<char> = String::from_utf8_lossy(key).chars().collect();
            (name, key, item)
        });
        let named: Vec<_> = named.collect();
        let entries = sort(&named, &|left, right| natural(&left.0, &right.0));
        self.emit(Event::mapping_start(None, None, true, MappingStyle::Block))?;
        for (_, key, item) in entries {
            self.text(key)?;
            self.value(item, depth + 1)?;
        }
        self.emit(Event::mapping_end())
    }

    fn plain(&mut self, text: &str) -> Result<(), FunctionError> {
        self.scalar(text, ScalarStyle::Plain)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle) -> Result<(), FunctionError> {
        self.budget.charge(text.len() / 4)?;
        self.emit(Event::scalar(None, None, text, true, true, style))
    }

    fn text(&mut self, text: &[u8]) -> Result<(), FunctionError> {
        let text = String::from_utf8_lossy(text);
        if text.chars().any(is_control) {
            // It can't stand in the JSON by way of which Kubernetes makes YAML.
            return fail("yaml: control characters are not allowed");
        }
        // Within JSON it is a line break, and those become spaces.
        let mut text = text.replace('\u{85}', " ");
        self.has_placeholder |= text.contains(ESCAPED_PLACEHOLDER);
        let is_wide = |each: &char| u32::from(*each) > 0xffff;
        if text.chars().any(|each| is_wide(&each)) {
            self.wide.extend(text.chars().filter(is_wide));
            let narrow = |each| if is_wide(&each) { PLACEHOLDER } else { each };
            text = text.chars().map(narrow).collect();
        }
        let style = if text.contains('\n') {
            ScalarStyle::Literal
        } else if text == "<<" || resolve(&text) == Scalar::Text && !is_base60(&text) {
            ScalarStyle::Plain
        } else {
            ScalarStyle::DoubleQuoted
        };
        self.scalar(&text, style)
    }
}

/// Control characters that JSON doesn't escape and YAML doesn't take.
fn is_control(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

/// A number by way of JSON: whole ones without a point.
fn float(number: f64) -> Result<String, FunctionError> {
    let json = json::float(number)?;
    if let Ok(number) = json.parse::<i64>() {
        return Ok(number.to_string());
    }
    if json.parse::<u64>().is_ok() {
        return Ok(json);
    }
    // Go's `%g` with as few digits as will do.
    let shown = format!("{number:e}");
    let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return Ok(format!("{digits}e{sign}{:02}", exponent.abs()));
    }
    Ok(format!("{number}"))
}

/// The order in which go-yaml writes keys: signs, then numbers by their size, then letters.
///
/// It isn't transitive (10 before 1a, 1a before 9, 9 before 10), so what sorts by it must do with
/// that.
fn natural(left: &[char], right: &[char]) -> Ordering {
    let same = left
        .iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count();
    let (Some(first), Some(second)) = (left.get(same), right.get(same)) else {
        return left.len().cmp(&right.len());
    };
    match (is_letter(*first), is_letter(*second)) {
        (true, true) => return first.cmp(second),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // What follows a digit that counts is worth more for a zero than for nothing.
    let before = left[..same]
        .iter()
        .rev()
        .take_while(|each| each.is_ascii_digit());
    let zero = *first == '0' || *second == '0';
    let lead = i64::from(zero && before.into_iter().any(|digit| *digit != '0'));
    let number = |text: &[char]| {
        let digits = text[same..].iter().map_while(|each| each.to_digit(10));
        digits.fold((lead, 0), |(value, count): (i64, usize), digit| {
            (value.wrapping_mul(10).wrapping_add(digit.into()), count + 1)
        })
    };
    number(left).cmp(&number(right)).then(first.cmp(second))
}

/// Sorts by an order that may not be one: the standard library's sort might panic.
fn sort<T: Clone>(items: &[T], order: &impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    if items.len() < 2 {
        return items.to_vec();
    }
    let (left, right) = items.split_at(items.len() / 2);
    let (left, right) = (sort(left, order), sort(right, order));
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let mut sorted = Vec::with_capacity(items.len());
    while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
        let next = if order(second, first).is_lt() {
            right.next()
        } else {
            left.next()
        };
        sorted.extend(next);
    }
    sorted.extend(left);
    sorted.extend(right);
    sorted
}

//! From a value to YAML: libyaml's emitter, told what go-yaml tells its own.

use libyaml_safer::{Emitter, Encoding, Event, MappingStyle, ScalarStyle, SequenceStyle};

use super::resolve::{Scalar, is_base60, resolve};
use crate::function::{Budget, FunctionError};
use crate::sprig::arguments::{DEPTH, fail, map, too_deep};
use crate::sprig::json;
use crate::value::Value;

/// Writes a document.
pub(super) fn write(budget: &mut Budget, value: &Value) -> Result<Vec<u8>, FunctionError> {
    let mut out = Vec::new();
    let mut emitter = Emitter::new();
    emitter.set_output_string(&mut out);
    emitter.set_unicode(true);
    let mut writer = Writer { budget, emitter };
    writer.emit(Event::stream_start(Encoding::Utf8))?;
    writer.emit(Event::document_start(None, &[], true))?;
    writer.value(value, 0)?;
    writer.emit(Event::document_end(true))?;
    writer.emit(Event::stream_end())?;
    drop(writer);
    budget.check_size(out.len())?;
    Ok(out)
}

struct Writer<'b, 'w> {
    budget: &'b mut Budget,
    emitter: Emitter<'w>,
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

    fn mapping(
        &mut self,
        mut entries: Vec<(&[u8], &Value)>,
        depth: u32,
    ) -> Result<(), FunctionError> {
        entries.sort_by(|(left, _), (right, _)| natural(left, right));
        self.emit(Event::mapping_start(None, None, true, MappingStyle::Block))?;
        for (key, item) in entries {
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
        let style = if text.contains('\n') {
            ScalarStyle::Literal
        } else if resolve(&text) == Scalar::Text && !is_base60(&text) {
            ScalarStyle::Plain
        } else if text == "<<" {
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
    // Go's shortest form: with an exponent below 1e-4 and from 1e21 on.
    let shown = format!("{number:e}");
    let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let places = digits
        .len()
        .saturating_sub(usize::from(digits.starts_with('-')) + 2) as i32;
    if exponent < -4 || exponent >= (places + 1).max(21) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return Ok(format!("{digits}e{sign}{:02}", exponent.abs()));
    }
    Ok(format!("{number}"))
}

/// The order in which go-yaml writes keys: numbers within names by their size, letters after all
/// else.
fn natural(left: &[u8], right: &[u8]) -> std::cmp::Ordering {
    let left: Vec<char> = String::from_utf8_lossy(left).chars().collect();
    let right: Vec<char> = String::from_utf8_lossy(right).chars().collect();
    let same = left
        .iter()
        .zip(&right)
        .take_while(|(left, right)| left == right)
        .count();
    let (Some(first), Some(second)) = (left.get(same), right.get(same)) else {
        return left.len().cmp(&right.len());
    };
    let digits_before = left[..same]
        .iter()
        .rev()
        .take_while(|each| each.is_numeric())
        .count();
    let (left_letter, right_letter) = (first.is_alphabetic(), second.is_alphabetic());
    if left_letter != right_letter {
        // Within a number the one that goes on is the greater.
        let within = digits_before > 0;
        return if within {
            right_letter.cmp(&left_letter)
        } else {
            left_letter.cmp(&right_letter)
        };
    }
    if left_letter {
        return first.cmp(second);
    }
    if first.is_numeric() || second.is_numeric() {
        let start = same - digits_before;
        let number = |text: &[char]| -> (u128, usize) {
            let digits: Vec<u32> = text[start..]
                .iter()
                .map_while(|each| each.to_digit(10))
                .collect();
            let value = digits.iter().fold(0_u128, |all, digit| {
                all.saturating_mul(10).saturating_add((*digit).into())
            });
            (value, digits.len())
        };
        if digits_before > 0 || (first.is_numeric() && second.is_numeric()) {
            let (left, right) = (number(&left), number(&right));
            if left.0 != right.0 {
                return left.0.cmp(&right.0);
            }
            if left.1 != right.1 {
                return left.1.cmp(&right.1);
            }
        }
    }
    first.cmp(second)
}

//! `format` and `formatlist`. Come in: a format with verbs of go-cty, which are some of Go's, and
//! values. Go out: texts.
//!
//! Integers and floats are laid out as Go's `fmt` lays them out; strings are padded and cut by
//! grapheme clusters, as go-cty does.

mod number;

use unicode_segmentation::UnicodeSegmentation;

use super::encoding::{write_json, write_json_string};
use super::{CallError, Parameter, Signature, text};
use crate::context::Context;
use crate::convert::convert;
use crate::types::Type;
use crate::value::{Kind, Value};

/// What Go's `fmt` takes as a width or a precision.
const WIDEST: usize = 1_000_000;

pub(super) fn signatures() -> Vec<Signature> {
    let some = |name, body| {
        Signature::new(name, [Parameter::string("format")], body)
            .and_any_number_of(Parameter::any("args").or_null())
    };
    vec![
        some("format", |context, arguments| {
            let format = text(arguments, 0)?;
            let arguments: Vec<&Value> = arguments.iter().skip(1).collect();
            Ok(Value::string(formatted(context, format, &arguments)?))
        }),
        some("formatlist", format_list),
    ]
}

/// Goes through all lists, sets and tuples at once; what is none of them is the same each time.
fn format_list(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let format = text(arguments, 0)?;
    let mut length = None;
    for (index, argument) in arguments.iter().enumerate().skip(1) {
        let Some(elements) = argument.elements() else {
            continue;
        };
        match length {
            None => length = Some((elements.len(), index)),
            Some((wanted, first)) if wanted != elements.len() => {
                let given = elements.len();
                let message = format!(
                    "Lists must be of one length: argument {first} has {wanted} elements, \
                     argument {index} has {given}"
                );
                return Err(CallError::argument(index, message));
            }
            Some(_) => {}
        }
    }
    let mut results = Vec::new();
    for turn in 0..length.map_or(1, |(length, _)| length) {
        context.charge_steps(1)?;
        let arguments: Vec<&Value> = arguments
            .iter()
            .skip(1)
            .map(|argument| argument.elements().map_or(argument, |each| &each[turn]))
            .collect();
        let text = formatted(context, format, &arguments)
            .map_err(|error| CallError::new(format!("{} (element {turn})", error.message)))?;
        results.push(Value::string(text));
    }
    Ok(Value::list(Type::String, results))
}

/// One `%…` of a format.
#[derive(Default)]
struct Verb<'t> {
    /// As it is written.
    raw: &'t str,
    zero: bool,
    sharp: bool,
    plus: bool,
    minus: bool,
    space: bool,
    width: Option<usize>,
    precision: Option<usize>,
    /// Counted from 1.
    argument: usize,
    letter: char,
}

fn formatted(context: &Context, format: &str, arguments: &[&Value]) -> Result<String, CallError> {
    let mut text = String::new();
    let mut rest = format;
    let (mut next, mut most) = (1, 0);
    while let Some(at) = rest.find('%') {
        let before = text.len();
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(behind) = rest.strip_prefix("%%") {
            text.push('%');
            rest = behind;
        } else {
            let verb = read_verb(rest, next)?;
            rest = &rest[verb.raw.len()..];
            let Some(argument) = arguments.get(verb.argument - 1) else {
                return Err(CallError::new(format!(
                    "There is no argument {} for `{}`: {} follow the format",
                    verb.argument,
                    verb.raw,
                    arguments.len()
                )));
            };
            next = verb.argument + 1;
            most = most.max(verb.argument);
            for size in [verb.width, verb.precision].into_iter().flatten() {
                context.charge_bytes(size)?;
            }
            verb.write(context, argument, &mut text)
                .map_err(|error| CallError {
                    argument: Some(verb.argument),
                    message: error.message,
                })?;
        }
        context.charge_bytes(text.len() - before)?;
    }
    context.charge_bytes(rest.len())?;
    text.push_str(rest);
    if most < arguments.len() {
        return Err(CallError::argument(
            most + 1,
            format!("The format uses {most} of {} arguments", arguments.len()),
        ));
    }
    Ok(text)
}

/// The verb that `text` starts with: `%`, flags, a width, a precision, an argument's number in
/// brackets, a letter.
fn read_verb(text: &str, next: usize) -> Result<Verb<'_>, CallError> {
    let mut verb = Verb {
        argument: next,
        ..Verb::default()
    };
    let mut rest = &text[1..];
    loop {
        match rest.as_bytes().first() {
            Some(b'0') => verb.zero = true,
            Some(b'#') => verb.sharp = true,
            Some(b'+') => verb.plus = true,
            Some(b'-') => verb.minus = true,
            Some(b' ') => verb.space = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    let broken = |rest: &str| {
        let end = text.len() - rest.len() + rest.chars().next().map_or(0, char::len_utf8);
        let message = format!("`{}` isn't the start of a verb such as `%s`", &text[..end]);
        CallError::argument(0, format!("{message}; a percent sign is written `%%`"))
    };
    verb.width = digits(&mut rest)?;
    if let Some(behind) = rest.strip_prefix('.') {
        rest = behind;
        verb.precision = Some(digits(&mut rest)?.ok_or_else(|| broken(rest))?);
    }
    if let Some(behind) = rest.strip_prefix('[') {
        rest = behind;
        let number = digits(&mut rest)?.filter(|number| *number > 0);
        verb.argument = number.ok_or_else(|| broken(rest))?;
        rest = rest.strip_prefix(']').ok_or_else(|| broken(rest))?;
    }
    let letter = rest.chars().next().filter(char::is_ascii_alphabetic);
    verb.letter = letter.ok_or_else(|| broken(rest))?;
    verb.raw = &text[..=text.len() - rest.len()];
    if !"vtbdoxXeEfgGsq".contains(verb.letter) {
        let message = format!("There is no verb `{}`", verb.raw);
        return Err(CallError::argument(
            0,
            format!("{message}; there are v, t, b, d, o, x, X, e, E, f, g, G, s and q"),
        ));
    }
    Ok(verb)
}

fn digits(rest: &mut &str) -> Result<Option<usize>, CallError> {
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, behind) = rest.split_at(count);
    *rest = behind;
    if digits.is_empty() {
        return Ok(None);
    }
    match digits.parse() {
        Ok(number) if number <= WIDEST => Ok(Some(number)),
        _ => Err(CallError::argument(
            0,
            format!("{digits} is more than {WIDEST}, the largest width"),
        )),
    }
}

impl Verb<'_> {
    fn write(
        &self,
        context: &Context,
        argument: &Value,
        text: &mut String,
    ) -> Result<(), CallError> {
        if argument.is_null() && self.letter != 'v' {
            return Err(CallError::new(format!(
                "`{}` can't show null; `%v` can",
                self.raw
            )));
        }
        match self.letter {
            'v' => self.write_any(context, argument, text)?,
            't' => match self.converted(argument, &Type::Bool)? {
                Kind::Bool(true) => text.push_str("true"),
                _ => text.push_str("false"),
            },
            's' | 'q' => {
                if let Kind::String(string) = self.converted(argument, &Type::String)? {
                    self.write_string(&string, text);
                }
            }
            letter => {
                if let Kind::Number(number) = self.converted(argument, &Type::Number)? {
                    if "bdoxX".contains(letter) {
                        let laid_out = self.integer(&number).ok_or_else(|| {
                            let raw = self.raw;
                            CallError::new(format!("`{raw}` shows whole numbers, not {number}"))
                        })?;
                        text.push_str(&laid_out);
                    } else {
                        text.push_str(&self.float(&number));
                    }
                }
            }
        }
        Ok(())
    }

    fn converted(&self, argument: &Value, to: &Type) -> Result<Kind, CallError> {
        match convert(argument, to) {
            Ok(value) => Ok(value.kind),
            Err(error) => Err(CallError::new(format!("`{}`: {error}", self.raw))),
        }
    }

    /// As its type has it; lists, objects and null, and all with `#`, as JSON.
    fn write_any(
        &self,
        context: &Context,
        argument: &Value,
        text: &mut String,
    ) -> Result<(), CallError> {
        match &argument.kind {
            Kind::String(string) if !self.sharp => self.pad(string, text),
            Kind::Number(number) if !self.sharp => self.pad(&number::general(number), text),
            _ => {
                let mut json = String::new();
                write_json(context, argument, &mut json)?;
                self.pad(&json, text);
            }
        }
        Ok(())
    }

    /// Its first letters, as many as the precision says if that isn't 0.
    fn write_string(&self, string: &str, text: &mut String) {
        let cut = self.precision.filter(|precision| *precision > 0);
        let end = cut.and_then(|count| string.grapheme_indices(true).nth(count));
        let string = end.map_or(string, |(end, _)| &string[..end]);
        if self.letter == 'q' {
            let mut quoted = String::new();
            write_json_string(string, &mut quoted);
            self.pad(&quoted, text);
        } else {
            self.pad(string, text);
        }
    }

    fn pad(&self, string: &str, text: &mut String) {
        let missing = self.width.map_or(0, |width| {
            width.saturating_sub(string.graphemes(true).count())
        });
        let padding = std::iter::repeat_n(if self.zero { '0' } else { ' ' }, missing);
        if self.minus {
            text.push_str(string);
            text.extend(padding);
        } else {
            text.extend(padding);
            text.push_str(string);
        }
    }
}

//! Other values in the place of secrets, to see what is made of them.
//!
//! In: values of which some are sensitive. Out: the same values, each sensitive part replaced by
//! another of its kind. May not: leave a sensitive part as it is.
//!
//! A configuration is evaluated and rendered with its secrets and again with other ones: what comes
//! out differently was made of a secret, by whatever way. One other value isn't enough: a template
//! may ask for no more than whether there is any, or how long it is.

use std::sync::Arc;

use nstance_hcl::{Entries, Kind, Number, Value};

/// How a secret is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disguise {
    /// By one that looks like it: as long, letters for letters, digits for digits. What takes the
    /// secret apart does so with this one.
    Alike,
    /// By one that looks otherwise: other punctuation, other keys, one element more.
    Strange,
    /// By none: an empty text, zero.
    Empty,
}

impl Disguise {
    /// All of them. The first is the one that must work; others may make a template fail.
    pub(super) const ALL: [Self; 3] = [Self::Alike, Self::Strange, Self::Empty];

    /// What replaces a value that is sensitive as a whole.
    pub(super) fn function(self) -> fn(&Value) -> Value {
        match self {
            Self::Alike => |value| Self::Alike.whole(value),
            Self::Strange => |value| Self::Strange.whole(value),
            Self::Empty => |value| Self::Empty.whole(value),
        }
    }

    /// The value with everything in it replaced that is sensitive.
    pub(super) fn value(self, value: &Value) -> Value {
        if value.sensitive {
            return self.whole(value);
        }
        if !value.is_sensitive_within() {
            return value.clone();
        }
        let each =
            |elements: &[Value]| elements.iter().map(|element| self.value(element)).collect();
        let every = |entries: &Entries| {
            let entries = entries.iter();
            Arc::new(
                entries
                    .map(|(name, value)| (Arc::clone(name), self.value(value)))
                    .collect(),
            )
        };
        Value {
            kind: match &value.kind {
                Kind::Tuple(elements) => Kind::Tuple(each(elements)),
                Kind::List(of, elements) => Kind::List(of.clone(), each(elements)),
                Kind::Set(of, elements) => Kind::Set(of.clone(), each(elements)),
                Kind::Object(entries) => Kind::Object(every(entries)),
                Kind::Map(of, entries) => Kind::Map(of.clone(), every(entries)),
                plain => plain.clone(),
            },
            ..value.clone()
        }
    }

    fn whole(self, value: &Value) -> Value {
        let each = |elements: &[Value]| {
            let mut elements: Vec<Value> =
                elements.iter().map(|element| self.whole(element)).collect();
            if self == Self::Strange {
                elements.extend(elements.last().cloned());
            }
            elements
        };
        let every = |entries: &Entries| {
            let name = |name: &Arc<str>| match self {
                Self::Strange => self.text(name).into(),
                Self::Alike | Self::Empty => Arc::clone(name),
            };
            let entries = entries.iter();
            Arc::new(
                entries
                    .map(|(key, value)| (name(key), self.whole(value)))
                    .collect(),
            )
        };
        let kind = match &value.kind {
            Kind::Null(_) if self == Self::Strange => Kind::String("x".into()),
            Kind::Null(of) => Kind::Null(of.clone()),
            Kind::Bool(value) => Kind::Bool(!value),
            Kind::Number(number) => Kind::Number(self.number(number)),
            Kind::String(text) => Kind::String(self.text(text).into()),
            Kind::Tuple(elements) => Kind::Tuple(each(elements).into()),
            Kind::List(of, elements) => Kind::List(of.clone(), each(elements).into()),
            Kind::Set(of, elements) => Value::set(of.clone(), each(elements)).kind,
            Kind::Object(entries) => Kind::Object(every(entries)),
            Kind::Map(of, entries) => Kind::Map(of.clone(), every(entries)),
        };
        Value {
            kind,
            span: value.span,
            sensitive: true,
        }
    }

    fn number(self, number: &Number) -> Number {
        let text = number.to_string();
        let other = match self {
            Self::Alike => rotated_number(&text),
            Self::Strange => rotated_number(&rotated_number(&text)),
            Self::Empty => "0".to_owned(),
        };
        match other.parse() {
            Ok(other) if other != *number || self == Self::Empty => other,
            _ => Number::from(i64::from(*number == Number::from(1_i64)) + 1),
        }
    }

    fn text(self, text: &str) -> String {
        match self {
            Self::Alike => {
                let other: String = text.chars().map(alike).collect();
                if other == text {
                    text.chars().map(strange).collect()
                } else {
                    other
                }
            }
            Self::Strange if text.is_empty() => "x".to_owned(),
            Self::Strange => text.chars().map(strange).collect(),
            Self::Empty => String::new(),
        }
    }

    /// What was evaluated with other secrets, made to differ wherever `real` is sensitive and
    /// nowhere else. `None`: it couldn't be evaluated.
    pub(super) fn apart(self, real: &Value, other: Option<&Value>) -> Value {
        match other {
            Some(other) => self.parted(real, other, false),
            None => self.value(real),
        }
    }

    fn parted(self, real: &Value, other: &Value, secret: bool) -> Value {
        let secret = secret || real.sensitive;
        if !secret && !real.is_sensitive_within() {
            return real.clone();
        }
        let each = |real: &[Value], other: &[Value]| -> Arc<[Value]> {
            let pairs = real.iter().zip(other);
            pairs
                .map(|(real, other)| self.parted(real, other, secret))
                .collect()
        };
        let every = |real: &Entries, other: &Entries| {
            let pairs = real.iter().zip(other.values());
            Arc::new(
                pairs
                    .map(|((key, real), other)| (Arc::clone(key), self.parted(real, other, secret)))
                    .collect(),
            )
        };
        let kind = match (&real.kind, &other.kind) {
            (Kind::Tuple(a), Kind::Tuple(b)) if a.len() == b.len() && !a.is_empty() => {
                Kind::Tuple(each(a, b))
            }
            (Kind::List(of, a), Kind::List(_, b)) if a.len() == b.len() && !a.is_empty() => {
                Kind::List(of.clone(), each(a, b))
            }
            (Kind::Object(a), Kind::Object(b)) if a.keys().eq(b.keys()) && !a.is_empty() => {
                Kind::Object(every(a, b))
            }
            (Kind::Map(of, a), Kind::Map(_, b)) if a.keys().eq(b.keys()) && !a.is_empty() => {
                Kind::Map(of.clone(), every(a, b))
            }
            _ if !secret => return self.value(real),
            _ if real == other => return self.whole(real),
            _ => return other.clone(),
        };
        Value {
            kind,
            ..real.clone()
        }
    }
}

/// Another digit, letter for letter; everything else as it is.
fn alike(c: char) -> char {
    let turned = |first: u8, count: u8| (first + (c as u8 - first + 1) % count) as char;
    match c {
        '0'..='9' => turned(b'0', 10),
        // What is hexadecimal stays so.
        'a'..='f' => turned(b'a', 6),
        'g'..='z' => turned(b'g', 20),
        'A'..='F' => turned(b'A', 6),
        'G'..='Z' => turned(b'G', 20),
        _ if c.is_ascii() => c,
        _ => foreign(c),
    }
}

/// Another character of the same length; line breaks stay, since texts are compared by lines.
fn strange(c: char) -> char {
    match c {
        '\n' => c,
        _ if c.is_ascii_alphanumeric() => alike(alike(c)),
        '.' => '_',
        _ if c.is_ascii() => '.',
        _ => foreign(c),
    }
}

fn foreign(c: char) -> char {
    let [first, second] = match c.len_utf8() {
        2 => ['é', 'è'],
        3 => ['一', '二'],
        _ => ['𐐀', '𐐁'],
    };
    if c == first { second } else { first }
}

/// As many digits, all of them others.
fn rotated_number(text: &str) -> String {
    let mut leading = true;
    text.chars()
        .map(|c| match c {
            '1'..='9' if leading => {
                leading = false;
                (b'1' + (c as u8 - b'1' + 1) % 9) as char
            }
            '0'..='9' => {
                leading = false;
                alike(c)
            }
            _ => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(value: Value) -> Value {
        value.or_sensitive(true)
    }

    #[test]
    fn every_secret_gets_another_value() {
        for value in [
            Value::string("hunter2"),
            Value::string("-----"),
            Value::string("пароль"),
            Value::string("Aa0:é\n"),
            Value::from(7),
            Value::from(-19),
            Value::from(true),
            Value::tuple([Value::string("a"), Value::from(2)]),
            Value::object(Entries::from([("k".into(), Value::string("v"))])),
        ] {
            let value = secret(value);
            for disguise in Disguise::ALL {
                let other = disguise.value(&value);
                assert!(other != value, "{disguise:?} {other:?}");
                assert!(other.sensitive);
                assert!(
                    disguise.apart(&value, Some(&value)) != value,
                    "{disguise:?}"
                );
            }
        }
        // Of nothing there is no other of the same length.
        for (value, differ) in [
            (Value::string(""), 1),
            (Value::null(), 1),
            (Value::from(0), 2),
        ] {
            let value = secret(value);
            let differing = Disguise::ALL.map(|disguise| disguise.value(&value) != value);
            assert_eq!(differing.iter().filter(|differs| **differs).count(), differ);
        }
    }

    #[test]
    fn what_looks_alike_is_as_long_and_of_the_same_kinds() {
        let text = "Zz-09/é_af";
        let other = Disguise::Alike.text(text);
        assert_eq!(other.len(), text.len());
        for (a, b) in text.chars().zip(other.chars()) {
            assert_eq!(a.is_alphabetic(), b.is_alphabetic());
            assert_eq!(a.is_ascii_digit(), b.is_ascii_digit());
            assert_eq!(a == b, a.is_ascii_punctuation());
        }
    }

    #[test]
    fn only_what_is_sensitive_differs() {
        let real = Value::tuple([Value::string("a"), secret(Value::string("b"))]);
        let other = Value::tuple([Value::string("x"), secret(Value::string("y"))]);
        let parted = Disguise::Alike.apart(&real, Some(&other));
        let elements = parted.elements().unwrap();
        assert_eq!(elements[0].as_str(), Some("a"));
        assert_eq!(elements[1].as_str(), Some("y"));
        let failed = Disguise::Alike.apart(&real, None);
        assert_eq!(failed.elements().unwrap()[1].as_str(), Some("c"));
    }
}

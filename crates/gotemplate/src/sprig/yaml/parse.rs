//! From YAML to a value: what go-yaml makes of a text, by way of JSON.

use std::collections::BTreeMap;
use std::rc::Rc;

use nstance_yaml::{ErrorKind, Kind, Reader, Scalar as Written, line_column};

use super::resolve::{Scalar, resolve};
use crate::dict::Dict;
use crate::function::{Budget, FunctionError};
use crate::map::Map;
use crate::sprig::arguments::DEPTH;
use crate::value::{List, Text, Value};

/// Steps that a node counts.
const STEPS_A_NODE: usize = 16;

const CONVERTING: &str = "error converting YAML to JSON:";

/// A scalar: its text, and what it is; `Err` says why it is nothing.
#[derive(Clone)]
struct Meaning(Rc<str>, Result<Scalar, Rc<str>>);

type Node = nstance_yaml::Node<Meaning>;

/// Why there is no value: a limit, or a flaw of the text in words.
enum Stop {
    Limit(FunctionError),
    Flaw(String),
}

impl From<FunctionError> for Stop {
    fn from(error: FunctionError) -> Self {
        Self::Limit(error)
    }
}

fn flaw<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Flaw(message.into()))
}

/// Reads the first document of a text; the outer result is of limits.
pub(super) fn read(
    budget: &mut Budget,
    text: &[u8],
) -> Result<Result<Value, String>, FunctionError> {
    let text = String::from_utf8_lossy(text);
    budget.charge(text.len())?;
    let document = match Reader::new(&text, DEPTH as usize, meaning).document() {
        Ok(Some(document)) => document,
        Ok(None) => return Ok(Ok(Value::Nil)),
        Err(error) => {
            let (line, _) = line_column(&text, error.range.start);
            return Ok(Err(match error.kind {
                ErrorKind::TooDeep => too_deep(),
                ErrorKind::Key => format!("{CONVERTING} yaml: invalid map key"),
                ErrorKind::Cycle => format!("{CONVERTING} yaml: an anchor contains itself"),
                kind => format!("{CONVERTING} yaml: line {line}: {kind}"),
            }));
        }
    };
    match (Converter { budget }).value(&document.root) {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Flaw(message)) => Ok(Err(message)),
        Err(Stop::Limit(error)) => Err(error),
    }
}

fn too_deep() -> String {
    format!("the text is nested deeper than {DEPTH} levels")
}

struct Converter<'b> {
    budget: &'b mut Budget,
}

impl Converter<'_> {
    fn value(&mut self, node: &Node) -> Result<Value, Stop> {
        self.budget.charge(STEPS_A_NODE)?;
        Ok(match &node.kind {
            Kind::Scalar(Meaning(_, Err(message))) => return flaw(&**message),
            Kind::Scalar(Meaning(text, Ok(scalar))) => match scalar {
                Scalar::Null => Value::Nil,
                Scalar::Bool(truth) => Value::Bool(*truth),
                Scalar::Int(number) => Value::Float(*number as f64),
                Scalar::Unsigned(number) => Value::Float(*number as f64),
                Scalar::Float(number) if !number.is_finite() => {
                    let shown = match number {
                        number if number.is_nan() => "NaN",
                        number if *number > 0.0 => "+Inf",
                        _ => "-Inf",
                    };
                    return flaw(format!("{CONVERTING} json: unsupported value: {shown}"));
                }
                Scalar::Float(number) => Value::Float(*number),
                Scalar::Timestamp | Scalar::Merge | Scalar::Text => {
                    self.budget.charge(text.len() / 4)?;
                    Value::from(&**text)
                }
            },
            Kind::Sequence(items) => {
                let mut values = Vec::with_capacity(items.len());
                for item in items.iter() {
                    values.push(self.value(item)?);
                }
                Value::List(List::as_decoded_from_json(values))
            }
            Kind::Mapping(entries) => {
                let mut made = BTreeMap::new();
                self.entries(entries, &mut made)?;
                let entries = made.into_iter();
                let entries = entries.map(|(key, value)| (Text::from(key), value));
                Value::Dict(Dict::new(Map::new(entries.collect())))
            }
        })
    }

    fn entries(
        &mut self,
        entries: &[(Node, Node)],
        made: &mut BTreeMap<String, Value>,
    ) -> Result<(), Stop> {
        for (key, value) in entries {
            if let Kind::Scalar(Meaning(_, Ok(Scalar::Merge))) = key.kind {
                self.merge(value, made)?;
                continue;
            }
            let key = key_text(key)?;
            self.budget.charge(key.len() / 4)?;
            let value = self.value(value)?;
            made.insert(key, value);
        }
        Ok(())
    }

    /// `<<: *other`.
    fn merge(&mut self, node: &Node, made: &mut BTreeMap<String, Value>) -> Result<(), Stop> {
        let Some(mappings) = node.merged() else {
            return flaw(format!(
                "{CONVERTING} yaml: map merge requires map or sequence of maps as the value"
            ));
        };
        // The first one wins, so it comes last.
        for entries in mappings.into_iter().rev() {
            self.budget.charge(STEPS_A_NODE)?;
            self.entries(entries, made)?;
        }
        Ok(())
    }
}

/// A key as JSON has it.
fn key_text(key: &Node) -> Result<String, Stop> {
    let (text, scalar) = match &key.kind {
        Kind::Scalar(Meaning(text, Ok(scalar))) => (text, scalar),
        Kind::Scalar(Meaning(_, Err(message))) => return flaw(&**message),
        _ => return flaw(format!("{CONVERTING} yaml: invalid map key")),
    };
    Ok(match scalar {
        Scalar::Bool(truth) => truth.to_string(),
        Scalar::Int(number) => number.to_string(),
        Scalar::Unsigned(number) => number.to_string(),
        Scalar::Float(number) if number.is_nan() => ".nan".to_owned(),
        Scalar::Float(number) if *number == f64::INFINITY => ".inf".to_owned(),
        Scalar::Float(number) if *number == f64::NEG_INFINITY => "-.inf".to_owned(),
        Scalar::Float(number) => number.to_string(),
        Scalar::Null => {
            return flaw(format!(
                "{CONVERTING} unsupported map key of type: %!s(<nil>)"
            ));
        }
        Scalar::Timestamp | Scalar::Merge | Scalar::Text => text.to_string(),
    })
}

fn meaning(scalar: &Written<'_>) -> Meaning {
    Meaning((&*scalar.text).into(), tagged(scalar))
}

/// What a scalar with a tag, or without quotes, is.
fn tagged(scalar: &Written<'_>) -> Result<Scalar, Rc<str>> {
    let found = resolve(&scalar.text);
    let Some(tag) = &scalar.tag else {
        return Ok(if scalar.is_plain() {
            found
        } else {
            Scalar::Text
        });
    };
    let short = tag.is_yaml_core_schema().then_some(tag.suffix.as_str());
    let fits = match (short, &found) {
        (Some("int"), _) => matches!(found, Scalar::Int(_) | Scalar::Unsigned(_)),
        (Some("float"), Scalar::Int(number)) => return Ok(Scalar::Float(*number as f64)),
        (Some("float"), Scalar::Unsigned(number)) => return Ok(Scalar::Float(*number as f64)),
        (Some("float"), _) => matches!(found, Scalar::Float(_)),
        (Some("bool"), _) => matches!(found, Scalar::Bool(_)),
        (Some("null"), _) => matches!(found, Scalar::Null),
        (Some("timestamp"), _) => matches!(found, Scalar::Timestamp),
        _ => return Ok(Scalar::Text),
    };
    if fits {
        return Ok(found);
    }
    let (text, tag) = (&scalar.text, &tag.suffix);
    Err(format!("{CONVERTING} yaml: cannot decode !!str `{text}` as a !!{tag}").into())
}

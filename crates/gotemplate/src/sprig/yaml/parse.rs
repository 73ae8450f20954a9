//! From YAML to a value: a parser's events, and what go-yaml makes of them, by way of JSON.
//!
//! The events come from `saphyr-parser`; libyaml-safer's own parser panics where a text ends within
//! a block scalar.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};

use super::resolve::{Scalar, resolve};
use crate::dict::Dict;
use crate::function::{Budget, FunctionError};
use crate::map::Map;
use crate::sprig::arguments::DEPTH;
use crate::value::{List, Text, Value};

/// Steps that an event counts.
const STEPS_AN_EVENT: usize = 16;

/// A node; anchors make several parents share it.
#[derive(Clone)]
enum Node {
    Scalar(String, Scalar),
    Sequence(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
}

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
    let mut reader = Reader {
        budget,
        parser: Parser::new_from_str(&text),
        anchors: HashMap::new(),
    };
    match reader.document() {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Flaw(message)) => Ok(Err(message)),
        Err(Stop::Limit(error)) => Err(error),
    }
}

struct Reader<'b, 'i> {
    budget: &'b mut Budget,
    parser: Parser<'i, StrInput<'i>>,
    anchors: HashMap<usize, Node>,
}

impl<'i> Reader<'_, 'i> {
    fn next(&mut self) -> Result<Event<'i>, Stop> {
        self.budget.charge(STEPS_AN_EVENT)?;
        match self.parser.next_event() {
            None => Ok(Event::StreamEnd),
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => {
                let (line, why) = (error.marker().line(), error.info());
                flaw(format!(
                    "error converting YAML to JSON: yaml: line {line}: {why}"
                ))
            }
        }
    }

    fn document(&mut self) -> Result<Value, Stop> {
        loop {
            match self.next()? {
                Event::StreamEnd => return Ok(Value::Nil),
                Event::DocumentStart(_) => break,
                _ => {}
            }
        }
        let first = self.next()?;
        let node = self.node(first, 0)?;
        // What follows in the same document has to be sound, too.
        self.next()?;
        self.value(&node, 0)
    }

    fn node(&mut self, event: Event<'i>, depth: u32) -> Result<Node, Stop> {
        if depth > DEPTH {
            return flaw(format!("the text is nested deeper than {DEPTH} levels"));
        }
        let (anchor, node) = match event {
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return flaw("error converting YAML to JSON: yaml: an anchor contains itself");
                };
                self.pay_for(&node)?;
                return Ok(node);
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.budget.charge(text.len() / 4)?;
                let scalar = scalar(&text, tag.as_deref(), style == ScalarStyle::Plain)?;
                (anchor, Node::Scalar(text.into_owned(), scalar))
            }
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => break,
                        event => items.push(self.node(event, depth + 1)?),
                    }
                }
                (anchor, Node::Sequence(items))
            }
            Event::MappingStart(anchor, _) => {
                let mut entries = Vec::new();
                loop {
                    match self.next()? {
                        Event::MappingEnd => break,
                        event => {
                            let key = self.node(event, depth + 1)?;
                            let event = self.next()?;
                            entries.push((key, self.node(event, depth + 1)?));
                        }
                    }
                }
                (anchor, Node::Mapping(entries))
            }
            _ => return flaw("error converting YAML to JSON: yaml: did not find a node"),
        };
        // 0 stands for none.
        if anchor != 0 {
            self.pay_for(&node)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Pays for one more copy of a node.
    fn pay_for(&mut self, node: &Node) -> Result<(), Stop> {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            self.budget.charge(STEPS_AN_EVENT)?;
            match node {
                Node::Scalar(text, _) => self.budget.charge(text.len() / 4)?,
                Node::Sequence(items) => pending.extend(items),
                Node::Mapping(entries) => {
                    pending.extend(entries.iter().flat_map(|(key, value)| [key, value]));
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, node: &Node, depth: u32) -> Result<Value, Stop> {
        if depth > DEPTH {
            return flaw(format!("the text is nested deeper than {DEPTH} levels"));
        }
        Ok(match node {
            Node::Scalar(text, scalar) => match scalar {
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
                    return flaw(format!(
                        "error converting YAML to JSON: json: unsupported value: {shown}"
                    ));
                }
                Scalar::Float(number) => Value::Float(*number),
                Scalar::Timestamp | Scalar::Merge | Scalar::Text => Value::from(text.as_str()),
            },
            Node::Sequence(items) => {
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    values.push(self.value(item, depth + 1)?);
                }
                Value::List(List::as_decoded_from_json(values))
            }
            Node::Mapping(entries) => {
                let mut made = BTreeMap::new();
                self.entries(entries, depth, &mut made)?;
                let entries = made.into_iter();
                let entries = entries.map(|(key, value)| (Text::from(key), value));
                Value::Dict(Dict::new(Map::new(entries.collect())))
            }
        })
    }

    fn entries(
        &mut self,
        entries: &[(Node, Node)],
        depth: u32,
        made: &mut BTreeMap<String, Value>,
    ) -> Result<(), Stop> {
        for (key, value) in entries {
            if let Node::Scalar(_, Scalar::Merge) = key {
                self.merge(value, depth + 1, made)?;
                continue;
            }
            let key = key_text(key)?;
            let value = self.value(value, depth + 1)?;
            made.insert(key, value);
        }
        Ok(())
    }

    /// `<<: *other`.
    fn merge(
        &mut self,
        node: &Node,
        depth: u32,
        made: &mut BTreeMap<String, Value>,
    ) -> Result<(), Stop> {
        const WANTED: &str = "error converting YAML to JSON: yaml: map merge requires map or sequence of maps as the value";
        match node {
            Node::Mapping(entries) if depth <= DEPTH => self.entries(entries, depth, made),
            Node::Sequence(items) => {
                // The first one wins, so it comes last.
                for item in items.iter().rev() {
                    match item {
                        Node::Mapping(entries) if depth <= DEPTH => {
                            self.entries(entries, depth, made)?;
                        }
                        _ => return flaw(WANTED),
                    }
                }
                Ok(())
            }
            _ => flaw(WANTED),
        }
    }
}

/// A key as JSON has it.
fn key_text(key: &Node) -> Result<String, Stop> {
    match key {
        Node::Scalar(text, scalar) => Ok(match scalar {
            Scalar::Bool(truth) => truth.to_string(),
            Scalar::Int(number) => number.to_string(),
            Scalar::Unsigned(number) => number.to_string(),
            Scalar::Float(number) if number.is_nan() => ".nan".to_owned(),
            Scalar::Float(number) if *number == f64::INFINITY => ".inf".to_owned(),
            Scalar::Float(number) if *number == f64::NEG_INFINITY => "-.inf".to_owned(),
            Scalar::Float(number) => number.to_string(),
            Scalar::Null => {
                return flaw(
                    "error converting YAML to JSON: unsupported map key of type: %!s(<nil>)",
                );
            }
            Scalar::Timestamp | Scalar::Merge | Scalar::Text => text.clone(),
        }),
        _ => flaw("error converting YAML to JSON: yaml: invalid map key"),
    }
}

/// What a scalar with a tag, or without quotes, is.
fn scalar(text: &str, tag: Option<&Tag>, plain: bool) -> Result<Scalar, Stop> {
    let found = resolve(text);
    let Some(tag) = tag else {
        return Ok(if plain { found } else { Scalar::Text });
    };
    let short = tag.is_yaml_core_schema().then_some(tag.suffix.as_str());
    let fits = match short {
        Some("int") => matches!(found, Scalar::Int(_) | Scalar::Unsigned(_)),
        Some("float") => {
            match found {
                Scalar::Int(number) => return Ok(Scalar::Float(number as f64)),
                Scalar::Unsigned(number) => return Ok(Scalar::Float(number as f64)),
                _ => {}
            }
            matches!(found, Scalar::Float(_))
        }
        Some("bool") => matches!(found, Scalar::Bool(_)),
        Some("null") => matches!(found, Scalar::Null),
        Some("timestamp") => matches!(found, Scalar::Timestamp),
        _ => return Ok(Scalar::Text),
    };
    if fits {
        return Ok(found);
    }
    let tag = &tag.suffix;
    flaw(format!(
        "error converting YAML to JSON: yaml: cannot decode !!str `{text}` as a !!{tag}"
    ))
}

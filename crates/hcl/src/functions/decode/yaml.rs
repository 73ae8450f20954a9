//! YAML, as Terraform's go-cty-yaml reads it: the words of YAML 1.1 (`yes`, `off`), the numbers of
//! 1.2, dates as RFC 3339 writes them. Of a key that is there twice the last counts.

mod scalar;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};

use super::{CallError, Context, DEEPEST, Value, text, too_deep};
use crate::convert::convert;
use crate::types::Type;
use crate::value::{Entries, Kind, composed};

pub(super) fn decode(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let text = text(arguments, 0)?;
    context.charge_bytes(text.len())?;
    let mut reader = Reader {
        context,
        length: text.chars().count(),
        ends_open: !text.ends_with(['\n', '\r']),
        lines: if text.contains('\t') {
            text.lines().collect()
        } else {
            Vec::new()
        },
        brackets: 0,
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
    };
    reader.document()
}

/// A value, with how many parts and levels it has.
#[derive(Clone)]
struct Node {
    value: Value,
    parts: usize,
    height: usize,
}

struct Reader<'t> {
    context: &'t Context<'t>,
    /// In characters.
    length: usize,
    /// Whether the last line has no end.
    ends_open: bool,
    /// None if there is no tab in any of them.
    lines: Vec<&'t str>,
    /// How many collections in brackets are open.
    brackets: usize,
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Node>,
}

fn wrong(place: Marker, what: impl std::fmt::Display) -> CallError {
    let (line, column) = (place.line(), place.col() + 1);
    CallError::argument(
        0,
        format!("This YAML can't be read: line {line}, column {column}: {what}"),
    )
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), CallError> {
        match self.parser.next_event() {
            Some(Ok(step)) => Ok(step),
            Some(Err(error)) => Err(wrong(*error.marker(), error.info())),
            // It has told its end before; asking again isn't expected.
            None => Err(CallError::argument(0, "There is no YAML document")),
        }
    }

    fn document(&mut self) -> Result<Value, CallError> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::Nothing, _) => {}
                (Event::DocumentStart(_), _) => break,
                _ => return Err(CallError::argument(0, "There is no YAML document")),
            }
        }
        let first = self.next()?;
        let node = self.node(first, 0)?;
        loop {
            match self.next()? {
                (Event::DocumentEnd | Event::Nothing, _) => {}
                (Event::StreamEnd, _) => return Ok(node.value),
                (_, span) => return Err(wrong(span.start, "a second document starts here")),
            }
        }
    }

    fn node(&mut self, step: (Event<'t>, Span), depth: usize) -> Result<Node, CallError> {
        self.context.charge_steps(1)?;
        let (event, span) = step;
        let place = span.start;
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let text = self.at_the_end(text, style, &span);
                let value = scalar::resolve(&text, style, tag.as_deref())
                    .map_err(|what| wrong(place, what))?;
                let node = Node {
                    value,
                    parts: 1,
                    height: 0,
                };
                (node, anchor)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    let what = "an anchor can't be used inside of what it names";
                    return Err(wrong(place, what));
                };
                self.context.charge_steps(node.parts)?;
                if depth + node.height > DEEPEST {
                    return Err(too_deep());
                }
                return Ok(node.clone());
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if depth == DEEPEST => {
                return Err(too_deep());
            }
            Event::SequenceStart(anchor, tag) => {
                collection_tag(tag, "seq", place)?;
                let bracketed = self.opens(&span)?;
                self.brackets += bracketed;
                let node = self.sequence(depth)?;
                self.brackets -= bracketed;
                (node, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                collection_tag(tag, "map", place)?;
                let bracketed = self.opens(&span)?;
                self.brackets += bracketed;
                let node = self.mapping(depth)?;
                self.brackets -= bracketed;
                (node, anchor)
            }
            // A document has a value, and a collection's end is taken where its items are.
            _ => return Err(wrong(place, "a value is wanted")),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Whether a collection starts with a bracket, which is as wide as its event; one in lines is
    /// never behind a tab, which the parser lets through.
    fn opens(&self, span: &Span) -> Result<usize, CallError> {
        let (line, column) = (span.start.line(), span.start.col());
        if span.end.index() > span.start.index() || self.brackets > 0 {
            return Ok(1);
        }
        if let Some(line) = line.checked_sub(1).and_then(|line| self.lines.get(line)) {
            let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
            if blanks == column && line[..blanks].contains('\t') {
                return Err(wrong(span.start, "a tab can't indent; take blanks"));
            }
        }
        Ok(0)
    }

    /// The parser ends a block's last line where the text forgot to.
    fn at_the_end(&self, text: Cow<'t, str>, style: ScalarStyle, span: &Span) -> Cow<'t, str> {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if is_block && self.ends_open && span.end.index() >= self.length && text.ends_with('\n') {
            return text[..text.len() - 1].to_owned().into();
        }
        text
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, CallError> {
        let mut elements = Vec::new();
        let (mut parts, mut height) = (1, 0);
        loop {
            let step = self.next()?;
            if step.0 == Event::SequenceEnd {
                break;
            }
            let node = self.node(step, depth + 1)?;
            parts += node.parts;
            height = height.max(node.height);
            elements.push(node.value);
        }
        Ok(Node {
            value: Value::tuple(elements),
            parts,
            height: height + 1,
        })
    }

    fn mapping(&mut self, depth: usize) -> Result<Node, CallError> {
        let mut entries = Entries::new();
        let (mut parts, mut height) = (1, 0);
        loop {
            let (event, span) = self.next()?;
            let (text, style, tag) = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, style, _, tag) => (text, style, tag),
                _ => return Err(wrong(span.start, "a key must be a string")),
            };
            // In quotes too, as in Terraform.
            let merges = text == "<<" && tag.is_none();
            let key = if merges {
                None
            } else {
                Some(key(&text, style, tag.as_deref(), span.start)?)
            };
            let step = self.next()?;
            let place = step.1.start;
            let node = self.node(step, depth + 1)?;
            parts += node.parts;
            height = height.max(node.height);
            match (key, &node.value.kind) {
                (Some(key), _) => {
                    entries.insert(key, node.value);
                }
                (None, Kind::Object(merged)) => {
                    self.context.charge_steps(merged.len())?;
                    let merged = merged.iter();
                    entries.extend(merged.map(|(name, value)| (name.clone(), value.clone())));
                }
                (None, _) => return Err(wrong(place, "`<<` takes in a mapping")),
            }
        }
        Ok(Node {
            value: Value::object(entries),
            parts,
            height: height + 1,
        })
    }
}

/// Numbers and booleans are keys as their text is written in Terraform.
fn key(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    place: Marker,
) -> Result<Arc<str>, CallError> {
    let value = scalar::resolve(text, style, tag).map_err(|what| wrong(place, what))?;
    match convert(&value, &Type::String).map(|value| value.kind) {
        Ok(Kind::String(text)) => Ok(composed(text)),
        _ => Err(wrong(place, "a key can't be null")),
    }
}

fn collection_tag(tag: Option<Cow<'_, Tag>>, wanted: &str, place: Marker) -> Result<(), CallError> {
    match tag {
        Some(tag) if scalar::core_tag(&tag) != Some(wanted) => {
            Err(wrong(place, format!("the tag `{tag}` can't stand here")))
        }
        _ => Ok(()),
    }
}

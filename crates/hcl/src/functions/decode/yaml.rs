//! YAML as Terraform's go-cty-yaml reads it: the words of YAML 1.1 (`yes`, `off`), the numbers of
//! 1.2, dates as RFC 3339 writes them. The last of several equal keys counts.

mod scalar;

use std::sync::Arc;

use nstance_yaml::{Error, ErrorKind, Kind as Shape, Node, Reader, Scalar, core_tag, line_column};

use super::{CallError, Context, DEEPEST, Value, text, too_deep};
use crate::convert::convert;
use crate::types::Type;
use crate::value::{Entries, Kind, composed};

pub(super) fn decode(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let text = text(arguments, 0)?;
    context.charge_bytes(text.len())?;
    let decoder = Decoder { context, text };
    let failed = |error: Error| match error.kind {
        ErrorKind::TooDeep => too_deep(),
        kind => decoder.wrong(error.range.start, kind),
    };
    let mut reader = Reader::new(text, DEEPEST, Meaning::new);
    let Some(document) = reader.document().map_err(failed)? else {
        return Err(CallError::argument(0, "There is no YAML document"));
    };
    if let Some(second) = reader.document().map_err(failed)? {
        return Err(decoder.wrong(second.start.start, "a second document starts here"));
    }
    decoder.value(&document.root)
}

/// A scalar.
#[derive(Clone)]
struct Meaning {
    /// `Err` says why it has no value.
    value: Result<Value, Arc<str>>,
    /// `<<` without a tag; in quotes too, as in Terraform.
    merges: bool,
}

impl Meaning {
    fn new(scalar: &Scalar<'_>) -> Self {
        Self {
            value: scalar::resolve(scalar).map_err(Arc::from),
            merges: scalar.text == "<<" && scalar.tag.is_none(),
        }
    }
}

struct Decoder<'t> {
    context: &'t Context<'t>,
    text: &'t str,
}

impl Decoder<'_> {
    fn wrong(&self, at: usize, what: impl std::fmt::Display) -> CallError {
        let (line, column) = line_column(self.text, at);
        CallError::argument(
            0,
            format!("This YAML can't be read: line {line}, column {column}: {what}"),
        )
    }

    fn scalar(&self, node: &Node<Meaning>, meaning: &Meaning) -> Result<Value, CallError> {
        let value = meaning.value.clone();
        value.map_err(|what| self.wrong(node.properties, what))
    }

    fn value(&self, node: &Node<Meaning>) -> Result<Value, CallError> {
        self.context.charge_steps(1)?;
        match &node.kind {
            Shape::Scalar(meaning) => self.scalar(node, meaning),
            Shape::Sequence(items) => {
                self.collection_tag(node, "seq")?;
                let elements = items.iter().map(|item| self.value(item));
                Ok(Value::tuple(elements.collect::<Result<Vec<_>, _>>()?))
            }
            Shape::Mapping(entries) => {
                self.collection_tag(node, "map")?;
                self.object(entries)
            }
        }
    }

    fn collection_tag(&self, node: &Node<Meaning>, expected: &str) -> Result<(), CallError> {
        match &node.tag {
            Some(tag) if core_tag(tag) != Some(expected) => {
                Err(self.wrong(node.properties, format!("the tag `{tag}` can't stand here")))
            }
            _ => Ok(()),
        }
    }

    fn object(&self, written: &[(Node<Meaning>, Node<Meaning>)]) -> Result<Value, CallError> {
        let mut entries = Entries::new();
        for (key, node) in written {
            let Shape::Scalar(meaning) = &key.kind else {
                return Err(self.wrong(key.properties, ErrorKind::Key));
            };
            if let Some(alias) = &key.alias {
                return Err(self.wrong(alias.start, ErrorKind::Key));
            }
            if !meaning.merges {
                let key = self.key(key, meaning)?;
                entries.insert(key, self.value(node)?);
                continue;
            }
            let Kind::Object(merged) = self.value(node)?.kind else {
                return Err(self.wrong(node.place().start, "`<<` takes in a mapping"));
            };
            self.context.charge_steps(merged.len())?;
            let merged = merged.iter();
            entries.extend(merged.map(|(name, value)| (name.clone(), value.clone())));
        }
        Ok(Value::object(entries))
    }

    /// Numbers and booleans are keys as their text is written in Terraform.
    fn key(&self, node: &Node<Meaning>, meaning: &Meaning) -> Result<Arc<str>, CallError> {
        let value = self.scalar(node, meaning)?;
        match convert(&value, &Type::String).map(|value| value.kind) {
            Ok(Kind::String(text)) => Ok(composed(text)),
            _ => Err(self.wrong(node.properties, "a key can't be null")),
        }
    }
}

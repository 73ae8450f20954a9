//! CSV, as Go reads it: empty lines are passed over, every record has as many fields as the first,
//! a quotation mark is at a field's start or doubled.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CallError, Context, Value, text};
use crate::types::Type;
use crate::value::{Entries, composed};

/// A list of objects, whose attributes the first line names.
pub(super) fn decode(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let text = text(arguments, 0)?;
    context.charge_bytes(text.len())?;
    let mut reader = Reader {
        rest: text,
        line: 0,
    };
    let Some(header) = reader.record()? else {
        return Err(CallError::argument(
            0,
            "A line with the columns' names is missing",
        ));
    };
    let names: Vec<Arc<str>> = header
        .iter()
        .map(|name| composed((**name).into()))
        .collect();
    let mut types = BTreeMap::new();
    for name in &names {
        if types.insert(name.clone(), Type::String).is_some() {
            let message = format!("Two columns have the name {name:?}");
            return Err(CallError::argument(0, message));
        }
    }
    let mut records = Vec::new();
    while let Some(record) = reader.record()? {
        context.charge_steps(record.len())?;
        if record.len() != names.len() {
            let (given, wanted) = (record.len(), names.len());
            return Err(reader.wrong(&format!("there are {given} fields, not {wanted}")));
        }
        let fields = names
            .iter()
            .cloned()
            .zip(record.into_iter().map(Value::string));
        records.push(Value::object(fields.collect::<Entries>()));
    }
    Ok(Value::list(Type::object(types), records))
}

struct Reader<'t> {
    rest: &'t str,
    /// Lines read so far.
    line: usize,
}

impl<'t> Reader<'t> {
    fn wrong(&self, what: &str) -> CallError {
        CallError::argument(0, format!("This isn't CSV: line {}: {what}", self.line))
    }

    /// The next line without its end.
    fn next_line(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        self.line += 1;
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    fn record(&mut self) -> Result<Option<Vec<String>>, CallError> {
        let mut line = loop {
            match self.next_line() {
                None => return Ok(None),
                Some("") => {}
                Some(line) => break line,
            }
        };
        let mut fields = Vec::new();
        loop {
            let Some(quoted) = line.strip_prefix('"') else {
                let (field, rest) = match line.split_once(',') {
                    Some((field, rest)) => (field, Some(rest)),
                    None => (line, None),
                };
                if field.contains('"') {
                    return Err(self.wrong("a field with a quotation mark must stand in them"));
                }
                fields.push(field.to_owned());
                match rest {
                    Some(rest) => line = rest,
                    None => return Ok(Some(fields)),
                }
                continue;
            };
            let mut field = String::new();
            line = quoted;
            let ends = loop {
                let Some((before, behind)) = line.split_once('"') else {
                    field.push_str(line);
                    field.push('\n');
                    match self.next_line() {
                        Some(next) => line = next,
                        None => return Err(self.wrong("a field in quotation marks isn't closed")),
                    }
                    continue;
                };
                field.push_str(before);
                line = behind;
                if let Some(behind) = line.strip_prefix('"') {
                    field.push('"');
                    line = behind;
                } else if let Some(behind) = line.strip_prefix(',') {
                    line = behind;
                    break false;
                } else if line.is_empty() {
                    break true;
                } else {
                    let what = "behind a field's closing quotation mark stands no comma";
                    return Err(self.wrong(what));
                }
            };
            fields.push(field);
            if ends {
                return Ok(Some(fields));
            }
        }
    }
}

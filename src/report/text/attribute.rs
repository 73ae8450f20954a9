//! Shows the difference of one attribute.
//!
//! In: an [`AttributeChange`]. Out: an [`Entry`]. Must not: exceed the line limit of a text.

use serde_json::Value;

use super::entry::{self, Entry};
use super::paint::{Sign, Style};
use super::userdata;
use super::value;
use crate::diagnostic::counted;
use crate::plan::change::{Action, AttributeChange, Change, InstanceView};
use crate::plan::diff::USERDATA;
use crate::provider::rules::Effect;
use crate::sensitivity::HIDDEN;
use crate::spec::{Content, SpecBody};

/// Shown for a value that is unknown before apply.
pub(in crate::report) const UNKNOWN: &str = "(known after apply)";

/// Shown for a file that the server delivers.
pub(super) const BY_SERVER: &str = "(delivered by the server)";

/// The entry of an attribute; a text's diff has about `limit` lines at most.
pub(super) fn entry(
    attribute: &AttributeChange,
    change: &Change,
    before: &InstanceView,
    after: &InstanceView,
    limit: usize,
    style: Style<'_>,
) -> Entry {
    let sign = match (&attribute.before, &attribute.after) {
        (None, _) => Sign::Create,
        (Some(_), None) if !attribute.unknown => Sign::Delete,
        _ => Sign::Update,
    };
    let path = value::visible(&attribute.path);
    let sides = (&attribute.before, &attribute.after);
    let entry = if let Some(entry) = userdata::changed(sign, &attribute.path, sides, limit) {
        entry
    } else {
        match unreadable(attribute, before, after) {
            Some(text) => Entry::line(sign, path, text),
            None => readable(sign, &path, attribute, limit, style),
        }
    };
    let mut notes = Vec::new();
    match (attribute.effect, change.action) {
        // Adopting only changes the record.
        (_, Action::Adopt) | (Effect::InPlace, _) => {}
        (Effect::Replace, _) => notes.push("forces replacement".to_owned()),
        // A replacement starts a new instance anyway.
        (Effect::Restart, action) if action.is_replace() => {}
        (Effect::Restart, _) => notes.push("stops and starts".to_owned()),
    }
    notes.extend(attribute.written_at.as_deref().map(value::visible));
    if notes.is_empty() {
        entry
    } else {
        entry.noted(notes.join(", "), attribute.effect == Effect::Replace)
    }
}

fn readable(
    sign: Sign,
    path: &str,
    attribute: &AttributeChange,
    limit: usize,
    style: Style<'_>,
) -> Entry {
    let room = entry::room(style, 0, path).saturating_sub(" -> ".len());
    match (&attribute.before, &attribute.after) {
        (None, None) => Entry::line(sign, path, UNKNOWN),
        (Some(old), None) => {
            let then = if attribute.unknown { UNKNOWN } else { "null" };
            Entry::line(sign, path, format!("{} -> {then}", summary(old, room / 2)))
        }
        (None, Some(new)) => Entry::value(sign, path, new, 0, limit, style),
        // The visible parts are equal.
        (Some(old), Some(new)) if old == new => Entry::line(sign, path, HIDDEN),
        (Some(Value::String(old)), Some(Value::String(new)))
            if old.contains('\n') || new.contains('\n') =>
        {
            Entry::text(sign, path, value::line_diff(old, new, limit))
        }
        (Some(old), Some(new)) => {
            let (one, other) = (value::inline(old), value::inline(new));
            if one.chars().count() + other.chars().count() <= room {
                return Entry::line(sign, path, format!("{one} -> {other}"));
            }
            if let (Value::String(old), Value::String(new)) = (old, new) {
                let (old, new) = value::around_difference(old, new, room / 2 - 4);
                return Entry::line(sign, path, format!("{old} -> {new}"));
            }
            match (value::parts(old), value::parts(new)) {
                (Some((old, brackets)), Some((new, same))) if brackets == same => {
                    Entry::parts(sign, path, value::parts_diff(&old, &new, limit), brackets)
                }
                _ => {
                    let (old, new) = (summary(old, room / 2), summary(new, room / 2));
                    Entry::line(sign, path, format!("{old} -> {new}"))
                }
            }
        }
    }
}

/// A value on one line; for a long text, the number of its lines.
fn summary(value: &Value, room: usize) -> String {
    match value {
        Value::String(text) if text.contains('\n') => lines_of(text),
        _ => value::short(value, room),
    }
}

/// `(3 lines)`
pub(super) fn lines_of(text: &str) -> String {
    if text == HIDDEN {
        return HIDDEN.to_owned();
    }
    format!("({})", counted(text.lines().count(), "line"))
}

/// The text for an unreadable value: binary data, or a file of the server.
pub(in crate::report) fn unreadable(
    attribute: &AttributeChange,
    before: &InstanceView,
    after: &InstanceView,
) -> Option<String> {
    if attribute.path == USERDATA {
        if !is_binary(&before.spec) && !is_binary(&after.spec) {
            return None;
        }
        let part = |side: &InstanceView, value: &Option<Value>| match value {
            None => "null".to_owned(),
            Some(_) if is_binary(&side.spec) => binary(&side.spec),
            Some(value) => lines_of(value.as_str().unwrap_or_default()),
        };
        let old = part(before, &attribute.before);
        let new = part(after, &attribute.after);
        return Some(format!("{old} -> {new}"));
    }
    let name = attribute.path.strip_prefix("files.")?;
    let by_server =
        |side: &InstanceView| side.spec.files.get(name).is_some_and(|file| file.by_server);
    match (&attribute.before, &attribute.after) {
        (Some(_), None) if by_server(before) => Some(format!("{BY_SERVER} -> null")),
        _ if by_server(before) || by_server(after) => Some(BY_SERVER.to_owned()),
        _ => None,
    }
}

fn is_binary(spec: &SpecBody) -> bool {
    let content = spec.userdata.as_ref().map(|userdata| &userdata.content);
    matches!(content, Some(Content::Base64(_)))
}

/// The text for binary userdata.
pub(super) fn binary(spec: &SpecBody) -> String {
    let length = spec
        .userdata
        .as_ref()
        .map_or(0, |userdata| userdata.content.to_bytes().len());
    format!("(binary, {})", counted(length, "byte"))
}

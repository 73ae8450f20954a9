//! The tables of a block: what a change is made of.
//!
//! In: the attributes of a change, or the entries of a whole instance. Out: tables, and diffs of
//! texts. Must not: know other changes.

use serde_json::Value;

use super::PLAIN;
use super::writer::Html;
use crate::diagnostic::counted;
use crate::plan::change::{Action, AttributeChange, Change, InstanceView, Reason};
use crate::provider::rules::Effect;
use crate::report::collapse::group_part;
use crate::report::text::attribute::{UNKNOWN, unreadable};
use crate::report::text::change::{Detail, View, unchanged_count};
use crate::report::text::entry::{self, Body, Entry};
use crate::report::text::paint::Sign;
use crate::report::text::userdata;
use crate::report::text::value::{self, Line};
use crate::sensitivity::HIDDEN;

/// The line limits of texts and diffs.
pub(super) const DETAIL: Detail = Detail {
    text: 100,
    diff: 200,
};

/// The maximum number of characters of a value or a line.
const VALUE: usize = 2_000;

/// Longer lists and objects are shown as a diff of their elements.
const SHORT_PARTS: usize = 120;

/// Shown where there is no value.
const NOTHING: &str = "–";

/// The table of a change.
pub(super) fn table(view: &View<'_>, html: &mut Html) {
    let change = view.block.first;
    match (change.action, &change.before, &change.after) {
        (Action::Create | Action::Delete | Action::Forget, _, _) | (_, None, _) | (_, _, None) => {
            whole(view, html);
        }
        (_, Some(before), Some(after)) => differences(view, before, after, html),
    }
}

/// The table of a new or removed instance.
fn whole(view: &View<'_>, html: &mut Html) {
    let entries = view.entries();
    if entries.is_empty() {
        return;
    }
    html.markup("<table class=v><thead><tr><th scope=col>Attribute<th scope=col>Value<tbody>");
    rows("", &entries, html);
    html.markup("</table>");
}

/// A row for each entry; those of an object are named by their path.
fn rows(path: &str, entries: &[Entry], html: &mut Html) {
    for entry in entries {
        let name = match path {
            "" => entry.name.clone(),
            "userdata" => format!("{path}: {}", entry.name),
            path => format!("{path}.{}", entry.name),
        };
        match &entry.body {
            Body::Object(entries) => rows(&name, entries, html),
            Body::Comment => {
                let text = entry.name.trim_start_matches(['#', ' ']);
                html.markup("<tr><td colspan=2 class=m>").text(text);
            }
            body => {
                html.markup("<tr><th scope=row>").text(&name).markup("<td>");
                self::body(entry, body, html);
            }
        }
    }
}

/// An entry's value.
fn body(entry: &Entry, body: &Body, html: &mut Html) {
    match body {
        Body::Line(text) => {
            html.markup("<code>").text(text).markup("</code>");
        }
        Body::Text(lines, ..) => diff(lines, html),
        Body::Object(_) | Body::List(_) | Body::Comment => {
            let mut lines = Vec::new();
            entry::write(std::slice::from_ref(entry), 0, PLAIN, &mut lines);
            html.markup("<pre>")
                .text(&lines.join("\n"))
                .markup("</pre>");
        }
    }
}

/// The table of a changed instance.
fn differences(view: &View<'_>, before: &InstanceView, after: &InstanceView, html: &mut Html) {
    let change = view.block.first;
    html.markup(
        "<table class=c><thead><tr><th scope=col>Attribute<th scope=col>Before\
         <th scope=col>After<th scope=col>Effect<th scope=col>Written at<tbody>",
    );
    for attribute in &change.attributes {
        let class = match attribute.effect {
            Effect::Replace => "<tr class=f><th scope=row>",
            Effect::Restart | Effect::InPlace => "<tr><th scope=row>",
        };
        html.markup(class).text(&attribute.path);
        sides(attribute, before, after, html);
        html.markup("<td class=e>")
            .text(effect(attribute.effect, change));
        html.markup("<td class=p>");
        html.text(attribute.written_at.as_deref().unwrap_or_default());
    }
    for reason in &change.reasons {
        if let Reason::Moved { from } = reason {
            html.markup("<tr><th scope=row>group<td><code>");
            html.text(group_part(from)).markup("</code><td><code>");
            html.text(change.address.group.as_str());
            html.markup("</code><td class=e>in place<td class=p>");
        }
    }
    if change.action.is_replace() {
        for (name, entry) in view.new_identity(before, after) {
            html.markup("<tr><th scope=row>").text(name);
            html.markup("<td colspan=2 class=w>");
            body(&entry, &entry.body, html);
            html.markup("<td class=e>new instance<td class=p>");
        }
    }
    html.markup("</table>");
    let hidden = unchanged_count(after, &change.attributes);
    if hidden > 0 {
        html.markup("<p class=m>");
        html.text(&counted(hidden, "unchanged attribute"));
        html.text(" not shown").markup("</p>");
    }
}

/// What an attribute's change does to the instance.
fn effect(effect: Effect, change: &Change) -> &'static str {
    match (effect, change.action) {
        (_, Action::Adopt) => "recorded",
        (Effect::Replace, _) => "forces replacement",
        // A replacement starts a new instance anyway.
        (Effect::Restart | Effect::InPlace, action) if action.is_replace() => "new instance",
        (Effect::Restart, _) => "stops and starts",
        (Effect::InPlace, _) => "in place",
    }
}

/// The cells before and after, or one cell for both.
fn sides(
    attribute: &AttributeChange,
    before: &InstanceView,
    after: &InstanceView,
    html: &mut Html,
) {
    let AttributeChange { path, unknown, .. } = attribute;
    let (old, new) = (&attribute.before, &attribute.after);
    let sign = if old.is_none() {
        Sign::Create
    } else {
        Sign::Update
    };
    if let Some(parts) = userdata::changed(sign, path, (old, new), DETAIL.diff) {
        html.markup("<td colspan=2 class=w><table><tbody>");
        if let Body::Object(entries) = &parts.body {
            rows("", entries, html);
        }
        html.markup("</table>");
        return;
    }
    if let Some(text) = unreadable(attribute, before, after) {
        html.markup("<td colspan=2 class=w>").text(&text);
        return;
    }
    two_sides(old.as_ref(), new.as_ref(), *unknown, html);
}

/// The cells of two values; `unknown` if the second one is only known after apply.
pub(super) fn two_sides(old: Option<&Value>, new: Option<&Value>, unknown: bool, html: &mut Html) {
    let lines = match (old, new) {
        (Some(old), Some(new)) => diff_of(old, new),
        _ => None,
    };
    if let Some(lines) = lines {
        html.markup("<td colspan=2 class=w>");
        diff(&lines, html);
        return;
    }
    // The visible parts are equal.
    if old.is_some() && old == new {
        html.markup("<td colspan=2 class=w>").text(HIDDEN);
        return;
    }
    if let (Some(Value::String(old)), Some(Value::String(new))) = (old, new)
        && old.len().max(new.len()) > VALUE
    {
        let (old, new) = value::around_difference(old, new, VALUE / 2);
        for side in [&old, &new] {
            html.markup("<td><code>").text(side).markup("</code>");
        }
        return;
    }
    for (side, otherwise) in [
        (old, NOTHING),
        (new, if unknown { UNKNOWN } else { NOTHING }),
    ] {
        html.markup("<td>");
        match side {
            None => {
                html.text(otherwise);
            }
            Some(Value::String(text)) if text.contains('\n') => {
                diff(&value::text_lines(text, DETAIL.text), html);
            }
            Some(side) => {
                let text = value::cut(&value::inline(side), VALUE);
                html.markup("<code>").text(&text).markup("</code>");
            }
        }
    }
}

/// The line diff of two texts, or of the elements of two long lists or objects.
fn diff_of(old: &Value, new: &Value) -> Option<Vec<Line>> {
    if let (Value::String(old), Value::String(new)) = (old, new) {
        let is_text = old != new && (old.contains('\n') || new.contains('\n'));
        return is_text.then(|| value::line_diff(old, new, DETAIL.diff));
    }
    let ((old_parts, one), (new_parts, other)) = (value::parts(old)?, value::parts(new)?);
    let is_long = old_parts.len() + new_parts.len() > SHORT_PARTS;
    (old != new && one == other && is_long)
        .then(|| value::parts_diff(&old_parts, &new_parts, DETAIL.diff))
}

/// Lines with their signs, as text and in color.
pub(super) fn diff(lines: &[Line], html: &mut Html) {
    html.markup("<pre class=d>");
    for run in lines.chunk_by(|a, b| a.sign == b.sign) {
        let (open, lead, close) = match run[0].sign {
            Sign::Create => ("<ins>", "+ ", "</ins>"),
            Sign::Delete => ("<del>", "- ", "</del>"),
            Sign::Update => ("<b>", "~ ", "</b>"),
            Sign::None => ("<span>", "  ", "</span>"),
            Sign::Note => ("<i>", "", "</i>"),
        };
        html.markup(open);
        for (index, line) in run.iter().enumerate() {
            html.text(if index > 0 { "\n" } else { "" });
            html.text(lead).text(&value::cut(&line.text, VALUE));
        }
        html.markup(close);
    }
    html.markup("</pre>");
}

/// The attributes of a change in a few words, for a page that is long enough.
pub(super) fn brief(change: &Change, html: &mut Html) {
    html.markup("<p>");
    for (index, attribute) in change.attributes.iter().enumerate() {
        html.text(if index > 0 { ", " } else { "Changes: " });
        html.text(&attribute.path);
    }
    html.text(if change.attributes.is_empty() {
        ""
    } else {
        ". "
    });
    html.text("The page is too long for the details; `nstance show --json PLANFILE` has them.");
    html.markup("</p>");
}

//! Masks the sensitive values of a plan.
//!
//! In: a [`Plan`] with the marks of its sides. Out: the same plan with sensitive values and lines
//! replaced by masks. Must not: hide that something changes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{HIDDEN, Mark, Marks, TextMark, cover_both, file_text, userdata_text};
use crate::plan::change::{AttributeChange, Change, Drift, InstanceView, Plan};
use crate::provider::rules::Effect;
use crate::render::links;
use crate::spec::{Content, SpecBody};

/// The sensitive texts of a plan: what its reports mask. Whoever applies it may lack the variables
/// that they come from.
pub(crate) fn secrets(plan: &Plan) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let changes = plan.changes.iter().chain(&plan.held_back);
    for change in changes {
        let sides = [&change.before, &change.after].into_iter().flatten();
        for side in sides.filter(|side| !side.marks.is_empty()) {
            let address = &change.address;
            let (open, masked) = (plan.view_in_clear(address, side), plan.view(address, side));
            gather_hidden(&open, &masked, &mut texts);
        }
    }
    texts
}

fn gather_hidden(open: &Value, masked: &Value, texts: &mut BTreeSet<String>) {
    match (open, masked) {
        (Value::Object(open), Value::Object(masked)) => {
            for (key, value) in open {
                let masked = masked.get(key).unwrap_or(&Value::Null);
                gather_hidden(value, masked, texts);
            }
        }
        (Value::Array(open), Value::Array(masked)) if open.len() == masked.len() => {
            for (open, masked) in open.iter().zip(masked) {
                gather_hidden(open, masked, texts);
            }
        }
        (Value::String(open), Value::String(masked)) if open != masked => {
            texts.extend(hidden_pieces(open, masked));
        }
        (Value::Object(open), _) => {
            let values = open.values();
            values.for_each(|value| gather_hidden(value, masked, texts));
        }
        (Value::Array(open), _) => {
            let values = open.iter();
            values.for_each(|value| gather_hidden(value, masked, texts));
        }
        (Value::Number(number), Value::String(_)) => drop(texts.insert(number.to_string())),
        _ => {}
    }
}

/// The pieces of a text that its masked form hides; the whole lines where that isn't certain.
fn hidden_pieces(open: &str, masked: &str) -> Vec<String> {
    let mut shown = masked.split(HIDDEN);
    let mut pieces = Vec::new();
    let mut rest = shown.next().and_then(|first| open.strip_prefix(first));
    for part in shown {
        let Some(text) = rest else { break };
        let at = if part.is_empty() {
            Some(text.len())
        } else {
            text.find(part)
        };
        rest = at.map(|at| {
            pieces.push(text[..at].to_owned());
            &text[at + part.len()..]
        });
    }
    if rest != Some("") {
        let lines = open.lines().map(str::trim);
        let shown: BTreeSet<&str> = masked.lines().map(str::trim).collect();
        return lines
            .filter(|line| !shown.contains(line))
            .map(str::to_owned)
            .collect();
    }
    pieces
}

/// The masked plan; every report of a plan starts with this.
pub(crate) fn covered(plan: &Plan) -> Cow<'_, Plan> {
    let mut changes = plan.changes.iter().chain(&plan.held_back);
    if !plan.holds_secrets() && changes.all(|change| change.late.is_empty()) {
        return Cow::Borrowed(plan);
    }
    let mut plan = plan.clone();
    let changes = plan.changes.iter_mut().chain(&mut plan.held_back);
    changes.chain(&mut plan.unchanged).for_each(cover_change);
    plan.drift.iter_mut().for_each(cover_drift);
    show_unknown(&mut plan);
    Cow::Owned(plan)
}

/// Replaces the stand-ins for addresses that aren't known yet.
pub(crate) fn show_unknown(plan: &mut Plan) {
    let changes = plan.changes.iter_mut().chain(&mut plan.held_back);
    changes.for_each(show_unknown_of);
}

fn show_unknown_of(change: &mut Change) {
    if change.late.is_empty() {
        return;
    }
    for attribute in change.attributes.iter_mut().filter(|it| it.unknown) {
        attribute.after = attribute.after.as_ref().map(links::with_unknown_shown);
    }
    if let Some(after) = &mut change.after {
        let mut body = (*after.spec).clone();
        body.args = body
            .args
            .iter()
            .map(|(key, value)| (key.clone(), links::with_unknown_shown(value)))
            .collect();
        if let Some(userdata) = &mut body.userdata
            && let Content::Text(text) = &mut userdata.content
        {
            *text = links::text_with_unknown_shown(text);
        }
        for file in body.files.values_mut() {
            file.content = file.content.as_deref().map(links::text_with_unknown_shown);
        }
        for value in body.tags.values_mut() {
            *value = links::text_with_unknown_shown(value);
        }
        after.spec = Arc::new(body);
    }
}

fn cover_change(change: &mut Change) {
    let nothing =
        |side: &Option<Box<InstanceView>>| side.as_ref().is_none_or(|side| side.marks.is_empty());
    if nothing(&change.before) && nothing(&change.after) {
        return;
    }
    let (Some(before), Some(after)) = (&mut change.before, &mut change.after) else {
        for side in [&mut change.before, &mut change.after]
            .into_iter()
            .flatten()
        {
            side.spec = Arc::new(side.marks.cover(&side.spec));
        }
        return;
    };
    // A value that is sensitive on one side is masked on both.
    let old = before.marks.or(
        &after.marks.carried_to(&after.spec, &before.spec),
        &before.spec,
    );
    let new = after.marks.or(
        &before.marks.carried_to(&before.spec, &after.spec),
        &after.spec,
    );
    for attribute in &mut change.attributes {
        cover_attribute(attribute, &old, &new);
    }
    join_attributes(&mut change.attributes);
    let (old_spec, new_spec) = cover_specs((&before.spec, &old), (&after.spec, &new));
    (before.spec, after.spec) = (Arc::new(old_spec), Arc::new(new_spec));
    (before.marks, after.marks) = (Arc::new(old), Arc::new(new));
}

/// Masks two specs together, so that a change of a sensitive line stays visible.
fn cover_specs(
    (before, old): (&SpecBody, &Marks),
    (after, new): (&SpecBody, &Marks),
) -> (SpecBody, SpecBody) {
    let (mut covered_before, mut covered_after) = (old.cover(before), new.cover(after));
    let both = |a: (&str, &TextMark), b: (&str, &TextMark)| {
        (!a.1.is_open() || !b.1.is_open()).then(|| cover_both(a, b))
    };
    if let (Some(one), Some(other)) = (&mut covered_before.userdata, &mut covered_after.userdata)
        && let Some((text, other_text)) = both(
            (userdata_text(before), &old.userdata),
            (userdata_text(after), &new.userdata),
        )
    {
        one.content = Content::Text(text);
        other.content = Content::Text(other_text);
    }
    for (name, file) in &mut covered_before.files {
        let Some(other) = covered_after.files.get_mut(name) else {
            continue;
        };
        if let (Some(content), Some(other)) = (&mut file.content, &mut other.content)
            && let Some((text, other_text)) = both(
                (file_text(before, name), old.file(name)),
                (file_text(after, name), new.file(name)),
            )
        {
            (*content, *other) = (text, other_text);
        }
    }
    (covered_before, covered_after)
}

fn cover_attribute(attribute: &mut AttributeChange, old: &Marks, new: &Marks) {
    match place(&attribute.path, old, new) {
        Place::Value(mark, told) => {
            cover(&mut attribute.before, &mark);
            cover(&mut attribute.after, &mark);
            attribute.path.truncate(told);
        }
        Place::Text(old, new) => {
            cover_texts((&mut attribute.before, old), (&mut attribute.after, new));
        }
        Place::Open => {}
    }
}

/// Replaces several changes below a sensitive value by one.
fn join_attributes(attributes: &mut Vec<AttributeChange>) {
    attributes.dedup_by(|next, first| {
        let same = next.path == first.path;
        if same {
            let strength = |effect| match effect {
                Effect::InPlace => 0,
                Effect::Restart => 1,
                Effect::Replace => 2,
            };
            if strength(next.effect) > strength(first.effect) {
                first.effect = next.effect;
            }
            // Whether a part was added or removed is sensitive too.
            first.before = Some(HIDDEN.into());
            first.after = Some(HIDDEN.into());
        }
        same
    });
}

/// The sensitivity at a path of an instance.
enum Place<'m> {
    Open,
    /// The mark, and the length of the path that may be shown.
    Value(Mark, usize),
    /// The marks before and after.
    Text(&'m TextMark, &'m TextMark),
}

fn place<'m>(path: &str, old: &'m Marks, new: &'m Marks) -> Place<'m> {
    if path == "userdata" {
        return Place::Text(&old.userdata, &new.userdata);
    }
    if let Some(name) = path.strip_prefix("files.") {
        return Place::Text(old.file(name), new.file(name));
    }
    let root = path.find(['.', '[']).unwrap_or(path.len());
    let (root, rest) = path.split_at(root);
    let of = |marks: &Marks| match root {
        "args" => marks.args.at(rest),
        "vars" => marks.vars.at(rest),
        "tags" => marks.tags.at(rest),
        _ => Mark::Open,
    };
    let told = |marks: &Marks| match root {
        "args" => marks.args.told(rest).len(),
        "vars" => marks.vars.told(rest).len(),
        "tags" => marks.tags.told(rest).len(),
        _ => rest.len(),
    };
    match of(old).or(&of(new)) {
        Mark::Open => Place::Open,
        mark => Place::Value(mark, root.len() + told(old).min(told(new))),
    }
}

fn cover(value: &mut Option<Value>, mark: &Mark) {
    if let Some(value) = value {
        *value = mark.cover(value);
    }
}

fn cover_texts(
    (before, old): (&mut Option<Value>, &TextMark),
    (after, new): (&mut Option<Value>, &TextMark),
) {
    if old.is_open() && new.is_open() {
        return;
    }
    let text = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
    match (text(before), text(after)) {
        (Some(one), Some(other)) => {
            let (one, other) = cover_both((&one, old), (&other, new));
            (*before, *after) = (Some(one.into()), Some(other.into()));
        }
        (one, other) => {
            *before = one.map(|text| old.cover(&text).into());
            *after = other.map(|text| new.cover(&text).into());
        }
    }
}

fn cover_drift(drift: &mut Drift) {
    let Some(before) = &mut drift.before else {
        return;
    };
    let marks = Arc::clone(&before.marks);
    if marks.is_empty() {
        return;
    }
    for change in &mut drift.changes {
        match place(&change.path, &marks, &marks) {
            Place::Value(mark, told) => {
                cover(&mut change.recorded, &mark);
                cover(&mut change.observed, &mark);
                change.path.truncate(told);
            }
            Place::Text(mark, _) => {
                let text = |value: &Option<Value>| {
                    let text = value.as_ref().and_then(Value::as_str);
                    text.unwrap_or_default().to_owned()
                };
                let seen = mark.carried_to(&text(&change.recorded), &text(&change.observed));
                cover_texts((&mut change.recorded, mark), (&mut change.observed, &seen));
            }
            Place::Open => {}
        }
    }
    drift
        .changes
        .dedup_by(|next, first| next.path == first.path);
    before.spec = Arc::new(marks.cover(&before.spec));
}

//! One block: why, and what changes.
//!
//! In: a [`Block`]. Out: its lines. May not: say what other blocks look like.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};

use super::collapse::{Block, group_part};
use super::entry::{self, Entry};
use super::paint::{Sign, Style};
use super::value::{self, age, counted, listed, quoted};
use crate::plan::change::{Action, AttributeChange, Change, Reason, Side};
use crate::provider::rules::Effect;
use crate::spec::{Content, SpecBody};

const UNKNOWN: &str = "(known after apply)";
const BY_SERVER: &str = "(delivered by the server)";

/// How much of a block is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detail {
    /// Lines of a text that comes or goes as a whole.
    pub(super) text: usize,
    /// Lines of a diff.
    pub(super) diff: usize,
}

impl Detail {
    /// All that a reader could want.
    pub(super) const FULL: Self = Self { text: 20, diff: 40 };
    /// Where room is short.
    pub(super) const BRIEF: Self = Self { text: 0, diff: 8 };
}

/// A block on one line.
pub(super) fn headline(block: &Block<'_>, style: Style) -> String {
    let change = block.first;
    let what = match change.action {
        Action::Create => "will be created".to_owned(),
        Action::Update => "will be updated in-place".to_owned(),
        Action::CreateThenDelete | Action::DeleteThenCreate => {
            format!("must be {}", style.danger("replaced"))
        }
        Action::Delete => format!("will be {}", style.danger("destroyed")),
        Action::Adopt if change.before.is_some() => {
            "will be recorded as it was observed".to_owned()
        }
        Action::Adopt => "will be adopted".to_owned(),
        Action::Forget => "will no longer be recorded".to_owned(),
        Action::NoOp => "stays as it is".to_owned(),
    };
    let count = match block.count {
        1 => String::new(),
        count => format!(" ({count} instances)"),
    };
    let deposed = match (&change.deposed, block.count) {
        (None, _) => String::new(),
        (Some(id), 1) => format!(" (deposed {})", value::visible(id)),
        (Some(_), _) => " (deposed)".to_owned(),
    };
    format!(
        "  # {} {what}{count}",
        style.bold(&format!("{}{deposed}", block.address()))
    )
}

/// A block with its reasons and attributes.
pub(super) fn lines(
    block: &Block<'_>,
    resource_type: &str,
    detail: Detail,
    style: Style,
) -> Vec<String> {
    let mut lines = vec![headline(block, style)];
    lines.extend(reasons(block).into_iter().map(|reason| {
        let reason = value::cut(&value::visible(&reason), style.columns().max(100));
        format!("  {}", style.faint(&format!("# ({reason})")))
    }));
    if block.count > 1 && block.own_values && shows_values(block.first.action) {
        let shown = format!("# (shown as for {})", block.first.address);
        lines.push(format!("  {}", style.faint(&shown)));
    }
    let entries = View {
        block,
        detail,
        style,
    }
    .entries();
    let sign = style.action_sign(block.first.action);
    let head = format!("{sign} {resource_type} {} {{", quoted(&block.address()));
    lines.push(if sign.trim().is_empty() {
        head.trim_end().to_owned()
    } else {
        head
    });
    entry::write(&entries, 0, style, &mut lines);
    lines.push("    }".to_owned());
    lines
}

fn shows_values(action: Action) -> bool {
    !matches!(action, Action::Delete | Action::Forget)
}

/// Why, each in a few words; what goes without saying is left out.
fn reasons(block: &Block<'_>) -> Vec<String> {
    let change = block.first;
    change
        .reasons
        .iter()
        .filter_map(|reason| reason_text(reason, change, block))
        .collect()
}

fn reason_text(reason: &Reason, change: &Change, block: &Block<'_>) -> Option<String> {
    Some(match reason {
        Reason::NewerImage { name, from, to } => format!("image {name}: {from} → {to}"),
        Reason::CannotUpdate => {
            let forcing: Vec<&str> = change
                .attributes
                .iter()
                .filter(|attribute| attribute.effect == Effect::Replace)
                .filter(|attribute| !is_image_change(attribute, &change.reasons))
                .map(|attribute| &*attribute.path)
                .collect();
            match forcing[..] {
                [] => return None,
                [path] => format!("a change of {path} forces replacement"),
                _ => format!("changes of {} force replacement", listed(&forcing, 3)),
            }
        }
        Reason::GroupGrew | Reason::Changed | Reason::Destroy | Reason::RefreshOnly => return None,
        Reason::GroupShrank => "the group has fewer instances than before".to_owned(),
        Reason::GroupRemoved => "the group is no longer configured".to_owned(),
        Reason::Missing => "it is gone from the cloud".to_owned(),
        Reason::Drifted => "it was changed outside of nstance".to_owned(),
        Reason::Requested => "requested with --replace".to_owned(),
        Reason::Expired { age_seconds } => {
            let least = block.least_age.unwrap_or(*age_seconds);
            format!(
                "older than shard.expiry allows: {}",
                age(Duration::from_secs(least))
            )
        }
        Reason::Duplicate => "another instance holds the same slot".to_owned(),
        Reason::Deposed => "its successor has taken its slot".to_owned(),
        Reason::Unrecorded => "it carries this shard's tags and isn't recorded".to_owned(),
        Reason::Moved { from } if block.count > 1 => format!("moved from {}", group_part(from)),
        Reason::Moved { from } => format!("moved from {from}"),
    })
}

fn is_image_change(attribute: &AttributeChange, reasons: &[Reason]) -> bool {
    let text = |value: &Option<Value>, id: &str| value.as_ref().and_then(Value::as_str) == Some(id);
    reasons.iter().any(|reason| match reason {
        Reason::NewerImage { from, to, .. } => {
            text(&attribute.before, from) && text(&attribute.after, to)
        }
        _ => false,
    })
}

struct View<'a> {
    block: &'a Block<'a>,
    detail: Detail,
    style: Style,
}

impl View<'_> {
    fn entries(&self) -> Vec<Entry> {
        let change = self.block.first;
        match (change.action, &change.before, &change.after) {
            (Action::Create, _, Some(after)) => self.whole(Sign::Create, after),
            (Action::Adopt, None, Some(after)) => self.whole(Sign::None, after),
            (Action::Delete, Some(before), _) => self.ending(Sign::Delete, before),
            (Action::Forget, Some(before), _) => self.ending(Sign::None, before),
            (_, Some(before), Some(after)) => self.differences(before, after),
            (_, _, Some(side)) | (_, Some(side), None) => self.ending(Sign::None, side),
            (_, None, None) => Vec::new(),
        }
    }

    fn single(&self) -> bool {
        self.block.count == 1
    }

    /// An instance that comes: what it will be.
    fn whole(&self, sign: Sign, side: &Side) -> Vec<Entry> {
        let spec = &side.spec;
        let mut entries = Vec::new();
        let args = shown_args(spec);
        if !args.is_empty() {
            entries.push(self.value(sign, "args", &Value::Object(args)));
        }
        let mut line = |name: &str, text: String| entries.push(Entry::line(sign, name, text));
        line("arch", quoted(&spec.head.arch));
        if self.single() {
            line("instance_id", quoted(&side.instance_id));
        }
        if !spec.head.instance_type.is_empty() {
            line("instance_type", quoted(&spec.head.instance_type));
        }
        let known = |text: Option<&str>| match text {
            Some(text) if self.single() => Some(quoted(text)),
            Some(_) => None,
            None => Some(UNKNOWN.to_owned()),
        };
        for (name, text) in [
            ("ip4", side.ip4.as_deref()),
            ("provider_id", side.provider_id.as_deref()),
        ] {
            if let Some(text) = known(text) {
                line(name, text);
            }
        }
        if !spec.head.load_balancers.is_empty() {
            let targets = Value::from(spec.head.load_balancers.clone());
            entries.push(self.value(sign, "load_balancers", &targets));
        }
        let mut line = |name: &str, text: String| entries.push(Entry::line(sign, name, text));
        if !self.block.subnets.is_empty() {
            line("subnet", several(&self.block.subnets));
        }
        if let Some(pool) = &spec.head.subnet_pool {
            line("subnet_pool", quoted(pool));
        }
        if let Some(template) = &spec.head.template {
            line("template", quoted(template));
        }
        line("zone", several(&self.block.zones));
        if !spec.tags.is_empty() {
            let tags = spec
                .tags
                .iter()
                .map(|(key, tag)| (key.clone(), Value::from(tag.as_str())));
            entries.push(self.value(sign, "tags", &Value::Object(tags.collect())));
        }
        if !spec.files.is_empty() {
            let files = spec.files.iter().map(|(name, file)| {
                let text = match &file.content {
                    _ if file.by_server => BY_SERVER.to_owned(),
                    None => UNKNOWN.to_owned(),
                    Some(content) => format!("({})", counted(content.lines().count(), "line")),
                };
                Entry::line(sign, value::key_text(name), text)
            });
            entries.push(Entry::object(sign, "files", files.collect()));
        }
        entries.extend(self.userdata(sign, spec));
        entries
    }

    fn userdata(&self, sign: Sign, spec: &SpecBody) -> Option<Entry> {
        Some(match &spec.userdata.as_ref()?.content {
            Content::Text(text) if self.detail.text == 0 => {
                let count = counted(text.lines().count(), "line");
                Entry::line(sign, "userdata", format!("({count})"))
            }
            Content::Text(text) => {
                Entry::text(sign, "userdata", value::text_lines(text, self.detail.text))
            }
            Content::Base64(_) => Entry::line(sign, "userdata", binary(spec)),
        })
    }

    /// An instance that goes: what tells it from others.
    fn ending(&self, sign: Sign, side: &Side) -> Vec<Entry> {
        let goes = if sign == Sign::Delete { " -> null" } else { "" };
        let created = side.created_at.map(|time| time.to_string());
        let own = [
            ("created_at", created.as_deref()),
            ("instance_id", Some(&*side.instance_id)),
            ("ip4", side.ip4.as_deref()),
            ("provider_id", side.provider_id.as_deref()),
        ];
        let mut facts: Vec<(&str, String)> = own
            .into_iter()
            .filter(|_| self.single())
            .filter_map(|(name, text)| Some((name, quoted(text?))))
            .collect();
        if !side.spec.head.instance_type.is_empty() {
            facts.push(("instance_type", quoted(&side.spec.head.instance_type)));
        }
        if !self.block.subnets.is_empty() {
            facts.push(("subnet", several(&self.block.subnets)));
        }
        facts.push(("zone", several(&self.block.zones)));
        facts.sort_unstable();
        let mut entries: Vec<Entry> = facts
            .into_iter()
            .map(|(name, text)| Entry::line(sign, name, format!("{text}{goes}")))
            .collect();
        let hidden = attribute_count(&side.spec);
        if hidden > 0 {
            entries.push(Entry::comment(format!(
                "# ({} hidden)",
                counted(hidden, "attribute")
            )));
        }
        entries
    }

    /// An instance that changes: what differs.
    fn differences(&self, before: &Side, after: &Side) -> Vec<Entry> {
        let change = self.block.first;
        let mut named: Vec<(&str, Entry)> = change
            .attributes
            .iter()
            .map(|attribute| (&*attribute.path, self.difference(attribute, before, after)))
            .collect();
        if change.action.is_replace() {
            named.extend(self.new_identity(before, after));
            named.sort_by_key(|(path, _)| *path);
        }
        let mut entries: Vec<Entry> = named.into_iter().map(|(_, entry)| entry).collect();
        let hidden = unchanged_count(after, &change.attributes);
        if hidden > 0 {
            let count = counted(hidden, "unchanged attribute");
            entries.push(Entry::comment(format!("# ({count} hidden)")));
        }
        entries
    }

    /// What a replacement changes by being another instance.
    fn new_identity(&self, before: &Side, after: &Side) -> Vec<(&'static str, Entry)> {
        let line = |name: &'static str, text: String| (name, Entry::line(Sign::Update, name, text));
        let several = || format!("({} instances)", self.block.count);
        let mut entries = Vec::new();
        if self.single() {
            let (old, new) = (quoted(&before.instance_id), quoted(&after.instance_id));
            entries.push(line("instance_id", format!("{old} -> {new}")));
        }
        for (name, old) in [
            ("ip4", &before.ip4.as_deref()),
            ("provider_id", &before.provider_id.as_deref()),
        ] {
            if let Some(old) = old {
                let old = if self.single() {
                    quoted(old)
                } else {
                    several()
                };
                entries.push(line(name, format!("{old} -> {UNKNOWN}")));
            }
        }
        let told = |path: &str| {
            self.block
                .first
                .attributes
                .iter()
                .any(|attribute| attribute.path == path)
        };
        if self.single()
            && !told("subnet")
            && before.subnet != after.subnet
            && let (Some(old), Some(new)) = (&before.subnet, &after.subnet)
        {
            entries.push(line(
                "subnet",
                format!("{} -> {}", quoted(old), quoted(new)),
            ));
        }
        entries
    }

    fn difference(&self, attribute: &AttributeChange, before: &Side, after: &Side) -> Entry {
        let sign = match (&attribute.before, &attribute.after) {
            (None, _) => Sign::Create,
            (Some(_), None) if !attribute.unknown => Sign::Delete,
            _ => Sign::Update,
        };
        let path = value::visible(&attribute.path);
        let entry = self.difference_body(sign, &path, attribute, before, after);
        let mut notes = Vec::new();
        match attribute.effect {
            Effect::Replace => notes.push("forces replacement".to_owned()),
            // A replacement starts anew whatever else changes.
            Effect::Restart if !self.block.first.action.is_replace() => {
                notes.push("stops and starts".to_owned());
            }
            Effect::Restart | Effect::InPlace => {}
        }
        notes.extend(attribute.written_at.as_deref().map(value::visible));
        if notes.is_empty() {
            entry
        } else {
            entry.noted(notes.join(", "), attribute.effect == Effect::Replace)
        }
    }

    fn difference_body(
        &self,
        sign: Sign,
        path: &str,
        attribute: &AttributeChange,
        before: &Side,
        after: &Side,
    ) -> Entry {
        if let Some(text) = unreadable(path, attribute, before, after) {
            return Entry::line(sign, path, text);
        }
        let room = entry::room(self.style, 0, path).saturating_sub(4);
        let short = |value: &Value| value::short(value, room / 2);
        match (&attribute.before, &attribute.after) {
            (None, None) => Entry::line(sign, path, UNKNOWN),
            (Some(old), None) if attribute.unknown => Entry::line(
                sign,
                path,
                format!("{} -> {UNKNOWN}", short(&first_line(old))),
            ),
            (Some(old), None) => match old {
                Value::String(text) if text.contains('\n') => Entry::line(
                    sign,
                    path,
                    format!("({}) -> null", counted(text.lines().count(), "line")),
                ),
                _ => Entry::line(sign, path, format!("{} -> null", short(old))),
            },
            (None, Some(new)) => Entry::value(
                sign,
                path,
                new,
                0,
                self.detail.text.max(self.detail.diff),
                self.style,
            ),
            (Some(Value::String(old)), Some(Value::String(new)))
                if old.contains('\n') || new.contains('\n') =>
            {
                let lines = value::line_diff(old, new, self.detail.diff);
                Entry::text(sign, path, lines)
            }
            (Some(old), Some(new)) => {
                let (one, other) = (value::inline(old), value::inline(new));
                let length = one.chars().count() + other.chars().count();
                if length <= room {
                    return Entry::line(sign, path, format!("{one} -> {other}"));
                }
                match (old, new) {
                    (Value::String(old), Value::String(new)) => {
                        let (old, new) = value::around_difference(old, new, room / 2 - 4);
                        Entry::line(sign, path, format!("{old} -> {new}"))
                    }
                    (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) => {
                        let (old, new) = (value::pretty(old), value::pretty(new));
                        Entry::text(sign, path, value::line_diff(&old, &new, self.detail.diff))
                    }
                    _ => Entry::line(sign, path, format!("{} -> {}", short(old), short(new))),
                }
            }
        }
    }

    fn value(&self, sign: Sign, name: &str, value: &Value) -> Entry {
        Entry::value(sign, name, value, 0, self.detail.text, self.style)
    }
}

/// What stands for a value that isn't to be read: bytes, and what the server delivers.
fn unreadable(
    path: &str,
    attribute: &AttributeChange,
    before: &Side,
    after: &Side,
) -> Option<String> {
    if path == "userdata" {
        let is_binary = |side: &Side| {
            side.spec
                .userdata
                .as_ref()
                .is_some_and(|userdata| matches!(userdata.content, Content::Base64(_)))
        };
        if !is_binary(before) && !is_binary(after) {
            return None;
        }
        let part = |side: &Side, value: &Option<Value>| match value {
            None => "null".to_owned(),
            Some(_) if is_binary(side) => binary(&side.spec),
            Some(value) => {
                let lines = value.as_str().unwrap_or_default().lines().count();
                format!("({})", counted(lines, "line"))
            }
        };
        let (old, new) = (
            part(before, &attribute.before),
            part(after, &attribute.after),
        );
        return Some(format!("{old} -> {new}"));
    }
    let name = path.strip_prefix("files.")?;
    let by_server = |side: &Side| side.spec.files.get(name).is_some_and(|file| file.by_server);
    match (&attribute.before, &attribute.after) {
        (Some(_), None) if by_server(before) => Some(format!("{BY_SERVER} -> null")),
        _ if by_server(before) || by_server(after) => Some(BY_SERVER.to_owned()),
        _ => None,
    }
}

fn binary(spec: &SpecBody) -> String {
    let length = spec
        .userdata
        .as_ref()
        .map_or(0, |userdata| userdata.content.to_bytes().len());
    format!("(binary, {})", counted(length, "byte"))
}

/// A text's first line, marked if there are more.
fn first_line(value: &Value) -> Value {
    match value.as_str().and_then(|text| text.split_once('\n')) {
        Some((line, rest)) if !rest.is_empty() => Value::from(format!("{line}…")),
        Some((line, _)) => Value::from(line),
        None => value.clone(),
    }
}

/// `"a"`, `"a", "b", "c" and 2 more`
fn several(items: &BTreeSet<&str>) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    listed(&items, 3)
}

/// The args without what is shown as tags.
fn shown_args(spec: &SpecBody) -> Map<String, Value> {
    let of_instance =
        |item: &Value| item.get("ResourceType").and_then(Value::as_str) == Some("instance");
    let is_tags = |key: &str, value: &Value| match key {
        "TagSpecifications" => value
            .as_array()
            .is_some_and(|items| items.iter().all(of_instance)),
        "labels" | "Labels" => !spec.tags.is_empty(),
        _ => false,
    };
    spec.args
        .iter()
        .filter(|(key, value)| !is_tags(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// How many attributes a spec has beyond its type, counted as they are shown: each arg, var, tag
/// and file is one.
fn attribute_count(spec: &SpecBody) -> usize {
    let vars = spec.vars.as_object().map_or(0, Map::len);
    let head = &spec.head;
    let optional = [head.subnet_pool.is_some(), head.template.is_some()];
    2 + optional.into_iter().filter(|there| *there).count()
        + usize::from(!head.load_balancers.is_empty())
        + spec.args.len()
        + vars
        + usize::from(spec.userdata.is_some())
        + spec.files.len()
        + spec.tags.len()
}

/// How many attributes of an instance stay as they are.
fn unchanged_count(after: &Side, attributes: &[AttributeChange]) -> usize {
    let changed: BTreeSet<&str> = attributes
        .iter()
        .filter(|attribute| attribute.after.is_some() || attribute.unknown)
        .map(|attribute| unit(&attribute.path))
        .collect();
    // The instance type, zone and subnet are no part of the count above.
    let all = attribute_count(&after.spec) + 2 + usize::from(after.subnet.is_some());
    all.saturating_sub(changed.len())
}

/// The part of a path that counts as one attribute: `args.BlockDeviceMappings` of
/// `args.BlockDeviceMappings[0].Ebs`.
fn unit(path: &str) -> &str {
    let deep = path
        .strip_prefix("args.")
        .or_else(|| path.strip_prefix("vars."));
    match deep.and_then(|rest| rest.find(['.', '['])) {
        Some(end) => &path[..end + "args.".len()],
        None => path,
    }
}

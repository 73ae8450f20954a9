//! Shows a block: its reasons and changes.
//!
//! In: a [`Block`]. Out: its lines. Must not: depend on other blocks.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};

use super::attribute::{self, BY_SERVER, UNKNOWN, binary, lines_of};
use super::entry::{self, Entry};
use super::paint::{Sign, Style};
use super::userdata;
use super::value::{self, age, listed, quoted};
use crate::diagnostic::counted;
use crate::plan::change::{Action, AttributeChange, Change, InstanceView, Reason};
use crate::provider::rules::Effect;
use crate::report::collapse::{Block, group_part};
use crate::sensitivity::HIDDEN;
use crate::spec::{Content, SpecBody};

/// How much of a block is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) struct Detail {
    /// The line limit of a new or removed text.
    pub(in crate::report) text: usize,
    /// The line limit of a diff.
    pub(in crate::report) diff: usize,
}

impl Detail {
    /// Everything that is useful.
    pub(super) const FULL: Self = Self { text: 20, diff: 40 };
    /// For long plans.
    pub(super) const BRIEF: Self = Self { text: 0, diff: 8 };
}

/// A block on one line.
pub(super) fn headline(block: &Block<'_>, style: Style<'_>) -> String {
    let change = block.first;
    let depends = if is_conditional(change) {
        " if the addresses change"
    } else {
        ""
    };
    let what = match change.action {
        Action::Update if !depends.is_empty() => format!("will be updated in-place{depends}"),
        Action::CreateThenDelete | Action::DeleteThenCreate if !depends.is_empty() => {
            format!("will be {}{depends}", style.danger("replaced"))
        }
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
    let address = format!("{}{deposed}", style.address(block.address()));
    style.title(&format!("{} {what}{count}", style.bold(&address)))
}

/// Whether the change is made only if addresses turn out to be others.
pub(in crate::report) fn is_conditional(change: &Change) -> bool {
    !change.late.is_empty() && change.attributes.iter().all(|attribute| attribute.unknown)
}

/// A block with its reasons and attributes.
pub(super) fn lines(
    block: &Block<'_>,
    resource_type: &str,
    detail: Detail,
    style: Style<'_>,
) -> Vec<String> {
    let mut lines = vec![headline(block, style)];
    lines.extend(reasons(block).into_iter().map(|reason| {
        let reason = value::cut(&value::visible(&reason), style.columns().max(100));
        style.remark(&reason)
    }));
    if block.count > 1 && block.own_values && shows_values(block.first.action) {
        let address = style.address(&block.first.address);
        lines.push(style.remark(&format!("shown as for {address}")));
    }
    let entries = View {
        block,
        detail,
        style,
    }
    .entries();
    let head = format!("{resource_type} {} {{", quoted(&block.address()));
    lines.push(style.action_row(block.first.action, &head));
    entry::write(&entries, 0, style, &mut lines);
    lines.push("    }".to_owned());
    lines
}

pub(in crate::report) fn shows_values(action: Action) -> bool {
    !matches!(action, Action::Delete | Action::Forget)
}

/// The reasons in a few words; omits obvious ones.
pub(in crate::report) fn reasons(block: &Block<'_>) -> Vec<String> {
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
        Reason::DependencyDestroyed { group } => {
            format!("it depends on {group}, which is destroyed")
        }
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
        Reason::RolledBack => "the rollout failed, and the group goes back".to_owned(),
        Reason::LinkChanged { group, why } => format!("it links to {group}: {why}"),
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

/// A block, and how much of it is shown.
pub(in crate::report) struct View<'a> {
    pub(in crate::report) block: &'a Block<'a>,
    pub(in crate::report) detail: Detail,
    pub(in crate::report) style: Style<'a>,
}

impl View<'_> {
    /// The lines inside the block.
    pub(in crate::report) fn entries(&self) -> Vec<Entry> {
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

    /// A new instance; single-line attributes come first.
    fn whole(&self, sign: Sign, side: &InstanceView) -> Vec<Entry> {
        let spec = &side.spec;
        let text = |text: &str| (!text.is_empty()).then(|| quoted(text));
        let own = |value: Option<&str>| match value {
            Some(value) if self.single() => Some(quoted(value)),
            Some(_) => None,
            None => Some(UNKNOWN.to_owned()),
        };
        let subnets = &self.block.subnets;
        let targets = &spec.head.load_balancers;
        let index = side.index.map(|index| index.to_string());
        let mut entries: Vec<Entry> = [
            ("arch", text(&spec.head.arch)),
            ("index", index.filter(|_| self.single())),
            ("instance_id", own(Some(&side.instance_id))),
            ("instance_type", text(&spec.head.instance_type)),
            ("ip4", own(side.ip4.as_deref())),
            (
                "load_balancers",
                (!targets.is_empty()).then(|| value::inline(&targets.clone().into())),
            ),
            ("provider_id", own(side.provider_id.as_deref())),
            ("subnet", (!subnets.is_empty()).then(|| several(subnets))),
            ("subnet_pool", spec.head.subnet_pool.as_deref().map(quoted)),
            (
                "tag",
                own(Some(&side.seat.tag)).filter(|_| !side.seat.tag.is_empty()),
            ),
            ("template", spec.head.template.as_deref().map(quoted)),
            ("zone", Some(several(&self.block.zones))),
        ]
        .into_iter()
        .filter_map(|(name, text)| Some(Entry::line(sign, name, text?)))
        .collect();
        let args = shown_args(spec);
        if !args.is_empty() {
            entries.push(self.value(sign, "args", &Value::Object(args)));
        }
        if !spec.files.is_empty() {
            let files = spec.files.iter().map(|(name, file)| {
                let text = match &file.content {
                    _ if file.by_server => BY_SERVER.to_owned(),
                    None => UNKNOWN.to_owned(),
                    Some(content) => lines_of(content),
                };
                Entry::line(sign, value::key_text(name), text)
            });
            entries.push(Entry::object(sign, "files", files.collect()));
        }
        if !spec.tags.is_empty() {
            let tags = spec
                .tags
                .iter()
                .map(|(key, value)| (key.clone(), value.as_str().into()))
                .collect();
            entries.push(self.value(sign, "tags", &Value::Object(tags)));
        }
        entries.extend(self.userdata(sign, spec));
        entries
    }

    fn userdata(&self, sign: Sign, spec: &SpecBody) -> Option<Entry> {
        let content = &spec.userdata.as_ref()?.content;
        if self.detail.text > 0
            && let Some(parts) = userdata::taken_apart(sign, content.display(), self.detail.text)
        {
            return Some(parts);
        }
        Some(match content {
            Content::Text(text) if self.detail.text == 0 || text == HIDDEN => {
                Entry::line(sign, "userdata", lines_of(text))
            }
            Content::Text(text) => {
                Entry::text(sign, "userdata", value::text_lines(text, self.detail.text))
            }
            Content::Base64(_) => Entry::line(sign, "userdata", binary(spec)),
        })
    }

    /// A removed instance: the attributes that identify it.
    fn ending(&self, sign: Sign, side: &InstanceView) -> Vec<Entry> {
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

    /// A changed instance: the differences.
    fn differences(&self, before: &InstanceView, after: &InstanceView) -> Vec<Entry> {
        let change = self.block.first;
        let mut named: Vec<(&str, Entry)> = change
            .attributes
            .iter()
            .map(|attribute| {
                let limit = self.detail.diff;
                let entry = attribute::entry(attribute, change, before, after, limit, self.style);
                (&*attribute.path, entry)
            })
            .collect();
        let moved = change.reasons.iter().find_map(|reason| match reason {
            Reason::Moved { from } => Some(group_part(from)),
            _ => None,
        });
        if let Some(from) = moved {
            let to = change.address.group.to_string();
            let text = format!("{} -> {}", quoted(from), quoted(&to));
            named.push(("group", Entry::line(Sign::Update, "group", text)));
            named.sort_by_key(|(path, _)| *path);
        }
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

    /// The attributes that differ because a replacement is a new instance.
    pub(in crate::report) fn new_identity(
        &self,
        before: &InstanceView,
        after: &InstanceView,
    ) -> Vec<(&'static str, Entry)> {
        let line = |name: &'static str, text: String| (name, Entry::line(Sign::Update, name, text));
        let several = || format!("({} instances)", self.block.count);
        let mut entries = Vec::new();
        if self.single() {
            let (old, new) = (quoted(&before.instance_id), quoted(&after.instance_id));
            entries.push(line("instance_id", format!("{old} -> {new}")));
        }
        for (name, old, new) in [
            ("ip4", before.ip4.as_deref(), after.ip4.as_deref()),
            ("provider_id", before.provider_id.as_deref(), None),
        ] {
            let text = match (old, new.filter(|_| self.single())) {
                (None, _) => continue,
                (Some(old), Some(new)) if old == new => continue,
                (Some(old), Some(new)) => format!("{} -> {}", quoted(old), quoted(new)),
                (Some(old), None) if self.single() => format!("{} -> {UNKNOWN}", quoted(old)),
                (Some(_), None) => format!("{} -> {UNKNOWN}", several()),
            };
            entries.push(line(name, text));
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

    fn value(&self, sign: Sign, name: &str, value: &Value) -> Entry {
        Entry::value(sign, name, value, 0, self.detail.text, self.style)
    }
}

/// `"a"`, `"a", "b", "c" and 2 more`
fn several(items: &BTreeSet<&str>) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    listed(&items, 3)
}

/// The args, except those shown as tags.
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

/// The number of a spec's attributes besides its type; each arg, var, tag and file counts as one.
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

/// The number of an instance's unchanged attributes.
pub(in crate::report) fn unchanged_count(
    after: &InstanceView,
    attributes: &[AttributeChange],
) -> usize {
    let changed: BTreeSet<&str> = attributes
        .iter()
        .filter(|attribute| attribute.after.is_some() || attribute.unknown)
        .map(|attribute| unit(&attribute.path))
        .collect();
    // Adds the instance type, zone and subnet.
    let all = attribute_count(&after.spec) + 2 + usize::from(after.subnet.is_some());
    all.saturating_sub(changed.len())
}

/// The prefix of a path that counts as one attribute: `args.BlockDeviceMappings` of
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

//! The changes, by group.
//!
//! In: a plan. Out: filters, and a section for each group with its rollout and its collapsed
//! changes. Must not: grow without bounds: beyond a budget, changes are shown briefly.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::PLAIN;
use super::attributes::{self, DETAIL};
use super::timeline::timeline;
use super::writer::Html;
use crate::diagnostic::counted;
use crate::plan::change::{Action, AttributeChange, Change, Plan, Reason, Summary};
use crate::plan::rollout::GroupRollout;
use crate::provider::rules::Effect;
use crate::report::collapse::{Block, collapse};
use crate::report::text::change::{self, View};
use crate::report::text::paint::Style;
use crate::report::text::value::listed;
use crate::report::text::{held_back_heading, how_to_release};

/// Up to this many blocks are shown with all details.
const FULL_BLOCKS: usize = 2_000;

/// No details beyond this length of the page in bytes.
const FULL_BYTES: usize = 8_000_000;

/// The maximum number of different reasons of a group that are counted.
const MOST_REASONS: usize = 100;

/// Up to this many blocks are open at first.
const OPEN: usize = 4;

/// The word of an action, for people and for the filter.
fn word(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::CreateThenDelete | Action::DeleteThenCreate => "replace",
        Action::Delete => "destroy",
        Action::Adopt => "adopt",
        Action::Forget => "forget",
        Action::NoOp => "no change",
    }
}

/// The word for the filter of held back changes.
const HELD_BACK: &str = "held-back";

/// A kind of change, as it is counted and filtered.
pub(super) struct Kind {
    /// The word for the filter.
    pub(super) word: &'static str,
    /// The sign.
    sign: &'static str,
    /// What follows a count.
    pub(super) label: &'static str,
    /// The heading of a column.
    pub(super) title: &'static str,
    /// How many of it there are.
    pub(super) count: fn(&Summary) -> usize,
}

/// All kinds of changes, in their order on the page.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        word: "create",
        sign: "+",
        label: "to create",
        title: "Create",
        count: |summary| summary.create,
    },
    Kind {
        word: "update",
        sign: "~",
        label: "to update in place",
        title: "Update",
        count: |summary| summary.update,
    },
    Kind {
        word: "replace",
        sign: "-/+",
        label: "to replace",
        title: "Replace",
        count: |summary| summary.replace,
    },
    Kind {
        word: "destroy",
        sign: "-",
        label: "to destroy",
        title: "Destroy",
        count: |summary| summary.delete,
    },
    Kind {
        word: "adopt",
        sign: "=",
        label: "to adopt",
        title: "Adopt",
        count: |summary| summary.adopt,
    },
    Kind {
        word: "forget",
        sign: ".",
        label: "to forget",
        title: "Forget",
        count: |summary| summary.forget,
    },
    Kind {
        word: HELD_BACK,
        sign: "||",
        label: "held back",
        title: "Held back",
        count: |summary| summary.held_back,
    },
];

/// A reason in a few words, without what it is about.
fn reason(reason: &Reason) -> &'static str {
    match reason {
        Reason::NewerImage { .. } => "newer image",
        Reason::GroupGrew => "group grew",
        Reason::GroupShrank => "group shrank",
        Reason::GroupRemoved => "group removed",
        Reason::Missing => "missing in the cloud",
        Reason::CannotUpdate => "attribute forces replacement",
        Reason::Changed => "configuration changed",
        Reason::Drifted => "changed outside of nstance",
        Reason::Requested => "requested with --replace",
        Reason::Expired { .. } => "expired",
        Reason::Destroy => "destroy",
        Reason::DependencyDestroyed { .. } => "dependency destroyed",
        Reason::Duplicate => "duplicate",
        Reason::Deposed => "deposed",
        Reason::Unrecorded => "not recorded",
        Reason::Moved { .. } => "moved",
        Reason::RefreshOnly => "refresh only",
        Reason::RolledBack => "rolled back",
        Reason::LinkChanged { .. } => "linked group changed",
    }
}

/// The counts of each group with changes, held back or not.
pub(super) fn counts(plan: &Plan) -> BTreeMap<&str, Summary> {
    let mut counts: BTreeMap<&str, Summary> = BTreeMap::new();
    for change in &plan.changes {
        let own = counts.entry(change.address.group.as_str()).or_default();
        own.count(change.action);
    }
    for change in &plan.held_back {
        let own = counts.entry(change.address.group.as_str()).or_default();
        own.held_back += 1;
    }
    counts
}

/// The collapsed changes of a plan.
pub(super) struct Blocks<'p> {
    changes: Vec<Block<'p>>,
    held_back: Vec<Block<'p>>,
}

impl<'p> Blocks<'p> {
    pub(super) fn of(plan: &'p Plan) -> Self {
        let all = |changes| collapse(changes, usize::MAX).0;
        Self {
            changes: all(&plan.changes),
            held_back: all(&plan.held_back),
        }
    }

    /// The different reasons of each group; not more than a list needs.
    pub(super) fn reasons(&self) -> BTreeMap<&str, Vec<String>> {
        let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut blocks: Vec<&Block<'_>> = self.changes.iter().chain(&self.held_back).collect();
        // Why instances are deleted matters most.
        blocks.sort_by_key(|block| block.first.action != Action::Delete);
        for block in blocks {
            let own = reasons.entry(block.first.address.group.as_str());
            let (own, why) = (own.or_default(), why(block));
            if !why.is_empty() && own.len() < MOST_REASONS && !own.contains(&why) {
                own.push(why);
            }
        }
        reasons
    }
}

/// Writes the changes of a masked plan; `shard` is for options that name groups.
pub(super) fn changes(plan: &Plan, all: &Blocks<'_>, shard: Option<&str>, html: &mut Html) {
    let (blocks, held_back) = (&all.changes, &all.held_back);
    html.markup("<section id=changes aria-labelledby=changes-title>");
    html.markup("<h2 id=changes-title tabindex=-1>Changes</h2>");
    if blocks.is_empty() && held_back.is_empty() {
        html.markup("<p>None.</p></section>");
        return;
    }
    filters(plan, html);
    let mut budget = Budget {
        blocks: FULL_BLOCKS,
        opens: blocks.len() + held_back.len() <= OPEN,
    };
    let rollouts = plan.rollouts();
    let rollouts: HashMap<&str, &GroupRollout<'_>> =
        rollouts.iter().map(|group| (group.name, group)).collect();
    for own in blocks.chunk_by(|a, b| a.first.address.group == b.first.address.group) {
        group(plan, own, &rollouts, &mut budget, html);
    }
    html.markup("</section>");
    if !held_back.is_empty() {
        self::held_back(plan, held_back, shard, &mut budget, html);
    }
}

/// What may still be shown with all details.
struct Budget {
    blocks: usize,
    opens: bool,
}

impl Budget {
    fn allows(&mut self, html: &Html) -> bool {
        let allows = self.blocks > 0 && html.len() < FULL_BYTES;
        self.blocks = self.blocks.saturating_sub(1);
        allows
    }
}

/// The filters; the script shows them, since they don't work without it.
fn filters(plan: &Plan, html: &mut Html) {
    let changes = || plan.changes.iter().chain(&plan.held_back);
    html.markup(
        "<form id=filters role=search aria-label=\"Filter the changes\" hidden autocomplete=off>",
    );
    html.markup("<fieldset><legend>Action</legend>");
    for kind in KINDS {
        let count = (kind.count)(&plan.summary);
        if count > 0 {
            html.markup("<label class=\"chip ").text(kind.word);
            html.markup("\"><input type=checkbox name=action value=\"");
            html.text(kind.word)
                .markup("\"><span class=s aria-hidden=true>");
            html.text(kind.sign).markup("</span> ");
            html.text(&kind.title.to_lowercase()).text(" ");
            html.number(count).markup("</label>");
        }
    }
    html.markup("</fieldset><label>Group <select name=group><option value=\"\">all groups");
    let groups: BTreeSet<&str> = changes().map(|it| it.address.group.as_str()).collect();
    for group in groups {
        html.markup("<option>").text(group);
    }
    html.markup(
        "</select></label><label>Reason <select name=reason><option value=\"\">all reasons",
    );
    let reasons = changes().flat_map(|change| &change.reasons).map(reason);
    let reasons: BTreeSet<&str> = reasons.collect();
    for reason in reasons {
        html.markup("<option>").text(reason);
    }
    html.markup(
        "</select></label><label class=grow>Search <input type=search name=q \
         placeholder=\"Address, attribute, value …\"></label>\
         <div class=buttons><button type=button id=open>Open all</button>\
         <button type=button id=close>Close all</button>\
         <button type=reset>Clear filters</button></div>\
         <output id=matches aria-live=polite></output></form>",
    );
}

/// A group with changes.
fn group(
    plan: &Plan,
    blocks: &[Block<'_>],
    rollouts: &HashMap<&str, &GroupRollout<'_>>,
    budget: &mut Budget,
    html: &mut Html,
) {
    let name = blocks[0].first.address.group.as_str();
    let mut counts = Summary::default();
    for block in blocks {
        for _ in 0..block.count {
            counts.count(block.first.action);
        }
    }
    html.markup("<section class=group id=\"group-").text(name);
    html.markup("\" data-group=\"").text(name);
    html.markup("\"><h3><code>")
        .text(name)
        .markup("</code> <span class=n>");
    html.text(&in_words(&counts)).markup("</span></h3>");
    if let Some(size) = plan.sizes.get(name) {
        html.markup("<p class=m>")
            .text(&counted(*size as usize, "instance"));
        html.text(" configured").markup("</p>");
    }
    if let Some(rollout) = rollouts.get(name) {
        timeline(rollout, html);
    }
    for block in blocks {
        self::block(block, word(block.first.action), budget, html);
    }
    html.markup("</section>");
}

/// `2 to create, 5 to replace`
fn in_words(counts: &Summary) -> String {
    let parts = KINDS.iter().filter(|kind| (kind.count)(counts) > 0);
    let parts: Vec<String> = parts
        .map(|kind| format!("{} {}", (kind.count)(counts), kind.label))
        .collect();
    parts.join(", ")
}

/// Changes that are alike.
fn block(block: &Block<'_>, filter: &str, budget: &mut Budget, html: &mut Html) {
    let change = block.first;
    html.markup("<details class=\"b ").text(word(change.action));
    html.markup("\" id=\"change-")
        .text(&change.address.to_string());
    if let Some(id) = &change.deposed {
        html.text("-").text(id);
    }
    html.markup("\" data-a=\"")
        .text(filter)
        .markup("\" data-r=\"");
    let reasons: Vec<&str> = change.reasons.iter().map(reason).collect();
    html.text(&reasons.join("|"))
        .markup("\" data-n=\"")
        .number(block.count);
    html.markup(if budget.opens { "\" open>" } else { "\">" });
    html.markup("<summary><span class=s aria-hidden=true>")
        .text(sign(change.action));
    html.markup("</span> <code>")
        .text(&block.address())
        .markup("</code> <b>");
    html.text(what(change)).markup("</b>");
    if let Some(id) = &change.deposed {
        html.text(" (deposed ").text(id).text(")");
    }
    if block.count > 1 {
        html.text(" · ").text(&counted(block.count, "instance"));
    }
    let why = why(block);
    if !why.is_empty() {
        html.markup("<span class=m>").text(&why).markup("</span>");
    }
    html.markup("</summary>");
    if budget.allows(html) {
        if block.count > 1 && block.own_values && change::shows_values(change.action) {
            html.markup("<p class=m>Shown as for <code>");
            html.text(&change.address.to_string())
                .markup("</code>.</p>");
        }
        let view = View {
            block,
            detail: DETAIL,
            style: PLAIN,
        };
        attributes::table(&view, html);
    } else {
        attributes::brief(change, html);
    }
    html.markup("</details>");
}

/// Terraform's sign.
fn sign(action: Action) -> &'static str {
    match action {
        Action::Create => "+",
        Action::Update => "~",
        Action::DeleteThenCreate => "-/+",
        Action::CreateThenDelete => "+/-",
        Action::Delete => "-",
        Action::Adopt => "=",
        Action::Forget => ".",
        Action::NoOp => "",
    }
}

/// What happens to the instances.
fn what(change: &Change) -> &'static str {
    let depends = change::is_conditional(change);
    match change.action {
        Action::Create => "create",
        Action::Update if depends => "update in place if the addresses change",
        Action::Update => "update in place",
        Action::DeleteThenCreate | Action::CreateThenDelete if depends => {
            "replace if the addresses change"
        }
        Action::DeleteThenCreate => "replace, deleted first",
        Action::CreateThenDelete => "replace, created first",
        Action::Delete => "destroy",
        Action::Adopt if change.before.is_some() => "record as observed",
        Action::Adopt => "adopt",
        Action::Forget => "forget: drop from the state",
        Action::NoOp => "no change",
    }
}

/// The reasons, or the attributes that change, and where the new value is written.
fn why(block: &Block<'_>) -> String {
    let change = block.first;
    let mut attributes: Vec<&AttributeChange> = change.attributes.iter().collect();
    // The grave ones come first.
    attributes.sort_by_key(|attribute| match attribute.effect {
        Effect::Replace => 0,
        Effect::Restart => 1,
        Effect::InPlace => 2,
    });
    let reasons = change::reasons(block);
    let mut text = if !reasons.is_empty() {
        reasons.join("; ")
    } else if attributes.is_empty() {
        change.reasons.first().map_or("", reason).to_owned()
    } else {
        let paths: Vec<&str> = attributes.iter().map(|it| &*it.path).collect();
        listed(&paths, 4)
    };
    let is_restart = |it: &&AttributeChange| it.effect == Effect::Restart;
    if change.action == Action::Update && attributes.first().is_some_and(is_restart) {
        text.push_str(" (stops and starts)");
    }
    if let Some(place) = attributes.first().and_then(|it| it.written_at.as_deref()) {
        text.push_str(&format!(" · {place}"));
    }
    text
}

/// The changes that are held back, by the setting that holds them.
fn held_back(
    plan: &Plan,
    blocks: &[Block<'_>],
    shard: Option<&str>,
    budget: &mut Budget,
    html: &mut Html,
) {
    let style = Style { shard, ..PLAIN };
    // Links to a group lead to its other changes, if it has some.
    let changes = plan.changes.iter();
    let mut linked: HashSet<&str> = changes.map(|it| it.address.group.as_str()).collect();
    html.markup("<section id=held-back aria-labelledby=held-title>");
    html.markup("<h2 id=held-title>Held back</h2>");
    for (cause, changes) in plan.held_back_by_cause() {
        let own = blocks.iter();
        let own: Vec<_> = own.filter(|it| it.first.held_back_by() == cause).collect();
        html.markup("<div class=\"note warn\"><p>");
        html.text(&held_back_heading(&changes, cause, style))
            .markup("</p>");
        for line in how_to_release(&changes, cause, style) {
            html.markup("<p>").text(&line).markup("</p>");
        }
        html.markup("</div>");
        for own in own.chunk_by(|a, b| a.first.address.group == b.first.address.group) {
            let name = own[0].first.address.group.as_str();
            html.markup("<section class=group");
            if linked.insert(name) {
                html.markup(" id=\"group-").text(name).markup("\"");
            }
            html.markup(" data-group=\"").text(name);
            html.markup("\"><h3><code>")
                .text(name)
                .markup("</code></h3>");
            for block in own {
                self::block(block, HELD_BACK, budget, html);
            }
            html.markup("</section>");
        }
    }
    html.markup("</section>");
}

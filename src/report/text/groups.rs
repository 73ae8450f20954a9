//! The changes group by group, for reports that fold them.
//!
//! In: a masked [`Plan`] and some of its changes. Out: the blocks of each group as text, with rising
//! detail. Must not: decide how many of them fit.

use super::change::{self, Detail};
use super::collapse::{self, Block};
use super::paint::Style;
use super::value;
use crate::plan::change::{Action, Change, Plan, Summary};
use crate::provider::rules::Effect;

/// The maximum number of blocks of a group.
const MOST_BLOCKS: usize = 200;

/// How much of a block other reports show: a comment folds, so a diff may be longer.
const LONG: Detail = Detail {
    text: 40,
    diff: 120,
};

/// The changes of a group.
#[derive(Debug)]
pub(in crate::report) struct GroupText {
    /// `tenant/group`, with the shard's prefix in a run over several shards.
    pub(in crate::report) group: String,
    /// The number of changes by action.
    pub(in crate::report) summary: Summary,
    /// The blocks, worst first.
    pub(in crate::report) blocks: Vec<BlockText>,
    /// The number of changes without a block, since there are too many.
    pub(in crate::report) rest: usize,
}

/// A block of changes that are alike.
#[derive(Debug)]
pub(in crate::report) struct BlockText {
    /// The action.
    pub(in crate::report) action: Action,
    /// The number of instances.
    pub(in crate::report) count: usize,
    /// The reasons in words; the attributes that change if there is nothing else to say.
    pub(in crate::report) reasons: Vec<String>,
    /// `file:line:column` of the first value that is written somewhere, forcing ones first.
    pub(in crate::report) written_at: Option<String>,
    /// The heading alone, some lines, and nearly all lines.
    pub(in crate::report) levels: [Vec<String>; 3],
}

impl GroupText {
    /// How much a reviewer has to fear: deletions, replacements, updates, the rest.
    pub(in crate::report) fn rank(&self) -> usize {
        let ranks = self.blocks.iter().map(|block| rank(block.action));
        ranks.min().unwrap_or(usize::MAX)
    }
}

fn rank(action: Action) -> usize {
    match action {
        Action::Delete => 0,
        Action::CreateThenDelete | Action::DeleteThenCreate => 1,
        Action::Forget => 2,
        Action::Update => 3,
        Action::Create => 4,
        Action::Adopt => 5,
        Action::NoOp => 6,
    }
}

/// The groups of some changes of a plan, worst first.
pub(in crate::report) fn groups(
    plan: &Plan,
    changes: &[Change],
    style: Style<'_>,
) -> Vec<GroupText> {
    let resource_type = plan.rules().resource_type();
    let groups = changes.chunk_by(|a, b| a.address.group == b.address.group);
    let mut groups: Vec<GroupText> = groups
        .map(|changes| {
            let mut summary = Summary::default();
            for change in changes {
                summary.count(change.action);
            }
            let (blocks, rest) = collapse::collapse(changes, MOST_BLOCKS);
            let blocks = blocks.iter();
            let mut blocks: Vec<_> = blocks
                .map(|block| block_text(block, resource_type, style))
                .collect();
            blocks.sort_by_key(|block| rank(block.action));
            GroupText {
                group: style.address(&changes[0].address.group),
                summary,
                blocks,
                rest: rest.len(),
            }
        })
        .collect();
    groups.sort_by_key(GroupText::rank);
    groups
}

fn block_text(block: &Block<'_>, resource_type: &str, style: Style<'_>) -> BlockText {
    let lines = |detail| change::lines(block, resource_type, detail, style);
    let attributes = block.first.attributes.iter();
    let mut places: Vec<_> = attributes
        .filter_map(|attribute| Some((attribute.effect, attribute.written_at.as_ref()?)))
        .collect();
    places.sort_by_key(|(effect, _)| *effect != Effect::Replace);
    let mut reasons = change::reasons(block);
    let paths = block
        .first
        .attributes
        .iter()
        .map(|it| value::visible(&it.path));
    let paths: Vec<String> = paths.collect();
    if reasons.is_empty() && !paths.is_empty() {
        reasons.push(value::listed(&paths, 3));
    }
    BlockText {
        action: block.first.action,
        count: block.count,
        reasons,
        written_at: places.first().map(|(_, place)| (*place).clone()),
        levels: [
            vec![change::headline(block, style)],
            lines(Detail::BRIEF),
            lines(LONG),
        ],
    }
}

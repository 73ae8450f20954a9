//! Notes before and after a plan's changes.
//!
//! In: a [`Plan`]. Out: lines. Must not: show a change.

use std::fmt::Write as _;
use std::time::Duration;

use nstance_bosh::diff::Change;

use super::nothing_to_do;
use super::paint::{Sign, Style};
use super::value::{age, listed, visible};
use crate::diagnostic::counted;
use crate::plan::change::{Mode, Plan, PlannedImage};
use crate::report::events::planned_counts;

/// The maximum number of images, and of omitted instances, listed.
const LISTED: usize = 10;

/// The configuration's files, if a recorded group isn't in them: one may be missing.
pub(in crate::report) fn files(plan: &Plan) -> Vec<String> {
    if plan.read_from.is_empty() {
        return Vec::new();
    }
    let names = plan.read_from.iter().take(LISTED);
    let mut names: Vec<String> = names.map(|name| visible(name)).collect();
    if plan.read_from.len() > LISTED {
        names.push("…".to_owned());
    }
    vec![
        format!("The configuration was read from {}.", names.join(", ")),
        String::new(),
    ]
}

/// The differences of the manifest from the one that was applied last, as BOSH prints them.
pub(in crate::report) fn manifest(plan: &Plan, style: Style<'_>) -> Vec<String> {
    let Some(manifest) = &plan.manifest else {
        return Vec::new();
    };
    let differences = manifest.differences();
    if differences.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        format!("The manifest changed (version {}):", manifest.version),
        String::new(),
    ];
    lines.extend(differences.iter().map(|line| {
        let sign = match line.change {
            Change::Added => Sign::Create,
            Change::Removed => Sign::Delete,
            Change::Kept => Sign::None,
        };
        let text = format!("{} {}", line.change.sign(), visible(&line.text));
        style.signed(sign, text.trim_end())
    }));
    lines.push(String::new());
    lines
}

/// Which images the plan was made with.
pub(in crate::report) fn images(plan: &Plan, style: Style<'_>) -> Vec<String> {
    if plan.images.is_empty() || plan.mode != Mode::Normal {
        return Vec::new();
    }
    let name_width = plan
        .images
        .keys()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    let mut lines = vec!["Images:".to_owned()];
    lines.extend(plan.images.iter().take(LISTED).map(|(name, image)| {
        let source = image_source(plan, image);
        let (name, id) = (visible(name), visible(&image.id));
        format!(
            "    {name:<name_width$} = {id} {}",
            style.faint(&format!("({source})"))
        )
    }));
    if plan.images.len() > LISTED {
        lines.push(format!("    … and {} more", plan.images.len() - LISTED));
    }
    lines.push(String::new());
    lines
}

/// Where an image's id is from, and how old it is.
pub(in crate::report) fn image_source(plan: &Plan, image: &PlannedImage) -> String {
    let since = image.resolved_at.map(|time| plan.created_at.since(time));
    match (&*image.source, since) {
        ("lookup", Some(since)) if since < Duration::from_mins(1) => "looked up now".to_owned(),
        ("lookup", Some(since)) => format!("looked up {} ago", age(since)),
        ("lookup", None) => "looked up now".to_owned(),
        ("cache", Some(since)) => format!("from the cache, {} old", age(since)),
        ("cache", None) => "from the cache".to_owned(),
        ("fallback", _) => "the configured fallback".to_owned(),
        (other, _) => visible(other),
    }
}

/// The instances that couldn't be planned, and why.
pub(in crate::report) fn left_out(plan: &Plan, style: Style<'_>) -> Vec<String> {
    if plan.left_out.is_empty() {
        return Vec::new();
    }
    let count = plan.left_out.iter().map(|part| part.count).sum();
    let instances = counted(count, "instance");
    let mut lines = vec![format!(
        "{} {instances} could not be planned:",
        style.danger("Left out:")
    )];
    lines.extend(plan.left_out.iter().take(LISTED).map(|part| {
        let many = if part.count == 1 && part.address.matches('/').count() == 2 {
            String::new()
        } else {
            format!(" ({})", counted(part.count, "instance"))
        };
        format!(
            "    {}{many}: {}",
            style.address(visible(&part.address)),
            visible(&part.why)
        )
    }));
    if plan.left_out.len() > LISTED {
        lines.push(format!("    … and {} more", plan.left_out.len() - LISTED));
    }
    lines.push("Apply refuses this plan unless --continue-on-error is given.".to_owned());
    lines.push(String::new());
    lines
}

/// The deletions that require `--allow-delete`.
pub(in crate::report) fn deletions(plan: &Plan, style: Style<'_>) -> Vec<String> {
    let deletions = &plan.deletions;
    let total = deletions.total();
    // `destroy` is exempt from the budget, but not from protection.
    let beyond = deletions.exceeds_budget() && plan.mode != Mode::Destroy;
    let mut lines = Vec::new();
    let word = style.warning("Warning:");
    if beyond {
        let percent = total * 100 / deletions.recorded.max(1);
        lines.push(format!(
            "{word} This plan destroys {total} of {} ({percent}%)",
            counted(deletions.recorded, "recorded instance"),
        ));
        lines.push(format!(
            "That is more than the destroy budget of {} and {}%:",
            counted(deletions.budget_count as usize, "instance"),
            deletions.budget_percent
        ));
        lines.extend(
            deletions
                .by_group
                .iter()
                .take(LISTED)
                .map(|(group, count)| {
                    let group = style.address(visible(group));
                    format!("    {group}: {}", counted(*count, "instance"))
                }),
        );
        if deletions.by_group.len() > LISTED {
            lines.push(format!(
                "    … and {}",
                counted(deletions.by_group.len() - LISTED, "more group")
            ));
        }
    }
    if !deletions.protected.is_empty() {
        let groups: Vec<String> = deletions
            .protected
            .iter()
            .map(|name| style.address(visible(name)))
            .collect();
        let (noun, verb) = if groups.len() == 1 {
            ("Group", "is")
        } else {
            ("Groups", "are")
        };
        let groups = listed(&groups, LISTED);
        lines.push(format!(
            "{word} {noun} {groups} {verb} protected and would lose instances"
        ));
    }
    if lines.is_empty() {
        return lines;
    }
    let mut flags = String::new();
    let groups: Vec<&String> = if beyond {
        deletions.by_group.keys().collect()
    } else {
        deletions.protected.iter().collect()
    };
    if groups.len() <= 3 {
        let each: Vec<String> = groups
            .iter()
            .map(|group| format!("--allow-delete {}", style.address(visible(group))))
            .collect();
        let _ = write!(flags, "`{}` or ", each.join(" "));
    }
    lines.push(format!(
        "Apply refuses it without {flags}`--allow-delete all`"
    ));
    lines.push(String::new());
    lines
}

/// The last lines: the counts, or that there are no changes.
pub(in crate::report) fn footer(plan: &Plan, style: Style<'_>) -> Vec<String> {
    let summary = &plan.summary;
    if !summary.has_changes() {
        if plan.errored() {
            return vec![format!(
                "{} nstance encountered an error while generating this plan.",
                style.danger("Planning failed.")
            )];
        }
        let [words, detail] = nothing_to_do(plan.mode);
        let mut lines = vec![
            format!("{} {}", style.success("No changes."), style.bold(words)),
            String::new(),
        ];
        lines.extend(detail.lines().map(str::to_owned));
        return lines;
    }
    let counts = planned_counts(summary);
    let mut lines = vec![format!("{} {counts}.", style.bold("Plan:"))];
    if plan.mode == Mode::RefreshOnly {
        lines.push(String::new());
        lines.push(
            "This is a refresh-only plan, so nstance will not take any actions to undo the".into(),
        );
        lines.push("changes above. Applying it records them without changing any instance.".into());
    }
    lines
}

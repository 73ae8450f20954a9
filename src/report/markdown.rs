//! Markdown for a comment on a pull request, and for job summaries.
//!
//! In: a [`Run`], and how long the text may be. Out: Markdown of GitHub's and GitLab's kind: the
//! summary first, groups folded, userdata as diffs. Must not: exceed the length, or omit something
//! without saying so.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::diagnostic;
use super::review::{Run, Shard, Subject};
use super::text::groups::{self, BlockText, GroupText};
use super::text::{Signs, Style, drift, held_back_lines, notes, rollout, to_do};
use crate::diagnostic::{Diagnostics, Severity, counted};
use crate::plan::change::{Plan, Summary};
use crate::sensitivity::cover::covered;

/// GitHub's limit of a comment in characters. A byte never counts more than a character.
pub const COMMENT: usize = 65_536;

/// The limit of GitHub's job summaries is 1 MiB a step.
pub const JOB_SUMMARY: usize = 1_000_000;

/// The maximum number of groups in the table.
const ROWS: usize = 40;

/// The maximum bytes of errors, of warnings, and of what apply refuses.
const FINDINGS: usize = 8_000;

/// The maximum bytes of all shards' drift, orders, manifests and images.
const NOTES: usize = 16_000;

/// The maximum number of shards that are named.
const SHARDS: usize = 40;

/// The text of a run, at most `limit` bytes.
pub fn markdown(run: &Run<'_>, limit: usize) -> String {
    let mut head = format!(
        "<!-- nstance {} -->\n### {}\n\n",
        run.subject.name(),
        run.verdict()
    );
    if run.subject != Subject::Apply {
        head.push_str(&identities(run));
    }
    let mut sections = Vec::new();
    let mut tail = String::new();
    for shard in &run.shards {
        let Some(plan) = &shard.plan else { continue };
        let plan = &*covered(plan);
        tail.push_str(&folded_notes(run, shard, plan));
        sections.extend(shard_sections(run, shard, plan));
    }
    sections.sort_by_key(Section::rank);
    head.push_str(&results(run));
    head.push_str(&table(run));
    head.push_str(&alerts(run));
    head.push_str(&findings(run, Severity::Error));
    head.push_str(&findings(run, Severity::Warning));
    if let Some(mend) = &run.mend {
        let _ = write!(tail, "\n{}\n", escaped_line(mend));
    }
    let _ = write!(tail, "\n{}\n", footer(run));
    let room = limit.saturating_sub(head.len() + tail.len() + 400);
    let everything = match run.subject {
        Subject::Plan => "`nstance show --json PLANFILE` and the page have everything.",
        Subject::Drift { .. } => "`nstance drift --json` has everything.",
        Subject::Apply => "The log has everything.",
    };
    let (text, note) = fitted(&sections, room, everything);
    if let Some(note) = note {
        head.push_str(&note);
    }
    format!("{head}{text}{tail}")
}

/// Which shards it is about.
fn identities(run: &Run<'_>) -> String {
    let named = run.shards.iter().filter_map(Shard::name);
    let mut names: Vec<String> = named.map(|name| code(&name)).collect();
    if names.is_empty() {
        return String::new();
    }
    let more = names.len().saturating_sub(SHARDS);
    if more > 0 {
        names.truncate(SHARDS);
        names.push(format!("and {}", counted(more, "more shard")));
    }
    format!("{}\n\n", names.join(", "))
}

/// How an apply ended in each shard.
fn results(run: &Run<'_>) -> String {
    if run.subject != Subject::Apply {
        return String::new();
    }
    let mut text = String::new();
    for shard in run.shards.iter().take(SHARDS) {
        let Some(applied) = &shard.applied else {
            continue;
        };
        let name = shard.name().unwrap_or_default();
        let word = applied.end.as_str().replace('_', " ");
        let took = applied.elapsed.as_secs();
        let _ = writeln!(text, "{}: {word} after {took} s\n", code(&name));
    }
    text
}

type Column = (&'static str, fn(&Summary) -> usize);

/// The columns of the table; those without a count are omitted.
const COLUMNS: [Column; 7] = [
    ("create", |it| it.create),
    ("change", |it| it.update),
    ("replace", |it| it.replace),
    ("destroy", |it| it.delete),
    ("adopt", |it| it.adopt),
    ("forget", |it| it.forget),
    ("held back", |it| it.held_back),
];

/// The counts by group.
fn table(run: &Run<'_>) -> String {
    if run.subject == Subject::OF_RECORD {
        return String::new();
    }
    let mut rows: Vec<(String, Summary)> = Vec::new();
    let mut undone: BTreeMap<String, usize> = BTreeMap::new();
    for shard in &run.shards {
        let Some(plan) = &shard.plan else { continue };
        let applied = shard.applied.iter();
        for change in applied.flat_map(|applied| &applied.undone) {
            let group = change
                .address
                .rsplit_once('/')
                .map_or("", |(group, _)| group);
            *undone.entry(group.to_owned()).or_default() += 1;
        }
        let style = shard.style(Signs::Margin);
        let all = plan.changes.iter().map(|change| (change, false));
        let held = plan.held_back.iter().map(|change| (change, true));
        let start = rows.len();
        for (change, held) in all.chain(held) {
            let group = style.address(&change.address.group);
            let known = rows[start..].iter().position(|(name, _)| *name == group);
            let index = known.map_or_else(
                || {
                    rows.push((group, Summary::default()));
                    rows.len() - 1
                },
                |index| start + index,
            );
            if held {
                rows[index].1.held_back += 1;
            } else {
                rows[index].1.count(change.action);
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    // What a reader must not miss comes first.
    rows.sort_by_key(|(_, counts)| {
        let worst = [
            counts.delete,
            counts.replace,
            counts.held_back,
            counts.forget,
        ];
        worst
            .iter()
            .position(|count| *count > 0)
            .unwrap_or(worst.len())
    });
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|(_, count)| rows.iter().any(|(_, summary)| count(summary) > 0))
        .collect();
    let mut text = String::from("| group |");
    for (name, _) in &columns {
        let _ = write!(text, " {name} |");
    }
    let has_undone = !undone.is_empty();
    if has_undone {
        text.push_str(" not done |");
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(columns.len() + usize::from(has_undone)));
    text.push('\n');
    for (group, summary) in rows.iter().take(ROWS) {
        let _ = write!(text, "| {} |", code(group));
        for (_, count) in &columns {
            match count(summary) {
                0 => text.push_str("  |"),
                count => {
                    let _ = write!(text, " {count} |");
                }
            }
        }
        if has_undone {
            let count = undone.get(group).map_or_else(String::new, usize::to_string);
            let _ = write!(text, " {count} |");
        }
        text.push('\n');
    }
    if rows.len() > ROWS {
        let more = counted(rows.len() - ROWS, "more group");
        let _ = writeln!(text, "\n… and {more}.");
    }
    text.push('\n');
    if rows.iter().any(|(_, counts)| counts.replace > 0) {
        text.push_str("A replacement counts as one to add and one to destroy.\n\n");
    }
    text
}

/// What isn't planned, what apply refuses, and what it holds back.
fn alerts(run: &Run<'_>) -> String {
    if run.subject == Subject::OF_RECORD {
        return String::new();
    }
    let mut lines = Vec::new();
    for shard in &run.shards {
        let Some(plan) = &shard.plan else { continue };
        let style = shard.style(Signs::Indented);
        lines.extend(notes::left_out(plan, style));
        lines.extend(notes::deletions(plan, style));
        lines.extend(held_back_lines(plan, style));
    }
    let lines = within(trimmed(lines), FINDINGS);
    if lines.is_empty() {
        return String::new();
    }
    format!("{}\n", fenced("text", &lines))
}

/// The findings of a severity: errors as they are, warnings folded.
fn findings(run: &Run<'_>, severity: Severity) -> String {
    let mut lines: Vec<String> = Vec::new();
    for shard in &run.shards {
        let mut chosen = Diagnostics::default();
        let findings = shard.named_findings().into_iter();
        chosen.extend(findings.filter(|it| it.severity == severity));
        let text = diagnostic::render(&chosen, shard.sources, false);
        lines.extend(text.lines().map(str::to_owned));
    }
    if lines.is_empty() {
        return String::new();
    }
    let text = fenced("text", &within(lines, FINDINGS));
    let count = run.findings(severity);
    match severity {
        Severity::Error => format!("**{}**\n\n{text}\n", counted(count, "error")),
        Severity::Warning => details(&counted(count, "warning"), &text),
    }
}

/// The notes of a shard that are rarely read.
fn folded_notes(run: &Run<'_>, shard: &Shard<'_>, plan: &Plan) -> String {
    let mut text = String::new();
    let plain = shard.style(Signs::Indented);
    let room = NOTES / run.shards.len();
    let of = match &shard.label {
        Some(label) => format!(" of {}", html(label)),
        None => String::new(),
    };
    if !plan.drift.is_empty() {
        let is_plan = !matches!(run.subject, Subject::Drift { .. });
        let title = if is_plan {
            format!("Changed outside of nstance{of}")
        } else {
            format!("Drift{of}")
        };
        let style = shard.style(Signs::Margin);
        let lines = within(drift::lines(plan, style), room / 2);
        text.push_str(&details_of(&title, "diff", &lines, !is_plan));
    }
    if run.subject == Subject::OF_RECORD {
        return text;
    }
    let mut add = |title: &str, lines: Vec<String>| {
        let lines = within(trimmed(lines), room / 6);
        if !lines.is_empty() {
            let title = format!("{title}{of}");
            text.push_str(&details_of(&title, "text", &lines, false));
        }
    };
    add("Order of the changes", rollout::sections(plan, plain));
    add("Manifest", notes::manifest(plan, plain));
    add("Images", notes::images(plan, plain));
    text
}

fn trimmed(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The lines up to a size, and the number of the others.
fn within(lines: Vec<String>, bytes: usize) -> Vec<String> {
    let mut sum = 0;
    let fitting = lines.iter().take_while(|line| {
        sum += line.len() + 1;
        sum <= bytes
    });
    let fitting = fitting.count();
    if fitting == lines.len() {
        return lines;
    }
    let more = counted(lines.len() - fitting, "more line");
    let mut lines = lines;
    lines.truncate(fitting);
    lines.push(format!("… and {more}"));
    lines
}

/// A group's changes, or those held back.
struct Section {
    title: String,
    group: GroupText,
    is_held_back: bool,
}

impl Section {
    fn rank(&self) -> (bool, usize) {
        (self.is_held_back, self.group.rank())
    }
}

fn shard_sections(run: &Run<'_>, shard: &Shard<'_>, plan: &Plan) -> Vec<Section> {
    if run.subject == Subject::OF_RECORD {
        return Vec::new();
    }
    let style: Style<'_> = shard.style(Signs::Margin);
    let section = |group: GroupText, is_held_back: bool| Section {
        title: title(&group, is_held_back),
        group,
        is_held_back,
    };
    let changes = groups::groups(plan, &plan.changes, style).into_iter();
    let held_back = groups::groups(plan, &plan.held_back, style).into_iter();
    changes
        .map(|group| section(group, false))
        .chain(held_back.map(|group| section(group, true)))
        .collect()
}

/// `default/web: 3 to replace (a change of userdata forces replacement)`
fn title(group: &GroupText, is_held_back: bool) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for reason in group.blocks.iter().flat_map(|block| &block.reasons) {
        if !reasons.contains(&&**reason) {
            reasons.push(reason);
        }
    }
    let more = match reasons.len() {
        0..=2 => "",
        _ => "; …",
    };
    reasons.truncate(2);
    let reasons = match &reasons[..] {
        [] => String::new(),
        reasons => format!(" ({}{more})", html(&reasons.join("; "))),
    };
    let held_back = if is_held_back { "held back, " } else { "" };
    format!(
        "{}: {held_back}{}{reasons}",
        code(&group.group),
        to_do(&group.summary)
    )
}

/// The sections in at most `room` bytes: every heading, then as many details as fit, worst first;
/// and a note about what is left out.
fn fitted(sections: &[Section], room: usize, everything: &str) -> (String, Option<String>) {
    let around = |section: &Section| section.title.len() + 90;
    let size = |block: &BlockText, level: usize| {
        let lines = block.levels[level].iter();
        lines.map(|line| line.len() + 1).sum::<usize>() + 1
    };
    // The level of each block; `None` for one that isn't shown at all.
    let mut levels: Vec<Vec<Option<usize>>> = sections
        .iter()
        .map(|section| vec![None; section.group.blocks.len()])
        .collect();
    let mut used = 0;
    let mut shown = 0;
    for section in sections {
        if used + around(section) > room {
            break;
        }
        used += around(section);
        shown += 1;
    }
    // One example of each group comes first, with half of the room; then what fits of all.
    let passes = [1, usize::MAX]
        .into_iter()
        .flat_map(|blocks| (0..3).map(move |level| (blocks, level)));
    for (blocks, level) in passes {
        let room = if blocks == 1 { room / 2 } else { room };
        for (section, levels) in sections.iter().zip(&mut levels).take(shown) {
            let all = section.group.blocks.iter().zip(levels);
            for (block, known) in all.take(blocks) {
                let before = known.map_or(0, |level| size(block, level));
                let after = size(block, level);
                let is_next = known.map_or(level == 0, |known| known + 1 == level);
                if is_next && used + after <= room + before {
                    used = used + after - before;
                    *known = Some(level);
                }
            }
        }
    }
    let mut text = String::new();
    let mut left_out = 0;
    let mut shortened = 0;
    for (section, levels) in sections.iter().zip(&levels).take(shown) {
        let group = &section.group;
        let mut lines = Vec::new();
        let mut rest = group.rest;
        for (block, level) in group.blocks.iter().zip(levels) {
            let Some(level) = level else {
                rest += block.count;
                continue;
            };
            if *level < 2 && block.levels[*level].len() < block.levels[2].len() {
                shortened += block.count;
            }
            lines.extend(block.levels[*level].iter().cloned());
            if *level > 0 {
                lines.push(String::new());
            }
        }
        left_out += rest;
        if rest > 0 {
            lines.push(format!("# … and {}", counted(rest, "more change")));
        }
        let lines = trimmed(lines);
        let is_open = sections.len() == 1 && lines.len() <= 60;
        text.push_str(&details_of(&section.title, "diff", &lines, is_open));
    }
    left_out += sections[shown..]
        .iter()
        .map(|section| {
            let blocks = section.group.blocks.iter();
            blocks.map(|block| block.count).sum::<usize>() + section.group.rest
        })
        .sum::<usize>();
    let mut parts = Vec::new();
    if shortened > 0 {
        parts.push(format!("details of {}", counted(shortened, "change")));
    }
    if left_out > 0 {
        parts.push(counted(left_out, "whole change"));
    }
    let note = (!parts.is_empty()).then(|| {
        format!(
            "**Left out, since the length is limited:** {}. {everything}\n\n",
            parts.join(", ")
        )
    });
    (text, note)
}

fn footer(run: &Run<'_>) -> String {
    let mut facts = vec![format!("nstance {}", env!("CARGO_PKG_VERSION"))];
    let plans: Vec<&Plan> = run
        .shards
        .iter()
        .filter_map(|it| it.plan.as_ref())
        .collect();
    if let [plan] = &plans[..] {
        facts.push(format!("serial {}", plan.serial));
    }
    facts.extend(plans.first().map(|plan| plan.created_at.to_string()));
    let link = run.link.iter().map(|link| format!(" · [job]({link})"));
    let link = link.collect::<String>();
    format!("<sub>{}{link}</sub>", html(&facts.join(", ")))
}

/// A folded part with lines in a fence.
fn details_of(title: &str, language: &str, lines: &[String], is_open: bool) -> String {
    let text = fenced(language, lines);
    let open = if is_open { " open" } else { "" };
    format!("<details{open}><summary>{title}</summary>\n\n{text}\n</details>\n\n")
}

fn details(title: &str, body: &str) -> String {
    format!("<details><summary>{title}</summary>\n\n{body}\n</details>\n\n")
}

/// Lines in a fence that none of them ends.
fn fenced(language: &str, lines: &[String]) -> String {
    let longest = lines.iter().map(|line| {
        let mut longest = 0;
        let mut run = 0;
        for c in line.chars() {
            run = if c == '`' { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        longest
    });
    let fence = "`".repeat(longest.max().unwrap_or(0).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", lines.join("\n"))
}

/// Text as code, wherever Markdown allows HTML.
fn code(text: &str) -> String {
    format!("<code>{}</code>", html(text))
}

/// Text in which neither HTML nor Markdown means anything, and nobody is mentioned.
fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            c if c.is_ascii_punctuation() && !",.:;/()-= ".contains(c) => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// A line of ours with code in backticks.
fn escaped_line(line: &str) -> String {
    let parts = line.split('`').enumerate();
    parts
        .map(|(index, part)| match index % 2 {
            0 => html(part),
            _ => code(part),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::SourceMap;
    use crate::diagnostic::Diagnostic;
    use crate::plan::change::{Action, DriftKind, LeftOut, Reason};
    use crate::report::testing::{change, drift, empty, replace};

    /// A run with more of everything than fits.
    fn crowded(sources: &SourceMap, shards: usize) -> Run<'_> {
        let shards = (0..shards).map(|number| {
            let mut plan = empty();
            plan.shard = format!("shard-{number}");
            for slot in 0..200 {
                let group = format!("default/group-{}", slot / 4);
                plan.drift.push(drift(&group, slot, DriftKind::Changed));
                plan.drift.push(drift(&group, slot, DriftKind::Missing));
                plan.changes.push(replace(&group, slot));
                plan.left_out.push(LeftOut {
                    address: format!("{group}/{slot}"),
                    count: 1,
                    why: "x".repeat(400),
                });
            }
            plan.summary = Summary::of(&plan.changes, &[], 0);
            let mut findings = Diagnostics::default();
            for finding in 0..200 {
                let text = format!("finding {finding} of {number}");
                findings.push(Diagnostic::error(&text).detail("y".repeat(200)));
                findings.push(Diagnostic::warning(text).detail("z".repeat(200)));
            }
            Shard {
                identity: Some((plan.cluster.clone(), plan.shard.clone())),
                label: Some(plan.shard.clone()),
                planned: plan.summary,
                plan: Some(plan),
                findings,
                sources,
                applied: None,
            }
        });
        Run {
            subject: Subject::Plan,
            shards: shards.collect(),
            mend: None,
            link: None,
        }
    }

    #[test]
    fn nothing_makes_a_comment_too_long() {
        let sources = SourceMap::default();
        for shards in [1, 3, 100] {
            let run = crowded(&sources, shards);
            let text = markdown(&run, COMMENT);
            assert!(text.len() <= COMMENT, "{shards}: {}", text.len());
            assert!(text.contains("Left out, since the length is limited"));
            let opened = text.matches("<details").count();
            assert_eq!(text.matches("</details>").count(), opened);
        }
    }

    #[test]
    fn names_mean_nothing_to_markdown_and_html() {
        let text = html("a|b `c` *d* <e> @f #1 [g](h) _i_ &amp;\n## j");
        assert!(
            !text.contains(['|', '`', '*', '<', '>', '@', '[', '_', '\n']),
            "{text}"
        );
        assert!(!text.contains("&amp;"), "{text}");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_it() {
        let lines = ["a".to_owned(), "````".to_owned(), "``` ``".to_owned()];
        assert!(fenced("diff", &lines).starts_with("`````diff\na\n````\n"));
        assert!(fenced("diff", &[]).starts_with("```diff\n"));
    }

    #[test]
    fn what_destroys_comes_first() {
        let sources = SourceMap::default();
        let mut run = crowded(&sources, 1);
        let plan = run.shards[0].plan.as_mut().unwrap();
        plan.changes = vec![
            change("default/a", 0, Action::Update, Reason::Changed),
            replace("default/b", 0),
        ];
        let text = markdown(&run, COMMENT);
        let at = |group: &str| {
            text.find(&format!("<summary><code>{group}</code>"))
                .unwrap()
        };
        assert!(at("shard-0:default/b") < at("shard-0:default/a"));
    }
}

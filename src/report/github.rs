//! Annotations, job summaries and outputs of GitHub Actions.
//!
//! In: a [`Run`], and where the repository is. Out: workflow commands, and lines for
//! `$GITHUB_OUTPUT`. Must not: let a text of the configuration or the cloud become a command.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use super::review::{Run, Subject};
use super::text::groups::{self, GroupText};
use super::text::{self, Signs, notes};
use crate::diagnostic::{Severity, counted};
use crate::plan::change::{Action, DriftKind};
use crate::sensitivity::cover::covered;

/// GitHub shows at most ten annotations of a step.
const MOST: usize = 10;

/// Where files are, to name them as the repository does.
#[derive(Debug, Clone, Copy)]
pub struct Repository<'a> {
    /// The repository's folder: `$GITHUB_WORKSPACE`.
    pub root: &'a Path,
    /// The working folder, which files are relative to.
    pub working: &'a Path,
}

/// How serious an annotation is; the worst are shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Error,
    Warning,
    Notice,
}

/// One annotation.
#[derive(Debug)]
struct Annotation {
    level: Level,
    title: String,
    message: String,
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    file: String,
    line: usize,
    end_line: usize,
    column: usize,
}

/// The annotations of a run, one a line, worst first, at most ten.
pub fn annotations(run: &Run<'_>, repository: Option<Repository<'_>>) -> String {
    let mut all = findings(run);
    all.extend(refusals(run));
    all.extend(undone(run));
    all.extend(drift(run));
    all.extend(changes(run));
    all.sort_by_key(|annotation| annotation.level);
    // The last place is the verdict's.
    let more = all.len().saturating_sub(MOST - 1);
    all.truncate(MOST - 1);
    let mut verdict = run.verdict();
    if more > 0 {
        let _ = write!(verdict, " (and {more} more: see the job summary)");
    }
    all.push(Annotation {
        level: Level::Notice,
        title: format!("nstance {}", run.subject.name()),
        message: verdict,
        place: None,
    });
    let mut text = String::new();
    for annotation in &all {
        text.push_str(&annotation.command(repository));
    }
    text
}

/// The findings of all shards.
fn findings(run: &Run<'_>) -> Vec<Annotation> {
    let findings = run.shards.iter().flat_map(|shard| {
        let findings = shard.named_findings().into_iter();
        findings.map(move |finding| (shard, finding))
    });
    findings
        .map(|(shard, finding)| {
            let mut message: Vec<&str> = Vec::new();
            let label = finding.label.as_ref();
            message.extend(label.map(|label| &*label.text).filter(|it| !it.is_empty()));
            message.extend(finding.detail.as_deref());
            let hints: Vec<String> = finding
                .hints
                .iter()
                .map(|it| format!("hint: {it}"))
                .collect();
            message.extend(hints.iter().map(String::as_str));
            if message.is_empty() {
                message.push(&finding.summary);
            }
            let place = label.map(|label| {
                let (start, end) = shard.sources.range(label.span);
                Place {
                    file: shard.sources.get(label.span.source).name.clone(),
                    line: start.line,
                    end_line: end.line,
                    column: start.column,
                }
            });
            Annotation {
                level: match finding.severity {
                    Severity::Error => Level::Error,
                    Severity::Warning => Level::Warning,
                },
                title: finding.summary.clone(),
                message: message.join("\n"),
                place,
            }
        })
        .collect()
}

/// What apply refuses without an option, and what it holds back.
fn refusals(run: &Run<'_>) -> Vec<Annotation> {
    if matches!(run.subject, Subject::OF_RECORD | Subject::Apply) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for shard in &run.shards {
        let Some(plan) = &shard.plan else { continue };
        let style = shard.style(Signs::Indented);
        for (level, title, lines) in [
            (
                Level::Error,
                "Apply refuses this plan without an option",
                notes::deletions(plan, style),
            ),
            (
                Level::Warning,
                "Apply holds changes back",
                text::held_back_lines(plan, style),
            ),
        ] {
            let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
            let message = lines.join("\n");
            if !message.trim().is_empty() {
                found.push(Annotation {
                    level,
                    title: title.to_owned(),
                    message: message.trim().to_owned(),
                    place: None,
                });
            }
        }
    }
    found
}

/// The changes that an apply didn't make.
fn undone(run: &Run<'_>) -> Vec<Annotation> {
    let applied = run.shards.iter().filter_map(|shard| shard.applied.as_ref());
    let undone = applied.flat_map(|applied| &applied.undone);
    undone
        .filter_map(|undone| {
            Some(Annotation {
                level: Level::Error,
                title: format!("{} of {} failed", undone.action, undone.address),
                message: undone.error.clone()?,
                place: None,
            })
        })
        .collect()
}

/// What drifted, by shard and kind.
fn drift(run: &Run<'_>) -> Vec<Annotation> {
    let level = match run.subject {
        Subject::Drift { .. } => Level::Warning,
        Subject::Plan | Subject::Apply => Level::Notice,
    };
    let mut found = Vec::new();
    for shard in &run.shards {
        let Some(plan) = &shard.plan else { continue };
        let style = shard.style(Signs::Indented);
        for kind in DriftKind::ALL {
            let drifted = plan.drift.iter();
            let drifted: Vec<String> = drifted
                .filter(|drift| drift.kind == kind && !drift.accepted)
                .map(|drift| style.address(&drift.address))
                .collect();
            if drifted.is_empty() {
                continue;
            }
            let listed = drifted[..drifted.len().min(10)].join(", ");
            let more = match drifted.len() {
                0..=10 => String::new(),
                count => format!(" and {} more", count - 10),
            };
            let (count, kind) = (counted(drifted.len(), "instance"), kind.as_str());
            found.push(Annotation {
                level,
                title: format!("Drift: {count} {kind}"),
                message: format!("{listed}{more}"),
                place: None,
            });
        }
    }
    found
}

/// What a plan destroys, replaces and holds back, a group each.
fn changes(run: &Run<'_>) -> Vec<Annotation> {
    if matches!(run.subject, Subject::OF_RECORD | Subject::Apply) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for shard in &run.shards {
        let Some(plan) = &shard.plan else { continue };
        let plan = &*covered(plan);
        let groups = groups::groups(plan, &plan.changes, shard.style(Signs::Margin));
        found.extend(groups.iter().flat_map(of_group));
    }
    found
}

fn of_group(group: &GroupText) -> Vec<Annotation> {
    let mut found = Vec::new();
    for (level, actions) in [
        (Level::Warning, &[Action::Delete][..]),
        (
            Level::Warning,
            &[Action::CreateThenDelete, Action::DeleteThenCreate],
        ),
        (Level::Notice, &[Action::Update]),
        (Level::Notice, &[Action::Create]),
    ] {
        let blocks = group.blocks.iter();
        let blocks: Vec<_> = blocks.filter(|it| actions.contains(&it.action)).collect();
        let count: usize = blocks.iter().map(|block| block.count).sum();
        if count == 0 {
            continue;
        }
        let reasons = blocks.iter().find_map(|block| block.reasons.first());
        let place = blocks.iter().find_map(|it| it.written_at.as_deref());
        let (name, count) = (&group.group, counted(count, "instance"));
        let what = format!("{count} of {name} will be {}", done_to(actions[0]));
        found.push(Annotation {
            level,
            message: reasons.map_or_else(|| what.clone(), Clone::clone),
            title: what,
            place: place.and_then(parsed),
        });
    }
    found
}

/// What will happen to an instance.
fn done_to(action: Action) -> &'static str {
    match action {
        Action::Create => "created",
        Action::Update => "changed",
        Action::CreateThenDelete | Action::DeleteThenCreate => "replaced",
        Action::Delete => "destroyed",
        Action::Adopt => "adopted",
        Action::Forget => "forgotten",
        Action::NoOp => "left as they are",
    }
}

/// The place in `file:line:column`.
fn parsed(place: &str) -> Option<Place> {
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some(Place {
        file: parts.next()?.to_owned(),
        line,
        end_line: line,
        column,
    })
}

impl Annotation {
    /// Its workflow command.
    fn command(&self, repository: Option<Repository<'_>>) -> String {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Notice => "notice",
        };
        let mut text = format!("::{level} title={}", property(&self.title));
        if let Some(place) = &self.place {
            let file = repository.map_or_else(
                || place.file.clone(),
                |repository| repository.relative(&place.file),
            );
            let _ = write!(
                text,
                ",file={},line={},endLine={},col={}",
                property(&file),
                place.line,
                place.end_line,
                place.column
            );
        }
        let _ = writeln!(text, "::{}", data(&self.message));
        text
    }
}

impl Repository<'_> {
    /// A file's name from the repository's folder; as it is if it is elsewhere.
    fn relative(&self, file: &str) -> String {
        let mut path = PathBuf::new();
        for part in self.working.join(file).components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                Component::CurDir => {}
                part => path.push(part),
            }
        }
        let relative = path.strip_prefix(self.root);
        relative.map_or_else(|_| file.to_owned(), |path| path.display().to_string())
    }
}

/// A message: one line, whose `%` can't be read as an escape.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The value of a property, which a comma would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// The lines for `$GITHUB_OUTPUT`, each `name=value`.
pub fn outputs(run: &Run<'_>, code: u8) -> String {
    let planned = run.planned();
    let mut lines = vec![
        ("exitcode", code.to_string()),
        ("failed", run.failed().to_string()),
    ];
    match run.subject {
        Subject::Plan => lines.extend([
            ("has_changes", planned.has_changes().to_string()),
            ("add", planned.added().to_string()),
            ("change", planned.update.to_string()),
            ("destroy", planned.destroyed().to_string()),
            ("held_back", planned.held_back.to_string()),
        ]),
        Subject::Drift { .. } => {
            lines.push(("has_drift", run.has_drift().to_string()));
            let kinds = DriftKind::ALL.iter();
            lines.extend(kinds.map(|kind| (kind.as_str(), run.drifted(*kind).to_string())));
        }
        Subject::Apply => {
            let done = run.done();
            lines.extend([
                ("add", done.added.to_string()),
                ("change", done.changed.to_string()),
                ("destroy", done.destroyed.to_string()),
            ]);
        }
    }
    let lines = lines.iter().map(|(name, value)| format!("{name}={value}"));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_command() {
        let annotation = Annotation {
            level: Level::Error,
            title: "100%, a: b".to_owned(),
            message: "one\r\n::error::two 50%0A".to_owned(),
            place: parsed("a,b.jsonc:3:7"),
        };
        assert_eq!(
            annotation.command(None),
            "::error title=100%25%2C a%3A b,file=a%2Cb.jsonc,line=3,endLine=3,col=7::\
             one%0D%0A::error::two 50%250A\n"
        );
    }

    #[test]
    fn files_are_named_from_the_repository() {
        let repository = Repository {
            root: Path::new("/home/runner/work/fleet"),
            working: Path::new("/home/runner/work/fleet/prod"),
        };
        for (file, expected) in [
            ("nstance.jsonc", "prod/nstance.jsonc"),
            ("../shared/./base.hcl", "shared/base.hcl"),
            ("/home/runner/work/fleet/a.yaml", "a.yaml"),
            ("/etc/nstance.yaml", "/etc/nstance.yaml"),
            ("../../other/a.yaml", "../../other/a.yaml"),
        ] {
            assert_eq!(repository.relative(file), expected);
        }
    }
}

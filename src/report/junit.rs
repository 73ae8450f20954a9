//! Drift as `JUnit` XML, which CI servers show as tests.
//!
//! In: a [`Run`] of `drift`. Out: XML: a suite for each shard, a case for each group without drift
//! and for each instance with drift. Must not: put a character into it that XML forbids.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::review::{Run, Shard, Subject};
use super::text::groups;
use super::text::{Signs, drift};
use crate::diagnostic::Severity;
use crate::plan::accept::counted_changes;
use crate::plan::change::Drift;
use crate::sensitivity::cover::covered;

/// One test case.
struct Case {
    class: String,
    name: String,
    outcome: Outcome,
}

enum Outcome {
    Passed,
    /// Accepted drift.
    Skipped(String),
    /// The kind, the message and the details.
    Failed(&'static str, String, String),
    Error(String, String),
}

/// The document of a run.
pub fn junit(run: &Run<'_>) -> String {
    let suites: Vec<(String, Vec<Case>)> = run
        .shards
        .iter()
        .map(|shard| {
            let name = shard.name().unwrap_or_else(|| "configuration".to_owned());
            let cases = cases(run, shard, &name);
            (name, cases)
        })
        .collect();
    let all = suites.iter().flat_map(|(_, cases)| cases);
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuites name=\"nstance drift\" {}>",
        counts(all.collect::<Vec<_>>().as_slice())
    );
    for (name, cases) in &suites {
        let all: Vec<&Case> = cases.iter().collect();
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" {}>",
            xml(name),
            counts(&all)
        );
        for case in cases {
            text.push_str(&case.element());
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn counts(cases: &[&Case]) -> String {
    let of = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        of(|it| matches!(it, Outcome::Failed(..))),
        of(|it| matches!(it, Outcome::Error(..))),
        of(|it| matches!(it, Outcome::Skipped(_))),
    )
}

fn cases(run: &Run<'_>, shard: &Shard<'_>, class: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let errors = shard.findings.iter();
    let errors = errors.filter(|finding| finding.severity == Severity::Error);
    cases.extend(errors.map(|error| {
        let mut details = Vec::new();
        details.extend(error.label.as_ref().map(|it| shard.sources.place(it.span)));
        details.extend(error.detail.clone());
        details.extend(error.hints.iter().map(|hint| format!("hint: {hint}")));
        Case {
            class: class.to_owned(),
            name: "planning".to_owned(),
            outcome: Outcome::Error(error.summary.clone(), details.join("\n")),
        }
    }));
    let Some(plan) = &shard.plan else {
        return cases;
    };
    let plan = &*covered(plan);
    let mut groups: BTreeSet<&str> = plan.sizes.keys().map(String::as_str).collect();
    let case = |class: &str, name: &str, outcome| Case {
        class: class.to_owned(),
        name: name.to_owned(),
        outcome,
    };
    for drift in &plan.drift {
        let group = drift
            .address
            .rsplit_once('/')
            .map_or("", |(group, _)| group);
        groups.remove(group);
        let class = format!("{class}/{group}");
        cases.push(case(&class, &drift.address, outcome(drift, shard)));
    }
    let planned = if run.subject == Subject::OF_CONFIG {
        counted_changes(plan)
    } else {
        Vec::new()
    };
    let planned = groups::groups(plan, &planned, shard.style(Signs::Indented));
    let mut titles: BTreeMap<String, String> = BTreeMap::new();
    for group in &planned {
        let lines = group.blocks.iter().flat_map(|block| &block.levels[1]);
        let lines: Vec<&str> = lines.map(String::as_str).collect();
        titles.insert(group.group.clone(), lines.join("\n"));
    }
    for (group, text) in titles {
        groups.remove(group.as_str());
        let failed = Outcome::Failed("planned", format!("{group} has planned changes"), text);
        cases.push(case(&format!("{class}/{group}"), &group, failed));
    }
    let clean = groups.into_iter();
    cases.extend(clean.map(|group| case(&format!("{class}/{group}"), group, Outcome::Passed)));
    cases
}

fn outcome(drift: &Drift, shard: &Shard<'_>) -> Outcome {
    if drift.accepted {
        let reasons: Vec<&str> = drift
            .accepted_because
            .iter()
            .map(|because| &*because.reason)
            .collect();
        return Outcome::Skipped(match &reasons[..] {
            [] => "accepted by ignore_changes".to_owned(),
            reasons => format!("accepted: {}", reasons.join("; ")),
        });
    }
    let lines = drift::of_one(drift, shard.style(Signs::Indented));
    let message = lines
        .first()
        .map_or("", |line| line.trim_start_matches([' ', '#']));
    Outcome::Failed(drift.kind.as_str(), message.to_owned(), lines.join("\n"))
}

impl Case {
    fn element(&self) -> String {
        let (class, name) = (xml(&self.class), xml(&self.name));
        let head = format!("    <testcase classname=\"{class}\" name=\"{name}\"");
        let inner = match &self.outcome {
            Outcome::Passed => return format!("{head}/>\n"),
            Outcome::Skipped(why) => format!("<skipped message=\"{}\"/>", xml(why)),
            Outcome::Failed(kind, message, text) => format!(
                "<failure type=\"{kind}\" message=\"{}\">{}</failure>",
                xml(message),
                xml(text)
            ),
            Outcome::Error(message, text) => format!(
                "<error type=\"error\" message=\"{}\">{}</error>",
                xml(message),
                xml(text)
            ),
        };
        format!("{head}>\n      {inner}\n    </testcase>\n")
    }
}

/// Text for an element or an attribute.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_character_that_xml_forbids() {
        assert_eq!(
            xml("<a b=\"c\">&\u{0}\u{1b}[31m\u{fffe}\té\n"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}\u{fffd}[31m\u{fffd}\té\n"
        );
    }
}

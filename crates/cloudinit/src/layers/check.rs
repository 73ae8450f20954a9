//! cloud-config of layers against cloud-init's schema, and YAML 1.1's surprises.
//!
//! In: pieces as they were written, and the result. Out: findings at layer and line. May not: take
//! for an error what the result makes good, such as a key that another layer adds.

use std::collections::HashSet;

use super::joiner::Joiner;
use super::pieces::{Content, Piece};
use super::{LayerFinding, Severity, place};
use crate::schema::{self, Finding};
use crate::value::{Origin, Value};
use crate::yaml::{self, Plain, Remark};

/// What the schema has to say of a layer.
#[derive(Debug)]
pub(super) struct Told {
    /// The number of the finding.
    index: usize,
    origin: Origin,
    message: String,
    /// Whether it is an error if the result has it too.
    is_unsettled: bool,
}

impl Joiner<'_> {
    /// What is wrong with each piece by itself.
    pub(super) fn check_pieces(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            let Content::Config(config) = &piece.content else {
                continue;
            };
            let text = piece.part.text().unwrap_or_default();
            let remarks = yaml::remarks(text);
            for remark in &remarks.remarks {
                self.remark(piece.source, remark);
            }
            for finding in schema::check(&config.value) {
                let surprise = remarks.plain(finding.origin.line, finding.origin.column);
                let surprise = surprise.filter(|_| finding.allows_text());
                self.schema_finding(&finding, surprise);
            }
        }
    }

    /// What is wrong with the result: a layer's finding that is one of the result's too is an error.
    pub(super) fn check_result(&mut self, config: Option<&Value>) {
        let findings: Vec<Finding> = config.map(schema::check).unwrap_or_default();
        let key = |finding: &Finding| (finding.origin, finding.message.clone());
        let known: HashSet<(Origin, String)> = findings.iter().map(key).collect();
        let mut told_of = HashSet::new();
        for told in std::mem::take(&mut self.told) {
            let key = (told.origin, told.message);
            if told.is_unsettled && known.contains(&key) {
                self.findings[told.index].severity = Severity::Error;
            }
            told_of.insert(key);
        }
        for finding in findings.iter().filter(|one| !told_of.contains(&key(one))) {
            self.schema_finding(finding, None);
            if !finding.is_deprecation
                && let Some(last) = self.findings.last_mut()
            {
                last.severity = Severity::Error;
            }
        }
    }

    fn schema_finding(&mut self, finding: &Finding, surprise: Option<&Plain>) {
        self.told.push(Told {
            index: self.findings.len(),
            origin: finding.origin,
            message: finding.message.clone(),
            is_unsettled: surprise.is_none() && !finding.is_deprecation,
        });
        let path = finding.shown_path();
        let mut made = LayerFinding {
            severity: Severity::Warning,
            place: place(&self.sources, finding.origin),
            summary: about(&path, finding.message.trim_end_matches('.')),
            path,
            detail: None,
            hint: finding.hint.clone(),
        };
        if let Some(plain) = surprise {
            let read = format!("`{}` is read as {}", plain.text, plain.read);
            made.detail = Some(made.summary);
            made.summary = read;
            made.hint = Some(format!(
                "If it is meant as written, write {}",
                yaml::quoted(&plain.text.as_str().into())
            ));
        } else if finding.message.starts_with("this is a mapping")
            && finding.message.contains("a string")
        {
            let hint = "A colon and a space make a mapping of a text without quotes: write quotes";
            made.hint = Some(hint.to_owned());
        } else if finding.wants_list() {
            let hint = "A list stands in brackets, or has each item on a line of its own: `- item`";
            made.hint = Some(hint.to_owned());
        }
        self.findings.push(made);
    }

    fn remark(&mut self, source: usize, remark: &Remark) {
        let at = |line: u32, column: u32| Origin {
            layer: source as u32,
            line,
            column,
        };
        match remark {
            Remark::SameKey {
                key,
                line,
                column,
                first,
            } => {
                let place = place(&self.sources, at(*line, *column));
                let first = super::place(&self.sources, at(*first, 1)).and_then(|at| at.line);
                let first = first.unwrap_or_default();
                self.warning(
                    place,
                    format!("`{key}` is written twice, and what line {first} says of it is lost"),
                    Some("Put both under one key"),
                );
            }
            Remark::OddKey {
                text,
                read,
                line,
                column,
            } => {
                let place = place(&self.sources, at(*line, *column));
                let hint = format!("Write {}", yaml::quoted(&text.as_str().into()));
                self.warning(
                    place,
                    format!("the key `{text}` is read as {read}"),
                    Some(&hint),
                );
            }
        }
    }
}

/// What the schema says of a value, by the value's name.
fn about(path: &str, message: &str) -> String {
    if path.is_empty() {
        return message.to_owned();
    }
    for (begins, instead) in [
        ("this is ", format!("`{path}` is ")),
        ("it ", format!("`{path}` ")),
        ("its ", format!("of `{path}`: its ")),
        ("`", format!("in `{path}`: `")),
        ("these ", format!("in `{path}`: these ")),
        ("two ", format!("in `{path}`: two ")),
    ] {
        if let Some(rest) = message.strip_prefix(begins) {
            return format!("{instead}{rest}");
        }
    }
    message.to_owned()
}

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
                let surprise = surprise.filter(|_| finding.is_of_type);
                self.schema_finding(&finding, surprise, !finding.is_deprecation);
            }
        }
    }

    /// What is wrong with the result: what is wrong with it too was meant seriously.
    pub(super) fn check_result(&mut self, config: Option<&Value>) {
        let findings: Vec<Finding> = config.map(schema::check).unwrap_or_default();
        let mut known = HashSet::new();
        for finding in &findings {
            known.insert((
                place(&self.sources, finding.origin),
                finding.message.clone(),
            ));
        }
        let mut told = HashSet::new();
        self.unsettled.sort_unstable();
        for index in std::mem::take(&mut self.unsettled) {
            let finding = &mut self.findings[index];
            let message = (finding.place.clone(), finding.summary.clone());
            told.insert(message.clone());
            if known.contains(&message) {
                finding.severity = Severity::Error;
            }
        }
        for finding in &findings {
            let at = place(&self.sources, finding.origin);
            let is_told = self.findings.iter().any(|earlier| {
                earlier.place == at
                    && (earlier.summary == finding.message
                        || earlier.detail.as_deref() == Some(&finding.message))
            });
            if !is_told && !told.contains(&(at, finding.message.clone())) {
                self.schema_finding(finding, None, false);
                if !finding.is_deprecation
                    && let Some(last) = self.findings.last_mut()
                {
                    last.severity = Severity::Error;
                }
            }
        }
    }

    fn schema_finding(&mut self, finding: &Finding, surprise: Option<&Plain>, unsettled: bool) {
        let place = place(&self.sources, finding.origin);
        let path = finding.shown_path();
        let mut made = LayerFinding {
            severity: Severity::Warning,
            place,
            path,
            summary: finding.message.clone(),
            detail: None,
            hint: None,
        };
        match surprise {
            Some(plain) => {
                made.summary = format!(
                    "`{}` is read as {}, and has to be something else",
                    plain.text, plain.read
                );
                made.detail = Some(finding.message.clone());
                made.hint = Some(format!(
                    "Write {}, if that is what is meant",
                    yaml::quoted(&plain.text.as_str().into())
                ));
            }
            None if unsettled => self.unsettled.push(self.findings.len()),
            None => {}
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

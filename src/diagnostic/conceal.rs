//! What findings say of secrets, left out.
//!
//! In: findings, and what is found with other values in the place of secrets. Out: the findings,
//! saying only what they say with those as well. May not: know where secrets are.

use std::collections::HashMap;

use super::{Diagnostic, Diagnostics, Label, Severity};
use crate::config::source::Span;
use crate::marks::HIDDEN;

/// What is said of what depends on a secret as a whole.
pub const CONCEALED: &str = "why isn't shown, since it depends on a sensitive value";

/// Leaves of each finding what `others` say as well: what was found with other secrets, each time
/// with others. Where there are no others, there are no secrets.
pub fn conceal(findings: Diagnostics, others: &[Diagnostics]) -> Diagnostics {
    if others.is_empty() || findings.is_empty() {
        return findings;
    }
    let mut open = Diagnostics::default();
    let others: Vec<_> = others.iter().map(by_place).collect();
    let mut ranks: HashMap<At, usize> = HashMap::new();
    for finding in findings {
        let at = place_of(&finding);
        let rank = ranks.entry(at).or_default();
        let there: Vec<&[&Diagnostic]> = others
            .iter()
            .map(|other| other.get(&at).map_or(&[][..], |there| there))
            .collect();
        if there.iter().all(|there| there.contains(&&finding)) {
            open.push(finding);
        } else {
            // Of the first of them alone it is certain that it is as good a value.
            let told = if there[0].len() > *rank {
                let told = there.iter().filter_map(|there| there.get(*rank));
                told.map(|told| (*told).clone()).collect()
            } else {
                Vec::new()
            };
            open.push(concealed(&finding, &told));
        }
        *rank += 1;
    }
    open
}

/// What findings of one place have in common.
type At = (Severity, Option<Span>);

fn place_of(finding: &Diagnostic) -> At {
    let label = finding.label.as_ref();
    (finding.severity, label.map(|label| label.span))
}

/// Findings by where they are, in their order.
fn by_place(findings: &Diagnostics) -> HashMap<At, Vec<&Diagnostic>> {
    let mut places: HashMap<At, Vec<&Diagnostic>> = HashMap::new();
    for finding in findings {
        places.entry(place_of(finding)).or_default().push(finding);
    }
    places
}

/// What a finding and its counterparts say all.
fn concealed(finding: &Diagnostic, others: &[Diagnostic]) -> Diagnostic {
    let all = |says: &dyn Fn(&Diagnostic) -> bool| others.iter().all(says);
    let text_of = |other: &Diagnostic| {
        let label = other.label.as_ref();
        label.map_or_else(String::new, |label| label.text.clone())
    };
    let summary = common(&finding.summary, others, |other| other.summary.clone());
    let detail = finding.detail.as_ref().and_then(|detail| {
        let of = |other: &Diagnostic| other.detail.clone().unwrap_or_default();
        common(detail, others, of)
    });
    let label = finding.label.as_ref();
    let text = label.map(|label| match label.text.as_str() {
        "" => Some(String::new()),
        text => common(text, others, text_of),
    });
    let is_told = summary.is_some() && text.as_ref().is_none_or(Option::is_some);
    Diagnostic {
        severity: finding.severity,
        conversion: finding.conversion,
        summary: summary.unwrap_or_else(|| "a value can't be used as it is".to_owned()),
        detail: if is_told || label.is_some() {
            detail
        } else {
            Some(CONCEALED.to_owned())
        },
        address: finding
            .address
            .clone()
            .filter(|address| all(&|other| other.address.as_ref() == Some(address))),
        label: label.map(|label| Label {
            span: label.span,
            text: text
                .flatten()
                .filter(|_| is_told)
                .unwrap_or_else(|| CONCEALED.to_owned()),
        }),
        related: finding
            .related
            .iter()
            .filter(|place| all(&|other| other.related.contains(place)))
            .filter(|_| is_told)
            .cloned()
            .collect(),
        hints: finding
            .hints
            .iter()
            .filter(|hint| all(&|other| other.hints.contains(hint)))
            .filter(|_| is_told)
            .cloned()
            .collect(),
    }
}

/// Less is no sentence.
const LEAST: usize = 12;

/// What texts begin and end with alike; what is between isn't shown. `None` where that is next to
/// nothing, or there are no others.
fn common(
    text: &str,
    others: &[Diagnostic],
    text_of: impl Fn(&Diagnostic) -> String,
) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    let others: Vec<_> = others.iter().map(text_of).collect();
    if others.iter().all(|other| other == text) {
        return Some(text.to_owned());
    }
    let length = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
        let same = pairs.take_while(|(a, b)| a == b);
        same.map(|(a, _)| a.len_utf8()).sum()
    };
    let before = others
        .iter()
        .map(|other| length(&mut text.chars().zip(other.chars())))
        .fold(text.len(), usize::min);
    // What is alike from both ends, such as a letter that stands twice, is shown once.
    let behind = others
        .iter()
        .map(|other| {
            let alike = length(&mut text.chars().rev().zip(other.chars().rev()));
            alike.min(other.len() - before)
        })
        .fold(text.len() - before, usize::min);
    let mut from = text.len() - behind;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let (start, end) = (&text[..before], &text[from..]);
    (start.len() + end.len() >= LEAST).then(|| format!("{start}{HIDDEN}{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::SourceId;

    fn at(place: usize, summary: &str, hint: &str) -> Diagnostic {
        Diagnostic::error(summary)
            .at(Span::new(SourceId(0), place, place + 1), "not there")
            .hint(hint)
    }

    fn conceal_one(finding: Diagnostic, others: Vec<Diagnostic>) -> Diagnostic {
        let others: Vec<_> = others.into_iter().map(Diagnostics::from).collect();
        let mut left = conceal(finding.into(), &others).into_iter();
        left.next().unwrap()
    }

    #[test]
    fn texts_keep_what_they_have_in_common() {
        for (text, others, expected) in [
            (
                "pool `p-4711` is odd",
                &["pool `p-5822` is odd"][..],
                Some("pool `p-(sensitive value)` is odd"),
            ),
            (
                "there is no `aab`",
                &["there is no `ab`"],
                Some("there is no `a(sensitive value)b`"),
            ),
            (
                "there is no `é`",
                &["there is no `è`"],
                Some("there is no `(sensitive value)`"),
            ),
            (
                "there is no `ab`",
                &["there is no `cd`", "there is no ``"],
                Some("there is no `(sensitive value)`"),
            ),
            ("undefined function `a`", &["expected a value"], None),
            ("same", &["same"], Some("same")),
            ("a text of some length", &[], None),
        ] {
            let others: Vec<_> = others.iter().map(|text| Diagnostic::error(*text)).collect();
            let left = common(text, &others, |other| other.summary.clone());
            assert_eq!(left.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn findings_say_what_they_say_with_other_secrets() {
        let finding = at(3, "there is no `secret`", "there is a `secrets`");
        let kept = conceal_one(finding.clone(), vec![finding.clone(), finding.clone()]);
        assert_eq!(kept, finding);
        let kept = conceal_one(finding.clone(), vec![at(3, "there is no `xxxxxx`", "no")]);
        assert_eq!(kept.summary, "there is no `(sensitive value)`");
        assert_eq!(kept.hints, Vec::<String>::new());
        let label = kept.label.unwrap();
        assert_eq!((label.span.start, &*label.text), (3, "not there"));
        // With another one nothing is wrong there, or something else.
        for other in [at(9, "there is no `x`", "no"), at(3, "x", "no")] {
            let kept = conceal_one(finding.clone(), vec![other]);
            let label = kept.label.unwrap();
            assert_eq!((label.span.start, &*label.text), (3, CONCEALED));
            assert!(!kept.summary.contains("secret"), "{}", kept.summary);
            assert!(kept.hints.is_empty());
        }
    }

    #[test]
    fn without_secrets_nothing_is_left_out() {
        let findings = Diagnostics::from(at(1, "a", "b"));
        assert_eq!(conceal(findings.clone(), &[]), findings);
    }
}

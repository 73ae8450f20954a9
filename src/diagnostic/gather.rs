//! Joins equal findings of several groups into one.
//!
//! In: findings with addresses. Out: the first of each set of equal findings, which names the other
//! groups. Must not: join findings of different places.

use std::collections::HashMap;

use super::{Diagnostic, Diagnostics, Label};

/// The text and place of a finding, which must be equal to join. The severity may differ: userdata
/// that is broken in one group may be replaced in another.
#[derive(PartialEq, Eq, Hash)]
struct Said {
    summary: String,
    label: Label,
    related: Vec<Label>,
    hints: Vec<String>,
}

/// Joins equal findings of several groups.
pub fn gather(findings: impl IntoIterator<Item = Diagnostic>) -> Diagnostics {
    let mut told: Vec<Diagnostic> = Vec::new();
    let mut others: HashMap<usize, Vec<String>> = HashMap::new();
    let mut places: HashMap<Said, usize> = HashMap::new();
    for finding in findings {
        let (Some(address), Some(label)) = (&finding.address, &finding.label) else {
            told.push(finding);
            continue;
        };
        let said = Said {
            summary: finding.summary.clone(),
            label: label.clone(),
            related: finding.related.clone(),
            hints: finding.hints.clone(),
        };
        let first = *places.entry(said).or_insert(told.len());
        if first == told.len() {
            told.push(finding);
            continue;
        }
        // The joined finding has the highest severity.
        told[first].severity = told[first].severity.min(finding.severity);
        let group = group_of(address).to_owned();
        let own = told[first].address.as_deref().map(group_of);
        let others = others.entry(first).or_default();
        if own != Some(&group) && others.last() != Some(&group) {
            others.push(group);
        }
    }
    for (index, groups) in others {
        let more = match &groups[..] {
            [] => continue,
            [only] => format!("The same goes for {only}"),
            [one, other] => format!("The same goes for {one} and {other}"),
            [first, rest @ ..] => format!("The same goes for {first} and {} more", rest.len()),
        };
        let detail = &mut told[index].detail;
        *detail = Some(match detail.take() {
            Some(detail) => format!("{detail}\n{more}"),
            None => more,
        });
    }
    let mut gathered = Diagnostics::default();
    gathered.extend(told);
    gathered
}

/// The group in an address.
fn group_of(address: &str) -> &str {
    match address.rsplit_once('/') {
        Some((group, slot)) if group.contains('/') && slot.parse::<u32>().is_ok() => group,
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::{SourceId, Span};

    #[test]
    fn the_first_group_speaks_for_all() {
        let at = |place: usize, address: &str, detail: Option<&str>| {
            let finding = Diagnostic::error("wrong").at(Span::new(SourceId(0), place, 9), "here");
            Diagnostic {
                detail: detail.map(str::to_owned),
                ..finding.about(address)
            }
        };
        let told = |found: &[Diagnostic]| -> Vec<_> {
            let gathered = gather(found.iter().cloned()).into_iter();
            gathered
                .map(|one| (one.address.unwrap(), one.detail.unwrap_or_default()))
                .collect()
        };
        let owned = |told: &[(&str, &str)]| -> Vec<(String, String)> {
            let told = told.iter();
            told.map(|(address, detail)| (String::from(*address), String::from(*detail)))
                .collect()
        };
        let (a, b) = (at(1, "t/a/0", Some("For t/a/0")), at(1, "t/b/3", None));
        assert_eq!(
            told(&[a.clone(), a.clone()]),
            owned(&[("t/a/0", "For t/a/0")])
        );
        assert_eq!(
            told(&[
                a.clone(),
                at(1, "t/a/1", None),
                b.clone(),
                at(2, "t/b", None)
            ]),
            owned(&[("t/a/0", "For t/a/0\nThe same goes for t/b"), ("t/b", "")])
        );
        assert_eq!(
            told(&[b.clone(), a.clone(), at(1, "t/c", None)]),
            owned(&[("t/b/3", "The same goes for t/a and t/c")])
        );
        assert_eq!(
            told(&[b, a, at(1, "t/c", None), at(1, "t/1", None)]),
            owned(&[("t/b/3", "The same goes for t/a and 2 more")])
        );
    }
}

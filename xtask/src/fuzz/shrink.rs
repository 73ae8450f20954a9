//! The smallest case that still differs.
//!
//! In: a case, and a judge that says whether a smaller one still differs. Out: a case from which
//! nothing can be taken away. May not: know what differs means.

use super::case::{Case, Data};
use super::tokens::{segments, tokens};

/// Makes a case as small as it gets: the template by actions, tokens and characters, then the
/// definitions, the options and the data, and again until nothing changes.
pub(crate) fn shrink(case: &Case, still: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    loop {
        let before = best.clone();
        shrink_template(&mut best, still);
        shrink_definitions(&mut best, still);
        shrink_options(&mut best, still);
        shrink_data(&mut best, still);
        if best == before {
            return best;
        }
    }
}

/// Takes the candidate in place of the best if it still differs.
fn keep(best: &mut Case, candidate: Case, still: &mut dyn FnMut(&Case) -> bool) -> bool {
    let better = candidate != *best && still(&candidate);
    if better {
        *best = candidate;
    }
    better
}

fn shrink_template(best: &mut Case, still: &mut dyn FnMut(&Case) -> bool) {
    let cuts: [fn(&str) -> Vec<&str>; 3] = [segments, tokens, characters];
    for cut in cuts {
        let text = best.template.clone();
        let pieces = cut(&text);
        let kept = without_chunks(&pieces, &mut |pieces| {
            still(&Case {
                template: pieces.concat(),
                ..best.clone()
            })
        });
        best.template = kept.concat();
    }
}

fn characters(text: &str) -> Vec<&str> {
    let ends = text
        .char_indices()
        .map(|(at, character)| (at, at + character.len_utf8()));
    ends.map(|(from, to)| &text[from..to]).collect()
}

/// Delta debugging: leaves out ever smaller chunks while the rest still differs.
fn without_chunks<T: Clone>(all: &[T], still: &mut dyn FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = all.to_vec();
    let mut size = kept.len();
    while size > 0 {
        let mut at = 0;
        while at < kept.len() {
            let end = (at + size).min(kept.len());
            let rest = [&kept[..at], &kept[end..]].concat();
            if still(&rest) {
                kept = rest;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
    kept
}

fn shrink_definitions(best: &mut Case, still: &mut dyn FnMut(&Case) -> bool) {
    for name in best.defines.clone().into_keys() {
        let mut candidate = best.clone();
        candidate.defines.remove(&name);
        keep(best, candidate, still);
    }
}

fn shrink_options(best: &mut Case, still: &mut dyn FnMut(&Case) -> bool) {
    let options = best.options.clone();
    let options: Vec<&str> = options
        .split(';')
        .filter(|option| !option.is_empty())
        .collect();
    let kept = without_chunks(&options, &mut |options| {
        still(&Case {
            options: options.join(";"),
            ..best.clone()
        })
    });
    best.options = kept.join(";");
}

fn shrink_data(best: &mut Case, still: &mut dyn FnMut(&Case) -> bool) {
    let mut number = 0;
    while let Some(part) = best.data.clone().part_mut(number) {
        let shrunk = smaller(part).into_iter().any(|smaller| {
            let mut candidate = best.clone();
            if let Some(part) = candidate.data.part_mut(number) {
                *part = smaller;
            }
            keep(best, candidate, still)
        });
        // What was made smaller may get smaller yet.
        number += usize::from(!shrunk);
    }
}

/// Smaller values in place of one, the smallest first.
fn smaller(data: &Data) -> Vec<Data> {
    let mut smaller = Vec::new();
    match data {
        Data::Null => return smaller,
        Data::Object(entries) => {
            for key in entries.keys() {
                let mut fewer = entries.clone();
                fewer.remove(key);
                smaller.push(Data::Object(fewer));
            }
        }
        Data::List(items) => {
            for index in 0..items.len() {
                let mut fewer = items.clone();
                fewer.remove(index);
                smaller.push(Data::List(fewer));
            }
        }
        Data::Text(text) => {
            let characters = characters(text);
            for index in 0..characters.len().min(64) {
                let mut fewer = characters.clone();
                fewer.remove(index);
                smaller.push(Data::Text(fewer.concat()));
            }
        }
        Data::Number(text) if text.len() > 1 => {
            smaller.push(Data::Number("0".to_owned()));
            smaller.push(Data::Number("1".to_owned()));
        }
        Data::Number(_) | Data::Bool(_) => {}
    }
    smaller.insert(0, Data::Null);
    smaller
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(line: &str) -> Case {
        Case::parse(line).unwrap()
    }

    #[test]
    fn what_the_judge_needs_is_what_stays() {
        let long = case(
            r#"{"template": "long text {{.A}}{{if printf \"%d\" .B.C}}x{{end}} tail", "data": {"A": 12, "B": {"C": ["abc", 5]}, "D": null}, "options": "missingkey=zero;numbers=int", "defines": {"a": "x", "b": "y"}}"#,
        );
        let mut asked = 0;
        let small = shrink(&long, &mut |case| {
            asked += 1;
            case.template.contains("%d")
                && case.options.contains("int")
                && case.defines.contains_key("b")
                && case.data.to_string().contains('b')
        });
        let expected = case(
            r#"{"template": "%d", "data": {"B": {"C": ["b"]}}, "options": "numbers=int", "defines": {"b": "y"}}"#,
        );
        assert_eq!(small, expected);
        assert!(asked < 300, "{asked}");
    }

    #[test]
    fn what_cannot_shrink_stays() {
        let case = case(r#"{"template": "{{.}}", "data": 1, "options": ""}"#);
        assert_eq!(shrink(&case, &mut |_| false), case);
        assert_eq!(shrink(&case, &mut |_| true), Case::default());
    }

    #[test]
    fn chunks_are_left_out_however_they_lie() {
        let all: Vec<u32> = (0..100).collect();
        let kept = without_chunks(&all, &mut |some| {
            [3, 50, 99].iter().all(|n| some.contains(n))
        });
        assert_eq!(kept, [3, 50, 99]);
    }
}

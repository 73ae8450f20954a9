//! Placeholder texts: the second kind of text beside Go templates.
//!
//! In: a text and an ordered list of tables. Out: the text with `{KEY}` replaced. Must not: know
//! where the tables come from.
//!
//! The rule is Yandex Instance Groups': system variables first, then the user's, one pass each.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::{memchr, memchr2};

/// The system names: Yandex's name, and the path of the same value in template data.
pub const SYSTEM: [(&str, &str); 6] = [
    ("instance_group.id", ".Group.ID"),
    ("instance.index", ".Instance.Number"),
    ("instance.index_in_zone", ".Instance.NumberInZone"),
    ("instance.short_id", ".Instance.ShortID"),
    ("instance.tag", ".Instance.Tag"),
    ("instance.zone_id", ".Instance.Zone"),
];

/// The prefix of names that read a label of the group.
pub const GROUP_LABEL: &str = "instance_group.labels.";

/// The prefix of names that read a label of the instance.
pub const INSTANCE_LABEL: &str = "instance.labels.";

/// Looks up the value of a name; `None` for names that it doesn't have.
pub type Table<'t> = &'t dyn Fn(&str) -> Option<String>;

/// Replaces placeholders stage by stage; each stage scans the text once.
///
/// A stage replaces `{KEY}` by its value and `{{KEY}}` by `{KEY}`, for keys without braces that its
/// table has. It copies everything else, and doesn't scan the values that it inserts.
pub fn substitute(text: &str, stages: &[Table<'_>]) -> String {
    let mut text = Cow::Borrowed(text);
    for table in stages {
        text = Cow::Owned(stage(&text, table));
    }
    text.into_owned()
}

fn stage(text: &str, table: Table<'_>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = memchr(b'{', rest.as_bytes()) {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        if let Some(key) = key(rest, "{{", "}}")
            && table(key).is_some()
        {
            out.extend(["{", key, "}"]);
            rest = &rest[key.len() + 4..];
        } else if let Some(key) = key(rest, "{", "}")
            && let Some(value) = table(key)
        {
            out.push_str(&value);
            rest = &rest[key.len() + 2..];
        } else {
            out.push('{');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

/// The non-empty key without braces between an opening and a closing at the start of a text.
fn key<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let text = text.strip_prefix(open)?;
    let end = memchr2(b'{', b'}', text.as_bytes())?;
    (end > 0 && text[end..].starts_with(close)).then(|| &text[..end])
}

/// Every `{KEY}` of a text without braces inside: the offset of its opening brace, and the key.
pub fn find(text: &str) -> impl Iterator<Item = (usize, &str)> {
    memchr::memchr_iter(b'{', text.as_bytes())
        .filter_map(move |open| Some((open, key(&text[open..], "{", "}")?)))
}

/// The keys in braces of a text: in order, without duplicates.
pub fn names(text: &str) -> Vec<&str> {
    let mut known = HashSet::new();
    find(text)
        .map(|(_, key)| key)
        .filter(|key| known.insert(*key))
        .collect()
}

/// A text that [`substitute`] turns back into `text`: the braces around each known name doubled.
///
/// `is_known` must be true for exactly the names that one of the tables has. No two tables may
/// have the same name.
pub fn escape(text: &str, is_known: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (open, key) in find(text).filter(|(_, key)| is_known(key)) {
        let end = open + key.len() + 2;
        out.extend([&text[copied..open], "{", &text[open..end], "}"]);
        copied = end;
    }
    out.push_str(&text[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    type Pairs = BTreeMap<String, String>;

    fn two_stages(text: &str, system: &Pairs, variables: &Pairs) -> String {
        substitute(
            text,
            &[&|key| system.get(key).cloned(), &|key| {
                variables.get(key).cloned()
            }],
        )
    }

    fn table(pairs: &[(&str, &str)]) -> Pairs {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn corpus_substitutions_hold() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let corpus = std::fs::read_to_string(folder.join("../shared/corpora/yandex.jsonl"))
            .or_else(|_| std::fs::read_to_string(folder.join("tests/corpora/yandex.jsonl")))
            .unwrap();
        let mut count = 0;
        for line in corpus.lines() {
            let case: serde_json::Value = serde_json::from_str(line).unwrap();
            if case["kind"] != "subst" {
                continue;
            }
            count += 1;
            let table = |key: &str| serde_json::from_value::<Pairs>(case[key].clone()).unwrap();
            let template = case["template"].as_str().unwrap();
            let found = two_stages(template, &table("system"), &table("variables"));
            assert_eq!(found, case["expect"].as_str().unwrap(), "{}", case["id"]);
        }
        assert!(count > 50, "{count} cases");
    }

    #[test]
    fn stages_scan_once() {
        let system = table(&[
            ("instance.index", "5"),
            ("instance.tag", "kaf-2"),
            ("instance.zone_id", "ru-central1-b"),
        ]);
        let variables = table(&[
            ("img_ru-central1-b", "fd8b"),
            ("ip_kaf-2", "10.4.0.12"),
            ("z_ru-central1-b", "{img_ru-central1-b}"),
            ("late", "{instance.index}"),
            ("k", "v"),
        ]);
        for (text, expected) in [
            ("k{instance.index}-{instance.tag}", "k5-kaf-2"),
            ("{img_{instance.zone_id}}", "fd8b"),
            (
                r#"{"ip":"{ip_{instance.tag}}","n":{instance.index}}"#,
                r#"{"ip":"10.4.0.12","n":5}"#,
            ),
            (
                "{{instance.tag}} {{ jinja }} {{ip_kaf-2}}",
                "{instance.tag} {{ jinja }} {ip_kaf-2}",
            ),
            ("${instance.index}", "$5"),
            ("{{{k}}}", "{{k}}"),
            ("{{k}", "{v"),
            ("{{instance.tag}_ip}", "{kaf-2_ip}"),
            ("{{z_{instance.zone_id}}}", "{z_ru-central1-b}"),
            ("{z_{instance.zone_id}}", "{img_ru-central1-b}"),
            ("{late}", "{instance.index}"),
            ("{}{{}}{{{}}}", "{}{{}}{{{}}}"),
        ] {
            assert_eq!(two_stages(text, &system, &variables), expected, "{text}");
        }
    }

    #[test]
    fn names_are_the_innermost() {
        let text = r#"{a}{{b}}{c_{d}} {"e":{a}} { f } {} {g"#;
        assert_eq!(names(text), ["a", "b", "d", " f "]);
    }

    proptest! {
        #[test]
        fn escaped_texts_come_back(pieces in prop::collection::vec(
            prop::sample::select(vec!["{", "{", "}", "}", "s", "u", "x", "é"]), 0..24,
        )) {
            let text = pieces.concat();
            let system = table(&[("s", "u"), ("ss", "{u}")]);
            let variables = table(&[("u", "s"), ("us", "{s}"), ("é", "")]);
            let is_known = |key: &str| system.contains_key(key) || variables.contains_key(key);
            let escaped = escape(&text, is_known);
            prop_assert_eq!(two_stages(&escaped, &system, &variables), text);
        }
    }
}

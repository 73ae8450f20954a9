//! The last net: texts of secrets that are about to be shown or stored all the same.
//!
//! In: the secrets of this process's configurations, and whatever is to be printed. Out: the same
//! without them. May not: be relied on. What is sensitive is covered where it is known to be, by its
//! place; here only texts are known, as they are and in the usual encodings.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{LazyLock, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use crate::digest::hex;
use crate::sensitivity::HIDDEN;

/// Shorter secrets are covered by their place only: they are in words and numbers everywhere.
const SHORTEST: usize = 6;

/// Numbers are in more texts than words are.
const SHORTEST_NUMBER: usize = 8;

/// Shorter pieces of a secret, such as lines, are no secrets.
const SHORTEST_PART: usize = 8;

/// Keys of documents are kept, since programs read them, unless what they hold is surely a secret.
const SHORTEST_IN_KEY: usize = 12;

/// Texts that mustn't be shown.
#[derive(Debug, Clone, Default)]
pub struct Net {
    secrets: BTreeSet<String>,
    all: Option<AhoCorasick>,
    in_keys: Option<AhoCorasick>,
}

impl Net {
    /// Adds secrets.
    pub fn know(&mut self, secrets: impl IntoIterator<Item = impl AsRef<str>>) {
        let before = self.secrets.len();
        for secret in secrets {
            let secret = secret.as_ref();
            let parts = secret.lines().map(str::trim);
            let several = secret.trim().contains('\n');
            self.secrets
                .extend(is_telling(secret.trim()).then(|| secret.trim().to_owned()));
            if several {
                let parts = parts.filter(|part| part.chars().count() >= SHORTEST_PART);
                self.secrets.extend(parts.map(str::to_owned));
            }
        }
        if self.secrets.len() == before {
            return;
        }
        let forms = |least: usize| -> Option<AhoCorasick> {
            let secrets = self.secrets.iter();
            let forms: BTreeSet<String> = secrets
                .filter(|secret| secret.chars().count() >= least)
                .flat_map(|secret| forms(secret))
                .collect();
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostLongest)
                .build(&forms)
                .ok()
                .filter(|_| !forms.is_empty())
        };
        (self.all, self.in_keys) = (forms(0), forms(SHORTEST_IN_KEY));
    }

    /// Whether a text holds a secret.
    pub fn catches(&self, text: &str) -> bool {
        self.all.as_ref().is_some_and(|all| all.is_match(text))
    }

    /// A text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        covered(self.all.as_ref(), text)
    }

    /// A document without secrets in its texts and numbers; its keys are kept where they may be a
    /// coincidence.
    pub fn json(&self, value: &mut Value) {
        if self.all.is_none() {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if self.catches(&number.to_string()) {
                    *value = HIDDEN.into();
                }
            }
            Value::String(text) => {
                if let Cow::Owned(covered) = self.text(text) {
                    *text = covered;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(entries) => {
                let catches =
                    |key: &str| self.in_keys.as_ref().is_some_and(|net| net.is_match(key));
                if entries.keys().any(|key| catches(key)) {
                    let old = std::mem::take(entries).into_iter();
                    *entries = old
                        .map(|(key, value)| {
                            (covered(self.in_keys.as_ref(), &key).into_owned(), value)
                        })
                        .collect::<Map<_, _>>();
                }
                entries.values_mut().for_each(|value| self.json(value));
            }
        }
    }
}

fn covered<'t>(net: Option<&AhoCorasick>, text: &'t str) -> Cow<'t, str> {
    let Some(net) = net.filter(|net| net.is_match(text)) else {
        return Cow::Borrowed(text);
    };
    let mut covered = String::with_capacity(text.len());
    net.replace_all_with(text, &mut covered, |_, _, covered| {
        covered.push_str(HIDDEN);
        true
    });
    Cow::Owned(covered)
}

fn is_telling(secret: &str) -> bool {
    let length = secret.chars().count();
    let number = secret.chars().all(|c| c.is_ascii_digit() || c == '.');
    length >= if number { SHORTEST_NUMBER } else { SHORTEST }
}

/// A secret as it may stand in a text.
fn forms(secret: &str) -> Vec<String> {
    let json = Value::from(secret).to_string();
    let mut forms = vec![
        secret.to_owned(),
        json[1..json.len() - 1].to_owned(),
        secret.escape_default().to_string(),
        secret.escape_debug().to_string(),
        percent_encoded(secret),
    ];
    if secret.len() >= SHORTEST_PART {
        forms.push(hex(secret.as_bytes()));
        forms.extend(base64_within(secret.as_bytes()));
    }
    forms
}

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// What of base64 is the same whatever stands around the bytes, for each of the three ways that
/// they may lie in it.
fn base64_within(bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for before in 0..3 {
        let whole: Vec<u8> = std::iter::repeat_n(0, before)
            .chain(bytes.iter().copied())
            .collect();
        let start = (before * 8).div_ceil(6);
        let end = whole.len() * 8 / 6;
        for encoded in [
            STANDARD_NO_PAD.encode(&whole),
            URL_SAFE_NO_PAD.encode(&whole),
        ] {
            found.push(encoded[start..end].to_owned());
        }
    }
    found
}

static NET: RwLock<Option<Net>> = RwLock::new(None);

/// Adds secrets for the rest of this process.
pub fn know(secrets: impl IntoIterator<Item = impl AsRef<str>>) {
    let mut net = NET.write().unwrap_or_else(PoisonError::into_inner);
    let mut known = net.take().unwrap_or_default();
    known.know(secrets);
    if known.all.is_some() {
        *net = Some(known);
    }
}

/// Tests of what is hidden by its place take the net away. Only debug builds know the variable.
fn is_taken_away() -> bool {
    static TAKEN: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("NSTANCE_TEST_WITHOUT_NET").is_some());
    cfg!(debug_assertions) && *TAKEN
}

fn with<T>(work: impl FnOnce(&Net) -> T) -> Option<T> {
    if is_taken_away() {
        return None;
    }
    let net = NET.read().unwrap_or_else(PoisonError::into_inner);
    net.as_ref().map(work)
}

/// A text without secrets.
pub fn text(text: &str) -> Cow<'_, str> {
    with(|net| net.text(text)).unwrap_or(Cow::Borrowed(text))
}

/// A document without secrets. Copied only where there are any.
pub fn json(value: &Value) -> Cow<'_, Value> {
    let covered = with(|net| {
        let mut covered = value.clone();
        net.json(&mut covered);
        covered
    });
    covered.map_or(Cow::Borrowed(value), Cow::Owned)
}

/// Whether a text holds a secret.
pub fn catches(text: &str) -> bool {
    with(|net| net.catches(text)).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    fn net(secrets: &[&str]) -> Net {
        let mut net = Net::default();
        net.know(secrets);
        net
    }

    #[test]
    fn secrets_are_covered_in_the_usual_forms() {
        let secret = "hünter\"2/§ x";
        let net = net(&[secret]);
        let json = json!({ "a": format!("b {secret}") }).to_string();
        for text in [
            format!("pw={secret}!"),
            secret.to_uppercase().replace('Ü', "ü"),
            json,
            format!("{secret:?}"),
            percent_encoded(secret),
            percent_encoded(secret).to_lowercase(),
        ] {
            assert!(net.catches(&text), "{text}");
            assert!(!net.text(&text).contains("nter"), "{}", net.text(&text));
        }
        for before in ["", "a", "ab", "abc"] {
            let encoded = STANDARD.encode(format!("{before}{secret}{before}"));
            assert!(net.catches(&encoded), "{before}");
        }
    }

    #[test]
    fn short_ones_are_left_to_their_place() {
        let net = net(&["prod", "", " ", "1234567", "a\nb"]);
        assert!(!net.catches("prod 1234567 a b"));
        assert!(matches!(net.text("prod"), Cow::Borrowed("prod")));
    }

    #[test]
    fn each_line_of_a_key_is_a_secret() {
        let net = net(&["-----BEGIN-----\n  c2VjcmV0c2VjcmV0\n"]);
        assert_eq!(net.text("x c2VjcmV0c2VjcmV0"), "x (sensitive value)");
    }

    #[test]
    fn documents_keep_their_keys() {
        let net = net(&["address", "a-long-enough-secret", "12345678"]);
        let mut document = json!({
            "address": "the address", "a-long-enough-secret": [12_345_678, true, null],
        });
        net.json(&mut document);
        assert_eq!(
            document,
            json!({"address": "the (sensitive value)", "(sensitive value)": [HIDDEN, true, null]})
        );
    }
}

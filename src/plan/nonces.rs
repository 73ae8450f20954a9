//! Recognizes what was sent in the place of a nonce's placeholder, so that it isn't taken for drift.
//!
//! In: what the cloud reports of an instance, and its spec, which has the placeholder. Out: the
//! report with the placeholder. Must not: let a nonce through to a plan.

use std::borrow::Cow;

use serde_json::Value;

use crate::provider::Attributes;
use crate::render::data::NONCE_PREFIX;
use crate::sensitivity::HIDDEN;
use crate::spec::{Content, SpecBody};

/// The report of an instance as if its placeholder had been sent. Userdata that differs in more than
/// the nonce is hidden, since it may hold one.
pub(super) fn without_nonce<'a>(
    attributes: &'a Attributes,
    like: &SpecBody,
) -> Cow<'a, Attributes> {
    let userdata = match like.userdata.as_ref().map(|userdata| &userdata.content) {
        Some(Content::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let in_args = like.args.values().find_map(placeholder_in);
    let Some(placeholder) = userdata.and_then(placeholder).or(in_args) else {
        return Cow::Borrowed(attributes);
    };
    let mut settled = attributes.clone();
    if let (Some(recorded), Some(observed)) = (userdata, &mut settled.userdata)
        && recorded.contains(placeholder)
    {
        *observed = if fits(recorded, placeholder, observed) {
            recorded.to_owned()
        } else {
            HIDDEN.to_owned()
        };
    }
    for (key, recorded) in &like.args {
        if let Some(observed) = settled.args.get_mut(key) {
            settle(recorded, placeholder, observed);
        }
    }
    Cow::Owned(settled)
}

/// The placeholder in a text.
fn placeholder(text: &str) -> Option<&str> {
    let start = text.find(NONCE_PREFIX)?;
    let rest = &text[start + NONCE_PREFIX.len()..];
    let length = rest
        .bytes()
        .take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let end = start + NONCE_PREFIX.len() + length.count();
    Some(&text[start..end])
}

fn placeholder_in(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => placeholder(text),
        Value::Array(items) => items.iter().find_map(placeholder_in),
        Value::Object(entries) => entries.values().find_map(placeholder_in),
        _ => None,
    }
}

fn settle(recorded: &Value, placeholder: &str, observed: &mut Value) {
    match (recorded, observed) {
        (Value::String(recorded), Value::String(observed))
            if recorded.contains(placeholder) && fits(recorded, placeholder, observed) =>
        {
            observed.clone_from(recorded);
        }
        (Value::Array(recorded), Value::Array(observed)) => {
            for (recorded, observed) in recorded.iter().zip(observed) {
                settle(recorded, placeholder, observed);
            }
        }
        (Value::Object(recorded), Value::Object(observed)) => {
            for (key, recorded) in recorded {
                if let Some(observed) = observed.get_mut(key) {
                    settle(recorded, placeholder, observed);
                }
            }
        }
        _ => {}
    }
}

/// Whether a text is the recorded one with one other text in every place of the placeholder.
fn fits(recorded: &str, placeholder: &str, observed: &str) -> bool {
    let count = recorded.matches(placeholder).count();
    let rest = recorded.len() - count * placeholder.len();
    let Some(length) = observed.len().checked_sub(rest).map(|all| all / count) else {
        return false;
    };
    let start = recorded.find(placeholder).unwrap_or_default();
    let nonce = observed.get(start..start + length);
    nonce.is_some_and(|nonce| recorded.replace(placeholder, nonce) == observed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_recognized_by_what_is_around_it() {
        let placeholder = "nonce-of-web1";
        for (recorded, observed, wanted) in [
            ("a nonce-of-web1 b", "a eyJ.x_y b", true),
            ("nonce-of-web1", "eyJ", true),
            ("nonce-of-web1 nonce-of-web1", "x x", true),
            ("nonce-of-web1 nonce-of-web1", "x y", false),
            ("a nonce-of-web1 b", "a nonce-of-web1 b", true),
            ("a nonce-of-web1 b", "c eyJ b", false),
            ("a nonce-of-web1 b", "a", false),
            ("é nonce-of-web1", "é ü", true),
        ] {
            assert_eq!(
                fits(recorded, placeholder, observed),
                wanted,
                "{recorded} {observed}"
            );
        }
    }
}

//! Few lines that stand for very much, and what is nested without end.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write as _;

use nstance_cloudinit::merge::{Documented, Mergers};
use nstance_cloudinit::userdata::{Machine, process};
use nstance_cloudinit::yaml::{TooLarge, emit, load};

/// Thirty levels, each of which has the one before it twice.
fn laughs(of: impl Fn(usize) -> String) -> String {
    let mut text = String::from("a0: &a0 {x: 1}\n");
    for level in 1..=30 {
        let below = level - 1;
        writeln!(text, "a{level}: &a{level} {}", of(below)).unwrap();
    }
    text
}

#[test]
fn aliases_take_no_memory_until_they_are_written_out() {
    for text in [
        laughs(|below| format!("[*a{below}, *a{below}]")),
        laughs(|below| format!("{{l: *a{below}, r: *a{below}}}")),
    ] {
        let value = load(&text, 0).unwrap();
        assert_eq!(emit(&value, 1 << 20), Err(TooLarge));
        assert_eq!(value, value.clone());
    }
}

#[test]
fn merge_keys_are_followed_once() {
    let text = laughs(|below| format!("{{<<: [*a{below}, *a{below}]}}"));
    let error = load(&text, 0).unwrap_err();
    assert!(error.to_string().contains("more than 1000000"), "{error}");
    let few = text.lines().take(15).collect::<Vec<_>>().join("\n");
    let value = load(&few, 0).unwrap();
    assert!(value.as_map().unwrap().named("a14").is_some());
}

#[test]
fn merging_what_aliases_stand_for_has_an_end() {
    let text = laughs(|below| format!("{{l: *a{below}, r: *a{below}}}"));
    let value = load(&text, 0).unwrap();
    let other = load(&text, 0).unwrap();
    let merged = Mergers::parse("dict()")
        .unwrap()
        .merge(&value, &other, Documented::default());
    assert!(
        merged
            .unwrap_err()
            .message
            .contains("values would be merged")
    );
}

#[test]
fn deep_nesting_is_refused_and_a_circle_is_not_followed() {
    for text in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        "? ".repeat(100_000),
        "!!seq ".repeat(100_000),
    ] {
        load(&text, 0).unwrap_err();
    }
    let circle = load("&a [*a, {b: *a}]", 0).unwrap();
    assert_eq!(emit(&circle, 1 << 20), Err(TooLarge));
    load("&a {<<: *a}", 0).unwrap_err();
}

#[test]
fn containers_in_containers_have_an_end() {
    let mut message = String::from("MIME-Version: 1.0\n");
    for level in 0..2_000 {
        writeln!(
            message,
            "Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}"
        )
        .unwrap();
    }
    message.push_str("Content-Type: text/cloud-config\n\na: 1\n");
    let outcome = process(message.as_bytes(), &Machine::default());
    assert!(outcome.is_err() || outcome.unwrap().parts.len() <= 1);
}

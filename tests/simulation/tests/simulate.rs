//! The program itself: its disk, and that a seed repeats.
#![allow(clippy::unwrap_used, reason = "a test may panic: that is how it fails")]

use std::process::Command;

fn simulate(words: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(words.split(' '))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{words}: {text}");
    text
}

/// A new state once got its name without its content, where the disk failed at the end.
#[test]
fn the_store_keeps_what_it_answered_for_whatever_its_disk_does() {
    let said = simulate("--disk");
    assert!(said.contains("nothing lost, nothing by half"), "{said}");
}

#[test]
fn a_seed_gives_the_same_lifetime_each_time() {
    let words = "--tell --from 100 --seeds 40";
    let told = simulate(words);
    assert!(told.matches("== ").count() == 40 && told.len() > 20_000);
    assert_eq!(told, simulate(words));
}

#[test]
fn what_is_no_option_is_said() {
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["--seeds", "many"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "`--seeds` takes a number from 1\n");
}

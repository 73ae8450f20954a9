//! Faults put into nstance itself, each of which the harness must find: a proof that can't fail
//! proves nothing.

use crate::lifetimes::live;
use crate::run::Mutation;

/// How many lifetimes it may take at most.
const LIFETIMES: u64 = 150;

fn is_caught(mutation: Mutation) {
    let caught = (0..LIFETIMES).find_map(|seed| {
        let error = live(seed, Some(mutation)).err()?;
        Some((seed, error))
    });
    let Some((seed, error)) = caught else {
        panic!("{mutation:?} goes unseen through {LIFETIMES} lifetimes");
    };
    println!("{mutation:?} is caught by seed {seed}: {error:.120}");
}

#[test]
fn a_call_without_an_intent_is_caught() {
    is_caught(Mutation::NoIntent);
}

#[test]
fn a_fresh_token_for_another_try_is_caught() {
    is_caught(Mutation::FreshToken);
}

#[test]
fn an_absence_believed_too_early_is_caught() {
    is_caught(Mutation::NoWindow);
}

#[test]
fn a_run_without_recovery_is_caught() {
    is_caught(Mutation::NoRecovery);
}

#[test]
fn a_result_that_is_not_recorded_is_caught() {
    is_caught(Mutation::NoSettlement);
}

//! What goes wrong by chance.
//!
//! In: a seed, a call, and how often it was made before. Out: what is to become of it: always the
//! same, in whatever order calls come. May not: carry it out.

use std::time::Duration;

use crate::error::Refusal;
use crate::fault::Fault;
use crate::query::Query;

/// How much goes wrong, of a thousand calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chance {
    pub seed: u64,
    /// Answered with `RequestLimitExceeded`.
    pub throttled: u64,
    /// Answered with `InternalError`, without an effect.
    pub failed: u64,
    /// Answered with `InternalError`, after the effect.
    pub failed_after: u64,
    /// Lost on the way there.
    pub lost_requests: u64,
    /// Lost on the way back.
    pub lost_answers: u64,
    /// The longest delay of a call that goes well.
    pub longest_delay: Duration,
}

impl Chance {
    pub(crate) fn fault(&self, query: &Query, key: u64, before: u64) -> Option<Fault> {
        let mut random = mix(self.seed ^ mix(key ^ mix(before)));
        let drawn = random % 1_000;
        random = mix(random);
        let mut edge = 0;
        let mut within = |share: u64| {
            edge += share;
            drawn < edge
        };
        // What changes nothing has no effect to be lost.
        let reads = query.action.starts_with("Describe") || query.action.starts_with("Get");
        let internal = || Refusal::named("InternalError");
        if within(self.throttled) {
            Some(Fault::Refuse(Refusal::named("RequestLimitExceeded")))
        } else if within(self.failed) {
            Some(Fault::Refuse(internal()))
        } else if within(self.lost_requests) {
            Some(Fault::LoseRequest)
        } else if within(self.lost_answers) {
            Some(Fault::LoseAnswer)
        } else if !reads && within(self.failed_after) {
            Some(Fault::RefuseAfter(internal()))
        } else if self.longest_delay.is_zero() {
            None
        } else {
            let delay = self
                .longest_delay
                .mul_f64((random % 1_000) as f64 / 1_000.0);
            Some(if random & 1 << 20 == 0 {
                Fault::Delay(delay)
            } else {
                Fault::DelayAnswer(delay)
            })
        }
    }
}

/// What a call is, as a number that doesn't change from one build to the next.
pub(crate) fn key(query: &Query) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(&query.region);
    add(&query.action);
    for (name, value) in query.sorted_without(&[]) {
        add(&name);
        add(&value);
    }
    mix(hash)
}

/// `SplitMix64`'s last step.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::{Chance, key};
    use crate::fault::Fault;
    use crate::query::Query;

    fn query(action: &str, token: usize) -> Query {
        Query {
            service: "ec2".to_owned(),
            region: "r".to_owned(),
            action: action.to_owned(),
            parameters: vec![("ClientToken".to_owned(), token.to_string())],
        }
    }

    #[test]
    fn a_call_meets_its_fate_by_seed_and_number() {
        let chance = Chance {
            seed: 7,
            throttled: 100,
            failed_after: 100,
            lost_answers: 100,
            ..Chance::default()
        };
        let fates = |action: &str| -> Vec<Option<Fault>> {
            let fate = |token| {
                let query = query(action, token);
                chance.fault(&query, key(&query), 0)
            };
            (0..1_000).map(fate).collect()
        };
        let of_writes = fates("RunInstances");
        assert_eq!(of_writes, fates("RunInstances"));
        let struck = of_writes.iter().flatten().count();
        assert!((230..370).contains(&struck), "{struck}");
        let after = |fate: &&Fault| matches!(fate, Fault::RefuseAfter(_));
        assert!(of_writes.iter().flatten().any(|fate| after(&fate)));
        assert!(
            !fates("DescribeInstances")
                .iter()
                .flatten()
                .any(|fate| after(&fate))
        );
        let one = query("RunInstances", 0);
        let again = (0..100).map(|before| chance.fault(&one, key(&one), before));
        assert!(
            again.flatten().count() > 10,
            "the next try has a fate of its own"
        );
    }
}

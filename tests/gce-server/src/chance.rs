//! Faults by chance.
//!
//! In: a seed, a call, and how often it was made before. Out: its fault: always the same, in whatever
//! order calls come. Must not: carry it out.

use crate::calls::Call;
use crate::error::{OperationError, Refusal};
use crate::fault::Fault;

/// How many of a thousand calls go wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chance {
    pub seed: u64,
    /// Answered with `rateLimitExceeded`.
    pub throttled: u64,
    /// Answered with `backendError`, without an effect.
    pub failed: u64,
    /// Answered with `backendError`, after the effect.
    pub failed_after: u64,
    /// Lost on the way there.
    pub lost_requests: u64,
    /// Lost on the way back.
    pub lost_answers: u64,
    /// Their operations end with `INTERNAL_ERROR`.
    pub ended: u64,
}

impl Chance {
    pub(crate) fn fault(&self, call: &Call, before: u64) -> Option<Fault> {
        let drawn = mix(self.seed ^ mix(key(call) ^ mix(before))) % 1_000;
        let mut edge = 0;
        let mut within = |share: u64| {
            edge += share;
            drawn < edge
        };
        let unavailable = || Refusal::named("backendError");
        if within(self.throttled) {
            Some(Fault::Refuse(Refusal::named("rateLimitExceeded")))
        } else if within(self.failed) {
            Some(Fault::Refuse(unavailable()))
        } else if within(self.lost_requests) {
            Some(Fault::LoseRequest)
        } else if within(self.lost_answers) {
            Some(Fault::LoseAnswer)
        } else if within(self.failed_after) {
            Some(Fault::RefuseAfter(unavailable()))
        } else if within(self.ended) {
            let error = OperationError::named("INTERNAL_ERROR");
            Some(Fault::EndOperation(error))
        } else {
            None
        }
    }
}

/// A number for a call, the same in each build.
pub(crate) fn key(call: &Call) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(&call.method);
    for (name, value) in &call.parameters {
        add(name);
        add(value);
    }
    add(&call.body.to_string());
    mix(hash)
}

/// The last step of `SplitMix64`.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::Chance;
    use crate::calls::{Call, Outcome};
    use crate::fault::Fault;

    #[test]
    fn a_fault_depends_on_seed_call_and_number() {
        let chance = Chance {
            seed: 7,
            throttled: 100,
            failed_after: 100,
            ended: 100,
            ..Chance::default()
        };
        let call = |id: usize| Call {
            method: "instances.insert".to_owned(),
            parameters: vec![("requestId".to_owned(), id.to_string())],
            body: Value::Null,
            authorized: false,
            outcome: Outcome::Answered,
        };
        let faults =
            || -> Vec<Option<Fault>> { (0..1_000).map(|id| chance.fault(&call(id), 0)).collect() };
        assert_eq!(faults(), faults());
        let count = faults().iter().flatten().count();
        assert!((230..370).contains(&count), "{count}");
        let again = (0..100).filter_map(|before| chance.fault(&call(0), before));
        assert!(
            (10..60).contains(&again.count()),
            "each try is a draw of its own"
        );
    }
}

//! Stores held to each other: random batches, and the same answers from all.

use nstance_state::{
    ApplyStatus, Contents, Intent, IntentId, Key, MemoryDisk, Outcome, Record, RolloutId,
    RolloutRequestId, RolloutStatus, Store, Timestamp, Write, Written,
};

use super::{Memory, Sqlite, Subject, created, item, open, put, rollouts, seen, spec, started};
use crate::common::{creation, digest, record};

/// Random batches, so that stores can be held against each other.
fn batches(seed: u64) -> Vec<Vec<Write>> {
    let mut state = seed;
    // xorshift64*, for the same batches everywhere.
    let mut below = |limit: u64| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    };
    let mut all = Vec::new();
    for round in 0..120 {
        let mut batch = vec![spec(below(4)), spec(below(4))];
        for _ in 0..=below(3) {
            let group = ["default/web", "default/db"][below(2) as usize];
            let other = ["default/web", "default/db"][below(2) as usize];
            let (slot, to) = (below(4) as u32, below(4) as u32);
            let instance_id = format!("knd-{}", below(8));
            let last = match below(12) {
                0..=2 => put(Record {
                    provider_id: format!("i-{}", below(9)),
                    instance_id,
                    generation: below(5),
                    deposed: below(4) == 0,
                    spec: digest(below(4)),
                    ..record(group, slot)
                }),
                3 => Write::RemoveRecord { instance_id },
                4 => Write::MoveRecord {
                    from: (group.into(), slot),
                    to: (other.into(), to),
                },
                5 => open(Intent {
                    generation: below(6),
                    spec: (below(2) == 0).then(|| digest(below(4))),
                    ..creation(group, slot)
                }),
                6 => Write::CloseIntent {
                    id: IntentId(below(20) as i64 + 1),
                    outcome: Outcome::Done,
                },
                7 => Write::CollectGarbage,
                8 => rollouts::start(&format!("v{round}")),
                9 => match below(6) {
                    0 => Write::SetRolloutStatus {
                        id: RolloutId(below(8) as i64 + 1),
                        status: RolloutStatus::ALL[below(7) as usize],
                    },
                    1 => Write::SetRolloutPlan {
                        id: RolloutId(below(8) as i64 + 1),
                        plan: format!("plan {round}").into_bytes(),
                    },
                    2 => rollouts::request("promote"),
                    3 => Write::RemoveRequest {
                        id: RolloutRequestId(below(8) as i64 + 1),
                    },
                    4 => rollouts::last_good(group, &format!("v{round}")),
                    _ => Write::RemoveLastGood {
                        group: group.into(),
                    },
                },
                10 => {
                    batch.push(rollouts::start(&format!("v{round}")));
                    batch.push(rollouts::group(None, group, "canary"));
                    let address = format!("{group}/{slot}");
                    batch.push(rollouts::slot(None, &address, "soaking"));
                    rollouts::slot(None, &format!("{other}/{to}"), "ready")
                }
                _ => {
                    batch.push(started());
                    batch.push(item(None, "done"));
                    batch.push(Write::KeepSpecs {
                        id: None,
                        digests: (0..below(3)).map(|_| digest(below(4))).collect(),
                        entries: 3,
                    });
                    Write::FinishApply {
                        id: None,
                        status: ApplyStatus::Succeeded,
                        summary_json: format!("{{\"round\":{round}}}"),
                    }
                }
            };
            batch.push(last);
        }
        all.push(batch);
    }
    all
}

#[test]
fn all_stores_answer_alike() {
    let (mut done, mut refused) = (0, 0);
    for seed in 1..=6 {
        let subjects: [Box<dyn Subject>; 3] = [
            Box::new(Memory(MemoryDisk::default())),
            Box::new(Sqlite::new(None)),
            Box::new(Sqlite::new(Some(Key::generate().unwrap()))),
        ];
        let mut stores: Vec<Box<dyn Store>> =
            subjects.iter().map(|subject| created(&**subject)).collect();
        let mut past = Contents::of(&*stores[0]).unwrap();
        for (round, mut batch) in batches(seed).into_iter().enumerate() {
            if round % 10 == 9 {
                let now = Contents::of(&*stores[0]).unwrap();
                let contents = Box::new(std::mem::replace(&mut past, now.clone()));
                let now = Box::new(now);
                batch = vec![Write::Replace { now, contents }];
            } else if round % 40 == 20 {
                let key = Key::generate().unwrap();
                for subject in &subjects {
                    subject.learn(&key);
                }
                batch.push(Write::Rekey(key.into()));
            }
            let now = Timestamp(round as i64 + 10);
            let answers: Vec<Result<Written, String>> = stores
                .iter_mut()
                .map(|store| {
                    store
                        .commit(now, batch.clone())
                        .map_err(|error| error.to_string())
                })
                .collect();
            let place = format!("seed {seed}, round {round}: {batch:?}");
            assert_eq!(answers[0], answers[1], "{place}");
            assert_eq!(answers[0], answers[2], "{place}");
            if answers[0].is_ok() {
                done += 1;
            } else {
                refused += 1;
            }
            let expected = seen(&*stores[0]);
            assert_eq!(seen(&*stores[1]), expected, "{place}");
            assert_eq!(seen(&*stores[2]), expected, "{place}");
        }
    }
    assert!(
        done > 200 && refused > 100,
        "{done} done, {refused} refused"
    );
}

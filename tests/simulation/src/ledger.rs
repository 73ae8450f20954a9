//! The store alone on a disk that fails at each of its operations: what was answered with `Ok` is
//! there afterwards, what wasn't is there or isn't, and nothing is there by half.
//!
//! In: nothing. Out: how many cases there were, or the first that broke. May not: know of fleets.

use nstance_state::{
    Backend, Intent, IntentId, Operation, Snapshot, SpecDigest, SqliteFile, StateError, Store,
    Timestamp, Write,
};

use crate::chance::Chance;
use crate::disk::{Disk, Trouble};
use crate::world::{Broken, World};

/// Transactions after the creation.
const TRANSACTIONS: u32 = 6;
/// Ways in which a power cut may leave the same files.
const CUTS: u64 = 3;

/// How a case goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// The power is cut.
    Cut(u64),
    /// One operation fails.
    Fails,
    /// All fail from there on.
    FailsOn,
    /// The disk is full after so many sectors.
    Full,
}

/// Every way, at every operation.
pub fn exhaust() -> Result<usize, Broken> {
    let cuts = (0..CUTS).map(Way::Cut);
    let others = [Way::Fails, Way::FailsOn, Way::Full];
    let mut cases = 0;
    for way in cuts.chain(others) {
        for at in 0.. {
            cases += 1;
            let went_well = keep(way, at).map_err(|broken| format!("{way:?} at {at}: {broken}"))?;
            if went_well {
                break;
            }
        }
    }
    Ok(cases)
}

/// One case; whether all of it went well, since nothing went wrong that early.
fn keep(way: Way, at: u64) -> Result<bool, Broken> {
    let folder = World::folder();
    let disk = Disk::under(folder.path()).expect("a disk is mounted");
    disk.arrange(match way {
        Way::Cut(_) => Trouble {
            cut_at: Some(at),
            ..Trouble::default()
        },
        Way::Fails => Trouble {
            fails_at: Some((at, 1)),
            ..Trouble::default()
        },
        Way::FailsOn => Trouble {
            fails_at: Some((at, u64::MAX / 2)),
            ..Trouble::default()
        },
        Way::Full => Trouble {
            room: Some(at * 2_048),
            ..Trouble::default()
        },
    });
    let path = folder.path().join("state.db");
    let mut written = Written::default();
    let file = SqliteFile::new(path.clone(), None);
    let result = write(&file, &mut written);
    if let Way::Cut(seed) = way {
        disk.after_power_cut(&mut Chance::new(seed * 1_000_003 + at));
    } else {
        disk.after_death();
    }
    if !path.exists() {
        return if written.is_made {
            Err("the state is gone".to_owned())
        } else {
            Ok(false)
        };
    }
    let store = file.open_to_write(Some(&World::identity()));
    let store = store.map_err(|error| error.to_string())?;
    let problems = store.check().map_err(|error| error.to_string())?;
    if !problems.is_empty() {
        return Err(format!("the state is unsound: {problems:?}"));
    }
    let kept = kept(&*store).map_err(|error| error.to_string())??;
    if kept < written.done || kept > written.begun {
        return Err(format!(
            "{} transactions were answered for, {} begun, {kept} are there",
            written.done, written.begun
        ));
    }
    Ok(result.is_ok())
}

#[derive(Default)]
struct Written {
    is_made: bool,
    begun: u32,
    done: u32,
}

fn digest(number: u32) -> SpecDigest {
    SpecDigest([number as u8 + 1; 32])
}

/// The content of a spec: several pages of what can't be compressed.
fn body(number: u32) -> Vec<u8> {
    let mut chance = Chance::new(u64::from(number));
    let length = 3_000 + 4_000 * (number as usize % 3);
    (0..length).map(|_| chance.next() as u8).collect()
}

/// Uses up the first generation of a slot.
fn creation(number: u32) -> Intent {
    Intent {
        id: IntentId(0),
        address: format!("default/web/{number}"),
        group: "default/web".into(),
        slot: number,
        operation: Operation::Create,
        instance_id: format!("instance-{number}"),
        provider_id: None,
        generation: 1,
        attempt: 1,
        token: format!("token-{number}"),
        spec: Some(digest(number)),
        request: b"{}".to_vec(),
        apply_id: None,
        opened_at: Timestamp(0),
    }
}

fn write(file: &SqliteFile, written: &mut Written) -> Result<(), StateError> {
    let mut store = file.create(&World::identity(), "lineage", Timestamp(1), None)?;
    written.is_made = true;
    for number in 0..TRANSACTIONS {
        written.begun += 1;
        let spec = Write::PutSpec {
            digest: digest(number),
            bytes: body(number),
        };
        let intent = Write::OpenIntent(Box::new(creation(number)));
        store.commit(Timestamp(2), vec![spec, intent])?;
        written.done += 1;
        if number == TRANSACTIONS / 2 {
            // Once closed and opened, with all that goes with it.
            drop(store);
            store = file.open_to_write(None)?;
        }
    }
    Ok(())
}

/// How many of the transactions are there, each in whole.
fn kept(store: &dyn Store) -> Result<Result<u32, Broken>, StateError> {
    let snapshot: Snapshot = store.snapshot()?;
    let digests: Vec<SpecDigest> = (0..TRANSACTIONS).map(digest).collect();
    let specs = store.specs(&digests)?;
    let mut kept = 0;
    for number in 0..TRANSACTIONS {
        let has_generation = snapshot.generation("default/web", number) == 1;
        let has_spec = specs
            .get(&digest(number))
            .is_some_and(|spec| **spec == body(number)[..]);
        if has_generation != has_spec {
            return Ok(Err(format!("half of transaction {number} is there")));
        }
        if has_spec {
            if kept != number {
                return Ok(Err(format!("transaction {number} is there, {kept} isn't")));
            }
            kept += 1;
        }
    }
    Ok(Ok(kept))
}

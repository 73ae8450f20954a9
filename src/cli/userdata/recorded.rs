//! Finds the userdata of recorded instances by address or id.
//!
//! In: the argument. Out: the recorded userdata with secrets masked. Must not: query a cloud.

use std::path::Path;

use nstance_state::Record;

use super::super::failure::{Failure, Failures};
use super::super::fleet::Fleet;
use super::super::{Globals, show, unplaced};
use crate::address::{Address, InShard};
use crate::check::Purpose;
use crate::diagnostic::Diagnostic;

/// The meaning of an argument that isn't a file.
enum Wanted {
    /// A slot.
    Slot(InShard<Address>),
    /// An instance id or a provider id.
    Id(String),
}

impl Wanted {
    fn of(text: &Path) -> Option<Self> {
        if text == Path::new("-") || text.exists() {
            return None;
        }
        let text = text.to_str()?;
        match text.parse::<InShard<Address>>() {
            Ok(slot) => Some(Self::Slot(slot)),
            // It looks like a path to a missing file.
            Err(_) if text.contains(['/', '.']) => None,
            Err(_) => Some(Self::Id(text.to_owned())),
        }
    }

    fn is(&self, record: &Record) -> bool {
        match self {
            Self::Slot(slot) => !record.deposed && show::address(record) == slot.address,
            Self::Id(id) => *id == record.provider_id || *id == record.instance_id,
        }
    }
}

/// The userdata of a recorded instance; `None` if the argument can only be a file.
///
/// Fails if the state can't be read or has no such instance.
pub(super) fn find(globals: &Globals, asked: &Path) -> Result<Option<Vec<u8>>, Failures> {
    let Some(asked) = Wanted::of(asked) else {
        return Ok(None);
    };
    let mut fleet = match (Fleet::load(globals, Purpose::Identity), &asked) {
        (Ok(fleet), _) => fleet,
        // Without a configuration, it can only be a file.
        (Err(_), Wanted::Id(_)) => return Ok(None),
        (Err(failures), Wanted::Slot(_)) => return Err(failures),
    };
    if let Wanted::Slot(slot) = &asked {
        fleet.choose_slots(std::slice::from_ref(slot))?;
    }
    let mut found = None;
    for session in &fleet.shards {
        let store = match session.need_state() {
            Ok(store) => store,
            Err(_) if matches!(asked, Wanted::Id(_)) => continue,
            Err(failure) => return Err(unplaced(failure)),
        };
        let snapshot = store.snapshot().map_err(unplaced)?;
        let record = snapshot.records.iter().find(|record| asked.is(record));
        if let Some(record) = record {
            found = Some(show::side(&*store, record).map_err(unplaced)?);
        }
    }
    match (found, asked) {
        (Some(side), _) => {
            let covered = side.covered();
            let Some(userdata) = &covered.spec.userdata else {
                let finding = Diagnostic::error("the instance was given no userdata");
                return Err(unplaced(Failure::new(finding)));
            };
            Ok(Some(userdata.content.to_bytes()))
        }
        (None, Wanted::Slot(slot)) => {
            let finding = Diagnostic::error(format!("nothing is recorded for `{}`", slot.address))
                .hint("What is recorded: nstance state list");
            Err(unplaced(Failure::new(finding)))
        }
        (None, Wanted::Id(_)) => Ok(None),
    }
}

//! Userdata of instances that are recorded, by address or by the cloud's id.
//!
//! In: what was asked for. Out: the userdata that the record holds, secrets covered. Must not: ask
//! a cloud.

use std::path::Path;

use nstance_state::Record;

use super::super::failure::{Failure, Failures};
use super::super::fleet::Fleet;
use super::super::{Globals, show, unplaced};
use crate::address::{Address, InShard};
use crate::check::Purpose;
use crate::diagnostic::Diagnostic;

/// What is asked for, where it is no file.
enum Wanted {
    /// A slot.
    Slot(InShard<Address>),
    /// The id of an instance: ours or the cloud's.
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
            // A file that isn't there has a folder, mostly, or an ending.
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

/// The userdata of a recorded instance; `None` where what is asked for can only be a file.
pub(super) fn find(globals: &Globals, asked: &Path) -> Result<Option<Vec<u8>>, Failures> {
    let Some(asked) = Wanted::of(asked) else {
        return Ok(None);
    };
    let mut fleet = match (Fleet::load(globals, Purpose::Render), &asked) {
        (Ok(fleet), _) => fleet,
        // Without a configuration there is nothing but files.
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
            found = Some(show::side(&store, record).map_err(unplaced)?);
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

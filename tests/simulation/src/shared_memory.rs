//! What the connections to one database share: locks, and the map of its log.
//!
//! In: names of databases and ids of connections. Out: whether a lock is got; the map's bytes. May
//! not: outlive the processes that are simulated ([`SharedMemory::forget`]).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sqlite_vfs::LockKind;
use sqlite_vfs::wip::{WalIndex, WalIndexLock};

type Region = [u8; 32_768];

/// Locks on the log: `SQLite` has eight of them.
const SLOTS: usize = 8;

static BASES: Mutex<Option<HashMap<String, Arc<Mutex<Common>>>>> = Mutex::new(None);

/// What is common to all connections to a database.
#[derive(Default)]
struct Common {
    holders: HashMap<u64, LockKind>,
    regions: Vec<Box<Region>>,
    /// By slot: who holds it, and whether alone.
    slots: [HashMap<u64, bool>; SLOTS],
}

fn common(name: &str) -> Arc<Mutex<Common>> {
    let mut bases = BASES.lock().unwrap_or_else(PoisonError::into_inner);
    let bases = bases.get_or_insert_default();
    Arc::clone(bases.entry(name.to_owned()).or_default())
}

/// The locks of a file.
pub(crate) struct Shared(Arc<Mutex<Common>>);

impl Shared {
    pub(crate) fn of(name: &str) -> Self {
        Self(common(name))
    }

    fn holders<T>(&self, look: impl FnOnce(&mut HashMap<u64, LockKind>) -> T) -> T {
        look(
            &mut self
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .holders,
        )
    }

    /// Whether a lock is got, or let go.
    pub(crate) fn lock(&self, id: u64, kind: LockKind) -> bool {
        self.holders(|holders| {
            let others = || holders.iter().filter(|(other, _)| **other != id);
            let is_in_the_way = |held: LockKind| match kind {
                LockKind::None => false,
                LockKind::Shared => held >= LockKind::Pending,
                LockKind::Reserved | LockKind::Pending => held >= LockKind::Reserved,
                LockKind::Exclusive => true,
            };
            if others().any(|(_, held)| is_in_the_way(*held)) {
                return false;
            }
            if kind == LockKind::None {
                holders.remove(&id);
            } else {
                holders.insert(id, kind);
            }
            true
        })
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.holders(|holders| holders.values().any(|held| *held >= LockKind::Reserved))
    }

    pub(crate) fn held_by(&self, id: u64) -> LockKind {
        self.holders(|holders| holders.get(&id).copied().unwrap_or_default())
    }
}

/// One connection's view of the map of a log.
pub(crate) struct SharedMemory {
    common: Arc<Mutex<Common>>,
    /// Where the real file would lie; others look whether there is one.
    file: String,
    id: u64,
    off: bool,
}

impl SharedMemory {
    pub(crate) fn of(name: &str, id: u64, off: bool) -> io::Result<Self> {
        let file = format!("{name}-shm");
        if !off {
            fs::File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&file)?
                .set_len(32_768)?;
        }
        Ok(Self {
            common: common(name),
            file,
            id,
            off,
        })
    }

    /// Forgets what the dead had in memory, below a folder.
    pub(crate) fn forget(folder: &Path) {
        let mut bases = BASES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bases) = bases.as_mut() {
            bases.retain(|name, _| !Path::new(name).starts_with(folder));
        }
    }

    fn common<T>(&self, look: impl FnOnce(&mut Common) -> T) -> T {
        look(&mut self.common.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl WalIndex for SharedMemory {
    fn map(&mut self, region: u32) -> io::Result<Region> {
        let region = region as usize;
        Ok(self.common(|common| {
            while common.regions.len() <= region {
                let empty = vec![0; size_of::<Region>()].into_boxed_slice();
                let empty: Box<Region> = empty.try_into().expect("it has that length");
                common.regions.push(empty);
            }
            *common.regions[region]
        }))
    }

    fn lock(&mut self, slots: Range<u8>, lock: WalIndexLock) -> io::Result<bool> {
        let id = self.id;
        Ok(self.common(|common| {
            let slots = &mut common.slots[usize::from(slots.start)..usize::from(slots.end)];
            let is_free = |holders: &HashMap<u64, bool>| {
                let mut others = holders.iter().filter(|(other, _)| **other != id);
                match lock {
                    WalIndexLock::None => true,
                    WalIndexLock::Shared => others.all(|(_, alone)| !alone),
                    WalIndexLock::Exclusive => others.next().is_none(),
                }
            };
            if !slots.iter().all(is_free) {
                return false;
            }
            for holders in slots {
                match lock {
                    WalIndexLock::None => drop(holders.remove(&id)),
                    WalIndexLock::Shared => drop(holders.insert(id, false)),
                    WalIndexLock::Exclusive => drop(holders.insert(id, true)),
                }
            }
            true
        }))
    }

    fn delete(self) -> io::Result<()> {
        if !self.off {
            self.common(|common| common.regions.clear());
            let _ = fs::remove_file(&self.file);
        }
        Ok(())
    }

    fn pull(&mut self, region: u32, data: &mut Region) -> io::Result<()> {
        self.common(|common| {
            if let Some(region) = common.regions.get(region as usize) {
                *data = **region;
            }
        });
        Ok(())
    }

    fn push(&mut self, region: u32, data: &Region) -> io::Result<()> {
        self.common(|common| {
            if let Some(region) = common.regions.get_mut(region as usize) {
                **region = *data;
            }
        });
        Ok(())
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let id = self.id;
        self.common(|common| {
            for holders in &mut common.slots {
                holders.remove(&id);
            }
        });
    }
}

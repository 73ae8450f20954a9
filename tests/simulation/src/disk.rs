//! A disk that fails, fills up, and forgets what wasn't synced.
//!
//! In: a folder whose databases are on it, and what is to go wrong. Out: what is left of them after
//! a death or a power cut. May not: know what the files hold.
//!
//! It is a file system of `SQLite`'s own kind (a VFS), made the default of this process by
//! [`mount`]: the real store opens its files through it without knowing. Everything is written
//! through to real files, since the store looks at them by other ways too. What is written and not
//! synced is remembered: a power cut keeps any of it, in whole or in part, or nothing.
//!
//! What the store does past `SQLite` (a new state gets its name when it is complete and synced) is
//! taken as it happens; a file that is first opened is on the disk.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlite_vfs::{DatabaseHandle, LockKind, OpenAccess, OpenOptions, Vfs};

use crate::chance::Chance;
use crate::shared_memory::{Shared, SharedMemory};

/// Bytes that a disk writes at once.
const SECTOR: usize = 512;

static MOUNTED: AtomicBool = AtomicBool::new(false);
static DISKS: Mutex<Vec<(PathBuf, Arc<Mutex<Platter>>)>> = Mutex::new(Vec::new());
static HANDLES: AtomicU64 = AtomicU64::new(1);

/// Makes this disk the one that all databases of this process are on. To be called once, before
/// the first is opened, in a process that works in one thread at a time.
pub fn mount() {
    sqlite_vfs::register("simulated", FileSystem, true).unwrap();
    MOUNTED.store(true, Ordering::SeqCst);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    /// The power is cut in the middle of that operation.
    pub(crate) cut_at: Option<u64>,
    /// That operation fails, and those after it for a while.
    pub(crate) fails_at: Option<(u64, u64)>,
    /// How many bytes more the files may have.
    pub(crate) room: Option<u64>,
}

/// A change that isn't on the disk yet.
#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Resize(usize),
    Remove,
}

impl Change {
    fn make(&self, content: &mut Option<Vec<u8>>) {
        match self {
            Self::Write(at, bytes) => {
                let content = content.get_or_insert_default();
                let end = at + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*at..end].copy_from_slice(bytes);
            }
            Self::Resize(length) => content.get_or_insert_default().resize(*length, 0),
            Self::Remove => *content = None,
        }
    }
}

#[derive(Debug, Default)]
struct Sectors {
    /// What a power cut leaves.
    durable: Option<Vec<u8>>,
    /// What it may leave on top of that.
    pending: Vec<Change>,
}

#[derive(Debug, Default)]
struct Platter {
    files: HashMap<String, Sectors>,
    /// Nothing is written any more: the machine is off, or the process is dead.
    off: bool,
    operations: u64,
    trouble: Trouble,
}

impl Platter {
    /// One operation that changes something; `grows` by so many bytes.
    fn operate(&mut self, grows: u64) -> io::Result<Go> {
        let number = self.operations;
        self.operations += 1;
        if self.off {
            return Err(gone());
        }
        if let Some((from, count)) = self.trouble.fails_at
            && (from..from + count).contains(&number)
        {
            return Err(io::Error::other("the disk failed"));
        }
        if let Some(room) = &mut self.trouble.room {
            if grows > *room {
                // The one kind that is taken for a full disk.
                return Err(ErrorKind::WriteZero.into());
            }
            *room -= grows;
        }
        if self.trouble.cut_at == Some(number) {
            self.off = true;
            return Ok(Go::Last);
        }
        Ok(Go::On)
    }

    fn sectors(&mut self, name: &str) -> &mut Sectors {
        self.files.entry(name.to_owned()).or_default()
    }
}

enum Go {
    On,
    /// It may have happened; nobody learns it.
    Last,
}

fn gone() -> io::Error {
    io::Error::other("the machine is off")
}

/// The disk under one folder.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    platter: Arc<Mutex<Platter>>,
}

impl Disk {
    /// The disk under a folder; `None` where none is mounted.
    pub(crate) fn under(folder: &Path) -> Option<Self> {
        if !MOUNTED.load(Ordering::SeqCst) {
            return None;
        }
        let platter = Arc::default();
        lock(&DISKS).push((folder.to_owned(), Arc::clone(&platter)));
        Some(Self {
            folder: folder.to_owned(),
            platter,
        })
    }

    /// What goes wrong from now on, counted from now.
    pub(crate) fn arrange(&self, trouble: Trouble) {
        let mut platter = lock(&self.platter);
        platter.operations = 0;
        platter.trouble = trouble;
    }

    /// The process that writes dies now: nothing is written from here on.
    pub(crate) fn stop(&self) {
        lock(&self.platter).off = true;
    }

    /// Whether everything stopped.
    pub(crate) fn is_off(&self) -> bool {
        lock(&self.platter).off
    }

    /// Whether something was arranged to go wrong, or did.
    pub(crate) fn has_trouble(&self) -> bool {
        let platter = lock(&self.platter);
        let Trouble {
            cut_at,
            fails_at,
            room,
        } = platter.trouble;
        platter.off || cut_at.is_some() || fails_at.is_some() || room.is_some()
    }

    /// The disk is all right again.
    pub(crate) fn mend(&self) {
        let mut platter = lock(&self.platter);
        platter.off = false;
        platter.trouble = Trouble::default();
    }

    /// After a process's death: the system has all that was written. What the process had in
    /// memory it shares with nobody any more.
    pub(crate) fn after_death(&self) {
        SharedMemory::forget(&self.folder);
        self.mend();
    }

    /// After a power cut: of what wasn't synced, any part may be there.
    pub(crate) fn after_power_cut(&self, chance: &mut Chance) {
        SharedMemory::forget(&self.folder);
        let mut platter = lock(&self.platter);
        let mut names: Vec<_> = platter.files.keys().cloned().collect();
        names.sort();
        for name in names {
            let sectors = platter.sectors(&name);
            let mut content = sectors.durable.take();
            leave_some(&mut content, &std::mem::take(&mut sectors.pending), chance);
            match &content {
                Some(bytes) => fs::write(&name, bytes).unwrap(),
                None => drop(fs::remove_file(&name)),
            }
            sectors.durable = content;
        }
        // The map of the log is rubbish after a crash, if it is there at all.
        for entry in fs::read_dir(&self.folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "db-shm") {
                if chance.happens(50) {
                    fs::remove_file(path).unwrap();
                } else {
                    fs::write(path, vec![0x5a; 32_768]).unwrap();
                }
            }
        }
        drop(platter);
        self.mend();
    }

    /// The files of that name were taken away by other means.
    pub(crate) fn forget(&self) {
        lock(&self.platter).files.clear();
        SharedMemory::forget(&self.folder);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        lock(&DISKS).retain(|(folder, _)| *folder != self.folder);
        SharedMemory::forget(&self.folder);
    }
}

/// Makes some of the changes. Those of a file's length or name keep their order; writes after the
/// last of them may each be there, be torn or be missing, whatever their order.
fn leave_some(content: &mut Option<Vec<u8>>, pending: &[Change], chance: &mut Chance) {
    if pending.is_empty() {
        return;
    }
    let kept = match chance.below(4) {
        0 => 0,
        1 => pending.len(),
        _ => chance.below(pending.len() + 1),
    };
    let kept = &pending[..kept];
    let is_write = |change: &Change| matches!(change, Change::Write(..));
    let firm = kept.len() - kept.iter().rev().take_while(|c| is_write(c)).count();
    for change in &kept[..firm] {
        change.make(content);
    }
    let reorders = chance.happens(50);
    for (place, change) in kept[firm..].iter().enumerate() {
        let is_last = firm + place + 1 == kept.len();
        let Change::Write(at, bytes) = change else {
            unreachable!("only writes are left")
        };
        if reorders && chance.happens(30) {
            continue;
        }
        if is_last || reorders && chance.happens(20) {
            let mut length = chance.below(bytes.len() + 1);
            if chance.happens(50) {
                length -= length % SECTOR;
            }
            Change::Write(*at, bytes[..length].to_vec()).make(content);
        } else {
            change.make(content);
        }
    }
}

struct FileSystem;

/// An open file.
struct Handle {
    id: u64,
    name: String,
    file: File,
    /// The disk it is on, if what happens to it matters.
    platter: Option<Arc<Mutex<Platter>>>,
    locks: Shared,
}

fn platter_of(name: &str) -> Option<Arc<Mutex<Platter>>> {
    let path = Path::new(name);
    let disks = lock(&DISKS);
    let (_, platter) = disks.iter().find(|(folder, _)| path.starts_with(folder))?;
    Some(Arc::clone(platter))
}

impl Vfs for FileSystem {
    type Handle = Handle;

    fn open(&self, name: &str, options: OpenOptions) -> io::Result<Handle> {
        let mut open = fs::OpenOptions::new();
        open.read(true);
        match options.access {
            OpenAccess::Read => {}
            OpenAccess::Write => drop(open.write(true)),
            OpenAccess::Create => drop(open.write(true).create(true)),
            OpenAccess::CreateNew => drop(open.write(true).create_new(true)),
        }
        let platter = platter_of(name);
        if let Some(platter) = &platter {
            let mut platter = lock(platter);
            if platter.off && options.access != OpenAccess::Read {
                return Err(gone());
            }
            if !platter.files.contains_key(name) {
                let durable = fs::read(name).ok();
                platter.sectors(name).durable = durable;
            }
        }
        Ok(Handle {
            id: HANDLES.fetch_add(1, Ordering::SeqCst),
            name: name.to_owned(),
            file: open.open(name)?,
            platter,
            locks: Shared::of(name),
        })
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let Some(platter) = platter_of(name) else {
            return fs::remove_file(name);
        };
        let mut platter = lock(&platter);
        let go = platter.operate(0)?;
        let sectors = platter.sectors(name);
        sectors.pending.push(Change::Remove);
        fs::remove_file(name)?;
        match go {
            Go::On => Ok(()),
            Go::Last => Err(gone()),
        }
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        // An empty file is none, as `SQLite`'s own file system has it.
        Ok(fs::metadata(name).is_ok_and(|metadata| metadata.len() > 0))
    }

    fn temporary_name(&self) -> String {
        let number = HANDLES.fetch_add(1, Ordering::SeqCst);
        let name = format!("simulated-{}-{number}", std::process::id());
        std::env::temp_dir().join(name).display().to_string()
    }

    fn random(&self, buffer: &mut [i8]) {
        let mut chance = Chance::new(HANDLES.fetch_add(1, Ordering::SeqCst));
        buffer.fill_with(|| chance.next() as i8);
    }

    fn sleep(&self, duration: Duration) -> Duration {
        duration
    }
}

impl Handle {
    /// Changes the file; what was changed isn't on the disk yet.
    fn change(&mut self, change: Change) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let end = match &change {
            Change::Write(at, bytes) => (at + bytes.len()) as u64,
            Change::Resize(length) => *length as u64,
            Change::Remove => 0,
        };
        let go = match &self.platter {
            None => Go::On,
            Some(platter) => lock(platter).operate(end.saturating_sub(length))?,
        };
        match &change {
            Change::Write(at, bytes) => self.file.write_all_at(bytes, *at as u64)?,
            Change::Resize(length) => self.file.set_len(*length as u64)?,
            Change::Remove => {}
        }
        if let Some(platter) = &self.platter {
            lock(platter).sectors(&self.name).pending.push(change);
        }
        match go {
            Go::On => Ok(()),
            Go::Last => Err(gone()),
        }
    }
}

impl DatabaseHandle for Handle {
    type WalIndex = SharedMemory;

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut read = 0;
        while read < buffer.len() {
            match self
                .file
                .read_at(&mut buffer[read..], offset + read as u64)?
            {
                0 => {
                    buffer[read..].fill(0);
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                more => read += more,
            }
        }
        Ok(())
    }

    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(Change::Write(offset as usize, bytes.to_vec()))
    }

    fn sync(&mut self, _data_only: bool) -> io::Result<()> {
        let Some(platter) = &self.platter else {
            return Ok(());
        };
        let mut platter = lock(platter);
        let go = platter.operate(0)?;
        if matches!(go, Go::Last) {
            // None of it is sure.
            return Err(gone());
        }
        let sectors = platter.sectors(&self.name);
        for change in std::mem::take(&mut sectors.pending) {
            change.make(&mut sectors.durable);
        }
        Ok(())
    }

    fn set_len(&mut self, size: u64) -> io::Result<()> {
        self.change(Change::Resize(size as usize))
    }

    fn lock(&mut self, kind: LockKind) -> io::Result<bool> {
        Ok(self.locks.lock(self.id, kind))
    }

    fn reserved(&mut self) -> io::Result<bool> {
        Ok(self.locks.is_reserved())
    }

    fn current_lock(&self) -> io::Result<LockKind> {
        Ok(self.locks.held_by(self.id))
    }

    fn wal_index(&self, _readonly: bool) -> io::Result<SharedMemory> {
        let off = self.platter.as_ref().is_some_and(|p| lock(p).off);
        SharedMemory::of(&self.name, self.id, off)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.locks.lock(self.id, LockKind::None);
    }
}

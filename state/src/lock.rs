//! The lock that makes one process the writer of a state.
//!
//! In: the path of a state and who wants it. Out: a [`Lock`] that ends with the process, or who
//! holds it. The lock is the operating system's, on a side file `STATE.lock`; the text in that
//! file says who holds it, and means nothing without the lock itself. The side file is never
//! removed: a process that waits for it would then hold a lock on a file nobody else can see.
//! It may not touch the state.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Result, StateError};
use crate::files;
use crate::model::{LockInfo, Timestamp};

/// How long to wait for an unsigned lock, whatever the timeout: someone who only looks
/// holds it for an instant, and a holder needs an instant to sign.
const GRACE: Duration = Duration::from_millis(300);
/// How often a held lock is tried again.
const INTERVAL: Duration = Duration::from_millis(25);

/// A held lock. Ends when it is dropped or released, and when the process dies, however it dies.
#[derive(Debug)]
pub struct Lock {
    file: File,
    info: LockInfo,
}

impl Lock {
    /// Takes the lock of the state at `path`, which needn't exist yet; its folder is made where
    /// it is missing. A lock that is held is waited for until `timeout` is over, then the error
    /// is [`StateError::Locked`] and names the holder. What a dead process left is no lock.
    ///
    /// The two paths of a state behind a symbolic link have one lock.
    pub fn acquire(path: &Path, info: LockInfo, timeout: Duration) -> Result<Self> {
        Self::acquire_with(path, info, timeout, &mut |_| {})
    }

    /// The same; while it waits, `on_wait` hears whom for: once of each holder that signed.
    pub fn acquire_with(
        path: &Path,
        info: LockInfo,
        timeout: Duration,
        on_wait: &mut dyn FnMut(&LockInfo),
    ) -> Result<Self> {
        let side = side_file(path);
        files::create_parents(&side)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&side)
            .map_err(|error| StateError::io(&side, error))?;
        let started = Instant::now();
        let mut reported: Option<LockInfo> = None;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(refused(&side, source)),
                Err(TryLockError::WouldBlock) => {
                    let signed = read(&file).map_err(|error| StateError::io(&side, error))?;
                    let patience = if signed.is_some() {
                        timeout
                    } else {
                        timeout.max(GRACE)
                    };
                    if started.elapsed() >= patience {
                        let holder = Box::new(signed.unwrap_or_else(unsigned));
                        return Err(StateError::Locked { holder });
                    }
                    if signed.is_some() && signed != reported {
                        reported = signed;
                        reported.iter().for_each(&mut *on_wait);
                    }
                    thread::sleep(INTERVAL.min(patience));
                }
            }
        }
        let lock = Self { file, info };
        let text = serde_json::to_vec(&lock.info).expect("plain strings and numbers are JSON");
        write(&lock.file, &text).map_err(|error| StateError::io(&side, error))?;
        Ok(lock)
    }

    /// What this lock says of itself.
    pub fn info(&self) -> &LockInfo {
        &self.info
    }

    /// Ends the lock. Dropping it does the same.
    pub fn release(self) {
        drop(self);
    }

    /// Who holds the lock of the state at `path`, if a living process does. Creates nothing, and
    /// works in a folder that can't be written.
    pub fn peek(path: &Path) -> Result<Option<LockInfo>> {
        let side = side_file(path);
        let file = match File::open(&side) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::io(&side, error)),
        };
        let started = Instant::now();
        loop {
            // Shared, so that two who look don't take each other for a holder.
            match file.try_lock_shared() {
                Ok(()) => return Ok(None),
                Err(TryLockError::Error(source)) => return Err(refused(&side, source)),
                Err(TryLockError::WouldBlock) => {}
            }
            match read(&file).map_err(|error| StateError::io(&side, error))? {
                Some(info) => return Ok(Some(info)),
                None if started.elapsed() >= GRACE => return Ok(Some(unsigned())),
                None => thread::sleep(INTERVAL),
            }
        }
    }

    /// What a dead process left of the lock of the state at `path`; `None` where it left nothing,
    /// or where a living process holds the lock. Creates nothing.
    pub fn remains(path: &Path) -> Result<Option<LockInfo>> {
        let side = side_file(path);
        let file = match File::open(&side) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::io(&side, error)),
        };
        match file.try_lock_shared() {
            Ok(()) => read(&file).map_err(|error| StateError::io(&side, error)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StateError::io(&side, error)),
        }
    }

    /// Clears what a dead process left of the lock with this id, and returns it. Refuses with
    /// [`StateError::Locked`] while a living process holds the lock, with
    /// [`StateError::WrongLock`] where the id is another, and with [`StateError::NotLocked`]
    /// where nothing was left.
    pub fn break_stale(path: &Path, id: &str) -> Result<LockInfo> {
        let side = side_file(path);
        let not_locked = || StateError::NotLocked {
            path: path.to_owned(),
        };
        let file = match OpenOptions::new().read(true).write(true).open(&side) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_locked()),
            Err(error) => return Err(StateError::io(&side, error)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(source)) => return Err(refused(&side, source)),
            Err(TryLockError::WouldBlock) => {
                let holder = Self::peek(path)?.unwrap_or_else(unsigned);
                return Err(StateError::Locked {
                    holder: Box::new(holder),
                });
            }
        }
        let left = read(&file).map_err(|error| StateError::io(&side, error))?;
        match left {
            None => Err(not_locked()),
            Some(holder) if holder.id != id => Err(StateError::WrongLock {
                asked: id.to_owned(),
                holder: Box::new(holder),
            }),
            Some(holder) => {
                write(&file, b"").map_err(|error| StateError::io(&side, error))?;
                Ok(holder)
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only the text could be left behind, and it means nothing without the lock, which the
        // operating system ends when the file is closed.
        let _ = write(&self.file, b"");
        let _ = self.file.unlock();
    }
}

/// The file system knows no locks, or has none left.
fn refused(side: &Path, source: io::Error) -> StateError {
    StateError::NoLocks {
        path: side.to_owned(),
        source,
    }
}

/// The side file of a state: beside the file itself, not beside a symbolic link to it.
fn side_file(path: &Path) -> PathBuf {
    let real = fs::canonicalize(path).unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            fs::canonicalize(parent).map_or_else(|_| path.to_owned(), |parent| parent.join(name))
        }
        _ => path.to_owned(),
    });
    let mut name = OsString::from(real);
    name.push(".lock");
    PathBuf::from(name)
}

/// What the side file says; `None` where it says nothing (yet).
fn read(mut file: &File) -> io::Result<Option<LockInfo>> {
    let mut text = String::new();
    file.rewind()?;
    match file.take(64 * 1024).read_to_string(&mut text) {
        Ok(_) => Ok(serde_json::from_str(&text).ok()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(mut file: &File, text: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text)
}

/// For a holder that could not be read.
fn unsigned() -> LockInfo {
    LockInfo {
        id: "unknown".to_owned(),
        holder: "unknown".to_owned(),
        host: "unknown".to_owned(),
        pid: 0,
        operation: "unknown".to_owned(),
        since: Timestamp(0),
    }
}

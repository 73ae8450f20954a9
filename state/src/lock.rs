//! The lock that makes one process the writer of a state.
//!
//! In: the path of a state and the identity of its user. Out: a [`Lock`] that ends with the
//! process, or its holder. The lock is an operating-system lock on the side file `STATE.lock`. The
//! text in that file names the holder, and means nothing without the lock. The side file is never
//! removed: a waiting process would then lock a file that others can't see. Must not: touch the
//! state.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Result, StateError};
use crate::files;
use crate::model::{LockInfo, Timestamp};

/// The minimum wait for a lock without a holder's text, regardless of the timeout. Readers hold it
/// for an instant, and a new holder needs an instant to write its text.
const GRACE: Duration = Duration::from_millis(300);
/// The interval between attempts.
const INTERVAL: Duration = Duration::from_millis(25);

/// A held lock. Ends when it is dropped or released, and when the process dies for any reason.
#[derive(Debug)]
pub struct Lock {
    file: File,
    info: LockInfo,
}

impl Lock {
    /// Acquires the lock of the state at `path`, which needn't exist; creates its folder if
    /// necessary. Waits up to `timeout` for another holder. A stale lock doesn't block.
    ///
    /// All paths to a state by symbolic links share one lock.
    ///
    /// Fails with [`StateError::Locked`] after the timeout.
    pub fn acquire(path: &Path, info: LockInfo, timeout: Duration) -> Result<Self> {
        Self::acquire_with(path, info, timeout, &mut |_| {})
    }

    /// Acquires the lock like [`Lock::acquire`]; while it waits, calls `on_wait` once per holder.
    ///
    /// Fails with [`StateError::Locked`] after the timeout.
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

    /// The information in this lock.
    pub fn info(&self) -> &LockInfo {
        &self.info
    }

    /// Releases the lock, like dropping it.
    pub fn release(self) {
        drop(self);
    }

    /// The living holder of the lock of the state at `path`. Creates nothing, and works in a
    /// read-only folder.
    ///
    /// Fails if the side file can't be read.
    pub fn peek(path: &Path) -> Result<Option<LockInfo>> {
        let side = side_file(path);
        let file = match File::open(&side) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::io(&side, error)),
        };
        let started = Instant::now();
        loop {
            // A shared lock, so that concurrent readers don't see each other as holders.
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

    /// The information in a stale lock of the state at `path`; `None` if there is none, or if a
    /// living process holds the lock. Creates nothing.
    ///
    /// Fails if the side file can't be read.
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

    /// Removes the stale lock with this id, and returns its information.
    ///
    /// Fails with [`StateError::Locked`] if a living process holds the lock, with
    /// [`StateError::WrongLock`] if the id differs, and with [`StateError::NotLocked`] if there is
    /// no stale lock.
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
        // If this fails, only the text remains, which means nothing without the lock; closing the
        // file releases that.
        let _ = write(&self.file, b"");
        let _ = self.file.unlock();
    }
}

/// The error if the file system doesn't support locks, or has none left.
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

/// The text of the side file; `None` if it is empty. Fails if it can't be read.
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

/// The information for a holder whose text couldn't be read.
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

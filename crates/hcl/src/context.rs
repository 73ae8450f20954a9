//! What an evaluation may use besides its scope: files, and so much time and memory.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::value::{Kind, Value};

/// Where functions such as `file` read. A path has `/`, and no `.` or `..` but in front.
pub trait Files {
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Whether there is a file, and not a folder, of this name.
    fn exists(&self, path: &str) -> io::Result<bool>;
    /// The folder that relative paths start from, for `abspath`.
    fn base(&self) -> PathBuf;
    /// All files below `folder`, as paths relative to it with `/`, in order: for `fileset`.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// What `~` stands for. Without it, a path that starts so is an error: a configuration means
    /// the same for everybody.
    fn home(&self) -> Option<PathBuf> {
        None
    }
}

/// No files at all.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _path: &str) -> io::Result<Vec<u8>> {
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            "no files can be read here",
        ))
    }

    fn exists(&self, _path: &str) -> io::Result<bool> {
        Ok(false)
    }

    fn base(&self) -> PathBuf {
        PathBuf::new()
    }

    fn list(&self, _folder: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// The largest file that [`Folder`] reads.
const LARGEST_FILE: u64 = 256 << 20;

/// The files of a folder on disk, which is what relative paths start from.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Files for Folder {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let path = self.0.join(path);
        let metadata = path.metadata()?;
        // A device or a pipe may have no end.
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it isn't a file",
            ));
        }
        if metadata.len() > LARGEST_FILE {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "it is larger than 256 MB",
            ));
        }
        std::fs::read(path)
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        match self.0.join(path).metadata() {
            Ok(metadata) if metadata.is_file() => Ok(true),
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it isn't a file",
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn base(&self) -> PathBuf {
        self.0.clone()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        let mut folders = vec![(self.0.join(folder), String::new())];
        while let Some((path, prefix)) = folders.pop() {
            for entry in std::fs::read_dir(path)? {
                let entry = entry?;
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                // A link to a folder isn't followed: it may lead back.
                if entry.file_type()?.is_dir() {
                    folders.push((entry.path(), format!("{name}/")));
                } else if is_file(&entry.path()) {
                    found.push(name);
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// What one evaluation from the outside may cost, whatever it reaches through its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Expressions evaluated, elements made.
    pub steps: u64,
    /// Bytes of text made, all in all.
    pub bytes: u64,
    /// Expressions within expressions, and what they refer to.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 10_000_000,
            bytes: 64 << 20,
            depth: 400,
        }
    }
}

/// How large a value is: its parts and their text, each counted as often as it is there, and how
/// deep they lie.
#[derive(Clone, Copy)]
struct Size {
    parts: u64,
    bytes: u64,
    levels: u32,
}

/// How much more text a value may have than one evaluation makes: the rest is shared.
const SHARED: u64 = 4;
/// Sizes of values with more parts than this are kept.
const SMALL: u64 = 32;
/// How many sizes are kept.
const MOST_KEPT: usize = 4096;

/// A limit that was reached, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitReached(pub String);

/// Files and limits for evaluations on one thread.
pub struct Context<'a> {
    pub files: &'a dyn Files,
    pub limits: Limits,
    steps: Cell<u64>,
    bytes: Cell<u64>,
    depth: Cell<u32>,
    /// Compiled patterns, by how they are written.
    pub(crate) patterns: RefCell<HashMap<String, regex::Regex>>,
    /// Sizes by the address of what holds the parts, which lives as long as the value beside it.
    sizes: RefCell<HashMap<usize, (Value, Size)>>,
}

impl<'a> Context<'a> {
    pub fn new(files: &'a dyn Files) -> Self {
        Self {
            files,
            limits: Limits::default(),
            steps: Cell::new(0),
            bytes: Cell::new(0),
            depth: Cell::new(0),
            patterns: RefCell::default(),
            sizes: RefCell::default(),
        }
    }

    /// To be called before making `bytes` of text. Text that is refused isn't made, so what is
    /// evaluated around it, and makes none or less, isn't refused as well.
    pub fn charge_bytes(&self, bytes: usize) -> Result<(), LimitReached> {
        let total = self.bytes.get().saturating_add(bytes as u64);
        if total > self.limits.bytes {
            let limit = self.limits.bytes >> 20;
            return Err(LimitReached(format!(
                "This makes more than {limit} MB of text"
            )));
        }
        self.bytes.set(total);
        Ok(())
    }

    /// To be called before making `elements` of a list, or running a loop so many times.
    pub fn charge_steps(&self, steps: usize) -> Result<(), LimitReached> {
        let total = self.steps.get().saturating_add(steps as u64);
        self.steps.set(total);
        if total > self.limits.steps {
            let limit = self.limits.steps;
            return Err(LimitReached(format!("This takes more than {limit} steps")));
        }
        Ok(())
    }

    /// Refuses a value that is too large or too deep. Parts that are shared cost no memory, so a few
    /// names that hold the one before twice can make one that nobody could ever print.
    pub(crate) fn check_size(&self, value: &Value) -> Result<(), LimitReached> {
        let size = self.size(value);
        let (parts, levels) = (self.limits.steps, self.limits.depth);
        if size.parts > parts {
            return Err(LimitReached(format!(
                "This value has more than {parts} parts"
            )));
        }
        let bytes = self.limits.bytes.saturating_mul(SHARED);
        if size.bytes > bytes {
            let limit = bytes >> 20;
            return Err(LimitReached(format!(
                "This value has more than {limit} MB of text"
            )));
        }
        if size.levels > levels {
            return Err(LimitReached(format!(
                "This value has more than {levels} levels of lists and objects"
            )));
        }
        Ok(())
    }

    fn size(&self, value: &Value) -> Size {
        let mut size = Size {
            parts: 1,
            bytes: 0,
            levels: 0,
        };
        let address = match &value.kind {
            Kind::Null(_) | Kind::Bool(_) | Kind::Number(_) => return size,
            Kind::String(text) => {
                size.bytes = text.len() as u64;
                return size;
            }
            Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements) => {
                Arc::as_ptr(elements).cast::<()>()
            }
            Kind::Object(entries) | Kind::Map(_, entries) => Arc::as_ptr(entries).cast::<()>(),
        } as usize;
        if let Some((_, size)) = self.sizes.borrow().get(&address) {
            return *size;
        }
        let mut add = |name: &str, part: &Value| {
            let part = self.size(part);
            let bytes = part.bytes.saturating_add(name.len() as u64);
            size.parts = size.parts.saturating_add(part.parts);
            size.bytes = size.bytes.saturating_add(bytes);
            size.levels = size.levels.max(part.levels + 1);
        };
        for element in value.elements().unwrap_or_default() {
            add("", element);
        }
        for (name, entry) in value.entries().into_iter().flatten() {
            add(name, entry);
        }
        if size.parts > SMALL {
            let mut sizes = self.sizes.borrow_mut();
            if sizes.len() >= MOST_KEPT {
                sizes.clear();
            }
            sizes.insert(address, (value.clone(), size));
        }
        size
    }

    /// One level deeper, for as long as what this returns is kept.
    pub(crate) fn enter(&self) -> Result<Level<'_>, LimitReached> {
        let depth = self.depth.get();
        if depth == 0 {
            self.steps.set(0);
            self.bytes.set(0);
        }
        if depth >= self.limits.depth {
            let limit = self.limits.depth;
            return Err(LimitReached(format!(
                "What this refers to is more than {limit} expressions deep"
            )));
        }
        self.depth.set(depth + 1);
        Ok(Level(&self.depth))
    }
}

/// See [`Context::enter`].
pub(crate) struct Level<'a>(&'a Cell<u32>);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

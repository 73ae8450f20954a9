//! Resolves the paths of functions such as `file`, and `path.root`.
//!
//! In: the folders of a configuration's files. Out: file contents for the evaluator, relative paths
//! between folders, and which files were read. Must not: evaluate.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nstance_hcl::{Files, Folder, NoFiles};

use crate::config::inputs::Inputs;

/// The folders of an evaluation. Functions such as `file` use paths relative to the file they are
/// written in.
#[derive(Debug, Default)]
pub(in crate::config) struct Folders {
    current: RefCell<Option<Arc<Path>>>,
    root: Option<Arc<Path>>,
    working: Option<PathBuf>,
    seen: RefCell<Inputs>,
}

impl Folders {
    /// `root` is the folder of the configuration's first file; without it, functions can't read
    /// files.
    pub(in crate::config) fn new(root: Option<Arc<Path>>, working: Option<PathBuf>) -> Self {
        Self {
            current: RefCell::new(root.clone()),
            root,
            working,
            seen: RefCell::default(),
        }
    }

    /// The files that functions tried to read, existing or not.
    pub(in crate::config) fn seen(self) -> Inputs {
        self.seen.into_inner()
    }

    /// Sets the current folder; returns the previous one.
    pub(super) fn enter(&self, folder: Option<Arc<Path>>) -> Option<Arc<Path>> {
        self.current.replace(folder)
    }

    fn note(&self, path: &str) {
        if let Some(folder) = &*self.current.borrow() {
            self.seen.borrow_mut().file(&folder.join(path));
        }
    }

    fn with<T>(&self, read: impl FnOnce(&dyn Files) -> T) -> T {
        match &*self.current.borrow() {
            Some(folder) => read(&Folder(folder.to_path_buf())),
            None => read(&NoFiles),
        }
    }

    /// The folder that `path.NAME` refers to, relative to the current one.
    pub(super) fn named(&self, name: &str) -> Option<String> {
        let current = self.current.borrow();
        let path = match name {
            "module" => PathBuf::from("."),
            "root" => match (&*current, &self.root) {
                (Some(current), Some(root)) => relative(current, root),
                _ => PathBuf::from("."),
            },
            "cwd" => self.working.clone().unwrap_or_else(|| PathBuf::from(".")),
            _ => return None,
        };
        Some(path.display().to_string())
    }
}

impl Files for Folders {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.note(path);
        self.with(|files| files.read(path))
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.note(path);
        self.with(|files| files.exists(path))
    }

    fn base(&self) -> PathBuf {
        self.with(|files| files.base())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        if let Some(current) = &*self.current.borrow() {
            let all = current.join(folder).join("**/*");
            self.seen.borrow_mut().pattern(&all);
        }
        self.with(|files| files.list(folder))
    }
}

/// The relative path between two folders; absolute if they share no prefix.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from
        .components()
        .zip(to.components())
        .take_while(|(a, b)| a == b)
        .count();
    if shared == 0 {
        return to.to_owned();
    }
    let up = from.components().skip(shared).map(|_| Path::new(".."));
    let down = to.components().skip(shared);
    let path: PathBuf = up
        .chain(down.map(|part| Path::new(part.as_os_str())))
        .collect();
    if path.as_os_str().is_empty() {
        return PathBuf::from(".");
    }
    path
}

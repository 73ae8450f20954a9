//! Records which files a configuration depends on, to watch for changes.
//!
//! In: paths and patterns that loading looked at. Out: [`Inputs`]: the folders to watch, and
//! whether a change of a path matters. Must not: watch or read anything.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::files::{MATCHING, belongs};

/// The paths that loading looked at, existing or not.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    files: BTreeSet<PathBuf>,
    /// Name patterns; the part before the first wildcard is a real path.
    patterns: BTreeSet<PathBuf>,
    /// Folders of which all configuration files are loaded.
    folders: BTreeSet<PathBuf>,
}

impl Inputs {
    /// Adds a file that was read, or looked for.
    pub fn file(&mut self, path: &Path) {
        self.files.insert(real(path));
        // Both the link and its target can change.
        if let Ok(target) = path.canonicalize() {
            self.files.insert(target);
        }
    }

    /// Adds a folder whose configuration files are loaded.
    pub(super) fn folder(&mut self, path: &Path) {
        self.folders.insert(real(path));
        if let Ok(target) = path.canonicalize() {
            self.folders.insert(target);
        }
    }

    /// Adds an absolute pattern of file names.
    pub(super) fn pattern(&mut self, pattern: &Path) {
        let (prefix, rest) = split(pattern);
        let prefix = prefix.canonicalize().unwrap_or(prefix);
        self.patterns.insert(prefix.join(rest));
    }

    /// Adds the inputs of another configuration.
    pub fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
        self.patterns.extend(other.patterns);
        self.folders.extend(other.folders);
    }

    /// The files, including missing ones.
    pub fn files(&self) -> &BTreeSet<PathBuf> {
        &self.files
    }

    /// The existing folders to watch: those that contain the inputs, and their parents, since
    /// folders can be replaced.
    pub fn places(&self) -> BTreeSet<PathBuf> {
        let mut places = BTreeSet::new();
        let mut add = |folder: &Path| {
            let nearest = folder.ancestors().find(|folder| folder.is_dir());
            places.extend(nearest.map(Path::to_owned));
            places.extend(nearest.and_then(Path::parent).map(Path::to_owned));
        };
        for file in &self.files {
            add(file.parent().unwrap_or(file));
        }
        for folder in &self.folders {
            add(folder);
        }
        for pattern in &self.patterns {
            add(&split(pattern).0);
            // Wildcards may match folders too.
            for part in pattern.ancestors().skip(1) {
                let found = glob::glob(&part.to_string_lossy());
                for folder in found.into_iter().flatten().flatten().filter(|f| f.is_dir()) {
                    add(&folder);
                }
            }
        }
        places
    }

    /// Whether a change of this path may change the configuration.
    pub fn concerns(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        // Creating or removing a folder affects its contents.
        self.files.iter().any(|file| file.starts_with(path))
            || self.folders.iter().any(|folder| folder.starts_with(path))
            || belongs(name)
                && path
                    .parent()
                    .is_some_and(|parent| self.folders.contains(parent))
            || self.patterns.iter().any(|pattern| {
                pattern.ancestors().any(|part| {
                    glob::Pattern::new(&part.to_string_lossy())
                        .is_ok_and(|part| part.matches_path_with(path, MATCHING))
                })
            })
    }
}

/// The path with links in its folder resolved, as watchers report it.
fn real(path: &Path) -> PathBuf {
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// The part before the first wildcard, and the rest.
fn split(pattern: &Path) -> (PathBuf, PathBuf) {
    let is_wild = |part: &OsStr| part.to_string_lossy().contains(['*', '?', '[']);
    let components: Vec<Component<'_>> = pattern.components().collect();
    let first = components
        .iter()
        .position(|part| is_wild(part.as_os_str()))
        .unwrap_or(components.len());
    let (prefix, rest) = components.split_at(first);
    (prefix.iter().collect(), rest.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_told_from_what_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("fleet/groups/a")).unwrap();
        let mut inputs = Inputs::default();
        inputs.file(&root.join("user-data.sh"));
        inputs.file(&root.join("gone/away/file"));
        inputs.folder(&root.join("fleet"));
        inputs.pattern(&root.join("fleet/groups/*/x-*.jsonc"));
        for (path, expected) in [
            ("user-data.sh", true),
            ("user-data.sh.swp", false),
            ("gone", true),
            ("gone/away", true),
            ("gone/other", false),
            ("fleet/a.jsonc", true),
            ("fleet/nstance-a.yaml", true),
            ("fleet/README.md", false),
            ("fleet/.nstance", false),
            ("fleet/groups/b", true),
            ("fleet/groups/b/x-1.jsonc", true),
            ("fleet/groups/b/y.jsonc", false),
            ("fleet", true),
            ("other", false),
        ] {
            assert_eq!(inputs.concerns(&root.join(path)), expected, "{path}");
        }
        let places = inputs.places();
        for place in ["", "fleet", "fleet/groups", "fleet/groups/a"] {
            let place = root.join(place);
            assert!(
                places
                    .iter()
                    .any(|known| known.components().eq(place.components())),
                "{place:?} of {places:?}"
            );
        }
    }
}

//! Finds and reads the files of a configuration.
//!
//! In: a path of the command line, or an `include`. Out: files, by their names in messages, and
//! their text. Must not: parse anything.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use super::inputs::Inputs;
use crate::diagnostic::Diagnostic;

/// What `*` and `?` of an include stand for.
pub(super) const MATCHING: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The size limit of a file, in bytes. Reading such a file takes at most 3 s and 1 GB of memory.
pub(crate) const LARGEST_FILE: u64 = 16 << 20;

/// The size limit of all files of a configuration, in bytes.
pub(super) const LARGEST_CONFIGURATION: usize = 64 << 20;

/// The maximum number of files of a configuration.
const MOST_FILES: usize = 20_000;

/// The files of a configuration, by their names in messages, in reading order; never empty. Records
/// in `inputs` where it looked.
///
/// A folder, `working_dir` where no path is given, is all of its configuration files, without its
/// subfolders and without `var_files`. Fails if there are none, too many, or the folder can't be read.
pub(crate) fn find(
    path: Option<&Path>,
    working_dir: &Path,
    var_files: &[PathBuf],
    inputs: &mut Inputs,
) -> Result<Vec<PathBuf>, Box<Diagnostic>> {
    let folder = path.unwrap_or(Path::new(""));
    if !working_dir.join(folder).is_dir() {
        let extension = folder
            .extension()
            .map(|extension| extension.to_string_lossy());
        let is_readable = extension
            .as_deref()
            .is_none_or(|extension| ["hcl", "json", "jsonc", "yaml", "yml"].contains(&extension));
        if !is_readable && working_dir.join(folder).is_file() {
            let name = folder.display();
            return Err(Box::new(
                Diagnostic::error(format!("not a configuration file: {name}"))
                    .hint("Configurations are .hcl, .jsonc, .json, .yaml and .yml files"),
            ));
        }
        return Ok(vec![folder.to_owned()]);
    }
    inputs.folder(&working_dir.join(folder));
    let mut files = of_folder(folder, working_dir)?;
    let is_same = |a: &Path, b: &Path| {
        let real = |path: &Path| working_dir.join(path).canonicalize().ok();
        a.file_name() == b.file_name() && real(a).is_some_and(|a| real(b) == Some(a))
    };
    files.retain(|file| !var_files.iter().any(|given| is_same(file, given)));
    if files.is_empty() {
        let mut finding = Diagnostic::error(format!(
            "no configuration in {}",
            shown(folder, working_dir)
        ))
        .detail("Looked for *.hcl, *.jsonc, nstance*.json, nstance*.yaml, nstance*.yml")
        .hint(
            "`nstance init` writes one to start from; `--config PATH` names another file or \
             folder",
        );
        if let Some(file) = specification_in(folder, working_dir) {
            let file = file.display();
            finding.hints = vec![format!(
                "For the specification of Yandex Cloud, pass -c {file}"
            )];
        }
        return Err(Box::new(finding));
    }
    // Files that change what others say come after them.
    files.sort_by(|a, b| (is_override(a), a).cmp(&(is_override(b), b)));
    Ok(files)
}

/// A specification of Yandex Cloud in a folder.
fn specification_in(folder: &Path, working_dir: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(working_dir.join(folder)).ok()?;
    let mut names: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .collect();
    names.sort();
    let files = names.into_iter().map(|name| folder.join(name));
    let is_yaml = |file: &PathBuf| {
        file.extension()
            .is_some_and(|it| it == "yaml" || it == "yml")
    };
    let mut files = files.filter(is_yaml);
    files.find(|file| {
        let text = read_as("file", file, working_dir);
        text.is_ok_and(|text| {
            text.lines()
                .any(|line| line.starts_with("instance_template:"))
        })
    })
}

/// A folder, as messages call it.
fn shown<'p>(folder: &'p Path, working_dir: &'p Path) -> std::path::Display<'p> {
    if folder.as_os_str().is_empty() {
        working_dir.display()
    } else {
        folder.display()
    }
}

fn of_folder(folder: &Path, working_dir: &Path) -> Result<Vec<PathBuf>, Box<Diagnostic>> {
    let shown = shown(folder, working_dir);
    let failed = |error: std::io::Error| {
        Box::new(
            Diagnostic::error(format!("can't read the folder {shown}")).detail(error.to_string()),
        )
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(working_dir.join(folder)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let file = folder.join(&name);
        // Include files that can't be read: omitting one would delete what it defines.
        if belongs(&name) && !working_dir.join(&file).is_dir() {
            files.push(file);
        }
        if files.len() > MOST_FILES {
            return Err(Box::new(Diagnostic::error(format!(
                "there are more than {MOST_FILES} configuration files in {shown}"
            ))));
        }
    }
    Ok(files)
}

/// Whether a file of a folder belongs to its configuration; JSON and YAML files of other programs
/// don't.
pub(super) fn belongs(name: &OsStr) -> bool {
    let path = Path::new(name);
    let ours = name.to_string_lossy().starts_with("nstance");
    match path.extension().and_then(OsStr::to_str) {
        Some("hcl" | "jsonc") => !name.to_string_lossy().starts_with('.'),
        Some("json" | "yaml" | "yml") => ours,
        _ => false,
    }
}

/// Whether a file is an override file: `override.EXT`, or a name that ends with `_override` or
/// `.override` before the extension.
pub(super) fn is_override(file: &Path) -> bool {
    let stem = file.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    stem == "override" || stem.ends_with("_override") || stem.ends_with(".override")
}

/// The files that an `include` matches, relative to the including file; `*` and `?` match parts of
/// names.
///
/// Fails if nothing matches or the pattern is invalid; the error is a fragment that follows the
/// pattern.
pub(super) fn included(
    pattern: &str,
    from: &Path,
    working_dir: &Path,
    inputs: &mut Inputs,
) -> Result<Vec<PathBuf>, String> {
    if pattern.is_empty() {
        return Err("it is empty".to_owned());
    }
    let file = tidy(&from.parent().unwrap_or(Path::new("")).join(pattern));
    if !pattern.contains(['*', '?', '[']) {
        let absolute = working_dir.join(&file);
        inputs.file(&absolute);
        if absolute.is_dir() {
            return Err(format!(
                "{} is a folder; `{}/*.jsonc` takes its files",
                file.display(),
                pattern.trim_end_matches('/')
            ));
        }
        if !absolute.is_file() {
            return Err(format!("there is no file {}", file.display()));
        }
        return Ok(vec![file]);
    }
    let absolute = working_dir.join(&file);
    inputs.pattern(&absolute);
    let matches = glob::glob_with(&absolute.to_string_lossy(), MATCHING)
        .map_err(|error| format!("it is no pattern: {}", error.msg))?;
    let mut files = Vec::new();
    for found in matches {
        let found = found.map_err(|error| error.to_string())?;
        if !found.is_dir() {
            files.push(found.strip_prefix(working_dir).unwrap_or(&found).to_owned());
        }
        if files.len() > MOST_FILES {
            return Err(format!("more than {MOST_FILES} files match it"));
        }
    }
    if files.is_empty() {
        return Err(format!("no file matches {}", file.display()));
    }
    Ok(files)
}

/// A path without `.`, and without `..` after a name.
pub(super) fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(tidy.components().next_back(), Some(Component::Normal(_))) =>
            {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    if tidy.as_os_str().is_empty() && !path.as_os_str().is_empty() {
        tidy.push(".");
    }
    tidy
}

/// The text of a configuration file.
///
/// Fails if it can't be read, isn't UTF-8 or is too large.
pub(crate) fn read_text(file: &Path, working_dir: &Path) -> Result<String, Box<Diagnostic>> {
    read_as("configuration", file, working_dir).map_err(|mut finding| {
        if finding.detail.as_deref() == Some(MISSING) {
            let hint = "`nstance init` writes one to start from";
            finding.hints.push(hint.to_owned());
        }
        finding
    })
}

/// The message for a file of this size.
fn too_large(size: u64) -> String {
    format!("It has {size} bytes; {}", most_that_is_read())
}

/// The message for a file of which only this much was read.
pub(crate) fn larger_than_read(size: u64) -> String {
    format!("It has at least {size} bytes; {}", most_that_is_read())
}

fn most_that_is_read() -> String {
    let limit = LARGEST_FILE >> 20;
    format!("{LARGEST_FILE} ({limit} MiB) are the most that is read")
}

/// The message for a missing file.
const MISSING: &str = "No such file";

/// The text of any file, without its byte order mark; `what` is its name in messages.
///
/// Fails if it can't be read, isn't UTF-8 or is too large.
pub(super) fn read_as(
    what: &str,
    file: &Path,
    working_dir: &Path,
) -> Result<String, Box<Diagnostic>> {
    let shown = file.display();
    let absolute = working_dir.join(file);
    let failed = |error: std::io::Error| {
        let diagnostic = Diagnostic::error(format!("can't read the {what} {shown}"));
        Box::new(match error.kind() {
            std::io::ErrorKind::NotFound if absolute.is_symlink() => {
                diagnostic.detail("It is a link to a file that isn't there")
            }
            std::io::ErrorKind::NotFound => diagnostic.detail(MISSING),
            _ => diagnostic.detail(error.to_string()),
        })
    };
    let is_too_large = |detail: String| {
        Box::new(
            Diagnostic::error(format!("the {what} is too large: {shown}"))
                .detail(detail)
                .hint(
                    "Split it: several files of a folder, or files included, are one configuration",
                ),
        )
    };
    let size = fs::metadata(&absolute).map_err(failed)?.len();
    if size > LARGEST_FILE {
        return Err(is_too_large(too_large(size)));
    }
    // Limit the read too, since a pipe or device reports no size and a file may grow.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    let mut file = fs::File::open(&absolute)
        .map_err(failed)?
        .take(LARGEST_FILE + 1);
    file.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(is_too_large(larger_than_read(bytes.len() as u64)));
    }
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(.."\u{feff}".len());
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = String::from_utf8_lossy(&bytes[..offset])
            .matches('\n')
            .count()
            + 1;
        Box::new(
            Diagnostic::error(format!("the {what} isn't UTF-8: {shown}"))
                .detail(format!(
                    "Byte {offset}, on line {line}, is {:#04x}, which can't stand there",
                    bytes[offset]
                ))
                .hint("save it as UTF-8"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_file_is() {
        for (name, part, overrides) in [
            ("a.hcl", true, false),
            ("a.jsonc", true, false),
            (".a.jsonc", false, false),
            ("override.jsonc", true, true),
            ("prod_override.hcl", true, true),
            ("nstance.override.yaml", true, true),
            ("nstance.json", true, false),
            ("nstance-groups.yml", true, false),
            ("package.json", false, false),
            ("docker-compose.yaml", false, false),
            ("my_overrides.jsonc", true, false),
            ("README.md", false, false),
        ] {
            assert_eq!(belongs(OsStr::new(name)), part, "{name}");
            assert_eq!(is_override(Path::new(name)), overrides, "{name}");
        }
    }

    #[test]
    fn paths_are_tidied() {
        for (path, tidied) in [
            ("a/../b/./c", "b/c"),
            ("../a/../../b", "../../b"),
            ("/a/../../b", "/../b"),
            ("./a", "a"),
            (".", "."),
            ("a/..", "."),
        ] {
            assert_eq!(tidy(Path::new(path)), Path::new(tidied), "{path}");
        }
    }
}

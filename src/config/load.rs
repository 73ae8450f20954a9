//! From a path to a checked configuration.
//!
//! In: what the command line says: a path or none, and vars. Out: [`Loaded`], with every finding
//! of one run. May not: print, or look anywhere but at the file it is told of.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::{Purpose, check};
use super::decode::decode;
use super::jsonc;
use super::model::Config;
use super::source::{Language, SourceMap};
use super::yaml::{self, Alias};
use crate::diagnostic::{Diagnostic, Diagnostics, Label};

/// Names of configurations, in the order they are looked for.
const NAMES: &[&str] = &[
    "nstance.jsonc",
    "nstance.json",
    "nstance.hcl",
    "nstance.yaml",
    "nstance.yml",
    "config.jsonc",
];

/// Of how many findings it is said which aliases use their text; nobody reads more.
const MOST_EXPLAINED: usize = 100;

/// Nobody writes a configuration of this size; a device or an image of a disk may have it.
const LARGEST_FILE: u64 = 100 * 1024 * 1024;

/// A configuration, and everything that is wrong with it.
#[derive(Debug)]
pub struct Loaded {
    /// The texts that spans point into.
    pub sources: SourceMap,
    /// The configuration as far as it could be read. Where `findings` has errors, parts of it may
    /// be missing or empty: it may be looked at for more errors, and nothing else.
    pub config: Option<Config>,
    /// What is wrong, in the order of the file.
    pub findings: Diagnostics,
    /// The folder that paths in the configuration start from.
    pub directory: PathBuf,
}

/// Loads a configuration to be planned: `path` as given, or the only one in `working_dir`; `vars`
/// are the `--var K=V` of the command line.
pub fn load(path: Option<&Path>, working_dir: &Path, vars: &[(String, String)]) -> Loaded {
    load_for(Purpose::Plan, path, working_dir, vars)
}

/// Loads a configuration for a purpose.
pub fn load_for(
    purpose: Purpose,
    path: Option<&Path>,
    working_dir: &Path,
    vars: &[(String, String)],
) -> Loaded {
    let mut loaded = Loaded {
        sources: SourceMap::default(),
        config: None,
        findings: Diagnostics::default(),
        directory: working_dir.to_owned(),
    };
    match find(path, working_dir).and_then(|file| {
        let text = read_text(&file, working_dir)?;
        Ok((file, text))
    }) {
        Err(diagnostic) => loaded.findings.push(*diagnostic),
        Ok((file, text)) => {
            let absolute = working_dir.join(&file);
            if let Some(directory) = absolute.parent() {
                directory.clone_into(&mut loaded.directory);
            }
            loaded.read(purpose, &file, text, vars);
        }
    }
    loaded
}

/// Loads a configuration from a text; `name` is what messages call it, its extension says the
/// language.
pub fn load_text(purpose: Purpose, name: &str, text: &str, vars: &[(String, String)]) -> Loaded {
    let mut loaded = Loaded {
        sources: SourceMap::default(),
        config: None,
        findings: Diagnostics::default(),
        directory: PathBuf::new(),
    };
    loaded.read(purpose, Path::new(name), text.to_owned(), vars);
    loaded
}

impl Loaded {
    fn read(&mut self, purpose: Purpose, file: &Path, text: String, vars: &[(String, String)]) {
        let name = file.display().to_string();
        let source = self.sources.add(name, text);
        let text = Arc::clone(&self.sources.get(source).text);
        let mut aliases = Vec::new();
        let root = match self.sources.get(source).language {
            Language::Yaml => {
                let (root, found) = yaml::read_with_aliases(source, &text, &mut self.findings);
                aliases = found;
                root
            }
            Language::Hcl => {
                self.findings.push(
                    Diagnostic::error(format!(
                        "this version reads JSONC and YAML, not HCL: {}",
                        file.display()
                    ))
                    .hint("write the configuration as `nstance.yaml` or `nstance.jsonc`"),
                );
                None
            }
            Language::Jsonc | Language::Plain => jsonc::read(source, &text, &mut self.findings),
        };
        let Some(root) = root else {
            return;
        };
        if let Some(decoded) = decode(&root, vars, &mut self.sources, &mut self.findings) {
            check(&decoded, purpose, &self.sources, &mut self.findings);
            self.config = Some(decoded.config);
        }
        // Stages find things in their own order; people read from the top.
        let mut findings: Vec<_> = std::mem::take(&mut self.findings).into_iter().collect();
        name_aliases(&aliases, &mut findings);
        findings.sort_by_key(|finding| finding.label.as_ref().map(|label| label.span));
        self.findings.extend(findings);
    }
}

/// Adds where aliases use the text that a finding is about: it may be wrong there only.
fn name_aliases(aliases: &[Alias], findings: &mut [Diagnostic]) {
    if aliases.is_empty() {
        return;
    }
    for finding in findings.iter_mut().take(MOST_EXPLAINED) {
        let Some(place) = finding.label.as_ref().map(|label| label.span) else {
            continue;
        };
        let uses = aliases.iter().filter(|alias| {
            let target = alias.target;
            target.source == place.source && target.start <= place.start && place.end <= target.end
        });
        for alias in uses.take(3) {
            finding.related.push(Label {
                span: alias.span,
                text: "it is used here too".to_owned(),
            });
        }
    }
}

/// The file that is meant, as messages call it.
fn find(path: Option<&Path>, working_dir: &Path) -> Result<PathBuf, Box<Diagnostic>> {
    let Some(path) = path else {
        return find_in(None, working_dir);
    };
    if working_dir.join(path).is_dir() {
        return find_in(Some(path), working_dir);
    }
    Ok(path.to_owned())
}

fn find_in(folder: Option<&Path>, working_dir: &Path) -> Result<PathBuf, Box<Diagnostic>> {
    let in_folder = |name: &&str| folder.map_or_else(|| name.into(), |folder| folder.join(name));
    let found: Vec<PathBuf> = NAMES
        .iter()
        .map(in_folder)
        .filter(|file| working_dir.join(file).is_file())
        .collect();
    let shown = folder.unwrap_or(working_dir).display();
    match &found[..] {
        [only] => Ok(only.clone()),
        [] => Err(Box::new(
            Diagnostic::error(format!("there is no configuration in {shown}"))
                .detail(format!("Looked for {}", NAMES.join(", ")))
                .hint("`nstance init` writes one to start from; `--config PATH` names another"),
        )),
        several => Err(Box::new(
            Diagnostic::error(format!(
                "there are several configurations in {shown}: {}",
                several
                    .iter()
                    .filter_map(|file| file.file_name())
                    .map(|name| name.to_string_lossy())
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
            .hint("`--config PATH` says which one"),
        )),
    }
}

fn read_text(file: &Path, working_dir: &Path) -> Result<String, Box<Diagnostic>> {
    let shown = file.display();
    let absolute = working_dir.join(file);
    let failed = |error: std::io::Error| {
        let diagnostic = Diagnostic::error(format!("can't read the configuration {shown}"));
        Box::new(match error.kind() {
            std::io::ErrorKind::NotFound => diagnostic
                .detail("There is no such file")
                .hint("`nstance init` writes one to start from"),
            _ => diagnostic.detail(error.to_string()),
        })
    };
    let size = fs::metadata(&absolute).map_err(failed)?.len();
    if size > LARGEST_FILE {
        return Err(Box::new(
            Diagnostic::error(format!("the configuration is too large: {shown}")).detail(format!(
                "It has {size} bytes; {LARGEST_FILE} are the most that is read"
            )),
        ));
    }
    let bytes = fs::read(&absolute).map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = String::from_utf8_lossy(&bytes[..offset])
            .matches('\n')
            .count()
            + 1;
        Box::new(
            Diagnostic::error(format!("the configuration isn't UTF-8: {shown}"))
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
    use crate::config::source::SourceId;
    use crate::report::diagnostic::render;

    const GOOD: &str = r#"{"cluster": {"id": "c"},
        "shard": {"id": "s", "infra": {"provider": "sim", "region": "r", "zone": "z"}}}"#;

    fn shown(loaded: &Loaded, folder: &Path) -> String {
        render(&loaded.findings, &loaded.sources, false)
            .replace(&folder.display().to_string(), "FOLDER")
    }

    #[test]
    fn the_only_configuration_of_a_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("config.jsonc"), GOOD).unwrap();
        for (path, working_dir, name) in [
            (None, &*inner, "config.jsonc"),
            (Some("config.jsonc"), &inner, "config.jsonc"),
            (Some("inner"), folder.path(), "inner/config.jsonc"),
            (
                Some("inner/config.jsonc"),
                folder.path(),
                "inner/config.jsonc",
            ),
        ] {
            let loaded = load(path.map(Path::new), working_dir, &[]);
            assert_eq!(shown(&loaded, folder.path()), "", "{path:?}");
            assert!(loaded.config.is_some());
            assert_eq!(loaded.directory, inner);
            assert_eq!(loaded.sources.get(SourceId(0)).name, name);
        }
    }

    #[test]
    fn what_cannot_be_loaded_is_explained() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: Option<&str>| {
            let loaded = load(path.map(Path::new), folder.path(), &[]);
            assert!(loaded.config.is_none());
            shown(&loaded, folder.path())
        };
        insta::assert_snapshot!(at(None), @"
        error: there is no configuration in FOLDER
        Looked for nstance.jsonc, nstance.json, nstance.hcl, nstance.yaml, nstance.yml, config.jsonc
        hint: `nstance init` writes one to start from; `--config PATH` names another
        ");
        insta::assert_snapshot!(at(Some("missing.jsonc")), @"
        error: can't read the configuration missing.jsonc
        There is no such file
        hint: `nstance init` writes one to start from
        ");
        fs::write(folder.path().join("nstance.hcl"), "x = 1").unwrap();
        insta::assert_snapshot!(at(None), @"
        error: this version reads JSONC and YAML, not HCL: nstance.hcl
        hint: write the configuration as `nstance.yaml` or `nstance.jsonc`
        ");
        fs::write(
            folder.path().join("nstance.jsonc"),
            b"{\n  \"a\": \"\xff\"}",
        )
        .unwrap();
        insta::assert_snapshot!(at(None), @"
        error: there are several configurations in FOLDER: nstance.jsonc, nstance.hcl
        hint: `--config PATH` says which one
        ");
        insta::assert_snapshot!(at(Some("nstance.jsonc")), @"
        error: the configuration isn't UTF-8: nstance.jsonc
        Byte 10, on line 2, is 0xff, which can't stand there
        hint: save it as UTF-8
        ");
        fs::File::create(folder.path().join("huge.jsonc"))
            .unwrap()
            .set_len(LARGEST_FILE + 1)
            .unwrap();
        insta::assert_snapshot!(at(Some("huge.jsonc")), @"
        error: the configuration is too large: huge.jsonc
        It has 104857601 bytes; 104857600 are the most that is read
        ");
    }
}

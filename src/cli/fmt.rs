//! `nstance fmt`: formats configuration files.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::failure::{Failure, Failures};
use super::{Ending, Globals, console, exit, output, unplaced};
use crate::config::files::{self, read_text};
use crate::config::inputs::Inputs;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::format::layout;
use crate::report::diagnostic;

/// Options of `fmt`.
#[derive(Debug, Args)]
pub struct Fmt {
    /// Files, folders, or `-` for standard input [default: the configuration]
    paths: Vec<PathBuf>,
    /// Write nothing; exit with 1 if a file isn't formatted
    #[arg(long)]
    check: bool,
    /// Show the changes as a diff
    #[arg(long)]
    diff: bool,
}

/// The result for a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Formatted,
    Changed,
    /// A YAML file of a folder.
    Skipped,
    Failed,
}

/// Runs `fmt`.
pub fn run(globals: &Globals, command: &Fmt) -> Ending {
    if let [only] = &command.paths[..]
        && only == Path::new("-")
    {
        return of_standard_input(globals, command);
    }
    let mut work = Work {
        globals,
        command,
        sources: unsettled(),
        findings: Diagnostics::default(),
        files: Vec::new(),
    };
    for file in work.found() {
        let found = work.file(&file)?;
        work.files.push((file, found));
    }
    Ok(work.end())
}

struct Work<'g> {
    globals: &'g Globals,
    command: &'g Fmt,
    sources: SourceMap,
    findings: Diagnostics,
    files: Vec<(PathBuf, Outcome)>,
}

impl Work<'_> {
    /// The files to format.
    fn found(&mut self) -> Vec<PathBuf> {
        let here = here();
        let paths = if self.command.paths.is_empty() {
            self.globals.configs()
        } else {
            self.command.paths.clone()
        };
        let paths: Vec<Option<&Path>> = match &paths[..] {
            [] => vec![None],
            paths => paths.iter().map(|path| Some(&**path)).collect(),
        };
        let mut all = Vec::new();
        for path in paths {
            match files::find(path, &here, &[], &mut Inputs::default()) {
                Ok(files) => all.extend(files),
                Err(diagnostic) => self.findings.push(*diagnostic),
            }
        }
        let mut seen = std::collections::HashSet::new();
        all.retain(|file| seen.insert(file.clone()));
        all
    }

    fn file(&mut self, file: &Path) -> Result<Outcome, Failures> {
        let text = match read_text(file, &here()) {
            Ok(text) => text,
            Err(diagnostic) => {
                self.findings.push(*diagnostic);
                return Ok(Outcome::Failed);
            }
        };
        let name = console::shown(file);
        let source = self.sources.add(&*name, text);
        let laid_out = match layout(&self.sources, source) {
            Ok(Some(laid_out)) => laid_out,
            // A YAML file given by name is expected to be formatted, so report it.
            Ok(None) if self.command.paths.iter().any(|path| path == file) => {
                self.findings.push(
                    Diagnostic::error(format!("nstance doesn't format YAML: {name}"))
                        .hint("Format it with `prettier` or `yamlfmt`"),
                );
                return Ok(Outcome::Failed);
            }
            Ok(None) => return Ok(Outcome::Skipped),
            Err(findings) => {
                self.findings.extend(findings);
                return Ok(Outcome::Failed);
            }
        };
        let text = &self.sources.get(source).text;
        if **text == *laid_out {
            return Ok(Outcome::Formatted);
        }
        if self.command.diff && !self.globals.json {
            console::print(&difference(&name, text, &laid_out));
        }
        if !self.command.check {
            output::write(file, &laid_out).map_err(unplaced)?;
        }
        Ok(Outcome::Changed)
    }

    fn end(self) -> u8 {
        let globals = self.globals;
        let of = |wanted: Outcome| {
            let files = self.files.iter().filter(move |(_, found)| *found == wanted);
            files.map(|(file, _)| console::shown(file))
        };
        if globals.json {
            let files: Vec<Value> = self
                .files
                .iter()
                .filter(|(_, found)| matches!(found, Outcome::Formatted | Outcome::Changed))
                .map(|(file, found)| {
                    json!({"path": console::shown(file), "changed": *found == Outcome::Changed})
                })
                .collect();
            console::print_json(&json!({
                "format_version": "1.0",
                "files": files,
                "left": of(Outcome::Skipped).collect::<Vec<_>>(),
                "diagnostics": diagnostic::to_json(&self.findings, &self.sources),
            }));
        } else {
            if !self.command.diff {
                for file in of(Outcome::Changed) {
                    console::print(&format!("{file}\n"));
                }
            }
            if !globals.quiet {
                for file in of(Outcome::Skipped) {
                    console::error(&format!(
                        "note: skipped YAML file; use `prettier` or `yamlfmt`: {file}\n"
                    ));
                }
            }
            if !self.findings.is_empty() {
                let color = globals.colors_errors();
                console::error(&diagnostic::render(&self.findings, &self.sources, color));
            }
        }
        let differs = self.command.check && of(Outcome::Changed).next().is_some();
        if self.findings.has_errors() || differs {
            exit::ERROR
        } else {
            exit::SUCCESS
        }
    }
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// Formats standard input to standard output. A text that begins like JSON is JSONC, otherwise HCL.
fn of_standard_input(globals: &Globals, command: &Fmt) -> Ending {
    let mut bytes = Vec::new();
    let read = std::io::stdin()
        .lock()
        .take(files::LARGEST_FILE + 1)
        .read_to_end(&mut bytes);
    read.map_err(|error| unplaced(Failure::from(error)))?;
    if bytes.len() as u64 > files::LARGEST_FILE {
        let detail = files::larger_than_read(bytes.len() as u64);
        let finding = Diagnostic::error("standard input is too large").detail(detail);
        return Err(unplaced(finding));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        unplaced(Diagnostic::error("standard input isn't UTF-8").hint("Save it as UTF-8"))
    })?;
    let mut sources = unsettled();
    let source = sources.add(stdin_name(&text), text);
    match layout(&sources, source) {
        Err(findings) => {
            console::report(globals, [(&findings, &sources)]);
            Ok(exit::ERROR)
        }
        Ok(laid_out) => {
            let text = &sources.get(source).text;
            let laid_out = laid_out.unwrap_or_else(|| text.to_string());
            let differs = **text != *laid_out;
            if command.diff {
                console::print(&difference("-", text, &laid_out));
            } else if !command.check {
                console::print(&laid_out);
            }
            Ok(if command.check && differs {
                exit::ERROR
            } else {
                exit::SUCCESS
            })
        }
    }
}

/// The name of standard input in messages, with the extension of its language. HCL never begins
/// with a brace.
fn stdin_name(text: &str) -> &'static str {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else if rest.starts_with("//") || rest.starts_with('#') {
            rest.find('\n')
        } else {
            break;
        };
        rest = end.map_or("", |end| rest[end..].trim_start());
    }
    if rest.starts_with(['{', '[']) {
        "stdin.jsonc"
    } else {
        "stdin.hcl"
    }
}

fn difference(name: &str, from: &str, to: &str) -> String {
    let diff = similar::TextDiff::from_lines(from, to);
    diff.unified_diff().header(name, name).to_string()
}

/// A source map for texts that are only formatted: sensitive values are unknown.
fn unsettled() -> SourceMap {
    let mut sources = SourceMap::default();
    sources.leave_unsettled();
    sources
}

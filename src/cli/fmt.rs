//! `nstance fmt`: configurations, laid out anew.

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
    /// Files, or folders whose configuration files are meant; `-` is standard input [default: the
    /// configuration]
    paths: Vec<PathBuf>,
    /// Write nothing; exit code 1 if a file isn't laid out
    #[arg(long)]
    check: bool,
    /// Show what changes, too
    #[arg(long)]
    diff: bool,
}

/// How a file was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    LaidOut,
    Other,
    /// It is in a language without a layout.
    Left,
    Unreadable,
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
    files: Vec<(PathBuf, Found)>,
}

impl Work<'_> {
    /// The files that are meant.
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
            match files::find(path, &here, &mut Inputs::default()) {
                Ok(files) => all.extend(files),
                Err(diagnostic) => self.findings.push(*diagnostic),
            }
        }
        let mut seen = std::collections::HashSet::new();
        all.retain(|file| seen.insert(file.clone()));
        all
    }

    fn file(&mut self, file: &Path) -> Result<Found, Failures> {
        let text = match read_text(file, &here()) {
            Ok(text) => text,
            Err(diagnostic) => {
                self.findings.push(*diagnostic);
                return Ok(Found::Unreadable);
            }
        };
        let name = console::shown(file);
        let source = self.sources.add(&*name, text);
        let laid_out = match layout(&self.sources, source) {
            Ok(Some(laid_out)) => laid_out,
            Ok(None) => return Ok(Found::Left),
            Err(findings) => {
                self.findings.extend(findings);
                return Ok(Found::Unreadable);
            }
        };
        let text = &self.sources.get(source).text;
        if **text == *laid_out {
            return Ok(Found::LaidOut);
        }
        if self.command.diff && !self.globals.json {
            console::print(&difference(&name, text, &laid_out));
        }
        if !self.command.check {
            output::write(file, &laid_out).map_err(unplaced)?;
        }
        Ok(Found::Other)
    }

    fn end(self) -> u8 {
        let globals = self.globals;
        let of = |wanted: Found| {
            let files = self.files.iter().filter(move |(_, found)| *found == wanted);
            files.map(|(file, _)| console::shown(file))
        };
        if globals.json {
            let files: Vec<Value> = self
                .files
                .iter()
                .filter(|(_, found)| matches!(found, Found::LaidOut | Found::Other))
                .map(|(file, found)| {
                    json!({"path": console::shown(file), "changed": *found == Found::Other})
                })
                .collect();
            console::print_json(&json!({
                "format_version": "1.0",
                "files": files,
                "left": of(Found::Left).collect::<Vec<_>>(),
                "diagnostics": diagnostic::to_json(&self.findings, &self.sources),
            }));
        } else {
            if !self.command.diff {
                for file in of(Found::Other) {
                    console::print(&format!("{file}\n"));
                }
            }
            if !globals.quiet {
                for file in of(Found::Left) {
                    console::error(&format!("YAML is left as it is: {file}\n"));
                }
            }
            if !self.findings.is_empty() {
                let color = globals.colors_errors();
                console::error(&diagnostic::render(&self.findings, &self.sources, color));
            }
        }
        let differs = self.command.check && of(Found::Other).next().is_some();
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

/// From standard input to standard output. Its language is HCL unless it begins as JSON does.
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

/// What messages call it; the extension says the language. In HCL nothing begins with a brace.
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

/// Texts that are only laid out: nobody asks which of their values are secrets.
fn unsettled() -> SourceMap {
    let mut sources = SourceMap::default();
    sources.leave_unsettled();
    sources
}

//! `nstance convert`: a configuration in another language.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::console;
use super::failure::{Failure, Failures};
use super::session::Session;
use super::{Ending, Globals, exit, output, unplaced};
use crate::config::check::Purpose;
use crate::config::conversion::Input;
use crate::config::files::{self, read_text};
use crate::config::inputs::Inputs;
use crate::config::source::Language;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::format::convert::convert;
use crate::report::diagnostic;

/// Options of `convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// The file [default: the configuration]
    file: Option<PathBuf>,
    /// The language
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    to: Target,
    /// Write it to a file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Target {
    Jsonc,
    Yaml,
    Hcl,
}

/// Runs `convert`.
pub fn run(globals: &Globals, command: &Convert) -> Ending {
    let file = the_only_file(globals, command.file.as_deref()).map_err(unplaced)?;
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let text = read_text(&file, &here).map_err(|diagnostic| unplaced(*diagnostic))?;
    let to = match command.to {
        Target::Jsonc => Language::Jsonc,
        Target::Yaml => Language::Yaml,
        Target::Hcl => Language::Hcl,
    };
    let whole = whole(globals, &file, &here);
    let input = Input {
        file: &file,
        original: &file,
        whole: &whole,
        text: &text,
        working_dir: &here,
        given: &globals.given(),
    };
    let (sources, converted) = convert(&input, to);
    let converted = match converted {
        Ok(converted) => converted,
        Err(mut findings) => {
            if whole.is_empty()
                && has_siblings(&file, &here)
                && let Some(last) = (&mut findings).into_iter().last()
            {
                last.hints.push(format!(
                    "Where the file is a part of a configuration, name that too: nstance -c {} convert {}",
                    console::shown(folder_of(&file)),
                    console::shown(&file)
                ));
            }
            let mut failures = Failures::default();
            failures.push(findings.into(), sources);
            return Err(failures);
        }
    };
    match &command.out {
        // The user's own text.
        None => console::print_in_clear(&converted.text),
        Some(path) => output::write(path, &converted.text).map_err(unplaced)?,
    }
    if !globals.quiet {
        if let Some(out) = &command.out
            && leaves_paths_behind(&file, out, &converted.text)
        {
            console::error(
                "note: paths in it (`include`, `file:`) are as they were, and now start at the \
                 folder it was written to\n",
            );
        }
        for note in &converted.notes {
            console::error(&format!(
                "note: {}: {}\n",
                sources.place(note.span),
                note.text
            ));
        }
        if !converted.findings.is_empty() {
            let color = globals.colors_errors();
            console::error(&diagnostic::render(&converted.findings, &sources, color));
        }
    }
    Ok(exit::SUCCESS)
}

/// The files of the configuration that was named beside the file, if that is one of them. Messages
/// pass a net, which has to know what is secret: so what is converted is loaded in any case.
fn whole(globals: &Globals, file: &Path, here: &Path) -> Vec<PathBuf> {
    let identity = |path: &Path| here.join(path).canonicalize().ok();
    for config in globals.configs() {
        let loaded = Session::read(globals, Purpose::Render, Some(&config));
        let names = loaded
            .sources
            .iter()
            .map(|(_, source)| PathBuf::from(&source.name));
        // Values of variables have names too, which aren't files'.
        let files: Vec<PathBuf> = names.filter(|path| here.join(path).is_file()).collect();
        if files.len() > 1 && files.iter().any(|path| identity(path) == identity(file)) {
            return files;
        }
    }
    Session::read(globals, Purpose::Render, Some(file));
    Vec::new()
}

/// The folder that a file lies in, as a person would name it.
fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Whether there are other files of a configuration beside a file.
fn has_siblings(file: &Path, here: &Path) -> bool {
    files::find(Some(folder_of(file)), here, &mut Inputs::default())
        .is_ok_and(|found| found.len() > 1)
}

/// Whether a text that names other files by relative paths was written to another folder.
fn leaves_paths_behind(file: &Path, out: &Path, text: &str) -> bool {
    let folder = |path: &Path| {
        let absolute = std::path::absolute(path).ok()?;
        absolute.parent()?.canonicalize().ok()
    };
    let names_files = ["include", "file:", "file(", "fileset(", "filebase64("];
    folder(file) != folder(out) && names_files.iter().any(|word| text.contains(word))
}

/// Each file is converted by itself; what it includes may stay in its language.
fn the_only_file(globals: &Globals, named: Option<&Path>) -> Result<PathBuf, Failure> {
    let configs = match named {
        Some(file) => vec![file.to_owned()],
        None => globals.configs(),
    };
    let path: Option<&Path> = match &configs[..] {
        [] => None,
        [only] => Some(only),
        several => return Err(one_by_one(several)),
    };
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let found = files::find(path, &here, &mut Inputs::default());
    let mut found = found.map_err(|diagnostic| Failure::from(Diagnostics::from(*diagnostic)))?;
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (last, _) => {
            found.extend(last);
            Err(one_by_one(&found))
        }
    }
}

fn one_by_one(files: &[PathBuf]) -> Failure {
    let names: Vec<String> = files.iter().map(|file| console::shown(file)).collect();
    Failure::new(
        Diagnostic::error("files are converted one by one, and these are several")
            .detail(names.join("\n"))
            .hint("Name one of them: `nstance convert FILE`"),
    )
}

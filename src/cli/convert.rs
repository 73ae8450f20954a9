//! `nstance convert`: a configuration as one file in another language.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::failure::Failures;
use super::{Ending, Globals, console, exit, output, unplaced};
use crate::config::load::document;
use crate::config::source::Language;
use crate::diagnostic::Diagnostic;
use crate::format::convert::convert;
use crate::redact;
use crate::report::diagnostic;

/// Options of `convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// The file or folder [default: the configuration]
    file: Option<PathBuf>,
    /// The language
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    to: Target,
    /// Write to a file instead of standard output
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
    let configs = match &command.file {
        Some(file) => vec![file.clone()],
        None => globals.configs(),
    };
    if configs.len() > 1 {
        let names: Vec<String> = configs.iter().map(|path| console::shown(path)).collect();
        return Err(unplaced(
            Diagnostic::error("cannot convert several configurations at once")
                .detail(names.join("\n"))
                .hint("Name one of them: `nstance convert FILE`"),
        ));
    }
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let path = configs.first().map(PathBuf::as_path);
    let mut document = document(path, &here, &globals.given());
    redact::know(&document.secrets.0);
    let to = match command.to {
        Target::Jsonc => Language::Jsonc,
        Target::Yaml => Language::Yaml,
        Target::Hcl => Language::Hcl,
    };
    let text = match convert(&document, to) {
        Ok(text) => text,
        Err(findings) => {
            let mut failures = Failures::default();
            let sources = std::mem::take(&mut document.sources);
            failures.push(findings.into(), sources);
            return Err(failures);
        }
    };
    match &command.out {
        // The user asked for the configuration itself, so don't mask it.
        None => console::print_in_clear(&text),
        Some(path) => output::write(path, &text).map_err(unplaced)?,
    }
    if !globals.quiet {
        console::error(
            "note: variables, locals and for_each are replaced by their values; comments are left \
             out\n",
        );
        if let Some(out) = &command.out
            && text.contains("file:")
            && is_elsewhere(out, &document.directory)
        {
            console::error("note: `file:` paths now start from the folder of the new file\n");
        }
        if !document.findings.is_empty() {
            let color = globals.colors_errors();
            console::error(&diagnostic::render(
                &document.findings,
                &document.sources,
                color,
            ));
        }
    }
    Ok(exit::SUCCESS)
}

/// Whether a file is in another folder.
fn is_elsewhere(file: &Path, folder: &Path) -> bool {
    let parent = std::path::absolute(file).ok();
    let parent = parent.and_then(|file| file.parent()?.canonicalize().ok());
    parent != folder.canonicalize().ok()
}

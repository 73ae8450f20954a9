//! `nstance userdata`: merge and decode userdata as an instance would.

mod decode;
mod merge;
mod recorded;

use std::io::Read as _;
use std::path::Path;

use clap::Subcommand;

use super::failure::Failure;
use super::{Ending, Globals};
use crate::config::files::{LARGEST_FILE, larger_than_read};
use crate::diagnostic::Diagnostic;

/// What there is to do with user data.
#[derive(Debug, Subcommand)]
pub enum UserdataCommand {
    /// Merge files in layers, the lowest first, without a configuration
    Merge(merge::Merge),
    /// Open user data: base64, gzip, multi-part messages, archives
    Decode(decode::Decode),
}

/// Runs `userdata`.
pub fn run(globals: &Globals, command: &UserdataCommand) -> Ending {
    match command {
        UserdataCommand::Merge(command) => merge::run(globals, command),
        UserdataCommand::Decode(command) => decode::run(globals, command),
    }
}

/// The bytes of a file; `-` is standard input.
///
/// Fails if it can't be read.
fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let shown = file.display();
    let failed = |error: std::io::Error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => error.to_string(),
        };
        Failure::say(format!("can't read userdata: {why}: {shown}"))
    };
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        let mut input = std::io::stdin().lock().take(LARGEST_FILE + 1);
        input.read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file)
            .and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes))
    };
    read.map_err(failed)?;
    if bytes.len() as u64 > LARGEST_FILE {
        let detail = larger_than_read(bytes.len() as u64);
        let finding = Diagnostic::error(format!("the userdata is too large: {shown}"));
        return Err(finding.detail(detail).into());
    }
    Ok(bytes)
}

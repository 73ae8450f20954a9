//! `nstance userdata decode`: decode userdata as clouds and instances store it.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use nstance_cloudinit::opened::open_fetching;
use nstance_cloudinit::userdata::Fetch;

use super::super::failure::Failure;
use super::super::{Ending, Globals, console, exit, output, unplaced};
use super::{read, recorded};
use crate::report::userdata;
use crate::resolve::fetch::fetch;

/// Options of `userdata decode`.
#[derive(Debug, Args)]
pub struct Decode {
    /// A file, `-`, or the address or id of a recorded instance
    #[arg(value_name = "FILE|ADDR|ID")]
    file: PathBuf,
    /// Fetch what `#include` names, and open that too
    #[arg(long)]
    fetch: bool,
    /// Only what this part says, byte for byte; parts are counted from 1
    #[arg(long, value_name = "N")]
    part: Option<usize>,
    /// Write it to a file
    #[arg(long, value_name = "FILE", requires = "part")]
    out: Option<PathBuf>,
}

/// Runs `userdata decode`.
pub(super) fn run(globals: &Globals, command: &Decode) -> Ending {
    let bytes = match recorded::find(globals, &command.file)? {
        Some(bytes) => bytes,
        None => read(&command.file).map_err(unplaced)?,
    };
    let fetch = command.fetch.then_some(&fetch as &Fetch<'_>);
    let opened = open_fetching(&bytes, fetch);
    if let Some(number) = command.part {
        let leaves = opened.leaves();
        let Some(part) = number.checked_sub(1).and_then(|index| leaves.get(index)) else {
            let failure = Failure::say(format!(
                "there is no part {number}: there {}",
                match leaves.len() {
                    1 => "is one".to_owned(),
                    several => format!("are {several}"),
                }
            ));
            return Err(unplaced(failure));
        };
        match &command.out {
            Some(path) => output::write(path, &part.content).map_err(unplaced)?,
            None => {
                // The user's own bytes, so don't mask them.
                let mut out = std::io::stdout().lock();
                let _ = out.write_all(&part.content);
                let _ = out.flush();
            }
        }
        return Ok(exit::SUCCESS);
    }
    if globals.json {
        console::print_json(&userdata::opened_json(&opened));
    } else {
        console::print_in_clear(&userdata::opened(&opened));
    }
    Ok(exit::SUCCESS)
}

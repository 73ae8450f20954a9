//! `nstance schema`: the JSON Schema of configurations, for editors.

use std::path::PathBuf;

use clap::Args;

use super::{Ending, console, exit, output, unplaced};
use crate::config::schema::{json_schema, part_schema};

/// Options of `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// Print the schema of one of several files: no key is required
    #[arg(long)]
    part: bool,
    /// Write it to a file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs `schema`.
pub fn run(command: &Schema) -> Ending {
    let schema = if command.part {
        part_schema()
    } else {
        json_schema()
    };
    match &command.out {
        None => console::print_json(&schema),
        Some(path) => {
            let text = serde_json::to_string_pretty(&schema).expect("a schema's keys are strings");
            output::write(path, &(text + "\n")).map_err(unplaced)?;
        }
    }
    Ok(exit::SUCCESS)
}

//! `nstance userdata merge`: merge files as layers of userdata.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::{Args, ValueEnum};
use nstance_cloudinit::layers::{Joined, Layer, LayerPart, Mode, Options, Place, join_with};
use nstance_cloudinit::userdata::{Bodies, gather};
use serde_json::{Value, json};

use super::super::failure::{Failure, Failures};
use super::super::{Ending, Globals, console, exit, output, unplaced};
use super::read;
use crate::config::source::{SourceId, SourceMap};
use crate::credentials::shown_url;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::report::{diagnostic, userdata};
use crate::resolve::fetch::fetch;

/// Options of `userdata merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// The files, the lowest layer first; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How each joins the ones before it
    #[arg(long, value_enum, default_value = "cloud-init")]
    mode: Choice,
    /// Say of each line which file and line it came from, and what was lost
    #[arg(long)]
    explain: bool,
    /// Merge as cloud-init's documentation says
    ///
    /// It differs from the program in stacks of mergers and in `allow_delete` of absent keys. No
    /// machine merges like that.
    #[arg(long)]
    as_documented: bool,
    /// Fetch the URLs of `#include`, which machines fetch otherwise
    #[arg(long)]
    fetch: bool,
    /// Write it to a file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The last one takes the place of all others
    Replace,
    /// All go out as parts, which the machine merges
    Append,
    /// As the machine would merge them
    CloudInit,
    /// Mappings merge, lists append without repeating, later scalars win
    Nstance,
}

impl Choice {
    fn mode(self) -> Mode {
        match self {
            Self::Replace => Mode::Replace,
            Self::Append => Mode::Append,
            Self::CloudInit => Mode::CloudInit,
            Self::Nstance => Mode::Nstance,
        }
    }
}

/// Runs `userdata merge`.
pub(super) fn run(globals: &Globals, command: &Merge) -> Ending {
    if command.as_documented && command.mode != Choice::CloudInit {
        let finding = Diagnostic::error("only the mode `cloud-init` can merge as documented")
            .hint("Leave out `--as-documented`, or `--mode`");
        return Err(unplaced(finding));
    }
    let files = Files::read(command).map_err(unplaced)?;
    let options = Options {
        as_documented: command.as_documented,
    };
    let joined = join_with(&files.layers, options);
    let findings = files.findings(&joined);
    if findings.has_errors() {
        let mut failures = Failures::default();
        failures.push(Failure::from(findings), files.sources);
        return Err(failures);
    }
    if let Some(path) = &command.out {
        output::write(path, &joined.bytes).map_err(unplaced)?;
    }
    if globals.json {
        console::print_json(&files.document(command, &joined, &findings));
        return Ok(exit::SUCCESS);
    }
    if command.explain {
        console::print_in_clear(&userdata::explained(&joined, &|place| files.named(place)));
    } else if command.out.is_none() {
        // The user's own text, unmasked; it may not be UTF-8.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&joined.bytes);
        let _ = out.flush();
    }
    if !globals.quiet && !findings.is_empty() {
        let color = globals.colors_errors();
        console::error(&diagnostic::render(&findings, &files.sources, color));
    }
    Ok(exit::SUCCESS)
}

/// The contents of all URLs that a file includes, recursively.
///
/// Fails if one can't be fetched.
fn included(content: &[u8]) -> Result<Arc<Bodies>, Failure> {
    let mut failed = None;
    let gathered = gather(content, None, &mut |url| match fetch(url) {
        Ok(body) => Some(body.into()),
        Err(error) => {
            failed.get_or_insert_with(|| format!("{} can't be fetched: {error}", shown_url(url)));
            None
        }
    });
    match failed {
        None => Ok(Arc::new(gathered.bodies)),
        Some(why) => Err(Failure::say(why)),
    }
}

/// The files; each is a layer.
struct Files {
    layers: Vec<Layer>,
    /// The source of each layer; `None` for the empty layer below all files.
    ids: Vec<Option<SourceId>>,
    sources: SourceMap,
}

impl Files {
    fn read(command: &Merge) -> Result<Self, Failure> {
        // The mode of the lowest layer has no effect. An empty layer below the files makes the
        // parts of a single file merge too.
        let mut files = Self {
            layers: vec![Layer::default()],
            ids: vec![None],
            sources: SourceMap::default(),
        };
        // It isn't known which of these values are secrets.
        files.sources.leave_unsettled();
        for file in &command.files {
            let content = read(file)?;
            let name = console::shown(file);
            let text = String::from_utf8_lossy(&content).into_owned();
            files.ids.push(Some(files.sources.add_value(&*name, text)));
            files.layers.push(Layer {
                included: command.fetch.then(|| included(&content)).transpose()?,
                name,
                mode: command.mode.mode(),
                parts: vec![LayerPart::new(content)],
            });
        }
        Ok(files)
    }

    /// The findings of the merge, with their places.
    fn findings(&self, joined: &Joined) -> Diagnostics {
        let mut findings = Diagnostics::default();
        for finding in &joined.findings {
            let span = finding.place.as_ref().and_then(|place| {
                let id = self.ids[place.layer]?;
                userdata::span(&self.sources, id, place)
            });
            let name = |place: &Place| self.named(place);
            findings.push(userdata::diagnostic(finding, span, &name));
        }
        findings
    }

    /// A place in messages: `base.yaml:3`.
    fn named(&self, place: &Place) -> String {
        userdata::named(&self.layers[place.layer].name, place)
    }

    fn document(&self, command: &Merge, joined: &Joined, findings: &Diagnostics) -> Value {
        let name = |place: &Place| self.named(place);
        let mut document = json!({
            "format_version": "1.0",
            "mode": command.mode.mode().name(),
            "size": joined.bytes.len(),
        });
        match std::str::from_utf8(&joined.bytes) {
            Ok(text) => document["userdata"] = text.into(),
            Err(_) => document["userdata_base64"] = BASE64.encode(&joined.bytes).into(),
        }
        let files = self.layers.iter().zip(&joined.shares).skip(1);
        document["shares"] = files
            .map(|(layer, bytes)| json!({"file": layer.name, "bytes": bytes}))
            .collect();
        document["lost"] = userdata::lost_json(joined, &name);
        if command.explain {
            document["lines"] = userdata::lines_json(joined, &name);
        }
        document["diagnostics"] = diagnostic::to_json(findings, &self.sources);
        document
    }
}

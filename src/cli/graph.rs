//! `nstance graph`: what depends on what.

use clap::{Args, ValueEnum};

use super::console;
use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::session::Session;
use super::{Ending, Globals};
use crate::config::check::Purpose;
use crate::diagnostic::Diagnostics;
use crate::graph::Node;
use crate::pipeline::compile_all;
use crate::report::graph::{self as report, Picture};
use crate::resolve::fetch;

/// Options of `graph`.
#[derive(Debug, Args)]
pub struct GraphCommand {
    /// The language of the picture
    #[arg(long, value_enum, default_value = "dot")]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Graphviz
    Dot,
    /// Mermaid
    Mermaid,
    /// JSON
    Json,
}

/// Runs `graph`.
pub fn run(globals: &Globals, command: &GraphCommand) -> Ending {
    let fleet = Fleet::load(globals, Purpose::Render)?;
    let format = if globals.json {
        Format::Json
    } else {
        command.format
    };
    let mut pictures = Vec::new();
    let form = Form::Plain.documents_or(matches!(format, Format::Json));
    let code = fleet.each(form, |_, session| {
        let picture = picture(session)?;
        if let Format::Json = format {
            return Ok(Reply::document(report::json(&picture)));
        }
        pictures.push((session.label.clone(), picture));
        Ok(Reply::text(""))
    });
    // All shards in one picture, since that is what a picture is made of.
    match format {
        Format::Dot if !pictures.is_empty() => console::print(&report::dot(&pictures)),
        Format::Mermaid if !pictures.is_empty() => console::print(&report::mermaid(&pictures)),
        _ => {}
    }
    Ok(code)
}

fn picture(session: &Session<'_>) -> Result<Picture, Failure> {
    let mut findings = Diagnostics::default();
    let config = session.config();
    let bodies = fetch::bodies(
        config,
        &session.loaded.directory,
        false,
        |_| None,
        &mut findings,
    );
    let compiled = compile_all(config, &session.loaded.sources, &bodies, &mut findings);
    if findings.has_errors() {
        return Err(findings.into());
    }
    let identify = |node: &Node| match node {
        Node::Image(name) => (format!("image.{name}"), "image", name.to_string()),
        Node::Template(name) => (format!("template.{name}"), "template", name.to_string()),
        Node::Group(name) => (format!("group.{name}"), "group", name.to_string()),
    };
    Ok(Picture {
        nodes: compiled.graph.nodes().map(identify).collect(),
        edges: compiled
            .graph
            .edges()
            .map(|(from, to)| (identify(from).0, identify(to).0))
            .collect(),
    })
}

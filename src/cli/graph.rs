//! `nstance graph`: what depends on what.

use clap::{Args, ValueEnum};

use super::console;
use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::session::Session;
use super::{Ending, Globals};
use crate::check::Purpose;
use crate::graph::Node;
use crate::pipeline::prepare;
use crate::report::graph::{self as report, Picture};

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
    // All shards go into one picture.
    match format {
        Format::Dot if !pictures.is_empty() => console::print(&report::dot(&pictures)),
        Format::Mermaid if !pictures.is_empty() => console::print(&report::mermaid(&pictures)),
        _ => {}
    }
    Ok(code)
}

fn picture(session: &Session<'_>) -> Result<Picture, Failure> {
    let (config, loaded) = (session.config(), &session.loaded);
    let (sources, directory) = (&loaded.sources, &loaded.directory);
    let prepared = prepare(config, sources, directory, false, |_| None, false)?;
    let graph = &prepared.compiled.graph;
    let identify = |node: &Node| match node {
        Node::Image(name) => (format!("image.{name}"), "image", name.to_string()),
        Node::Template(name) => (format!("template.{name}"), "template", name.to_string()),
        Node::Group(name) => (format!("group.{name}"), "group", name.to_string()),
    };
    Ok(Picture {
        nodes: graph.nodes().map(identify).collect(),
        edges: graph
            .edges()
            .map(|(from, to)| (identify(from).0, identify(to).0))
            .collect(),
    })
}

//! `nstance graph`: what depends on what.

use clap::{Args, ValueEnum};

use super::session::{self, Session};
use super::{Ending, Globals, exit, placed};
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
    let session = Session::load(globals, Purpose::Render)?;
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
        drop(compiled);
        return placed(session, Err(findings.into()));
    }
    let identify = |node: &Node| match node {
        Node::Image(name) => (format!("image.{name}"), "image", name.to_string()),
        Node::Template(name) => (format!("template.{name}"), "template", name.to_string()),
        Node::Group(name) => (format!("group.{name}"), "group", name.to_string()),
    };
    let pictures = [(
        None,
        Picture {
            nodes: compiled.graph.nodes().map(identify).collect(),
            edges: compiled
                .graph
                .edges()
                .map(|(from, to)| (identify(from).0, identify(to).0))
                .collect(),
        },
    )];
    let format = if globals.json {
        Format::Json
    } else {
        command.format
    };
    match format {
        Format::Dot => session::print(&report::dot(&pictures)),
        Format::Mermaid => session::print(&report::mermaid(&pictures)),
        Format::Json => session::print_json(&report::json(&pictures[0].1)),
    }
    Ok(exit::SUCCESS)
}

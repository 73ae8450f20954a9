//! Draws the dependency graph.
//!
//! In: nodes and edges. Out: Graphviz's DOT, Mermaid, or JSON. Must not: compute a layout.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::json::FORMAT_VERSION;
use crate::address::in_shard;

/// A graph to draw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// The id, kind (`image`, `template` or `group`) and label of each node.
    pub nodes: Vec<(String, &'static str, String)>,
    /// Edges from a node to its dependency, by id.
    pub edges: Vec<(String, String)>,
}

/// Graphviz's DOT for one shard, or for several with a frame around each.
pub fn dot(pictures: &[(Option<String>, Picture)]) -> String {
    let mut text = String::from("digraph nstance {\n  rankdir = \"RL\"\n");
    for (number, (shard, picture)) in pictures.iter().enumerate() {
        let indent = if shard.is_some() { "    " } else { "  " };
        if let Some(shard) = shard {
            let label = dot_text(shard);
            let _ = writeln!(text, "  subgraph cluster_{number} {{\n    label = {label}");
        }
        // Each shard has its own nodes, even with equal names.
        let name = |id: &str| dot_text(&in_shard(shard.as_deref(), id));
        for (id, kind, label) in &picture.nodes {
            let shape = match *kind {
                "image" => "cylinder",
                "template" => "note",
                _ => "box",
            };
            let (id, label) = (name(id), dot_text(label));
            let _ = writeln!(text, "{indent}{id} [label = {label}, shape = \"{shape}\"]");
        }
        for (from, to) in &picture.edges {
            let _ = writeln!(text, "{indent}{} -> {}", name(from), name(to));
        }
        if shard.is_some() {
            text.push_str("  }\n");
        }
    }
    text.push_str("}\n");
    text
}

fn dot_text(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}

/// Mermaid for one shard, or for several with a frame around each. Nodes are numbered, since
/// Mermaid's ids are restricted.
pub fn mermaid(pictures: &[(Option<String>, Picture)]) -> String {
    let mut text = String::from("flowchart RL\n");
    let mut next = 0;
    for (index, (shard, picture)) in pictures.iter().enumerate() {
        let numbers: HashMap<&str, usize> = picture
            .nodes
            .iter()
            .zip(next..)
            .map(|((id, _, _), number)| (&**id, number))
            .collect();
        let indent = if shard.is_some() { "    " } else { "  " };
        if let Some(shard) = shard {
            let label = mermaid_text(shard);
            let _ = writeln!(text, "  subgraph s{index}[\"{label}\"]");
        }
        for (id, kind, label) in &picture.nodes {
            let (open, close) = match *kind {
                "image" => ("[(", ")]"),
                "template" => ("(", ")"),
                _ => ("[", "]"),
            };
            let (number, label) = (numbers[&**id], mermaid_text(label));
            let _ = writeln!(text, "{indent}n{number}{open}\"{label}\"{close}");
        }
        for (from, to) in &picture.edges {
            // An edge to a missing node would make Mermaid draw it without a label.
            if let (Some(from), Some(to)) = (numbers.get(&**from), numbers.get(&**to)) {
                let _ = writeln!(text, "{indent}n{from} --> n{to}");
            }
        }
        if shard.is_some() {
            text.push_str("  end\n");
        }
        next += picture.nodes.len();
    }
    text
}

fn mermaid_text(text: &str) -> String {
    text.replace('#', "#35;")
        .replace('"', "#quot;")
        .replace('\n', "<br>")
}

/// JSON.
pub fn json(picture: &Picture) -> Value {
    let nodes: Vec<Value> = picture
        .nodes
        .iter()
        .map(|(id, kind, label)| json!({"id": id, "kind": kind, "label": label}))
        .collect();
    let edges: Vec<Value> = picture
        .edges
        .iter()
        .map(|(from, to)| json!({"from": from, "to": to}))
        .collect();
    json!({"format_version": FORMAT_VERSION, "nodes": nodes, "edges": edges})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Picture {
        let node = |id: &str, kind, label: &str| (id.to_owned(), kind, label.to_owned());
        Picture {
            nodes: vec![
                node("image.debian", "image", "debian"),
                node("template.knd", "template", "knd"),
                node("default/web", "group", "default/web\n\"3\" #instances"),
            ],
            edges: vec![
                ("template.knd".to_owned(), "image.debian".to_owned()),
                ("default/web".to_owned(), "template.knd".to_owned()),
            ],
        }
    }

    #[test]
    fn a_graph_in_dot() {
        insta::assert_snapshot!(dot(&[(None, picture())]), @r#"
        digraph nstance {
          rankdir = "RL"
          "image.debian" [label = "debian", shape = "cylinder"]
          "template.knd" [label = "knd", shape = "note"]
          "default/web" [label = "default/web\n\"3\" #instances", shape = "box"]
          "template.knd" -> "image.debian"
          "default/web" -> "template.knd"
        }
        "#);
    }

    #[test]
    fn a_graph_in_mermaid() {
        insta::assert_snapshot!(mermaid(&[(None, picture())]), @r#"
        flowchart RL
          n0[("debian")]
          n1("knd")
          n2["default/web<br>#quot;3#quot; #35;instances"]
          n1 --> n0
          n2 --> n1
        "#);
    }

    #[test]
    fn several_shards_in_one_picture() {
        let shards = ["a", "b"].map(|name| (Some(name.to_owned()), picture()));
        insta::assert_snapshot!("shards_in_dot", dot(&shards));
        insta::assert_snapshot!("shards_in_mermaid", mermaid(&shards));
    }

    #[test]
    fn a_graph_in_json() {
        let value = json(&picture());
        assert_eq!(
            value["nodes"][1],
            json!({"id": "template.knd", "kind": "template", "label": "knd"})
        );
        assert_eq!(
            value["edges"][1],
            json!({"from": "default/web", "to": "template.knd"})
        );
    }
}

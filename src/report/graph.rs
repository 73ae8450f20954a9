//! The dependency graph as a picture.
//!
//! In: nodes and edges. Out: Graphviz's DOT, Mermaid, or JSON. May not: lay anything out.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::json::FORMAT_VERSION;

/// A graph to be drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// Id, kind (`image`, `template` or `group`) and label of each node.
    pub nodes: Vec<(String, &'static str, String)>,
    /// From what depends to what it depends on, by id.
    pub edges: Vec<(String, String)>,
}

/// Graphviz's DOT.
pub fn dot(picture: &Picture) -> String {
    let mut text = String::from("digraph nstance {\n  rankdir = \"RL\"\n");
    for (id, kind, label) in &picture.nodes {
        let shape = match *kind {
            "image" => "cylinder",
            "template" => "note",
            _ => "box",
        };
        let (id, label) = (dot_text(id), dot_text(label));
        let _ = writeln!(text, "  {id} [label = {label}, shape = \"{shape}\"]");
    }
    for (from, to) in &picture.edges {
        let _ = writeln!(text, "  {} -> {}", dot_text(from), dot_text(to));
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

/// Mermaid. Its ids may hold little, so that nodes are numbered.
pub fn mermaid(picture: &Picture) -> String {
    let numbers: HashMap<&str, usize> = picture
        .nodes
        .iter()
        .enumerate()
        .map(|(number, (id, _, _))| (&**id, number))
        .collect();
    let mut text = String::from("flowchart RL\n");
    for (number, (_, kind, label)) in picture.nodes.iter().enumerate() {
        let (open, close) = match *kind {
            "image" => ("[(", ")]"),
            "template" => ("(", ")"),
            _ => ("[", "]"),
        };
        let _ = writeln!(text, "  n{number}{open}\"{}\"{close}", mermaid_text(label));
    }
    for (from, to) in &picture.edges {
        // An edge to what isn't drawn would draw it, without a label.
        if let (Some(from), Some(to)) = (numbers.get(&**from), numbers.get(&**to)) {
            let _ = writeln!(text, "  n{from} --> n{to}");
        }
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
        insta::assert_snapshot!(dot(&picture()), @r#"
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
        insta::assert_snapshot!(mermaid(&picture()), @r#"
        flowchart RL
          n0[("debian")]
          n1("knd")
          n2["default/web<br>#quot;3#quot; #35;instances"]
          n1 --> n0
          n2 --> n1
        "#);
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

//! What depends on what: images → templates → groups, and group → group.
//!
//! In: a configuration, and the images that templates and groups read. Out: the order in which
//! groups are planned and applied, and the picture of it all. May not: resolve anything.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use petgraph::algo::{tarjan_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};

use crate::address::GroupName;
use crate::config::model::Config;
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};

/// One thing of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// An image.
    Image(Arc<str>),
    /// A template.
    Template(Arc<str>),
    /// A group.
    Group(GroupName),
}

/// The dependencies of a configuration; an edge leads from what is needed to what needs it.
#[derive(Debug)]
pub struct Graph {
    edges: DiGraph<Node, ()>,
    /// Groups, each after those it depends on; otherwise as written.
    pub order: Vec<GroupName>,
    /// The groups that each depends on, as written.
    pub dependencies: HashMap<GroupName, Vec<GroupName>>,
}

/// Builds the graph. `images_of` names the images that a group's merged templates read. Unknown
/// names and cycles become findings; the order is then as good as it can be.
pub fn build(
    config: &Config,
    images_of: &HashMap<GroupName, BTreeSet<Arc<str>>>,
    findings: &mut Diagnostics,
) -> Graph {
    let mut graph = DiGraph::new();
    let images: HashMap<_, _> = config
        .images
        .keys()
        .map(|name| {
            (
                Arc::clone(name),
                graph.add_node(Node::Image(Arc::clone(name))),
            )
        })
        .collect();
    let templates: HashMap<_, _> = config
        .templates
        .keys()
        .map(|name| {
            (
                Arc::clone(name),
                graph.add_node(Node::Template(Arc::clone(name))),
            )
        })
        .collect();
    let groups: HashMap<_, _> = config
        .groups
        .iter()
        .map(|group| {
            (
                group.name.clone(),
                graph.add_node(Node::Group(group.name.clone())),
            )
        })
        .collect();
    let mut dependencies: HashMap<GroupName, Vec<GroupName>> = HashMap::new();
    // Asking the graph whether it has an edge walks all edges of a node, and a template may have
    // thousands.
    let mut drawn: HashSet<(NodeIndex, NodeIndex)> = HashSet::new();
    let mut draw = |from: NodeIndex, to: NodeIndex, graph: &mut DiGraph<Node, ()>| {
        if drawn.insert((from, to)) {
            graph.add_edge(from, to, ());
        }
    };
    for group in &config.groups {
        let index = groups[&group.name];
        let template = group
            .template
            .as_ref()
            .and_then(|name| templates.get(&name.value));
        if let Some(template) = template {
            draw(*template, index, &mut graph);
        }
        for image in images_of.get(&group.name).into_iter().flatten() {
            if let Some(image) = images.get(image) {
                // What a group reads it reads through its template, where it has one.
                draw(*image, *template.unwrap_or(&index), &mut graph);
            }
        }
        for name in &group.depends_on {
            let full = if name.value.contains('/') {
                name.value.parse().ok()
            } else {
                Some(GroupName::new(group.name.tenant(), &name.value))
            };
            match full.and_then(|full| Some((*groups.get(&full)?, full))) {
                Some((needed, full)) => {
                    draw(needed, index, &mut graph);
                    dependencies
                        .entry(group.name.clone())
                        .or_default()
                        .push(full);
                }
                None => findings.push(unknown_group(config, &name.value, name.span)),
            }
        }
    }
    report_cycles(config, &graph, findings);
    let order = order(config, &graph, &groups);
    Graph {
        edges: graph,
        order,
        dependencies,
    }
}

fn unknown_group(config: &Config, name: &str, span: crate::config::source::Span) -> Diagnostic {
    let known: Vec<String> = config
        .groups
        .iter()
        .map(|group| group.name.to_string())
        .collect();
    let short = config.groups.iter().map(|group| group.name.name());
    let near = nearest(name, known.iter().map(String::as_str).chain(short));
    Diagnostic::error(format!("group `{name}` isn't defined"))
        .at(span, "no group has this name")
        .hint(near.map_or_else(
            || "Name a group of the same tenant, or `tenant/group`".to_owned(),
            |near| format!("there is a group `{near}`"),
        ))
}

fn report_cycles(config: &Config, graph: &DiGraph<Node, ()>, findings: &mut Diagnostics) {
    for members in tarjan_scc(graph) {
        let is_cycle = members.len() > 1
            || members
                .first()
                .is_some_and(|only| graph.find_edge(*only, *only).is_some());
        if !is_cycle {
            continue;
        }
        let mut names: Vec<&GroupName> = members
            .iter()
            .filter_map(|index| match &graph[*index] {
                Node::Group(name) => Some(name),
                Node::Image(_) | Node::Template(_) => None,
            })
            .collect();
        names.sort();
        let path: Vec<String> = names
            .iter()
            .chain(names.first())
            .map(ToString::to_string)
            .collect();
        let mut finding =
            Diagnostic::error("groups depend on each other in a circle").detail(path.join(" → "));
        for (index, name) in names.iter().enumerate() {
            let Some(written) = config
                .group(name)
                .and_then(|group| group.depends_on.first())
            else {
                continue;
            };
            finding = if index == 0 {
                finding.at(written.span, format!("{name} depends on it"))
            } else {
                finding.related(written.span, format!("{name} depends on it"))
            };
        }
        findings.push(finding.hint("Remove one `depends_on` of the circle"));
    }
}

fn order(
    config: &Config,
    graph: &DiGraph<Node, ()>,
    groups: &HashMap<GroupName, NodeIndex>,
) -> Vec<GroupName> {
    let written = || {
        config
            .groups
            .iter()
            .map(|group| group.name.clone())
            .collect::<Vec<_>>()
    };
    if config
        .groups
        .iter()
        .all(|group| group.depends_on.is_empty())
    {
        return written();
    }
    // As written wherever dependencies leave it open: each group goes as early as it may.
    if toposort(graph, None).is_err() {
        return written();
    }
    let mut placed: Vec<GroupName> = Vec::new();
    let mut done: BTreeSet<GroupName> = BTreeSet::new();
    let mut waiting = written();
    while !waiting.is_empty() {
        let next = waiting.iter().position(|name| {
            graph
                .neighbors_directed(groups[name], petgraph::Direction::Incoming)
                .all(|needed| match &graph[needed] {
                    Node::Group(needed) => done.contains(needed),
                    Node::Image(_) | Node::Template(_) => true,
                })
        });
        let name = waiting.remove(next.unwrap_or(0));
        done.insert(name.clone());
        placed.push(name);
    }
    placed
}

impl Graph {
    /// Every node, in the order added.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.edges.node_weights()
    }

    /// Every edge, from what is needed to what needs it.
    pub fn edges(&self) -> impl Iterator<Item = (&Node, &Node)> {
        self.edges.edge_indices().filter_map(|edge| {
            let (from, to) = self.edges.edge_endpoints(edge)?;
            Some((&self.edges[from], &self.edges[to]))
        })
    }
}

//! What depends on what: images → templates → groups, and group → group.
//!
//! In: a configuration, and the images that templates and groups read. Out: the order in which
//! groups are planned and applied, and the picture of it all. May not: resolve anything.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use petgraph::Direction;
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::address::GroupName;
use crate::config::model::Config;
use crate::config::source::Span;
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
    /// The groups by their place in the configuration, each after those it depends on; otherwise
    /// as written.
    pub order: Vec<usize>,
    /// The groups that each depends on, as written.
    pub dependencies: HashMap<GroupName, Vec<GroupName>>,
}

/// The images that texts read.
#[derive(Debug, Default)]
pub struct ImagesRead {
    /// By each group, its template's texts included; as the groups are written.
    pub of_groups: Vec<BTreeSet<Arc<str>>>,
    /// By each template's own texts.
    pub of_templates: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
}

/// A link whose instances' addresses a group reads before they are known.
#[derive(Debug, Clone)]
pub struct LateLink {
    /// The group that provides it.
    pub provider: GroupName,
    /// The consumer's name for it.
    pub link: Arc<str>,
    /// Where that is written.
    pub span: Span,
}

/// Builds the graph. `late` are the late links of each group, as groups are written; it is empty if
/// no group has any. Unknown names and cycles become findings; the order is then as good as it can
/// be.
pub fn build(
    config: &Config,
    images: &ImagesRead,
    late: &[Vec<LateLink>],
    findings: &mut Diagnostics,
) -> Graph {
    let first_template = config.images.len();
    let first_group = first_template + config.templates.len();
    let count = first_group + config.groups.len();
    let mut graph = DiGraph::with_capacity(count, config.groups.len());
    for name in config.images.keys() {
        graph.add_node(Node::Image(Arc::clone(name)));
    }
    for name in config.templates.keys() {
        graph.add_node(Node::Template(Arc::clone(name)));
    }
    for group in &config.groups {
        graph.add_node(Node::Group(group.name.clone()));
    }
    let image_at = |name: &Arc<str>| config.images.get_index_of(name).map(NodeIndex::new);
    let template_at = |name: &Arc<str>| {
        let index = config.templates.get_index_of(name)?;
        Some(NodeIndex::new(first_template + index))
    };
    let group_at = |index: usize| NodeIndex::new(first_group + index);
    // Where no group names another, nobody asks for a group by its name.
    let is_alone = late.is_empty()
        && config
            .groups
            .iter()
            .all(|group| group.depends_on.is_empty());
    let groups: HashMap<&GroupName, usize> = config
        .groups
        .iter()
        .enumerate()
        .filter(|_| !is_alone)
        .map(|(index, group)| (&group.name, index))
        .collect();
    let mut dependencies: HashMap<GroupName, Vec<GroupName>> = HashMap::new();
    // Asking the graph whether it has an edge walks all edges of a node, and a template may have
    // thousands.
    let mut drawn: HashSet<(NodeIndex, NodeIndex)> = HashSet::new();
    for ((index, group), read) in config.groups.iter().enumerate().zip(&images.of_groups) {
        let at = group_at(index);
        let template = group
            .template
            .as_ref()
            .and_then(|name| template_at(&name.value));
        if let Some(template) = template {
            graph.add_edge(template, at, ());
        }
        let low = group
            .template
            .as_ref()
            .and_then(|name| images.of_templates.get(&name.value));
        for name in read {
            let Some(image) = image_at(name) else {
                continue;
            };
            let is_templates = low.is_some_and(|low| low.contains(name));
            let reader = template.filter(|_| is_templates).unwrap_or(at);
            if drawn.insert((image, reader)) {
                graph.add_edge(image, reader, ());
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
                    let needed = group_at(needed);
                    if drawn.insert((needed, at)) {
                        graph.add_edge(needed, at, ());
                    }
                    dependencies
                        .entry(group.name.clone())
                        .or_default()
                        .push(full);
                }
                None => findings.push(unknown_group(config, &name.value, name.span)),
            }
        }
        for link in late.get(index).into_iter().flatten() {
            let Some(needed) = groups.get(&link.provider) else {
                continue;
            };
            let needed = group_at(*needed);
            if drawn.insert((needed, at)) {
                graph.add_edge(needed, at, ());
                dependencies
                    .entry(group.name.clone())
                    .or_default()
                    .push(link.provider.clone());
            }
        }
    }
    let order = if is_alone {
        (0..config.groups.len()).collect()
    } else {
        report_cycles(config, &graph, late, findings);
        order(&graph, first_group)
    };
    Graph {
        edges: graph,
        order,
        dependencies,
    }
}

pub(crate) fn unknown_group(config: &Config, name: &str, span: Span) -> Diagnostic {
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

fn report_cycles(
    config: &Config,
    graph: &DiGraph<Node, ()>,
    late: &[Vec<LateLink>],
    findings: &mut Diagnostics,
) {
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
            Diagnostic::error("dependency cycle between groups").detail(path.join(" → "));
        let mut has_links = false;
        for (index, name) in names.iter().enumerate() {
            let mut groups = config.groups.iter();
            let Some(at) = groups.position(|group| group.name == **name) else {
                continue;
            };
            let group = &config.groups[at];
            let mut links = late.get(at).into_iter().flatten();
            let link = links.find(|link| names.contains(&&link.provider));
            has_links |= link.is_some();
            let (span, label) = match (link, group.depends_on.first()) {
                (Some(link), _) => (
                    link.span,
                    format!("{name} reads addresses of link `{}`", link.link),
                ),
                (None, Some(written)) => (written.span, format!("{name} depends on it")),
                (None, None) => continue,
            };
            finding = if index == 0 {
                finding.at(span, label)
            } else {
                finding.related(span, label)
            };
        }
        findings.push(finding.hint(if has_links {
            "Read `.Address`, the DNS name, which is known before an instance exists"
        } else {
            "Remove one `depends_on` of the cycle"
        }));
    }
}

/// The order of the groups, whose nodes begin at `first`: as written wherever dependencies leave it
/// open, so that each goes as early as it may. In a circle: as written.
fn order(graph: &DiGraph<Node, ()>, first: usize) -> Vec<usize> {
    let groups = graph.node_count() - first;
    let needs = |index: usize| {
        graph
            .neighbors_directed(NodeIndex::new(first + index), Direction::Incoming)
            .filter(|needed| needed.index() >= first)
            .count()
    };
    let mut open: Vec<usize> = (0..groups).map(needs).collect();
    let mut ready: BinaryHeap<Reverse<usize>> = (0..groups)
        .filter(|index| open[*index] == 0)
        .map(Reverse)
        .collect();
    let mut placed = Vec::with_capacity(groups);
    while let Some(Reverse(next)) = ready.pop() {
        placed.push(next);
        for after in graph.neighbors(NodeIndex::new(first + next)) {
            let after = after.index() - first;
            open[after] -= 1;
            if open[after] == 0 {
                ready.push(Reverse(after));
            }
        }
    }
    if placed.len() < groups {
        return (0..groups).collect();
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

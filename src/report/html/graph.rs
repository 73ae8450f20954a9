//! The graph of images, templates and groups.
//!
//! In: a plan. Out: a picture in columns, in which each group is a link to its changes, and the same
//! as a table. Must not: show a group without changes: a plan doesn't know its template.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::changes::counts;
use super::writer::Html;
use crate::diagnostic::counted;
use crate::plan::change::{Plan, Summary};
use crate::report::text::value::cut;

/// The maximum number of groups in the picture; those with most changes are shown.
const GROUPS: usize = 40;

/// The size of a node, and the space between nodes.
const WIDTH: usize = 200;
const HEIGHT: usize = 44;
const GAP_X: usize = 70;
const GAP_Y: usize = 14;

/// The maximum number of characters of a label.
const LABEL: usize = 25;

/// A group, and what its instances are made of.
#[derive(Debug, Default)]
struct Group<'p> {
    counts: Summary,
    templates: BTreeSet<&'p str>,
    images: BTreeSet<&'p str>,
    after: &'p [String],
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Node<'p> {
    Image(&'p str),
    Template(&'p str),
    Group(&'p str),
}

/// Writes the graph; nothing for a plan without changes.
pub(super) fn graph(plan: &Plan, html: &mut Html) {
    let groups = groups(plan);
    if groups.is_empty() {
        return;
    }
    html.markup(
        "<section id=graph aria-labelledby=graph-title><h2 id=graph-title>Dependencies</h2>",
    );
    let mut most: Vec<(&str, usize)> = groups
        .iter()
        .map(|(name, group)| (*name, changes(&group.counts)))
        .collect();
    most.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let shown: BTreeSet<&str> = most.iter().take(GROUPS).map(|(name, _)| *name).collect();
    let hidden = groups.len() - shown.len();
    let unchanged = plan.sizes.keys();
    let unchanged = unchanged.filter(|name| !groups.contains_key(name.as_str()));
    let unchanged = unchanged.count();
    html.markup("<p class=m>From left to right: images, templates, groups.");
    if hidden > 0 {
        html.text(" The picture leaves out ")
            .text(&counted(hidden, "group"));
        html.text(" with fewer changes.");
    }
    if unchanged > 0 {
        html.text(" Without changes, and not shown: ");
        html.text(&counted(unchanged, "group")).text(".");
    }
    html.markup("</p>");
    let picture = Picture::of(&groups, &shown);
    picture.write(&groups, html);
    as_table(&groups, html);
    html.markup("</section>");
}

fn changes(counts: &Summary) -> usize {
    let Summary {
        create,
        update,
        replace,
        delete,
        adopt,
        forget,
        held_back,
        no_op: _,
    } = counts;
    create + update + replace + delete + adopt + forget + held_back
}

/// The groups with changes, held back or not.
fn groups(plan: &Plan) -> BTreeMap<&str, Group<'_>> {
    let counts = counts(plan).into_iter();
    let mut groups: BTreeMap<&str, Group<'_>> = counts
        .map(|(name, counts)| {
            let group = Group {
                counts,
                ..Group::default()
            };
            (name, group)
        })
        .collect();
    for change in plan.changes.iter().chain(&plan.held_back) {
        let Some(group) = groups.get_mut(change.address.group.as_str()) else {
            continue;
        };
        if let Some(side) = change.after.as_deref().or(change.before.as_deref()) {
            group.templates.extend(side.spec.head.template.as_deref());
            group.images.extend(side.images.keys().map(|name| &**name));
        }
    }
    for planned in &plan.groups {
        if let Some(group) = groups.get_mut(planned.name.as_str()) {
            group.after = &planned.after;
        }
    }
    groups
}

/// Where each node is, and what it leads to.
struct Picture<'p> {
    places: HashMap<Node<'p>, (usize, usize)>,
    edges: BTreeSet<(Node<'p>, Node<'p>)>,
    size: (usize, usize),
}

impl<'p> Picture<'p> {
    fn of(groups: &BTreeMap<&'p str, Group<'p>>, shown: &BTreeSet<&'p str>) -> Self {
        let mut edges = BTreeSet::new();
        for name in shown {
            let group = &groups[name];
            let own = Node::Group(name);
            edges.extend(group.templates.iter().map(|it| (Node::Template(it), own)));
            for image in &group.images {
                // An image is used through the template, if there is one.
                let users = group.templates.iter().map(|it| Node::Template(it));
                let users: Vec<Node<'_>> = users.collect();
                if users.is_empty() {
                    edges.insert((Node::Image(image), own));
                }
                edges.extend(users.into_iter().map(|user| (Node::Image(image), user)));
            }
            let after = group.after.iter().map(String::as_str);
            let after = after.filter(|it| shown.contains(it));
            edges.extend(after.map(|it| (Node::Group(it), own)));
        }
        let nodes: BTreeSet<Node<'_>> = edges
            .iter()
            .flat_map(|(from, to)| [*from, *to])
            .chain(shown.iter().map(|name| Node::Group(name)))
            .collect();
        let depths = depths(&nodes, &edges);
        let mut columns: BTreeMap<usize, Vec<Node<'_>>> = BTreeMap::new();
        for node in &nodes {
            columns.entry(depths[node]).or_default().push(*node);
        }
        let tallest = columns.values().map(Vec::len).max().unwrap_or(0);
        let height = tallest * (HEIGHT + GAP_Y) - GAP_Y;
        let mut places = HashMap::new();
        // From right to left, so that what is used stands beside what uses it.
        for (position, nodes) in columns.values_mut().enumerate().rev() {
            let mean = |node: &Node<'_>| -> usize {
                let users = edges.iter().filter(|(from, _)| from == node);
                let heights: Vec<usize> = users
                    .filter_map(|(_, to)| places.get(to))
                    .map(|(_, y): &(usize, usize)| *y)
                    .collect();
                heights.iter().sum::<usize>() / heights.len().max(1)
            };
            nodes.sort_by_cached_key(|node| (mean(node), *node));
            let own = nodes.len() * (HEIGHT + GAP_Y) - GAP_Y;
            let top = (height - own) / 2;
            for (row, node) in nodes.iter().enumerate() {
                let place = (position * (WIDTH + GAP_X), top + row * (HEIGHT + GAP_Y));
                places.insert(*node, place);
            }
        }
        let width = columns.len() * (WIDTH + GAP_X) - GAP_X;
        Self {
            places,
            edges,
            size: (width, height),
        }
    }

    fn write(&self, groups: &BTreeMap<&str, Group<'_>>, html: &mut Html) {
        let (width, height) = self.size;
        html.markup("<div class=graph tabindex=0 role=group aria-label=\"Graph of dependencies; a table follows\">");
        html.markup("<svg width=\"")
            .number(width + 4)
            .markup("\" height=\"");
        html.number(height + 4).markup("\" viewBox=\"-2 -2 ");
        html.number(width + 4)
            .text(" ")
            .number(height + 4)
            .markup("\">");
        for (from, to) in &self.edges {
            let (Some((x, y)), Some((to_x, to_y))) = (self.places.get(from), self.places.get(to))
            else {
                continue;
            };
            let (x, y, to_y) = (x + WIDTH, y + HEIGHT / 2, to_y + HEIGHT / 2);
            let middle = usize::midpoint(x, *to_x);
            html.markup("<path d=\"M").number(x).text(" ").number(y);
            html.text("C").number(middle).text(" ").number(y);
            html.text(" ").number(middle).text(" ").number(to_y);
            html.text(" ")
                .number(*to_x)
                .text(" ")
                .number(to_y)
                .markup("\"/>");
        }
        let mut nodes: Vec<_> = self.places.iter().collect();
        nodes.sort_by_key(|(_, place)| **place);
        for (node, (x, y)) in nodes {
            self::node(*node, (*x, *y), groups, html);
        }
        html.markup("</svg></div>");
    }
}

/// The column of each node.
fn depths<'p>(
    nodes: &BTreeSet<Node<'p>>,
    edges: &BTreeSet<(Node<'p>, Node<'p>)>,
) -> HashMap<Node<'p>, usize> {
    let least = |node: &Node<'_>| match node {
        Node::Image(_) => 0,
        Node::Template(_) => 1,
        Node::Group(_) => 2,
    };
    let mut depths: HashMap<Node<'_>, usize> =
        nodes.iter().map(|node| (*node, least(node))).collect();
    // Plans have no cycles, so this ends after as many rounds as the longest chain has groups.
    for _ in 0..nodes.len() {
        let mut moved = false;
        for (from, to) in edges {
            let behind = depths[from] + 1;
            if depths[to] < behind {
                depths.insert(*to, behind);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    depths
}

fn node(
    node: Node<'_>,
    (x, y): (usize, usize),
    groups: &BTreeMap<&str, Group<'_>>,
    html: &mut Html,
) {
    let (kind, name, counts) = match node {
        Node::Image(name) => ("image", name, None),
        Node::Template(name) => ("template", name, None),
        Node::Group(name) => ("group", name, groups.get(name).map(|group| &group.counts)),
    };
    if counts.is_some() {
        html.markup("<a href=\"#group-").text(name).markup("\">");
    }
    html.markup(match counts {
        Some(counts) if counts.delete + counts.replace > 0 => "<g class=\"node danger\"",
        Some(_) => "<g class=\"node changed\"",
        None => "<g class=node",
    });
    html.markup(" transform=\"translate(")
        .number(x)
        .text(" ")
        .number(y);
    html.markup(")\"><title>").text(kind).text(" ").text(name);
    html.markup("</title><rect width=200 height=44 rx=6 /><text x=10 y=18>");
    html.text(&cut(name, LABEL))
        .markup("</text><text class=n x=10 y=35>");
    match counts {
        Some(counts) => html.text(&signs(counts)),
        None => html.text(kind),
    };
    html.markup("</text></g>");
    if counts.is_some() {
        html.markup("</a>");
    }
}

/// `+3 ~1 -/+2 -4`
fn signs(counts: &Summary) -> String {
    let parts = [
        ("+", counts.create),
        ("~", counts.update),
        ("±", counts.replace),
        ("−", counts.delete),
        ("=", counts.adopt),
        (".", counts.forget),
        ("held ", counts.held_back),
    ];
    let parts = parts.iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(sign, count)| format!("{sign}{count}"))
        .collect();
    parts.join("  ")
}

/// The graph in words.
fn as_table(groups: &BTreeMap<&str, Group<'_>>, html: &mut Html) {
    html.markup(
        "<details><summary>The graph as a table</summary><table><thead><tr><th scope=col>Group\
         <th scope=col>Template<th scope=col>Images<th scope=col>Depends on<tbody>",
    );
    for (name, group) in groups {
        html.markup("<tr><th scope=row><a href=\"#group-")
            .text(name);
        html.markup("\">").text(name).markup("</a>");
        let after: BTreeSet<&str> = group.after.iter().map(String::as_str).collect();
        for names in [&group.templates, &group.images, &after] {
            let names: Vec<&str> = names.iter().copied().collect();
            html.markup("<td>").text(&names.join(", "));
        }
    }
    html.markup("</table></details>");
}

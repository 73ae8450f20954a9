//! From the parser's events to the tree.
//!
//! In: the events of one text. Out: the [`Node`] of its only document, and the aliases in it. May
//! not: say what a broken text should be (that is `explain`).

mod values;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use saphyr_parser::{Event, ScalarStyle};

use super::LARGEST_EXPANSION;
use super::events::Events;
use super::explain::{self, Context};
use super::marks::Marks;
use super::properties::skip_properties;
use super::scalars;
use super::words;
use crate::config::jsonc::DEEPEST;
use crate::config::node::{Alias, Entry, Keys, Node, NodeValue};
use crate::config::source::{SourceId, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Nothing more can be read; a finding says why.
pub(super) struct Stop;

/// A value with a name.
struct Anchor {
    node: Node,
    /// How many nodes it has, itself counted.
    nodes: usize,
    /// How many levels of lists and objects it has.
    height: usize,
}

/// What one event is, its place in bytes.
struct Step<'t> {
    event: Event<'t>,
    range: Range<usize>,
}

pub(super) struct Builder<'t, 'f> {
    source: SourceId,
    /// The whole text, and where the part that is parsed starts.
    text: &'t str,
    base: usize,
    events: Events<'t>,
    marks: Marks<'t>,
    findings: &'f mut Diagnostics,
    /// Whether anything can refer to an anchor at all.
    has_aliases: bool,
    anchors: HashMap<usize, Anchor>,
    aliases: Vec<Alias>,
    /// How many nodes aliases have copied.
    expanded: usize,
    /// Inside of how many lists and objects the outermost object is that has a merge key.
    outermost_merge: Option<usize>,
    /// What the lists and objects that are read now have so far, the innermost's last: so each is
    /// made at its size.
    items: Vec<Node>,
    entries: Vec<Entry>,
    /// Where the last value ended.
    end: usize,
    /// The brackets that are open.
    open: Vec<usize>,
    /// Templates without quotes that were reported: what follows from them on their lines isn't.
    bare_template: Option<usize>,
}

impl<'t, 'f> Builder<'t, 'f> {
    pub(super) fn new(
        source: SourceId,
        text: &'t str,
        base: usize,
        events: Events<'t>,
        findings: &'f mut Diagnostics,
    ) -> Self {
        let body = &text[base..];
        Self {
            source,
            text,
            base,
            events,
            marks: Marks::new(body),
            findings,
            has_aliases: body.contains('*'),
            anchors: HashMap::new(),
            aliases: Vec::new(),
            expanded: 0,
            outermost_merge: None,
            items: Vec::new(),
            entries: Vec::new(),
            end: base,
            open: Vec::new(),
            bare_template: None,
        }
    }

    /// How many values aliases have copied.
    pub(super) fn expanded(&self) -> usize {
        self.expanded
    }

    pub(super) fn into_aliases(self) -> Vec<Alias> {
        self.aliases
    }

    /// Whether an object inside of `depth` others at most has a merge key.
    pub(super) fn has_merge_within(&self, depth: usize) -> bool {
        self.outermost_merge
            .is_some_and(|outermost| outermost <= depth)
    }

    /// Reads the whole text. `None` if there is no document but empty ones.
    pub(super) fn document(&mut self) -> Result<Option<Node>, Stop> {
        let mut found: Option<Node> = None;
        loop {
            let start = self.next()?;
            match start.event {
                Event::StreamEnd => return Ok(found),
                Event::DocumentStart(_) => {}
                _ => continue,
            }
            let first = self.next()?;
            let is_empty = matches!(
                &first.event,
                Event::Scalar(text, ScalarStyle::Plain, 0, None) if text.is_empty()
            );
            if is_empty {
                continue;
            }
            if found.is_some() {
                let place = if start.range.is_empty() {
                    self.span(first.range)
                } else {
                    self.span(start.range)
                };
                self.findings.push(
                    Diagnostic::error("the file holds more than one document")
                        .at(place, "a second document starts here")
                        .hint("a file holds one configuration; write the other into its own file"),
                );
                return Ok(found);
            }
            found = Some(self.node(first, 0)?);
        }
    }

    fn next(&mut self) -> Result<Step<'t>, Stop> {
        match self.events.next() {
            // The parser has told its end before; asking again isn't expected of it.
            None => Err(Stop),
            Some(Ok((event, span))) => {
                let start = self.base + self.marks.byte(span.start.index());
                let end = self.base + self.marks.byte(span.end.index());
                let range = start..end.max(start);
                Ok(Step { event, range })
            }
            Some(Err(error)) => {
                let at = self.base + self.marks.byte(error.marker().index());
                let context = Context {
                    source: self.source,
                    text: self.text,
                    at,
                    open: self.open.last().copied(),
                };
                let follows = self
                    .bare_template
                    .is_some_and(|end| !self.text[end.min(at)..at].contains('\n'));
                if !follows {
                    self.findings.push(explain::explain(&context, error.info()));
                }
                Err(Stop)
            }
        }
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.source, range.start, range.end)
    }

    /// The value that starts with `step`, inside of `depth` lists and objects.
    fn node(&mut self, step: Step<'t>, depth: usize) -> Result<Node, Stop> {
        let Step { event, range } = step;
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let from = range.start;
                let range = self.scalar_range(&range, &text, style);
                self.end = range.end;
                let text = self.at_the_end(text, style, &range);
                (
                    self.scalar(&text, style, tag.as_deref(), from, &range),
                    anchor,
                )
            }
            Event::Alias(id) => return self.alias(id, range, depth),
            Event::SequenceStart(anchor, tag) => {
                let start = self.enter(&range, depth)?;
                self.collection_tag(tag.as_deref(), "seq", &range);
                let first = self.items.len();
                let end = loop {
                    let step = self.next()?;
                    if matches!(step.event, Event::SequenceEnd) {
                        break self.leave(start, &step.range);
                    }
                    let item = self.node(step, depth + 1)?;
                    self.items.push(item);
                };
                let span = self.span(start..end);
                let value = NodeValue::Array(self.items.drain(first..).collect());
                (Node::new(span, value), anchor)
            }
            Event::MappingStart(anchor, tag) => {
                let start = self.enter(&range, depth)?;
                if self.text[start..].starts_with("{{") {
                    return self.bare_template(start);
                }
                self.collection_tag(tag.as_deref(), "map", &range);
                let (entries, end) = self.entries(start, depth)?;
                let span = self.span(start..end);
                let value = NodeValue::Object(entries);
                (Node::new(span, value), anchor)
            }
            // A document has a value, and a collection's end is taken where its items are.
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(Stop),
        };
        if anchor > 0 && self.has_aliases {
            let (nodes, height) = measure(&node);
            self.expand(nodes, node.span)?;
            let copy = Anchor {
                node: node.clone(),
                nodes,
                height,
            };
            self.anchors.insert(anchor, copy);
        }
        Ok(node)
    }

    /// Opens a list or an object; gives its first byte, behind anchors and tags.
    fn enter(&mut self, range: &Range<usize>, depth: usize) -> Result<usize, Stop> {
        let start = skip_properties(self.text, range.start);
        if depth == DEEPEST {
            let end = start + self.text[start..].chars().next().map_or(0, char::len_utf8);
            self.findings
                .push(words::too_deep(self.span(start..end), "one level too deep"));
            return Err(Stop);
        }
        if self.text[start..].starts_with(['[', '{']) && range.end > start {
            self.open.push(start);
        }
        self.end = self.end.max(range.end.min(start));
        Ok(start)
    }

    /// Closes it; gives the byte behind it.
    fn leave(&mut self, start: usize, closing: &Range<usize>) -> usize {
        if self.open.last() == Some(&start) {
            self.open.pop();
            self.end = closing.end;
        }
        // What is written in lines ends with its last item, not before the next key.
        self.end.max(start)
    }

    fn entries(&mut self, start: usize, depth: usize) -> Result<(Vec<Entry>, usize), Stop> {
        // Those of this object start here.
        let own = self.entries.len();
        let mut keys = Keys::default();
        let mut merge: Option<(usize, Span, Vec<Entry>)> = None;
        let end = loop {
            let step = self.next()?;
            if matches!(step.event, Event::MappingEnd) {
                break self.leave(start, &step.range);
            }
            let is_merge = matches!(
                &step.event,
                Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<"
            );
            let key = self.key(step, depth)?;
            let step = self.next()?;
            let value = self.node(step, depth + 1)?;
            // Without a key there was a finding.
            let Some((key, key_span)) = key else {
                continue;
            };
            if is_merge && merge.is_none() {
                let at = self.entries.len() - own;
                merge = Some((at, key_span, self.merged(value)));
                self.outermost_merge = Some(
                    self.outermost_merge
                        .map_or(depth, |outermost| outermost.min(depth)),
                );
                continue;
            }
            let first = if is_merge {
                merge.as_ref().map(|(_, span, _)| *span)
            } else {
                keys.span(&self.entries[own..], &key)
            };
            match first {
                None => self.entries.push(Entry {
                    key,
                    key_span,
                    value,
                }),
                Some(first) => {
                    self.findings.push(words::twice(&key, key_span, first));
                    // Of a line that was doubled the second has the value.
                    let entries = &mut self.entries[own..];
                    let first = entries.iter_mut().find(|entry| entry.key == key);
                    if let Some(first) = first.filter(|first| first.value.value == NodeValue::Null)
                    {
                        first.value = value;
                    }
                }
            }
        };
        let mut entries: Vec<_> = self.entries.drain(own..).collect();
        if let Some((at, _, merged)) = merge {
            let known: HashSet<Arc<str>> =
                entries.iter().map(|entry| Arc::clone(&entry.key)).collect();
            let missing = merged
                .into_iter()
                .filter(|entry| !known.contains(&entry.key));
            entries.splice(at..at, missing);
        }
        Ok((entries, end))
    }

    /// The keys that `<<` brings: of several objects, the first that has a key gives it.
    fn merged(&mut self, value: Node) -> Vec<Entry> {
        let objects = match value.value {
            NodeValue::Object(entries) => return entries,
            NodeValue::Array(items)
                if items
                    .iter()
                    .all(|item| matches!(item.value, NodeValue::Object(_))) =>
            {
                items
            }
            _ => {
                self.findings
                    .push(words::bad_merge(value.span, value.type_name()));
                return Vec::new();
            }
        };
        let mut seen = HashSet::new();
        objects
            .into_iter()
            .flat_map(|object| match object.value {
                NodeValue::Object(entries) => entries,
                _ => Vec::new(),
            })
            .filter(|entry| seen.insert(Arc::clone(&entry.key)))
            .collect()
    }

    /// A key as text; `None` if it can't be one, which is reported.
    fn key(&mut self, step: Step<'t>, depth: usize) -> Result<Option<(Arc<str>, Span)>, Stop> {
        let Step { event, range } = step;
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let range = self.scalar_range(&range, &text, style);
                self.end = range.end;
                let span = self.span(range);
                if text.is_empty() && style == ScalarStyle::Plain {
                    let start = span.start as usize;
                    let next = self.text[start..].chars().next();
                    let place = self.span(start..start + next.map_or(0, char::len_utf8));
                    self.findings.push(words::no_key(place));
                    return Ok(None);
                }
                // One letter is more often a coordinate than an answer.
                if style == ScalarStyle::Plain
                    && text.len() > 1
                    && let Some(value) = scalars::switch(&text)
                {
                    self.findings.push(words::key_is_text(&text, value, span));
                }
                let key: Arc<str> = text.into();
                if anchor > 0 && self.has_aliases {
                    let node = Node::new(span, NodeValue::String(Arc::clone(&key)));
                    let anchored = Anchor {
                        node,
                        nodes: 1,
                        height: 0,
                    };
                    self.anchors.insert(anchor, anchored);
                }
                Ok(Some((key, span)))
            }
            Event::Alias(id) => {
                let span = self.span(range.clone());
                let node = self.alias(id, range, depth)?;
                let key = match node.value {
                    NodeValue::String(text) => text,
                    NodeValue::Array(_) | NodeValue::Object(_) => {
                        self.findings.push(words::key_is_no_text(span));
                        return Ok(None);
                    }
                    _ => self.text[node.span.start as usize..node.span.end as usize].into(),
                };
                Ok(Some((key, span)))
            }
            _ => {
                let known = self.findings.len();
                let node = self.node(Step { event, range }, depth + 1)?;
                if self.findings.len() == known {
                    self.findings.push(words::key_is_no_text(node.span));
                }
                Ok(None)
            }
        }
    }

    /// The value of an anchor once more.
    fn alias(&mut self, id: usize, range: Range<usize>, depth: usize) -> Result<Node, Stop> {
        let span = self.span(range.clone());
        self.end = range.end;
        let Some(anchor) = self.anchors.get(&id) else {
            self.findings
                .push(words::inside_itself(&self.text[range], span));
            return Err(Stop);
        };
        if depth + anchor.height > DEEPEST {
            self.findings
                .push(words::too_deep(span, "what it stands for is too deep here"));
            return Err(Stop);
        }
        let (nodes, target) = (anchor.nodes, anchor.node.span);
        self.expand(nodes, span)?;
        self.aliases.push(Alias { span, target });
        Ok(self.anchors[&id].node.clone())
    }

    /// Counts copies, so that a few lines can't fill the memory.
    fn expand(&mut self, nodes: usize, place: Span) -> Result<(), Stop> {
        self.expanded += nodes;
        if self.expanded <= LARGEST_EXPANSION {
            return Ok(());
        }
        self.findings.push(words::too_many_copies(place));
        Err(Stop)
    }

    /// Reports `{{ … }}` without quotes, which YAML takes for an object in an object, and goes on
    /// behind it.
    fn bare_template(&mut self, start: usize) -> Result<Node, Stop> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next()?.event {
                Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
                Event::MappingEnd | Event::SequenceEnd => depth -= 1,
                _ => {}
            }
        }
        self.open.retain(|open| *open < start);
        let end = explain::template_end(self.text, start);
        let span = self.span(start..end);
        self.end = end;
        self.bare_template = Some(end);
        self.findings.push(words::bare_template(self.text, span));
        let value = NodeValue::String(self.text[start..end].into());
        Ok(Node::new(span, value))
    }
}

/// How many nodes and levels there are.
fn measure(node: &Node) -> (usize, usize) {
    let inner = |nodes: &mut dyn Iterator<Item = &Node>| {
        nodes.map(measure).fold((1, 1), |(nodes, height), (n, h)| {
            (nodes + n, height.max(h + 1))
        })
    };
    match &node.value {
        NodeValue::Array(items) => inner(&mut items.iter()),
        NodeValue::Object(entries) => inner(&mut entries.iter().map(|entry| &entry.value)),
        _ => (1, 0),
    }
}

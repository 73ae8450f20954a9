//! Tokens to nodes: what a document says, before it is known what it means.
//!
//! In: a text. Out: the nodes of its one document, aliases pointing to what they stand for. May not:
//! make values.

use std::collections::HashMap;

use super::error::{Mark, YamlError};
use super::scanner::Scanner;
use super::tag::{Tag, of_plain};
use super::text::Text;
use super::token::{Directive, Token, TokenKind};

/// How deep nodes may be in nodes. Python gives up later, by its own stack.
const DEEPEST: usize = 128;

/// The number of a node.
pub(super) type NodeId = usize;

pub(super) struct Node {
    pub(super) tag: Tag,
    pub(super) content: Content,
    pub(super) mark: Mark,
}

#[derive(Clone)]
pub(super) enum Content {
    Scalar(Text),
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
}

/// The nodes of a document.
pub(super) struct Document {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
}

/// Where a node stands, which decides what it may be.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Flow,
    Block,
    /// A value of a mapping, whose list needn't be indented.
    BlockOrList,
}

struct Composer<'t> {
    scanner: Scanner<'t>,
    nodes: Vec<Node>,
    anchors: HashMap<String, NodeId>,
    handles: HashMap<String, String>,
    depth: usize,
}

type Composed<T> = Result<T, YamlError>;

/// What is said of a node before it.
#[derive(Default)]
struct Properties {
    anchor: Option<(String, Mark)>,
    tag: Option<Tag>,
}

/// Reads the one document of a text; `None`: there is none.
pub(super) fn compose(text: &str) -> Composed<Option<Document>> {
    let mut composer = Composer {
        scanner: Scanner::new(text)?,
        nodes: Vec::new(),
        anchors: HashMap::new(),
        handles: HashMap::new(),
        depth: 0,
    };
    let Some(root) = composer.document(true)? else {
        return Ok(None);
    };
    let mark = composer.scanner.peek()?.start;
    if composer.begins_document(false)?.is_some() {
        return Err(YamlError::new(mark, "there may be one document only"));
    }
    let nodes = composer.nodes;
    Ok(Some(Document { nodes, root }))
}

impl Composer<'_> {
    fn kind(&mut self) -> Composed<&TokenKind> {
        Ok(&self.scanner.peek()?.kind)
    }

    fn is_at(&mut self, kinds: &[TokenKind]) -> Composed<bool> {
        let kind = self.kind()?;
        Ok(kinds.contains(kind))
    }

    /// Takes the next token if it is of that kind.
    fn takes(&mut self, kind: &TokenKind) -> Composed<Option<Token>> {
        if self.kind()? == kind {
            return self.scanner.next().map(Some);
        }
        Ok(None)
    }

    fn document(&mut self, first: bool) -> Composed<Option<NodeId>> {
        let Some(is_bare) = self.begins_document(first)? else {
            return Ok(None);
        };
        // Only behind `---` a document may be empty.
        let is_over = matches!(
            self.kind()?,
            TokenKind::Directive(_)
                | TokenKind::DocumentStart
                | TokenKind::DocumentEnd
                | TokenKind::StreamEnd
        );
        let root = if is_over && !is_bare {
            self.empty()?
        } else {
            self.node(Place::Block)?
        };
        // The end of the document, if it is said.
        self.takes(&TokenKind::DocumentEnd)?;
        Ok(Some(root))
    }

    /// Reads what stands before a document. `None`: there is none; else whether nothing stands
    /// before it.
    fn begins_document(&mut self, first: bool) -> Composed<Option<bool>> {
        if first {
            let kind = self.kind()?;
            let is_bare = !matches!(
                kind,
                TokenKind::Directive(_) | TokenKind::DocumentStart | TokenKind::StreamEnd
            );
            if is_bare {
                self.directives()?;
                return Ok(Some(true));
            }
        }
        while self.takes(&TokenKind::DocumentEnd)?.is_some() {}
        if self.is_at(&[TokenKind::StreamEnd])? {
            return Ok(None);
        }
        self.directives()?;
        if self.takes(&TokenKind::DocumentStart)?.is_none() {
            let token = self.scanner.peek()?;
            let problem = format!("`---` has to stand here, not {}", token.kind.name());
            return Err(YamlError::new(token.start, problem));
        }
        Ok(Some(false))
    }

    fn directives(&mut self) -> Composed<()> {
        self.handles.clear();
        let mut has_version = false;
        while let TokenKind::Directive(directive) = self.kind()? {
            let directive = directive.clone();
            let mark = self.scanner.next()?.start;
            let wrong = |problem: &str| Err(YamlError::new(mark, problem));
            match directive {
                Directive::Version(_) if has_version => {
                    return wrong("the version is said twice");
                }
                Directive::Version(1) => has_version = true,
                Directive::Version(_) => return wrong("only YAML 1 can be read"),
                Directive::Tag { handle, prefix } => {
                    if self.handles.insert(handle, prefix).is_some() {
                        return wrong("this handle is defined twice");
                    }
                }
                Directive::Unknown => {}
            }
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            self.handles
                .entry(handle.to_owned())
                .or_insert_with(|| prefix.to_owned());
        }
        Ok(())
    }

    fn add(&mut self, tag: Tag, content: Content, mark: Mark) -> NodeId {
        self.nodes.push(Node { tag, content, mark });
        self.nodes.len() - 1
    }

    /// Nothing, where something might stand: null.
    fn empty(&mut self) -> Composed<NodeId> {
        let mark = self.scanner.peek()?.start;
        Ok(self.add(Tag::Null, Content::Scalar("".into()), mark))
    }

    fn node(&mut self, place: Place) -> Composed<NodeId> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let mark = self.scanner.peek()?.start;
            let problem = format!("nothing may be nested deeper than {DEEPEST} levels");
            return Err(YamlError::new(mark, problem));
        }
        let node = self.node_here(place);
        self.depth -= 1;
        node
    }

    fn node_here(&mut self, place: Place) -> Composed<NodeId> {
        let start = self.scanner.peek()?.start;
        if let TokenKind::Alias(name) = self.kind()? {
            let name = name.clone();
            self.scanner.next()?;
            return self.anchors.get(&name).copied().ok_or_else(|| {
                YamlError::new(
                    start,
                    format!("nothing before this has the anchor `{name}`"),
                )
            });
        }
        let Properties { anchor, tag } = self.properties()?;
        let has_properties = anchor.is_some() || tag.is_some();
        if let Some((name, mark)) = &anchor
            && let Some(first) = self.anchors.get(name)
        {
            let problem = format!("the anchor `{name}` is defined twice");
            let first = self.nodes[*first].mark;
            return Err(YamlError::new(*mark, problem).within("and first", first));
        }
        let implicit = matches!(&tag, None | Some(Tag::NonSpecific));
        let collection = |otherwise: Tag| match &tag {
            Some(tag) if !implicit => tag.clone(),
            _ => otherwise,
        };
        let content = match self.kind()? {
            TokenKind::BlockEntry if place == Place::BlockOrList => {
                let id = self.reserve(anchor, collection(Tag::Seq), start);
                let items = self.unindented_list()?;
                return Ok(self.fill(id, Content::Sequence(items)));
            }
            TokenKind::Scalar { text, plain } => {
                let (text, plain) = (text.clone(), *plain);
                self.scanner.next()?;
                let tag = match tag {
                    None if !plain => Tag::Str,
                    None | Some(Tag::NonSpecific) => of_plain(&text),
                    Some(tag) => tag,
                };
                let id = self.reserve(anchor, tag, start);
                return Ok(self.fill(id, Content::Scalar(text)));
            }
            kind => kind.clone(),
        };
        let is_block = place != Place::Flow;
        let (tag, read): (Tag, fn(&mut Self) -> Composed<Content>) = match content {
            TokenKind::FlowSequenceStart => (collection(Tag::Seq), Self::flow_list),
            TokenKind::FlowMappingStart => (collection(Tag::Map), Self::flow_map),
            TokenKind::BlockSequenceStart if is_block => (collection(Tag::Seq), Self::block_list),
            TokenKind::BlockMappingStart if is_block => (collection(Tag::Map), Self::block_map),
            _ if has_properties => {
                // Nothing but a tag or an anchor: an empty scalar.
                let tag = match tag {
                    None | Some(Tag::NonSpecific) => Tag::Null,
                    Some(tag) => tag,
                };
                let id = self.reserve(anchor, tag, start);
                return Ok(self.fill(id, Content::Scalar("".into())));
            }
            other => {
                let mark = self.scanner.peek()?.start;
                let problem = format!("a value has to stand here, not {}", other.name());
                return Err(YamlError::new(mark, problem));
            }
        };
        let id = self.reserve(anchor, tag, start);
        let content = read(self)?;
        Ok(self.fill(id, content))
    }

    /// A node whose content isn't read yet: within it, its anchor means it already.
    fn reserve(&mut self, anchor: Option<(String, Mark)>, tag: Tag, mark: Mark) -> NodeId {
        let id = self.add(tag, Content::Sequence(Vec::new()), mark);
        if let Some((name, _)) = anchor {
            self.anchors.insert(name, id);
        }
        id
    }

    fn fill(&mut self, id: NodeId, content: Content) -> NodeId {
        self.nodes[id].content = content;
        id
    }

    /// Anchor and tag, in either order.
    fn properties(&mut self) -> Composed<Properties> {
        let (mut anchor, mut tag) = (None, None);
        for _ in 0..2 {
            let token = self.scanner.peek()?;
            let start = token.start;
            match &token.kind {
                TokenKind::Anchor(name) if anchor.is_none() => {
                    anchor = Some((name.clone(), start));
                }
                TokenKind::Tag { handle, suffix } if tag.is_none() => {
                    tag = Some((handle.clone(), suffix.clone(), start));
                }
                _ => break,
            }
            self.scanner.next()?;
        }
        let tag = match tag {
            None => None,
            Some((None, suffix, _)) => Some(Tag::of(&suffix)),
            Some((Some(handle), suffix, mark)) => match self.handles.get(&handle) {
                Some(prefix) => Some(Tag::of(&format!("{prefix}{suffix}"))),
                None => {
                    let problem = format!("the handle `{handle}` isn't defined");
                    return Err(YamlError::new(mark, problem));
                }
            },
        };
        Ok(Properties { anchor, tag })
    }

    fn block_list(&mut self) -> Composed<Content> {
        let start = self.scanner.next()?.start;
        let mut items = Vec::new();
        while self.takes(&TokenKind::BlockEntry)?.is_some() {
            let is_empty = self.is_at(&[TokenKind::BlockEntry, TokenKind::BlockEnd])?;
            items.push(if is_empty {
                self.empty()?
            } else {
                self.node(Place::Block)?
            });
        }
        self.block_end("in a list", start)?;
        Ok(Content::Sequence(items))
    }

    fn unindented_list(&mut self) -> Composed<Vec<NodeId>> {
        let mut items = Vec::new();
        while self.takes(&TokenKind::BlockEntry)?.is_some() {
            let ends = [
                TokenKind::BlockEntry,
                TokenKind::Key,
                TokenKind::Value,
                TokenKind::BlockEnd,
            ];
            let is_empty = self.is_at(&ends)?;
            items.push(if is_empty {
                self.empty()?
            } else {
                self.node(Place::Block)?
            });
        }
        Ok(items)
    }

    fn block_end(&mut self, what: &'static str, start: Mark) -> Composed<()> {
        if self.takes(&TokenKind::BlockEnd)?.is_some() {
            return Ok(());
        }
        let token = self.scanner.peek()?;
        let problem = format!("{} can't stand here", token.kind.name());
        Err(YamlError::new(token.start, problem).within(what, start))
    }

    fn block_map(&mut self) -> Composed<Content> {
        let start = self.scanner.next()?.start;
        let mut entries = Vec::new();
        let ends = [TokenKind::Key, TokenKind::Value, TokenKind::BlockEnd];
        while self.takes(&TokenKind::Key)?.is_some() {
            let key = if self.is_at(&ends)? {
                self.empty()?
            } else {
                self.node(Place::BlockOrList)?
            };
            let has_value = self.takes(&TokenKind::Value)?.is_some();
            let value = if has_value && !self.is_at(&ends)? {
                self.node(Place::BlockOrList)?
            } else {
                self.empty()?
            };
            entries.push((key, value));
        }
        self.block_end("in a mapping", start)?;
        Ok(Content::Mapping(entries))
    }

    /// The comma before what isn't the first of a flow collection.
    fn comma(&mut self, closing: char, start: Mark) -> Composed<()> {
        if self.takes(&TokenKind::FlowEntry)?.is_some() {
            return Ok(());
        }
        let token = self.scanner.peek()?;
        let problem = format!(
            "`,` or `{closing}` has to stand here, not {}",
            token.kind.name()
        );
        Err(YamlError::new(token.start, problem).within("in brackets", start))
    }

    fn flow_list(&mut self) -> Composed<Content> {
        let start = self.scanner.next()?.start;
        let mut items: Vec<NodeId> = Vec::new();
        let closing = [TokenKind::FlowSequenceEnd];
        while !self.is_at(&closing)? {
            if !items.is_empty() {
                self.comma(']', start)?;
            }
            if let TokenKind::Key = self.kind()? {
                let mark = self.scanner.peek()?.start;
                let entry = self.flow_entry(TokenKind::FlowSequenceEnd)?;
                items.push(self.add(Tag::Map, Content::Mapping(vec![entry]), mark));
            } else if !self.is_at(&closing)? {
                items.push(self.node(Place::Flow)?);
            }
        }
        self.scanner.next()?;
        Ok(Content::Sequence(items))
    }

    fn flow_map(&mut self) -> Composed<Content> {
        let start = self.scanner.next()?.start;
        let mut entries: Vec<(NodeId, NodeId)> = Vec::new();
        let closing = [TokenKind::FlowMappingEnd];
        while !self.is_at(&closing)? {
            if !entries.is_empty() {
                self.comma('}', start)?;
            }
            if let TokenKind::Key = self.kind()? {
                entries.push(self.flow_entry(TokenKind::FlowMappingEnd)?);
            } else if !self.is_at(&closing)? {
                let key = self.node(Place::Flow)?;
                entries.push((key, self.empty()?));
            }
        }
        self.scanner.next()?;
        Ok(Content::Mapping(entries))
    }

    /// A key and a value in brackets.
    fn flow_entry(&mut self, closing: TokenKind) -> Composed<(NodeId, NodeId)> {
        self.scanner.next()?;
        let before_value = [TokenKind::Value, TokenKind::FlowEntry, closing.clone()];
        let key = if self.is_at(&before_value)? {
            self.empty()?
        } else {
            self.node(Place::Flow)?
        };
        let has_value = self.takes(&TokenKind::Value)?.is_some();
        let value = if has_value && !self.is_at(&[TokenKind::FlowEntry, closing])? {
            self.node(Place::Flow)?
        } else {
            self.empty()?
        };
        Ok((key, value))
    }
}

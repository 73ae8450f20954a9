//! Builds the tree from the parser's events.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, StrInput, Tag};

use crate::error::{Error, ErrorKind};
use crate::marks::Marks;
use crate::properties::{block_header, closing_quote, skip_properties};
use crate::tree::{Document, Kind, Node, Scalar, Style};

/// The maximum number of values that aliases may expand to. Otherwise a few lines could exhaust the
/// memory of a caller that follows aliases.
pub const LARGEST_EXPANSION: usize = 1_000_000;

/// A value with an anchor.
#[derive(Clone)]
struct Anchored<S> {
    node: Node<S>,
    size: Size,
}

/// The size of a value, including its aliases' values.
#[derive(Clone, Copy)]
struct Size {
    nodes: usize,
    height: usize,
}

impl Size {
    const ONE: Self = Self {
        nodes: 1,
        height: 0,
    };

    fn add(&mut self, inner: Self) {
        self.nodes = self.nodes.saturating_add(inner.nodes);
        self.height = self.height.max(inner.height + 1);
    }
}

/// An event and its byte range.
type Step<'t> = (Event<'t>, Range<usize>);

/// Reads the documents of a text.
pub struct Reader<'t, R, S> {
    text: &'t str,
    /// The length of the byte order mark.
    base: usize,
    parser: Parser<'t, StrInput<'t>>,
    marks: Marks<'t>,
    depth: usize,
    resolve: R,
    anchors: HashMap<usize, Anchored<S>>,
    copies: usize,
    /// The unclosed brackets.
    open: Vec<usize>,
    /// The end of the last value.
    end: usize,
}

impl<'t, S: Clone, R: FnMut(&Scalar<'t>) -> S> Reader<'t, R, S> {
    /// `depth` limits the nesting of lists and objects, including those of aliases. `resolve`
    /// interprets scalars; aliases clone its result, so that should be cheap.
    pub fn new(text: &'t str, depth: usize, resolve: R) -> Self {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self {
            text,
            base: text.len() - body.len(),
            parser: Parser::new_from_str(body),
            marks: Marks::new(body),
            depth,
            resolve,
            anchors: HashMap::new(),
            copies: 0,
            open: Vec::new(),
            end: 0,
        }
    }

    /// Reads the next document; `None` at the end.
    ///
    /// Fails at the first error; don't call it again after that.
    pub fn document(&mut self) -> Result<Option<Document<S>>, Error> {
        let start = loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(None),
                (Event::DocumentStart(_), range) => break range,
                _ => {}
            }
        };
        let first = self.next()?;
        let root = self.node(first, 0)?.0;
        // Check what follows the value, too.
        self.next()?;
        Ok(Some(Document { start, root }))
    }

    fn error(&self, range: Range<usize>, kind: ErrorKind) -> Error {
        let open = self.open.last().copied();
        Error { range, kind, open }
    }

    fn next(&mut self) -> Result<Step<'t>, Error> {
        match self.parser.next_event() {
            None => Ok((Event::StreamEnd, self.text.len()..self.text.len())),
            Some(Ok((event, span))) => {
                let start = self.base + self.marks.byte(span.start.index());
                let end = self.base + self.marks.byte(span.end.index());
                Ok((event, start..end.max(start)))
            }
            Some(Err(error)) => {
                let at = self.base + self.marks.byte(error.marker().index());
                let kind = ErrorKind::Syntax(error.info().to_owned());
                Err(self.error(self.character(at), kind))
            }
        }
    }

    /// The range of the character at a byte.
    fn character(&self, at: usize) -> Range<usize> {
        let width = self.text[at..].chars().next().map_or(0, char::len_utf8);
        at..at + width
    }

    /// The value that starts with an event, at nesting level `depth`.
    fn node(&mut self, step: Step<'t>, depth: usize) -> Result<(Node<S>, Size), Error> {
        let (event, range) = step;
        let properties = range.start;
        let mut size = Size::ONE;
        let (kind, tag, range, anchor) = match event {
            Event::Alias(id) => return self.alias(id, range, depth),
            Event::Scalar(text, style, anchor, tag) => {
                let range = self.scalar_range(&range, &text, style);
                self.end = range.end;
                let text = self.without_added_break(text, style, &range);
                let meaning = (self.resolve)(&Scalar { text, style, tag });
                (Kind::Scalar(meaning), None, range, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                let start = self.enter(&range, depth)?;
                let mut items = Vec::new();
                let end = loop {
                    let step = self.next()?;
                    if step.0 == Event::SequenceEnd {
                        break self.leave(start, &step.1);
                    }
                    let (item, inner) = self.node(step, depth + 1)?;
                    size.add(inner);
                    items.push(item);
                };
                (Kind::Sequence(items.into()), tag, start..end, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                let start = self.enter(&range, depth)?;
                let mut entries = Vec::new();
                let end = loop {
                    let step = self.next()?;
                    if step.0 == Event::MappingEnd {
                        break self.leave(start, &step.1);
                    }
                    let key = self.key(step, depth + 1)?;
                    let step = self.next()?;
                    let (value, inner) = self.node(step, depth + 1)?;
                    size.add(inner);
                    entries.push((key, value));
                };
                (Kind::Mapping(entries.into()), tag, start..end, anchor)
            }
            // The parser emits a value wherever one is required.
            _ => {
                let kind = ErrorKind::Syntax("did not find a value".to_owned());
                return Err(self.error(range, kind));
            }
        };
        let node = Node {
            properties: properties.min(range.start),
            range,
            alias: None,
            tag: tag.map(|tag: Cow<'_, Tag>| Rc::new(tag.into_owned())),
            kind,
        };
        // 0 means no anchor.
        if anchor > 0 {
            let node = node.clone();
            self.anchors.insert(anchor, Anchored { node, size });
        }
        Ok((node, size))
    }

    fn key(&mut self, step: Step<'t>, depth: usize) -> Result<Node<S>, Error> {
        let range = step.1.clone();
        if matches!(step.0, Event::SequenceStart(..) | Event::MappingStart(..)) {
            return Err(self.error(range, ErrorKind::Key));
        }
        let key = self.node(step, depth)?.0;
        match key.kind {
            Kind::Scalar(_) => Ok(key),
            _ => Err(self.error(range, ErrorKind::Key)),
        }
    }

    fn alias(
        &mut self,
        id: usize,
        range: Range<usize>,
        depth: usize,
    ) -> Result<(Node<S>, Size), Error> {
        self.end = range.end;
        let Some(Anchored { mut node, size }) = self.anchors.get(&id).cloned() else {
            return Err(self.error(range, ErrorKind::Cycle));
        };
        if depth + size.height > self.depth {
            return Err(self.error(range, ErrorKind::TooDeep));
        }
        self.copies = self.copies.saturating_add(size.nodes);
        if self.copies > LARGEST_EXPANSION {
            return Err(self.error(range, ErrorKind::TooManyCopies));
        }
        node.alias = Some(range);
        Ok((node, size))
    }

    /// Opens a list or an object; returns its first byte, after anchor and tag.
    fn enter(&mut self, range: &Range<usize>, depth: usize) -> Result<usize, Error> {
        let start = skip_properties(self.text, range.start);
        if depth == self.depth {
            return Err(self.error(self.character(start), ErrorKind::TooDeep));
        }
        let is_flow = range.end > range.start && self.text[start..].starts_with(['[', '{']);
        if is_flow {
            self.open.push(start);
        } else if self.open.is_empty() {
            // The parser accepts a tab after spaces.
            let line = self.text[..range.start].rfind(['\n', '\r']);
            let line = line.map_or(self.base, |at| at + 1);
            let indentation = &self.text[line..range.start];
            if let Some(tab) = indentation.find('\t')
                && indentation.trim_matches([' ', '\t']).is_empty()
            {
                return Err(self.error(line + tab..line + tab + 1, ErrorKind::Tab));
            }
        }
        self.end = self.end.max(range.end.min(start));
        Ok(start)
    }

    /// Closes a list or an object; returns the byte after it.
    fn leave(&mut self, start: usize, closing: &Range<usize>) -> usize {
        if self.open.last() == Some(&start) {
            self.open.pop();
            self.end = closing.end;
        }
        // A block ends with its last item, not before the next key.
        self.end.max(start)
    }

    /// The bytes of a scalar, without its properties.
    fn scalar_range(&self, range: &Range<usize>, value: &str, style: Style) -> Range<usize> {
        match style {
            Style::Literal | Style::Folded => {
                block_header(self.text, self.end.min(range.start), range)..range.end
            }
            Style::SingleQuoted | Style::DoubleQuoted => {
                let start = skip_properties(self.text, range.start).min(range.end);
                start..closing_quote(self.text, start, range.end)
            }
            // An empty scalar; the parser returns the range of the next token.
            Style::Plain if value.is_empty() => range.start..range.start,
            Style::Plain => skip_properties(self.text, range.start).min(range.end)..range.end,
        }
    }

    /// The text of a scalar without the line break that this parser, unlike others, adds to a block
    /// at the end of a text without one.
    fn without_added_break(
        &self,
        text: Cow<'t, str>,
        style: Style,
        range: &Range<usize>,
    ) -> Cow<'t, str> {
        let is_block = matches!(style, Style::Literal | Style::Folded);
        let Some(value) = text.strip_suffix('\n').filter(|_| is_block) else {
            return text;
        };
        if range.end < self.text.len() || self.text.ends_with(['\n', '\r']) {
            return text;
        }
        let last = self.text.rsplit(['\n', '\r']).next().unwrap_or_default();
        let content = value.rsplit('\n').next().unwrap_or_default();
        let is_added = if !last.trim_matches(' ').is_empty() {
            true
        } else if !content.is_empty() && content.trim_matches(' ').is_empty() {
            // Spaces beyond the indentation are content.
            last.ends_with(content)
        } else {
            let count = |text: &str, of: char| text.chars().filter(|each| *each == of).count();
            let written = &self.text[self.text.trim_end_matches([' ', '\n', '\r']).len()..];
            let breaks = count(written, '\n').max(count(written, '\r'));
            // In a block without content, the first break ends the line of the `|`.
            let breaks = breaks - usize::from(value.trim_matches('\n').is_empty());
            text.len() - text.trim_end_matches('\n').len() > breaks
        };
        if is_added {
            return Cow::Owned(value.to_owned());
        }
        text
    }
}

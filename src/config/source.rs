//! Configuration texts and places in them.
//!
//! In: the text of configuration files. Out: [`Span`]s that every later stage keeps, and their
//! lines and columns. Must not: parse, or read the file system.

use crate::diagnostic::Diagnostic;
use crate::diagnostic::mask::{MaskedPlaces, SensitivePieces};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::credentials::is_telling;

/// A file of a configuration; an index into its [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u32);

/// A range of bytes in one source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub source: SourceId,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// The bytes `start..end` of `source`.
    pub fn new(source: SourceId, start: usize, end: usize) -> Self {
        Self {
            source,
            start: start as u32,
            end: end as u32,
        }
    }
}

/// A value and where it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value`, written at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

impl<T> std::ops::Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A place as people and editors write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters, from 1.
    pub column: usize,
    /// The offset in bytes, from 0.
    pub byte: usize,
}

/// The language of a text, which determines how strings are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// JSON with comments.
    Jsonc,
    /// YAML 1.2.
    Yaml,
    /// HCL 2.
    Hcl,
    /// A single value, such as that of `--var K=V`.
    Plain,
}

impl Language {
    /// The language of a file, by its extension. An unknown extension means JSONC.
    pub fn of_file(name: &str) -> Self {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Self::Yaml,
            "hcl" | "tfvars" => Self::Hcl,
            _ => Self::Jsonc,
        }
    }
}

/// One file: its name in messages, and its text.
#[derive(Debug)]
pub struct Source {
    /// Its language.
    pub language: Language,
    /// Its path as the user wrote it.
    pub name: String,
    /// The whole text.
    pub text: Arc<str>,
    /// Whether it is a file, and no value of the command line or the environment.
    is_file: bool,
    line_starts: Vec<u32>,
    /// The number of characters before each block of the text, computed for the first long line.
    characters_before: OnceLock<Vec<u32>>,
}

/// The size of a block, in bytes.
const BLOCK: usize = 1024;

impl Source {
    pub(super) fn new(language: Language, name: String, text: Arc<str>) -> Self {
        let line_feeds = || memchr::memchr_iter(b'\n', text.as_bytes());
        let mut line_starts = Vec::with_capacity(1 + line_feeds().count());
        line_starts.push(0);
        line_starts.extend(line_feeds().map(|at| at as u32 + 1));
        Self {
            language,
            name,
            text,
            is_file: false,
            line_starts,
            characters_before: OnceLock::new(),
        }
    }

    /// The bytes of an existing line without its line break; lines count from 1.
    pub fn line_range(&self, line: usize) -> Range<usize> {
        let start = self.line_starts[line - 1] as usize;
        let next = self.line_starts.get(line);
        let end = next.map_or(self.text.len(), |next| *next as usize - 1);
        let text = &self.text[start..end];
        start..start + text.strip_suffix('\r').unwrap_or(text).len()
    }

    /// The line and column of a byte offset; offsets past the end mean the end.
    pub fn position(&self, byte: usize) -> Position {
        let mut byte = byte.min(self.text.len());
        while !self.text.is_char_boundary(byte) {
            byte -= 1;
        }
        let line = self
            .line_starts
            .partition_point(|start| *start as usize <= byte);
        let start = self.line_starts[line - 1] as usize;
        Position {
            line,
            column: self.characters(start..byte) + 1,
            byte,
        }
    }

    /// The number of characters in a range, in constant time.
    fn characters(&self, range: Range<usize>) -> usize {
        if range.len() <= BLOCK {
            return beginnings(&self.text.as_bytes()[range]);
        }
        let blocks = self.characters_before.get_or_init(|| {
            let mut before = 0;
            let blocks = self.text.as_bytes().chunks(BLOCK).map(|block| {
                let found = before;
                before += beginnings(block) as u32;
                found
            });
            blocks.collect()
        });
        let before = |byte: usize| {
            // The text may end exactly with a full block.
            let block = (byte / BLOCK).min(blocks.len() - 1);
            blocks[block] as usize + beginnings(&self.text.as_bytes()[block * BLOCK..byte])
        };
        before(range.end) - before(range.start)
    }
}

/// The number of UTF-8 characters that begin in some bytes.
fn beginnings(bytes: &[u8]) -> usize {
    let begins = |byte: &&u8| **byte & 0b1100_0000 != 0b1000_0000;
    bytes.iter().filter(begins).count()
}

/// An interpolation in a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// The first byte in the file.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
    /// The length of its value, in bytes.
    pub length: u32,
}

/// The entries of a var-file.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Entries that aren't sensitive.
    pub(super) open: Vec<Span>,
    /// Entries that are, or may be.
    pub(super) closed: Vec<Span>,
}

impl Entries {
    /// Whether a line may be shown: all of its entries aren't sensitive.
    fn allow(&self, line: Range<usize>) -> bool {
        let touches =
            |span: &Span| (span.start as usize) < line.end && line.start < span.end as usize;
        self.open.iter().any(touches) && !self.closed.iter().any(touches)
    }

    /// Whether a byte follows the first one of an entry that is or may be sensitive.
    fn is_within_closed(&self, at: usize) -> bool {
        let holds = |span: &Span| (span.start as usize) < at && at < span.end as usize;
        self.closed.iter().any(holds)
    }
}

/// All files of one configuration.
#[derive(Debug, Default)]
pub struct SourceMap {
    sources: Vec<Source>,
    /// Interpolations by their literal; `None` if a literal has several values, as with `for_each`.
    holes: HashMap<Span, Option<Arc<[Hole]>>>,
    /// Var-files, which may contain secrets.
    guarded: HashMap<SourceId, Entries>,
    /// Whether it isn't known which values are sensitive.
    unsettled: bool,
    /// What findings must not quote.
    pub(super) masked: MaskedPlaces,
}

impl SourceMap {
    /// Adds a file; `name` is its name in messages, and selects the language.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>) -> SourceId {
        let name = name.into();
        let mut source = Source::new(Language::of_file(&name), name, text.into());
        source.is_file = true;
        self.push(source)
    }

    /// Marks a file as one text, whatever its name: places in it are those in the file.
    pub fn set_plain(&mut self, id: SourceId) {
        self.sources[id.0 as usize].language = Language::Plain;
    }

    /// Adds an expression that isn't from a file; `name` is its name in messages.
    pub fn add_expression(
        &mut self,
        name: impl Into<String>,
        text: impl Into<Arc<str>>,
    ) -> SourceId {
        self.push(Source::new(Language::Hcl, name.into(), text.into()))
    }

    /// Records the interpolations of the literal at `span`, in order.
    pub(super) fn record_holes(&mut self, span: Span, holes: Vec<Hole>) {
        match self.holes.entry(span) {
            Entry::Vacant(entry) => {
                entry.insert(Some(holes.into()));
            }
            Entry::Occupied(mut entry) => {
                if entry.get().as_deref() != Some(&holes[..]) {
                    entry.insert(None);
                }
            }
        }
    }

    /// The interpolations of the literal at `span`; empty if it has none, `None` if it has several
    /// values.
    pub(super) fn holes(&self, span: Span) -> Option<&[Hole]> {
        match self.holes.get(&span) {
            None => Some(&[]),
            Some(holes) => holes.as_deref(),
        }
    }

    /// Marks a var-file: only entry names and non-sensitive entries may be shown.
    pub(super) fn guard(&mut self, id: SourceId, entries: Entries) {
        self.guarded.insert(id, entries);
    }

    /// Marks a file whose values may all be secrets: only their names may be shown.
    pub fn hide_values(&mut self, id: SourceId) {
        self.guard(id, Entries::default());
    }

    /// Marks that sensitive values aren't known, so that lines which may hold secrets are cut.
    pub fn leave_unsettled(&mut self) {
        self.unsettled = true;
    }

    /// The part of a line that may be shown: everything before the value, if that may be sensitive.
    pub fn shown_of_line<'l>(&self, id: SourceId, start: usize, line: &'l str) -> &'l str {
        let entries = self.guarded.get(&id);
        // Within a value, something that looks like a name is part of the value.
        if entries.is_some_and(|entries| entries.is_within_closed(start)) {
            return "";
        }
        let end = line.find(['=', ':']);
        let telling = |end: usize| {
            let name = line[..end].trim();
            is_telling(name.trim_matches(['"', '\'', ',', '{']))
        };
        let hidden = match entries {
            Some(entries) => !entries.allow(start..start + line.len()),
            None => self.unsettled && end.is_some_and(telling),
        };
        match end {
            _ if !hidden => line,
            Some(end) => &line[..=end],
            None => "",
        }
    }

    /// The finding with sensitive values masked: those of the configuration, and of lines that aren't
    /// shown. `None` if it is about none.
    pub(super) fn mask(&self, finding: &Diagnostic) -> Option<Diagnostic> {
        let masked = self.masked.mask(finding);
        let hidden = finding
            .label
            .as_ref()
            .and_then(|label| self.hidden_of_line(label.span));
        let Some(hidden) = hidden else {
            return masked;
        };
        let finding = masked.unwrap_or_else(|| finding.clone());
        Some(SensitivePieces::new([hidden]).mask(finding))
    }

    /// The hidden part of the line where a span begins.
    fn hidden_of_line(&self, span: Span) -> Option<String> {
        if self.guarded.is_empty() && !self.unsettled {
            return None;
        }
        let source = self.get(span.source);
        // The parser's messages for YAML var-files are masked elsewhere.
        if source.language == Language::Yaml {
            return None;
        }
        let start = source.text[..span.start as usize].rfind('\n');
        let start = start.map_or(0, |at| at + 1);
        let line = source.text[start..].lines().next()?;
        let shown = self.shown_of_line(span.source, start, line);
        let hidden = line[shown.len()..].trim();
        (!hidden.is_empty()).then(|| hidden.to_owned())
    }

    /// Adds a value that isn't from a file; `name` is its name in messages.
    pub fn add_value(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>) -> SourceId {
        self.push(Source::new(Language::Plain, name.into(), text.into()))
    }

    pub(super) fn push(&mut self, source: Source) -> SourceId {
        self.sources.push(source);
        SourceId(self.sources.len() as u32 - 1)
    }

    /// The file with this id, which must be of this map.
    pub fn get(&self, id: SourceId) -> &Source {
        &self.sources[id.0 as usize]
    }

    /// Every file, in the order added.
    pub fn iter(&self) -> impl Iterator<Item = (SourceId, &Source)> {
        self.sources
            .iter()
            .enumerate()
            .map(|(i, s)| (SourceId(i as u32), s))
    }

    /// The names of the files, in the order added.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let files = self.sources.iter().filter(|source| source.is_file);
        files.map(|source| &*source.name)
    }

    /// The text a span covers.
    pub fn text(&self, span: Span) -> &str {
        let source = self.get(span.source);
        source
            .text
            .get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }

    /// The start and end of a span.
    pub fn range(&self, span: Span) -> (Position, Position) {
        let source = self.get(span.source);
        (
            source.position(span.start as usize),
            source.position(span.end as usize),
        )
    }

    /// The text at a span, as written.
    pub fn text_of(&self, span: Span) -> &str {
        let text = &self.get(span.source).text;
        text.get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// The file, line and column of a span's start.
    pub fn place(&self, span: Span) -> String {
        let (start, _) = self.range(span);
        format!(
            "{}:{}:{}",
            self.get(span.source).name,
            start.line,
            start.column
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let mut map = SourceMap::default();
        let id = map.add("a.jsonc", "é{\n  \"x\": 1\n}\n");
        let source = map.get(id);
        for (byte, line, column) in [
            (0, 1, 1),
            (1, 1, 1),
            (2, 1, 2),
            (4, 2, 1),
            (6, 2, 3),
            (99, 4, 1),
        ] {
            let position = source.position(byte);
            assert_eq!(
                (position.line, position.column),
                (line, column),
                "byte {byte}"
            );
        }
    }

    #[test]
    fn positions_on_long_lines_are_those_that_counting_gives() {
        for (name, part) in [("ascii", "x"), ("mixed", "aé€😀"), ("odd", "€")] {
            for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
                let line = part.repeat(length / part.len() + 1);
                let text = format!("é\n{}\n{line}\r\n{line}", &line[..part.len()]);
                let mut map = SourceMap::default();
                let id = map.add("a.jsonc", &*text);
                let source = map.get(id);
                for (byte, _) in text.char_indices().chain([(text.len(), ' ')]) {
                    let before = &text[..byte];
                    let start = before.rfind('\n').map_or(0, |at| at + 1);
                    let position = source.position(byte);
                    let counted = (
                        before.matches('\n').count(),
                        before[start..].chars().count(),
                    );
                    let found = (position.line - 1, position.column - 1);
                    assert_eq!(found, counted, "{name}, {length}, byte {byte}");
                }
            }
        }
    }

    #[test]
    fn a_line_ends_before_what_ends_it() {
        let mut map = SourceMap::default();
        let id = map.add("a.jsonc", "a\r\n\n b\rc\r");
        let source = map.get(id);
        for (line, range) in [(1, 0..1), (2, 3..3), (3, 4..8)] {
            assert_eq!(source.line_range(line), range, "line {line}");
        }
    }
}

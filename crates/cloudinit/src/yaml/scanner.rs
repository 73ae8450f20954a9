//! Characters to tokens, as PyYAML's scanner tells them apart.
//!
//! In: a text. Out: tokens, one after the other. May not: know what they mean together.
//!
//! That something was a key is seen only at the `:` behind it. Until then its token is held back,
//! so that a [`TokenKind::Key`] can still go before it; for as long as the key may last: to the end
//! of the line, and 1024 characters.

use std::collections::{BTreeMap, VecDeque};

use super::cursor::{Cursor, END, is_break_or_end, is_space, is_word};
use super::error::{Mark, YamlError};
use super::token::{Token, TokenKind};

/// How many characters a key may have that `?` doesn't announce.
const LONGEST_KEY: usize = 1024;

/// What may turn out to be a key.
#[derive(Clone, Copy)]
struct PossibleKey {
    /// The number of its first token, counted from the first of the text.
    token: usize,
    /// At this place of a block nothing else can stand.
    required: bool,
    index: usize,
    mark: Mark,
}

pub(super) struct Scanner<'t> {
    pub(super) cursor: Cursor<'t>,
    queue: VecDeque<Token>,
    taken: usize,
    ended: bool,
    /// How many brackets are open; fewer than none where one was closed too many.
    pub(super) flow: i64,
    /// The columns of the open blocks but the last, which is `indent`.
    indents: Vec<i64>,
    pub(super) indent: i64,
    /// Whether what comes next may be a key: nothing of the line stands before it.
    pub(super) key_allowed: bool,
    /// By how many brackets were open.
    possible_keys: BTreeMap<i64, PossibleKey>,
}

type Scanned<T> = Result<T, YamlError>;

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Scanned<Self> {
        Ok(Self {
            cursor: Cursor::new(text)?,
            queue: VecDeque::new(),
            taken: 0,
            ended: false,
            flow: 0,
            indents: Vec::new(),
            indent: -1,
            key_allowed: true,
            possible_keys: BTreeMap::new(),
        })
    }

    /// The next token, without taking it. Behind the end of the text there is its end again.
    pub(super) fn peek(&mut self) -> Scanned<&Token> {
        while self.needs_more()? {
            self.fetch()?;
        }
        Ok(self.queue.front().expect("a token was fetched"))
    }

    pub(super) fn next(&mut self) -> Scanned<Token> {
        self.peek()?;
        if self.ended && self.queue.len() == 1 {
            return Ok(self.queue[0].clone());
        }
        self.taken += 1;
        Ok(self.queue.pop_front().expect("a token was fetched"))
    }

    fn needs_more(&mut self) -> Scanned<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.queue.is_empty() {
            return Ok(true);
        }
        self.forget_stale_keys()?;
        let first = self.possible_keys.values().map(|key| key.token).min();
        Ok(first == Some(self.taken))
    }

    fn fetch(&mut self) -> Scanned<()> {
        self.skip_to_token();
        self.forget_stale_keys()?;
        self.close_blocks(self.cursor.column());
        let (char, next) = (self.cursor.peek(), self.cursor.peek_at(1));
        let in_flow = self.flow != 0;
        match char {
            END => self.end_stream(),
            '%' if self.cursor.column() == 0 => self.directive(),
            '-' | '.' if self.cursor.column() == 0 && self.cursor.is_at_separator() => {
                let kind = if char == '-' {
                    TokenKind::DocumentStart
                } else {
                    TokenKind::DocumentEnd
                };
                self.end_blocks()?;
                self.key_allowed = false;
                self.indicator(3, kind);
                Ok(())
            }
            '[' => self.open(TokenKind::FlowSequenceStart),
            '{' => self.open(TokenKind::FlowMappingStart),
            ']' => self.close(TokenKind::FlowSequenceEnd),
            '}' => self.close(TokenKind::FlowMappingEnd),
            ',' => {
                self.key_allowed = true;
                self.forget_key()?;
                self.indicator(1, TokenKind::FlowEntry);
                Ok(())
            }
            '-' if is_space(next) => self.block_entry(),
            '?' if in_flow || is_space(next) => self.key(),
            ':' if in_flow || is_space(next) => self.value(),
            '*' | '&' => {
                self.remember_key()?;
                self.key_allowed = false;
                let token = self.anchor()?;
                self.queue.push_back(token);
                Ok(())
            }
            '!' => {
                self.remember_key()?;
                self.key_allowed = false;
                let token = self.tag()?;
                self.queue.push_back(token);
                Ok(())
            }
            '|' | '>' if !in_flow => {
                self.key_allowed = true;
                self.forget_key()?;
                let token = self.block_scalar(char == '>')?;
                self.queue.push_back(token);
                Ok(())
            }
            '\'' | '"' => {
                self.remember_key()?;
                self.key_allowed = false;
                let token = self.quoted(char)?;
                self.queue.push_back(token);
                Ok(())
            }
            _ if begins_plain(char, next, in_flow) => {
                self.remember_key()?;
                self.key_allowed = false;
                let token = self.plain();
                self.queue.push_back(token);
                Ok(())
            }
            '\t' => Err(YamlError::new(
                self.cursor.mark(),
                "a tab can't stand here: YAML indents with blanks",
            )),
            _ => Err(YamlError::new(
                self.cursor.mark(),
                format!("nothing can begin with `{char}`"),
            )),
        }
    }

    /// Adds the token of the next `length` characters.
    fn indicator(&mut self, length: usize, kind: TokenKind) {
        let start = self.cursor.mark();
        self.cursor.skip(length);
        let end = self.cursor.mark();
        self.queue.push_back(Token { kind, start, end });
    }

    /// A token of no length.
    fn mark(&self, kind: TokenKind) -> Token {
        let mark = self.cursor.mark();
        Token {
            kind,
            start: mark,
            end: mark,
        }
    }

    fn skip_to_token(&mut self) {
        if self.cursor.index == 0 && self.cursor.peek() == '\u{feff}' {
            self.cursor.forward();
        }
        loop {
            self.cursor.skip_while(|char| char == ' ');
            if self.cursor.peek() == '#' {
                self.cursor.skip_while(|char| !is_break_or_end(char));
            }
            if self.cursor.take_break().is_none() {
                return;
            }
            if self.flow == 0 {
                self.key_allowed = true;
            }
        }
    }

    // Keys that aren't known to be keys.

    fn remember_key(&mut self) -> Scanned<()> {
        if !self.key_allowed {
            return Ok(());
        }
        self.forget_key()?;
        let key = PossibleKey {
            token: self.taken + self.queue.len(),
            required: self.flow == 0 && self.indent == self.cursor.column(),
            index: self.cursor.index,
            mark: self.cursor.mark(),
        };
        self.possible_keys.insert(self.flow, key);
        Ok(())
    }

    fn forget_key(&mut self) -> Scanned<()> {
        match self.possible_keys.remove(&self.flow) {
            Some(key) if key.required => Err(self.no_value(key)),
            _ => Ok(()),
        }
    }

    fn forget_stale_keys(&mut self) -> Scanned<()> {
        let (line, index) = (self.cursor.line(), self.cursor.index);
        if self.possible_keys.is_empty() {
            return Ok(());
        }
        let is_stale = |key: &PossibleKey| key.mark.line != line || index - key.index > LONGEST_KEY;
        let stale = self
            .possible_keys
            .values()
            .find(|key| is_stale(key) && key.required);
        if let Some(key) = stale {
            return Err(self.no_value(*key));
        }
        if self.possible_keys.values().any(is_stale) {
            self.possible_keys.retain(|_, key| !is_stale(key));
        }
        Ok(())
    }

    fn no_value(&self, key: PossibleKey) -> YamlError {
        YamlError::new(self.cursor.mark(), "a `:` is missing").within("after a key", key.mark)
    }

    // Blocks.

    fn close_blocks(&mut self, column: i64) {
        if self.flow != 0 {
            return;
        }
        while self.indent > column {
            self.indent = self.indents.pop().unwrap_or(-1);
            let end = self.mark(TokenKind::BlockEnd);
            self.queue.push_back(end);
        }
    }

    /// Opens a block at a column, unless one is open there.
    fn open_block(&mut self, column: i64) -> bool {
        if self.indent >= column {
            return false;
        }
        self.indents.push(self.indent);
        self.indent = column;
        true
    }

    /// What has to be over when a document begins or ends.
    fn end_blocks(&mut self) -> Scanned<()> {
        self.close_blocks(-1);
        self.forget_key()
    }

    fn end_stream(&mut self) -> Scanned<()> {
        self.end_blocks()?;
        self.key_allowed = false;
        self.possible_keys.clear();
        let end = self.mark(TokenKind::StreamEnd);
        self.queue.push_back(end);
        self.ended = true;
        Ok(())
    }

    fn directive(&mut self) -> Scanned<()> {
        self.end_blocks()?;
        self.key_allowed = false;
        let token = self.scan_directive()?;
        self.queue.push_back(token);
        Ok(())
    }

    fn open(&mut self, kind: TokenKind) -> Scanned<()> {
        self.remember_key()?;
        self.flow += 1;
        self.key_allowed = true;
        self.indicator(1, kind);
        Ok(())
    }

    fn close(&mut self, kind: TokenKind) -> Scanned<()> {
        self.forget_key()?;
        self.flow -= 1;
        self.key_allowed = false;
        self.indicator(1, kind);
        Ok(())
    }

    fn block_entry(&mut self) -> Scanned<()> {
        if self.flow == 0 {
            if !self.key_allowed {
                return Err(self.not_here("a list's item"));
            }
            if self.open_block(self.cursor.column()) {
                let start = self.mark(TokenKind::BlockSequenceStart);
                self.queue.push_back(start);
            }
        }
        self.key_allowed = true;
        self.forget_key()?;
        self.indicator(1, TokenKind::BlockEntry);
        Ok(())
    }

    fn key(&mut self) -> Scanned<()> {
        if self.flow == 0 {
            if !self.key_allowed {
                return Err(self.not_here("a key"));
            }
            if self.open_block(self.cursor.column()) {
                let start = self.mark(TokenKind::BlockMappingStart);
                self.queue.push_back(start);
            }
        }
        self.key_allowed = self.flow == 0;
        self.forget_key()?;
        self.indicator(1, TokenKind::Key);
        Ok(())
    }

    fn value(&mut self) -> Scanned<()> {
        if let Some(key) = self.possible_keys.remove(&self.flow) {
            let at = key.token - self.taken;
            let token = |kind| Token {
                kind,
                start: key.mark,
                end: key.mark,
            };
            self.queue.insert(at, token(TokenKind::Key));
            if self.flow == 0 && self.open_block(key.mark.column as i64) {
                self.queue.insert(at, token(TokenKind::BlockMappingStart));
            }
            self.key_allowed = false;
        } else {
            if self.flow == 0 {
                if !self.key_allowed {
                    return Err(self.not_here("a `:` with a value"));
                }
                if self.open_block(self.cursor.column()) {
                    let start = self.mark(TokenKind::BlockMappingStart);
                    self.queue.push_back(start);
                }
            }
            self.key_allowed = self.flow == 0;
            self.forget_key()?;
        }
        self.indicator(1, TokenKind::Value);
        Ok(())
    }

    fn not_here(&self, what: &str) -> YamlError {
        YamlError::new(self.cursor.mark(), format!("{what} can't stand here"))
    }

    /// `*name` or `&name`.
    fn anchor(&mut self) -> Scanned<Token> {
        let start = self.cursor.mark();
        let is_alias = self.cursor.peek() == '*';
        self.cursor.forward();
        let name = self.cursor.take_while(is_word).to_owned();
        let next = self.cursor.peek();
        if name.is_empty() || !(is_space(next) || "?:,]}%@`".contains(next)) {
            let what = if is_alias { "an alias" } else { "an anchor" };
            let problem = format!("names of {what} have letters, digits, `-` and `_`");
            return Err(YamlError::new(self.cursor.mark(), problem).within("in one", start));
        }
        let kind = if is_alias {
            TokenKind::Alias(name)
        } else {
            TokenKind::Anchor(name)
        };
        let end = self.cursor.mark();
        Ok(Token { kind, start, end })
    }
}

/// Whether a scalar without quotes can begin so.
fn begins_plain(char: char, next: char, in_flow: bool) -> bool {
    if !is_space(char) && !"-?:,[]{}#&*!|>'\"%@`".contains(char) {
        return true;
    }
    !is_space(next) && (char == '-' || !in_flow && matches!(char, '?' | ':'))
}

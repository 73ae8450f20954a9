//! Where to read on after an error. Comes in: where the broken item began; the parser stands at or
//! behind the error. Goes out: the parser stands at what is probably the next item.
//!
//! People indent. So what is indented deeper than the item belongs to it; a line that isn't and
//! starts with a name is the next item. One that starts with `{` belongs to the item above. A `}`
//! below the item's name closes the item if it opened more than it closed, and else the block around
//! it.

use super::parser::Parser;

impl Parser<'_> {
    pub(super) fn recover(&mut self, item_start: usize) {
        let indent = self.indent_of(item_start);
        let mut open = open_brackets(&self.bytes[item_start..self.at]);
        loop {
            let line = self.at;
            self.skip_line();
            open += open_brackets(&self.bytes[line..self.at]);
            if let Some(marker) = marker(&self.text[line..self.at]) {
                self.skip_heredoc(marker);
            }
            if self.is_at_end() {
                return;
            }
            while self.is_at_newline() || matches!(self.byte(), b' ' | b'\t' | b'\r') {
                self.at += 1;
            }
            if self.is_at_end() {
                return;
            }
            let here = self.indent_of(self.at);
            if here > indent {
                continue;
            }
            match self.byte() {
                b')' | b']' | b'#' | b'/' | b'{' => {}
                b'}' if here == indent && open > 0 => {}
                _ => return,
            }
        }
    }

    /// Goes to the end of a heredoc, from that of its first line; to the end of the text where it has
    /// none.
    fn skip_heredoc(&mut self, marker: &str) {
        let text = self.text;
        for line in text[self.at..].split_inclusive('\n') {
            let is_end = line.trim() == marker;
            self.at += line.len();
            if is_end {
                self.at -= usize::from(line.ends_with('\n'));
                return;
            }
        }
    }

    pub(super) fn indent_of(&self, offset: usize) -> usize {
        let line = self.text[..offset]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        self.bytes[line..offset]
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count()
    }
}

/// What ends the heredoc that begins at the end of a line.
fn marker(line: &str) -> Option<&str> {
    let (before, marker) = line.trim_end().rsplit_once("<<")?;
    if before.contains('#') || before.contains("//") {
        return None;
    }
    let marker = marker.strip_prefix('-').unwrap_or(marker);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!marker.is_empty() && marker.bytes().all(is_name)).then_some(marker)
}

/// How many brackets are opened more than closed, those in strings and comments left out.
fn open_brackets(bytes: &[u8]) -> i32 {
    let mut open = 0;
    let mut quoted = false;
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'\n' => quoted = false,
            b'\\' if quoted => {
                rest.next();
            }
            b'"' => quoted = !quoted,
            b'#' if !quoted => {
                rest.by_ref().find(|&&byte| byte == b'\n');
            }
            b'{' | b'[' | b'(' if !quoted => open += 1,
            b'}' | b']' | b')' if !quoted => open -= 1,
            _ => {}
        }
    }
    open
}

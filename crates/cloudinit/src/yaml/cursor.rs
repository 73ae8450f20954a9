//! Where the scanner is in the text, and what stands there.

use super::error::{Mark, YamlError};

/// The end of the text, as a character: the text itself can't have it.
pub(super) const END: char = '\0';

/// Whether a line ends with it.
pub(super) fn is_break(char: char) -> bool {
    matches!(char, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a line, or the text, ends with it.
pub(super) fn is_break_or_end(char: char) -> bool {
    char == END || is_break(char)
}

/// A blank, a tab, or the end of a line or the text.
pub(super) fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t') || is_break_or_end(char)
}

/// What names of anchors, tags and directives consist of.
pub(super) fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_')
}

/// A place in a text that moves on.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    mark: Mark,
    /// In characters, which is what the length of a key is counted in.
    pub(super) index: usize,
}

impl<'t> Cursor<'t> {
    /// The beginning of a text; an error if it has characters that YAML doesn't take.
    pub(super) fn new(text: &'t str) -> Result<Self, YamlError> {
        let mut cursor = Self {
            text,
            mark: Mark::default(),
            index: 0,
        };
        let special = |char: char| {
            !matches!(char, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}'
                | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
        };
        if let Some((at, char)) = text.char_indices().find(|(_, char)| special(*char)) {
            while cursor.mark.byte < at {
                cursor.forward();
            }
            let problem = format!("U+{:04X} can't stand in YAML", u32::from(char));
            return Err(YamlError::new(cursor.mark, problem));
        }
        Ok(cursor)
    }

    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    pub(super) fn column(&self) -> i64 {
        self.mark.column as i64
    }

    pub(super) fn line(&self) -> usize {
        self.mark.line
    }

    fn rest(&self) -> &'t str {
        &self.text[self.mark.byte..]
    }

    pub(super) fn peek(&self) -> char {
        self.rest().chars().next().unwrap_or(END)
    }

    /// The character after the next `skipped` ones.
    pub(super) fn peek_at(&self, skipped: usize) -> char {
        self.rest().chars().nth(skipped).unwrap_or(END)
    }

    pub(super) fn forward(&mut self) {
        let mut chars = self.rest().chars();
        let Some(char) = chars.next() else { return };
        self.mark.byte += char.len_utf8();
        self.index += 1;
        let ends_line = match char {
            '\r' => chars.next() != Some('\n'),
            char => is_break(char),
        };
        if ends_line {
            self.mark.line += 1;
            self.mark.column = 0;
        } else if char != '\u{feff}' {
            self.mark.column += 1;
        }
    }

    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.forward();
        }
    }

    pub(super) fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek() != END && wanted(self.peek()) {
            self.forward();
        }
    }

    /// Takes what is wanted, up to the end of the text at most.
    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let start = self.mark.byte;
        self.skip_while(wanted);
        &self.text[start..self.mark.byte]
    }

    /// Takes the end of a line, if it is here. All that are one for other programs are a line feed.
    pub(super) fn take_break(&mut self) -> Option<char> {
        let char = self.peek();
        match char {
            '\r' if self.peek_at(1) == '\n' => self.skip(2),
            '\r' | '\n' | '\u{85}' => self.forward(),
            '\u{2028}' | '\u{2029}' => {
                self.forward();
                return Some(char);
            }
            _ => return None,
        }
        Some('\n')
    }

    /// Whether `---` or `...` stands here, by itself.
    pub(super) fn is_at_separator(&self) -> bool {
        (self.rest().starts_with("---") || self.rest().starts_with("..."))
            && is_space(self.peek_at(3))
    }
}

impl<'t> Cursor<'t> {
    /// The text from here up to a later place.
    pub(super) fn up_to(&self, end: &Self) -> &'t str {
        &self.text[self.mark.byte..end.mark.byte]
    }
}

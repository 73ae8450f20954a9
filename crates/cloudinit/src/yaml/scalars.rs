//! Scalars: plain, quoted, and in blocks.
//!
//! In: the scanner at a scalar's first character. Out: its token, the scanner behind it.

use super::cursor::{END, is_break, is_break_or_end, is_space};
use super::error::{Mark, YamlError};
use super::scanner::Scanner;
use super::text::Builder;
use super::token::{Token, TokenKind};

/// What becomes of the line breaks at the end of a block.
#[derive(Clone, Copy, PartialEq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    /// A scalar without quotes, which may go on over lines.
    pub(super) fn plain(&mut self) -> Token {
        let start = self.cursor.mark();
        let mut end = start;
        let mut text = Builder::default();
        let mut between = String::new();
        let in_flow = self.flow != 0;
        let indent = self.indent + 1;
        loop {
            if self.cursor.peek() == '#' {
                break;
            }
            let from = self.cursor.clone();
            loop {
                let (char, next) = (self.cursor.peek(), self.cursor.peek_at(1));
                let ends_as_key =
                    char == ':' && (is_space(next) || in_flow && ",[]{}".contains(next));
                if is_space(char) || ends_as_key || in_flow && ",?[]{}".contains(char) {
                    break;
                }
                self.cursor.forward();
            }
            if self.cursor.index == from.index {
                break;
            }
            self.key_allowed = false;
            text.push_str(&between);
            text.push_str(from.up_to(&self.cursor));
            end = self.cursor.mark();
            let Some(spaces) = self.plain_spaces() else {
                break;
            };
            between = spaces;
            let is_over = between.is_empty()
                || self.cursor.peek() == '#'
                || !in_flow && self.cursor.column() < indent;
            if is_over {
                break;
            }
        }
        scalar(text, true, start, end)
    }

    /// What stands between words of a plain scalar; `None` where the document ends.
    fn plain_spaces(&mut self) -> Option<String> {
        let blanks = self.cursor.take_while(|char| char == ' ').to_owned();
        let Some(first) = self.cursor.take_break() else {
            return Some(blanks);
        };
        self.key_allowed = true;
        let mut breaks = String::new();
        loop {
            if self.cursor.is_at_separator() {
                return None;
            }
            self.cursor.skip_while(|char| char == ' ');
            match self.cursor.take_break() {
                Some(char) => breaks.push(char),
                None => break,
            }
        }
        Some(folded(first, &breaks))
    }

    /// A scalar in quotes.
    pub(super) fn quoted(&mut self, quote: char) -> Result<Token, YamlError> {
        let start = self.cursor.mark();
        let mut text = Builder::default();
        self.cursor.forward();
        self.quoted_text(quote, start, &mut text)?;
        while self.cursor.peek() != quote {
            self.quoted_spaces(start, &mut text)?;
            self.quoted_text(quote, start, &mut text)?;
        }
        self.cursor.forward();
        Ok(scalar(text, false, start, self.cursor.mark()))
    }

    fn quoted_text(
        &mut self,
        quote: char,
        start: Mark,
        text: &mut Builder,
    ) -> Result<(), YamlError> {
        let double = quote == '"';
        loop {
            let run = |char: char| !is_space(char) && !"'\"\\".contains(char);
            text.push_str(self.cursor.take_while(run));
            match self.cursor.peek() {
                '\'' if !double && self.cursor.peek_at(1) == '\'' => {
                    text.push_str("'");
                    self.cursor.skip(2);
                }
                char @ ('\'' | '"' | '\\') if char != quote && (!double || char == '\'') => {
                    text.push_str(char.encode_utf8(&mut [0; 4]));
                    self.cursor.forward();
                }
                '\\' if double => {
                    self.cursor.forward();
                    self.escape(start, text)?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn escape(&mut self, start: Mark, text: &mut Builder) -> Result<(), YamlError> {
        let char = self.cursor.peek();
        let replaced = match char {
            '0' => "\0",
            'a' => "\u{7}",
            'b' => "\u{8}",
            't' | '\t' => "\t",
            'n' => "\n",
            'v' => "\u{b}",
            'f' => "\u{c}",
            'r' => "\r",
            'e' => "\u{1b}",
            ' ' => " ",
            '"' => "\"",
            '\\' => "\\",
            '/' => "/",
            'N' => "\u{85}",
            '_' => "\u{a0}",
            'L' => "\u{2028}",
            'P' => "\u{2029}",
            'x' => return self.code(2, start, text),
            'u' => return self.code(4, start, text),
            'U' => return self.code(8, start, text),
            char if is_break(char) => {
                self.cursor.take_break();
                let breaks = self.quoted_breaks(start)?;
                text.push_str(&breaks);
                return Ok(());
            }
            char => {
                let problem = if char == END {
                    "a text in quotes doesn't end".to_owned()
                } else {
                    format!("`\\{char}` is no escape sequence")
                };
                return Err(self.in_quotes(problem, start));
            }
        };
        text.push_str(replaced);
        self.cursor.forward();
        Ok(())
    }

    /// The hexadecimal digits of `\x`, `\u` and `\U`.
    fn code(&mut self, digits: usize, start: Mark, text: &mut Builder) -> Result<(), YamlError> {
        self.cursor.forward();
        let mut point = 0_u32;
        for index in 0..digits {
            let Some(digit) = self.cursor.peek_at(index).to_digit(16) else {
                let problem = format!("{digits} hexadecimal digits have to stand here");
                return Err(self.in_quotes(problem, start));
            };
            point = point << 4 | digit;
        }
        if text.push_point(point).is_none() {
            let problem = format!("there is no character U+{point:X}");
            return Err(self.in_quotes(problem, start));
        }
        self.cursor.skip(digits);
        Ok(())
    }

    fn quoted_spaces(&mut self, start: Mark, text: &mut Builder) -> Result<(), YamlError> {
        let blanks = self
            .cursor
            .take_while(|char| matches!(char, ' ' | '\t'))
            .to_owned();
        if self.cursor.peek() == END {
            return Err(self.in_quotes("a text in quotes doesn't end", start));
        }
        match self.cursor.take_break() {
            None => text.push_str(&blanks),
            Some(first) => {
                let breaks = self.quoted_breaks(start)?;
                text.push_str(&folded(first, &breaks));
            }
        }
        Ok(())
    }

    fn quoted_breaks(&mut self, start: Mark) -> Result<String, YamlError> {
        let mut breaks = String::new();
        loop {
            if self.cursor.is_at_separator() {
                return Err(self.in_quotes("a text in quotes can't go over `---` or `...`", start));
            }
            self.cursor.skip_while(|char| matches!(char, ' ' | '\t'));
            match self.cursor.take_break() {
                Some(char) => breaks.push(char),
                None => return Ok(breaks),
            }
        }
    }

    fn in_quotes(&self, problem: impl Into<String>, start: Mark) -> YamlError {
        YamlError::new(self.cursor.mark(), problem).within("in a text in quotes", start)
    }

    /// A scalar after `|` or `>`.
    pub(super) fn block_scalar(&mut self, folds: bool) -> Result<Token, YamlError> {
        let start = self.cursor.mark();
        self.cursor.forward();
        let (chomping, increment) = self.block_indicators(start)?;
        self.rest_of_line(start)?;
        let least = (self.indent + 1).max(1);
        let mut breaks = String::new();
        let indent = match increment {
            Some(increment) => {
                let indent = least + increment - 1;
                breaks.push_str(&self.block_breaks(indent));
                indent
            }
            None => {
                let mut deepest = 0;
                loop {
                    match self.cursor.peek() {
                        ' ' => {
                            self.cursor.forward();
                            deepest = deepest.max(self.cursor.column());
                        }
                        _ => match self.cursor.take_break() {
                            Some(char) => breaks.push(char),
                            None => break,
                        },
                    }
                }
                least.max(deepest)
            }
        };
        let mut text = Builder::default();
        let mut last = None;
        let mut end = self.cursor.mark();
        while self.cursor.column() == indent && self.cursor.peek() != END {
            text.push_str(&breaks);
            let is_text = |char| !matches!(char, ' ' | '\t');
            let begins_with_text = is_text(self.cursor.peek());
            let line = self.cursor.take_while(|char| !is_break_or_end(char));
            text.push_str(line);
            last = self.cursor.take_break();
            breaks = self.block_breaks(indent);
            end = self.cursor.mark();
            if self.cursor.column() != indent || self.cursor.peek() == END {
                break;
            }
            let joins = folds && last == Some('\n') && begins_with_text;
            if joins && is_text(self.cursor.peek()) {
                if breaks.is_empty() {
                    text.push_str(" ");
                }
            } else if let Some(char) = last {
                text.push_str(char.encode_utf8(&mut [0; 4]));
            }
        }
        if chomping != Chomping::Strip
            && let Some(char) = last
        {
            text.push_str(char.encode_utf8(&mut [0; 4]));
        }
        if chomping == Chomping::Keep {
            text.push_str(&breaks);
        }
        Ok(scalar(text, false, start, end))
    }

    fn block_indicators(&mut self, start: Mark) -> Result<(Chomping, Option<i64>), YamlError> {
        let mut chomping = None;
        let mut increment = None;
        loop {
            let char = self.cursor.peek();
            match char {
                '+' if chomping.is_none() => chomping = Some(Chomping::Keep),
                '-' if chomping.is_none() => chomping = Some(Chomping::Strip),
                '1'..='9' if increment.is_none() => {
                    increment = char.to_digit(10).map(i64::from);
                }
                char if char == ' ' || is_break_or_end(char) => {
                    return Ok((chomping.unwrap_or(Chomping::Clip), increment));
                }
                _ => {
                    let problem = "after `|` and `>` stand `+` or `-`, and a digit from 1 to 9";
                    let error = YamlError::new(self.cursor.mark(), problem);
                    return Err(error.within("in a block of text", start));
                }
            }
            self.cursor.forward();
        }
    }

    /// What may stand behind `|` and `>`: a comment.
    fn rest_of_line(&mut self, start: Mark) -> Result<(), YamlError> {
        self.cursor.skip_while(|char| char == ' ');
        if self.cursor.peek() == '#' {
            self.cursor.skip_while(|char| !is_break_or_end(char));
        }
        if !is_break_or_end(self.cursor.peek()) {
            let problem = "the text begins on the next line";
            let error = YamlError::new(self.cursor.mark(), problem);
            return Err(error.within("in a block of text", start));
        }
        self.cursor.take_break();
        Ok(())
    }

    fn block_breaks(&mut self, indent: i64) -> String {
        let mut breaks = String::new();
        loop {
            while self.cursor.column() < indent && self.cursor.peek() == ' ' {
                self.cursor.forward();
            }
            match self.cursor.take_break() {
                Some(char) => breaks.push(char),
                None => return breaks,
            }
        }
    }
}

fn scalar(text: Builder, plain: bool, start: Mark, end: Mark) -> Token {
    let text = text.finish();
    let kind = TokenKind::Scalar { text, plain };
    Token { kind, start, end }
}

/// One line break is a blank, of several one is lost; but those of Unicode stay.
fn folded(first: char, breaks: &str) -> String {
    match first {
        '\n' if breaks.is_empty() => " ".to_owned(),
        '\n' => breaks.to_owned(),
        other => format!("{other}{breaks}"),
    }
}

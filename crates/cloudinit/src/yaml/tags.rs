//! Tags and directives.
//!
//! In: the scanner at `!` or `%`. Out: its token, the scanner behind it.

use super::cursor::{is_break_or_end, is_space, is_word};
use super::error::{Mark, YamlError};
use super::scanner::Scanner;
use super::token::{Directive, Token, TokenKind};

impl Scanner<'_> {
    /// `!`, `!name`, `!!name`, `!handle!name` or `!<name>`.
    pub(super) fn tag(&mut self) -> Result<Token, YamlError> {
        let start = self.cursor.mark();
        let (handle, suffix) = match self.cursor.peek_at(1) {
            '<' => {
                self.cursor.skip(2);
                let suffix = self.uri(start)?;
                if self.cursor.peek() != '>' {
                    return Err(self.in_tag("a `>` is missing", start));
                }
                self.cursor.forward();
                (None, suffix)
            }
            next if is_space(next) => {
                self.cursor.forward();
                (None, "!".to_owned())
            }
            _ => {
                let rest = (1..).map(|index| self.cursor.peek_at(index));
                let mut rest = rest.take_while(|char| !is_break_or_end(*char) && *char != ' ');
                let handle = if rest.any(|char| char == '!') {
                    self.handle(start)?
                } else {
                    self.cursor.forward();
                    "!".to_owned()
                };
                (Some(handle), self.uri(start)?)
            }
        };
        let next = self.cursor.peek();
        if next != ' ' && !is_break_or_end(next) {
            return Err(self.in_tag("a space is missing", start));
        }
        let end = self.cursor.mark();
        let kind = TokenKind::Tag { handle, suffix };
        Ok(Token { kind, start, end })
    }

    /// `!`, `!!` or `!name!`.
    fn handle(&mut self, start: Mark) -> Result<String, YamlError> {
        let from = self.cursor.clone();
        if self.cursor.peek() != '!' {
            return Err(self.in_tag("a `!` is missing", start));
        }
        self.cursor.forward();
        if self.cursor.peek() != ' ' {
            self.cursor.skip_while(is_word);
            if self.cursor.peek() != '!' {
                return Err(self.in_tag("a `!` is missing", start));
            }
            self.cursor.forward();
        }
        Ok(from.up_to(&self.cursor).to_owned())
    }

    fn uri(&mut self, start: Mark) -> Result<String, YamlError> {
        let is_plain =
            |char: char| char.is_ascii_alphanumeric() || "-;/?:@&=+$,_.!~*'()[]".contains(char);
        let mut uri = self.cursor.take_while(is_plain).to_owned();
        while self.cursor.peek() == '%' {
            let mut bytes = Vec::new();
            while self.cursor.peek() == '%' {
                let digit = |index| self.cursor.peek_at(index).to_digit(16);
                let (Some(high), Some(low)) = (digit(1), digit(2)) else {
                    let problem = "two hexadecimal digits have to stand after `%`";
                    return Err(self.in_tag(problem, start));
                };
                bytes.push((high << 4 | low) as u8);
                self.cursor.skip(3);
            }
            let text = String::from_utf8(bytes)
                .map_err(|_| self.in_tag("what `%` stands for isn't UTF-8", start))?;
            uri.push_str(&text);
            uri.push_str(self.cursor.take_while(is_plain));
        }
        if uri.is_empty() {
            return Err(self.in_tag("a name is missing", start));
        }
        Ok(uri)
    }

    fn in_tag(&self, problem: &str, start: Mark) -> YamlError {
        YamlError::new(self.cursor.mark(), problem).within("in a tag", start)
    }

    /// A line that begins with `%`.
    pub(super) fn scan_directive(&mut self) -> Result<Token, YamlError> {
        let start = self.cursor.mark();
        self.cursor.forward();
        let name = self.cursor.take_while(is_word);
        let wrong = |scanner: &Self, problem: &str| {
            YamlError::new(scanner.cursor.mark(), problem).within("in a directive", start)
        };
        let is_over = |char: char| char == ' ' || is_break_or_end(char);
        if name.is_empty() || !is_over(self.cursor.peek()) {
            return Err(wrong(self, "names of directives are words"));
        }
        let blanks = |scanner: &mut Self| scanner.cursor.skip_while(|char| char == ' ');
        let directive = match name {
            "YAML" => {
                blanks(self);
                let major = self.cursor.take_while(|char| char.is_ascii_digit());
                let dot = self.cursor.peek() == '.';
                self.cursor.skip(usize::from(dot));
                let minor = self.cursor.take_while(|char| char.is_ascii_digit());
                let is_version = dot && !major.is_empty() && !minor.is_empty();
                if !is_version || !is_over(self.cursor.peek()) {
                    return Err(wrong(self, "a version has to stand here, such as 1.1"));
                }
                Directive::Version(major.parse().unwrap_or(u64::MAX))
            }
            "TAG" => {
                blanks(self);
                let handle = self.handle(start)?;
                if self.cursor.peek() != ' ' {
                    return Err(wrong(self, "a space is missing"));
                }
                blanks(self);
                let prefix = self.uri(start)?;
                if !is_over(self.cursor.peek()) {
                    return Err(wrong(self, "a space is missing"));
                }
                Directive::Tag { handle, prefix }
            }
            _ => {
                self.cursor.skip_while(|char| !is_break_or_end(char));
                Directive::Unknown
            }
        };
        let end = self.cursor.mark();
        blanks(self);
        if self.cursor.peek() == '#' {
            self.cursor.skip_while(|char| !is_break_or_end(char));
        }
        if !is_break_or_end(self.cursor.peek()) {
            return Err(wrong(self, "the line has to end here"));
        }
        self.cursor.take_break();
        let kind = TokenKind::Directive(directive);
        Ok(Token { kind, start, end })
    }
}

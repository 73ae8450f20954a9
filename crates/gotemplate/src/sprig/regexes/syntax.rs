//! From Go's syntax of regular expressions to that of the crate `regex`.
//!
//! In: an expression. Out: one that matches the same, or Go's words for why it is none. What both
//! take for wrong is left for the crate to find.

/// The most often that anything may be repeated.
const MOST_REPEATS: u32 = 1000;

/// Groups within groups.
const DEPTH: usize = 1000;

/// Writes an expression the crate's way.
pub(super) fn translate(source: &str) -> Result<String, String> {
    let mut translator = Translator {
        source,
        rest: source,
        made: String::with_capacity(source.len()),
        open: Vec::new(),
        last: Last::None,
        repeats: 1,
    };
    translator.run()?;
    Ok(translator.made)
}

/// What stands before, as far as a repetition is concerned.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// Nothing that could be repeated.
    None,
    Item,
    /// A repetition, where it began in the source, and how long the rest was there.
    Repetition(usize),
}

struct Translator<'s> {
    source: &'s str,
    rest: &'s str,
    made: String,
    /// For each open group, how often what is in it is repeated at most.
    open: Vec<u32>,
    last: Last,
    /// How often the latest item is repeated at most, all in all.
    repeats: u32,
}

impl Translator<'_> {
    fn at(&self) -> usize {
        self.source.len() - self.rest.len()
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(next) = self.rest.chars().next() {
            match next {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    let Some(inner) = self.open.pop() else {
                        return Err(format!("unexpected ): `{}`", self.source));
                    };
                    self.keep(1);
                    self.repeats = self.repeats.max(inner);
                    self.last = Last::Item;
                }
                '|' => {
                    self.keep(1);
                    self.last = Last::None;
                }
                '*' | '+' | '?' => self.repetition(1, None)?,
                '{' => match counts(self.rest) {
                    Some((length, least, most)) => {
                        let text = &self.rest[..length];
                        let wrong = least > MOST_REPEATS
                            || most.is_some_and(|most| most > MOST_REPEATS || most < least);
                        if wrong {
                            return Err(format!("invalid repeat count: `{text}`"));
                        }
                        self.repetition(length, Some(most.unwrap_or(least).max(1)))?;
                    }
                    None => {
                        self.made.push('\\');
                        self.item(1);
                    }
                },
                '}' => {
                    self.made.push('\\');
                    self.item(1);
                }
                other => self.item(other.len_utf8()),
            }
        }
        if !self.open.is_empty() {
            return Err(format!("missing closing ): `{}`", self.source));
        }
        Ok(())
    }

    /// Takes over bytes of the source.
    fn keep(&mut self, length: usize) {
        let (kept, rest) = self.rest.split_at(length);
        self.made.push_str(kept);
        self.rest = rest;
    }

    fn item(&mut self, length: usize) {
        self.keep(length);
        self.is_item();
    }

    fn is_item(&mut self) {
        self.last = Last::Item;
        self.repeats = 1;
    }

    /// Writes something else in place of bytes of the source.
    fn instead(&mut self, length: usize, text: &str) {
        self.made.push_str(text);
        self.rest = &self.rest[length..];
        self.is_item();
    }

    fn repetition(&mut self, length: usize, count: Option<u32>) -> Result<(), String> {
        let start = self.at();
        let mut end = start + length;
        if self.rest[length..].starts_with('?') {
            end += 1;
        }
        let text = &self.source[start..end];
        match self.last {
            Last::None => {
                return Err(format!("missing argument to repetition operator: `{text}`"));
            }
            Last::Repetition(before) => {
                let both = &self.source[before..end];
                return Err(format!("invalid nested repetition operator: `{both}`"));
            }
            Last::Item => {}
        }
        if let Some(count) = count {
            self.repeats = self.repeats.saturating_mul(count);
            if self.repeats > MOST_REPEATS {
                return Err(format!("invalid repeat count: `{text}`"));
            }
        }
        self.keep(end - start);
        self.last = Last::Repetition(start);
        Ok(())
    }

    fn group(&mut self) -> Result<(), String> {
        if self.open.len() == DEPTH {
            return Err(format!("expression nests too deeply: `{}`", self.source));
        }
        let Some(inner) = self.rest.strip_prefix("(?") else {
            self.keep(1);
            self.open.push(1);
            self.last = Last::None;
            return Ok(());
        };
        if inner.starts_with("P<") || inner.starts_with('<') {
            let named = inner.strip_prefix('P').unwrap_or(inner);
            let end = named.find('>').map(|end| end + 1);
            let name = end.map_or("", |end| &named[1..end - 1]);
            let word = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let begins = name.starts_with(|first: char| !first.is_ascii_digit());
            let Some(end) = end.filter(|_| word && !name.is_empty()) else {
                let shown = &self.rest[..self.rest.len().min(4 + name.len())];
                return Err(format!("invalid named capture: `{shown}`"));
            };
            let prefix = self.rest.len() - inner.len() + (inner.len() - named.len());
            if begins {
                self.keep(prefix + end);
            } else {
                // The crate takes no name that begins with a digit: no group has it, then.
                self.made.push('(');
                self.rest = &self.rest[prefix + end..];
            }
            self.open.push(1);
            self.last = Last::None;
            return Ok(());
        }
        let end = inner.find([':', ')']);
        let flags = end.map_or(inner, |end| &inner[..end]);
        let known = |flag: char| matches!(flag, 'i' | 'm' | 's' | 'U' | '-');
        let minus = flags.matches('-').count();
        if end.is_none() || !flags.chars().all(known) || minus > 1 || flags.ends_with('-') {
            let bad = flags.find(|flag| !known(flag)).unwrap_or(flags.len());
            let shown: String = self
                .rest
                .chars()
                .take(3 + flags[..bad].chars().count())
                .collect();
            return Err(format!("invalid or unsupported Perl syntax: `{shown}`"));
        }
        let length = 2 + flags.len();
        let opens = self.rest[length..].starts_with(':');
        if !opens && flags.is_empty() {
            // It says nothing, which the crate doesn't take.
            self.rest = &self.rest[length + 1..];
            self.last = Last::None;
            return Ok(());
        }
        self.keep(length + 1);
        if opens {
            self.open.push(1);
        }
        self.last = Last::None;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(next) = self.rest[1..].chars().next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        match next {
            'Q' => {
                let inner = &self.rest[2..];
                let end = inner.find("\\E");
                let (text, after) = match end {
                    Some(end) => (&inner[..end], &inner[end + 2..]),
                    None => (inner, ""),
                };
                self.made.push_str(&regex::escape(text));
                self.rest = after;
                if !text.is_empty() {
                    self.is_item();
                }
            }
            'E' => self.rest = &self.rest[2..],
            'A' | 'z' => self.item(2),
            'b' | 'B' => self.instead(
                2,
                if next == 'b' {
                    "(?-u:\\b)"
                } else {
                    "(?-u:\\B)"
                },
            ),
            'd' => self.instead(2, "[0-9]"),
            'D' => self.instead(2, "[^0-9]"),
            's' => self.instead(2, "[\\t\\n\\x0c\\r ]"),
            'S' => self.instead(2, "[^\\t\\n\\x0c\\r ]"),
            'w' => self.instead(2, "[0-9A-Za-z_]"),
            'W' => self.instead(2, "[^0-9A-Za-z_]"),
            'p' | 'P' => {
                let length = self.property_length()?;
                self.item(length);
            }
            _ => {
                let (character, length) = self.character_escape()?;
                self.instead(length, &literal(character));
            }
        }
        Ok(())
    }

    /// The bytes of `\pL` or `\p{Greek}`.
    fn property_length(&self) -> Result<usize, String> {
        let after = &self.rest[2..];
        let length = if after.starts_with('{') {
            after.find('}').map(|end| end + 1)
        } else {
            after.chars().next().map(char::len_utf8)
        };
        match length {
            Some(length) => Ok(2 + length),
            None => Err(format!("invalid character class range: `{}`", self.rest)),
        }
    }

    /// The character that an escape stands for, and the bytes of the escape.
    fn character_escape(&self) -> Result<(char, usize), String> {
        let escaped = &self.rest[1..];
        let wrong = |length: usize| {
            let shown: String = self.rest.chars().take(length).collect();
            Err(format!("invalid escape sequence: `{shown}`"))
        };
        let Some(first) = escaped.chars().next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let octal = |text: &str| {
            text.bytes()
                .take(3)
                .take_while(|byte| (b'0'..b'8').contains(byte))
                .count()
        };
        Ok(match first {
            'a' => ('\x07', 2),
            'f' => ('\x0c', 2),
            'n' => ('\n', 2),
            'r' => ('\r', 2),
            't' => ('\t', 2),
            'v' => ('\x0b', 2),
            '0' => {
                let length = octal(escaped);
                let code = u32::from_str_radix(&escaped[..length], 8).unwrap_or_default();
                (char::from_u32(code).unwrap_or('\0'), 1 + length)
            }
            '1'..='7' => {
                let length = octal(escaped);
                if length < 2 {
                    return wrong(2);
                }
                let code = u32::from_str_radix(&escaped[..length], 8).unwrap_or_default();
                (char::from_u32(code).unwrap_or('\0'), 1 + length)
            }
            'x' => {
                let digits = &escaped[1..];
                let (digits, length) = match digits.strip_prefix('{') {
                    Some(inner) => match inner.find('}') {
                        Some(end) => (&inner[..end], end + 4),
                        None => return wrong(self.rest.len()),
                    },
                    None => (digits.get(..2).unwrap_or_default(), 4),
                };
                let hexadecimal =
                    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits, 16).ok().filter(|_| hexadecimal);
                match code.and_then(char::from_u32) {
                    Some(character) => (character, length),
                    None => return wrong(4),
                }
            }
            punctuation if punctuation.is_ascii_punctuation() => (punctuation, 2),
            _ => return wrong(2),
        })
    }

    /// A class in brackets: the crate has operators in it where Go has characters.
    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        self.keep(1);
        if self.rest.starts_with('^') {
            self.keep(1);
        }
        let mut first = true;
        loop {
            if self.rest.is_empty() {
                return Err(format!("missing closing ]: `{whole}`"));
            }
            if self.rest.starts_with(']') && !first {
                self.item(1);
                return Ok(());
            }
            first = false;
            if self.named_class()? {
                continue;
            }
            let start = self.rest;
            let lower = self.class_character(whole)?;
            self.made.push_str(&literal(lower));
            let upper = self.rest.strip_prefix('-');
            if let Some(upper) = upper.filter(|upper| !upper.is_empty() && !upper.starts_with(']'))
            {
                self.rest = upper;
                let upper = self.class_character(whole)?;
                if upper < lower {
                    let range = &start[..start.len() - self.rest.len()];
                    return Err(format!("invalid character class range: `{range}`"));
                }
                self.made.push('-');
                self.made.push_str(&literal(upper));
            }
        }
    }

    /// A class within a class, such as `[:alpha:]`, `\d` or `\pL`.
    fn named_class(&mut self) -> Result<bool, String> {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print",
            "punct", "space", "upper", "word", "xdigit",
        ];
        if let Some(inner) = self.rest.strip_prefix("[:")
            && let Some(end) = inner.find(":]")
        {
            let name = &inner[..end];
            if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
                return Err(format!("invalid character class range: `[:{name}:]`"));
            }
            self.keep(end + 4);
            return Ok(true);
        }
        let Some(escaped) = self.rest.strip_prefix('\\') else {
            return Ok(false);
        };
        let text = match escaped.chars().next() {
            Some('d') => "0-9",
            Some('D') => "[^0-9]",
            Some('s') => "\\t\\n\\x0c\\r ",
            Some('S') => "[^\\t\\n\\x0c\\r ]",
            Some('w') => "0-9A-Za-z_",
            Some('W') => "[^0-9A-Za-z_]",
            Some('p' | 'P') => {
                let length = self.property_length()?;
                self.keep(length);
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.instead(2, text);
        Ok(true)
    }

    /// Takes a character of a class.
    fn class_character(&mut self, whole: &str) -> Result<char, String> {
        let (character, length) = match self.rest.chars().next() {
            None => return Err(format!("missing closing ]: `{whole}`")),
            Some('\\') => self.character_escape()?,
            Some(character) => (character, character.len_utf8()),
        };
        self.rest = &self.rest[length..];
        Ok(character)
    }
}

/// A character as an expression that matches it.
fn literal(character: char) -> String {
    if character.is_alphanumeric() {
        character.to_string()
    } else {
        format!("\\x{{{:x}}}", u32::from(character))
    }
}

/// The bytes of `{2}`, `{2,}` or `{2,3}`, and its numbers. Anything else is no repetition.
fn counts(text: &str) -> Option<(usize, u32, Option<u32>)> {
    let end = text.find('}')?;
    let (least, most) = match text[1..end].split_once(',') {
        Some((least, most)) => (least, Some(most)),
        None => (&text[1..end], None),
    };
    let number = |digits: &str| -> Option<u32> {
        let fits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let least = number(least)?;
    let most = match most {
        None => Some(least),
        Some("") => None,
        Some(digits) => Some(number(digits)?),
    };
    Some((end + 1, least, most))
}

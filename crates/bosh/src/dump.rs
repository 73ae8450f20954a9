//! Writes values as Ruby's `to_yaml` does: Psych chooses a style for each string, libyaml lays it
//! out in lines of 80 columns. A diff by the Director consists of such lines.

use std::sync::LazyLock;

use regex::Regex;

use crate::value::{Data, Value};
use crate::yaml::ruby_scalar;

/// Text is broken at the first space after this column.
const WIDTH: usize = 80;

/// The lines of a value.
pub(crate) fn lines(value: &Value) -> Vec<String> {
    let mut writer = Writer::default();
    writer.node(value, 0);
    let text = writer.out.trim_end_matches('\n');
    text.split('\n').map(str::to_owned).collect()
}

#[derive(Default)]
struct Writer {
    out: String,
    /// The characters in the last line.
    column: usize,
}

impl Writer {
    /// Writes a value at the start of a line, or behind `- `. All entries after the first start at
    /// `indent`, and so do the further lines of a scalar. A list in a map isn't indented.
    fn node(&mut self, value: &Value, indent: usize) {
        match &value.data {
            Data::List(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.line(indent);
                    }
                    self.put('-');
                    if !item.is_null() {
                        self.put(' ');
                    }
                    self.node(item, indent + 2);
                }
            }
            Data::Map(entries) if !entries.is_empty() => {
                for (index, entry) in entries.iter().enumerate() {
                    if index > 0 {
                        self.line(indent);
                    }
                    self.scalar(&entry.key, indent, true);
                    self.put(':');
                    match &entry.value.data {
                        Data::List(items) if !items.is_empty() => {
                            self.line(indent);
                            self.node(&entry.value, indent);
                        }
                        Data::Map(entries) if !entries.is_empty() => {
                            self.line(indent + 2);
                            self.node(&entry.value, indent + 2);
                        }
                        _ => {
                            if !entry.value.is_null() {
                                self.put(' ');
                            }
                            self.scalar(&entry.value, indent + 2, false);
                        }
                    }
                }
            }
            _ => self.scalar(value, indent, false),
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize, is_key: bool) {
        match &value.data {
            Data::Null => {}
            Data::List(_) => self.put_all("[]"),
            Data::Map(_) => self.put_all("{}"),
            Data::Float(value) if value.is_nan() => self.put_all(".nan"),
            Data::Float(f64::INFINITY) => self.put_all(".inf"),
            Data::Float(f64::NEG_INFINITY) => self.put_all("-.inf"),
            Data::Bool(_) | Data::Integer(_) | Data::Float(_) => self.put_all(&value.to_s()),
            Data::String(text) => match style(text, is_key) {
                Style::Plain => self.plain(text, indent, is_key),
                Style::Single => self.single(text, indent, is_key),
                Style::Double => self.double(text, indent, is_key),
                Style::Literal => self.literal(text, indent),
            },
        }
    }

    fn plain(&mut self, text: &str, indent: usize, is_key: bool) {
        let mut after_space = false;
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let can_break = !is_key && !after_space && rest.peek() != Some(&' ');
            after_space = character == ' ';
            if after_space && can_break && self.column > WIDTH {
                self.line(indent);
            } else {
                self.put(character);
            }
        }
    }

    fn single(&mut self, text: &str, indent: usize, is_key: bool) {
        self.put('\'');
        let (mut after_space, mut after_break) = (false, false);
        let mut rest = text.chars().enumerate().peekable();
        while let Some((index, character)) = rest.next() {
            if character == '\n' {
                if !after_break {
                    self.line(0);
                }
                self.line(0);
                after_break = true;
                continue;
            }
            if after_break && character != ' ' {
                self.pad(indent);
            }
            after_break = after_break && character == ' ';
            let next = rest.peek().map(|(_, next)| *next);
            let can_break = !is_key && !after_space && index > 0;
            let can_break = can_break && next.is_some_and(|next| next != ' ');
            after_space = character == ' ';
            if after_space && can_break && self.column > WIDTH {
                self.line(indent);
            } else {
                self.put(character);
                if character == '\'' {
                    self.put('\'');
                }
            }
        }
        if after_break {
            self.pad(indent);
        }
        self.put('\'');
    }

    fn double(&mut self, text: &str, indent: usize, is_key: bool) {
        self.put('"');
        let mut after_space = false;
        let mut rest = text.chars().enumerate().peekable();
        while let Some((index, character)) = rest.next() {
            let next = rest.peek().map(|(_, next)| *next);
            if character == ' ' {
                let can_break = !is_key && !after_space && index > 0 && next.is_some();
                if can_break && self.column > WIDTH {
                    self.line(indent);
                    if next == Some(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                after_space = true;
                continue;
            }
            after_space = false;
            if is_printable(character) && !is_break(character) && !matches!(character, '"' | '\\') {
                self.put(character);
            } else {
                self.put_all(&escape(character));
            }
        }
        self.put('"');
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put('|');
        if text.starts_with([' ', '\n']) {
            self.put('2');
        }
        match text.strip_suffix('\n') {
            None => self.put('-'),
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => self.put('+'),
            Some(_) => {}
        }
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.line(0);
            if !line.is_empty() {
                self.pad(indent);
                self.put_all(line);
            }
        }
    }

    fn put(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }

    fn put_all(&mut self, text: &str) {
        for character in text.chars() {
            self.put(character);
        }
    }

    fn pad(&mut self, indent: usize) {
        while self.column < indent {
            self.put(' ');
        }
    }

    /// Starts a line.
    fn line(&mut self, indent: usize) {
        self.out.push('\n');
        self.column = 0;
        self.pad(indent);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// The style that Psych asks for, or the next one that libyaml allows.
fn style(text: &str, is_key: bool) -> Style {
    let allowed = Allowed::of(text);
    let wanted = wanted(text);
    match wanted {
        _ if is_key && text.contains(is_break) => Style::Double,
        Style::Literal if !allowed.literal || is_key => Style::Double,
        Style::Plain if allowed.plain && !(is_key && text.is_empty()) => Style::Plain,
        Style::Plain | Style::Single if allowed.single => Style::Single,
        Style::Plain | Style::Single => Style::Double,
        Style::Double | Style::Literal => wanted,
    }
}

fn wanted(text: &str) -> Style {
    let content = text.trim_end_matches('\n');
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let starts_with_sign = text.chars().next().is_some_and(|first| !is_word(first));
    if content.contains('\n') {
        return Style::Literal;
    }
    if text.len() > content.len() + 1
        || starts_with_sign && !text.chars().skip(1).any(|other| other == '"')
        || matches!(text, "y" | "n" | "Y" | "N")
    {
        return Style::Double;
    }
    let is_octal_like = text.strip_prefix('0').is_some_and(|rest| {
        rest.trim_start_matches(|digit| matches!(digit, '0'..='7'))
            .starts_with(['8', '9'])
    });
    if text == "<<" || is_octal_like || DATE.is_match(text) {
        return Style::Single;
    }
    // A symbol starts with a colon.
    match ruby_scalar(text) {
        Data::String(_) if !text.starts_with(':') => Style::Plain,
        _ => Style::Single,
    }
}

/// A date, alone or with a time.
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    let date = r"\d{4}-(1[012]|0?\d)-([12]\d|3[01]|0?\d)";
    let time =
        r"-?\d{4}-\d{1,2}-\d{1,2}([Tt]|\s+)\d{1,2}:\d\d:\d\d(\.\d*)?(\s*(Z|[-+]\d{1,2}(:?\d\d)?))?";
    #[expect(clippy::unwrap_used, reason = "a constant that the tests compile")]
    Regex::new(&format!(r"^(({date})|({time}))$")).unwrap()
});

/// The styles that libyaml can write a text in, outside of `[]` and `{}`.
struct Allowed {
    plain: bool,
    single: bool,
    literal: bool,
}

impl Allowed {
    fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self {
                plain: true,
                single: true,
                literal: false,
            };
        }
        let is_blank = |character: char| matches!(character, ' ' | '\t') || is_break(character);
        let is_blank_or_end = |character: Option<char>| character.is_none_or(is_blank);
        let mut has_indicator = text.starts_with("---") || text.starts_with("...");
        let (mut has_break, mut has_special) = (false, false);
        let (mut space_break, mut break_space) = (false, false);
        let mut before = None;
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let next_is_blank = is_blank_or_end(rest.peek().copied());
            has_indicator |= match character {
                '#' => is_blank_or_end(before),
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
                | '@' | '`' => before.is_none(),
                '-' | '?' => before.is_none() && next_is_blank,
                ':' => next_is_blank,
                _ => false,
            };
            has_special |= !is_printable(character);
            has_break |= is_break(character);
            space_break |= is_break(character) && before == Some(' ');
            break_space |= character == ' ' && before.is_some_and(is_break);
            before = Some(character);
        }
        let is_space = |character: char| character == ' ' || is_break(character);
        let is_trimmed = !text.starts_with(is_space) && !text.ends_with(is_space);
        let is_single = !break_space && !space_break && !has_special;
        Self {
            plain: is_trimmed && is_single && !has_break && !has_indicator,
            single: is_single,
            literal: !text.ends_with(' ') && !space_break && !has_special,
        }
    }
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// libyaml knows no printable characters of four bytes.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && character != '\u{feff}'
}

fn escape(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(character) {
                code @ ..=0xff => format!("\\x{code:02X}"),
                code @ ..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Place;
    use crate::yaml::read;

    /// What Ruby 3.1 writes, with Psych 4.0.3 and libyaml 0.2.5.
    #[test]
    fn values_are_written_as_psych_writes_them() {
        for (yaml, expected) in [
            (
                "{a: ~, b: {}, c: [], d: true, e: 1.5, 1: -2}",
                "a:\nb: {}\nc: []\nd: true\ne: 1.5\n1: -2",
            ),
            (
                "{a: [1, ~, [2, [3]], {b: 4, c: [5]}]}",
                "a:\n- 1\n-\n- - 2\n  - - 3\n- b: 4\n  c:\n  - 5",
            ),
            ("[{a: {b: {c: 1}}}]", "- a:\n    b:\n      c: 1"),
            (
                "[1.0e+20, 1.0e-7, .inf, -.inf, .nan]",
                "- 1.0e+20\n- 1.0e-07\n- .inf\n- -.inf\n- .nan",
            ),
            (
                "[a b, é, a#b, a:b, 10.0.0.0/8, 'a, b', 2026-01-31x, 2026-13-01, ':\"']",
                "- a b\n- é\n- a#b\n- a:b\n- 10.0.0.0/8\n- a, b\n- 2026-01-31x\n- 2026-13-01\n- ':\"'",
            ),
            (
                "['', 'a: b', 'a #b', '1', '08', 'yes', '1:20', '2026-01-31']",
                "- ''\n- 'a: b'\n- 'a #b'\n- '1'\n- '08'\n- 'yes'\n- '1:20'\n- '2026-01-31'",
            ),
            (
                "[2026-01-31 10:00:00 Z, \"a\\t\", /a, '-', <x>, ((v)), 'y', 'N', '\"', '-a\"']",
                "- '2026-01-31 10:00:00 Z'\n- \"a\\t\"\n- \"/a\"\n- \"-\"\n- \"<x>\"\n- \"((v))\"\n\
                 - \"y\"\n- \"N\"\n- \"\\\"\"\n- -a\"",
            ),
            (
                "{a: \"x\\ny\", b: \"x\\ny\\n\", c: \" x\\n y\"}",
                "a: |-\n  x\n  y\nb: |\n  x\n  y\nc: |2-\n   x\n   y",
            ),
            (
                "{a: \"x\\n\", b: \"x \\ny\", c: \"\\u0001\\U0001F600\", d: \"x\\n\\ny\"}",
                "a: 'x\n\n  '\nb: \"x \\ny\"\nc: \"\\x01\\U0001F600\"\nd: |-\n  x\n\n  y",
            ),
        ] {
            assert_eq!(
                lines(&read(yaml, 0).unwrap()).join("\n"),
                expected,
                "{yaml}"
            );
        }
    }

    #[test]
    fn long_text_is_broken_at_spaces() {
        let words = "word ".repeat(20);
        let words = words.trim();
        let (start, end) = (&words[..79], &words[80..]);
        for (text, expected) in [
            (words.to_owned(), format!("- {start}\n  {end}")),
            (format!("a: {words}"), format!("- 'a: {start}\n  {end}'")),
            (format!("/ {words}"), format!("- \"/ {start}\n  {end}\"")),
            ("x".repeat(90), format!("- {}", "x".repeat(90))),
        ] {
            let text = Value::string(Place::default(), text);
            let list = Value::new(Place::default(), Data::List(vec![text]));
            assert_eq!(lines(&list).join("\n"), expected);
        }
    }
}

//! YAML as Terraform writes it, byte for byte: strings in double quotes, or as blocks if they have
//! several lines; lines folded behind column 80.

use crate::context::{Context, LimitReached};
use crate::value::{Kind, Value};

const WIDTH: usize = 80;
const STEP: usize = 2;
/// The longest key that stands on one line with its value, in bytes.
const LONGEST_KEY: usize = 128;

pub(super) fn encode(context: &Context, value: &Value) -> Result<String, LimitReached> {
    let mut writer = Writer {
        context,
        text: String::new(),
        charged: 0,
        indent: 0,
        column: 0,
        whitespace: true,
        indention: true,
    };
    let plain = writer.node(value, Place::Root)?;
    writer.start_line();
    if plain {
        // Nothing else says that a word has ended.
        writer.text.push_str("...\n");
    }
    Ok(writer.text)
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Item,
    /// Behind a key, or behind `?`.
    Entry,
    SimpleKey,
}

struct Writer<'c> {
    context: &'c Context<'c>,
    text: String,
    /// How much of the text is paid for.
    charged: usize,
    indent: usize,
    column: usize,
    /// Whether the last character was a blank, or there is none on the line.
    whitespace: bool,
    /// Whether there are only blanks and `-`, `?`, `:` on the line.
    indention: bool,
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// As libyaml sees it, to which a tab isn't, and nothing beyond U+FFFF.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && character != '\u{feff}'
}

impl Writer<'_> {
    fn put(&mut self, character: char) {
        self.text.push(character);
        self.column += 1;
    }

    fn break_line(&mut self, character: char) {
        self.text.push(character);
        self.column = 0;
    }

    /// A line of its own for what comes, unless there is one already.
    fn start_line(&mut self) {
        let taken = self.column == self.indent && !self.whitespace;
        if !self.indention || self.column > self.indent || taken {
            self.break_line('\n');
        }
        while self.column < self.indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn sign(&mut self, sign: char, spaced: bool, indents: bool) {
        if spaced && !self.whitespace {
            self.put(' ');
        }
        self.put(sign);
        self.whitespace = false;
        self.indention &= indents;
    }

    fn word(&mut self, word: &str) {
        if !self.whitespace {
            self.put(' ');
        }
        self.text.push_str(word);
        self.column += word.len();
        self.whitespace = false;
        self.indention = false;
    }

    /// Whether it was written as a plain word.
    fn node(&mut self, value: &Value, place: Place) -> Result<bool, LimitReached> {
        self.context.charge_steps(1)?;
        self.context.charge_bytes(self.text.len() - self.charged)?;
        self.charged = self.text.len();
        match &value.kind {
            Kind::Null(_) => self.word("null"),
            Kind::Bool(true) => self.word("true"),
            Kind::Bool(false) => self.word("false"),
            Kind::Number(number) => self.word(&number.to_string()),
            Kind::String(text) => {
                self.string(text, place);
                return Ok(false);
            }
            Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements) => {
                self.sequence(elements, place)?;
                return Ok(false);
            }
            Kind::Object(entries) | Kind::Map(_, entries) => {
                if entries.is_empty() {
                    self.word("{}");
                } else {
                    self.mapping(entries, place)?;
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The items of a sequence behind a key stand below the key, not deeper.
    fn sequence(&mut self, elements: &[Value], place: Place) -> Result<(), LimitReached> {
        if elements.is_empty() {
            self.word("[]");
            return Ok(());
        }
        let before = self.indent;
        let level = place == Place::Entry && !self.indention;
        self.indent += if level || place == Place::Root {
            0
        } else {
            STEP
        };
        for element in elements {
            self.start_line();
            self.sign('-', true, true);
            self.node(element, Place::Item)?;
        }
        self.indent = before;
        Ok(())
    }

    fn mapping(
        &mut self,
        entries: &crate::value::Entries,
        place: Place,
    ) -> Result<(), LimitReached> {
        let before = self.indent;
        self.indent += if place == Place::Root { 0 } else { STEP };
        for (key, value) in entries {
            self.start_line();
            if key.len() <= LONGEST_KEY && !key.contains(is_break) {
                self.string(key, Place::SimpleKey);
                self.sign(':', false, false);
            } else {
                self.sign('?', true, true);
                self.string(key, Place::Entry);
                self.start_line();
                self.sign(':', true, true);
            }
            self.node(value, Place::Entry)?;
        }
        self.indent = before;
        Ok(())
    }

    fn string(&mut self, text: &str, place: Place) {
        let before = self.indent;
        self.indent += STEP;
        let mut last = None;
        let is_block = text.contains('\n')
            && place != Place::SimpleKey
            && !text.ends_with(' ')
            && text.chars().all(|character| {
                let breaks_behind_blank = last == Some(' ') && is_break(character);
                last = Some(character);
                is_printable(character) && !breaks_behind_blank
            });
        if is_block {
            self.block(text);
        } else {
            self.quoted(text, place != Place::SimpleKey);
        }
        self.indent = before;
    }

    fn block(&mut self, text: &str) {
        self.sign('|', true, false);
        if text.starts_with(' ') || text.starts_with(is_break) {
            self.put('2');
        }
        let mut from_end = text.chars().rev();
        match (from_end.next(), from_end.next()) {
            (Some(last), _) if !is_break(last) => self.put('-'),
            (Some(_), before) if before.is_none_or(is_break) => self.put('+'),
            _ => {}
        }
        self.break_line('\n');
        self.whitespace = true;
        self.indention = true;
        let mut starts = true;
        for character in text.chars() {
            if is_break(character) {
                self.break_line(character);
                self.indention = true;
                starts = true;
            } else {
                if starts {
                    self.start_line();
                }
                self.put(character);
                self.indention = false;
                starts = false;
            }
        }
    }

    fn quoted(&mut self, text: &str, folds: bool) {
        self.sign('"', true, false);
        let mut after_blank = false;
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            if !is_printable(character) || is_break(character) || matches!(character, '"' | '\\') {
                for escaped in escape(character).chars() {
                    self.put(escaped);
                }
                after_blank = false;
            } else if character == ' ' {
                let inside = at > 0 && at + 1 < text.len();
                if folds && !after_blank && self.column > WIDTH && inside {
                    self.start_line();
                    if characters.peek().is_some_and(|(_, next)| *next == ' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                after_blank = true;
            } else {
                self.put(character);
                after_blank = false;
            }
            // What is on the line now isn't only indentation.
            self.whitespace = false;
            self.indention = false;
        }
        self.put('"');
        self.whitespace = false;
        self.indention = false;
    }
}

fn escape(character: char) -> String {
    let code = character as u32;
    match character {
        '\0' => "\\0".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\u{1b}' => "\\e".to_owned(),
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        _ if code <= 0xff => format!("\\x{code:02X}"),
        _ if code <= 0xffff => format!("\\u{code:04X}"),
        _ => format!("\\U{code:08X}"),
    }
}

//! A text as the parser reads it.
//!
//! In: the text of a document. Out: its characters, one after another. May not: know YAML.
//!
//! The parser has an input for texts of its own. That one decodes a character each time that it is
//! looked at, which is a few times, and has 128 bytes made ready for each word of a scalar.

use std::str::Chars;

use saphyr_parser::input::{Input, is_blank_or_breakz, is_flow};

/// What is left of a text.
pub(super) struct Text<'t> {
    /// The next character; NUL at the end, as the parser wants it.
    next: char,
    is_over: bool,
    /// What is behind it.
    rest: Chars<'t>,
}

/// How many characters the parser may have room for before it reads them. All of the text can be
/// looked at without any, but for a scalar it asks for so much memory at once; most are shorter.
const ROOM: usize = 16;

impl<'t> Text<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut text = Self {
            next: '\0',
            is_over: false,
            rest: text.chars(),
        };
        text.skip();
        text
    }
}

impl Input for Text<'_> {
    #[inline]
    fn lookahead(&mut self, _: usize) {}

    #[inline]
    fn buflen(&self) -> usize {
        ROOM
    }

    #[inline]
    fn bufmaxlen(&self) -> usize {
        ROOM
    }

    #[inline]
    fn raw_read_ch(&mut self) -> char {
        let character = self.next;
        self.skip();
        character
    }

    #[inline]
    fn raw_read_non_breakz_ch(&mut self) -> Option<char> {
        let ends = matches!(self.next, '\0' | '\n' | '\r' | '\u{feff}');
        (!ends).then(|| self.raw_read_ch())
    }

    #[inline]
    fn skip(&mut self) {
        match self.rest.next() {
            Some(character) => self.next = character,
            None => {
                self.next = '\0';
                self.is_over = true;
            }
        }
    }

    #[inline]
    fn skip_n(&mut self, count: usize) {
        for _ in 0..count {
            self.skip();
        }
    }

    #[inline]
    fn peek(&self) -> char {
        self.next
    }

    #[inline]
    fn peek_nth(&self, n: usize) -> char {
        match n.checked_sub(1) {
            None => self.next,
            Some(n) => self.rest.clone().nth(n).unwrap_or('\0'),
        }
    }

    #[inline]
    fn peek_opt(&self) -> Option<char> {
        (!self.is_over).then_some(self.next)
    }

    /// As the trait has it, but for looking at the second character only where it matters.
    #[inline]
    fn next_can_be_plain_scalar(&self, in_flow: bool) -> bool {
        match self.next {
            ':' => {
                let second = self.peek_nth(1);
                !(is_blank_or_breakz(second) || in_flow && is_flow(second))
            }
            '\u{feff}' => false,
            character => !(in_flow && is_flow(character)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use saphyr_parser::{Event, Parser, ScanError, Span};

    use super::*;

    type Told<'t> = Result<(Event<'t>, Span), ScanError>;

    /// All events, up to the first error.
    fn read<I: Input>(mut parser: Parser<'_, I>) -> Vec<Told<'_>> {
        let mut events = Vec::new();
        while let Some(told) = parser.next_event() {
            let is_last = told.is_err();
            events.push(told);
            if is_last {
                break;
            }
        }
        events
    }

    fn both(text: &str) -> (Vec<Told<'_>>, Vec<Told<'_>>) {
        let ours = read(Parser::new(Text::new(text)));
        (ours, read(Parser::new_from_str(text)))
    }

    /// What a parser of YAML looks at, and what is long for the room that it asks for.
    const PIECES: [&str; 48] = [
        "a",
        "bc",
        "é",
        "😀",
        "\u{feff}",
        "0",
        "9",
        " ",
        "  ",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "\n ",
        "\n  ",
        "\n\n",
        ":",
        ": ",
        ":\n",
        "- ",
        "-",
        "---",
        "---\n",
        "\n...\n",
        "? ",
        "#",
        " # c",
        "'",
        "''",
        "\"",
        "\\n",
        "\\x41",
        "\\\n",
        "[",
        "]",
        "{",
        "}",
        ", ",
        ",",
        "|",
        "|-\n",
        ">+2\n",
        "&a ",
        "*a ",
        "!!str ",
        "%YAML 1.2\n",
        "wörd-of-more-than-sixteen",
        "                    ",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn the_parser_reads_what_it_reads_from_its_own_input(
            pieces in vec(select(&PIECES[..]), 0..40),
        ) {
            let text = pieces.concat();
            let (ours, its_own) = both(&text);
            prop_assert_eq!(ours, its_own);
        }
    }

    #[test]
    fn the_examples_are_read_the_same() {
        let mut found = 0;
        for folder in ["examples", "tests/it", "../shared/corpora"] {
            let pattern = format!("{}/{folder}/**/*.yaml", env!("CARGO_MANIFEST_DIR"));
            for path in glob::glob(&pattern).unwrap() {
                let Ok(text) = std::fs::read_to_string(path.unwrap()) else {
                    continue;
                };
                let (ours, its_own) = both(&text);
                assert!(ours == its_own, "{text}");
                found += 1;
            }
        }
        assert!(found > 0);
    }
}

//! Where a long document can be cut in two.
//!
//! In: the text. Out: a line that begins an entry of a mapping, and the lines of the keys that it
//! stands under. May not: parse; a guess that is wrong leaves a half that can't be read, or objects
//! that don't join.

use memchr::memrchr;

/// How many lines are looked at before the text is read in one piece.
const TRIES: usize = 16;

/// A line behind the middle that begins an entry of a mapping.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut<'t> {
    /// Its first byte.
    pub(super) at: usize,
    /// How far it is indented.
    pub(super) indent: usize,
    /// The lines of the keys whose mappings it stands in, from the outermost.
    pub(super) under: Vec<&'t str>,
}

impl<'t> Cut<'t> {
    /// Looks for one.
    pub(super) fn find(text: &'t str) -> Option<Self> {
        let middle = text.len() / 2;
        let mut at = middle + behind_line_feed(&text.as_bytes()[middle..])?;
        for _ in 0..TRIES {
            let cut = Self::at(text, at);
            if cut.is_some() {
                return cut;
            }
            at += line_at(text, at).len();
        }
        None
    }

    /// Before the line that starts at `at`, if that looks right.
    pub(super) fn at(text: &'t str, at: usize) -> Option<Self> {
        let entry = Line::of(line_at(text, at)).filter(|line| line.is_key)?;
        let indent = entry.indent;
        let under = parents(text, at, indent)?;
        Some(Self { at, indent, under })
    }
}

/// The offset behind the first line feed.
fn behind_line_feed(bytes: &[u8]) -> Option<usize> {
    Some(bytes.iter().position(|byte| *byte == b'\n')? + 1)
}

/// The line that starts at `at`, with its end.
fn line_at(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    &rest[..behind_line_feed(rest.as_bytes()).unwrap_or(rest.len())]
}

/// The lines of a text, with their ends, from the last to the first.
fn lines_upwards(text: &str) -> impl Iterator<Item = &str> {
    let mut above = text;
    std::iter::from_fn(move || {
        let last = above.len().checked_sub(1)?;
        let start = memrchr(b'\n', &above.as_bytes()[..last]).map_or(0, |at| at + 1);
        let line = &above[start..];
        above = &above[..start];
        Some(line)
    })
}

/// How far a line is indented; `None` for lines that mean nothing: empty ones and comments.
fn depth(line: &str) -> Option<usize> {
    let indent = line.bytes().take_while(|byte| *byte == b' ').count();
    let first = line[indent..].trim_ascii_start().bytes().next()?;
    (first != b'#').then_some(indent)
}

/// What a line looks like.
struct Line {
    indent: usize,
    /// Whether it begins with a key without quotes.
    is_key: bool,
    /// Whether it is nothing but that.
    is_alone: bool,
}

impl Line {
    /// `None` for lines that mean nothing by themselves: empty ones and comments.
    fn of(line: &str) -> Option<Self> {
        let indent = depth(line)?;
        let text = line[indent..].trim_end();
        let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let key = text.bytes().take_while(|byte| is_of_key(byte)).count();
        let value = text[key..].strip_prefix(':');
        let is_named = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        Some(Self {
            indent,
            is_key: is_named
                && value.is_some_and(|value| value.is_empty() || value.starts_with(' ')),
            is_alone: is_named && value == Some(""),
        })
    }
}

/// The lines above `at` that an entry indented by `indent` stands under: each a key alone, whose
/// first entry is indented as the next one down.
fn parents(text: &str, at: usize, mut indent: usize) -> Option<Vec<&str>> {
    let mut under = Vec::new();
    // How far the entry right below a line is indented.
    let mut below = indent;
    for line in lines_upwards(&text[..at]) {
        if indent == 0 {
            break;
        }
        let Some(depth) = depth(line) else {
            continue;
        };
        if depth < indent {
            if below != indent || !Line::of(line)?.is_alone {
                return None;
            }
            under.push(line);
            indent = depth;
        }
        below = depth;
    }
    under.reverse();
    (indent == 0).then_some(under)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Option<(&str, Vec<&str>)> {
        Cut::find(text).map(|cut| (line_at(text, cut.at).trim(), cut.under))
    }

    #[test]
    fn a_text_is_cut_before_an_entry_of_a_mapping() {
        assert_eq!(cut("a: 1\nb: 2\nc: 3\n"), Some(("c: 3", vec![])));
        assert_eq!(
            cut(
                "groups:\n  t:\n    # first\n    a: {x: 1}\n\n    b:\n      x: 1\n    c:\n      x: 1\n"
            ),
            Some(("b:", vec!["groups:\n", "  t:\n"]))
        );
        assert_eq!(
            cut("aa: 1\nb:\n- x: 1\n- x: 2\n- x: 3\nc: 1\n"),
            Some(("c: 1", vec![]))
        );
    }

    #[test]
    fn what_may_be_no_entry_is_no_cut() {
        for text in [
            "",
            "a",
            "a: 1\n",
            // In a text, in a list, in brackets, under a key with more than a name, or with a tab.
            "text: |\n  a: 1\n  b: 2\n  c: 3\n",
            "list:\n  - a: 1\n    b: 2\n    c: 3\n    d: 4\n",
            "- a: 1\n  b: 2\n  c: 3\n  d: 4\n",
            "x: {\n  a: 1,\n  b: 2,\n  c: 3}\n",
            "x: !!map\n  a: 1\n  b: 2\n  c: 3\n",
            "x: &x\n  a: 1\n  b: 2\n  c: 3\n",
            "x:\n\ta: 1\n\tb: 2\n\tc: 3\n",
            // Not indented as its siblings.
            "x:\n   a: 1\n   b: 2\n  c: 3\n  d: 4\n",
            // The whole document is indented.
            "  a: 1\n  b: 2\n  c: 3\n",
        ] {
            assert_eq!(cut(text), None, "{text}");
        }
    }
}

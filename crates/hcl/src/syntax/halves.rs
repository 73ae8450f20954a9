//! A long file, read as two at once. Comes in: its text; goes out: the document that reading it in one
//! piece would give, or nothing: whatever is wrong is told by who reads the whole.
//!
//! A body is a row of items, so a text that is cut where two bodies come of it is those two in a row. A
//! cut within a comment, a string, a heredoc or brackets leaves a first half that isn't closed.

use std::collections::HashSet;

use super::ast::{Body, Document};
use super::parser::Parser;

/// Shorter texts are read sooner than a thread starts. In bytes.
const WORTH_A_THREAD: usize = 1 << 16;

/// Most items of a file that is this long are longer. In bytes.
const SHORT_ITEM: usize = 256;

/// `None` where it isn't worth it, no cut is found, or anything is wrong.
pub(super) fn parse(text: &str, file: u32) -> Option<Document> {
    if text.len() < WORTH_A_THREAD
        || std::thread::available_parallelism().is_ok_and(|n| n.get() < 2)
    {
        return None;
    }
    parse_cut(text, file, cut(text)?)
}

/// The first line behind the middle that begins with a name, right after one that closes a block.
fn cut(text: &str) -> Option<usize> {
    let middle = text.len() / 2;
    let bytes = text.as_bytes();
    let mut after_block = false;
    let mut at = middle + behind_line_feed(&bytes[middle..])?;
    loop {
        let line = &bytes[at..];
        let length = behind_line_feed(line)?;
        match line[0] {
            b'}' => after_block = true,
            first if after_block && first.is_ascii_alphabetic() => return Some(at),
            b'\n' | b'\r' => {}
            _ => after_block = false,
        }
        at += length;
    }
}

/// The offset behind the first line feed.
fn behind_line_feed(bytes: &[u8]) -> Option<usize> {
    Some(bytes.iter().position(|byte| *byte == b'\n')? + 1)
}

fn parse_cut(text: &str, file: u32, cut: usize) -> Option<Document> {
    let read = |text: &str, from: usize, bytes: usize| {
        let mut parser = Parser::new(text, file).ok()?;
        // Memory that grows is taken several times.
        parser.room = bytes / SHORT_ITEM;
        parser.at = parser.at.max(from);
        let body = parser.document();
        let (body, comments) = parser.finish(body).ok()?;
        Some(Document { body, comments })
    };
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| read(text, cut, text.len() - cut));
        // The first half's gets the second's.
        (read(&text[..cut], 0, text.len()), second.join())
    });
    let mut whole = first?;
    let second = second.ok()??;
    let names = |body: &Body| -> HashSet<_> {
        body.attributes()
            .map(|attribute| attribute.name.name.clone())
            .collect()
    };
    if !names(&whole.body).is_disjoint(&names(&second.body)) {
        return None;
    }
    whole.body.items.extend(second.body.items);
    whole.body.span = whole.body.span.to(second.body.span);
    whole.comments.extend(second.comments);
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# one\na = 1\nb \"x\" {\n  y = <<-EOT\n    é\n  EOT\n}\n\n# two\nc = [\n  \
                        {}, /* three\n*/ \"${a}\"]\nd {\n}\ne = 1 # four\n";

    #[test]
    fn wherever_a_text_is_cut_it_is_read_as_in_one_piece_or_not_at_all() {
        let whole = super::super::parse(TEXT, 7).unwrap();
        let mut cuts = Vec::new();
        for (at, _) in TEXT.char_indices() {
            if let Some(document) = parse_cut(TEXT, 7, at) {
                assert_eq!(format!("{document:?}"), format!("{whole:?}"), "{at}");
                cuts.push(at);
            }
        }
        let lines = ["a = 1", "b \"x\"", "# two", "c = [", "d {", "e = 1"];
        for line in lines {
            assert!(cuts.contains(&TEXT.find(line).unwrap()), "{line}");
        }
        let block = TEXT.find("b \"x\"").unwrap() + 7..TEXT.find("}\n\n").unwrap();
        assert!(!cuts.iter().any(|at| block.contains(at)), "{cuts:?}");
    }

    #[test]
    fn what_is_wrong_is_left_to_who_reads_the_whole() {
        for text in ["a = 1\na = 2\n", "a = 1\nb = (\n", "a = 1\n}\n"] {
            assert!(parse_cut(text, 0, 6).is_none(), "{text}");
        }
    }

    #[test]
    fn a_cut_is_behind_a_block() {
        let text = "# a long comment, so that the middle is in here\na {\n}\n\nb {\n}\n";
        assert_eq!(cut(text), text.find("b {"));
        assert_eq!(cut("a = 1\nb = 2\nc = 3\nd = 4\n"), None);
        assert_eq!(cut(""), None);
    }
}

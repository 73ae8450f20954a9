//! Writes HTML.
//!
//! In: markup, which is part of the program, and texts, which come from anywhere. Out: HTML in which
//! texts are masked and escaped. Must not: let a text become markup.

use std::fmt::Write as _;

use crate::redact;
use crate::report::text::value::misleads;

/// HTML under construction.
///
/// Texts are masked before they are escaped: a secret with a quote in it would not be recognized
/// afterwards, and masking the finished page could damage its markup. Texts that follow each other
/// are masked as one.
#[derive(Debug, Default)]
pub(super) struct Html {
    out: String,
    /// Texts since the last markup.
    pending: String,
}

impl Html {
    /// Writes markup. It is `'static`, so that it can't hold a value.
    pub(super) fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.flush();
        self.out.push_str(markup);
        self
    }

    /// Writes a text; also for the value of an attribute, between double quotes.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.pending.push_str(text);
        self
    }

    /// Writes a number.
    pub(super) fn number(&mut self, number: usize) -> &mut Self {
        self.flush();
        // Writing to a string doesn't fail.
        let _ = write!(self.out, "{number}");
        self
    }

    /// The length so far in bytes.
    pub(super) fn len(&self) -> usize {
        self.out.len() + self.pending.len()
    }

    /// The HTML.
    pub(super) fn finish(mut self) -> String {
        self.flush();
        self.out
    }

    fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        for c in redact::text(&self.pending).chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                '\n' | '\t' => self.out.push(c),
                c if misleads(c) => self.out.extend(c.escape_default()),
                c => self.out.push(c),
            }
        }
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_never_become_markup() {
        let mut html = Html::default();
        html.markup("<p title=\"")
            .text("\"'><script>alert(1)</script>&")
            .markup("\">")
            .text("a-->\u{0}\u{1b}[2J\u{202e}\n\tb")
            .text("<!--")
            .number(3)
            .markup("</p>");
        assert_eq!(
            html.finish(),
            "<p title=\"&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;\">\
             a--&gt;\\u{0}\\u{1b}[2J\\u{202e}\n\tb&lt;!--3</p>"
        );
    }
}

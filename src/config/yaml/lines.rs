//! A text by lines.
//!
//! In: a text, and places in it. Out: the lines around them, their keys and values. May not: judge
//! anything.

/// A text by lines.
#[derive(Clone, Copy)]
pub(super) struct Lines<'t> {
    text: &'t str,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text }
    }

    /// Where the line around `at` starts.
    pub(super) fn start(self, at: usize) -> usize {
        self.text[..at.min(self.text.len())]
            .rfind('\n')
            .map_or(0, |at| at + 1)
    }

    /// Where it ends, blanks at its end left out.
    pub(super) fn end(self, at: usize) -> usize {
        let start = self.start(at);
        start + self.line(at).trim_end().len()
    }

    /// The line around `at`.
    pub(super) fn line(self, at: usize) -> &'t str {
        let start = self.start(at);
        let length = self.text[start..].find('\n');
        &self.text[start..length.map_or(self.text.len(), |length| start + length)]
    }

    /// How far its line is indented, and where its text starts.
    pub(super) fn indent(self, at: usize) -> (usize, usize) {
        let line = self.line(at);
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        (indent, self.start(at) + indent)
    }

    /// The start of the line above, empty ones and comments left out.
    pub(super) fn above(self, at: usize) -> Option<usize> {
        let mut start = self.start(at);
        while start > 0 {
            start = self.start(start - 1);
            let line = self.line(start).trim();
            if !line.is_empty() && !line.starts_with('#') {
                return Some(start);
            }
        }
        None
    }

    /// Where the comment on the line of `at` starts; `at` if there is none.
    pub(super) fn comment(self, at: usize) -> usize {
        let start = self.start(at);
        self.line(at)
            .find(" #")
            .map_or(at, |length| start + length + 1)
    }
}

/// A line's text without what marks it as an item.
pub(super) fn without_dashes(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(inner) = rest.strip_prefix("- ") {
        rest = inner.trim_start();
    }
    rest
}

/// The key that a line starts with: what stands before the first `: `.
pub(super) fn key_of(line: &str) -> Option<&str> {
    let line = without_dashes(line);
    let end = line.find(": ").or_else(|| {
        let line = line.trim_end();
        line.ends_with(':').then(|| line.len() - 1)
    })?;
    (end > 0).then(|| &line[..end])
}

/// What stands behind the first `: ` of a line.
pub(super) fn value_of(line: &str) -> Option<&str> {
    let line = without_dashes(line);
    line.find(": ").map(|at| line[at + 2..].trim())
}

//! What a template's text says without Ruby.

use std::ops::Range;

/// Whether a template has to be evaluated. A text without a tag is its own output: with BOSH's trim
/// mode (`-`), lines that start with `%` are text, and `%>` or `%%>` outside a tag are, too.
pub fn needs_ruby(text: &str) -> bool {
    text.contains("<%")
}

/// The offset in bytes of a `<%` that no `%>` closes. ERB takes the rest as text, without an error.
///
/// As in ERB, `<%%` opens nothing and `%%>` closes nothing.
pub fn unterminated_tag(text: &str) -> Option<usize> {
    scan(text).1
}

/// The bytes of each tag, with its `<%` and `%>`. They are all that Ruby evaluates.
pub fn tags(text: &str) -> Vec<Range<usize>> {
    scan(text).0
}

/// The tags of a text, and where one begins that has no end.
fn scan(text: &str) -> (Vec<Range<usize>>, Option<usize>) {
    let mut tags = Vec::new();
    let mut position = 0;
    while let Some(found) = text[position..].find("<%") {
        let tag = position + found;
        let content = tag + "<%".len();
        if text[content..].starts_with('%') {
            position = content + 1;
            continue;
        }
        let kind = usize::from(text[content..].starts_with(['=', '#', '-']));
        match tag_end(text, content + kind) {
            Some(end) => {
                tags.push(tag..end);
                position = end;
            }
            None => return (tags, Some(tag)),
        }
    }
    (tags, None)
}

/// The offset behind the `%>` of the tag whose content starts at `content`.
fn tag_end(text: &str, content: usize) -> Option<usize> {
    let mut position = content;
    loop {
        let found = position + text[position..].find("%>")?;
        let end = found + "%>".len();
        if found == position || !text[position..found].ends_with('%') {
            return Some(end);
        }
        position = end;
    }
}

#[cfg(test)]
mod tests {
    use super::{needs_ruby, tags, unterminated_tag};

    #[test]
    fn only_tags_need_ruby() {
        for text in ["", "text\n", "% x\n%% y\n", "a %%> b -%>\n%>", "< % %"] {
            assert!(!needs_ruby(text), "{text:?}");
        }
        for text in ["<% %>", "a <%% b", "<%= 1", "<%# note %>"] {
            assert!(needs_ruby(text), "{text:?}");
        }
    }

    #[test]
    fn tags_are_what_ruby_evaluates() {
        let text = "a <%= b %> <%% c %> <%- d -%>\n<% e";
        let found: Vec<&str> = tags(text).into_iter().map(|tag| &text[tag]).collect();
        assert_eq!(found, ["<%= b %>", "<%- d -%>"]);
    }

    #[test]
    fn unterminated_tags_are_found() {
        let cases = [
            ("", None),
            ("<% x %> <%= y -%>\n", None),
            ("a <%= x", Some(2)),
            ("<% x %>é<% y", Some(9)),
            ("<%% x", None),
            ("<%%= x %> <%# y", Some(10)),
            ("<%= 'a %%> b' %>", None),
            ("<%= 'a %%> b'", Some(0)),
            ("<%= 1 %%%>", Some(0)),
            ("<%=%>", None),
            ("<%=%%>", Some(0)),
            ("<%= '<%' %>", None),
            ("x %> <%", Some(5)),
        ];
        for (text, expected) in cases {
            assert_eq!(unterminated_tag(text), expected, "{text:?}");
        }
    }
}

//! What a template's text says without Ruby.

/// Whether a template has to be evaluated. A text without a tag is its own output: with BOSH's trim
/// mode (`-`), lines that start with `%` are text, and `%>` or `%%>` outside a tag are, too.
pub fn needs_ruby(text: &str) -> bool {
    text.contains("<%")
}

/// The offset in bytes of a `<%` that no `%>` closes. ERB takes the rest as text, without an error.
///
/// As in ERB, `<%%` opens nothing and `%%>` closes nothing.
pub fn unterminated_tag(text: &str) -> Option<usize> {
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
            Some(end) => position = end,
            None => return Some(tag),
        }
    }
    None
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
    use super::{needs_ruby, unterminated_tag};

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

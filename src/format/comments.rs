//! Comments of one language in another's.
//!
//! In: a [`Document`] in any language. Out: the same with comments that start with one mark and
//! end with their line. May not: lose a word of them.

use super::document::{Comment, Container, Document, Value};

/// Gives all comments of a document another mark.
pub(super) fn mark(document: &mut Document, mark: &str) {
    lines(&mut document.header, mark);
    lines(&mut document.after, mark);
    lines(&mut document.footer, mark);
    document
        .footer
        .splice(0..0, std::mem::take(&mut document.after));
    in_value(&mut document.root, mark);
}

/// Moves comments beside the brackets of the whole to above and below it, where there are none.
pub(super) fn without_brackets(document: &mut Document) {
    if let Value::List(root) | Value::Object(root) = &mut document.root {
        document.header.append(&mut root.open);
    }
}

fn in_value(value: &mut Value, mark: &str) {
    let (Value::List(container) | Value::Object(container)) = value else {
        return;
    };
    lines(&mut container.tail, mark);
    lines(&mut container.open, mark);
    if container.open.len() > 1 {
        let open = std::mem::take(&mut container.open);
        let place = match container.items.first_mut() {
            Some(first) => &mut first.before,
            None => &mut container.tail,
        };
        place.splice(0..0, open);
    }
    for item in &mut container.items {
        lines(&mut item.before, mark);
        lines(&mut item.after, mark);
        // One line has room for one of them.
        if item.after.len() > 1 {
            item.before.append(&mut item.after);
        }
        in_value(&mut item.value, mark);
    }
}

fn lines(comments: &mut Vec<Comment>, mark: &str) {
    *comments = std::mem::take(comments)
        .iter()
        .flat_map(|comment| {
            let lines = comment.marked(mark).into_iter().enumerate();
            lines.map(|(index, text)| Comment {
                text,
                gap: comment.gap && index == 0,
            })
        })
        .collect();
}

/// Moves what stands behind closing brackets to the end within them, where none are written.
pub(super) fn into_tails(container: &mut Container) {
    for item in &mut container.items {
        if let Value::List(inner) | Value::Object(inner) = &mut item.value
            && !inner.inline
        {
            inner.tail.append(&mut item.after);
            into_tails(inner);
        }
    }
}

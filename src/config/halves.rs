//! A large document, read as two at once.
//!
//! In: a text and where to cut it. Out: the [`Node`] that the whole text would have given, or
//! nothing. May not: decide that a text is wrong; whoever gets nothing reads the whole of it.
//!
//! The cut is before an entry of an object. The first half ends there; in the second one, the
//! objects that are open at the cut begin anew, in the last bytes of what is left out, so that all
//! places in it are right. A wrong cut leaves a half that can't be read.

use std::collections::HashSet;

use super::node::{Entry, Node, NodeValue};

/// The second half of `text`: from `cut` on, with `opening` right before it and spaces before that,
/// and where the opening starts. `None` where there is no room for it.
pub(super) fn second(text: &str, cut: usize, opening: &str) -> Option<(String, usize)> {
    let start = cut.checked_sub(opening.len())?;
    let mut second = Vec::with_capacity(text.len());
    second.resize(start, b' ');
    second.extend_from_slice(opening.as_bytes());
    second.extend_from_slice(&text.as_bytes()[cut..]);
    Some((String::from_utf8(second).ok()?, start))
}

/// Adds the second half to the first, `depth` objects of which go on. `None` where they don't, or
/// have a key in both halves.
pub(super) fn join(first: &mut Node, second: Node, depth: usize) -> Option<()> {
    let (NodeValue::Object(entries), NodeValue::Object(more)) = (&mut first.value, second.value)
    else {
        return None;
    };
    let mut more = more.into_iter();
    if depth > 0 {
        join(
            &mut entries.last_mut()?.value,
            more.next()?.value,
            depth - 1,
        )?;
    }
    let more: Vec<Entry> = more.collect();
    let keys: HashSet<&str> = entries.iter().map(|entry| &*entry.key).collect();
    if more.iter().any(|entry| keys.contains(&*entry.key)) {
        return None;
    }
    entries.extend(more);
    first.span.end = second.span.end;
    Some(())
}

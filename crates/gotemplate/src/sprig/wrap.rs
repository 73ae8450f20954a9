//! Fitting text into a width: `wrap`, `abbrev`, `indent` and the like.

/// Breaks lines at spaces so that they are no longer than `width` where that can be. `long` says
/// whether words that are longer are broken, too.
///
/// Widths count bytes, and a long word may well be broken within a character: Sprig does so.
pub(super) fn wrap(text: &[u8], width: i64, newline: &[u8], long: bool) -> Vec<u8> {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let newline = if newline.is_empty() { b"\n" } else { newline };
    let mut made = Vec::with_capacity(text.len());
    let mut start = 0;
    while text.len() - start > width {
        if text[start] == b' ' {
            start += 1;
            continue;
        }
        let end = start + width;
        let space = text[start..=end].iter().rposition(|byte| *byte == b' ');
        let (end, next) = match space {
            Some(space) => (start + space, start + space + 1),
            None if long => (end, end),
            None => match text[end..].iter().position(|byte| *byte == b' ') {
                Some(space) => (end + space, end + space + 1),
                None => break,
            },
        };
        made.extend_from_slice(&text[start..end]);
        made.extend_from_slice(newline);
        start = next;
    }
    made.extend_from_slice(&text[start..]);
    made
}

/// Cuts a string to `width` bytes, three of them dots, from `offset` on if that isn't near the
/// beginning.
pub(super) fn abbreviate(bytes: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let length = bytes.len();
    let width = usize::try_from(width).unwrap_or(0);
    if width < 4 || (offset > 0 && width < 7) || length <= width {
        return bytes.to_vec();
    }
    let room = width - 3;
    let offset = usize::try_from(offset).unwrap_or(0).min(length);
    let offset = offset.min(length - room.min(length));
    if offset <= 4 {
        return [&bytes[..room], b"..."].concat();
    }
    if offset + room < length {
        let end = offset + room - 3;
        return [b"...", &bytes[offset..end], b"..."].concat();
    }
    [b"...", &bytes[length - room..]].concat()
}

/// Puts spaces before each line.
pub(super) fn indent(bytes: &[u8], spaces: usize) -> Vec<u8> {
    let pad = vec![b' '; spaces];
    let mut made = pad.clone();
    for byte in bytes {
        made.push(*byte);
        if *byte == b'\n' {
            made.extend_from_slice(&pad);
        }
    }
    made
}

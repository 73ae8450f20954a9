//! `html`, `js` and `urlquery`.

use crate::format::Sink;
use crate::unicode::{decode, is_print};

pub(super) fn html(sink: &mut Sink<'_>, text: &[u8]) {
    for byte in text {
        match byte {
            0 => sink.push("\u{fffd}".as_bytes()),
            b'"' => sink.push(b"&#34;"),
            b'\'' => sink.push(b"&#39;"),
            b'&' => sink.push(b"&amp;"),
            b'<' => sink.push(b"&lt;"),
            b'>' => sink.push(b"&gt;"),
            _ => sink.push_byte(*byte),
        }
    }
}

pub(super) fn js(sink: &mut Sink<'_>, text: &[u8]) {
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let (character, width) = decode(rest);
        match byte {
            b'\\' | b'\'' | b'"' => sink.push(&[b'\\', byte]),
            b'<' | b'>' | b'&' | b'=' | 0..=0x1f => {
                sink.push(format!("\\u{byte:04X}").as_bytes());
            }
            0x20..=0x7f => sink.push_byte(byte),
            _ => {
                // Go takes a byte that begins no character for U+FFFD, and copies the byte.
                let shown = character.unwrap_or('\u{fffd}');
                if is_print(shown) {
                    sink.push(&rest[..width]);
                } else {
                    sink.push(format!("\\u{:04X}", u32::from(shown)).as_bytes());
                }
            }
        }
        rest = &rest[width..];
    }
}

pub(super) fn url_query(sink: &mut Sink<'_>, text: &[u8]) {
    for byte in text {
        match byte {
            b' ' => sink.push_byte(b'+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                sink.push_byte(*byte);
            }
            _ => sink.push(format!("%{byte:02X}").as_bytes()),
        }
    }
}

//! MIME messages, written so that Python's `email` package reads back what was put in.
//!
//! In: parts. Out: a message, the same for the same parts. May not: change a byte of a part's
//! content, or write what a reader would take otherwise: that is refused.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The longest line that mail knows.
const LONGEST_LINE: usize = 998;
/// How many characters of base64 stand on a line.
const BASE64_LINE: usize = 76;
/// Headers that say how a part is packed, which is decided here.
const OWN_HEADERS: [&str; 5] = [
    "content-type",
    "content-transfer-encoding",
    "content-disposition",
    "content-length",
    "mime-version",
];

/// A part to write.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'p> {
    /// Its type, such as `text/cloud-config`.
    pub content_type: &'p str,
    /// Its name; empty: none.
    pub filename: &'p str,
    /// Other headers, such as `Merge-Type`. Those that say how it is packed are left out.
    pub headers: &'p [(String, String)],
    /// Its content.
    pub content: &'p [u8],
}

/// A part that can't be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritable {
    /// Which part, from 0.
    pub part: usize,
    /// What of it, and why.
    pub problem: String,
}

/// A message, and how long its pieces are: what stands before the first part, then each part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The message.
    pub bytes: Vec<u8>,
    /// Where each part begins, its boundary included.
    pub starts: Vec<usize>,
}

/// Writes parts as one message of type `multipart/mixed`.
pub fn write(parts: &[Outgoing<'_>]) -> Result<Written, Unwritable> {
    let boundary = boundary(parts);
    let mut text =
        format!("Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n");
    let mut starts = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        starts.push(text.len());
        let _ = writeln!(text, "--{boundary}");
        headers(&mut text, part).map_err(|problem| Unwritable {
            part: number,
            problem,
        })?;
        text.push('\n');
        match plain(part.content) {
            Some(content) => text.push_str(content),
            None => wrapped(&mut text, &BASE64.encode(part.content)),
        }
        // This line feed belongs to the boundary.
        text.push('\n');
    }
    let _ = writeln!(text, "--{boundary}--");
    Ok(Written {
        bytes: text.into_bytes(),
        starts,
    })
}

fn headers(text: &mut String, part: &Outgoing<'_>) -> Result<(), String> {
    let kind = checked("the type", part.content_type)?;
    let is_plain = plain(part.content).is_some();
    let is_utf8 = std::str::from_utf8(part.content).is_ok();
    let charset = match (is_plain, is_utf8) {
        (true, _) => "; charset=\"us-ascii\"",
        (false, true) => "; charset=\"utf-8\"",
        (false, false) => "",
    };
    let encoding = if is_plain { "7bit" } else { "base64" };
    let _ = writeln!(text, "Content-Type: {kind}{charset}");
    let _ = writeln!(text, "MIME-Version: 1.0");
    let _ = writeln!(text, "Content-Transfer-Encoding: {encoding}");
    if !part.filename.is_empty() {
        let name = checked("the file name", part.filename)?;
        if name.contains(['"', '\\']) || name.trim() != name {
            return Err(format!(
                "the file name `{name}` has a quotation mark, a backslash, or a space at an end"
            ));
        }
        let _ = writeln!(text, "Content-Disposition: attachment; filename=\"{name}\"");
    }
    for (name, value) in part.headers {
        if OWN_HEADERS.contains(&&*name.to_ascii_lowercase()) {
            continue;
        }
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b':');
        if !is_name {
            return Err(format!("no header has the name `{}`", name.escape_debug()));
        }
        // A header that was folded is one line again.
        let lines: Vec<&str> = value.lines().map(str::trim).collect();
        let value = lines.join(" ");
        let value = checked(&format!("the header `{name}`"), value.trim())?;
        let _ = writeln!(text, "{name}: {value}");
    }
    Ok(())
}

/// What stands in a header: printable ASCII.
fn checked<'t>(what: &str, value: &'t str) -> Result<&'t str, String> {
    let is_printable = |byte: u8| matches!(byte, b' '..=b'~');
    if !value.bytes().all(is_printable) {
        return Err(format!(
            "{what} `{}` has other characters than printable ASCII, which a header can't have",
            value.escape_debug()
        ));
    }
    if value.len() > LONGEST_LINE - 100 {
        return Err(format!("{what} is too long for a header"));
    }
    Ok(value)
}

/// A content that can stand as it is: lines of ASCII, none too long, none with a character that a
/// reader could take for the end of one.
fn plain(content: &[u8]) -> Option<&str> {
    let is_plain = |byte: u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    let fits = content.iter().copied().all(is_plain)
        && content
            .split(|byte| *byte == b'\n')
            .all(|line| line.len() <= LONGEST_LINE);
    std::str::from_utf8(content).ok().filter(|_| fits)
}

fn wrapped(text: &mut String, base64: &str) {
    let mut rest = base64;
    while rest.len() > BASE64_LINE {
        let (line, after) = rest.split_at(BASE64_LINE);
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str(rest);
}

/// A boundary that no part has. Nearly always the same one, so that a change of a part changes
/// nothing else.
fn boundary(parts: &[Outgoing<'_>]) -> String {
    let has = |boundary: &str| {
        let wanted = boundary.as_bytes();
        parts.iter().any(|part| {
            part.content
                .windows(wanted.len())
                .any(|window| window == wanted)
        })
    };
    let mut number = 0_u32;
    loop {
        // No boundary begins another.
        let boundary = format!("==nstance-userdata-{number}==");
        if !has(&boundary) {
            return boundary;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Part;
    use crate::userdata::take_apart;

    fn header(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let contents: [&[u8]; 12] = [
            b"#cloud-config\na: 1\n",
            b"no line feed at the end",
            b"",
            b"\n\n",
            "#cloud-config\na: \u{e9}\u{65e5}\n".as_bytes(),
            b"#!/bin/sh\r\necho windows\r\n",
            b"a bare \r return",
            b"\xff\xfe\x00binary",
            b"--==nstance-userdata-0==\nFrom me\n",
            b"--==nstance-userdata-0==--\n",
            b"a: \x0c form feed, \x1c separator\n",
            &[b'x'; 2_000],
        ];
        let headers = [header("Merge-Type", "list(append)+dict(recurse_list)")];
        let parts: Vec<Outgoing<'_>> = contents
            .iter()
            .map(|content| Outgoing {
                content_type: "text/x-shellscript-per-boot",
                filename: "a b.sh",
                headers: &headers,
                content,
            })
            .collect();
        let written = write(&parts).unwrap();
        assert!(written.bytes.is_ascii());
        assert_eq!(written, write(&parts).unwrap());
        let read = taken(&written.bytes);
        assert_eq!(read.len(), parts.len());
        for (read, content) in read.iter().zip(contents) {
            assert_eq!(read.content, content);
            assert_eq!(read.filename, "a b.sh");
            assert_eq!(read.header("Merge-Type"), Some(&*headers[0].1));
        }
    }

    fn taken(bytes: &[u8]) -> Vec<Part> {
        let taken = take_apart(bytes, None, None).unwrap();
        taken.into_iter().map(|taken| taken.part).collect()
    }

    fn part<'p>(filename: &'p str, headers: &'p [(String, String)]) -> Outgoing<'p> {
        Outgoing {
            content_type: "text/x-shellscript",
            filename,
            headers,
            content: b"#!/bin/sh\n",
        }
    }

    #[test]
    fn what_a_header_cannot_hold_is_refused() {
        let headers = [header("Merge-Type", "list(append)\n +dict()")];
        let folded = write(&[part("", &headers)]).unwrap();
        let read = taken(&folded.bytes);
        assert_eq!(read[0].header("Merge-Type"), Some("list(append) +dict()"));
        for (filename, name, value) in [
            ("\u{e9}.sh", "X", "y"),
            ("a\"b", "X", "y"),
            ("a\nb", "X", "y"),
            ("a", "X Y", "z"),
            ("a", "", "z"),
            ("a", "X", "\u{e9}"),
        ] {
            let headers = [header(name, value)];
            assert!(
                write(&[part(filename, &headers)]).is_err(),
                "{filename} {name}"
            );
        }
    }
}

//! MIME messages, as Python's `email` package takes them apart.
//!
//! In: a text. Out: a tree of messages. Nothing is refused: what isn't as it should be is taken as
//! Python takes it.

use crate::yaml::decode_base64;

/// How deep messages may be in messages; what is deeper is text.
const DEEPEST: usize = 50;

/// A message, or a part of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
    /// The type of what says none.
    default_type: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Text(String),
    Parts(Vec<Message>),
}

impl Default for Body {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Message {
    pub(crate) fn parse(text: &str) -> Self {
        let lines = lines(text);
        Self::of(&lines, None, 0)
    }

    fn of(lines: &[&str], default_type: Option<&'static str>, depth: usize) -> Self {
        let (headers, rest) = headers(lines);
        let mut message = Self {
            headers,
            body: Body::default(),
            default_type,
        };
        message.body = message.read_body(rest, depth);
        message
    }

    fn read_body(&self, lines: &[&str], depth: usize) -> Body {
        if depth == DEEPEST {
            return Body::Text(lines.concat());
        }
        let content_type = self.content_type();
        if content_type == "message/rfc822" {
            return Body::Parts(vec![Self::of(lines, None, depth + 1)]);
        }
        let boundary = self.parameter("content-type", "boundary");
        let is_multipart = content_type.starts_with("multipart/");
        let Some(boundary) = boundary.filter(|_| is_multipart) else {
            return Body::Text(lines.concat());
        };
        let boundary = format!("--{}", boundary.trim_end());
        let inner = (content_type == "multipart/digest").then_some("message/rfc822");
        let mut parts: Vec<Vec<&str>> = Vec::new();
        let mut begun = false;
        let mut was_boundary = false;
        for line in lines {
            match Separator::of(line, &boundary) {
                Some(Separator::Last) if begun => break,
                Some(Separator::Last) => {}
                Some(Separator::Next) => {
                    // Boundaries one after the other are one.
                    if !was_boundary {
                        parts.push(Vec::new());
                    }
                    begun = true;
                    was_boundary = true;
                    continue;
                }
                None => {
                    if let Some(part) = parts.last_mut() {
                        part.push(line);
                    }
                }
            }
            was_boundary = false;
        }
        if !begun {
            return Body::Text(lines.concat());
        }
        let parts = parts
            .iter()
            .map(|lines| Self::of_part(lines, inner, depth + 1));
        Body::Parts(parts.collect())
    }

    /// A part: the end of its last line belongs to the boundary.
    fn of_part(lines: &[&str], default_type: Option<&'static str>, depth: usize) -> Self {
        let mut message = Self::of(lines, default_type, depth);
        if let Body::Text(text) = &mut message.body {
            for end in ["\r\n", "\n", "\r"] {
                if let Some(shorter) = text.strip_suffix(end) {
                    text.truncate(shorter.len());
                    break;
                }
            }
        }
        message
    }

    /// The first header of that name, however it is spelled.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| &**value)
    }

    /// The type in lower case; `text/plain` where there is none that is one.
    pub(crate) fn content_type(&self) -> String {
        let Some(value) = self.header("content-type") else {
            return self.default_type.unwrap_or("text/plain").to_owned();
        };
        let kind = value.split(';').next().unwrap_or("").trim().to_lowercase();
        if kind.matches('/').count() == 1 {
            return kind;
        }
        "text/plain".to_owned()
    }

    /// A parameter of a header.
    fn parameter(&self, header: &str, name: &str) -> Option<String> {
        let value = self.header(header)?;
        let mut pieces = split_parameters(value).into_iter().skip(1);
        let found = pieces.find_map(|piece| {
            let (key, value) = piece.split_once('=')?;
            key.trim()
                .eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })?;
        Some(unquoted(&found))
    }

    pub(crate) fn filename(&self) -> Option<String> {
        let named = self.parameter("content-disposition", "filename");
        let named = named.or_else(|| self.parameter("content-type", "name"))?;
        Some(named.trim().to_owned()).filter(|name| !name.is_empty())
    }

    /// The bytes of a part that isn't a container.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let Body::Text(text) = &self.body else {
            return Vec::new();
        };
        let bytes = raw(text);
        let encoding = self.header("content-transfer-encoding").unwrap_or("");
        match &*encoding.to_lowercase() {
            "quoted-printable" => quoted_printable(&bytes),
            "base64" => base64(&bytes),
            _ => bytes,
        }
    }

    /// All messages of the tree, containers before what they contain.
    pub(crate) fn walk(&self) -> Vec<&Message> {
        let mut all = vec![self];
        if let Body::Parts(parts) = &self.body {
            all.extend(parts.iter().flat_map(Message::walk));
        }
        all
    }
}

enum Separator {
    Next,
    Last,
}

impl Separator {
    fn of(line: &str, boundary: &str) -> Option<Self> {
        let rest = line.strip_prefix(boundary)?;
        let rest = rest.trim_end_matches(['\r', '\n']);
        match rest.strip_prefix("--") {
            Some(rest) if rest.trim_matches([' ', '\t']).is_empty() => Some(Self::Last),
            _ if rest.trim_matches([' ', '\t']).is_empty() => Some(Self::Next),
            _ => None,
        }
    }
}

/// Lines with their ends.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        let ends = match byte {
            b'\n' => true,
            b'\r' => bytes.get(index + 1) != Some(&b'\n'),
            _ => false,
        };
        if ends {
            lines.push(&text[start..=index]);
            start = index + 1;
        }
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// The headers, and the lines behind them.
fn headers<'l, 't>(mut lines: &'l [&'t str]) -> (Vec<(String, String)>, &'l [&'t str]) {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut is_first = true;
    while let Some((line, rest)) = lines.split_first() {
        let is_blank = line.trim_end_matches(['\r', '\n']).is_empty();
        if is_blank {
            lines = rest;
            break;
        }
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = headers.last_mut() {
                value.push_str(line);
            }
        } else if line.starts_with("From ") && is_first {
            // The envelope of a mailbox.
        } else {
            let is_name = |byte: u8| matches!(byte, b'!'..=b'9' | b';'..=b'~');
            let colon = line.bytes().position(|byte| !is_name(byte));
            match colon {
                Some(colon) if line.as_bytes()[colon] == b':' => {
                    if colon > 0 {
                        let (name, value) = (&line[..colon], &line[colon + 1..]);
                        let value = value.trim_start_matches([' ', '\t']);
                        headers.push((name.to_owned(), value.to_owned()));
                    }
                }
                // No header: the body begins without a blank line.
                _ => break,
            }
        }
        is_first = false;
        lines = rest;
    }
    for (_, value) in &mut headers {
        value.truncate(value.trim_end_matches(['\r', '\n']).len());
    }
    (headers, lines)
}

/// A header's value, split at the semicolons that aren't in quotes.
fn split_parameters(value: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut quoted = false;
    let mut escaped = false;
    for char in value.chars() {
        match char {
            '"' if !escaped => quoted = !quoted,
            ';' if !quoted => {
                pieces.push(String::new());
                continue;
            }
            _ => {}
        }
        escaped = char == '\\' && !escaped;
        if let Some(piece) = pieces.last_mut() {
            piece.push(char);
        }
    }
    pieces
}

fn unquoted(text: &str) -> String {
    match text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(inner) => inner.replace("\\\\", "\\").replace("\\\"", "\""),
        None => text
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix('>'))
            .unwrap_or(text)
            .to_owned(),
    }
}

/// Python's `raw-unicode-escape`: what isn't Latin-1 becomes `\uXXXX`. That is how raw text of a
/// message comes out of it.
fn raw(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        let point = u32::from(char);
        match point {
            0..=0xff => bytes.push(point as u8),
            0x100..=0xffff => bytes.extend(format!("\\u{point:04x}").bytes()),
            _ => bytes.extend(format!("\\U{point:08x}").bytes()),
        }
    }
    bytes
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    let joined: Vec<u8> = bytes
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    let text: String = joined
        .iter()
        .copied()
        .filter(u8::is_ascii)
        .map(char::from)
        .collect();
    let decoded = decode_base64(&text)
        .or_else(|| decode_base64(&format!("{text}==")))
        .or_else(|| decode_base64(&format!("{text}=")));
    decoded.unwrap_or(joined)
}

/// Python's `quopri.decodestring`.
fn quoted_printable(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let hex = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let (line, end) = match line {
            [line @ .., b'\r', b'\n'] => (line, &b"\r\n"[..]),
            [line @ .., b'\n'] => (line, &b"\n"[..]),
            line => (line, &b""[..]),
        };
        // Blanks at a line's end aren't part of it.
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let length = line
            .iter()
            .rposition(|byte| !blank(byte))
            .map_or(0, |at| at + 1);
        let line = if end.is_empty() {
            line
        } else {
            &line[..length]
        };
        let mut rest = line;
        let mut soft = false;
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if *first != b'=' {
                out.push(*first);
                continue;
            }
            match after {
                [] => soft = true,
                [high, low, ..] => match (hex(*high), hex(*low)) {
                    (Some(high), Some(low)) => {
                        out.push(high << 4 | low);
                        rest = &after[2..];
                    }
                    _ => out.push(b'='),
                },
                _ => out.push(b'='),
            }
        }
        if !soft {
            out.extend(end);
        }
    }
    out
}

//! URLs, taken apart and put together as Go's `net/url` does.

use super::arguments::{fail, map, string, text};
use super::{Entry, Outcome, entry};
use crate::dict::Dict;
use crate::function::Kind::{Map as MapKind, Str};
use crate::map::Map;
use crate::quote::quoted;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(
        "urlParse",
        "S",
        "the parts of the URL S: `scheme`, `host`, `hostname`, `path`, `query`, `fragment`, `userinfo`, `opaque`",
        &[Str],
        |_, a| {
            let source = text(&a[0]);
            match Url::parse(&source) {
                Ok(url) => Ok(url.into_value()),
                Err(why) => fail(format!(
                    "unable to parse url: parse {}: {why}",
                    quoted(&source)
                )),
            }
        },
    ),
    entry(
        "urlJoin",
        "DICT",
        "the URL that has these parts",
        &[MapKind],
        |_, a| join(&map(&a[0])),
    ),
];

#[derive(Default)]
struct Url {
    scheme: String,
    opaque: String,
    user: Option<(String, Option<String>)>,
    host: String,
    path: String,
    query: String,
    fragment: String,
}

/// Which part of a URL something is in.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    User,
    Host,
    Path,
    Fragment,
}

impl Url {
    fn parse(source: &str) -> Result<Self, String> {
        let (source, fragment) = source.split_once('#').unwrap_or((source, ""));
        let mut url = Self {
            fragment: unescape(fragment, Part::Fragment)?,
            ..Self::default()
        };
        if source.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (scheme, rest) = scheme(source)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        query.clone_into(&mut url.query);
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            let segment = rest.split('/').next().unwrap_or_default();
            if segment.contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let mut path = rest;
        let has_authority = !url.scheme.is_empty() || !rest.starts_with("///");
        if let Some(after) = rest.strip_prefix("//").filter(|_| has_authority) {
            let end = after.find('/').unwrap_or(after.len());
            url.authority(&after[..end])?;
            path = &after[end..];
        }
        url.path = unescape(path, Part::Path)?;
        Ok(url)
    }

    fn authority(&mut self, text: &str) -> Result<(), String> {
        let (user, host) = match text.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, text),
        };
        self.host = parse_host(host)?;
        let Some(user) = user else {
            return Ok(());
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if !user.bytes().all(fits) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(unescape(password, Part::User)?)),
            None => (user, None),
        };
        self.user = Some((unescape(name, Part::User)?, password));
        Ok(())
    }

    fn userinfo(&self) -> Option<String> {
        let (name, password) = self.user.as_ref()?;
        let mut made = escape(name, Part::User);
        if let Some(password) = password {
            made.push(':');
            made.push_str(&escape(password, Part::User));
        }
        Some(made)
    }

    /// The host without its port and brackets.
    fn hostname(&self) -> &str {
        let host = self.host.as_str();
        if let Some(inner) = host.strip_prefix('[') {
            return inner.split_once(']').map_or(host, |(inner, _)| inner);
        }
        host.split_once(':').map_or(host, |(name, _)| name)
    }

    fn into_value(self) -> Value {
        let entries: Map = [
            ("scheme", self.scheme.as_str()),
            ("host", &self.host),
            ("hostname", self.hostname()),
            ("path", &self.path),
            ("query", &self.query),
            ("opaque", &self.opaque),
            ("fragment", &self.fragment),
            ("userinfo", &self.userinfo().unwrap_or_default()),
        ]
        .into_iter()
        .collect();
        Value::Dict(Dict::new(entries))
    }

    fn shown(&self) -> String {
        let mut made = String::new();
        if !self.scheme.is_empty() {
            made = format!("{}:", self.scheme);
        }
        let user = self.userinfo();
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || user.is_some() {
                if !self.host.is_empty() || !self.path.is_empty() || user.is_some() {
                    made.push_str("//");
                }
                if let Some(user) = user {
                    made.push_str(&user);
                    made.push('@');
                }
                made.push_str(&escape(&self.host, Part::Host));
            }
            let path = match self.path.as_str() {
                "*" => "*".to_owned(),
                path => escape(path, Part::Path),
            };
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                made.push('/');
            }
            let first = path.split('/').next().unwrap_or_default();
            if made.is_empty() && first.contains(':') {
                made.push_str("./");
            }
            made.push_str(&path);
        } else {
            made.push_str(&self.opaque);
        }
        if !self.query.is_empty() {
            made.push('?');
            made.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            made.push('#');
            made.push_str(&escape(&self.fragment, Part::Fragment));
        }
        made
    }
}

fn scheme(source: &str) -> Result<(&str, &str), String> {
    for (index, byte) in source.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&source[..index], &source[index + 1..])),
            _ => break,
        }
    }
    Ok(("", source))
}

fn parse_host(host: &str) -> Result<String, String> {
    let port = if host.starts_with('[') {
        match host.rfind(']') {
            Some(end) => &host[end + 1..],
            None => return Err("missing ']' in host".to_owned()),
        }
    } else {
        host.rfind(':').map_or("", |colon| &host[colon..])
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let fits = port.is_empty() || port.starts_with(':');
    if !fits || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("invalid port {} after host", quoted(port)));
    }
    unescape(host, Part::Host)
}

fn unescape(source: &str, part: Part) -> Result<String, String> {
    let bytes = source.as_bytes();
    let mut made = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        if byte != b'%' {
            if part == Part::Host && byte < 0x80 && escapes(byte, Part::Host) {
                let shown = quoted(&char::from(byte).to_string());
                return Err(format!("invalid character {shown} in host name"));
            }
            made.push(byte);
            index += 1;
            continue;
        }
        let digit = |at: usize| {
            bytes
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
        };
        let code = digit(index + 1)
            .zip(digit(index + 2))
            .map(|(high, low)| (high * 16 + low) as u8);
        match code {
            Some(code) if part != Part::Host || code >= 0x80 => made.push(code),
            _ => {
                let shown = &bytes[index..bytes.len().min(index + 3)];
                let shown = quoted(&String::from_utf8_lossy(shown));
                return Err(format!("invalid URL escape {shown}"));
            }
        }
        index += 3;
    }
    Ok(String::from_utf8_lossy(&made).into_owned())
}

/// Whether a byte is escaped in a part of a URL.
fn escapes(byte: u8, part: Part) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':'
        | b'[' | b']' | b'<' | b'>' | b'"'
            if part == Part::Host =>
        {
            false
        }
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::Path => byte == b'?',
            Part::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Fragment => false,
            Part::Host => true,
        },
        b'!' | b'(' | b')' | b'*' => part != Part::Fragment,
        _ => true,
    }
}

fn escape(source: &str, part: Part) -> String {
    let mut made = String::with_capacity(source.len());
    for byte in source.bytes() {
        if escapes(byte, part) {
            made.push_str(&format!("%{byte:02X}"));
        } else {
            made.push(char::from(byte));
        }
    }
    made
}

fn join(parts: &Map) -> Outcome {
    let part = |name: &str| match parts.get(name) {
        None => Ok(String::new()),
        Some(value) if value.as_bytes().is_some() => Ok(text(value).into_owned()),
        Some(other) => {
            let found = super::arguments::kind_of(other);
            fail(format!(
                "unable to parse {name} key, must be of type string, but {found} found"
            ))
        }
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        user: None,
    };
    let user = part("userinfo")?;
    if !user.is_empty() {
        let whole = format!("proto://{user}@host");
        match Url::parse(&whole) {
            Ok(parsed) => url.user = parsed.user,
            Err(why) => {
                return fail(format!(
                    "unable to parse userinfo in dict: parse {}: {why}",
                    quoted(&whole)
                ));
            }
        }
    }
    string(url.shown())
}

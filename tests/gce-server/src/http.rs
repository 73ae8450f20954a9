//! As much of HTTP/1.1 as Google's client speaks over loopback.
//!
//! In: bytes of a connection. Out: whole requests and replies. Must not: know what they are about.

use std::io::{self, BufRead, Read as _, Write};

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// What follows the question mark.
    pub(crate) query: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// One reply; its body is JSON.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Reads the next request of a connection; none where it was closed instead.
pub(crate) fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let Some(first) = read_line(reader)? else {
        return Ok(None);
    };
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(invalid(&first));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = read_headers(reader)?;
    let body = read_body(reader, &headers)?;
    Ok(Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body,
    }))
}

/// Writes a reply; the connection stays open.
pub(crate) fn write_reply(writer: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {} -\r\nContent-Type: application/json; charset=UTF-8\r\nContent-Length: \
         {}\r\n\r\n",
        reply.status,
        reply.body.len()
    );
    // In one piece: a client that reads the head alone would wait for the rest.
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&reply.body);
    writer.write_all(&bytes)?;
    writer.flush()
}

/// Decodes `%XX`, and a plus sign where `plus_is_space`; none where the result isn't UTF-8 or the
/// encoding is invalid.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                bytes.push((high * 16 + low) as u8);
            }
            b'+' if plus_is_space => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// The parameters of a query, decoded; none where it is malformed.
pub(crate) fn decode_query(query: &str) -> Option<Vec<(String, String)>> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((decode(name, true)?, decode(value, true)?))
        })
        .collect()
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = headers.iter().filter(|(key, _)| key == name);
    found.next().map(|(_, value)| value.as_str())
}

/// A line without its end; none at the end of the connection.
fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

fn read_headers(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid(&line))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// The body: in chunks, or as long as its header says; without a header there is none.
fn read_body(reader: &mut impl BufRead, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if header(headers, "transfer-encoding").is_some_and(|coding| coding == "chunked") {
        loop {
            let line = read_line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let length = u64::from_str_radix(line.trim(), 16).map_err(|_| invalid(&line))?;
            reader.take(length).read_to_end(&mut body)?;
            read_line(reader)?;
            if length == 0 {
                return Ok(body);
            }
        }
    }
    let length = header(headers, "content-length").unwrap_or("0");
    let length: u64 = length.parse().map_err(|_| invalid("content-length"))?;
    reader.take(length).read_to_end(&mut body)?;
    if length != body.len() as u64 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("invalid HTTP: {what}"))
}

#[cfg(test)]
mod tests {
    use super::{decode, decode_query, read_request};

    #[test]
    fn requests_are_read_whole() {
        for (text, body) in [
            ("POST /a?b=c HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "{}"),
            (
                "POST /a?b=c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
                "{}",
            ),
            ("POST /a?b=c HTTP/1.1\r\n\r\n", ""),
        ] {
            let request = read_request(&mut text.as_bytes()).unwrap().unwrap();
            assert_eq!((&*request.path, &*request.query), ("/a", "b=c"));
            assert_eq!(request.body, body.as_bytes());
        }
        assert!(read_request(&mut "".as_bytes()).unwrap().is_none());
        for text in [
            "GET\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
        ] {
            assert!(read_request(&mut text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn percent_and_plus_are_decoded() {
        assert_eq!(decode("a%20b+c%C3%A9", false).unwrap(), "a b+cé");
        assert_eq!(decode("%2", false), None);
        assert_eq!(decode("%FF", false), None);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            decode_query("filter=a+%3D+b&x&y=1").unwrap(),
            [pair("filter", "a = b"), pair("x", ""), pair("y", "1")]
        );
    }
}

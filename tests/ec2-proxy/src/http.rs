//! As much of HTTP/1.1 as the SDKs and moto speak over loopback.
//!
//! In: bytes of a connection. Out: requests and replies, whole. May not: know what they are about.

use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpStream};

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// One reply.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

/// Reads the next request of a connection; none where it was closed instead.
pub(crate) fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let Some(first) = read_line(reader)? else {
        return Ok(None);
    };
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(broken(&first));
    };
    let headers = read_headers(reader)?;
    let body = read_body(reader, &headers, 0)?;
    Ok(Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body,
    }))
}

/// Writes a reply; the connection stays open.
pub(crate) fn write_reply(writer: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {} -\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
        reply.status,
        reply.content_type,
        reply.body.len()
    );
    // In one piece: a client that reads the head alone would wait for the rest.
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&reply.body);
    writer.write_all(&bytes)?;
    writer.flush()
}

/// Sends a request on a connection of its own and waits for the reply.
pub(crate) fn send(to: SocketAddr, request: &Request) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method, request.path).into_bytes();
    let ours = ["connection", "content-length", "transfer-encoding", "host"];
    for (name, value) in &request.headers {
        if !ours.contains(&name.as_str()) {
            write!(bytes, "{name}: {value}\r\n")?;
        }
    }
    write!(bytes, "host: {to}\r\nconnection: close\r\n")?;
    write!(bytes, "content-length: {}\r\n\r\n", request.body.len())?;
    bytes.extend_from_slice(&request.body);
    stream.write_all(&bytes)?;
    read_reply(&mut BufReader::new(stream))
}

fn read_reply(reader: &mut impl BufRead) -> io::Result<Reply> {
    let first = read_line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| broken(&first))?;
    let headers = read_headers(reader)?;
    let content_type = header(&headers, "content-type").unwrap_or("text/xml");
    let content_type = content_type.to_owned();
    let body = read_body(reader, &headers, u64::MAX)?;
    Ok(Reply {
        status,
        content_type,
        body,
    })
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
        let (name, value) = line.split_once(':').ok_or_else(|| broken(&line))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// The body: as long as its header says, in chunks, or `otherwise` many bytes at most.
fn read_body(
    reader: &mut impl BufRead,
    headers: &[(String, String)],
    otherwise: u64,
) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if header(headers, "transfer-encoding").is_some_and(|coding| coding == "chunked") {
        loop {
            let line = read_line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let length = u64::from_str_radix(line.trim(), 16).map_err(|_| broken(&line))?;
            reader.take(length).read_to_end(&mut body)?;
            read_line(reader)?;
            if length == 0 {
                return Ok(body);
            }
        }
    }
    let length = header(headers, "content-length").map(str::parse::<u64>);
    let length = length.transpose().map_err(|_| broken("content-length"))?;
    reader
        .take(length.unwrap_or(otherwise))
        .read_to_end(&mut body)?;
    if length.is_some_and(|length| length != body.len() as u64) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not HTTP: {what}"))
}

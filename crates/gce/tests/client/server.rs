//! A server that gives the answers of a test, and records the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

/// What came over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Method and path, without the query.
    pub(crate) line: String,
    /// The query's parameters, without those that the SDK adds (`$alt`, `$apiVersion`).
    pub(crate) query: Vec<(String, String)>,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value)
    }

    /// The body's parameters, if it is a form.
    pub(crate) fn form(&self) -> Vec<(String, String)> {
        pairs(&self.body)
    }
}

/// What the server does with a request.
pub(crate) enum Answer {
    /// A status, headers and a body.
    Full(u16, Vec<(&'static str, String)>, String),
    /// These bytes, then the end of the connection.
    Raw(String),
    /// The end of the connection.
    Nothing,
    /// Silence, until the other side gives up.
    Silence,
}

impl Answer {
    /// A success with a JSON body.
    pub(crate) fn json(body: impl std::fmt::Display) -> Self {
        Self::Full(200, Vec::new(), body.to_string())
    }
}

/// It listens until the process ends.
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (answer, kept) = (Arc::new(answer), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                stream.set_nodelay(true).unwrap();
                thread::spawn(move || serve(stream, &*answer, &kept));
            }
        });
        Self { url, requests }
    }

    /// The same over TLS, with a certificate for 127.0.0.1.
    pub(crate) fn start_tls(
        tls: Arc<rustls::ServerConfig>,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (answer, kept) = (Arc::new(answer), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                let tls = rustls::ServerConnection::new(Arc::clone(&tls)).unwrap();
                stream.set_nodelay(true).unwrap();
                let stream = rustls::StreamOwned::new(tls, stream);
                thread::spawn(move || serve(stream, &*answer, &kept));
            }
        });
        Self { url, requests }
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    stream: impl Read + Write,
    answer: &dyn Fn(&Request) -> Answer,
    kept: &Mutex<Vec<Request>>,
) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        kept.lock().unwrap().push(request.clone());
        let text = match answer(&request) {
            Answer::Full(status, headers, body) => {
                let mut text = format!("HTTP/1.1 {status} Status\r\n");
                for (name, value) in headers {
                    text += &format!("{name}: {value}\r\n");
                }
                text + &format!("content-length: {}\r\n\r\n{body}", body.len())
            }
            Answer::Raw(text) => {
                reader.get_mut().write_all(text.as_bytes()).unwrap();
                return;
            }
            Answer::Nothing => return,
            Answer::Silence => {
                let _ = reader.read(&mut [0]);
                return;
            }
        };
        if reader.get_mut().write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let target = lines[0].strip_suffix(" HTTP/1.1")?;
    let (line, query) = target.split_once('?').unwrap_or((target, ""));
    let mut query = pairs(query);
    query.retain(|(name, _)| !name.starts_with('$'));
    Some(Request {
        line: line.to_owned(),
        query,
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

/// Names and values of a query or form, in their order.
fn pairs(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

/// What `%41` and `+` stand for.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

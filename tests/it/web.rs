//! A web server on the loopback, for what is fetched.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

/// Serves texts by path until the tests end; `{base}` in them is the address, which is returned.
pub(crate) fn serve(pages: &[(&str, &str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let pages: Vec<(String, String)> = pages
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.replace("{base}", &base)))
        .collect();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            // Up to the blank line.
            lines.find(|line| line.as_ref().is_ok_and(String::is_empty));
            let path = request.split(' ').nth(1).unwrap_or_default();
            let found = pages.iter().find(|(known, _)| known == path);
            let (status, text) = match found {
                Some((_, text)) => ("200 OK", &**text),
                None => ("404 Not Found", ""),
            };
            let length = text.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(format!("{head}{text}").as_bytes());
        }
    });
    base
}

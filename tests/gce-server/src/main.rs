//! `nstance-gce-server PORT`: the server as a process, for tests that share one between processes.
//!
//! In: a port, 0 for a free one; the document's path in `NSTANCE_TEST_DISCOVERY`. Out: the endpoint,
//! as a line on standard output. Must not: outlive its standard input.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use nstance_gce_server::{DISCOVERY, Document, Server};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]
fn main() -> ExitCode {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let (Some(port), Some(path)) = (port, std::env::var_os(DISCOVERY)) else {
        eprintln!("usage: {DISCOVERY}=compute.v1.json nstance-gce-server PORT");
        return ExitCode::from(2);
    };
    let document = Document::read(Path::new(&path));
    let server = document.and_then(|document| Server::start_at(&Arc::new(document), port));
    match server {
        Ok(server) => {
            println!("{}", server.url());
            // However the other end of standard input ends, this ends.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

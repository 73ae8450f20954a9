//! One Ruby process.
//!
//! In: requests, a JSON text without line breaks each. Out: the answers. Must not: outlive its value.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::RenderError;

/// What Ruby runs. The same script and inputs give the same outputs, so caches can go by its digest.
pub const SCRIPT: &str = include_str!("evaluate.rb");

/// How long Ruby may take to start. A loaded machine takes a second.
const START_LIMIT: Duration = Duration::from_mins(1);

/// What is kept of a failed start's output, in bytes.
const LARGEST_DETAIL: u64 = 4096;

/// Why there is no answer. The worker is of no use any more.
pub(crate) enum Failure {
    Ended,
    Late,
}

#[derive(Debug)]
pub(crate) struct Worker {
    process: Child,
    requests: ChildStdin,
    /// One line each, sent by a thread that ends with the process.
    answers: Receiver<Vec<u8>>,
}

impl Worker {
    /// Starts Ruby and waits until it has loaded what it needs.
    pub(crate) fn start(ruby: &Path) -> Result<Self, RenderError> {
        let failed = |detail: String| RenderError::RubyFailed {
            ruby: ruby.to_owned(),
            detail,
        };
        let mut process = Command::new(ruby)
            .args(["--disable-gems", "-W0", "-E", "UTF-8", "-e", SCRIPT])
            .env_clear()
            .envs([("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => RenderError::RubyMissing {
                    looked_for: ruby.to_owned(),
                },
                _ => failed(error.to_string()),
            })?;
        let (Some(requests), Some(output), Some(errors)) = (
            process.stdin.take(),
            process.stdout.take(),
            process.stderr.take(),
        ) else {
            unreachable!("all three are pipes");
        };
        let mut worker = Self {
            process,
            requests,
            answers: lines(output).map_err(|error| failed(error.to_string()))?,
        };
        match worker.answers.recv_timeout(START_LIMIT) {
            Ok(_ready) => Ok(worker),
            Err(RecvTimeoutError::Timeout) => Err(failed(format!(
                "not ready after {} s",
                START_LIMIT.as_secs()
            ))),
            Err(RecvTimeoutError::Disconnected) => {
                worker.end();
                let mut detail = Vec::new();
                // Whatever could be read is the best there is to report.
                let _ = errors.take(LARGEST_DETAIL).read_to_end(&mut detail);
                Err(failed(String::from_utf8_lossy(&detail).trim().to_owned()))
            }
        }
    }

    /// Sends a request, a line, and waits for the answer.
    pub(crate) fn ask(&mut self, request: &[u8], limit: Duration) -> Result<Vec<u8>, Failure> {
        self.requests
            .write_all(request)
            .and_then(|()| self.requests.flush())
            .map_err(|_| Failure::Ended)?;
        self.answers
            .recv_timeout(limit)
            .map_err(|error| match error {
                RecvTimeoutError::Disconnected => Failure::Ended,
                RecvTimeoutError::Timeout => Failure::Late,
            })
    }

    fn end(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

/// The lines of `output`, read by a thread, because a pipe has no timeout.
fn lines(output: impl Read + Send + 'static) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name("erb answers".to_owned())
        .spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                match output.read_until(b'\n', &mut line) {
                    Ok(1..) if line.ends_with(b"\n") && sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        })?;
    Ok(receiver)
}

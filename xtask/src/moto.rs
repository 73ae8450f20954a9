//! moto, a server that answers as AWS does, for as long as the tests take.
//!
//! In: nothing. Out: where it listens. May not: outlive whoever started it, or listen anywhere but
//! on loopback.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;

use crate::{Failure, venv};

/// The variable that tells tests where moto listens.
pub(crate) const ADDRESS: &str = "NSTANCE_TEST_MOTO";

/// What `moto[server]` would bring is several times this; these are what the services need that
/// the tests call.
const PACKAGES: &[&str] = &[
    "moto==5.2.5",
    "boto3==1.44.5",
    "botocore==1.44.5",
    "flask==3.1.3",
    "flask-cors==6.0.5",
    "pyyaml==6.0.3",
    "werkzeug==3.1.9",
];

/// Ends when standard input does: however the one who holds the other end of it ended.
const PROGRAM: &str = "\
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from moto.server import main
main(['--host', '127.0.0.1', '--port', '0'])
";

/// What it says when it listens.
const LISTENS: &str = "Running on http://";

/// A moto that runs until this is dropped.
pub(crate) struct Moto {
    child: Child,
    address: SocketAddr,
    python: PathBuf,
}

impl Moto {
    /// Starts moto on a free port, and returns when it listens.
    pub(crate) fn start() -> Result<Self, Failure> {
        let venv = venv::ensure("moto", PACKAGES).map_err(|Failure(why)| {
            Failure::say(format!(
                "{why}\nmoto, which stands for AWS, needs Python 3 with venv and pip, and PyPI once.
  Debian, Ubuntu:  apt-get install python3 python3-venv"
            ))
        })?;
        let python = venv.join("bin/python");
        let mut child = Command::new(&python)
            .args(["-c", PROGRAM])
            // Types, key pairs and images that aren't there are refused, as EC2 does.
            .env("MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION", "true")
            .env("MOTO_ENABLE_KEYPAIR_VALIDATION", "true")
            .env("MOTO_ENABLE_AMI_VALIDATION", "true")
            // 1,301 images, made anew for each account; tests register their own.
            .env("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
            .env_remove("MOTO_ACCOUNT_ID")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().expect("it is piped");
        match wait(stderr) {
            Ok(address) => {
                eprintln!("+ moto listens on {address}");
                Ok(Self {
                    child,
                    address,
                    python,
                })
            }
            Err(said) => {
                child.kill()?;
                child.wait()?;
                Err(Failure::say(format!("moto didn't start:\n{said}")))
            }
        }
    }

    /// The Python that it runs on.
    pub(crate) fn python(&self) -> &Path {
        &self.python
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until moto says where it listens, and goes on reading for as long as it runs, so that it
/// never waits for a reader. The error is what it said instead.
fn wait(stderr: ChildStderr) -> Result<SocketAddr, String> {
    let mut said = String::new();
    let mut lines = BufReader::new(stderr).lines();
    for line in lines.by_ref().map_while(Result::ok) {
        if let Some(address) = address(&line) {
            thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
            return Ok(address);
        }
        said.push_str(&line);
        said.push('\n');
    }
    Err(said)
}

fn address(line: &str) -> Option<SocketAddr> {
    let rest = &line[line.find(LISTENS)? + LISTENS.len()..];
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn the_address_is_found_in_what_moto_says() {
        for (line, expected) in [
            (
                " * Running on http://127.0.0.1:42509",
                Some("127.0.0.1:42509"),
            ),
            (
                "\u{1b}[33m * Running on http://127.0.0.1:1\u{1b}[0m",
                Some("127.0.0.1:1"),
            ),
            ("WARNING: This is a development server.", None),
            (" * Running on http://somewhere", None),
        ] {
            let expected = expected.map(|text| text.parse().unwrap());
            assert_eq!(address(line), expected, "{line}");
        }
    }
}

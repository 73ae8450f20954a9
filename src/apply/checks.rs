//! Health checks of instances, and commands that are run for them.
//!
//! In: a [`Check`] or the words of a command, and the instance. Out: whether it is healthy, or why
//! not. Must not: repeat a check, or write to stdout.

use std::io::{Error as IoError, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use ureq::tls::TlsConfig;

use super::nonce_command::command;
use crate::config::model::Check;

/// The longest time between two looks at a running command.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// An instance to check or to drain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The provider id.
    pub provider_id: String,
    /// Its private IPv4 address.
    pub ip4: Option<String>,
    /// Its IPv6 address, used if it has no IPv4 address.
    pub ip6: Option<String>,
    /// Environment variables for commands: names without `NSTANCE_`, and values.
    pub facts: Vec<(&'static str, String)>,
}

impl Subject {
    fn socket(&self, port: u16) -> Result<SocketAddr, String> {
        let address = self.ip4.as_deref().or(self.ip6.as_deref());
        let address = address.ok_or("the instance has no address")?;
        let ip: IpAddr = address
            .parse()
            .map_err(|_| format!("invalid address of the instance: {address}"))?;
        Ok(SocketAddr::new(ip, port))
    }
}

/// Why a command didn't succeed; the text is a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// It can't be run, or failed.
    #[error("{0}")]
    Failed(String),
    /// It took longer than its timeout, and was killed.
    #[error("{0}")]
    TimedOut(String),
}

/// Runs one check of a running instance.
///
/// Fails with a lower-case fragment if the instance isn't healthy.
pub fn check(check: &Check, subject: &Subject, timeout: Duration) -> Result<(), String> {
    match check {
        Check::Running => Ok(()),
        Check::Tcp { port } => tcp(subject.socket(*port)?, timeout),
        Check::Http {
            port, path, status, ..
        } => {
            let url = format!("{}://{}{path}", check.name(), subject.socket(*port)?);
            let result = http(&url, *status, timeout);
            result.map_err(|why| format!("GET {url}: {why}"))
        }
        Check::Command { words } => {
            run(words, subject, timeout, "the check command").map_err(|error| error.to_string())
        }
    }
}

fn tcp(address: SocketAddr, timeout: Duration) -> Result<(), String> {
    let connected = TcpStream::connect_timeout(&address, timeout);
    connected
        .map(|_| ())
        .map_err(|error| format!("port {}: {}", address.port(), words_of(&error, timeout)))
}

fn http(url: &str, wanted: u16, timeout: Duration) -> Result<(), String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        // The request goes to an address of a private network, for which no certificate is issued.
        .tls_config(TlsConfig::builder().disable_verification(true).build())
        .proxy(None)
        .user_agent(concat!("nstance/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let response = agent.get(url).call().map_err(|error| match error {
        ureq::Error::Io(error) => words_of(&error, timeout),
        ureq::Error::Timeout(_) => timed_out(timeout),
        other => other.to_string(),
    })?;
    let status = response.status().as_u16();
    if status != wanted {
        return Err(format!("status {status}, expected {wanted}"));
    }
    Ok(())
}

/// The error in words, without the system's number for it.
fn words_of(error: &IoError, timeout: Duration) -> String {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => timed_out(timeout),
        kind @ (ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable) => kind.to_string(),
        _ => error.to_string(),
    }
}

fn timed_out(timeout: Duration) -> String {
    format!("no answer within {timeout:?}")
}

/// Runs a command (its words), with the subject's facts in its environment. Messages call it
/// `what`. Its stdout is discarded, its stderr is nstance's.
///
/// Fails if it can't be run, if it fails, or if it takes longer than `timeout`; then it and its
/// process group are killed.
pub fn run(
    words: &[Arc<str>],
    subject: &Subject,
    timeout: Duration,
    what: &str,
) -> Result<(), CommandError> {
    let failed = |why: String| CommandError::Failed(format!("{what} {why}"));
    let Some((program, mut command)) = command(words, &subject.facts) else {
        return Err(failed("is empty".to_owned()));
    };
    command.stdout(Stdio::null());
    // A group of its own, so that Ctrl-C leaves it running, and a timeout ends all of it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command
        .spawn()
        .map_err(|error| failed(format!("can't be run: {error}: {program}")))?;
    let status = wait(&mut child, timeout).map_err(|error| {
        kill(&mut child);
        failed(format!("can't be awaited: {error}: {program}"))
    })?;
    match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(failed(format!("failed ({status}): {program}"))),
        None => {
            kill(&mut child);
            Err(CommandError::TimedOut(format!(
                "{what} took longer than {timeout:?}: {program}"
            )))
        }
    }
}

/// Waits for the end of a command; `None` after `timeout`.
fn wait(child: &mut Child, timeout: Duration) -> Result<Option<ExitStatus>, IoError> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Kills a command that hasn't been awaited, and its process group. If that fails, it has ended.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    let _ = rustix::process::kill_process_group(
        rustix::process::Pid::from_child(child),
        rustix::process::Signal::KILL,
    );
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);
    const SHORT: Duration = Duration::from_millis(1);

    fn subject() -> Subject {
        Subject {
            provider_id: "i-1".to_owned(),
            ip4: Some("127.0.0.1".to_owned()),
            ip6: None,
            facts: vec![("INSTANCE_ID", "web1".to_owned())],
        }
    }

    fn listener() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    fn words(script: &str) -> Arc<[Arc<str>]> {
        ["sh", "-c", script].map(Arc::from).into()
    }

    /// Answers one request; returns its lines.
    fn serve(listener: TcpListener, answer: &'static str) -> thread::JoinHandle<Vec<String>> {
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines = lines.map_while(Result::ok);
            let lines = lines.take_while(|line| !line.is_empty()).collect();
            stream.write_all(answer.as_bytes()).unwrap();
            lines
        })
    }

    #[test]
    fn a_port_is_healthy_if_it_accepts_connections() {
        let (_listener, port) = listener();
        let tcp = |port| check(&Check::Tcp { port }, &subject(), LONG);
        assert_eq!(tcp(port), Ok(()));
        assert_eq!(tcp(1), Err("port 1: connection refused".to_owned()));
        assert_eq!(check(&Check::Running, &Subject::default(), LONG), Ok(()));
    }

    #[test]
    fn addresses_are_used_in_order() {
        let subject = |ip4: Option<&str>, ip6: Option<&str>| Subject {
            ip4: ip4.map(str::to_owned),
            ip6: ip6.map(str::to_owned),
            ..subject()
        };
        for (subject, socket) in [
            (subject(Some("10.0.0.5"), Some("fd00::5")), "10.0.0.5:80"),
            (subject(None, Some("fd00::5")), "[fd00::5]:80"),
        ] {
            assert_eq!(subject.socket(80).unwrap().to_string(), socket);
        }
        for (subject, why) in [
            (subject(None, None), "the instance has no address"),
            (
                subject(Some("web1"), None),
                "invalid address of the instance: web1",
            ),
        ] {
            assert_eq!(subject.socket(80).unwrap_err(), why);
        }
    }

    #[test]
    fn http_is_healthy_if_the_status_is_as_expected() {
        for (answer, wanted, result) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, ""),
            // The body isn't read.
            ("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n", 200, ""),
            ("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", 404, ""),
            (
                "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n",
                200,
                "status 503, expected 200",
            ),
            (
                "HTTP/1.1 301 No\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n",
                200,
                "status 301, expected 200",
            ),
        ] {
            let (listener, port) = listener();
            let server = serve(listener, answer);
            let http = Check::Http {
                tls: false,
                port,
                path: "/healthz?full".into(),
                status: wanted,
            };
            let found = check(&http, &subject(), LONG).err().unwrap_or_default();
            let wanted = match result {
                "" => String::new(),
                result => format!("GET http://127.0.0.1:{port}/healthz?full: {result}"),
            };
            assert_eq!(found, wanted);
            let lines = server.join().unwrap();
            assert_eq!(lines[0], "GET /healthz?full HTTP/1.1");
            let host = format!("host: 127.0.0.1:{port}");
            assert!(lines.iter().any(|line| line.eq_ignore_ascii_case(&host)));
        }
    }

    #[test]
    fn http_says_why_there_is_no_answer() {
        let (silent, port) = listener();
        let (plain, plain_port) = listener();
        let server = thread::spawn(move || drop(plain.accept().unwrap()));
        for (tls, port, timeout, why) in [
            (
                false,
                1,
                LONG,
                "GET http://127.0.0.1:1/: connection refused",
            ),
            (
                true,
                1,
                LONG,
                "GET https://127.0.0.1:1/: connection refused",
            ),
            (false, port, SHORT, ": no answer within 1ms"),
            (true, plain_port, LONG, ": "),
        ] {
            let http = Check::Http {
                tls,
                port,
                path: "/".into(),
                status: 200,
            };
            let found = check(&http, &subject(), timeout).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
        server.join().unwrap();
        drop(silent);
    }

    #[test]
    fn a_command_is_healthy_if_it_succeeds() {
        let command = |script: &str| {
            let words = words(script);
            check(&Check::Command { words }, &subject(), LONG)
        };
        assert_eq!(command("test \"$NSTANCE_INSTANCE_ID\" = web1"), Ok(()));
        let failed = "the check command failed (exit status: 3): sh";
        assert_eq!(command("echo unseen; exit 3"), Err(failed.to_owned()));
    }

    #[test]
    fn a_command_that_cant_be_run_is_an_error() {
        let run = |words: &[Arc<str>]| run(words, &subject(), LONG, "the drain command");
        let CommandError::Failed(why) = run(&["/no/such".into()]).unwrap_err() else {
            panic!("it can't time out");
        };
        assert!(why.starts_with("the drain command can't be run: "), "{why}");
        let why = CommandError::Failed("the drain command is empty".to_owned());
        assert_eq!(run(&[]), Err(why));
    }

    #[test]
    fn a_command_that_hangs_is_killed() {
        let late = run(&words("exec sleep 600"), &subject(), SHORT, "it");
        let why = "it took longer than 1ms: sh".to_owned();
        assert_eq!(late, Err(CommandError::TimedOut(why)));
    }

    /// What a command started ends with it.
    #[cfg(unix)]
    #[test]
    fn the_process_group_of_a_command_that_hangs_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let (sender, receiver) = mpsc::channel();
        let path = pipe.clone();
        // Ends when no process has the pipe open for writing any more.
        thread::spawn(move || sender.send(std::fs::read(path)));
        let subject = Subject {
            facts: vec![("PIPE", pipe.display().to_string())],
            ..subject()
        };
        let script = words("exec 3>\"$NSTANCE_PIPE\"; sleep 600 & wait");
        let late = run(&script, &subject, Duration::from_millis(200), "it");
        assert!(matches!(late, Err(CommandError::TimedOut(_))), "{late:?}");
        // If the command was killed before it opened the pipe, its reader still waits for that.
        let both_ends = std::fs::File::options().read(true).write(true).open(&pipe);
        drop(both_ends.unwrap());
        assert!(receiver.recv_timeout(LONG).unwrap().unwrap().is_empty());
    }
}

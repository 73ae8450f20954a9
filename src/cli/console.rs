//! Writes to standard output and standard error.
//!
//! In: text and documents. Out: the same with secrets masked, written. Must not: decide what is
//! written.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use indicatif::MultiProgress;
use serde_json::Value;

use super::Globals;
use crate::config::source::SourceMap;
use crate::diagnostic::Diagnostics;
use crate::redact;
use crate::report::{diagnostic, json};

/// Prints failures: as one document on standard output with `--json`, else as text on standard
/// error.
pub fn report<'f>(
    globals: &Globals,
    failures: impl IntoIterator<Item = (&'f Diagnostics, &'f SourceMap)>,
) {
    let failures = failures.into_iter();
    if globals.json {
        let findings: Vec<Value> = failures
            .filter_map(
                |(findings, sources)| match diagnostic::to_json(findings, sources) {
                    Value::Array(findings) => Some(findings),
                    _ => None,
                },
            )
            .flatten()
            .collect();
        print_json(&json::errors(findings.into()));
        return;
    }
    let color = globals.colors_errors();
    let texts: Vec<String> = failures
        .map(|(findings, sources)| diagnostic::render(findings, sources, color))
        .collect();
    error(&texts.join("\n"));
}

/// Writes to standard output with secrets masked. Ignores a closed pipe.
pub fn print(text: &str) {
    if TEXTS_TO_ERRORS.load(Ordering::Relaxed) {
        error(text);
    } else if IN_CLEAR.load(Ordering::Relaxed) {
        print_in_clear(text);
    } else {
        print_in_clear(&redact::text(text));
    }
}

/// Writes a report to standard output with secrets masked, even where texts go to standard error.
pub fn print_report(text: &str) {
    print_in_clear(&redact::text(text));
}

/// Whether texts go to standard error, since standard output has a report.
static TEXTS_TO_ERRORS: AtomicBool = AtomicBool::new(false);

/// Sends texts to standard error for the rest of this process.
pub fn keep_output_for_a_report() {
    TEXTS_TO_ERRORS.store(true, Ordering::Relaxed);
}

/// Whether standard output may contain secrets.
static IN_CLEAR: AtomicBool = AtomicBool::new(false);

/// Permits secrets on standard output for the rest of this process: `--show-sensitive`.
pub fn show_sensitive() {
    IN_CLEAR.store(true, Ordering::Relaxed);
}

/// Writes to standard output without masking: for the user's own file, or on request.
pub fn print_in_clear(text: &str) {
    aside(|| {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    });
}

/// Writes to standard error with secrets masked.
pub fn error(text: &str) {
    let text = redact::text(text);
    aside(|| {
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    });
}

/// The bars on the terminal, which every text must be printed above.
static BARS: RwLock<Option<MultiProgress>> = RwLock::new(None);

thread_local! {
    /// Whether this thread prints above the bars already.
    static IS_ASIDE: Cell<bool> = const { Cell::new(false) };
}

/// Sets or removes the bars on the terminal.
pub fn show_bars(bars: Option<MultiProgress>) {
    *BARS.write().unwrap_or_else(PoisonError::into_inner) = bars;
}

/// Prints above the bars on the terminal.
pub fn aside<T>(print: impl FnOnce() -> T) -> T {
    if IS_ASIDE.get() {
        return print();
    }
    let bars = BARS.read().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(bars) = bars else { return print() };
    bars.suspend(|| {
        IS_ASIDE.set(true);
        let result = print();
        IS_ASIDE.set(false);
        result
    })
}

/// Writes a JSON document to standard output.
pub fn print_json(value: &Value) {
    let text = serde_json::to_string_pretty(&*document(value));
    print_in_clear(&text.expect("a document's keys are strings"));
    print_in_clear("\n");
}

fn document(value: &Value) -> Cow<'_, Value> {
    if IN_CLEAR.load(Ordering::Relaxed) {
        Cow::Borrowed(value)
    } else {
        redact::json(value)
    }
}

/// Writes a JSON document as one line to standard output.
pub fn print_json_line(value: &Value) {
    print_in_clear(&format!("{}\n", document(value)));
}

/// A path as shown in messages.
pub fn shown(path: &Path) -> String {
    path.display().to_string()
}

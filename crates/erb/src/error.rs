//! What can fail: one template, or a whole request.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a template has no output. Its text is BOSH's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The template's name, as requested.
    pub template: String,
    /// Ruby's class, without BOSH's modules: `UnknownProperty`, `NoMethodError`, `JSON::ParserError`.
    /// Limits have classes of their own: `TimeLimitExceeded`, `OutputLimitExceeded`, `ProcessEnded`.
    pub class: String,
    /// Ruby's message.
    pub message: String,
    /// The line in the template, from 1; absent where Ruby doesn't know one.
    pub line: Option<u32>,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.template.rsplit('/').next().unwrap_or_default();
        write!(f, "Error filling in template '{file}' (")?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{})", self.message)
    }
}

impl std::error::Error for TemplateError {}

/// Why a request has no results at all.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Ruby is missing.
    #[error(
        "ERB templates need Ruby, but `{}` is missing: install Ruby 3 (`apt-get install ruby`), or pass --ruby PATH",
        looked_for.display()
    )]
    RubyMissing {
        /// The path, or the name that was looked up on `PATH`.
        looked_for: PathBuf,
    },
    /// Ruby did not start.
    #[error("`{}` did not start: {detail}", ruby.display())]
    RubyFailed {
        /// The program.
        ruby: PathBuf,
        /// What it printed, or the system's error.
        detail: String,
    },
    /// Ruby ended while it rendered, and again after a restart.
    #[error("Ruby ended twice while it rendered; check whether a template ends other processes")]
    RubyEnded,
    /// Ruby neither answered nor enforced the time limit.
    #[error("Ruby did not answer within {} s", waited.as_secs())]
    NoAnswer {
        /// How long it had.
        waited: Duration,
    },
}

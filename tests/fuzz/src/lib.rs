//! What is asked of a reader, whatever it is given: to come back, with a configuration or with
//! findings that can be shown. That it comes back soon and with little memory is for `-timeout` and
//! `-rss_limit_mb` to see.

use nstance::check::Purpose;
use nstance::load::load_text;
use nstance::config::variables::Given;
use nstance::diagnostic::Diagnostics;
use nstance::pipeline::validate;
use nstance::report::diagnostic::{render, to_json};

/// Reads and validates a text as the configuration `name`, and shows what is wrong with it.
pub fn read(name: &str, text: &[u8]) {
    // A file that isn't UTF-8 doesn't come as far as the readers.
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let mut loaded = load_text(Purpose::Plan, name, text, &Given::default());
    assert!(
        loaded.config.is_some() || loaded.findings.has_errors(),
        "neither a configuration nor an error"
    );
    // What is in other files is nobody's business here.
    if !text.contains("file:") {
        validate(&mut loaded, false);
    }
    show(&loaded.findings, &loaded.sources);
}

fn show(findings: &Diagnostics, sources: &nstance::config::source::SourceMap) {
    render(findings, sources, false);
    to_json(findings, sources);
}

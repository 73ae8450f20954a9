//! `nstance explain`: where values come from.

use clap::Args;

use super::fleet::{Fleet, Form, Reply};
use super::{Ending, Globals};
use crate::config::check::Purpose;
use crate::diagnostic::{Diagnostics, Severity};
use crate::report::variables;

/// Options of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Each variable, its value, and whether that is the default, or from the environment, a file
    /// or the command line
    #[arg(long, required = true)]
    vars: bool,
}

/// Runs `explain`.
pub fn run(globals: &Globals, _command: &Explain) -> Ending {
    let fleet = Fleet::load(globals, Purpose::Render)?;
    let form = Form::Headed.documents_or(globals.json);
    Ok(fleet.each(form, |_, session| {
        let loaded = &session.loaded;
        let mut warnings = Diagnostics::default();
        let findings = loaded.findings.iter();
        warnings.extend(
            findings
                .filter(|finding| finding.severity == Severity::Warning)
                .cloned(),
        );
        if globals.json {
            let mut document = variables::json(&loaded.variables, &loaded.sources);
            document["diagnostics"] = session.findings_json(&warnings);
            return Ok(Reply::document(document));
        }
        let text = variables::text(&loaded.variables, &loaded.sources);
        Ok(Reply::text(text).telling(warnings))
    }))
}

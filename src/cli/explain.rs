//! `nstance explain`: where values come from.

use clap::Args;

use super::fleet::{Fleet, Form, Reply};
use super::render::{self, Render};
use super::{Ending, Globals};
use crate::address::{AddressError, InShard, Selector};
use crate::check::Purpose;
use crate::diagnostic::{Diagnostics, Severity};
use crate::report::variables;

/// Options of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Explain the userdata of a group or slot
    ///
    /// Shows the layer and line of each value, and dropped values.
    #[arg(value_name = "ADDR.userdata", value_parser = userdata_path, required_unless_present = "vars")]
    path: Option<InShard<Selector>>,
    /// List variables with their values and sources
    #[arg(long, conflicts_with = "path")]
    vars: bool,
}

/// The address in `ADDR.userdata`.
fn userdata_path(text: &str) -> Result<InShard<Selector>, String> {
    match text.strip_suffix(".userdata") {
        Some(address) => address
            .parse()
            .map_err(|error: AddressError| error.to_string()),
        None => Err("expected an address and `.userdata`, such as `default/web/0.userdata`".into()),
    }
}

/// Runs `explain`.
pub fn run(globals: &Globals, command: &Explain) -> Ending {
    if let Some(address) = &command.path {
        return render::run(globals, &Render::explaining_userdata(address.clone()));
    }
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

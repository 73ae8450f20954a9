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
    /// Explain the values of a group or slot, all or those at a path
    ///
    /// Such as `default/web/0`, `default/web/0.args.name` or `default/web/0.userdata`. Shows the layer
    /// and line of each value; of placeholder texts, also the names and both stages; of userdata, also
    /// dropped values.
    #[arg(value_name = "ADDR[.path]", value_parser = address_and_path, required_unless_present = "vars")]
    path: Option<(InShard<Selector>, Option<String>)>,
    /// List variables with their values and sources
    #[arg(long, conflicts_with = "path")]
    vars: bool,
}

/// The address and the path in `ADDR[.path]`.
fn address_and_path(text: &str) -> Result<(InShard<Selector>, Option<String>), String> {
    let (address, path) = match text.split_once('.') {
        Some((address, path)) => (address, Some(path.to_owned())),
        None => (text, None),
    };
    let address = address
        .parse()
        .map_err(|error: AddressError| error.to_string())?;
    Ok((address, path))
}

/// Runs `explain`.
pub fn run(globals: &Globals, command: &Explain) -> Ending {
    if let Some((address, path)) = &command.path {
        let asked = match path.as_deref() {
            Some("userdata") => Render::explaining_userdata(address.clone()),
            _ => Render::explaining(address.clone(), path.clone()),
        };
        return render::run(globals, &asked);
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

//! `nstance images`: what each image resolves to, where from, how old.

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::session::Session;
use super::{Ending, Globals, exit};
use crate::check::Purpose;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::Cloud;
use crate::provider::retry::RetryingReads;
use crate::report::age;
use crate::resolve::images::{Policy, resolve};

/// Options of `images`.
#[derive(Debug, Args)]
pub struct Images {
    /// Look up images even if the cached result is fresh
    #[arg(long)]
    refresh_images: bool,
}

/// Runs `images`.
pub fn run(globals: &Globals, command: &Images) -> Ending {
    let fleet = Fleet::load(globals, Purpose::Render)?;
    let form = Form::Headed.documents_or(globals.json);
    Ok(fleet.each(form, |_, session| images(session, command)))
}

fn images(session: &Session<'_>, command: &Images) -> Result<Reply, Failure> {
    let store = session.open_to_read()?;
    let rows = store
        .as_ref()
        .map(|store| store.images())
        .transpose()?
        .unwrap_or_default();
    drop(store);
    let cloud = session.cloud()?;
    let reads = RetryingReads::new(&*cloud, &*session.clock);
    let now = session.clock.now();
    let policy = Policy {
        cloud: Some(&reads as &dyn Cloud),
        refresh: command.refresh_images,
        now,
    };
    let resolved = resolve(session.config(), |_| true, &rows, policy);
    let mut findings = Diagnostics::default();
    findings.extend(resolved.warnings.iter().cloned());
    let mut table = Vec::new();
    let mut document = serde_json::Map::new();
    for (name, image) in &resolved.images {
        match image {
            Ok(image) => {
                let how_old = image.resolved_at.map_or_else(
                    || "-".to_owned(),
                    |at| format!("{} ago", age(now.since(at))),
                );
                table.push([
                    name.to_string(),
                    image.id.to_string(),
                    image.source.as_str().to_owned(),
                    how_old,
                ]);
                document.insert(
                    name.to_string(),
                    json!({
                        "id": image.id,
                        "source": image.source.as_str(),
                        "resolved_at": image.resolved_at.map(|at| at.to_string()),
                    }),
                );
            }
            Err(failure) => findings.push(
                Diagnostic::error(format!("image `{name}` can't be resolved"))
                    .at(failure.span, failure.message.clone())
                    .hint("Correct its filters, or give it a `fallback`"),
            ),
        }
    }
    let code = if findings.has_errors() {
        exit::ERROR
    } else {
        exit::SUCCESS
    };
    let reply = if session.globals.json {
        Reply::document(json!({
            "format_version": "1.0",
            "images": document,
            "diagnostics": session.findings_json(&findings),
        }))
    } else {
        let header = ["IMAGE", "ID", "SOURCE", "AGE"];
        Reply::text(crate::report::table(&header, &table)).telling(findings)
    };
    Ok(reply.ending(code))
}

//! Saved plans: what you saw is what runs.
//!
//! In: a [`Plan`]. Out: a file, and the plan again; or why a file is none. May not: trust a file
//! that isn't whole.
//!
//! A line that names the format, a line with the SHA-256 of the rest, then gzipped JSON. A file that
//! was cut or edited has another digest.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use super::change::{Action, Change, Plan};
use crate::digest::sha256_hex;
use nstance_state::{Record, Snapshot};

/// The first line.
const MAGIC: &str = "nstance plan 1";
/// The most a plan may unpack to.
const LARGEST_PLAN: u64 = 8 * 1024 * 1024 * 1024;

/// Why a file is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// It can't be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Something else.
    #[error("it isn't a saved plan")]
    NotAPlan,
    /// A plan of another version.
    #[error("it was saved in the format `{0}`; this version reads `{MAGIC}`")]
    Format(String),
    /// Cut or edited.
    #[error("it was cut or edited after it was saved")]
    Damaged,
}

/// Writes a plan; the file is whole or not there. Mode 0600: specs may be nobody else's business.
pub fn write(path: &Path, plan: &Plan) -> Result<String, PlanFileError> {
    let mut encoder = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::fast());
    serde_json::to_writer(&mut encoder, plan).map_err(io::Error::from)?;
    let body = encoder.finish()?;
    let digest = sha256_hex(&body);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    write!(file, "{MAGIC}\n{digest}\n")?;
    file.write_all(&body)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(digest)
}

/// Reads a plan, and the digest that names it.
pub fn read(path: &Path) -> Result<(Plan, String), PlanFileError> {
    let bytes = std::fs::read(path)?;
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
    let (magic, digest, body) = (lines.next(), lines.next(), lines.next());
    let magic = magic.map(String::from_utf8_lossy).unwrap_or_default();
    if magic != MAGIC {
        return Err(if magic.starts_with("nstance plan ") && magic.len() < 40 {
            PlanFileError::Format(magic.into_owned())
        } else {
            PlanFileError::NotAPlan
        });
    }
    let (Some(digest), Some(body)) = (digest, body) else {
        return Err(PlanFileError::Damaged);
    };
    let actual = sha256_hex(body);
    if actual.as_bytes() != digest {
        return Err(PlanFileError::Damaged);
    }
    let reader = flate2::read::GzDecoder::new(body).take(LARGEST_PLAN);
    let plan =
        serde_json::from_reader(io::BufReader::new(reader)).map_err(|_| PlanFileError::Damaged)?;
    Ok((plan, actual))
}

/// The cloud's id of an instance that wasn't recorded when a plan was made to record or delete it.
fn unrecorded(change: &Change) -> Option<&str> {
    match (change.before.as_deref(), change.action) {
        (None, Action::Adopt) => change.importing.as_deref(),
        (Some(before), Action::Delete) if before.version.is_none() => before.provider_id.as_deref(),
        _ => None,
    }
}

/// What moved on since a plan was made: one line each. Nothing: it may run.
pub fn stale(plan: &Plan, snapshot: Option<&Snapshot>) -> Vec<String> {
    let mut moved = Vec::new();
    match snapshot {
        None if !plan.new_state => {
            moved.push("the state it was made from isn't there any more".to_owned());
            return moved;
        }
        Some(snapshot) if snapshot.meta.lineage != plan.lineage => {
            moved.push(if plan.new_state {
                "it was made when there was no state; there is one now".to_owned()
            } else {
                format!(
                    "it was made from another state: lineage {}, this one is {}",
                    plan.lineage, snapshot.meta.lineage
                )
            });
            return moved;
        }
        _ => {}
    }
    let records: HashMap<&str, &Record> = snapshot
        .iter()
        .flat_map(|snapshot| &snapshot.records)
        .map(|record| (record.instance_id.as_str(), record))
        .collect();
    let by_provider_id: HashMap<&str, &Record> = records
        .values()
        .map(|record| (record.provider_id.as_str(), *record))
        .collect();
    for change in &plan.changes {
        let address = &change.address;
        if let Some(id) = unrecorded(change)
            && let Some(record) = by_provider_id.get(id)
        {
            moved.push(format!(
                "{address}: {id} is recorded by now, as {}",
                record.address()
            ));
            continue;
        }
        if let Some(before) = change.before.as_deref()
            && let Some(version) = before.version
        {
            match records.get(&*before.instance_id) {
                None => {
                    moved.push(format!(
                        "{address}: {} isn't recorded any more",
                        before.instance_id
                    ));
                }
                Some(record) if record.version != version => moved.push(format!(
                    "{address}: its record changed, from version {version} to {}",
                    record.version
                )),
                Some(_) => {}
            }
        }
        let occupies = change.before.is_none() && change.after.is_some();
        if occupies
            && let Some(record) =
                snapshot.and_then(|snapshot| snapshot.live(address.group.as_str(), address.slot))
        {
            moved.push(format!(
                "{address}: the slot is taken by {} now",
                record.instance_id
            ));
        }
    }
    moved
}

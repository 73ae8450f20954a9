//! Saved plans: apply executes exactly what was shown.
//!
//! In: a [`Plan`] and an encryption key. Out: a file, and the plan again. Must not: trust a damaged
//! file, or write secrets unencrypted.
//!
//! Line 1 names the format, line 2 has the SHA-256 of the rest, line 3 has the key id. Encrypted,
//! gzipped JSON follows. A truncated or edited file has another digest; a forged one doesn't
//! decrypt.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use nstance_state::{
    Context, KeyError, KeyId, KeyNeed, Keys, NewKey, OpenError, RandomError, Record, Snapshot,
};

use super::change::{Action, Change, Plan};
use crate::digest::sha256_hex;
use crate::limited;

/// The first line.
const MAGIC: &str = "nstance plan 2";
/// How the first line begins in every version.
const ANY_MAGIC: &[u8] = b"nstance plan ";
/// How a database of `SQLite` begins.
const START_OF_DATABASE: &[u8] = b"SQLite format 3\0";
/// The third line of a plan that isn't sealed.
const CLEAR: &str = "clear";
/// Before the identity in the third line, which names the plan's shard if its key is missing.
const FOR: &str = " for ";
/// The limit of an unpacked plan, in bytes.
const LARGEST_PLAN: u64 = 8 * 1024 * 1024 * 1024;
/// The limit of a plan file, in bytes.
const LARGEST_FILE: u64 = 1024 * 1024 * 1024;

/// Why a plan file can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// An I/O error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Something else.
    #[error("not a saved plan")]
    NotAPlan,
    /// A plan of another format version.
    #[error("it was saved in the format `{0}`; this version reads `{MAGIC}`")]
    Format(String),
    /// Truncated or edited.
    #[error("it was cut or edited after it was saved")]
    Damaged,
    /// Encrypted, and the key is missing.
    #[error("it is sealed with the key {needed}, and {reason}")]
    NoKey {
        /// The id of the required key.
        needed: KeyId,
        /// The identity of the plan's shard; empty in plans of older versions.
        of: String,
        /// Why the key is missing.
        reason: KeyError,
    },
    /// The plan has secrets and there is no key to encrypt it.
    #[error("it holds secrets, and there is no key to seal it with")]
    Secret,
    /// There is a file already, which isn't a saved plan.
    #[error("{0}")]
    Occupied(&'static str),
    /// No random bytes.
    #[error("{0}")]
    Random(#[from] RandomError),
}

/// The context of the encryption, which binds a plan to this format and its state.
fn context<'a>(lineage: &'a str, row: &'a [&'a [u8]]) -> Context<'a> {
    Context {
        lineage,
        table: MAGIC,
        row,
        version: 0,
    }
}

/// Writes a plan, sealed if there is a key; the file is whole or not there. Mode 0600: specs may hold
/// secrets. Replaces saved plans and empty files; fails if anything else has the name, if the plan
/// holds secrets and there is no key, and if the file can't be written.
pub fn write(path: &Path, plan: &Plan, key: Option<&NewKey>) -> Result<String, PlanFileError> {
    if key.is_none() && plan.holds_secrets() {
        return Err(PlanFileError::Secret);
    }
    check_replaceable(path)?;
    let mut encoder = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::fast());
    serde_json::to_writer(&mut encoder, plan).map_err(io::Error::from)?;
    let packed = encoder.finish()?;
    let body = match key {
        None => [CLEAR.as_bytes(), b"\n", &packed].concat(),
        Some(NewKey { key, derivation }) => {
            let mut line = format!("sealed {} {}", key.id(), plan.lineage);
            if let Some(derivation) = derivation {
                line.push_str(&format!(" {derivation}"));
            }
            line.push_str(&format!("{FOR}{}", plan.identity()));
            let sealed = key.seal(&context(&plan.lineage, &[line.as_bytes()]), &packed)?;
            [line.as_bytes(), b"\n", &sealed].concat()
        }
    };
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

/// Fails unless a saved plan may be written to `path`.
fn check_replaceable(path: &Path) -> Result<(), PlanFileError> {
    let metadata = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if !metadata.is_file() {
        let what = if metadata.is_dir() {
            "a folder"
        } else {
            "not a file"
        };
        return Err(PlanFileError::Occupied(what));
    }
    let mut start = Vec::new();
    std::fs::File::open(path)?
        .take(START_OF_DATABASE.len() as u64)
        .read_to_end(&mut start)?;
    if start.is_empty() || start.starts_with(ANY_MAGIC) {
        Ok(())
    } else if start == START_OF_DATABASE {
        Err(PlanFileError::Occupied("a database, such as a state"))
    } else {
        Err(PlanFileError::Occupied("not a saved plan"))
    }
}

/// Reads a plan, and the digest that names it. `keys` are asked where it is sealed.
pub fn read(path: &Path, keys: &dyn Keys) -> Result<(Plan, String), PlanFileError> {
    let bytes = limited::read_file(path, LARGEST_FILE)?;
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
    let packed = opened(body, keys)?;
    let reader = flate2::read::GzDecoder::new(&*packed).take(LARGEST_PLAN);
    let plan: Plan =
        serde_json::from_reader(io::BufReader::new(reader)).map_err(|_| PlanFileError::Damaged)?;
    Ok((plan, actual))
}

/// The provider id of an instance that the plan adopts or deletes although it wasn't recorded.
fn unrecorded(change: &Change) -> Option<&str> {
    match (change.before.as_deref(), change.action) {
        (None, Action::Adopt) => change.importing.as_deref(),
        (Some(before), Action::Delete) if before.version.is_none() => before.provider_id.as_deref(),
        _ => None,
    }
}

/// The decrypted, gzipped JSON.
fn opened<'b>(body: &'b [u8], keys: &dyn Keys) -> Result<Cow<'b, [u8]>, PlanFileError> {
    let mut parts = body.splitn(2, |byte| *byte == b'\n');
    let (Some(line), Some(packed)) = (parts.next(), parts.next()) else {
        return Err(PlanFileError::Damaged);
    };
    if line == CLEAR.as_bytes() {
        return Ok(Cow::Borrowed(packed));
    }
    let text = str::from_utf8(line).map_err(|_| PlanFileError::Damaged)?;
    let (sealing, of) = text.split_once(FOR).unwrap_or((text, ""));
    let mut words = sealing.split(' ');
    let (Some("sealed"), Some(_), Some(lineage)) = (words.next(), words.next(), words.next())
    else {
        return Err(PlanFileError::Damaged);
    };
    let derivation = words.next().map(str::parse).transpose();
    let id = nstance_state::key_of(packed).map_err(|_| PlanFileError::Damaged)?;
    let derivation = derivation.map_err(|_| PlanFileError::Damaged)?;
    let of = of.to_owned();
    let refused = |reason| PlanFileError::NoKey {
        needed: id,
        of: of.clone(),
        reason,
    };
    let key = keys.find(&KeyNeed { id, derivation }).map_err(refused)?;
    match key.open(&context(lineage, &[line]), packed) {
        Ok(packed) => Ok(Cow::Owned(packed)),
        Err(OpenError::WrongKey { given, .. }) => Err(refused(KeyError {
            why: format!("the key given is {given}"),
            hint: None,
        })),
        Err(OpenError::Damaged | OpenError::NotSealed) => Err(PlanFileError::Damaged),
    }
}

/// The differences since planning, one line each; empty means the plan is current.
pub fn stale(plan: &Plan, snapshot: Option<&Snapshot>) -> Vec<String> {
    match snapshot {
        // Without a state, nothing was recorded.
        None if plan.new_state => Vec::new(),
        None => vec!["the state it was made from no longer exists".to_owned()],
        Some(snapshot) if snapshot.meta.lineage != plan.lineage => {
            vec![if plan.new_state {
                "it was made when there was no state; there is one now".to_owned()
            } else {
                format!(
                    "it was made from another state: lineage {}, this one is {}",
                    plan.lineage, snapshot.meta.lineage
                )
            }]
        }
        Some(snapshot) => stale_changes(&plan.changes, snapshot),
    }
}

/// How the records of these changes differ from when they were planned, one line each.
pub fn stale_changes<'c>(
    changes: impl IntoIterator<Item = &'c Change>,
    snapshot: &Snapshot,
) -> Vec<String> {
    let mut moved = Vec::new();
    let records: HashMap<&str, &Record> = snapshot
        .records
        .iter()
        .map(|record| (record.instance_id.as_str(), record))
        .collect();
    let by_provider_id: HashMap<&str, &Record> = records
        .values()
        .map(|record| (record.provider_id.as_str(), *record))
        .collect();
    for change in changes {
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
        if occupies && let Some(record) = snapshot.live(address.group.as_str(), address.slot) {
            moved.push(format!(
                "{address}: the slot is taken by {} now",
                record.instance_id
            ));
        }
    }
    moved
}

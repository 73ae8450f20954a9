//! The storage of a state, by its URL.
//!
//! In: a URL or a path, and the keys of states. Out: a [`Backend`]. Must not: touch the state. Only
//! this module of the command line knows the kinds of storage.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nstance_state::{Backend, Identity, Keys, SqliteFile};

use super::failure::Failure;
use crate::diagnostic::Diagnostic;

/// The storage at a URL, in which `{cluster}` and `{shard}` are replaced. The path of a file may be
/// relative to `folder`.
///
/// Fails if the URL's kind is unknown or not built in.
pub(super) fn of_url(
    url: &str,
    folder: &Path,
    identity: &Identity,
    keys: Arc<dyn Keys>,
) -> Result<Box<dyn Backend>, Failure> {
    let path = match url.split_once(':') {
        Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
        Some(("postgres" | "postgresql", _)) => return of_server(url, identity, keys),
        Some((scheme @ ("s3" | "gs"), _)) => {
            let finding = Diagnostic::error(format!(
                "states on `{scheme}` aren't built into this version"
            ));
            return Err(finding.hint("Use a file: --state sqlite:PATH").into());
        }
        Some((scheme, rest)) if rest.starts_with("//") => {
            let finding = Diagnostic::error(format!("`{scheme}` is no kind of state"));
            return Err(finding.hint("Use a file: --state sqlite:PATH").into());
        }
        _ => url,
    };
    let path = path
        .replace("{cluster}", &identity.cluster)
        .replace("{shard}", &identity.shard);
    Ok(of_file(folder.join(path), keys))
}

/// The storage on a `PostgreSQL` server.
///
/// Fails if the URL is invalid.
#[cfg(feature = "postgres")]
fn of_server(
    url: &str,
    identity: &Identity,
    keys: Arc<dyn Keys>,
) -> Result<Box<dyn Backend>, Failure> {
    let Identity { cluster, shard, .. } = identity;
    let url = url.replace("{cluster}", cluster).replace("{shard}", shard);
    let variable = |name: &str| std::env::var(name).ok();
    let server = nstance_state::PostgresServer::new(&url, cluster, shard, &variable, Some(keys))?;
    Ok(Box::new(server))
}

/// Without the feature, there is none.
#[cfg(not(feature = "postgres"))]
fn of_server(_: &str, _: &Identity, _: Arc<dyn Keys>) -> Result<Box<dyn Backend>, Failure> {
    let finding = Diagnostic::error("states on PostgreSQL aren't built into this version");
    let hint = "Build it with them: cargo install --path . --features postgres";
    Err(finding.hint(hint).into())
}

/// The storage in a file.
pub(super) fn of_file(path: PathBuf, keys: Arc<dyn Keys>) -> Box<dyn Backend> {
    Box::new(SqliteFile::new(path, Some(keys)))
}

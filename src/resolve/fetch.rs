//! Userdata from URLs.
//!
//! In: `file:`, `http://` and `https://` URLs. Out: bodies, each fetched once a plan, within a
//! time and a size. May not: decode or render them.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::model::Config;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::render::group::Bodies;

/// The most a body may have.
const LARGEST_BODY: u64 = 8 * 1024 * 1024;
/// The longest a fetch may take.
const LONGEST_FETCH: Duration = Duration::from_secs(30);

/// Every URL that userdata comes from, with its place.
pub fn urls(config: &Config) -> Vec<Spanned<Arc<str>>> {
    let mut seen = BTreeSet::new();
    let all = std::iter::once(config.defaults.userdata.as_ref())
        .chain(
            config
                .templates
                .values()
                .map(|template| template.value.common.userdata.as_ref()),
        )
        .chain(
            config
                .groups
                .iter()
                .map(|group| group.common.userdata.as_ref()),
        );
    all.flatten()
        .flat_map(|userdata| &userdata.parts)
        .filter(|part| part.text.is_url())
        .map(|part| part.text.content.clone())
        .filter(|url| seen.insert(Arc::clone(&url.value)))
        .collect()
}

/// Whether a URL is a file beside the configuration, which needs no network.
pub fn is_file(url: &str) -> bool {
    url.starts_with("file:")
}

/// Reads the files, and with `network` fetches the rest. What can't be had becomes a finding;
/// `kept` is asked for an earlier body where the network fails, or may not be used.
pub fn bodies(
    config: &Config,
    directory: &Path,
    network: bool,
    kept: impl Fn(&str) -> Option<Vec<u8>>,
    findings: &mut Diagnostics,
) -> Bodies {
    let mut bodies = Bodies::new();
    for url in urls(config) {
        let fetched = if is_file(&url.value) {
            read_file(&url.value, directory)
        } else if network {
            match fetch(&url.value) {
                Ok(body) => Ok(body),
                Err(error) => match kept(&url.value) {
                    Some(body) => {
                        findings.push(
                            Diagnostic::warning(format!(
                                "userdata is from the cache: fetching it failed: {error}"
                            ))
                            .at(url.span, "fetched from here"),
                        );
                        Ok(body)
                    }
                    None => Err(error),
                },
            }
        } else {
            match kept(&url.value) {
                Some(body) => Ok(body),
                // What needs it fails when it is rendered.
                None => continue,
            }
        };
        match fetched {
            Ok(body) => {
                bodies.insert(Arc::clone(&url.value), body.into());
            }
            Err(error) => findings.push(failure(&error, url.span)),
        }
    }
    snippets(config, directory, &mut bodies, findings);
    bodies
}

/// Reads the snippets that are files; they come from nowhere else.
fn snippets(config: &Config, directory: &Path, bodies: &mut Bodies, findings: &mut Diagnostics) {
    let snippets = config.templates_lib.values().map(|snippet| &snippet.value);
    for snippet in snippets.filter(|snippet| snippet.is_url()) {
        let url = &snippet.content;
        if bodies.contains_key(&url.value) || !is_file(&url.value) {
            continue;
        }
        match read_file(&url.value, directory) {
            Ok(body) => {
                bodies.insert(Arc::clone(&url.value), body.into());
            }
            Err(error) => {
                findings.push(Diagnostic::error("a snippet can't be read").at(url.span, error));
            }
        }
    }
}

/// The files beside a configuration that [`bodies`] reads.
pub fn files(config: &Config, directory: &Path) -> Vec<PathBuf> {
    let snippets = config
        .templates_lib
        .values()
        .filter(|snippet| snippet.value.is_url())
        .map(|snippet| snippet.value.content.clone());
    urls(config)
        .into_iter()
        .chain(snippets)
        .filter(|url| is_file(&url.value))
        .map(|url| file_of(&url.value, directory))
        .collect()
}

fn file_of(url: &str, directory: &Path) -> PathBuf {
    let path = url.trim_start_matches("file:");
    directory.join(path.strip_prefix("//").unwrap_or(path))
}

fn failure(error: &str, span: Span) -> Diagnostic {
    Diagnostic::error("userdata can't be fetched").at(span, error.to_owned())
}

fn read_file(url: &str, directory: &Path) -> Result<Vec<u8>, String> {
    let path = file_of(url, directory);
    let file =
        std::fs::File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_plain = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_plain {
        return Err(format!("{}: not a plain file", path.display()));
    }
    read_limited(file)
}

fn fetch(url: &str) -> Result<Vec<u8>, String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(LONGEST_FETCH))
        .user_agent(concat!("nstance/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let response = agent.get(url).call().map_err(|error| error.to_string())?;
    read_limited(response.into_body().into_reader())
}

fn read_limited(reader: impl std::io::Read) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    reader
        .take(LARGEST_BODY + 1)
        .read_to_end(&mut body)
        .map_err(|error| error.to_string())?;
    if body.len() as u64 > LARGEST_BODY {
        return Err(format!("it has more than {LARGEST_BODY} bytes"));
    }
    Ok(body)
}

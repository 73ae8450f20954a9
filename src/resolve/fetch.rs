//! Fetches userdata from URLs.
//!
//! In: `file:`, `http://` and `https://` URLs. Out: bodies, each fetched once a plan, with a time
//! and a size limit. Must not: decode or render them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nstance_cloudinit::userdata::{addresses, gather};

use crate::config::model::{Config, Includes, Userdata};
use crate::config::node::{Node, NodeValue};
use crate::config::source::{Span, Spanned};
use crate::credentials::{is_telling, of_url, shown_url};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::merge::group::UserdataLayers;
use crate::render::args::is_template;
use crate::render::layers::source_bytes;
use crate::render::userdata::Bodies;
use crate::render::userdata::Body;

/// The size limit of a body, in bytes.
const LARGEST_BODY: u64 = 8 * 1024 * 1024;
/// The time limit of a fetch.
const LONGEST_FETCH: Duration = Duration::from_secs(30);

/// The userdata of every layer.
fn userdata(config: &Config) -> impl Iterator<Item = &Userdata> {
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
}

/// The userdata that instances are made of: not that of unused templates, nor a layer that a higher
/// one replaces.
fn needed(config: &Config) -> impl Iterator<Item = &Userdata> {
    let mut seen = BTreeSet::new();
    let groups = config.groups.iter();
    let layers = groups.flat_map(|group| UserdataLayers::of(config, group).joined());
    layers
        .map(|(_, userdata)| userdata)
        .filter(move |userdata| seen.insert(std::ptr::from_ref::<Userdata>(userdata)))
}

/// The errors of what can't be fetched, by the text of the part that names it: a URL, or a text with
/// `#include`.
pub type Unfetched = HashMap<Arc<str>, Vec<Diagnostic>>;

/// Every userdata URL, with its place.
pub fn urls(config: &Config) -> Vec<Spanned<Arc<str>>> {
    let mut seen = BTreeSet::new();
    userdata(config)
        .flat_map(|userdata| &userdata.parts)
        .filter(|part| part.text.is_url())
        .map(|part| part.text.content.clone())
        .filter(|url| seen.insert(Arc::clone(&url.value)))
        .collect()
}

/// Every URL that inline userdata includes by `#include` and that nstance fetches itself.
pub fn included(config: &Config) -> Vec<String> {
    let fetching = userdata(config).filter(|userdata| userdata.includes == Includes::Fetch);
    let parts = fetching.flat_map(|userdata| &userdata.parts);
    let none = Bodies::new();
    let addresses = parts.filter_map(|part| {
        let bytes = source_bytes(&part.text, &none)?;
        let kind = part.content_type.as_deref().map(|kind| &**kind);
        Some(addresses(&bytes, kind))
    });
    addresses.flatten().collect()
}

/// The credentials in a configuration: those in the provider's options and in userdata URLs.
pub fn credentials(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(options) = &config.shard.infra.options {
        of_options(options, false, &mut found);
    }
    for url in urls(config) {
        found.extend(of_url(&url.value));
    }
    for url in included(config) {
        found.extend(of_url(&url));
    }
    found
}

fn of_options(node: &Node, telling: bool, found: &mut Vec<String>) {
    match &node.value {
        NodeValue::String(text) if telling => found.push(text.to_string()),
        NodeValue::String(text) => found.extend(of_url(text)),
        NodeValue::Number(number) if telling => found.push(number.to_string()),
        NodeValue::Array(items) => {
            for item in items {
                of_options(item, telling, found);
            }
        }
        NodeValue::Object(entries) => {
            for entry in entries {
                of_options(&entry.value, telling || is_telling(&entry.key), found);
            }
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
    }
}

/// Whether a URL is a local file.
pub fn is_file(url: &str) -> bool {
    url.starts_with("file:")
}

/// Reads files, and with `network` fetches URLs and the URLs that they include.
///
/// Failures to read files become findings; a URL that can't be fetched concerns only the instances
/// that need it. `kept` returns a cached body if the network fails or isn't allowed.
pub fn bodies(
    config: &Config,
    directory: &Path,
    network: bool,
    kept: impl Fn(&str) -> Option<Vec<u8>>,
    findings: &mut Diagnostics,
    unfetched: &mut Unfetched,
) -> Bodies {
    let mut bodies = Bodies::new();
    for url in urls(config).iter().filter(|url| is_file(&url.value)) {
        match read_file(&url.value, directory) {
            Ok(body) => {
                bodies.insert(Arc::clone(&url.value), body.into());
            }
            Err(error) => findings.push(failure(&error, url.span)),
        }
    }
    for part in needed(config).flat_map(|userdata| &userdata.parts) {
        let url = &part.text.content;
        let is_known = bodies.contains_key(&url.value) || unfetched.contains_key(&url.value);
        if !part.text.is_url() || is_file(&url.value) || is_known {
            continue;
        }
        match from_network(url, network, &kept, findings) {
            Ok(Some(body)) => {
                bodies.insert(Arc::clone(&url.value), body.into());
            }
            Ok(None) => {}
            Err(finding) => {
                unfetched.insert(Arc::clone(&url.value), vec![*finding]);
            }
        }
    }
    let mut failed = BTreeSet::new();
    let fetching = needed(config).filter(|userdata| userdata.includes == Includes::Fetch);
    for part in fetching.flat_map(|userdata| &userdata.parts) {
        let span = part.text.content.span;
        let Some(bytes) = source_bytes(&part.text, &bodies).map(Cow::into_owned) else {
            continue;
        };
        let kind = part.content_type.as_deref().map(|kind| &**kind);
        gather(&bytes, kind, &mut |address| {
            if let Some(known) = bodies.get(address) {
                return Some(Arc::clone(known));
            }
            // A template's result isn't known yet; parsing reports it.
            if is_template(address) || failed.contains(address) {
                return None;
            }
            let url = Spanned::new(Arc::from(address), span);
            let mut found = Diagnostics::default();
            let body = from_network(&url, network, &kept, &mut found);
            findings.extend(found.into_iter().map(|one| of_included(one, address)));
            let body = body.unwrap_or_else(|finding| {
                let finding = of_included(*finding, address);
                let text = Arc::clone(&part.text.content.value);
                unfetched.entry(text).or_default().push(finding);
                None
            });
            let Some(body) = body else {
                failed.insert(address.to_owned());
                return None;
            };
            let body = Body::from(body);
            bodies.insert(url.value, Arc::clone(&body));
            Some(body)
        });
    }
    snippets(config, directory, &mut bodies, findings);
    bodies
}

/// A URL's body, fetched or cached; `None` if it wasn't asked for.
///
/// Fails if it can't be fetched and isn't cached. Rendering then fails for the instances that need it.
fn from_network(
    url: &Spanned<Arc<str>>,
    network: bool,
    kept: impl Fn(&str) -> Option<Vec<u8>>,
    findings: &mut Diagnostics,
) -> Result<Option<Vec<u8>>, Box<Diagnostic>> {
    if !network {
        return Ok(kept(&url.value));
    }
    let error = match fetch(&url.value) {
        Ok(body) => return Ok(Some(body)),
        Err(error) => error,
    };
    match kept(&url.value) {
        Some(body) => {
            findings.push(
                Diagnostic::warning(format!(
                    "userdata is from the cache: fetching it failed: {error}"
                ))
                .at(url.span, "fetched from here"),
            );
            Ok(Some(body))
        }
        None => Err(Box::new(failure(&error, url.span))),
    }
}

/// Reads snippets, which can only be files.
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

/// The local files that [`bodies`] reads.
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

/// Changes a finding about a URL into one about the text at `span` that includes it.
fn of_included(mut finding: Diagnostic, url: &str) -> Diagnostic {
    finding.detail = Some(format!("It includes {}", shown_url(url)));
    finding
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

/// Fetches a URL.
///
/// Fails if the server can't be reached, answers with an error, or exceeds the time or size limit.
pub fn fetch(url: &str) -> Result<Vec<u8>, String> {
    // Included URLs aren't validated earlier.
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err("it is no `https://…` and no `http://…`".to_owned());
    }
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

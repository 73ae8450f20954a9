//! Loads a whole configuration from a path or a text.
//!
//! In: a path or a text, and input variables. Out: [`Loaded`]: a configuration, or all errors of
//! the stage that failed. Must not: print, or read files that the configuration doesn't name.

use std::path::Path;
use std::sync::Arc;

use crate::check::{Purpose, check};
use crate::config::decode::Draft;
use crate::config::files::LARGEST_FILE;
use crate::config::load::{Loaded, decode_files, decode_text};
use crate::config::model::Config;
use crate::config::source::Spanned;
use crate::config::variables::Given;
use crate::credentials;
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, Severity};
use crate::limited::read_text;
use crate::provider::rules::Rules;
use crate::stage;

/// Loads a configuration to be planned: `path` as given, or that of `working_dir`.
pub fn load(path: Option<&Path>, working_dir: &Path, given: &Given) -> Loaded {
    load_for(Purpose::Plan, path, working_dir, given)
}

/// Loads a configuration for the given purpose.
pub fn load_for(
    purpose: Purpose,
    path: Option<&Path>,
    working_dir: &Path,
    given: &Given,
) -> Loaded {
    let (mut loaded, mut draft) = stage::timed("read configuration", || {
        decode_files(path, working_dir, given)
    });
    if let Ok(draft) = &mut draft {
        read_ca_cert(&mut draft.config, &loaded.directory, &mut loaded.findings);
    }
    stage::timed("check configuration", || {
        checked(loaded, draft, purpose, given)
    })
}

/// Loads a configuration from a text. Messages call it `name`, whose extension selects the
/// language. Its functions can't read files.
pub fn load_text(purpose: Purpose, name: &str, text: &str, given: &Given) -> Loaded {
    let (loaded, draft) = decode_text(name, text, given);
    checked(loaded, draft, purpose, given)
}

/// Checks references and the provider's rules.
fn checked(
    mut loaded: Loaded,
    draft: Result<Draft, Reported>,
    purpose: Purpose,
    given: &Given,
) -> Loaded {
    let config = draft.and_then(|mut draft| {
        if !given.nonce_command.is_empty() {
            let words = given.nonce_command.iter();
            draft.config.nonce_command = words.map(|word| word.as_str().into()).collect();
        }
        refuse_password(&draft.config, &mut loaded);
        settle_args(&mut draft, &mut loaded.findings);
        check(&draft, purpose, &loaded.sources, &mut loaded.findings);
        // What today's server doesn't know is for information only.
        if (given.strict || draft.config.strict) && !given.server_compatible {
            for finding in &mut loaded.findings {
                finding.severity = Severity::Error;
            }
        }
        draft.finish(&loaded.findings)
    });
    loaded.finish(config)
}

/// The cluster's CA certificate in the server's storage.
const CA_CERT: &str = "ca.crt";

/// Reads `cluster.ca_cert` where it names a file; without it, takes the server's own from its storage
/// in files.
fn read_ca_cert(config: &mut Config, directory: &Path, findings: &mut Diagnostics) {
    let cluster = &mut config.cluster;
    if let Some(given) = &mut cluster.ca_cert {
        let Some(path) = given.value.strip_prefix("file:") else {
            return;
        };
        match read_text(&directory.join(path), LARGEST_FILE) {
            Ok(text) => given.value = text.into(),
            Err(error) => findings.push(
                Diagnostic::error(format!("the CA certificate can't be read: {error}"))
                    .at(given.span, "this file"),
            ),
        }
    } else if let Some(storage) = &cluster.storage
        && &*storage.provider == "file"
    {
        let folder = directory.join(&*storage.bucket).join(&*storage.prefix);
        let text = read_text(&folder.join(CA_CERT), LARGEST_FILE);
        cluster.ca_cert = text
            .ok()
            .map(|text| Spanned::new(text.into(), cluster.id.span));
    }
}

/// Reports a password in `state`, since configurations are shared. Messages don't show it.
fn refuse_password(config: &Config, loaded: &mut Loaded) {
    let Some(state) = &config.state else { return };
    let passwords = credentials::of_url(&state.value);
    if passwords.is_empty() {
        return;
    }
    let secrets = passwords.into_iter().map(Arc::from);
    loaded.secrets.0.extend(secrets);
    // A password may be too short to be masked by itself.
    loaded.secrets.0.push(Arc::clone(&state.value));
    loaded.findings.push(
        Diagnostic::error("`state` has a password in its URL")
            .at(state.span, "a configuration must not have a password")
            .hint("Leave it out here, and set PGPASSWORD, or use a .pgpass file")
            .hint("Or give the whole URL as --state or NSTANCE_STATE"),
    );
}

/// Gives members within args the names that the provider's API knows.
fn settle_args(draft: &mut Draft, findings: &mut Diagnostics) {
    let config = &mut draft.config;
    let rules = Rules::of(config.shard.infra.provider.value);
    let of_templates = config.templates.values_mut();
    let of_templates = of_templates.filter_map(|template| template.value.common.args.as_mut());
    let of_groups = config.groups.iter_mut().flat_map(|group| {
        let overrides = group.overrides.values_mut();
        let overrides = overrides.filter_map(|differs| differs.value.args.as_mut());
        group.common.args.as_mut().into_iter().chain(overrides)
    });
    let all = config.defaults.args.as_mut().into_iter();
    for args in all.chain(of_templates).chain(of_groups) {
        rules.settle_args(args, findings);
    }
}

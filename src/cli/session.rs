//! The context of a command: options, configuration, state and cloud.
//!
//! In: global options and the environment. Out: a [`Session`] that opens its parts on demand. Must
//! not: hold a lock longer than the command that requested it.

use std::borrow::Cow;
use std::fmt::Display;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use nstance_state::{
    Backend, Derivation, Document, Held, Identity, Key, Keys, LockInfo, NewKey, StateError, Store,
    Write, backups,
};
use serde_json::Value;

use super::failure::Failure;
use super::keys::Keyring;
use super::{Globals, backend, console};
use crate::address::in_shard;
use crate::check::Purpose;
use crate::clock::{Clock, FixedClock, SystemClock, Timestamp};
use crate::config::load::Loaded;
use crate::config::model::{Config, ProviderKind};
use crate::config::source::Spanned;
use crate::config::variables::Given;
use crate::credentials::{self, shown_url};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::home::{self, HOME};
use crate::load::load_for;
use crate::provider::Cloud;
#[cfg(feature = "aws")]
use crate::provider::aws::{AwsCloud, AwsOptions};
#[cfg(feature = "gcp")]
use crate::provider::gcp::{GcpCloud, GcpOptions, Named};
use crate::provider::logged::LoggedCloud;
use crate::provider::rules::Rules;
use crate::provider::sim::{DEFAULT_PATH, SimCloud, SimOptions};
use crate::redact;
use crate::report::{diagnostic, events, text};
use crate::resolve::fetch;
use crate::stage;

/// The context of a command for one shard.
pub struct Session<'g> {
    /// The global options.
    pub globals: &'g Globals,
    /// The configuration and its text.
    pub loaded: Loaded,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The shard's name in a run over several shards.
    pub label: Option<String>,
    /// The keys of states and plans.
    pub keys: Arc<Keyring>,
    storage: OnceLock<Box<dyn Backend>>,
    /// Reports once that the configuration's `state` is overridden.
    overridden: Once,
    /// Reports once that the state was moved.
    moved: Once,
    /// The findings that were reported so far.
    reported: Mutex<Diagnostics>,
}

impl<'g> Session<'g> {
    /// A session for a valid configuration.
    pub fn new(globals: &'g Globals, loaded: Loaded) -> Self {
        let keys = Keyring::new(globals, &loaded.directory.join(HOME));
        Self {
            globals,
            loaded,
            clock: clock(globals),
            label: None,
            keys,
            storage: OnceLock::new(),
            overridden: Once::new(),
            moved: Once::new(),
            reported: Mutex::default(),
        }
    }

    /// Loads a configuration, valid or not: `path`, or the one of the working folder.
    pub fn read(globals: &Globals, purpose: Purpose, path: Option<&Path>) -> Loaded {
        let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let given = Given {
            identity_only: purpose == Purpose::Identity,
            server_compatible: purpose == Purpose::Server,
            ..globals.given()
        };
        let loaded = load_for(purpose, path, &directory, &given);
        redact::know(&loaded.secrets.0);
        redact::know(
            globals
                .state
                .iter()
                .flat_map(|url| credentials::of_url(url)),
        );
        if let Some(config) = &loaded.config {
            redact::know(fetch::credentials(config));
        }
        loaded
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        self.loaded
            .config
            .as_ref()
            .expect("a session is only made of a configuration")
    }

    /// The provider's rules; `--sim` keeps them.
    pub fn rules(&self) -> Rules {
        Rules::of(self.config().shard.infra.provider.value)
    }

    /// Whether the embedded cloud is used.
    pub fn uses_sim(&self) -> bool {
        self.simulates() || self.config().shard.infra.provider.value == ProviderKind::Sim
    }

    /// Whether the embedded cloud stands in for the configured one.
    fn simulates(&self) -> bool {
        self.globals.sim || self.loaded.is_specification
    }

    /// The state's identity. With `--sim`, it differs from that of the configured provider, so that
    /// their states don't mix.
    pub fn identity(&self) -> Identity {
        let config = self.config();
        let provider = config.shard.infra.provider.value;
        Identity {
            cluster: config.cluster.id.value.to_string(),
            shard: config.shard.id.value.to_string(),
            provider: if self.simulates() && provider != ProviderKind::Sim {
                format!("sim:{}", provider.as_str())
            } else {
                provider.as_str().to_owned()
            },
        }
    }

    /// The name of the cloud.
    pub fn provider_name(&self) -> &'static str {
        if self.uses_sim() {
            "sim"
        } else {
            self.config().shard.infra.provider.value.as_str()
        }
    }

    /// The folder for nstance's own files.
    pub fn home(&self) -> PathBuf {
        self.loaded.directory.join(HOME)
    }

    /// The folder of exported files: beside the default state, so that each shard has its own.
    pub fn exports(&self) -> PathBuf {
        let identity = self.identity();
        let home = self.home().join(identity.cluster);
        home.join(identity.shard).join("files")
    }

    /// The client of the cloud.
    ///
    /// Fails if there is no client for the provider, or its options or credentials are invalid.
    pub fn cloud(&self) -> Result<Box<dyn Cloud>, Failure> {
        let client = self.client()?;
        Ok(Box::new(LoggedCloud::new(client)))
    }

    fn client(&self) -> Result<Box<dyn Cloud>, Failure> {
        let infra = &self.config().shard.infra;
        let provider = infra.provider.value;
        if self.uses_sim() {
            let mut findings = Diagnostics::default();
            let options = if provider == ProviderKind::Sim {
                SimOptions::from_node(infra.options.as_ref(), &mut findings)
            } else {
                SimOptions::default()
            };
            if findings.has_errors() {
                return Err(findings.into());
            }
            let path = self.sim_path(&options);
            let clock = Arc::clone(&self.clock);
            let cloud = SimCloud::open(&path, &options, provider, clock)?;
            return Ok(Box::new(cloud));
        }
        match provider {
            ProviderKind::Aws => self.aws(),
            ProviderKind::Gcp => self.gcp(),
            _ => Err(no_client(provider).into()),
        }
    }

    /// The client for EC2, with the usual AWS credentials.
    ///
    /// Fails if there are none.
    #[cfg(feature = "aws")]
    fn aws(&self) -> Result<Box<dyn Cloud>, Failure> {
        let config = self.config();
        let infra = &config.shard.infra;
        let mut findings = Diagnostics::default();
        let options = AwsOptions::from_node(infra.options.as_ref(), &mut findings);
        if findings.has_errors() {
            return Err(findings.into());
        }
        let client = nstance_ec2::Client::connect(&nstance_ec2::ClientOptions {
            profile: options.profile.clone(),
            role_arn: options.role_arn.clone(),
            endpoint_url: options.endpoint_url.clone(),
            request_timeout: config.shard.request_timeout,
            app_name: "nstance".to_owned(),
            ..nstance_ec2::ClientOptions::new(&*infra.region.value)
        })
        .map_err(|error| {
            let mut finding = Diagnostic::error(format!("AWS can't be asked: {}", error.message));
            if error.code == nstance_ec2::ApiError::CREDENTIALS_NOT_FOUND {
                finding = finding.hint("Log in (`aws sso login`), set AWS_PROFILE, or set `profile` or `role_arn` in `shard.infra.options`");
            }
            Failure::new(finding)
        })?;
        let balancers = config.load_balancers.values();
        let groups = balancers
            .filter(|balancer| balancer.value.provider == Some(ProviderKind::Aws))
            .flat_map(|balancer| &balancer.value.targets);
        Ok(Box::new(AwsCloud::new(
            Arc::new(client),
            options,
            &infra.region.value,
            groups.map(ToString::to_string).collect(),
            Arc::clone(&self.clock),
        )))
    }

    #[cfg(not(feature = "aws"))]
    #[expect(clippy::unused_self, reason = "a build with the client needs it")]
    fn aws(&self) -> Result<Box<dyn Cloud>, Failure> {
        Err(no_client(ProviderKind::Aws).into())
    }

    /// The client for Compute Engine, with application default credentials.
    ///
    /// Fails if there are none, or if no project is named.
    #[cfg(feature = "gcp")]
    fn gcp(&self) -> Result<Box<dyn Cloud>, Failure> {
        let config = self.config();
        let infra = &config.shard.infra;
        let mut findings = Diagnostics::default();
        let options = GcpOptions::from_node(infra.options.as_ref(), &mut findings);
        if findings.has_errors() {
            return Err(findings.into());
        }
        let variables = ["GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"];
        let named = variables.iter().filter_map(|name| std::env::var(name).ok());
        let mut named = named.filter(|project| !project.is_empty());
        let Some(project) = options.project_id.clone().or_else(|| named.next()) else {
            let finding = Diagnostic::error("the project isn't set");
            return Err(Failure::new(
                finding
                    .at(infra.provider.span, "its instances are in a project")
                    .hint("Set `project_id` in `shard.infra.options`, or GOOGLE_CLOUD_PROJECT"),
            ));
        };
        let client = nstance_gce::Client::connect(&nstance_gce::ClientOptions {
            endpoint: options.endpoint.clone(),
            anonymous: options.anonymous,
            impersonate: options.impersonate.clone(),
            request_timeout: config.shard.request_timeout,
            app_name: "nstance".to_owned(),
            ..nstance_gce::ClientOptions::default()
        })
        .map_err(|error| {
            let text = format!("the client of Google Cloud failed: {}", error.message);
            let mut finding = Diagnostic::error(text);
            if error.code == nstance_gce::ApiError::CREDENTIALS_NOT_FOUND {
                finding = finding.hint("Log in (`gcloud auth application-default login`), or set GOOGLE_APPLICATION_CREDENTIALS");
            }
            Failure::new(finding)
        })?;
        let balancers = config.load_balancers.values();
        let groups = balancers
            .filter(|balancer| balancer.value.provider == Some(ProviderKind::Gcp))
            .flat_map(|balancer| &balancer.value.targets);
        let subnets = config.shard.subnet_pools.values();
        let subnets = subnets.flat_map(|pool| &pool.value);
        Ok(Box::new(GcpCloud::new(
            Arc::new(client),
            options,
            &project,
            &infra.region.value,
            Named {
                groups: groups.map(ToString::to_string).collect(),
                subnets: subnets.map(|subnet| subnet.value.to_string()).collect(),
            },
            Arc::clone(&self.clock),
        )))
    }

    #[cfg(not(feature = "gcp"))]
    #[expect(clippy::unused_self, reason = "a build with the client needs it")]
    fn gcp(&self) -> Result<Box<dyn Cloud>, Failure> {
        Err(no_client(ProviderKind::Gcp).into())
    }

    /// The embedded cloud's database.
    pub fn sim_path(&self, options: &SimOptions) -> PathBuf {
        self.loaded
            .directory
            .join(options.path.as_deref().unwrap_or(DEFAULT_PATH))
    }

    /// An address or another name, with the shard's name in a run over several.
    pub fn name(&self, address: impl Display) -> String {
        in_shard(self.label.as_deref(), address)
    }

    /// Prints findings on standard error; with `--quiet` only if one is an error.
    pub fn tell(&self, findings: &Diagnostics) {
        self.note(findings);
        if findings.has_errors() || !findings.is_empty() && !self.globals.quiet {
            let color = self.globals.colors_errors();
            let findings = self.named(findings);
            console::error(&diagnostic::render(&findings, &self.loaded.sources, color));
        }
    }

    /// Prints a failure. In a run over several shards, it goes among the others' texts or events.
    pub fn fail(&self, failure: &Failure) {
        self.note(&failure.findings);
        match (&self.label, self.globals.json) {
            (None, _) => console::report(self.globals, [(&failure.findings, &self.loaded.sources)]),
            (Some(_), true) => self.finding_events(&failure.findings),
            (Some(_), false) => self.tell(&failure.findings),
        }
    }

    /// Keeps findings for the reports of the whole run.
    pub fn note(&self, findings: &Diagnostics) {
        if !findings.is_empty() {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            reported.extend(findings.iter().cloned());
        }
    }

    /// The findings that were reported so far.
    pub fn reported(&self) -> Diagnostics {
        let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.clone()
    }

    /// Findings with the shard's name.
    fn named<'d>(&self, findings: &'d Diagnostics) -> Cow<'d, Diagnostics> {
        let Some(label) = &self.label else {
            return Cow::Borrowed(findings);
        };
        let mut named = findings.clone();
        for finding in &mut named {
            finding.summary = format!("{label}: {}", finding.summary);
        }
        Cow::Owned(named)
    }

    /// Findings as the `diagnostics[]` of a shard's document.
    pub fn findings_json(&self, findings: &Diagnostics) -> Value {
        diagnostic::to_json(findings, &self.loaded.sources)
    }

    /// Prints an event; in a run over several shards, with the shard's name.
    pub fn event(&self, mut event: Value) {
        if self.label.is_some() {
            let identity = self.identity();
            event["cluster"] = identity.cluster.into();
            event["shard"] = identity.shard.into();
        }
        console::print_json_line(&event);
    }

    /// Prints findings as events.
    pub fn finding_events(&self, findings: &Diagnostics) {
        self.note(findings);
        let now = self.clock.now();
        for finding in self
            .findings_json(findings)
            .as_array()
            .into_iter()
            .flatten()
        {
            self.event(events::diagnostic(now, finding.clone()));
        }
    }

    /// The style of text on standard output.
    pub fn style(&self) -> text::Style<'_> {
        text::Style {
            shard: self.label.as_deref(),
            ..self.globals.style()
        }
    }
}

impl Session<'_> {
    /// The storage of the state. Everything goes through this one: a process that holds the lock
    /// may have to write through the connection that holds it. The first call warns if it isn't
    /// the one that the configuration names.
    ///
    /// Fails if the state's URL is invalid.
    pub fn backend(&self) -> Result<&dyn Backend, Failure> {
        let storage = self.storage()?;
        self.overridden.call_once(|| {
            if let Some(finding) = self.overrides(storage) {
                self.tell(&finding.into());
            }
        });
        Ok(storage)
    }

    /// The storage of the state, for a command that may not use it.
    ///
    /// Fails if the state's URL is invalid.
    pub fn storage(&self) -> Result<&dyn Backend, Failure> {
        if let Some(storage) = self.storage.get() {
            return Ok(&**storage);
        }
        let (identity, keys) = (self.identity(), self.keys());
        let made = if let Some(url) = &self.globals.state {
            backend::of_url(url, Path::new(""), &identity, keys)?
        // The embedded cloud is of this machine, and so is its state.
        } else if let Some(state) = self.config().state.as_ref().filter(|_| !self.globals.sim) {
            self.configured_storage(state)?
        } else {
            let folder = self.home().join(identity.cluster);
            backend::of_file(folder.join(format!("{}.db", identity.shard)), keys)
        };
        Ok(&**self.storage.get_or_init(|| made))
    }

    /// The storage that the configuration names.
    ///
    /// Fails if its URL is invalid.
    fn configured_storage(&self, state: &Spanned<Arc<str>>) -> Result<Box<dyn Backend>, Failure> {
        let folder = &self.loaded.directory;
        let made = backend::of_url(&state.value, folder, &self.identity(), self.keys());
        made.map_err(|failure| {
            let found = failure.findings.into_iter();
            let mut findings = Diagnostics::default();
            findings.extend(found.map(|finding| finding.at(state.span, "this state")));
            findings.into()
        })
    }

    /// The warning that `storage` isn't the one that the configuration names.
    fn overrides(&self, storage: &dyn Backend) -> Option<Diagnostic> {
        let given = self.globals.state.as_ref()?;
        let configured = self.config().state.as_ref()?;
        let other = match self.configured_storage(configured) {
            Ok(other) if is_same(storage, &*other) => return None,
            Ok(other) => other.place().display().to_string(),
            Err(_) => shown_url(&configured.value),
        };
        let is_variable = std::env::var("NSTANCE_STATE").is_ok_and(|value| value == *given);
        let by = if is_variable {
            "NSTANCE_STATE"
        } else {
            "--state"
        };
        let summary = format!(
            "the state is {}, and the configuration names {other}",
            storage.place().display()
        );
        Some(Diagnostic::warning(summary).at(configured.span, format!("overridden by {by}")))
    }

    pub(super) fn keys(&self) -> Arc<dyn Keys> {
        Arc::clone(&self.keys) as Arc<dyn Keys>
    }

    /// Opens the state for reading, if it exists.
    ///
    /// Fails if it can't be opened.
    pub fn open_to_read(&self) -> Result<Option<Box<dyn Store>>, Failure> {
        let store = existing(self.backend()?.open_to_read(Some(&self.identity())))?;
        if let Some(store) = &store {
            self.warn_if_moved(&**store)?;
        }
        Ok(store)
    }

    /// Reports once that the state is elsewhere now.
    ///
    /// Fails if the state can't be read.
    fn warn_if_moved(&self, store: &dyn Store) -> Result<(), Failure> {
        let meta = store.meta()?;
        if let Some(to) = &meta.moved_to {
            self.moved.call_once(|| {
                let place = store.place();
                let warning = Diagnostic::warning(format!(
                    "the state was moved to {to}; this is what it was before: {}",
                    place.display()
                ));
                self.tell(
                    &warning
                        .hint(format!("Use the state there: --state {to}"))
                        .into(),
                );
            });
        }
        Ok(())
    }

    /// Opens the state for reading.
    ///
    /// Fails if it doesn't exist or can't be opened.
    pub fn need_state(&self) -> Result<Box<dyn Store>, Failure> {
        let store = self.backend()?.open_to_read(Some(&self.identity()))?;
        self.warn_if_moved(&*store)?;
        Ok(store)
    }

    /// Opens the state for writing, if it exists, and encrypts it if it wasn't. The caller must
    /// hold the lock.
    ///
    /// Fails if it can't be opened or encrypted.
    pub fn open_to_write(&self) -> Result<Option<Box<dyn Store>>, Failure> {
        let Some(mut store) = self.open_as_it_is()? else {
            return Ok(None);
        };
        if store.meta()?.key.is_none() {
            let key = self.provide_key()?;
            let rekey = Write::Rekey(key.clone());
            store.commit(self.clock.now().into(), vec![rekey])?;
            self.tell(&self.sealed(&key)?.into());
        } else {
            store.unlock()?;
        }
        // If a reader or a full disk prevents this now, a later run does it.
        store.scrub()?;
        Ok(Some(store))
    }

    /// Opens the state for writing, if it exists, encrypted or not.
    ///
    /// Fails if it can't be opened.
    pub fn open_as_it_is(&self) -> Result<Option<Box<dyn Store>>, Failure> {
        existing(self.backend()?.open_to_write(Some(&self.identity())))
    }

    /// Opens a backup for reading; its identity isn't checked.
    ///
    /// Fails if it can't be opened.
    pub fn open_backup(&self, path: &Path) -> Result<Box<dyn Store>, Failure> {
        let backup = backend::of_file(path.to_owned(), self.keys());
        Ok(backup.open_to_read(None)?)
    }

    /// The holder of the lock, if it can be read.
    pub fn holder(&self) -> Option<LockInfo> {
        self.backend().ok()?.holder().ok()?
    }

    /// The key that a state's document is encrypted with: the state's own.
    ///
    /// Fails if the state isn't encrypted and there is no key yet, or if its key is missing.
    pub fn document_key(&self, store: &dyn Store) -> Result<(Key, Option<Derivation>), Failure> {
        let key = self.keys.of_plan(store.meta()?.key.as_ref())?;
        let key = key.ok_or_else(|| {
            Diagnostic::error("there is no key to seal the document with")
                .detail("the state lies in clear; a document of it never does")
                .hint("The next apply makes a key and seals the state; or set NSTANCE_STATE_KEY")
        })?;
        Ok((key.key, key.derivation))
    }

    /// The key that a document is encrypted with.
    ///
    /// Fails if the key is missing.
    pub fn key_of_document(&self, document: &Document) -> Result<Key, Failure> {
        let need = document
            .key()
            .map_err(|error| Failure::say(error.to_string()))?;
        self.keys.find(&need).map_err(|error| {
            let mut finding = Diagnostic::error(format!(
                "the document is sealed with the key {}, and {}",
                need.id, error.why
            ));
            finding.hints.extend(error.hint);
            finding.into()
        })
    }

    /// Creates an encrypted state. Its key is given, or stored on disk first.
    ///
    /// Fails if the key or the state can't be written.
    pub fn create_state(
        &self,
        identity: &Identity,
        lineage: &str,
    ) -> Result<Box<dyn Store>, Failure> {
        let key = self.provide_key()?;
        let now = self.clock.now().into();
        let backend = self.backend()?;
        Ok(backend.create(identity, lineage, now, Some(&key))?)
    }

    /// The key for a state that has none.
    fn provide_key(&self) -> Result<NewKey, Failure> {
        if !self.backend()?.makes_keys() {
            return self.keys.given();
        }
        self.keys.provide(|file| {
            if !self.globals.quiet && !self.globals.json {
                console::error(&format!(
                    "Made a key for the state: {file}. Keep a copy: without it the state can't be \
                     opened\n"
                ));
            }
        })
    }

    /// The note that an unencrypted state is now encrypted.
    fn sealed(&self, key: &NewKey) -> Result<Diagnostic, Failure> {
        let finding = Diagnostic::warning(format!(
            "the state is sealed from now on, with the key {}",
            key.key.id()
        ));
        let clear = match self.backend()?.file() {
            Some(file) => backups::before_migrations(file)?,
            None => Vec::new(),
        };
        let clear: Vec<String> = clear.iter().map(|path| console::shown(path)).collect();
        Ok(if clear.is_empty() {
            finding.hint("Copies that were made before are in clear: protect or remove them")
        } else {
            finding
                .detail(format!("in clear as it was: {}", clear.join(", ")))
                .hint("Remove what is in clear once you need no way back to an older version")
        })
    }

    /// Takes the lock; waits for `--lock-timeout`.
    ///
    /// Fails if another process still holds it.
    pub fn lock(&self, operation: &str) -> Result<Box<dyn Held>, Failure> {
        let backend = self.backend()?;
        // Check access first, so that nothing is created beside an unusable state.
        existing(self.backend()?.open_to_read(Some(&self.identity())))?;
        if backend
            .file()
            .is_some_and(|file| file.starts_with(self.home()))
        {
            // Taking the lock reports why this fails.
            let _ = home::create(&self.home());
        }
        let now = self.clock.now();
        let who = who();
        let info = LockInfo {
            id: format!("{:x}-{}", now.0, std::process::id()),
            holder: who.user,
            host: who.host,
            pid: std::process::id(),
            operation: operation.to_owned(),
            since: now.into(),
        };
        let timeout = self.globals.lock_timeout.0;
        let mut tell = |holder: &LockInfo| {
            tracing::info!(target: "nstance::lock", pid = holder.pid, "waiting for the lock");
            if !self.globals.quiet {
                let age = held(holder, now).map_or_else(String::new, |age| format!(", {age}"));
                let waited = crate::report::age(timeout);
                let label = self.label.as_ref();
                let of = label.map_or_else(String::new, |label| format!(" of {label}"));
                console::error(&format!(
                    "Waiting up to {waited} for the state{of}, locked by {holder}{age}\n"
                ));
            }
        };
        let locked = stage::timed("lock state", || backend.lock(info, timeout, &mut tell));
        match &locked {
            Ok(_) => tracing::info!(target: "nstance::lock", operation, "lock taken"),
            Err(error) => {
                let error = error.to_string();
                tracing::warn!(target: "nstance::lock", operation, error, "lock not taken");
            }
        }
        locked.map_err(|error| {
            let StateError::Locked { holder } = &error else {
                return error.into();
            };
            let mut diagnostic = Diagnostic::error(error.to_string());
            if let Some(age) = held(holder, self.clock.now()) {
                diagnostic = diagnostic.detail(age);
            }
            diagnostic = diagnostic.hint(if timeout.is_zero() {
                "Wait for it, with --lock-timeout 5m if it may take a while; the lock ends with its process".to_owned()
            } else {
                format!(
                    "It was waited for {}; the lock ends with its process",
                    crate::report::age(timeout)
                )
            });
            Failure::new(diagnostic.hint("Commands that only read need no lock, `plan` and `drift` among them"))
        })
    }
}

/// Whether two storages are the same place.
fn is_same(one: &dyn Backend, other: &dyn Backend) -> bool {
    let place = |storage: &dyn Backend| {
        let file = storage
            .file()
            .and_then(|file| std::path::absolute(file).ok());
        file.unwrap_or_else(|| storage.place())
    };
    place(one) == place(other)
}

/// An opened state; `None` if it doesn't exist.
fn existing(opened: Result<Box<dyn Store>, StateError>) -> Result<Option<Box<dyn Store>>, Failure> {
    match opened {
        Ok(store) => Ok(Some(store)),
        Err(StateError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How long a lock has been held; `None` if its holder isn't recorded.
fn held(holder: &LockInfo, now: Timestamp) -> Option<String> {
    let since = Timestamp::from(holder.since);
    holder
        .is_signed()
        .then(|| format!("held for {}", crate::report::age(now.since(since))))
}

fn no_client(provider: ProviderKind) -> Diagnostic {
    let name = provider.as_str();
    let finding = Diagnostic::error(format!("this build has no client for `{name}`"));
    let feature = match provider {
        ProviderKind::Aws => "aws",
        ProviderKind::Gcp => "gcp",
        _ => return finding.hint("Try it on the embedded cloud: --sim"),
    };
    finding
        .detail("its client is a feature of the build, since its SDK takes minutes to build")
        .hint(format!(
            "Build it with its client: cargo install --path . --features {feature}"
        ))
        .hint("Try it on the embedded cloud: --sim")
        .hint("Plan without asking the cloud: nstance plan --refresh=false")
}

/// The clock, fixed by `--now`.
pub fn clock(globals: &Globals) -> Arc<dyn Clock> {
    match globals.now {
        Some(time) => Arc::new(FixedClock::new(time)),
        None => Arc::new(SystemClock),
    }
}

/// The user and host of this run.
pub struct Who {
    /// The user.
    pub user: String,
    /// The machine.
    pub host: String,
}

/// The user and host, as far as the environment and the system provide them.
pub fn who() -> Who {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"))
        .map(|name| name.trim().to_owned());
    let uid = || {
        Some(format!(
            "uid-{}",
            std::fs::metadata("/proc/self").ok()?.uid()
        ))
    };
    Who {
        user: variable("USER")
            .or_else(|| variable("LOGNAME"))
            .or_else(uid)
            .unwrap_or_else(|| "unknown".into()),
        host: variable("HOSTNAME")
            .or_else(|| host.ok().filter(|name| !name.is_empty()))
            .unwrap_or_else(|| "unknown".into()),
    }
}

//! The stages in a row: what several commands need of them.
//!
//! In: a loaded configuration, a state if there is one, a cloud if it may be asked. Out: compiled
//! groups, or a plan and what the caches should keep. May not: print, or write anything.

mod capacity;
mod compile;
mod validate;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use nstance_state::{
    FetchedRow, Identity, ImageRow, Snapshot, SpecDigest, StateError, Store, Write,
};

use crate::clock::{Clock, Timestamp};
use crate::config::model::{Config, OnNewer};
use crate::config::source::SourceMap;
use crate::credentials::key_of_url;
use crate::diagnostic::{Diagnostic, Diagnostics, gather};
use crate::digest::sha256_hex;
use crate::plan::build;
use crate::plan::change::Plan;
use crate::plan::inputs::{Inputs, Options};
use crate::plan::observation_cache::{ObservationCache, Recorded};
use crate::provider::retry::RetryingReads;
use crate::provider::rules::Rules;
use crate::provider::{Cloud, CloudError, Owner};
use crate::refresh::{Observed, refresh};
use crate::render::group::{Bodies, CompiledGroup};
use crate::render::renderer::GroupRenderer;
use crate::render::sampling;
use crate::resolve::fetch;
use crate::resolve::images::{self, Policy, ResolvedImages};
use crate::resolve::subnets::Placer;
use crate::spec::SpecBody;

pub use compile::{Compiled, compile_all, compile_each};
use validate::try_groups;
pub use validate::{untold, validate};

/// What a plan is to be made of.
pub struct Request<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Its text.
    pub sources: &'a SourceMap,
    /// Where its relative paths start.
    pub directory: &'a Path,
    /// The state, if it exists.
    pub store: Option<&'a mut dyn Store>,
    /// The cloud, if it may be asked.
    pub cloud: Option<&'a dyn Cloud>,
    /// Whether userdata may be fetched from URLs.
    pub network: bool,
    /// Whether it is asked what there is; if not, the record is taken for true.
    pub observe: bool,
    /// The cloud's name.
    pub provider_name: &'a str,
    /// Whose state.
    pub identity: &'a Identity,
    /// The provider's rules.
    pub rules: Rules,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Look images up anew.
    pub refresh_images: bool,
    /// What was asked.
    pub options: &'a Options,
    /// Told how many instances were listed so far.
    pub progress: &'a mut dyn FnMut(usize),
}

/// Why no plan could be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The configuration is wrong.
    #[error("the configuration has errors")]
    Findings(Diagnostics),
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The cloud failed.
    #[error("{doing}: {}", error.told())]
    Cloud {
        /// What was being done.
        doing: &'static str,
        /// What the cloud said.
        error: CloudError,
    },
}

/// A plan and what came with it.
pub struct PlanOutput {
    /// The plan.
    pub plan: Plan,
    /// Findings; an error among them means that something was left out.
    pub findings: Diagnostics,
    /// What the caches should keep.
    pub caches: Caches,
    /// The record that it was made of; `None`: there is no state yet.
    pub snapshot: Option<Snapshot>,
    /// What the cloud said, where it was asked.
    pub observed: Option<Observed>,
    /// What userdata's URLs said.
    pub bodies: Bodies,
}

/// Answers worth keeping.
#[derive(Debug, Default)]
pub struct Caches {
    /// Images.
    pub images: Vec<ImageRow>,
    /// Fetched userdata.
    pub fetched: Vec<FetchedRow>,
    /// The cache of compared observations, where it changed.
    pub observations: Option<ObservationCache>,
}

impl Caches {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.fetched.is_empty() && self.observations.is_none()
    }

    /// Keeps the answers. On disk when this returns; a crash before leaves the old ones.
    pub fn save(self, store: &mut dyn Store, now: Timestamp) -> Result<(), StateError> {
        if self.is_empty() {
            return Ok(());
        }
        let images = self.images.into_iter().map(Write::PutImage);
        let fetched = self.fetched.into_iter().map(Write::PutFetched);
        let observations = self
            .observations
            .map(|cache| Write::PutObservationCache(cache.to_bytes()));
        let writes = images.chain(fetched).chain(observations);
        store.commit(now.into(), writes.collect())?;
        Ok(())
    }
}

/// Makes a plan, asking the state and the cloud what it takes.
pub fn plan(request: Request<'_>) -> Result<PlanOutput, PlanError> {
    let Request {
        config,
        sources,
        clock,
        ..
    } = request;
    let mut findings = Diagnostics::default();
    let now = clock.now();
    let reads = request.cloud.map(|cloud| RetryingReads::new(cloud, clock));
    let cloud = reads.as_ref().map(|reads| reads as &dyn Cloud);

    let store = request.store;
    let (snapshot, image_rows) = match &store {
        Some(store) => (Some(store.snapshot()?), store.images()?),
        None => (None, Vec::new()),
    };
    let store = store.map(Mutex::new);
    let kept = |url: &str| {
        let store = store.as_ref()?.lock().ok()?;
        store
            .fetched(&key_of_url(url))
            .ok()
            .flatten()
            .map(|row| row.body)
    };
    let bodies = fetch::bodies(
        config,
        request.directory,
        request.network,
        kept,
        &mut findings,
    );
    let mut found = Diagnostics::default();
    let compiled = compile_all(config, sources, &bodies, &mut found);
    if findings.has_errors() || found.has_errors() {
        // What else is wrong is told in the same run.
        let strict = request.options.strict;
        try_groups(config, sources, &bodies, strict, &mut findings);
        return Err(PlanError::Findings(findings));
    }
    findings.extend(found);

    let images = resolve_images(
        config,
        &compiled,
        &image_rows,
        cloud,
        request.refresh_images,
        now,
    );
    findings.extend(images.warnings.iter().cloned());
    let ids = images.ids();
    let renderers = renderers(config, &compiled, &ids, request.rules);

    let owner = Owner {
        cluster: request.identity.cluster.clone(),
        shard: request.identity.shard.clone(),
    };
    let specs = SpecCache {
        store: store.as_ref(),
        read: Mutex::new(HashMap::new()),
        failed: Mutex::default(),
    };
    let read = |digest: SpecDigest| specs.get(digest);
    let mut observations = None;
    let observed = match cloud.filter(|_| request.observe) {
        Some(cloud) => {
            let recorded = snapshot.as_ref().map(|snapshot| Recorded {
                identity: request.identity,
                records: &snapshot.records,
                specs: &read,
                rules: request.rules,
            });
            let stored = store.as_ref().and_then(|store| {
                let store = store.lock().ok()?;
                store.observation_cache().ok().flatten()
            });
            let cache = stored.map_or_else(ObservationCache::default, |bytes| {
                ObservationCache::from_bytes(&bytes)
            });
            if let Some(recorded) = recorded.as_ref().filter(|_| cloud.asks_for_userdata()) {
                cloud.recall_userdata(cache.userdata(recorded));
            }
            let snapshot = snapshot.as_ref();
            let mut observed = observe(cloud, &owner, snapshot, now, request.progress)?;
            if let Some(recorded) = &recorded {
                let launches = cloud.userdata_launches();
                let next = cache.mark_in_sync(&mut observed, recorded, &launches);
                observations = (next != cache).then_some(next);
            }
            Some(observed)
        }
        None => None,
    };
    let groups = compiled.groups.iter().map(|group| &group.merged);
    let mut placer = Placer::new(config, request.rules, cloud, groups);
    let inputs = Inputs {
        config,
        sources,
        groups: &renderers,
        dependencies: &compiled.graph.dependencies,
        images: &images,
        snapshot: snapshot.as_ref(),
        observed: observed.as_ref(),
        specs: &read,
        identity: request.identity,
        rules: request.rules,
        provider_name: request.provider_name,
        now,
        options: request.options,
    };
    let (mut plan, planned) = build::build(&inputs, &mut placer);
    if let Some(error) = placer.into_failure() {
        return Err(PlanError::Cloud {
            doing: "the subnets can't be looked up",
            error,
        });
    }
    if let Some(error) = specs
        .failed
        .lock()
        .ok()
        .and_then(|mut failed| failed.take())
    {
        return Err(error.into());
    }
    // Specs are read as they are needed; another apply may have let go of one since the snapshot.
    if plan.errored()
        && let Some(store) = &store
        && let Ok(store) = store.lock()
        && store.meta()?.serial != plan.serial
    {
        return Err(PlanError::State(StateError::Changed {
            path: store.place(),
        }));
    }
    let mut told = planned;
    if told.has_errors() {
        // A group that can't be planned isn't looked into any further: all is told in one run.
        let strict = request.options.strict;
        let mut tried = Diagnostics::default();
        try_groups(config, sources, &bodies, strict, &mut tried);
        // What a trial says of ids that nobody has was said of the true ones.
        let said = |finding: &Diagnostic| {
            let place = finding.label.as_ref().map(|label| label.span);
            (finding.summary.clone(), place)
        };
        let known: HashSet<_> = told.iter().map(said).collect();
        let is_new = |finding: &Diagnostic| !known.contains(&said(finding));
        told.extend(tried.into_iter().filter(is_new));
    }
    findings.extend(gather(told));
    if let Some(cloud) = cloud {
        findings.extend(capacity::check(&mut plan, &renderers, cloud));
    }
    findings.extend(snapshot.as_ref().and_then(interrupted));
    let fetched = bodies
        .iter()
        .filter(|(url, _)| !fetch::is_file(url))
        .map(|(url, body)| FetchedRow {
            url: key_of_url(url),
            digest: sha256_hex(body),
            body: body.to_vec(),
            fetched_at: now.into(),
        })
        .collect();
    Ok(PlanOutput {
        plan,
        findings,
        caches: Caches {
            images: images.answers,
            fetched,
            observations,
        },
        snapshot,
        observed,
        bodies,
    })
}

/// Resolves the images that anything reads.
pub fn resolve_images(
    config: &Config,
    compiled: &Compiled<'_>,
    cache: &[ImageRow],
    cloud: Option<&dyn Cloud>,
    refresh: bool,
    now: Timestamp,
) -> ResolvedImages {
    let read: BTreeSet<&str> = compiled
        .groups
        .iter()
        .flat_map(|group| &group.images)
        .map(|name| &**name)
        .collect();
    images::resolve(
        config,
        |name| read.contains(name),
        cache,
        Policy {
            cloud,
            refresh,
            now,
        },
    )
}

/// Renderers for all groups, in order.
pub fn renderers<'a>(
    config: &Config,
    compiled: &'a Compiled<'a>,
    ids: &BTreeMap<Arc<str>, Option<Arc<str>>>,
    rules: Rules,
) -> Vec<GroupRenderer<'a>> {
    let looked = sampling::of_each_text(config);
    compiled
        .groups
        .iter()
        .map(|group| {
            let is_looked_into = looked.contains(&group.merged.name);
            renderer(config, group, ids, rules).looking_into(is_looked_into)
        })
        .collect()
}

/// A renderer for one group.
pub fn renderer<'a>(
    config: &Config,
    group: &'a CompiledGroup<'a>,
    ids: &BTreeMap<Arc<str>, Option<Arc<str>>>,
    rules: Rules,
) -> GroupRenderer<'a> {
    let pinned = group.images.iter().any(|name| {
        config
            .images
            .get(name)
            .is_some_and(|image| image.value.on_newer == OnNewer::NewOnly)
    });
    GroupRenderer::new(group, config, ids, pinned, rules)
}

fn observe(
    cloud: &dyn Cloud,
    owner: &Owner,
    snapshot: Option<&Snapshot>,
    now: Timestamp,
    progress: &mut dyn FnMut(usize),
) -> Result<Observed, PlanError> {
    refresh(cloud, owner, snapshot, now, progress).map_err(|error| PlanError::Cloud {
        doing: "the instances can't be listed",
        error,
    })
}

fn interrupted(snapshot: &Snapshot) -> Option<Diagnostic> {
    let count = snapshot.intents.len();
    (count > 0).then(|| {
        let first = &snapshot.intents[0];
        Diagnostic::warning(format!(
            "an earlier apply ended with {count} {} whose outcome isn't recorded",
            if count == 1 { "change" } else { "changes" }
        ))
        .detail(format!(
            "the first is to {} {}",
            first.operation.as_str(),
            first.address
        ))
        .hint("The next apply settles them before anything else")
    })
}

/// Recorded specs, each read once.
struct SpecCache<'s, 'm> {
    store: Option<&'m Mutex<&'s mut dyn Store>>,
    read: Mutex<HashMap<SpecDigest, Option<Arc<SpecBody>>>>,
    /// Why one couldn't be read: without it the plan would be another.
    failed: Mutex<Option<StateError>>,
}

impl SpecCache<'_, '_> {
    fn get(&self, digest: SpecDigest) -> Option<Arc<SpecBody>> {
        let mut read = self.read.lock().ok()?;
        if let Some(known) = read.get(&digest) {
            return known.clone();
        }
        let body = self.store.and_then(|store| {
            let store = store.lock().ok()?;
            let bytes = match store.specs(&[digest]) {
                Ok(mut specs) => specs.remove(&digest)?,
                Err(error) => {
                    *self.failed.lock().ok()? = Some(error);
                    return None;
                }
            };
            serde_json::from_slice(&bytes).ok().map(Arc::new)
        });
        read.insert(digest, body.clone());
        body
    }
}

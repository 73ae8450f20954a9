//! Runs the planning stages in order, for every command that needs them.
//!
//! In: a loaded configuration, the state if it exists, the cloud if calls are allowed. Out:
//! compiled groups, or a plan with new cache entries. Must not: print, or write anything.

mod capacity;
mod compile;
mod last_good;
pub mod late;
mod validate;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use nstance_state::{
    FetchedRow, Identity, ImageRow, LockInfo, Snapshot, SpecDigest, StateError, Store, Write,
};

use crate::clock::{Clock, Timestamp};
use crate::config::model::{Config, OnFailure, OnNewer};
use crate::config::node::Node;
use crate::config::source::SourceMap;
use crate::credentials::key_of_url;
use crate::diagnostic::{Diagnostic, Diagnostics, gather};
use crate::digest::sha256_hex;
use crate::plan::build;
use crate::plan::change::{Change, Mode, Plan};

use crate::plan::inputs::{Inputs, Options, lineage};
use crate::plan::manifest::{KEPT_AS, PlannedManifest};
use crate::plan::observation_cache::{ObservationCache, Recorded};
use crate::plan::rollout::rolls_back;
use crate::provider::retry::RetryingReads;
use crate::provider::rules::Rules;
use crate::provider::{Cloud, CloudError, Owner};
use crate::refresh::{Observed, refresh};
use crate::render::group::CompiledGroup;
use crate::render::links::LinkSet;
use crate::render::renderer::GroupRenderer;
use crate::render::sampling;
use crate::render::userdata::Bodies;
use crate::resolve::fetch;
use crate::resolve::images::{self, Policy, ResolvedImages};
use crate::resolve::subnets::Placer;
use crate::spec::SpecBody;
use crate::stage;

pub use compile::{Compiled, Prepared, compile_all, prepare};
pub use validate::validate;

/// The name under which the state keeps outputs of ERB, beside the bodies of URLs: both may have
/// secrets, and are sealed.
const ERB_OUTPUTS: &str = "erb:outputs";

/// The input of a plan.
pub struct Request<'a, 'c> {
    /// The configuration.
    pub config: &'c Config,
    /// The configuration's source texts.
    pub sources: &'c SourceMap,
    /// The evaluated document, if what is last good is to be kept.
    pub document: Option<&'c Node>,
    /// The manifest, if it is of a BOSH deployment.
    pub manifest: Option<&'c str>,
    /// Its groups, compiled.
    pub prepared: Prepared<'c>,
    /// The state, if it exists.
    pub store: Option<&'a mut dyn Store>,
    /// The cloud; `None` if no cloud calls are allowed.
    pub cloud: Option<&'a dyn Cloud>,
    /// Whether to list the cloud's instances; if not, the record is assumed to be correct.
    pub observe: bool,
    /// The holder of the state's lock, if it is another process.
    pub running: Option<&'a LockInfo>,
    /// The cloud's name.
    pub provider_name: &'a str,
    /// The cluster, shard and provider that the state belongs to.
    pub identity: &'a Identity,
    /// The provider's rules.
    pub rules: Rules,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Resolve images again, even if the cached result is fresh.
    pub refresh_images: bool,
    /// The options of the command line.
    pub options: &'a Options,
    /// Called with the number of instances listed so far.
    pub progress: &'a mut dyn FnMut(usize),
}

/// Why planning failed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The configuration has errors.
    #[error("the configuration has errors")]
    Findings(Diagnostics),
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The cloud failed.
    #[error("{doing}: {}", error.summary())]
    Cloud {
        /// The operation that failed.
        doing: &'static str,
        /// The cloud's error.
        error: CloudError,
    },
}

/// A plan, its findings and new cache entries.
pub struct PlanOutput<'a> {
    /// The plan.
    pub plan: Plan,
    /// Findings; after an error the plan is incomplete.
    pub findings: Diagnostics,
    /// New cache entries.
    pub caches: Caches,
    /// The snapshot of the state that the plan was computed from; `None` if there is no state yet.
    pub snapshot: Option<Snapshot>,
    /// The observation, if the cloud was queried.
    pub observed: Option<Observed>,
    /// The compiled groups.
    pub prepared: Prepared<'a>,
    /// The links of each group that consumes some.
    pub links: BTreeMap<String, LinkSet>,
}

/// New cache entries.
#[derive(Debug, Default)]
pub struct Caches {
    /// Images.
    pub images: Vec<ImageRow>,
    /// Bodies of URLs.
    pub fetched: Vec<FetchedRow>,
    /// The observation cache, if it changed.
    pub observations: Option<ObservationCache>,
}

impl Caches {
    /// Whether there are no new entries.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.fetched.is_empty() && self.observations.is_none()
    }

    /// Saves the entries durably. After a crash before it returns, the old entries are still there.
    ///
    /// Fails if the state can't be written.
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

/// Plans from compiled groups, the record and the observation.
///
/// Fails if the state or the cloud fails. Errors of resolving and rendering are findings, and the
/// plan omits the instances they affect.
pub fn plan<'c>(mut request: Request<'_, 'c>) -> Result<PlanOutput<'c>, PlanError> {
    let now = request.clock.now();
    let reads = request
        .cloud
        .map(|cloud| RetryingReads::new(cloud, request.clock));
    let cloud = reads.as_ref().map(|reads| reads as &dyn Cloud);
    let store = request.store.take();
    let record = stage::timed("read state", || ReadRecord::of(store))?;
    let mut findings = std::mem::take(&mut request.prepared.findings);
    let erb = Arc::clone(&request.prepared.compiled.erb);
    record.recall_erb(&request.prepared.compiled)?;

    let images = stage::timed("resolve images", || {
        resolve_images(
            request.config,
            &request.prepared.compiled,
            &record.images,
            cloud,
            request.refresh_images,
            now,
        )
    });
    findings.extend(images.warnings.iter().cloned());
    let (observed, observations) = match cloud.filter(|_| request.observe) {
        Some(cloud) => stage::timed("list instances", || {
            record.compare_with(cloud, &mut request, now)
        })?,
        None => (None, None),
    };
    let ids = images.ids();
    let renderers = renderers(
        request.config,
        &request.prepared.compiled,
        &ids,
        request.rules,
        &lineage(record.snapshot.as_ref(), request.identity, now),
    );
    let (mut plan, links, found) = stage::timed("render and compare", || {
        build_plan(
            &request,
            &record,
            observed.as_ref(),
            &images,
            &renderers,
            cloud,
            now,
        )
    })?;
    findings.extend(gather(found));
    findings.extend(record.prepare_rollbacks(&mut plan, &links, &request)?);
    if let Some(cloud) = cloud {
        findings.extend(stage::timed("check capacity", || {
            capacity::check(&mut plan, &renderers, cloud)
        }));
    }
    findings.extend(plan.disks_that_stay());
    if let Some(snapshot) = &record.snapshot {
        match request.running {
            Some(holder) => {
                plan.leave_out_open(&snapshot.intents);
                findings.push(running(holder, snapshot));
            }
            None => findings.extend(interrupted(snapshot)),
        }
    }
    let found = late::add(
        &mut plan,
        &request.prepared.compiled.groups,
        request.document,
        &request.prepared.bodies,
        &links,
    );
    findings.extend(found);
    drop(renderers);
    findings.extend(erb.finding(request.sources));
    let options = request.options;
    let is_part = !options.targets.is_empty() || !options.excludes.is_empty();
    if let Some(manifest) = request.manifest.filter(|_| plan.mode == Mode::Normal) {
        record.add_manifest(&mut plan, manifest, is_part)?;
    }
    let mut fetched = fetched_rows(&request.prepared.bodies, now);
    fetched.extend(
        erb.save(is_part || plan.mode != Mode::Normal)
            .map(|body| FetchedRow {
                url: ERB_OUTPUTS.to_owned(),
                digest: String::new(),
                body,
                fetched_at: now.into(),
            }),
    );
    let caches = Caches {
        images: images.answers,
        fetched,
        observations,
    };
    Ok(PlanOutput {
        plan,
        findings,
        caches,
        snapshot: record.snapshot,
        observed,
        prepared: request.prepared,
        links,
    })
}

/// A snapshot of the state; it reads specs from the store on first use.
struct ReadRecord<'s> {
    snapshot: Option<Snapshot>,
    images: Vec<ImageRow>,
    store: Option<Mutex<&'s mut dyn Store>>,
    /// Specs read so far; each is read once.
    specs: Mutex<HashMap<SpecDigest, Option<Arc<SpecBody>>>>,
    /// The first error of reading a spec; a plan without that spec would be wrong.
    failed: Mutex<Option<StateError>>,
}

impl<'s> ReadRecord<'s> {
    fn of(store: Option<&'s mut dyn Store>) -> Result<Self, StateError> {
        let (snapshot, images) = match &store {
            Some(store) => (Some(store.snapshot()?), store.images()?),
            None => (None, Vec::new()),
        };
        Ok(Self {
            snapshot,
            images,
            store: store.map(Mutex::new),
            specs: Mutex::default(),
            failed: Mutex::default(),
        })
    }

    /// Gives the groups the outputs of ERB that the last plan kept, so that a plan without changes
    /// doesn't start Ruby.
    ///
    /// Fails if the state can't be read.
    fn recall_erb(&self, compiled: &Compiled<'_>) -> Result<(), StateError> {
        if compiled.groups.iter().any(CompiledGroup::has_erb)
            && let Some(store) = &self.store
            && let Ok(store) = store.lock()
            && let Some(row) = store.fetched(ERB_OUTPUTS)?
        {
            compiled.erb.load(&row.body);
        }
        Ok(())
    }

    /// Gives a plan the manifest, and the instances that it creates or updates its version.
    ///
    /// Fails if the state can't be read.
    fn add_manifest(&self, plan: &mut Plan, text: &str, is_part: bool) -> Result<(), StateError> {
        let kept = match &self.store {
            Some(store) => store.lock().map(|store| store.fetched(KEPT_AS)),
            None => Ok(Ok(None)),
        };
        let kept = kept.unwrap_or(Ok(None))?;
        let kept = kept.as_ref().map(|row| &*row.body);
        let manifest = PlannedManifest::new(text, kept, is_part);
        let changes = plan.changes.iter_mut().chain(&mut plan.held_back);
        for after in changes.filter_map(|change| change.after.as_mut()) {
            after.manifest_version = Some(manifest.version);
        }
        plan.manifest = Some(manifest);
        Ok(())
    }

    fn spec(&self, digest: SpecDigest) -> Option<Arc<SpecBody>> {
        let mut read = self.specs.lock().ok()?;
        if let Some(known) = read.get(&digest) {
            return known.clone();
        }
        let body = self.store.as_ref().and_then(|store| {
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

    /// Lists the cloud's instances and marks those that equal their records. Returns the
    /// observation cache if it changed.
    ///
    /// Fails if the cloud fails.
    fn compare_with(
        &self,
        cloud: &dyn Cloud,
        request: &mut Request<'_, '_>,
        now: Timestamp,
    ) -> Result<(Option<Observed>, Option<ObservationCache>), PlanError> {
        let owner = Owner {
            cluster: request.identity.cluster.clone(),
            shard: request.identity.shard.clone(),
        };
        let specs = |digest| self.spec(digest);
        let recorded = self.snapshot.as_ref().map(|snapshot| Recorded {
            identity: request.identity,
            records: &snapshot.records,
            specs: &specs,
            rules: request.rules,
        });
        let stored = self.store.as_ref().and_then(|store| {
            let store = store.lock().ok()?;
            store.observation_cache().ok().flatten()
        });
        let cache = stored.map_or_else(ObservationCache::default, |bytes| {
            ObservationCache::from_bytes(&bytes)
        });
        if let Some(recorded) = recorded.as_ref().filter(|_| cloud.asks_for_userdata()) {
            cloud.recall_userdata(cache.userdata(recorded));
        }
        let snapshot = self.snapshot.as_ref();
        let listed = refresh(cloud, &owner, snapshot, now, &mut *request.progress);
        let mut observed = listed.map_err(|error| PlanError::Cloud {
            doing: "the instances can't be listed",
            error,
        })?;
        let mut changed = None;
        if let Some(recorded) = &recorded {
            let launches = cloud.userdata_launches();
            let next = cache.mark_in_sync(&mut observed, recorded, &launches);
            changed = (next != cache).then_some(next);
        }
        Ok((Some(observed), changed))
    }

    /// Gives changes what they can be rolled back to, and groups what will be last good. Returns a
    /// warning for each group without a last good configuration.
    ///
    /// Fails if the state can't be read.
    fn prepare_rollbacks(
        &self,
        plan: &mut Plan,
        links: &BTreeMap<String, LinkSet>,
        request: &Request<'_, '_>,
    ) -> Result<Diagnostics, StateError> {
        let mut findings = Diagnostics::default();
        if plan.mode != Mode::Normal {
            return Ok(findings);
        }
        let ids: BTreeMap<String, String> = plan
            .images
            .iter()
            .map(|(name, image)| (name.clone(), image.id.clone()))
            .collect();
        for group in &request.prepared.compiled.groups {
            let name = &group.merged.name;
            if group.merged.update.on_failure != Some(OnFailure::Rollback) {
                continue;
            }
            let stored = match &self.store {
                Some(store) => match store.lock() {
                    Ok(store) => store.last_good(&[name.as_str()])?.remove(name.as_str()),
                    Err(_) => None,
                },
                None => None,
            };
            let own = |change: &Change| change.address.group == *name;
            let changes = plan.changes.iter().any(own);
            let bodies = &request.prepared.bodies;
            // Parts of a group are no configuration of it.
            let is_whole =
                request.options.targets.is_empty() && request.options.excludes.is_empty();
            if let Some(document) = request.document
                && is_whole
                && (changes || stored.is_none())
                && let Some(good) = last_good::text_of(document, name, &ids, bodies)
            {
                plan.last_good.insert(name.to_string(), good);
            }
            if let Some(stored) = stored.as_deref().filter(|_| changes) {
                let good = last_good::GoodGroup {
                    name,
                    stored,
                    links: links.get(name.as_str()),
                    rules: request.rules,
                    lineage: &plan.lineage,
                    now: plan.created_at,
                };
                let erb = Arc::clone(&request.prepared.compiled.erb);
                let of_group = plan.changes.iter_mut();
                let of_group = of_group.filter(|change| change.address.group == *name);
                last_good::add_fallbacks(&good, erb, of_group);
            }
            let comes_later = |change: &Change| stored.is_some() && !change.late.is_empty();
            let lacks = |change: &Change| {
                own(change)
                    && rolls_back(change)
                    && change.fallback.is_none()
                    && !comes_later(change)
            };
            if plan.changes.iter().any(lacks) {
                findings.push(
                    Diagnostic::warning(format!(
                        "group `{name}` can't be rolled back fully: its last good configuration isn't known"
                    ))
                    .detail("a rollback keeps predecessors that exist, and creates none again")
                    .about(name),
                );
            }
        }
        Ok(findings)
    }

    /// Fails if a spec couldn't be read, or if a concurrent apply removed it after the snapshot.
    fn check_specs(&self, plan: &Plan) -> Result<(), StateError> {
        if let Some(error) = self.failed.lock().ok().and_then(|mut error| error.take()) {
            return Err(error);
        }
        if plan.errored()
            && let Some(store) = &self.store
            && let Ok(store) = store.lock()
            && store.meta()?.serial != plan.serial
        {
            return Err(StateError::Changed {
                path: store.place(),
            });
        }
        Ok(())
    }
}

/// Compares desired, recorded and observed.
fn build_plan(
    request: &Request<'_, '_>,
    record: &ReadRecord<'_>,
    observed: Option<&Observed>,
    images: &ResolvedImages,
    renderers: &[GroupRenderer<'_>],
    cloud: Option<&dyn Cloud>,
    now: Timestamp,
) -> Result<(Plan, BTreeMap<String, LinkSet>, Diagnostics), PlanError> {
    let compiled = &request.prepared.compiled;
    let groups = compiled.groups.iter().map(|group| &group.merged);
    // Whether a subnet has room is of interest only if something is created in it.
    let asked = cloud.filter(|_| !request.options.only_shown);
    let mut placer = Placer::new(request.config, request.rules, asked, groups);
    let specs = |digest| record.spec(digest);
    let inputs = Inputs {
        config: request.config,
        sources: request.sources,
        groups: renderers,
        dependencies: &compiled.graph.dependencies,
        properties: &compiled.properties,
        images,
        unfetched: &request.prepared.unfetched,
        snapshot: record.snapshot.as_ref(),
        observed,
        specs: &specs,
        identity: request.identity,
        rules: request.rules,
        provider_name: request.provider_name,
        now,
        options: request.options,
    };
    let (plan, links, found) = build::build(&inputs, &mut placer);
    if let Some(error) = placer.into_failure() {
        return Err(PlanError::Cloud {
            doing: "the subnets can't be looked up",
            error,
        });
    }
    record.check_specs(&plan)?;
    Ok((plan, links, found))
}

/// Rows for the cache of fetched bodies.
fn fetched_rows(bodies: &Bodies, now: Timestamp) -> Vec<FetchedRow> {
    let fetched = bodies.iter().filter(|(url, _)| !fetch::is_file(url));
    fetched
        .map(|(url, body)| FetchedRow {
            url: key_of_url(url),
            digest: sha256_hex(body),
            body: body.to_vec(),
            fetched_at: now.into(),
        })
        .collect()
}

/// Resolves the images that the configuration uses.
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

/// A renderer for each group, in dependency order.
pub fn renderers<'a>(
    config: &Config,
    compiled: &'a Compiled<'a>,
    ids: &BTreeMap<Arc<str>, Option<Arc<str>>>,
    rules: Rules,
    lineage: &str,
) -> Vec<GroupRenderer<'a>> {
    let looked = sampling::of_each_text(config);
    compiled
        .groups
        .iter()
        .map(|group| {
            let is_looked_into = looked.contains(&group.merged.name);
            renderer(config, group, ids, rules, lineage).looking_into(is_looked_into)
        })
        .collect()
}

/// A renderer for one group.
pub fn renderer<'a>(
    config: &Config,
    group: &'a CompiledGroup<'a>,
    ids: &BTreeMap<Arc<str>, Option<Arc<str>>>,
    rules: Rules,
    lineage: &str,
) -> GroupRenderer<'a> {
    let pinned = group.images.iter().any(|name| {
        config
            .images
            .get(name)
            .is_some_and(|image| image.value.on_newer == OnNewer::NewOnly)
    });
    GroupRenderer::new(group, config, ids, pinned, rules, lineage)
}

/// The warning that another process is applying.
fn running(holder: &LockInfo, snapshot: &Snapshot) -> Diagnostic {
    let since = if holder.is_signed() {
        format!(", since {}", Timestamp::from(holder.since))
    } else {
        String::new()
    };
    let left_out = match snapshot.intents.len() {
        0 => String::new(),
        1 => "\nits change in progress is left out here".to_owned(),
        count => format!("\nits {count} changes in progress are left out here"),
    };
    Diagnostic::warning("another process is changing this shard")
        .detail(format!("the lock is held by {holder}{since}{left_out}"))
        .hint("Plan again when it is done")
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

//! The inputs of a plan: configuration, record, observation and options.
//!
//! In: nothing (data only). Out: [`Inputs`] and [`Options`], and the ids of new instances. Must
//! not: decide what to change.

use std::collections::HashMap;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use nstance_state::{Identity, Record, Snapshot, SpecDigest};
use sha2::Sha256;

use super::change::{InstanceView, Mode};
use crate::address::{Address, GroupName, InstanceId, Selector};
use crate::clock::Timestamp;
use crate::config::model::Config;
use crate::config::source::SourceMap;
use crate::provider::rules::Rules;
use crate::refresh::Observed;
use crate::render::links::Properties;
use crate::render::renderer::GroupRenderer;
use crate::resolve::fetch::Unfetched;
use crate::resolve::images::ResolvedImages;
use crate::spec::SpecBody;

/// The options of a plan.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The mode.
    pub mode: Mode,
    /// If not empty, plan only these addresses.
    pub targets: Vec<Selector>,
    /// Don't plan these addresses.
    pub excludes: Vec<Selector>,
    /// Replace these addresses.
    pub replace: Vec<Selector>,
    /// A digest of the configuration and of these options; see [`super::change::Plan::target`].
    pub target: String,
    /// Keep no-ops in [`super::change::Plan::unchanged`].
    pub keep_unchanged: bool,
    /// Treat unset vars as errors.
    pub strict: bool,
    /// Whether nothing is created from the plan, so that what only a creation needs may be missing.
    pub only_shown: bool,
    /// The instance id of an instance that `import` is about to record in this empty slot. The
    /// slot's spec is rendered with this id instead of a new one.
    pub importing: Option<(Address, Arc<str>)>,
}

impl Options {
    /// Whether an address is selected.
    pub fn selects(&self, address: &Address) -> bool {
        (self.targets.is_empty() || self.targets.iter().any(|target| target.matches(address)))
            && !self.excludes(address)
    }

    /// Whether an address is left out.
    pub fn excludes(&self, address: &Address) -> bool {
        self.excludes.iter().any(|exclude| exclude.matches(address))
    }

    /// Whether a whole group is a target.
    pub fn targets_group(&self, group: &GroupName) -> bool {
        let mut targets = self.targets.iter();
        targets.any(|target| matches!(target, Selector::Group(name) if name == group))
    }

    /// Whether an address must be replaced.
    pub fn replaces(&self, address: &Address) -> bool {
        self.replace
            .iter()
            .any(|selector| selector.matches(address))
    }
}

/// Reads a recorded spec.
pub type SpecReader<'a> = dyn Fn(SpecDigest) -> Option<Arc<SpecBody>> + Sync + 'a;

/// The inputs of a plan.
pub struct Inputs<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The configuration's source texts.
    pub sources: &'a SourceMap,
    /// The renderers of its groups, in dependency order.
    pub groups: &'a [GroupRenderer<'a>],
    /// The direct dependencies of each group.
    pub dependencies: &'a HashMap<GroupName, Vec<GroupName>>,
    /// What groups offer to others.
    pub properties: &'a Properties,
    /// The resolved images.
    pub images: &'a ResolvedImages,
    /// The userdata URLs that can't be fetched.
    pub unfetched: &'a Unfetched,
    /// The snapshot of the state; `None` if there is no state yet.
    pub snapshot: Option<&'a Snapshot>,
    /// The observation; `None` if the cloud wasn't queried.
    pub observed: Option<&'a Observed>,
    /// Reads recorded specs.
    pub specs: &'a SpecReader<'a>,
    /// The cluster, shard and provider that the state belongs to.
    pub identity: &'a Identity,
    /// The provider's rules.
    pub rules: Rules,
    /// The name of the cloud.
    pub provider_name: &'a str,
    /// The current time.
    pub now: Timestamp,
    /// The options.
    pub options: &'a Options,
}

impl Inputs<'_> {
    /// The state's lineage. For a new state, it is derived from the identity and the time, so that
    /// equal inputs give equal plans.
    pub fn lineage(&self) -> String {
        lineage(self.snapshot, self.identity, self.now)
    }

    /// How long an instance's connections may drain, in milliseconds: its group's setting, else the
    /// shard's default.
    pub fn drain_timeout_ms(&self, address: &Address) -> u64 {
        let group = self.config.group(&address.group);
        let own = group.and_then(|group| group.drain_timeout.map(|own| own.value));
        own.unwrap_or(self.config.shard.default_drain_timeout)
            .as_millis() as u64
    }

    /// A record with its recorded spec; `None` if the spec can't be read.
    pub fn recorded_view(&self, record: &Record) -> Option<InstanceView> {
        let spec = (self.specs)(record.spec)?;
        Some(InstanceView::of_record(record, spec, record.spec))
    }
}

/// The lineage of a state, or of the one that an apply would create now.
pub fn lineage(snapshot: Option<&Snapshot>, identity: &Identity, now: Timestamp) -> String {
    if let Some(snapshot) = snapshot {
        return snapshot.meta.lineage.clone();
    }
    InstanceId::generate("", now.0, entropy("new state", &identity.to_string(), 0)).to_string()
}

/// Ten bytes derived from the lineage, address and generation of an instance.
fn entropy(lineage: &str, address: &str, generation: u64) -> [u8; 10] {
    let mut mac = Hmac::<Sha256>::new_from_slice(lineage.as_bytes())
        .expect("an HMAC takes a key of any length");
    mac.update(address.as_bytes());
    mac.update(&generation.to_be_bytes());
    let code = mac.finalize().into_bytes();
    std::array::from_fn(|index| code[index])
}

/// The id of a new instance.
pub fn new_instance_id(
    kind: &str,
    now: Timestamp,
    lineage: &str,
    address: &Address,
    generation: u64,
) -> InstanceId {
    InstanceId::generate(
        kind,
        now.0,
        entropy(lineage, &address.to_string(), generation),
    )
}

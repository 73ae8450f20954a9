//! What a plan is made of: the configuration, the record, the observation, and what the caller
//! asked.
//!
//! In: nothing (data only). Out: [`Inputs`] and [`Options`], and the ids of new instances. It must
//! not decide what to change.

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
use crate::render::renderer::GroupRenderer;
use crate::resolve::images::ResolvedImages;
use crate::spec::SpecBody;

/// What a caller may ask of a plan.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What kind of plan.
    pub mode: Mode,
    /// Only these, if any.
    pub targets: Vec<Selector>,
    /// Not these.
    pub excludes: Vec<Selector>,
    /// Replace these.
    pub replace: Vec<Selector>,
    /// Keep what stays as it is in [`super::change::Plan::unchanged`].
    pub keep_unchanged: bool,
    /// Warnings about unset vars are errors.
    pub strict: bool,
    /// An instance that is about to be recorded in an empty slot, and the id that it has: what the
    /// slot should have is rendered for it, not for a new one.
    pub importing: Option<(Address, Arc<str>)>,
}

impl Options {
    /// Whether an address is to be planned.
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

    /// Whether an address is to be replaced.
    pub fn replaces(&self, address: &Address) -> bool {
        self.replace
            .iter()
            .any(|selector| selector.matches(address))
    }
}

/// Reads a recorded spec.
pub type SpecReader<'a> = dyn Fn(SpecDigest) -> Option<Arc<SpecBody>> + Sync + 'a;

/// Everything a plan is made of.
pub struct Inputs<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Its text.
    pub sources: &'a SourceMap,
    /// Its groups in dependency order, ready to render.
    pub groups: &'a [GroupRenderer<'a>],
    /// The groups that each depends on.
    pub dependencies: &'a HashMap<GroupName, Vec<GroupName>>,
    /// Images.
    pub images: &'a ResolvedImages,
    /// The record; `None`: there is no state yet.
    pub snapshot: Option<&'a Snapshot>,
    /// The cloud; `None`: it wasn't asked.
    pub observed: Option<&'a Observed>,
    /// Recorded specs.
    pub specs: &'a SpecReader<'a>,
    /// Whose state.
    pub identity: &'a Identity,
    /// The provider's rules.
    pub rules: Rules,
    /// The name of the cloud.
    pub provider_name: &'a str,
    /// Now.
    pub now: Timestamp,
    /// What was asked.
    pub options: &'a Options,
}

impl Inputs<'_> {
    /// The state's lineage; for a state that doesn't exist yet, the one it will have: made of whose
    /// it is and of the time, so that the same inputs give the same plan.
    pub fn lineage(&self) -> String {
        if let Some(snapshot) = self.snapshot {
            return snapshot.meta.lineage.clone();
        }
        let whose = format!("{}", self.identity);
        InstanceId::generate("", self.now.0, entropy("new state", &whose, 0)).to_string()
    }

    /// How long connections of an instance may drain, in milliseconds: as its group says, if it is
    /// still configured.
    pub fn drain_timeout_ms(&self, address: &Address) -> u64 {
        let group = self.config.group(&address.group);
        let own = group.and_then(|group| group.drain_timeout);
        own.unwrap_or(self.config.shard.default_drain_timeout)
            .as_millis() as u64
    }

    /// A record with its recorded spec; `None` if the spec can't be read.
    pub fn recorded_view(&self, record: &Record) -> Option<InstanceView> {
        let spec = (self.specs)(record.spec)?;
        Some(InstanceView::of_record(record, spec, record.spec))
    }
}

/// Ten bytes that depend on all of what an instance is for.
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

//! The types of a plan.
//!
//! In: nothing (data only). Out: the types that `build` fills, reports print, plan files store and
//! `apply` executes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use nstance_state::{Identity, Intent, Record, SpecDigest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::accept::AcceptedBecause;
use super::manifest::PlannedManifest;
use super::planned::protected;
use super::rollout::Rollout;
use crate::address::{Address, GroupName};
use crate::clock::Timestamp;
use crate::diagnostic::{Diagnostic, Diagnostics, counted};
use crate::fault_injection::InjectedFault;
use crate::merge::zones::{Place, Seat};
use crate::provider::Observation;
use crate::provider::rules::{Effect, Ownership, Rules};
use crate::render::files::Deferred;
use crate::render::links::{LinkSet, LinkTrace};
use crate::sensitivity::{HIDDEN, Marks};
use crate::spec::SpecBody;

/// The action of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Create an instance.
    Create,
    /// Update an instance in place.
    Update,
    /// Create the successor, then delete the instance.
    CreateThenDelete,
    /// Delete the instance, then create its successor, since both can't exist at once.
    DeleteThenCreate,
    /// Delete an instance.
    Delete,
    /// Record an existing instance of this shard.
    Adopt,
    /// Remove a record whose instance is gone or no longer belongs to this shard.
    Forget,
    /// No change.
    NoOp,
}

impl Action {
    /// Whether it replaces an instance.
    pub fn is_replace(self) -> bool {
        matches!(self, Self::CreateThenDelete | Self::DeleteThenCreate)
    }

    /// Terraform's `actions` in JSON.
    pub fn terraform(self) -> &'static [&'static str] {
        match self {
            Self::Create => &["create"],
            Self::Update => &["update"],
            Self::CreateThenDelete => &["create", "delete"],
            Self::DeleteThenCreate => &["delete", "create"],
            Self::Delete => &["delete"],
            Self::Forget => &["forget"],
            Self::Adopt | Self::NoOp => &["no-op"],
        }
    }
}

/// The reason for a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Reason {
    /// A newer image was found.
    NewerImage {
        /// The image's name.
        name: Arc<str>,
        /// The image id that the instance was created with.
        from: String,
        /// The current image id.
        to: String,
    },
    /// The group has fewer instances than its size.
    GroupGrew,
    /// The group has more instances than its size.
    GroupShrank,
    /// The group is no longer configured.
    GroupRemoved,
    /// The recorded instance no longer exists.
    Missing,
    /// A changed attribute requires a new instance.
    CannotUpdate,
    /// A changed attribute can be updated in place.
    Changed,
    /// The observation differs from the record.
    Drifted,
    /// `--replace`
    Requested,
    /// `shard.expiry`
    Expired {
        /// The instance's age in seconds.
        age_seconds: u64,
    },
    /// `destroy`
    Destroy,
    /// `destroy` of a group that its own depends on.
    DependencyDestroyed {
        /// That group.
        group: String,
    },
    /// Another instance holds the same slot.
    Duplicate,
    /// Its successor exists, but it wasn't deleted yet.
    Deposed,
    /// It has this shard's tags and isn't recorded.
    Unrecorded,
    /// `moved_from`
    Moved {
        /// The former address.
        from: String,
    },
    /// `--refresh-only`
    RefreshOnly,
    /// The rollout failed, and the group goes back.
    RolledBack,
    /// A group changed whose link its texts read.
    LinkChanged {
        /// The linked group.
        group: Arc<str>,
        /// What changed of it, as a fragment.
        why: String,
    },
}

impl Reason {
    /// The `action_reason` in JSON: Terraform's value if it has one.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NewerImage { .. } => "replace_because_newer_image",
            Self::GroupGrew => "create_because_group_grew",
            Self::GroupShrank => "delete_because_count_index",
            Self::GroupRemoved => "delete_because_no_resource_config",
            Self::Missing => "create_because_missing",
            Self::CannotUpdate => "replace_because_cannot_update",
            Self::Changed => "update_because_changed",
            Self::Drifted => "update_because_drifted",
            Self::Requested => "replace_by_request",
            Self::Expired { .. } => "replace_because_expired",
            Self::Destroy => "delete_by_request",
            Self::DependencyDestroyed { .. } => "delete_because_dependency",
            Self::Duplicate => "delete_because_duplicate",
            Self::Deposed => "delete_because_deposed",
            Self::Unrecorded => "adopt_because_unrecorded",
            Self::Moved { .. } => "update_because_moved",
            Self::RefreshOnly => "refresh_only",
            Self::RolledBack => "rollback",
            Self::LinkChanged { .. } => "change_because_link_changed",
        }
    }
}

/// An attribute that changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributeChange {
    /// Its path in the instance: `instance_type`, `args.MetadataOptions.HttpTokens`, `userdata`,
    /// `files.NAME`, `tags.NAME`, `vars.NAME`, …
    pub path: String,
    /// The value before; `None` if absent.
    pub before: Option<Value>,
    /// The value after; `None` if absent or `unknown`.
    pub after: Option<Value>,
    /// Whether the value is only known after apply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// What the change requires.
    pub effect: Effect,
    /// `file:line:column` of the new value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<String>,
}

/// An instance before or after a change: a record and its spec.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceView {
    /// The instance id.
    pub instance_id: Arc<str>,
    /// The provider id; `None` before creation.
    pub provider_id: Option<String>,
    /// The generation of the slot.
    pub generation: u64,
    /// The zone.
    pub zone: Arc<str>,
    /// Its slot's number and tag in the zone.
    #[serde(default)]
    pub seat: Seat,
    /// Its index, if the group numbers its instances by zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// What the links were that it was rendered with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<Arc<str>, LinkTrace>,
    /// The version of the manifest that it was created or updated with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_version: Option<u64>,
    /// The subnet.
    pub subnet: Option<Arc<str>>,
    /// The IPv4 address, if known.
    pub ip4: Option<Arc<str>>,
    /// The IPv6 address, if known.
    pub ip6: Option<Arc<str>>,
    /// The creation time, if known.
    pub created_at: Option<Timestamp>,
    /// The ids of the images it was rendered with.
    pub images: BTreeMap<Arc<str>, Arc<str>>,
    /// Whether its group is protected. Recorded, so that it still applies after the group is
    /// removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// Which parts of it are sensitive.
    #[serde(default = "Marks::none", skip_serializing_if = "no_marks")]
    pub marks: Arc<Marks>,
    /// The version of its row when the plan was made; `None` if it isn't recorded.
    pub version: Option<u64>,
    /// The spec.
    pub spec: Arc<SpecBody>,
    /// The spec's digest.
    pub digest: SpecDigest,
}

impl InstanceView {
    /// A recorded instance with a spec: the recorded one, or one rendered for it.
    pub fn of_record(record: &Record, spec: Arc<SpecBody>, digest: SpecDigest) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        let attributes = RecordAttributes::parse(&record.attributes);
        Self {
            instance_id: record.instance_id.as_str().into(),
            provider_id: Some(record.provider_id.clone()),
            generation: record.generation,
            zone: record.zone.as_str().into(),
            seat: attributes.seat(record.slot),
            index: attributes.index,
            links: attributes.links,
            manifest_version: attributes.manifest_version,
            subnet: text(&record.subnet),
            ip4: text(&record.ip4),
            ip6: text(&record.ip6),
            created_at: Some(record.created_at.into()),
            images: attributes.images,
            protected: attributes.protected,
            marks: attributes.marks.unwrap_or_else(Marks::none),
            version: Some(record.version),
            spec,
            digest,
        }
    }

    /// An unrecorded instance, from its observation.
    pub fn unrecorded(
        observation: &Observation,
        instance_id: Arc<str>,
        generation: u64,
        body: SpecBody,
    ) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        Self {
            instance_id,
            provider_id: Some(observation.provider_id.clone()),
            generation,
            zone: observation.zone.as_str().into(),
            seat: Seat::default(),
            index: None,
            links: BTreeMap::new(),
            manifest_version: None,
            subnet: text(&observation.subnet),
            ip4: text(&observation.ip4),
            ip6: text(&observation.ip6),
            created_at: Some(observation.created_at),
            images: BTreeMap::new(),
            protected: false,
            marks: Marks::none(),
            version: None,
            digest: body.clone().into_spec().digest(),
            spec: Arc::new(body),
        }
    }

    /// Its slot's place.
    pub fn place(&self) -> Place {
        Place {
            zone: Arc::clone(&self.zone),
            seat: self.seat.clone(),
        }
    }

    /// The instance with sensitive values masked.
    pub fn covered(&self) -> Cow<'_, Self> {
        if self.marks.is_empty() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            spec: Arc::new(self.marks.cover(&self.spec)),
            ..self.clone()
        })
    }
}

fn no_marks(marks: &Arc<Marks>) -> bool {
    marks.is_empty()
}

/// The `attributes` column of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordAttributes {
    /// The ids of the images it was rendered with.
    pub images: BTreeMap<Arc<str>, Arc<str>>,
    /// Whether its group is protected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// Which parts of its spec are sensitive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<Arc<Marks>>,
    /// The slot's number in its zone, if it isn't the slot's own number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The slot's tag.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub tag: Arc<str>,
    /// The instance's index, if the group numbers its instances by zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// What the links were that it was rendered with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<Arc<str>, LinkTrace>,
    /// The version of the manifest that it was created or updated with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_version: Option<u64>,
}

impl RecordAttributes {
    /// The slot's number and tag in its zone.
    pub fn seat(&self, slot: u32) -> Seat {
        Seat {
            number: self.number.unwrap_or(slot + 1),
            tag: Arc::clone(&self.tag),
        }
    }

    /// Parses the column; invalid text gives the default.
    pub fn parse(text: &str) -> Self {
        if text == "{}" {
            Self::default()
        } else {
            serde_json::from_str(text).unwrap_or_default()
        }
    }

    /// The text for the column.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("its keys are strings")
    }
}

/// What a group goes back to once its changes are done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastGood {
    /// The text for the state.
    pub text: String,
    /// Whether any part of it is sensitive.
    pub is_sensitive: bool,
}

/// The instance to create if a change is rolled back and its predecessor is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fallback {
    /// The instance.
    pub view: InstanceView,
    /// Its files that are rendered after creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Box<Deferred>>,
}

/// The change of one address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The slot.
    pub address: Address,
    /// The provider id of a deposed or duplicate instance; `None` if the change is about the slot's
    /// own instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// The provider id of the instance that has the slot of a deposed one, if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// The action.
    pub action: Action,
    /// The reasons, primary first.
    pub reasons: Vec<Reason>,
    /// The provider id of an instance that is recorded by this change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importing: Option<String>,
    /// The instance before.
    pub before: Option<Box<InstanceView>>,
    /// The instance after.
    pub after: Option<Box<InstanceView>>,
    /// The attributes that change, sorted by path; only for updates and replacements.
    pub attributes: Vec<AttributeChange>,
    /// Files that are rendered after creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Box<Deferred>>,
    /// Further subnets in the same zone, in order of preference, if the planned one has no
    /// capacity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Arc<str>>,
    /// The paths of `after` with addresses that are known only when the linked groups are applied.
    /// Its spec has stand-ins there; `pipeline::late` renders it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<String>,
    /// How long connections may drain before deletion, in milliseconds.
    #[serde(default)]
    pub drain_timeout_ms: u64,
    /// What to go back to, if the group's policy is to roll back and it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<Fallback>>,
}

impl Change {
    /// A change with all optional fields empty.
    pub fn new(address: Address, action: Action, reasons: Vec<Reason>) -> Self {
        Self {
            address,
            deposed: None,
            successor: None,
            action,
            reasons,
            importing: None,
            before: None,
            after: None,
            attributes: Vec::new(),
            deferred: None,
            alternatives: Vec::new(),
            late: Vec::new(),
            drain_timeout_ms: 0,
            fallback: None,
        }
    }

    /// Whether it makes a new instance.
    pub fn makes_instance(&self) -> bool {
        self.action == Action::Create || self.action.is_replace()
    }

    /// Sorts by address; a slot's deposed instances come last.
    pub fn order(a: &Self, b: &Self) -> Ordering {
        (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed))
    }

    /// Why a held back change is held back.
    pub fn held_back_by(&self) -> HoldBack {
        let is_protected = self.after.as_deref().is_some_and(|after| after.protected);
        // `protect` leaves updates alone.
        if is_protected && self.action.is_replace() {
            HoldBack::Protect
        } else if matches!(self.reasons.first(), Some(Reason::LinkChanged { .. })) {
            HoldBack::Link
        } else {
            HoldBack::Opportunistic
        }
    }

    /// The instance to create in try `place`: 0 is the planned subnet, then the alternatives.
    pub fn creation(&self, place: usize) -> Cow<'_, InstanceView> {
        let side = self.after.as_deref().expect("a create has an after");
        match place.checked_sub(1) {
            None => Cow::Borrowed(side),
            Some(index) => Cow::Owned(InstanceView {
                subnet: Some(Arc::clone(&self.alternatives[index])),
                ..side.clone()
            }),
        }
    }
}

/// The setting that holds a change back until `--allow-replace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldBack {
    /// `protect`
    Protect,
    /// `update.opportunistic`
    Opportunistic,
    /// Only another group changed.
    Link,
}

impl HoldBack {
    /// The name of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Protect => "protect",
            Self::Opportunistic => "opportunistic",
            Self::Link => "consumes",
        }
    }
}

/// A group of the plan, and the groups before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedGroup {
    /// `tenant/group`
    pub name: String,
    /// The groups it depends on.
    pub after: Vec<String>,
    /// The runtime hash of its configuration, which nonces are made with; empty if they aren't.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config_hash: String,
    /// How its changes follow each other; `None` for a group that isn't configured any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
}

/// The mode of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Make the instances match the configuration.
    #[default]
    Normal,
    /// Delete all instances.
    Destroy,
    /// Update only the record.
    RefreshOnly,
}

/// An image in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedImage {
    /// The image id.
    pub id: String,
    /// `lookup`, `cache` or `fallback`.
    pub source: String,
    /// When the cloud last confirmed it.
    pub resolved_at: Option<Timestamp>,
}

/// The kind of a drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriftKind {
    /// Attributes differ.
    Changed,
    /// The recorded instance no longer exists.
    Missing,
    /// It has this shard's tags and isn't recorded.
    Unknown,
    /// It claims the slot of another instance.
    Duplicate,
}

impl DriftKind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Changed, Self::Missing, Self::Unknown, Self::Duplicate];

    /// The name in JSON and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Duplicate => "duplicate",
        }
    }
}

/// An attribute that drifted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriftedAttribute {
    /// Its path in the instance; `state` for the instance's state.
    pub path: String,
    /// The recorded value; `None` if absent.
    pub recorded: Option<Value>,
    /// The observed value; `None` if absent.
    pub observed: Option<Value>,
    /// Whether `ignore_changes` covers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
}

impl DriftedAttribute {
    /// The update in place that restores the recorded value.
    pub fn undo(&self) -> AttributeChange {
        AttributeChange {
            path: self.path.clone(),
            before: self.observed.clone(),
            after: self.recorded.clone(),
            unknown: false,
            effect: Effect::InPlace,
            written_at: None,
        }
    }
}

/// An instance that drifted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Its address, or the one that its tags claim. A text, since tags can be invalid.
    pub address: String,
    /// The kind of drift.
    pub kind: DriftKind,
    /// The provider id.
    pub provider_id: String,
    /// The attributes that drifted, sorted by path.
    pub changes: Vec<DriftedAttribute>,
    /// Whether `ignore_changes` or `accept` covers all of it.
    pub accepted: bool,
    /// The items of `accept` that cover it; only in `drift`, since they don't change a plan.
    #[serde(skip)]
    pub accepted_because: Vec<AcceptedBecause>,
    /// The items of `accept` that covered it until their date; only in `drift`.
    #[serde(skip)]
    pub expired: Vec<AcceptedBecause>,
    /// The recorded instance, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<InstanceView>>,
}

impl Drift {
    /// Whether attributes of an existing instance drifted.
    pub fn is_changed(&self) -> bool {
        self.kind == DriftKind::Changed
    }
}

/// An instance with this shard's tags that names no slot: the Nstance server made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInstance {
    /// The provider id.
    pub provider_id: String,
    /// `tenant/group`, if its tags name one.
    pub group: Option<String>,
}

/// The changes that apply would make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The mode.
    pub mode: Mode,
    /// `cluster.id`
    pub cluster: String,
    /// `shard.id`
    pub shard: String,
    /// The provider in the state's identity.
    pub provider: String,
    /// The name of the rules it was computed with.
    pub rules: RulesName,
    /// The name of the queried cloud.
    pub provider_name: String,
    /// The state's lineage.
    pub lineage: String,
    /// The state's serial.
    pub serial: u64,
    /// Whether the state doesn't exist yet.
    pub new_state: bool,
    /// The configuration's files, if a recorded group isn't among its groups any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_from: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// A digest of the configuration and the options it was made with; empty in plans of older
    /// versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The resolved images.
    pub images: BTreeMap<String, PlannedImage>,
    /// All changes except no-ops, sorted by address; a slot's deposed instances come last.
    pub changes: Vec<Change>,
    /// Replacements in protected groups, and replacements and restarts that `opportunistic` leaves
    /// to later, sorted by address; [`Plan::release`] moves them to `changes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<Change>,
    /// No-ops, if the caller requested them; not in plan files.
    #[serde(skip)]
    pub unchanged: Vec<Change>,
    /// The differences between record and cloud.
    pub drift: Vec<Drift>,
    /// Instances of the Nstance server, which are left alone; not in plan files.
    #[serde(skip)]
    pub of_server: Vec<ServerInstance>,
    /// The number of changes by action.
    pub summary: Summary,
    /// Instances that couldn't be planned; if there are any, the plan is `errored`.
    pub left_out: Vec<LeftOut>,
    /// The deletions and their limits.
    pub deletions: Deletions,
    /// The sizes of all configured groups.
    #[serde(default)]
    pub sizes: BTreeMap<String, u32>,
    /// What each group with changes goes back to from the next apply on, once these are done.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub last_good: BTreeMap<String, LastGood>,
    /// The groups with changes, held back or not, in dependency order.
    pub groups: Vec<PlannedGroup>,
    /// What is needed to render texts with addresses that aren't known yet, by group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub late: BTreeMap<String, LateGroup>,
    /// The manifest, if it is of a BOSH deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<PlannedManifest>,
}

/// What is needed to render a group's texts once the addresses of the groups that it links to are
/// known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LateGroup {
    /// Its configuration.
    pub text: LastGood,
    /// Its links, with the addresses that are known.
    pub links: LinkSet,
}

impl LateGroup {
    fn is_sensitive(&self) -> bool {
        let mut links = self.links.values().flatten();
        self.text.is_sensitive || links.any(|facts| facts.is_sensitive)
    }
}

/// The number of changes by action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Created.
    pub create: usize,
    /// Changed in place.
    pub update: usize,
    /// Replaced.
    pub replace: usize,
    /// Deleted.
    pub delete: usize,
    /// Recorded.
    pub adopt: usize,
    /// Dropped from the record.
    pub forget: usize,
    /// Left as they are.
    pub no_op: usize,
    /// Replacements and restarts that `--allow-replace` would release.
    #[serde(default, skip_serializing_if = "no_count")]
    pub held_back: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn no_count(count: &usize) -> bool {
    *count == 0
}

impl Summary {
    /// Counts changes.
    pub fn of(changes: &[Change], held_back: &[Change], no_op: usize) -> Self {
        let mut summary = Self {
            no_op,
            held_back: held_back.len(),
            ..Self::default()
        };
        for change in changes {
            summary.count(change.action);
        }
        summary
    }

    /// Counts a change.
    pub fn count(&mut self, action: Action) {
        match action {
            Action::Create => self.create += 1,
            Action::Update => self.update += 1,
            Action::CreateThenDelete | Action::DeleteThenCreate => self.replace += 1,
            Action::Delete => self.delete += 1,
            Action::Adopt => self.adopt += 1,
            Action::Forget => self.forget += 1,
            Action::NoOp => self.no_op += 1,
        }
    }

    /// Adds another plan's counts.
    pub fn add(&mut self, other: &Self) {
        self.create += other.create;
        self.update += other.update;
        self.replace += other.replace;
        self.delete += other.delete;
        self.adopt += other.adopt;
        self.forget += other.forget;
        self.no_op += other.no_op;
        self.held_back += other.held_back;
    }

    /// Terraform's "to add"; a replacement counts here and in "to destroy".
    pub fn added(&self) -> usize {
        self.create + self.replace
    }

    /// Terraform's "to destroy".
    pub fn destroyed(&self) -> usize {
        self.delete + self.replace
    }

    /// Whether apply has anything to do.
    pub fn is_applyable(&self) -> bool {
        self.create + self.update + self.replace + self.delete + self.adopt + self.forget > 0
    }

    /// Whether anything differs from the configuration: changes to apply, or held back.
    pub fn has_changes(&self) -> bool {
        self.is_applyable() || self.held_back > 0
    }
}

/// Instances that couldn't be planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// `tenant/group`, or the address of a slot.
    pub address: String,
    /// The number of instances.
    pub count: usize,
    /// The reason.
    pub why: String,
}

/// The deletions, for the destroy budget and protected groups.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deletions {
    /// Deletions by group, without replacements.
    pub by_group: BTreeMap<String, usize>,
    /// The number of recorded instances.
    pub recorded: usize,
    /// `destroy_budget.count`
    pub budget_count: u32,
    /// `destroy_budget.percent`
    pub budget_percent: u32,
    /// Protected groups with deletions.
    pub protected: Vec<String>,
}

impl Deletions {
    /// The number of deletions.
    pub fn total(&self) -> usize {
        self.by_group.values().sum()
    }

    /// Takes out groups whose deletions are allowed: nothing is to be said of them.
    pub fn allow(&mut self, allowed: impl Fn(&str) -> bool) {
        self.by_group.retain(|group, _| !allowed(group));
        self.protected.retain(|group| !allowed(group));
    }

    /// Whether there are more than both limits of the budget.
    pub fn exceeds_budget(&self) -> bool {
        self.exceeds(self.total())
    }

    /// The number of deletions that exceed the budget, without those of `allowed` groups; `None` if
    /// they don't exceed it. The budget doesn't apply to `destroy`.
    pub fn forbidden(
        &self,
        mode: Mode,
        allowed: impl Fn(&str) -> bool,
        injected_fault: InjectedFault,
    ) -> Option<usize> {
        let groups = self.by_group.iter();
        let budgeted: usize = groups
            .filter(|(group, _)| !allowed(group))
            .map(|(_, count)| count)
            .sum();
        let is_bound = mode != Mode::Destroy && injected_fault != InjectedFault::NoBudget;
        (is_bound && self.exceeds(budgeted)).then_some(budgeted)
    }

    /// Whether this many deletions exceed both limits of the budget.
    fn exceeds(&self, count: usize) -> bool {
        count > self.budget_count as usize
            && count * 100 > self.budget_percent as usize * self.recorded
    }
}

/// The name of a provider's rules in plan files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RulesName {
    /// EC2's.
    Aws,
    /// Compute Engine's.
    Gcp,
    /// The embedded cloud's.
    Sim,
    /// Those of Yandex Cloud.
    Yandex,
}

/// What the caller permits.
pub struct Allowance<'a> {
    /// Whether a group's deletions may exceed the budget or its protection.
    pub deletes: &'a dyn Fn(&str) -> bool,
    /// Whether an incomplete plan may be applied.
    pub incomplete: bool,
}

/// Why a plan must not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal<'p> {
    /// The plan is incomplete.
    Incomplete,
    /// These protected groups have deletions.
    Protected(Vec<&'p str>),
    /// This many deletions exceed the destroy budget.
    OverBudget(usize),
}

impl Plan {
    /// Why the plan must not be applied; `None` if it may.
    pub fn refusal(&self, allowance: &Allowance<'_>) -> Option<Refusal<'_>> {
        if self.errored() && !allowance.incomplete {
            return Some(Refusal::Incomplete);
        }
        let protected = self.deletions.protected.iter().map(String::as_str);
        let protected: Vec<_> = protected
            .filter(|group| !(allowance.deletes)(group))
            .collect();
        if !protected.is_empty() {
            return Some(Refusal::Protected(protected));
        }
        self.deletions
            .forbidden(self.mode, allowance.deletes, InjectedFault::None)
            .map(Refusal::OverBudget)
    }

    /// Moves the held back changes of allowed groups to the changes. Leaves out replacements that
    /// the cloud would refuse; returns the findings.
    pub fn release(&mut self, allowed: impl Fn(&str) -> bool) -> Diagnostics {
        let mut findings = Diagnostics::default();
        let held_back = std::mem::take(&mut self.held_back);
        let (released, held_back): (Vec<_>, Vec<_>) = held_back
            .into_iter()
            .partition(|change| allowed(change.address.group.as_str()));
        self.held_back = held_back;
        let rules = self.rules();
        let (refused, released): (Vec<_>, Vec<_>) = released.into_iter().partition(|change| {
            // An update in place deletes nothing.
            let before = change.before.as_deref();
            let before = before.filter(|_| change.action.is_replace());
            let refusal =
                before.and_then(|before| protected(rules, &change.address, before, "replaced"));
            let is_refused = refusal.is_some();
            findings.extend(refusal);
            is_refused
        });
        self.left_out.extend(refused.iter().map(|change| LeftOut {
            address: change.address.to_string(),
            count: 1,
            why: "it is protected against deletion".to_owned(),
        }));
        // What was planned for the slot without the held back change is part of it.
        let slots: HashSet<&Address> = released.iter().map(|change| &change.address).collect();
        self.changes
            .retain(|change| change.deposed.is_some() || !slots.contains(&change.address));
        for rollout in self
            .groups
            .iter_mut()
            .filter_map(|group| group.rollout.as_mut())
        {
            rollout
                .members
                .retain(|member| !slots.contains(&member.address));
        }
        self.changes.extend(released);
        self.changes.sort_by(Change::order);
        let no_op = self.summary.no_op;
        self.summary = Summary::of(&self.changes, &self.held_back, no_op);
        findings
    }

    /// Leaves out the slots that another process is changing: what it does is neither drift nor
    /// to be planned again.
    pub fn leave_out_open(&mut self, intents: &[Intent]) {
        let open: HashSet<&str> = intents
            .iter()
            .map(|intent| intent.address.as_str())
            .collect();
        let is_idle = |change: &Change| !open.contains(change.address.to_string().as_str());
        self.changes.retain(is_idle);
        self.held_back.retain(is_idle);
        self.drift
            .retain(|drift| !open.contains(drift.address.as_str()));
        self.summary = Summary::of(&self.changes, &self.held_back, self.summary.no_op);
    }

    /// Warnings about disks that stay when instances are deleted, one for each group.
    pub fn disks_that_stay(&self) -> Diagnostics {
        let rules = self.rules();
        let mut groups: BTreeMap<&GroupName, usize> = BTreeMap::new();
        let deleting =
            |change: &&Change| change.action == Action::Delete || change.action.is_replace();
        for change in self.changes.iter().filter(deleting) {
            let before = change.before.as_deref();
            if before.is_some_and(|before| rules.leaves_disks(&before.spec.args)) {
                *groups.entry(&change.address.group).or_default() += 1;
            }
        }
        let warning = |(group, count): (&GroupName, usize)| {
            let instances = counted(count, "instance");
            Diagnostic::warning(format!(
                "disks of {instances} of {group} stay when they are deleted"
            ))
            .about(group)
            .hint("Set `autoDelete` to true in `disks`, or delete the disks afterwards")
        };
        let mut findings = Diagnostics::default();
        findings.extend(groups.into_iter().map(warning));
        findings
    }

    /// Leaves out the late changes of groups.
    pub fn leave_out_late(&mut self, groups: &BTreeSet<&GroupName>) {
        let is_late =
            |change: &Change| !change.late.is_empty() && groups.contains(&change.address.group);
        let changes = self.changes.iter().chain(&self.held_back);
        self.left_out
            .extend(changes.filter(|it| is_late(it)).map(|change| LeftOut {
                address: change.address.to_string(),
                count: 1,
                why: "it needs an address that isn't known yet".to_owned(),
            }));
        self.changes.retain(|change| !is_late(change));
        self.held_back.retain(|change| !is_late(change));
        self.summary = Summary::of(&self.changes, &self.held_back, self.summary.no_op);
    }

    /// Whether an instance couldn't be planned.
    pub fn errored(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// The changes that are held back, by what holds them.
    pub fn held_back_by_cause(&self) -> Vec<(HoldBack, Vec<Change>)> {
        let causes = [HoldBack::Protect, HoldBack::Link, HoldBack::Opportunistic];
        let by_cause = causes.map(|cause| {
            let changes = self.held_back.iter();
            let changes = changes.filter(|change| change.held_back_by() == cause);
            (cause, changes.cloned().collect())
        });
        let by_cause = by_cause.into_iter();
        by_cause
            .filter(|(_, changes): &(_, Vec<_>)| !changes.is_empty())
            .collect()
    }

    /// The identity of the plan's state.
    pub fn identity(&self) -> Identity {
        Identity {
            cluster: self.cluster.clone(),
            shard: self.shard.clone(),
            provider: self.provider.clone(),
        }
    }

    /// The rules it was computed with.
    pub fn rules(&self) -> Rules {
        use crate::config::model::ProviderKind;
        Rules::of(match self.rules {
            RulesName::Aws => ProviderKind::Aws,
            RulesName::Gcp => ProviderKind::Gcp,
            RulesName::Sim => ProviderKind::Sim,
            RulesName::Yandex => ProviderKind::Yandex,
        })
    }

    /// All tags of one side of a change: the user's and the managed ones.
    pub fn tags(&self, address: &Address, side: &InstanceView) -> BTreeMap<String, String> {
        all_tags(self.rules(), &self.cluster, &self.shard, address, side)
    }

    /// Whether any part of it is sensitive.
    pub fn holds_secrets(&self) -> bool {
        let changes = self.changes.iter().chain(&self.held_back);
        let changes = changes.chain(&self.unchanged);
        let sides = changes
            .clone()
            .flat_map(|change| [&change.before, &change.after]);
        let fallbacks = changes.filter_map(|change| change.fallback.as_deref());
        let mut fallbacks = fallbacks.map(|fallback| &fallback.view);
        let drifted = self.drift.iter().map(|drift| &drift.before);
        let mut sides = sides.chain(drifted).flatten();
        sides.any(|side| !side.marks.is_empty())
            || fallbacks.any(|view| !view.marks.is_empty())
            || self.last_good.values().any(|good| good.is_sensitive)
            || self.late.values().any(LateGroup::is_sensitive)
            || self.manifest.is_some()
    }

    /// Lets reports show sensitive values.
    pub fn show_sensitive(&mut self) {
        let changes = self.changes.iter_mut().chain(&mut self.held_back);
        let changes = changes.chain(&mut self.unchanged);
        let sides = changes.flat_map(|change| [&mut change.before, &mut change.after]);
        let drifted = self.drift.iter_mut().map(|drift| &mut drift.before);
        for side in sides.chain(drifted).flatten() {
            side.marks = Marks::none();
        }
        if let Some(manifest) = &mut self.manifest {
            manifest.shows_sensitive = true;
        }
    }

    /// One side of a change as JSON, with sensitive values masked.
    pub fn view(&self, address: &Address, side: &InstanceView) -> Value {
        Self::view_with_tags(&side.covered(), &self.tags(address, side))
    }

    /// One side of a change as JSON, unmasked.
    pub fn view_in_clear(&self, address: &Address, side: &InstanceView) -> Value {
        Self::view_with_tags(side, &self.tags(address, side))
    }

    /// An instance as JSON with all its tags. The caller masks sensitive values.
    pub fn view_with_tags(side: &InstanceView, tags: &BTreeMap<String, String>) -> Value {
        let tags: serde_json::Map<_, _> = tags
            .iter()
            .map(|(key, value)| {
                // Masked user tags are masked here too.
                let own = side.spec.tags.get(key).filter(|own| *own == HIDDEN);
                (key.clone(), Value::from(own.unwrap_or(value).as_str()))
            })
            .collect();
        let files: serde_json::Map<_, _> = side
            .spec
            .files
            .iter()
            .map(|(name, file)| {
                let value = json!({"kind": file.kind, "content": file.content});
                (name.to_string(), value)
            })
            .collect();
        let mut view = json!({
            "instance_id": side.instance_id,
            "provider_id": side.provider_id,
            "kind": side.spec.head.kind,
            "arch": side.spec.head.arch,
            "instance_type": side.spec.head.instance_type,
            "zone": side.zone,
            "number_in_zone": (side.seat.number != 0).then_some(side.seat.number),
            "tag": (!side.seat.tag.is_empty()).then_some(&side.seat.tag),
            "subnet_pool": side.spec.head.subnet_pool,
            "subnet": side.subnet,
            "args": side.spec.args,
            "vars": side.spec.vars,
            "userdata": side.spec.userdata.as_ref().map(|userdata| userdata.content.display()),
            "files": files,
            "tags": tags,
            "load_balancers": side.spec.head.load_balancers,
        });
        if let Some(index) = side.index {
            view["index"] = index.into();
        }
        view
    }
}

/// The user's tags and the managed ones. The user may override `Name`.
pub fn all_tags(
    rules: Rules,
    cluster: &str,
    shard: &str,
    address: &Address,
    side: &InstanceView,
) -> BTreeMap<String, String> {
    let digest = side.digest.to_string();
    let mut tags = rules.managed_tags(&Ownership {
        cluster,
        shard,
        tenant: address.group.tenant(),
        group: address.group.name(),
        template: side.spec.head.template.as_deref().unwrap_or(""),
        kind: &side.spec.head.kind,
        slot: address.slot,
        instance_id: &side.instance_id,
        spec: &digest[..32],
    });
    for (key, value) in &side.spec.tags {
        if !rules.is_managed_tag(key) {
            tags.insert(key.clone(), value.clone());
        }
    }
    tags
}

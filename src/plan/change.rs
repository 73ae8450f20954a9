//! What a plan is made of.
//!
//! In: nothing (data only). Out: the types that `build` fills, reports print, plan files keep and
//! `apply` follows. Must not: decide anything.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_state::{Identity, Record, SpecDigest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::address::Address;
use crate::clock::Timestamp;
use crate::fault_injection::InjectedFault;
use crate::provider::Observation;
use crate::provider::rules::{Effect, Ownership, Rules};
use crate::render::files::Deferred;
use crate::sensitivity::{HIDDEN, Marks};
use crate::spec::SpecBody;

/// What is to be done with an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Made.
    Create,
    /// Changed in place.
    Update,
    /// Made anew, before its predecessor is deleted.
    CreateThenDelete,
    /// Made anew, after its predecessor is deleted: both can't be at once.
    DeleteThenCreate,
    /// Deleted.
    Delete,
    /// Recorded: it exists and is ours.
    Adopt,
    /// Dropped from the record: it is gone, or not ours any more.
    Forget,
    /// Left as it is.
    NoOp,
}

impl Action {
    /// Whether it makes a new instance in the place of another.
    pub fn is_replace(self) -> bool {
        matches!(self, Self::CreateThenDelete | Self::DeleteThenCreate)
    }

    /// Terraform's list of actions.
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

/// Why something is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Reason {
    /// A newer image was found.
    NewerImage {
        /// Its name.
        name: Arc<str>,
        /// What the instance was made with.
        from: String,
        /// What it resolves to now.
        to: String,
    },
    /// The group has fewer instances than its size.
    GroupGrew,
    /// The group has more instances than its size.
    GroupShrank,
    /// The group isn't configured any more.
    GroupRemoved,
    /// The recorded instance is gone from the cloud.
    Missing,
    /// An attribute changed that only a new instance can have.
    CannotUpdate,
    /// An attribute changed that can be changed in place.
    Changed,
    /// The cloud reports something else than what was recorded.
    Drifted,
    /// `--replace`
    Requested,
    /// `shard.expiry`
    Expired {
        /// Its age, in seconds.
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
    /// Its successor was created, it is still to be deleted.
    Deposed,
    /// It carries our tags and isn't recorded.
    Unrecorded,
    /// `moved_from`
    Moved {
        /// The former address.
        from: String,
    },
    /// `--refresh-only`
    RefreshOnly,
}

impl Reason {
    /// The `action_reason` of JSON, in Terraform's words where it has some.
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
        }
    }
}

/// An attribute that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributeChange {
    /// Where in the instance: `instance_type`, `args.MetadataOptions.HttpTokens`, `userdata`,
    /// `files.NAME`, `tags.NAME`, `vars.NAME`, …
    pub path: String,
    /// What it was; `None`: not there.
    pub before: Option<Value>,
    /// What it will be; `None`: not there, unless `unknown`.
    pub after: Option<Value>,
    /// It is known only after the change was made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// What it takes.
    pub effect: Effect,
    /// `file:line:column` of where the new value is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<String>,
}

/// An instance as it is or will be: a record and its spec.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceView {
    /// Our id.
    pub instance_id: Arc<str>,
    /// The cloud's id; `None` for one that doesn't exist yet.
    pub provider_id: Option<String>,
    /// Which instance of its slot.
    pub generation: u64,
    /// The zone.
    pub zone: Arc<str>,
    /// The subnet.
    pub subnet: Option<Arc<str>>,
    /// The address, where it is known.
    pub ip4: Option<Arc<str>>,
    /// The IPv6 address, where it is known.
    pub ip6: Option<Arc<str>>,
    /// When it was created, where it is known.
    pub created_at: Option<Timestamp>,
    /// The ids of the images it was rendered with.
    pub images: BTreeMap<Arc<str>, Arc<str>>,
    /// Whether its group is protected; kept in the record, so that it holds when the group is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// The parts of it that are masked.
    #[serde(default = "Marks::none", skip_serializing_if = "no_marks")]
    pub marks: Arc<Marks>,
    /// The version of its row when the plan was made; `None` where there is none.
    pub version: Option<u64>,
    /// What it is or must be.
    pub spec: Arc<SpecBody>,
    /// The spec's digest.
    pub digest: SpecDigest,
}

impl InstanceView {
    /// The instance of a record with a spec: the recorded one, or one rendered for it.
    pub fn of_record(record: &Record, spec: Arc<SpecBody>, digest: SpecDigest) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        let attributes = RecordAttributes::parse(&record.attributes);
        Self {
            instance_id: record.instance_id.as_str().into(),
            provider_id: Some(record.provider_id.clone()),
            generation: record.generation,
            zone: record.zone.as_str().into(),
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

    /// An instance that the cloud reports and no record has.
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

    /// The same with what mustn't be shown covered.
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

/// What a record's `attributes` hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordAttributes {
    /// The images it was rendered with.
    pub images: BTreeMap<Arc<str>, Arc<str>>,
    /// Whether its group is protected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// The parts of its spec that are masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<Arc<Marks>>,
}

impl RecordAttributes {
    /// Reads them; what can't be read is nothing.
    pub fn parse(text: &str) -> Self {
        if text == "{}" {
            Self::default()
        } else {
            serde_json::from_str(text).unwrap_or_default()
        }
    }

    /// The text the state keeps.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("its keys are strings")
    }
}

/// One address's change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The slot.
    pub address: Address,
    /// Set where it is not about the slot's instance but about another one in its place: the
    /// cloud's id of an old or duplicate instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// What is to be done.
    pub action: Action,
    /// Why; the first is the cause.
    pub reasons: Vec<Reason>,
    /// The cloud's id of an instance that is recorded first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importing: Option<String>,
    /// What it is.
    pub before: Option<Box<InstanceView>>,
    /// What it will be.
    pub after: Option<Box<InstanceView>>,
    /// What differs, sorted by path; only for updates and replacements.
    pub attributes: Vec<AttributeChange>,
    /// Files to be rendered once it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Box<Deferred>>,
    /// Where else it may be made, should its subnet have no capacity: the pool's further subnets
    /// in its zone, in order of preference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Arc<str>>,
    /// How long its connections may drain before it is deleted, in milliseconds.
    #[serde(default)]
    pub drain_timeout_ms: u64,
}

impl Change {
    /// A change without a before and an after, and with everything else empty.
    pub fn new(address: Address, action: Action, reasons: Vec<Reason>) -> Self {
        Self {
            address,
            deposed: None,
            action,
            reasons,
            importing: None,
            before: None,
            after: None,
            attributes: Vec::new(),
            deferred: None,
            alternatives: Vec::new(),
            drain_timeout_ms: 0,
        }
    }

    /// What is created by trying `place`: 0 is what was planned, each further one the next of the
    /// alternatives.
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

/// A group of the plan, and the groups that come before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedGroup {
    /// `tenant/group`
    pub name: String,
    /// Groups it depends on.
    pub after: Vec<String>,
}

/// What kind of plan it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Towards the configuration.
    #[default]
    Normal,
    /// Towards nothing.
    Destroy,
    /// Towards a record that says what the cloud says.
    RefreshOnly,
}

/// An image as the plan used it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedImage {
    /// The cloud's id.
    pub id: String,
    /// `lookup`, `cache` or `fallback`.
    pub source: String,
    /// When the cloud last said so.
    pub resolved_at: Option<Timestamp>,
}

/// How an observation differs from the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriftKind {
    /// Attributes differ.
    Changed,
    /// It is recorded and gone.
    Missing,
    /// It carries our tags and isn't recorded.
    Unknown,
    /// It claims a slot that another instance has.
    Duplicate,
}

impl DriftKind {
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

/// One attribute that drifted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriftedAttribute {
    /// Where in the instance; `state` for its life.
    pub path: String,
    /// What the record says; `None`: not there.
    pub recorded: Option<Value>,
    /// What the cloud says; `None`: not there.
    pub observed: Option<Value>,
}

impl DriftedAttribute {
    /// The change in place that makes the instance what the record says.
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
    /// Its address, or the one it claims; as text, since a claim may be anything.
    pub address: String,
    /// How.
    pub kind: DriftKind,
    /// The cloud's id.
    pub provider_id: String,
    /// What differs, sorted by path.
    pub changes: Vec<DriftedAttribute>,
    /// Whether the configuration says to live with it (`ignore_changes`).
    pub accepted: bool,
    /// The instance as recorded, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<InstanceView>>,
}

/// What apply would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What kind of plan.
    pub mode: Mode,
    /// `cluster.id`
    pub cluster: String,
    /// `shard.id`
    pub shard: String,
    /// What the state's identity calls the provider.
    pub provider: String,
    /// Whose rules it was made by.
    pub rules: RulesName,
    /// The name of the cloud that was asked.
    pub provider_name: String,
    /// Which state.
    pub lineage: String,
    /// Which version of it.
    pub serial: u64,
    /// Whether the state doesn't exist yet.
    pub new_state: bool,
    /// The configuration's files, if a recorded group isn't among its groups any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_from: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Images that were resolved.
    pub images: BTreeMap<String, PlannedImage>,
    /// Everything but what stays as it is; sorted by address, in a slot the deposed ones last.
    pub changes: Vec<Change>,
    /// What stays as it is, where the caller asked to keep it; not in plan files.
    #[serde(skip)]
    pub unchanged: Vec<Change>,
    /// What differs between record and cloud.
    pub drift: Vec<Drift>,
    /// How many of each.
    pub summary: Summary,
    /// What could not be planned; not empty: `errored`.
    pub left_out: Vec<LeftOut>,
    /// Deletions and their limits.
    pub deletions: Deletions,
    /// The groups with changes, each after those it depends on.
    pub groups: Vec<PlannedGroup>,
}

/// How many of each.
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
}

impl Summary {
    /// Counts one.
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

    /// Counts what another plan has.
    pub fn add(&mut self, other: &Self) {
        self.create += other.create;
        self.update += other.update;
        self.replace += other.replace;
        self.delete += other.delete;
        self.adopt += other.adopt;
        self.forget += other.forget;
        self.no_op += other.no_op;
    }

    /// What Terraform's line calls "to add": a replacement counts here and as destroyed.
    pub fn added(&self) -> usize {
        self.create + self.replace
    }

    /// What Terraform's line calls "to destroy".
    pub fn destroyed(&self) -> usize {
        self.delete + self.replace
    }

    /// Whether anything but no-op is planned.
    pub fn has_changes(&self) -> bool {
        self.create + self.update + self.replace + self.delete + self.adopt + self.forget > 0
    }
}

/// Instances that could not be planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// `tenant/group`, or one slot of it.
    pub address: String,
    /// How many instances.
    pub count: usize,
    /// Why.
    pub why: String,
}

/// Deletions against the destroy budget and protected groups.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deletions {
    /// Deletions by group (replacements aside).
    pub by_group: BTreeMap<String, usize>,
    /// Recorded instances.
    pub recorded: usize,
    /// `destroy_budget.count`
    pub budget_count: u32,
    /// `destroy_budget.percent`
    pub budget_percent: u32,
    /// Protected groups that lose instances.
    pub protected: Vec<String>,
}

impl Deletions {
    /// All deletions.
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

    /// How many deletions the budget forbids to apply, those of `allowed` groups aside: all or
    /// none. A destroy is exempt: deletions are what it is for.
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

    /// Whether that many deletions are more than both limits of the budget.
    fn exceeds(&self, count: usize) -> bool {
        count > self.budget_count as usize
            && count * 100 > self.budget_percent as usize * self.recorded
    }
}

/// A provider's rules by name, as plan files keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RulesName {
    /// EC2's.
    Aws,
    /// Compute Engine's.
    Gcp,
    /// The embedded cloud's.
    Sim,
}

/// What a caller allows an apply to do.
pub struct Allowance<'a> {
    /// Whether a group may lose instances beyond the budget, and though it is protected.
    pub deletes: &'a dyn Fn(&str) -> bool,
    /// Whether a plan that left something out may be applied.
    pub incomplete: bool,
}

/// Why a plan may not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal<'p> {
    /// It left something out.
    Incomplete,
    /// These protected groups would lose instances.
    Protected(Vec<&'p str>),
    /// So many deletions are more than the destroy budget allows.
    OverBudget(usize),
}

impl Plan {
    /// Why the plan may not be applied, if so.
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

    /// Whether something could not be planned.
    pub fn errored(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// The state's identity.
    pub fn identity(&self) -> Identity {
        Identity {
            cluster: self.cluster.clone(),
            shard: self.shard.clone(),
            provider: self.provider.clone(),
        }
    }

    /// The rules it was made by.
    pub fn rules(&self) -> Rules {
        use crate::config::model::ProviderKind;
        Rules::of(match self.rules {
            RulesName::Aws => ProviderKind::Aws,
            RulesName::Gcp => ProviderKind::Gcp,
            RulesName::Sim => ProviderKind::Sim,
        })
    }

    /// All tags of one side of a change: the user's and those that say who it is.
    pub fn tags(&self, address: &Address, side: &InstanceView) -> BTreeMap<String, String> {
        all_tags(self.rules(), &self.cluster, &self.shard, address, side)
    }

    /// Whether anything in it mustn't be shown.
    pub fn holds_secrets(&self) -> bool {
        let changes = self.changes.iter().chain(&self.unchanged);
        let sides = changes.flat_map(|change| [&change.before, &change.after]);
        let drifted = self.drift.iter().map(|drift| &drift.before);
        let mut sides = sides.chain(drifted).flatten();
        sides.any(|side| !side.marks.is_empty())
    }

    /// One side of a change in the form that documents have, what mustn't be shown
    /// covered.
    pub fn view(&self, address: &Address, side: &InstanceView) -> Value {
        Self::view_with_tags(&side.covered(), &self.tags(address, side))
    }

    /// The same with nothing covered.
    pub fn view_in_clear(&self, address: &Address, side: &InstanceView) -> Value {
        Self::view_with_tags(side, &self.tags(address, side))
    }

    /// An instance as it stands in documents, given all its tags. What is covered is for the caller
    /// to say.
    pub fn view_with_tags(side: &InstanceView, tags: &BTreeMap<String, String>) -> Value {
        let tags: serde_json::Map<_, _> = tags
            .iter()
            .map(|(key, value)| {
                // Those of the user's are covered where the side is.
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
        json!({
            "instance_id": side.instance_id,
            "provider_id": side.provider_id,
            "kind": side.spec.head.kind,
            "arch": side.spec.head.arch,
            "instance_type": side.spec.head.instance_type,
            "zone": side.zone,
            "subnet_pool": side.spec.head.subnet_pool,
            "subnet": side.subnet,
            "args": side.spec.args,
            "vars": side.spec.vars,
            "userdata": side.spec.userdata.as_ref().map(|userdata| userdata.content.display()),
            "files": files,
            "tags": tags,
            "load_balancers": side.spec.head.load_balancers,
        })
    }
}

/// The user's tags and those that say who an instance is; `Name` may be the user's.
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

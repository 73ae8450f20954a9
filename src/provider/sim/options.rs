//! `shard.infra.options` of the embedded cloud.
//!
//! In: the options' [`Node`]. Out: [`SimOptions`], and findings. Must not: open the database.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::config::node::{Entry, Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::provider::CloudErrorKind;
use crate::provider::aws::AwsOptions;
use crate::provider::gcp::GcpOptions;
use crate::provider::options::{Reader, given, number};

use super::images::SimImage;

/// The default path of the database.
pub const DEFAULT_PATH: &str = ".nstance/sim.db";

/// The maximum number of addresses of a simulated subnet.
const MAX_SUBNET_SIZE: u32 = 8_000_000;

/// The options of the embedded cloud; the table in [`super`] describes them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimOptions {
    /// `path`, as written; the caller resolves it. `None` means [`DEFAULT_PATH`].
    pub path: Option<String>,
    /// `seed`
    pub seed: u64,
    /// `latency`
    pub latency: Duration,
    /// `boot_time`
    pub boot_time: Duration,
    /// `wait_timeout`; `None` means the default.
    pub wait_timeout: Option<Duration>,
    /// `stale_listing`
    pub stale_listing: Duration,
    /// `error_rate`, 0 to 1.
    pub error_rate: f64,
    /// `lost_answer_rate`, 0 to 1.
    pub lost_answer_rate: f64,
    /// `unhealthy`: the share of instances that never become healthy, 0 to 1, by the id or name of
    /// their image.
    pub unhealthy: BTreeMap<String, f64>,
    /// `healthy_after`
    pub healthy_after: Duration,
    /// `throttle`: calls per second, greater than 0.
    pub throttle: Option<f64>,
    /// `capacity`: the maximum number of instances, by type.
    pub capacity: BTreeMap<String, u32>,
    /// `quota`: the maximum number of instances.
    pub quota: Option<u32>,
    /// `subnets`, by id.
    pub subnets: BTreeMap<String, SubnetOption>,
    /// `images`, in addition to the catalogue.
    pub images: Vec<SimImage>,
    /// `fail`, in the order written.
    pub fail: Vec<FailRule>,
    /// `strict_images`
    pub strict_images: bool,
    /// `strict_subnets`
    pub strict_subnets: bool,
}

/// One of `subnets`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetOption {
    /// `zone`; `None` if it spans zones.
    pub zone: Option<String>,
    /// `size`: the number of addresses, by default 251.
    pub size: u32,
    /// `capacity`: the maximum number of instances, independent of its addresses.
    pub capacity: Option<u32>,
}

/// The operations that `fail` can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `create`
    Create,
    /// `update`
    Update,
    /// `delete`
    Delete,
    /// `register`
    Register,
    /// `deregister`
    Deregister,
    /// `list`
    List,
    /// `describe`
    Describe,
    /// `images`
    Images,
    /// `subnets`
    Subnets,
    /// `target-health`
    TargetHealth,
}

impl Operation {
    const ALL: [Self; 10] = [
        Self::Create,
        Self::Update,
        Self::Delete,
        Self::Register,
        Self::Deregister,
        Self::List,
        Self::Describe,
        Self::Images,
        Self::Subnets,
        Self::TargetHealth,
    ];

    /// The name in `fail`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Register => "register",
            Self::Deregister => "deregister",
            Self::List => "list",
            Self::Describe => "describe",
            Self::Images => "images",
            Self::Subnets => "subnets",
            Self::TargetHealth => "target-health",
        }
    }

    /// Whether it changes anything.
    pub fn has_effect(self) -> bool {
        match self {
            Self::Create | Self::Update | Self::Delete | Self::Register | Self::Deregister => true,
            Self::List | Self::Describe | Self::Images | Self::Subnets | Self::TargetHealth => {
                false
            }
        }
    }
}

/// One of `fail`: the calls of an operation numbered `after` to `after + count - 1` fail, counted
/// from 0 since the rule was first used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailRule {
    /// `operation`
    pub operation: Operation,
    /// `after`, by default 0: the number of calls that succeed first.
    pub after: u64,
    /// `count`, by default 1: the number of calls that fail then.
    pub count: u64,
    /// `error`. [`CloudErrorKind::Ambiguous`] takes effect and loses the answer; all other kinds
    /// fail without effect.
    pub error: CloudErrorKind,
}

const KEYS: [&str; 18] = [
    "path",
    "seed",
    "latency",
    "boot_time",
    "wait_timeout",
    "stale_listing",
    "error_rate",
    "lost_answer_rate",
    "unhealthy",
    "healthy_after",
    "throttle",
    "capacity",
    "quota",
    "subnets",
    "images",
    "fail",
    "strict_images",
    "strict_subnets",
];

impl SimOptions {
    /// Reads the options. An invalid one is reported and gets its default.
    pub fn from_node(node: Option<&Node>, findings: &mut Diagnostics) -> Self {
        let mut options = Self::default();
        let mut read = Reader { findings };
        let node = node.filter(|node| node.value != NodeValue::Null);
        let entries = node.and_then(|node| read.known_object("options", "`options`", node));
        for (key, value) in entries.unwrap_or_default() {
            match key {
                "path" => options.path = read.text(key, value),
                "seed" => options.seed = read.whole(key, value, 0..=u64::MAX).unwrap_or(0),
                "latency" => options.latency = read.duration(key, value, Duration::ZERO),
                "boot_time" => options.boot_time = read.duration(key, value, Duration::ZERO),
                "wait_timeout" => {
                    options.wait_timeout = Some(read.duration(key, value, Duration::ZERO));
                }
                "stale_listing" => {
                    options.stale_listing = read.duration(key, value, Duration::ZERO);
                }
                "error_rate" => options.error_rate = read.rate(key, value),
                "lost_answer_rate" => options.lost_answer_rate = read.rate(key, value),
                "unhealthy" => options.unhealthy = read.shares(key, value),
                "healthy_after" => {
                    options.healthy_after = read.duration(key, value, Duration::ZERO);
                }
                "throttle" => options.throttle = read.call_rate(key, value),
                "capacity" => options.capacity = read.capacity(key, value),
                "quota" => options.quota = read.count(key, value),
                "subnets" => options.subnets = read.subnets(key, value),
                "images" => options.images = read.list(key, value, Reader::image),
                "fail" => options.fail = read.list(key, value, Reader::fail_rule),
                "strict_images" => options.strict_images = read.flag(key, value),
                "strict_subnets" => options.strict_subnets = read.flag(key, value),
                // `object` reported unknown keys; those of other clouds are ignored.
                _ => {}
            }
        }
        options
    }
}

/// The keys of `options`, or of an element of one of them.
fn known_keys(of: &str) -> &'static [&'static str] {
    match of {
        "subnets" => &["zone", "size", "capacity"],
        "images" => &["id", "name", "created", "owner", "arch", "tags"],
        "fail" => &["operation", "after", "count", "error"],
        _ => &KEYS,
    }
}

impl Reader<'_> {
    /// Reports the required keys that an object of a list lacks.
    fn lacks(&mut self, list: &str, node: &Node, keys: &[&str]) {
        let entries = node.entries();
        let has = |key: &str| {
            entries.iter().any(|entry| {
                let is_it = &*entry.key == key && entry.value.value != NodeValue::Null;
                let is_meant = !known_keys(list).contains(&&*entry.key)
                    && nearest(&entry.key, known_keys(list).iter().copied()) == Some(key);
                is_it || is_meant
            })
        };
        let missing: Vec<String> = keys
            .iter()
            .filter(|key| !has(key))
            .map(|key| format!("`{key}`"))
            .collect();
        if missing.is_empty() {
            return;
        }
        let missing = missing.join(" and ");
        self.findings.push(
            Diagnostic::error(format!("an item of `{list}` lacks {missing}"))
                .at(node.span, format!("{missing} must be given here")),
        );
    }

    /// The error that a word isn't one of the choices.
    fn no_such(&mut self, key: &str, node: &Node, choices: &[&str]) {
        let wanted = format!("one of {}", choices.join(", "));
        let Some(word) = node.as_str() else {
            return self.wrong(key, node, &wanted);
        };
        let finding = Diagnostic::error(format!("`{key}` can't be `{word}`"))
            .at(node.span, format!("expected {wanted}"));
        let near = nearest(word, choices.iter().copied());
        self.findings.push(finding.suggest(near));
    }

    /// The entries of an object, without nulls.
    fn entries<'n>(&mut self, key: &str, node: &'n Node) -> Vec<(&'n str, &'n Node)> {
        match &node.value {
            NodeValue::Object(_) => given(node),
            NodeValue::Null => Vec::new(),
            _ => {
                self.wrong(key, node, "an object");
                Vec::new()
            }
        }
    }

    /// The entries of an object with known keys: those of `options`, or of an element. `None` if it
    /// isn't an object; messages call it `name`.
    fn known_object<'n>(
        &mut self,
        of: &str,
        name: &str,
        node: &'n Node,
    ) -> Option<Vec<(&'n str, &'n Node)>> {
        let unknown = |entry: &Entry| {
            let key = &*entry.key;
            let is_of_others =
                GcpOptions::names().contains(&key) || AwsOptions::names().contains(&key);
            let finding =
                Diagnostic::error(format!("`{key}` isn't an option of the simulated cloud"))
                    .at(entry.key_span, format!("not known in `{of}`"));
            (of != "options" || !is_of_others).then_some(finding)
        };
        self.object(name, node, known_keys(of), unknown)
    }

    fn count(&mut self, key: &str, node: &Node) -> Option<u32> {
        self.whole(key, node, 0..=u64::from(u32::MAX))
            .and_then(|number| u32::try_from(number).ok())
    }

    fn rate(&mut self, key: &str, node: &Node) -> f64 {
        let rate = number(node).filter(|rate| (0.0..=1.0).contains(rate));
        if rate.is_none() {
            self.wrong(key, node, "a number from 0 to 1");
        }
        rate.unwrap_or(0.0)
    }

    /// A share by name.
    fn shares(&mut self, key: &str, node: &Node) -> BTreeMap<String, f64> {
        let entries = self.entries(key, node);
        entries
            .into_iter()
            .map(|(name, value)| (name.to_owned(), self.rate(&format!("{key}.{name}"), value)))
            .collect()
    }

    fn list<T>(
        &mut self,
        key: &str,
        node: &Node,
        read: fn(&mut Self, &Node) -> Option<T>,
    ) -> Vec<T> {
        let NodeValue::Array(items) = &node.value else {
            self.wrong(key, node, "an array");
            return Vec::new();
        };
        items.iter().filter_map(|item| read(self, item)).collect()
    }

    fn capacity(&mut self, key: &str, node: &Node) -> BTreeMap<String, u32> {
        let entries = self.entries(key, node);
        entries
            .into_iter()
            .filter_map(|(instance_type, value)| {
                let count = self.count(&format!("{key}.{instance_type}"), value)?;
                Some((instance_type.to_owned(), count))
            })
            .collect()
    }

    fn subnets(&mut self, key: &str, node: &Node) -> BTreeMap<String, SubnetOption> {
        let entries = self.entries(key, node);
        entries
            .into_iter()
            .map(|(id, value)| {
                let mut subnet = SubnetOption {
                    zone: None,
                    size: super::network::DEFAULT_SIZE,
                    capacity: None,
                };
                let name = format!("`{key}.{id}`");
                let entries = self.known_object("subnets", &name, value);
                for (key, value) in entries.unwrap_or_default() {
                    match key {
                        "zone" => subnet.zone = self.text(key, value),
                        "size" => {
                            let size = self.whole(key, value, 0..=u64::from(MAX_SUBNET_SIZE));
                            subnet.size = size.map_or(subnet.size, |size| size as u32);
                        }
                        "capacity" => subnet.capacity = self.count(key, value),
                        _ => {}
                    }
                }
                (id.to_owned(), subnet)
            })
            .collect()
    }

    fn image(&mut self, node: &Node) -> Option<SimImage> {
        let mut image = SimImage::default();
        for (key, value) in self.known_object("images", "an item of `images`", node)? {
            match key {
                "id" => image.id = self.text(key, value).unwrap_or_default(),
                "name" => image.name = self.text(key, value).unwrap_or_default(),
                "created" => image.created = self.created(key, value).unwrap_or_default(),
                "owner" => image.owner = self.text(key, value).unwrap_or_default(),
                "arch" => image.arch = self.arch(key, value).unwrap_or_default(),
                "tags" => {
                    for (tag, value) in self.entries(key, value) {
                        let value = self.text(&format!("{key}.{tag}"), value);
                        image.tags.insert(tag.to_owned(), value.unwrap_or_default());
                    }
                }
                _ => {}
            }
        }
        self.lacks("images", node, &["id", "name"]);
        image.take_after_catalogue();
        Some(image)
    }

    fn arch(&mut self, key: &str, node: &Node) -> Option<String> {
        let arch = node.as_str().unwrap_or_default();
        let other_name = match arch {
            "amd64" | "arm64" => return Some(arch.to_owned()),
            "x86_64" | "x86-64" | "x64" => Some("amd64"),
            "aarch64" => Some("arm64"),
            _ => None,
        };
        let before = self.findings.len();
        self.no_such(key, node, &["amd64", "arm64"]);
        if let Some(name) = other_name {
            for finding in self.findings.iter_mut().skip(before) {
                finding.hints = vec![format!("it is called `{name}` here")];
            }
        }
        None
    }

    /// A time in RFC 3339, stored as written, since the cloud's own form sorts as text.
    fn created(&mut self, key: &str, node: &Node) -> Option<String> {
        let text = node
            .as_str()
            .filter(|text| crate::clock::Timestamp::parse(text).is_ok());
        if text.is_none() {
            self.wrong(key, node, "a time such as \"2026-09-14T00:00:00.000Z\"");
        }
        text.map(str::to_owned)
    }

    fn fail_rule(&mut self, node: &Node) -> Option<FailRule> {
        let mut operation = None;
        let (mut after, mut count, mut error) = (None, None, None);
        for (key, value) in self.known_object("fail", "an item of `fail`", node)? {
            match key {
                "operation" => operation = self.operation(key, value),
                "after" => after = self.whole(key, value, 0..=u64::MAX),
                "count" => count = self.whole(key, value, 0..=u64::MAX),
                "error" => error = self.error_kind(key, value),
                _ => {}
            }
        }
        self.lacks("fail", node, &["operation"]);
        Some(FailRule {
            operation: operation?,
            after: after.unwrap_or(0),
            count: count.unwrap_or(1),
            error: error.unwrap_or(CloudErrorKind::Transient),
        })
    }

    fn operation(&mut self, key: &str, node: &Node) -> Option<Operation> {
        let name = node.as_str();
        let found = Operation::ALL
            .into_iter()
            .find(|one| name == Some(one.as_str()));
        if found.is_none() {
            self.no_such(key, node, &Operation::ALL.map(Operation::as_str));
        }
        found
    }

    /// An error kind, by its name in JSON.
    fn error_kind(&mut self, key: &str, node: &Node) -> Option<CloudErrorKind> {
        let kind = serde_json::from_value(node.to_json()).ok();
        if kind.is_none() {
            let kinds = [
                "throttled",
                "transient",
                "ambiguous",
                "capacity",
                "quota",
                "not-found",
                "invalid",
                "denied",
                "token-mismatch",
                "unavailable",
            ];
            self.no_such(key, node, &kinds);
        }
        kind
    }
}

//! `shard.infra.options` for Google Cloud.
//!
//! In: the options' [`Node`]. Out: [`GcpOptions`], and findings. Must not: read the environment, or
//! call Compute Engine.

use std::time::Duration;

use crate::config::node::{Entry, Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::DEFAULT_WAIT_TIMEOUT;
use crate::provider::limits::Rate;
use crate::provider::options::{Reader, rate, url};

/// Options of the client for Compute Engine.
#[derive(Debug, Clone, PartialEq)]
pub struct GcpOptions {
    /// `project_id`: the project; by default from the environment.
    pub project_id: Option<String>,
    /// `endpoint`: the address of the API, instead of Google's.
    pub endpoint: Option<String>,
    /// `anonymous`: whether to ask without credentials, which only a test's server accepts.
    pub anonymous: bool,
    /// `impersonate_service_account`: the e-mail of a service account to act as.
    pub impersonate: Option<String>,
    /// `read_rate`: the rate limit of reads.
    pub read_rate: Rate,
    /// `write_rate`: the rate limit of changes.
    pub write_rate: Rate,
    /// `visibility_window`: how long a listing may lack a new instance.
    pub visibility_window: Duration,
    /// `wait_timeout`: the timeout for an operation to end.
    pub wait_timeout: Duration,
    /// `poll_interval`: how often it is polled.
    pub poll_interval: Duration,
    /// `userdata_key`: the metadata key of userdata.
    pub userdata_key: Option<String>,
    /// `ignore_labels`: labels that others manage; a trailing `*` is a wildcard.
    pub ignore_labels: Vec<String>,
}

impl Default for GcpOptions {
    fn default() -> Self {
        Self {
            project_id: None,
            endpoint: None,
            anonymous: false,
            impersonate: None,
            // Compute Engine allows 1,500 reads and 1,500 changes a minute in each project.
            read_rate: Rate {
                burst: 100,
                per_second: 20.0,
            },
            write_rate: Rate {
                burst: 100,
                per_second: 20.0,
            },
            visibility_window: Duration::from_secs(30),
            wait_timeout: DEFAULT_WAIT_TIMEOUT,
            poll_interval: Duration::from_secs(2),
            userdata_key: None,
            ignore_labels: Vec::new(),
        }
    }
}

const KEYS: [&str; 11] = [
    "project_id",
    "endpoint",
    "anonymous",
    "impersonate_service_account",
    "read_rate",
    "write_rate",
    "visibility_window",
    "wait_timeout",
    "poll_interval",
    "userdata_key",
    "ignore_labels",
];

impl GcpOptions {
    /// The names of all options.
    pub fn names() -> &'static [&'static str] {
        &KEYS
    }

    /// Reads the options. An invalid one is reported and gets its default.
    pub fn from_node(node: Option<&Node>, findings: &mut Diagnostics) -> Self {
        let mut options = Self::default();
        let mut read = Reader { findings };
        // An unknown option is a warning, since it has no effect.
        let unknown = |entry: &Entry| {
            let summary = format!("nothing reads the option `{}` of this provider", entry.key);
            Some(Diagnostic::warning(summary).at(entry.key_span, "has no effect"))
        };
        let node = node.filter(|node| node.value != NodeValue::Null);
        let entries = node.and_then(|node| read.object("`options`", node, &KEYS, unknown));
        for (key, value) in entries.unwrap_or_default() {
            match key {
                "project_id" => options.project_id = read.text(key, value),
                "endpoint" => options.endpoint = url(&mut read, key, value),
                "anonymous" => options.anonymous = read.flag(key, value),
                "impersonate_service_account" => options.impersonate = read.text(key, value),
                "read_rate" => options.read_rate = rate(&mut read, key, value, options.read_rate),
                "write_rate" => {
                    options.write_rate = rate(&mut read, key, value, options.write_rate);
                }
                "visibility_window" | "wait_timeout" | "poll_interval" => {
                    let duration = match key {
                        "visibility_window" => &mut options.visibility_window,
                        "wait_timeout" => &mut options.wait_timeout,
                        _ => &mut options.poll_interval,
                    };
                    let read_duration = read.duration(key, value, *duration);
                    if key == "poll_interval" && read_duration.is_zero() {
                        read.wrong(key, value, "more than nothing");
                    } else {
                        *duration = read_duration;
                    }
                }
                "userdata_key" => options.userdata_key = read.text(key, value),
                "ignore_labels" => options.ignore_labels = labels(&mut read, key, value),
                // `object` reported unknown keys.
                _ => {}
            }
        }
        options
    }

    /// Whether others manage a label.
    pub fn ignores_label(&self, key: &str) -> bool {
        self.ignore_labels.iter().any(|pattern| {
            pattern
                .strip_suffix('*')
                .map_or(pattern == key, |prefix| key.starts_with(prefix))
        })
    }
}

fn labels(read: &mut Reader<'_>, key: &str, node: &Node) -> Vec<String> {
    let NodeValue::Array(items) = &node.value else {
        read.wrong(key, node, "a list of names of labels");
        return Vec::new();
    };
    let mut labels = Vec::new();
    for item in items {
        let Some(text) = read.text("a name of `ignore_labels`", item) else {
            continue;
        };
        if "nstance-".starts_with(text.trim_end_matches('*')) || text.starts_with("nstance-") {
            read.findings.push(
                Diagnostic::error(format!("the label `{text}` can't be ignored"))
                    .at(item.span, "instances are found by the labels of nstance"),
            );
            continue;
        }
        labels.push(text);
    }
    labels
}

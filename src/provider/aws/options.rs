//! `shard.infra.options` for AWS.
//!
//! In: the options' [`Node`]. Out: [`AwsOptions`], and findings. Must not: read the environment, or
//! call AWS.

use std::time::Duration;

use crate::config::node::{Entry, Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::DEFAULT_WAIT_TIMEOUT;
use crate::provider::limits::Rate;
use crate::provider::options::{Reader, rate, url};

/// Options of the AWS client.
#[derive(Debug, Clone, PartialEq)]
pub struct AwsOptions {
    /// `profile`: a profile of the shared configuration; by default from the environment.
    pub profile: Option<String>,
    /// `role_arn`: a role to assume.
    pub role_arn: Option<String>,
    /// `endpoint_url`: the endpoint of all services, instead of AWS's.
    pub endpoint_url: Option<String>,
    /// `read_rate`: the rate limit of reads.
    pub read_rate: Rate,
    /// `run_rate`: the rate limit of creating instances.
    pub run_rate: Rate,
    /// `visibility_window`: how long a listing may lack a new instance.
    pub visibility_window: Duration,
    /// `wait_timeout`: the timeout for an instance to run, stop or terminate.
    pub wait_timeout: Duration,
    /// `poll_interval`: how often it is polled.
    pub poll_interval: Duration,
    /// `userdata_drift`: whether to compare userdata.
    pub userdata_drift: bool,
    /// `ignore_tags`: tags that others manage; a trailing `*` is a wildcard.
    pub ignore_tags: Vec<String>,
}

impl Default for AwsOptions {
    fn default() -> Self {
        Self {
            profile: None,
            role_arn: None,
            endpoint_url: None,
            read_rate: Rate {
                burst: 100,
                per_second: 20.0,
            },
            run_rate: Rate {
                burst: 1_000,
                per_second: 2.0,
            },
            visibility_window: Duration::from_secs(30),
            wait_timeout: DEFAULT_WAIT_TIMEOUT,
            poll_interval: Duration::from_secs(5),
            userdata_drift: false,
            ignore_tags: Vec::new(),
        }
    }
}

const KEYS: [&str; 10] = [
    "profile",
    "role_arn",
    "endpoint_url",
    "read_rate",
    "run_rate",
    "visibility_window",
    "wait_timeout",
    "poll_interval",
    "userdata_drift",
    "ignore_tags",
];

impl AwsOptions {
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
                "profile" => options.profile = read.text(key, value),
                "role_arn" => options.role_arn = role(&mut read, key, value),
                "endpoint_url" => options.endpoint_url = url(&mut read, key, value),
                "read_rate" => options.read_rate = rate(&mut read, key, value, options.read_rate),
                "run_rate" => options.run_rate = rate(&mut read, key, value, options.run_rate),
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
                "userdata_drift" => options.userdata_drift = read.flag(key, value),
                "ignore_tags" => options.ignore_tags = tags(&mut read, key, value),
                // `object` reported unknown keys.
                _ => {}
            }
        }
        options
    }

    /// Whether others manage a tag.
    pub fn ignores_tag(&self, key: &str) -> bool {
        self.ignore_tags.iter().any(|pattern| {
            pattern
                .strip_suffix('*')
                .map_or(pattern == key, |prefix| key.starts_with(prefix))
        })
    }
}

fn role(read: &mut Reader<'_>, key: &str, node: &Node) -> Option<String> {
    let text = read.text(key, node)?;
    let is_role = text.starts_with("arn:") && text.contains(":role/");
    if !is_role {
        read.findings.push(
            Diagnostic::error(format!("`{key}` isn't the ARN of a role"))
                .at(node.span, "expected `arn:aws:iam::ACCOUNT:role/NAME`"),
        );
    }
    is_role.then_some(text)
}

fn tags(read: &mut Reader<'_>, key: &str, node: &Node) -> Vec<String> {
    let NodeValue::Array(items) = &node.value else {
        read.wrong(key, node, "a list of names of tags");
        return Vec::new();
    };
    let mut tags = Vec::new();
    for item in items {
        let Some(text) = read.text("a name of `ignore_tags`", item) else {
            continue;
        };
        if "nstance:".starts_with(text.trim_end_matches('*')) || text.starts_with("nstance:") {
            read.findings.push(
                Diagnostic::error(format!("the tag `{text}` can't be ignored"))
                    .at(item.span, "instances are found by the tags of nstance")
                    .hint("name tags of others, such as `kubernetes.io/*`"),
            );
            continue;
        }
        tags.push(text);
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::jsonc;
    use crate::config::source::SourceId;

    fn read(options: &str) -> (AwsOptions, Vec<String>) {
        let node = jsonc::read(SourceId(0), options).expect("it is an object");
        let mut findings = Diagnostics::default();
        let options = AwsOptions::from_node(Some(&node), &mut findings);
        (
            options,
            findings.iter().map(|f| f.summary.clone()).collect(),
        )
    }

    #[test]
    fn options_are_read() {
        let (options, findings) = read(
            r#"{"profile": "p", "role_arn": "arn:aws:iam::123456789012:role/deploy",
            "endpoint_url": "http://127.0.0.1:5000", "read_rate": {"burst": 5, "per_second": 0.5},
            "run_rate": {"per_second": 4}, "visibility_window": "2s", "wait_timeout": "1m",
            "poll_interval": "100ms", "userdata_drift": true, "ignore_tags": ["kubernetes.io/*", "owner"]}"#,
        );
        assert_eq!(findings, Vec::<String>::new());
        assert_eq!(options.profile.as_deref(), Some("p"));
        assert_eq!(options.read_rate.burst, 5);
        assert!((options.read_rate.per_second - 0.5).abs() < 1e-9);
        assert_eq!(options.run_rate.burst, 1_000);
        assert_eq!(options.poll_interval, Duration::from_millis(100));
        assert!(options.userdata_drift);
        for (tag, ignored) in [
            ("kubernetes.io/cluster/x", true),
            ("owner", true),
            ("owners", false),
            ("team", false),
        ] {
            assert_eq!(options.ignores_tag(tag), ignored, "{tag}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (options, expected) in [
            (
                r#"{"profle": "p"}"#,
                "nothing reads the option `profle` of this provider",
            ),
            (
                r#"{"profile": 1}"#,
                "`profile` must be a string that isn't empty",
            ),
            (
                r#"{"role_arn": "deploy"}"#,
                "`role_arn` isn't the ARN of a role",
            ),
            (
                r#"{"endpoint_url": "localhost"}"#,
                "`endpoint_url` isn't a URL",
            ),
            (r#"{"read_rate": 5}"#, "`read_rate` must be an object"),
            (
                r#"{"read_rate": {"rate": 5}}"#,
                "`rate` isn't a part of `read_rate`",
            ),
            (
                r#"{"run_rate": {"burst": 0}}"#,
                "`burst` must be a whole number, at least 1",
            ),
            (
                r#"{"run_rate": {"per_second": 0}}"#,
                "`per_second` must be calls a second, more than 0",
            ),
            (
                r#"{"wait_timeout": "soon"}"#,
                "`wait_timeout` isn't a duration",
            ),
            (
                r#"{"poll_interval": "0s"}"#,
                "`poll_interval` must be more than nothing",
            ),
            (
                r#"{"userdata_drift": "yes"}"#,
                "`userdata_drift` must be true or false",
            ),
            (r#"{"ignore_tags": ["*"]}"#, "the tag `*` can't be ignored"),
            (
                r#"{"ignore_tags": ["nstance:slot"]}"#,
                "the tag `nstance:slot` can't be ignored",
            ),
        ] {
            assert_eq!(read(options).1, [expected], "{options}");
        }
    }
}

//! What is declared: a few groups, and the configuration that says so.

use std::fmt::Write as _;

use nstance::address::Address;
use nstance::check::Purpose;
use nstance::config::load::Loaded;
use nstance::config::variables::Given;
use nstance::load::load_text;

use crate::policy::Policy;

/// A secret in the userdata of every instance.
pub(crate) const CANARY: &str = "correct-horse-battery-staple";

/// The load balancer of the groups that have one.
pub(crate) const BALANCER: &str = "front";

/// One group of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) size: u32,
    /// Changes in place, with a restart.
    pub(crate) instance_type: &'static str,
    /// Changes by replacement.
    pub(crate) image: &'static str,
    /// Changes in place.
    pub(crate) colour: &'static str,
    /// Only one instance can have it: the old one goes before the new one comes.
    pub(crate) fixed_address: Option<&'static str>,
    /// Whether a file waits for the instance's address.
    pub(crate) file: bool,
    pub(crate) depends_on: Vec<&'static str>,
    /// Whether it is placed in one of three subnets; changes by replacement.
    pub(crate) pool: bool,
    /// How it is replaced.
    pub(crate) policy: Option<Policy>,
    /// Whether it is registered with a load balancer.
    pub(crate) balanced: bool,
    /// Whether it is in two zones.
    pub(crate) zones: bool,
    /// The group whose addresses its texts have.
    pub(crate) link: Option<Link>,
}

/// The group whose addresses a group's texts have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// In userdata.
    Userdata(&'static str),
    /// In an exported file.
    File(&'static str),
}

impl Group {
    pub(crate) fn new(name: &'static str, size: u32) -> Self {
        Self {
            name,
            size,
            instance_type: "small",
            image: "img-a",
            colour: "blue",
            fixed_address: None,
            file: false,
            depends_on: Vec::new(),
            pool: false,
            policy: None,
            balanced: false,
            zones: false,
            link: None,
        }
    }
}

/// Everything that is declared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) groups: Vec<Group>,
}

impl Fleet {
    /// How many instances, and which part of those recorded, may be deleted unasked.
    pub(crate) const BUDGET: (usize, usize) = (1, 30);

    pub(crate) fn of(groups: impl Into<Vec<Group>>) -> Self {
        Self {
            groups: groups.into(),
        }
    }

    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        let short = name.strip_prefix("default/").unwrap_or(name);
        self.groups.iter().find(|group| group.name == short)
    }

    /// Whether a group is only replaced where that is allowed.
    pub(crate) fn is_opportunistic(&self, name: &str) -> bool {
        let group = self.group(name);
        group.is_some_and(|it| {
            it.policy
                .as_ref()
                .is_some_and(|policy| policy.opportunistic)
        })
    }

    /// The groups that are to be rolled back after a failure.
    pub(crate) fn going_back(&self) -> impl Iterator<Item = &Group> {
        let goes_back = |it: &&Group| it.policy.as_ref().is_some_and(Policy::goes_back);
        self.groups.iter().filter(goes_back)
    }

    /// Whether a group's policy refuses some changes.
    pub(crate) fn forbids(&self) -> bool {
        let mut policies = self.groups.iter().filter_map(|group| group.policy.as_ref());
        policies.any(Policy::forbids)
    }

    /// Whether an address is declared, as `apply` asks it of recovery.
    pub(crate) fn wants(&self, address: &Address) -> bool {
        self.group(address.group.as_str())
            .is_some_and(|group| address.slot < group.size)
    }

    pub(crate) fn load(&self) -> Loaded {
        let (count, percent) = Self::BUDGET;
        let mut text = format!(
            r##"{{"cluster": {{"id": "sea"}},
"shard": {{"id": "reef", "infra": {{"provider": "sim", "region": "r", "zone": "za"}},
  "subnet_pools": {{"shoal": ["sub-a", "sub-b", "sub-c"]}}}},
"load_balancers": {{"{BALANCER}": {{"provider": "sim"}}}},
"destroy_budget": {{"count": {count}, "percent": {percent}}},
"defaults": {{"userdata": "#!/bin/sh\n: {CANARY}\n"}}"##,
        );
        if !self.groups.is_empty() {
            text.push_str(r#", "groups": {"default": {"#);
        }
        for group in &self.groups {
            let Group {
                name,
                size,
                instance_type,
                image,
                colour,
                ..
            } = group;
            let address = group
                .fixed_address
                .map(|address| format!(r#""PrivateIpAddress": "{address}","#))
                .unwrap_or_default();
            let file = if group.file {
                r#""files": {"peer": {"kind": "string", "template": "{{ .Instance.IP4 }}"}},"#
            } else {
                ""
            };
            let pool = if group.pool {
                r#""subnet_pool": "shoal","#
            } else {
                ""
            };
            let policy = group.policy.as_ref().map(Policy::text).unwrap_or_default();
            let balanced = if group.balanced {
                format!(r#""load_balancers": ["{BALANCER}"],"#)
            } else {
                String::new()
            };
            let zones = if group.zones {
                r#""zones": ["za", "zb"],"#
            } else {
                ""
            };
            const ADDRESSES: &str = "{{ range .Link.peer.Instances }}{{ .IP4 }} {{ end }}";
            let link = match group.link {
                None => String::new(),
                Some(Link::Userdata(from)) => format!(
                    r##""consumes": {{"peer": {{"from": "{from}"}}}}, "userdata": "#!/bin/sh\n: {CANARY} {ADDRESSES}\n","##
                ),
                Some(Link::File(from)) => format!(
                    r#""consumes": {{"peer": {{"from": "{from}"}}}}, "files": {{"peers": {{"kind": "string", "template": "{ADDRESSES}"}}}},"#
                ),
            };
            let depends_on: Vec<_> = group
                .depends_on
                .iter()
                .map(|name| format!("\"{name}\""))
                .collect();
            let depends_on = depends_on.join(", ");
            write!(
                text,
                r#"
"{name}": {{"kind": "web", "arch": "amd64", "instance_type": "{instance_type}", "size": {size},
  "depends_on": [{depends_on}], {pool} {file} {policy} {balanced} {zones} {link}
  "provides": {{"peer": {{}}}},
  "args": {{"ImageId": "{image}", {address}
    "TagSpecifications": [{{"ResourceType": "instance",
      "Tags": [{{"Key": "colour", "Value": "{colour}"}}]}}]}}}},"#
            )
            .unwrap();
        }
        text.push_str(if self.groups.is_empty() { "}" } else { "}}}" });
        let loaded = load_text(Purpose::Plan, "simulation.jsonc", &text, &Given::default());
        let errors: Vec<_> = loaded.findings.iter().collect();
        assert!(!loaded.findings.has_errors(), "{errors:#?}\n{text}");
        loaded
    }
}

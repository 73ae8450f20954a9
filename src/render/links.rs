//! What templates read of other groups: `.Link`.
//!
//! In: what is known of a link's provider and its instances. Out: the template engine's values. Must
//! not: find providers, or decide which instances exist.
//!
//! An address is unknown until its instance exists. A plan renders texts that read one with a
//! stand-in, and apply renders them again (`pipeline::late`).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use nstance_gotemplate::{Map, StructType, Value};
use serde::{Deserialize, Serialize};

use super::args::Tree;
use super::data::{structure, to_value};
use crate::address::GroupName;

/// The fields of a link.
pub const FIELDS: [&str; 4] = ["Group", "Address", "Properties", "Instances"];

/// The fields of one of a link's instances.
const MEMBER: [&str; 9] = [
    "Name",
    "Index",
    "Number",
    "Zone",
    "Tag",
    "Address",
    "Bootstrap",
    "IP4",
    "IP6",
];

static LINK_TYPE: LazyLock<Arc<StructType>> = LazyLock::new(|| StructType::new("Link", FIELDS));
static MEMBER_TYPE: LazyLock<Arc<StructType>> =
    LazyLock::new(|| StructType::new("LinkInstance", MEMBER));

/// Values that groups offer to others, by group and the provider's name of the link.
pub type Properties = HashMap<(GroupName, Arc<str>), Tree>;

/// The links of a group by name; `None` for an optional link without a provider.
pub type LinkSet = BTreeMap<Arc<str>, Option<LinkFacts>>;

/// What is known of a link's provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkFacts {
    /// `tenant/group`
    pub group: Arc<str>,
    /// The group's DNS name.
    pub address: Arc<str>,
    /// Its values for consumers, an object.
    pub properties: serde_json::Value,
    /// Whether these are sensitive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sensitive: bool,
    /// Its instances, by ascending index.
    pub members: Vec<Member>,
}

/// One of a link's instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The slot.
    pub slot: u32,
    /// The index.
    pub index: u32,
    /// The number in its zone.
    pub number: u32,
    /// The zone.
    pub zone: Arc<str>,
    /// The tag; may be empty.
    pub tag: Arc<str>,
    /// The DNS name.
    pub address: Arc<str>,
    /// The IPv4 address, if it is known; empty if the instance has none.
    pub ip4: Option<Arc<str>>,
    /// The IPv6 address, if it is known; empty if the instance has none.
    pub ip6: Option<Arc<str>>,
}

/// What unknown addresses are for templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Unknown values: a text that reads one isn't known either.
    Unknown,
    /// An address of the greatest length.
    StandIn,
    /// Another one: a text that differs from that of [`Self::StandIn`] reads an unknown address.
    OtherStandIn,
}

impl Unknown {
    fn value(self, path: &str, texts: [&str; 2]) -> Value {
        match self {
            Self::Unknown => Value::unknown(path),
            Self::StandIn => Value::from(texts[0]),
            Self::OtherStandIn => Value::from(texts[1]),
        }
    }
}

/// Reserved addresses, which no text has for another reason.
const IP4: [&str; 2] = ["247.251.239.241", "247.251.239.242"];
const IP6: [&str; 2] = [
    "f5a7:b3c9:d1e5:f7a3:b9c1:d5e7:f3a9:b1c5",
    "f5a7:b3c9:d1e5:f7a3:b9c1:d5e7:f3a9:b1c6",
];

/// A text with what is shown in place of stand-ins.
pub fn text_with_unknown_shown(text: &str) -> String {
    const SHOWN: &str = "(known after apply)";
    text.replace(IP4[0], SHOWN).replace(IP6[0], SHOWN)
}

/// A value with what is shown in place of stand-ins.
pub fn with_unknown_shown(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => text_with_unknown_shown(text).into(),
        Value::Array(items) => items.iter().map(with_unknown_shown).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), with_unknown_shown(value)))
            .collect(),
        _ => value.clone(),
    }
}

impl LinkFacts {
    /// Whether all addresses are known.
    pub fn is_known(&self) -> bool {
        self.members.iter().all(|member| member.ip4.is_some())
    }

    fn trace(&self) -> LinkTrace {
        let members = self.members.iter().map(|member| Member {
            ip4: None,
            ip6: None,
            ..member.clone()
        });
        let addresses = self.members.iter();
        let addresses: Vec<_> = addresses.map(|member| (&member.ip4, &member.ip6)).collect();
        LinkTrace {
            size: self.members.len(),
            members: short_digest(&(&self.address, members.collect::<Vec<_>>())),
            addresses: short_digest(&addresses),
            // Records are in clear, and a digest of a secret can be guessed.
            properties: if self.is_sensitive {
                String::new()
            } else {
                short_digest(&self.properties)
            },
        }
    }

    fn value(&self, name: &str, unknown: Unknown) -> Value {
        let members = self.members.iter().map(|member| {
            let path = |field: &str| format!(".Link.{name}.Instances.{field}");
            let known = |text: Option<&Arc<str>>, field: &str, stand_ins| match text {
                Some(text) => Value::from(&**text),
                None => unknown.value(&path(field), stand_ins),
            };
            let group = self.group.rsplit('/').next().unwrap_or_default();
            structure(
                &MEMBER_TYPE,
                vec![
                    Value::from(format!("{group}-{}", member.index)),
                    Value::Int(i64::from(member.index)),
                    Value::Int(i64::from(member.index) + 1),
                    Value::from(&*member.zone),
                    Value::from(&*member.tag),
                    Value::from(&*member.address),
                    Value::Bool(member.index == 0),
                    known(member.ip4.as_ref(), "IP4", IP4),
                    known(member.ip6.as_ref(), "IP6", IP6),
                ],
            )
        });
        let members: Vec<Value> = members.collect();
        let properties = match to_value(&self.properties) {
            Value::Map(map) => Value::Map(map.lenient()),
            _ => Value::Map(Map::new(Vec::new()).lenient()),
        };
        structure(
            &LINK_TYPE,
            vec![
                Value::from(&*self.group),
                Value::from(&*self.address),
                properties,
                Value::from(members),
            ],
        )
    }
}

/// The traces of links, by name. A link without a provider has an empty one.
pub(super) fn traces(links: &LinkSet) -> BTreeMap<Arc<str>, LinkTrace> {
    let trace = |facts: &Option<LinkFacts>| {
        let facts = facts.as_ref();
        facts.map(LinkFacts::trace).unwrap_or_default()
    };
    let links = links.iter();
    links
        .map(|(name, facts)| (Arc::clone(name), trace(facts)))
        .collect()
}

/// Digests of what a consumer was rendered with, kept in its record: a later plan says by them why it
/// changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTrace {
    /// The number of instances.
    pub size: usize,
    /// Of names, indices and zones.
    pub members: String,
    /// Of their addresses.
    pub addresses: String,
    /// Of the properties; empty if they are sensitive.
    pub properties: String,
}

impl LinkTrace {
    /// What changed since an earlier trace, as a fragment; `None` if nothing did.
    pub fn since(&self, earlier: &Self) -> Option<String> {
        if self.size != earlier.size {
            return Some(format!(
                "it has {} instances instead of {}",
                self.size, earlier.size
            ));
        }
        let what = if self.members != earlier.members {
            "the names or zones of its instances changed"
        } else if self.addresses != earlier.addresses {
            "the addresses of its instances change"
        } else if self.properties != earlier.properties {
            "its properties changed"
        } else {
            return None;
        };
        Some(what.to_owned())
    }
}

fn short_digest(value: &impl Serialize) -> String {
    let text = serde_json::to_vec(value).expect("its keys are strings");
    crate::digest::sha256_hex(&text)[..16].to_owned()
}

/// The value of `.Link`.
pub(super) fn links_value(links: &LinkSet, unknown: Unknown) -> Value {
    let entries = links.iter().map(|(name, facts)| {
        let value = match facts {
            Some(facts) => facts.value(name, unknown),
            None => Value::Nil,
        };
        (name.to_string(), value)
    });
    Value::Map(entries.collect::<Map>())
}

//! Names of groups, slots and instances.
//!
//! In: text and numbers. Out: [`GroupName`], [`Address`], [`InShard`], [`InstanceId`]. May not: read a clock
//! or a random source; time and entropy are arguments.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use uuid::Uuid;

/// A group's full name, `tenant/group`; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupName(Arc<str>);

impl GroupName {
    /// The group `name` of `tenant`.
    pub fn new(tenant: &str, name: &str) -> Self {
        Self([tenant, "/", name].concat().into())
    }

    /// The part before the slash.
    pub fn tenant(&self) -> &str {
        self.0.split_once('/').map_or("", |(tenant, _)| tenant)
    }

    /// The part after the slash.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// `tenant/group`
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text, shared.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for GroupName {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.split('/').collect::<Vec<_>>()[..] {
            [tenant, name] if is_id(tenant) && is_id(name) => Ok(Self(text.into())),
            [tenant, name, slot] if is_id(tenant) && is_id(name) && slot.parse::<u32>().is_ok() => {
                Err(AddressProblem::HasSlot.of(text))
            }
            _ => Err(AddressProblem::Invalid.of(text)),
        }
    }
}

impl From<Arc<str>> for GroupName {
    /// Takes a name that was checked when it was stored.
    fn from(text: Arc<str>) -> Self {
        Self(text)
    }
}

/// A slot of a group: `tenant/group/slot`. Slots order by number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// The group.
    pub group: GroupName,
    /// The slot, from 0.
    pub slot: u32,
}

impl Address {
    /// Slot `slot` of `group`.
    pub fn new(group: GroupName, slot: u32) -> Self {
        Self { group, slot }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.slot)
    }
}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Address {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.group, self.slot).cmp(&(&other.group, other.slot))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || match text.parse::<GroupName>() {
            Ok(_) => AddressProblem::LacksSlot.of(text),
            Err(_) => AddressProblem::Invalid.of(text),
        };
        let (group, slot) = text.rsplit_once('/').ok_or_else(error)?;
        let group = group.parse().map_err(|_| error())?;
        let plain =
            slot.bytes().all(|b| b.is_ascii_digit()) && (slot == "0" || !slot.starts_with('0'));
        let slot = slot.parse().ok().filter(|_| plain).ok_or_else(error)?;
        Ok(Self { group, slot })
    }
}

/// What `--target` and its kin take: a group or one of its slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// Every slot of a group.
    Group(GroupName),
    /// One slot.
    Slot(Address),
}

impl Selector {
    /// Whether an address is meant.
    pub fn matches(&self, address: &Address) -> bool {
        match self {
            Self::Group(group) => *group == address.group,
            Self::Slot(slot) => slot == address,
        }
    }

    /// The group it is in.
    pub fn group(&self) -> &GroupName {
        match self {
            Self::Group(group) => group,
            Self::Slot(address) => &address.group,
        }
    }
}

impl FromStr for Selector {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        // The brackets of a plan's collapsed lines can't be selected, so two forms suffice.
        match text.matches('/').count() {
            1 => text.parse().map(Self::Group),
            _ => text.parse().map(Self::Slot),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(group) => group.fmt(f),
            Self::Slot(address) => address.fmt(f),
        }
    }
}

/// An address as commands take it: with the shard before it, or without.
///
/// `us-west-2a:default/web/0`, or `prod/us-west-2a:default/web/0` where shards of two clusters have
/// one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InShard<T> {
    /// The shard, if it is named.
    pub shard: Option<ShardName>,
    /// What is meant in it.
    pub address: T,
}

/// A shard as it is named before an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardName {
    /// `cluster.id`, if it is named.
    pub cluster: Option<String>,
    /// `shard.id`
    pub shard: String,
}

impl ShardName {
    /// Whether a shard is meant.
    pub fn matches(&self, cluster: &str, shard: &str) -> bool {
        self.shard == shard && self.cluster.as_deref().is_none_or(|name| name == cluster)
    }
}

impl FromStr for ShardName {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (cluster, shard) = match text.split_once('/') {
            Some((cluster, shard)) => (Some(cluster), shard),
            None => (None, text),
        };
        if !is_id(shard) || !cluster.is_none_or(is_id) {
            return Err(AddressProblem::Invalid.of(text));
        }
        Ok(Self {
            cluster: cluster.map(str::to_owned),
            shard: shard.to_owned(),
        })
    }
}

impl fmt::Display for ShardName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cluster {
            Some(cluster) => write!(f, "{cluster}/{}", self.shard),
            None => f.write_str(&self.shard),
        }
    }
}

impl<T: FromStr<Err = AddressError>> FromStr for InShard<T> {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let whole = |error: AddressError| AddressError {
            text: text.to_owned(),
            ..error
        };
        let (shard, address) = match text.split_once(':') {
            Some((shard, address)) => (Some(shard.parse().map_err(whole)?), address),
            None => (None, text),
        };
        Ok(Self {
            shard,
            address: address.parse().map_err(whole)?,
        })
    }
}

impl<T: fmt::Display> fmt::Display for InShard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shard {
            Some(shard) => write!(f, "{shard}:{}", self.address),
            None => self.address.fmt(f),
        }
    }
}

/// An address with the shard before it, in a run over several.
pub fn in_shard(shard: Option<&str>, address: impl fmt::Display) -> String {
    match shard {
        Some(shard) => format!("{shard}:{address}"),
        None => address.to_string(),
    }
}

/// Text that is neither a group nor a slot.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", self.message())]
pub struct AddressError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub problem: AddressProblem,
}

/// Why a text isn't the address that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressProblem {
    /// It is no address.
    Invalid,
    /// It is a group, and a slot is needed.
    LacksSlot,
    /// It is a slot, and a group is needed.
    HasSlot,
}

impl AddressProblem {
    fn of(self, text: &str) -> AddressError {
        AddressError {
            text: text.to_owned(),
            problem: self,
        }
    }
}

impl AddressError {
    fn message(&self) -> String {
        let text = &self.text;
        match self.problem {
            AddressProblem::Invalid => format!(
                "`{text}` isn't an address: a group is `tenant/group`, a slot `tenant/group/0`"
            ),
            AddressProblem::LacksSlot => {
                format!("`{text}` is a group; name one of its slots, such as `{text}/0`")
            }
            AddressProblem::HasSlot => {
                let group = text.rsplit_once('/').map_or("", |(group, _)| group);
                format!("`{text}` is a slot; name its group, `{group}`")
            }
        }
    }
}

/// The longest id of a cluster, shard, tenant, group or subnet pool, in bytes.
pub const LONGEST_ID: usize = 32;

/// Whether this is an id of a cluster, shard, tenant, group or subnet pool: lower-case letters,
/// digits and single inner hyphens, at most [`LONGEST_ID`].
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LONGEST_ID
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--")
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Our id of an instance: a three-letter kind and a `UUIDv7` in base32; never used again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(Arc<str>);

/// Crockford's base32 digits, in lower case.
const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl InstanceId {
    /// The id of a `kind` and a `UUIDv7`: 5 bits a character from the front, 26 characters, the
    /// last one's low bits zero.
    pub fn new(kind: &str, uuid: Uuid) -> Self {
        let bits = u128::from_be_bytes(*uuid.as_bytes());
        let digits: [u8; 26] = std::array::from_fn(|index| {
            let rest = match index {
                0..25 => bits >> (128 - 5 * (index + 1)),
                _ => bits << 2,
            };
            CROCKFORD[rest as usize & 31]
        });
        let digits = std::str::from_utf8(&digits).expect("the digits are ASCII");
        Self([kind, digits].concat().into())
    }

    /// The id of a new instance: a `UUIDv7` of a time and of `entropy`, which is a keyed hash of
    /// what the instance is for, so that the same plan always gives the same id.
    pub fn generate(kind: &str, milliseconds: i64, entropy: [u8; 10]) -> Self {
        let milliseconds = u64::try_from(milliseconds).unwrap_or(0);
        Self::new(
            kind,
            uuid::Builder::from_unix_timestamp_millis(milliseconds, &entropy).into_uuid(),
        )
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last eight characters that carry randomness: enough to tell a group's instances apart.
    pub fn short(&self) -> &str {
        &self.0[self.0.len().saturating_sub(8)..]
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for InstanceId {
    /// Takes an id that was made before.
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specs_check_value() {
        let uuid = Uuid::parse_str("01970a1c-e31e-7422-9cd5-e9651d11cc97").unwrap();
        assert_eq!(
            InstanceId::new("acc", uuid).as_str(),
            "acc06bgm7733st2576nx5jht4ecjw"
        );
    }

    #[test]
    fn ids_are_lower_case_words_with_single_hyphens() {
        for (text, good) in [
            ("a", true),
            ("us-west-2a", true),
            ("0", true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("a--b", false),
            ("A", false),
            ("a_b", false),
            ("abcdefghijklmnopqrstuvwxyzabcdef", true),
            ("abcdefghijklmnopqrstuvwxyzabcdefg", false),
        ] {
            assert_eq!(is_id(text), good, "{text}");
        }
    }

    #[test]
    fn addresses_read_back_and_order_by_number() {
        let ten: Address = "default/web/10".parse().unwrap();
        let nine: Address = "default/web/9".parse().unwrap();
        assert!(nine < ten);
        assert_eq!(ten.to_string(), "default/web/10");
        for bad in [
            "web", "a/b/c/1", "a/b/01", "a/b/-1", "a/b/", "a/b/x", "A/b/1", "/b/1", "a/b/+1",
        ] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
        assert!(matches!("a/b".parse(), Ok(Selector::Group(_))));
        assert!(matches!("a/b/3".parse(), Ok(Selector::Slot(_))));
        assert!("a".parse::<Selector>().is_err());
    }

    #[test]
    fn a_group_and_a_slot_are_told_apart() {
        let group = "default/web".parse::<Address>().unwrap_err();
        assert_eq!(group.problem, AddressProblem::LacksSlot);
        let slot = "one:default/web/3".parse::<InShard<GroupName>>();
        assert_eq!(
            slot.unwrap_err().to_string(),
            "`one:default/web/3` is a slot; name its group, `one:default/web`"
        );
        let neither = "default/web/x".parse::<GroupName>().unwrap_err();
        assert_eq!(neither.problem, AddressProblem::Invalid);
    }

    #[test]
    fn a_shard_may_stand_before_an_address() {
        let parse = |text: &str| text.parse::<InShard<Selector>>();
        for (text, cluster, shard) in [
            ("default/web", None, None),
            ("us-west-2a:default/web/3", None, Some("us-west-2a")),
            (
                "prod/us-west-2a:default/web",
                Some("prod"),
                Some("us-west-2a"),
            ),
        ] {
            let read = parse(text).unwrap();
            assert_eq!(read.to_string(), text);
            let name = read.shard.as_ref();
            assert_eq!(name.map(|name| &*name.shard), shard, "{text}");
            assert_eq!(
                name.and_then(|name| name.cluster.as_deref()),
                cluster,
                "{text}"
            );
        }
        for bad in [
            ":default/web",
            "a:",
            "a:b:c/d",
            "A:b/c",
            "a/b/c:d/e",
            "a/:d/e",
        ] {
            let error = parse(bad).unwrap_err();
            assert_eq!(error.text, bad, "the whole of it is named");
        }
    }

    #[test]
    fn a_shard_without_its_cluster_is_that_of_any() {
        let name: ShardName = "one".parse().unwrap();
        assert!(name.matches("prod", "one") && name.matches("dev", "one"));
        assert!(!name.matches("prod", "two"));
        let name: ShardName = "prod/one".parse().unwrap();
        assert!(name.matches("prod", "one") && !name.matches("dev", "one"));
    }
}

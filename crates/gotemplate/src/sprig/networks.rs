//! Ranges of addresses, with the meaning and the order of arguments that Terraform's functions of
//! those names have: no address is asked for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::arguments::{fail, string, strings, text};
use super::numbers::to_int;
use super::{Entry, Outcome, entry};
use crate::function::FunctionError;
use crate::function::Kind::{Any, Str};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(
        "cidrHost",
        "PREFIX N",
        "the address N of the range, from its end where N is negative",
        &[Str, Any],
        |_, a| {
            let prefix = Prefix::parse(&text(&a[0]))?;
            string(prefix.host(to_int(&a[1]))?.to_string())
        },
    ),
    entry(
        "cidrNetmask",
        "PREFIX",
        "the netmask of the range, of IPv4 only",
        &[Str],
        |_, a| {
            let prefix = Prefix::parse(&text(&a[0]))?;
            match prefix.family {
                Family::V4 => string(prefix.with(!prefix.host_bits()).address().to_string()),
                Family::V6 => fail("IPv6 has no netmasks"),
            }
        },
    ),
    entry(
        "cidrSubnet",
        "PREFIX BITS N",
        "the part N of the range, of those with BITS more in their prefix",
        &[Str, Any, Any],
        |_, a| {
            let prefix = Prefix::parse(&text(&a[0]))?;
            let subnet = prefix.subnet(to_int(&a[1]), to_int(&a[2]))?;
            string(subnet.to_string())
        },
    ),
    entry(
        "cidrSubnets",
        "PREFIX BITS…",
        "parts of the range one after another, each with its BITS more in its prefix",
        &[Str],
        |budget, a| {
            let subnets = subnets(&Prefix::parse(&text(&a[0]))?, &a[1..])?;
            strings(budget, subnets)
        },
    )
    .and_any(Any),
    entry(
        "cidrContains",
        "PREFIX S",
        "whether the address or range S is in the range",
        &[Str, Str],
        |_, a| contains(&text(&a[0]), &text(&a[1])),
    ),
];

#[derive(Clone, Copy, PartialEq)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn bits(self) -> u32 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

/// A range of addresses.
#[derive(Clone, Copy)]
struct Prefix {
    family: Family,
    /// The first address.
    first: u128,
    length: u32,
}

fn number(address: IpAddr) -> (Family, u128) {
    match address {
        IpAddr::V4(address) => (Family::V4, address.to_bits().into()),
        IpAddr::V6(address) => (Family::V6, address.to_bits()),
    }
}

impl Prefix {
    fn parse(source: &str) -> Result<Self, FunctionError> {
        let wrong = || FunctionError::new(format!("not a CIDR range: \"{source}\""));
        let (address, length) = source.split_once('/').ok_or_else(wrong)?;
        let (family, first) = number(address.parse().map_err(|_| wrong())?);
        let digits = length.bytes().all(|byte| byte.is_ascii_digit());
        let length: u32 = length.parse().map_err(|_| wrong())?;
        if !digits || length > family.bits() {
            return Err(wrong());
        }
        let whole = Self {
            family,
            first,
            length,
        };
        Ok(whole.with(first & !whole.host_bits()))
    }

    fn with(self, first: u128) -> Self {
        Self { first, ..self }
    }

    /// The last bits, which tell the range's addresses apart.
    fn host_bits(self) -> u128 {
        ones(self.family.bits() - self.length)
    }

    fn address(self) -> IpAddr {
        match self.family {
            Family::V4 => Ipv4Addr::from_bits(self.first as u32).into(),
            Family::V6 => Ipv6Addr::from_bits(self.first).into(),
        }
    }

    fn host(self, wanted: i64) -> Result<IpAddr, FunctionError> {
        let last = self.host_bits();
        let counted: u128 = wanted.unsigned_abs().into();
        let host = if wanted < 0 {
            (counted - 1 <= last).then(|| last - (counted - 1))
        } else {
            (counted <= last).then_some(counted)
        };
        match host {
            Some(host) => Ok(self.with(self.first | host).address()),
            None => fail(format!(
                "a prefix of {} bits has no address number {wanted}",
                self.length
            )),
        }
    }

    fn subnet(self, bits: i64, wanted: i64) -> Result<Self, FunctionError> {
        let length = self.longer(bits)?;
        let last = ones(length - self.length);
        match u128::try_from(wanted) {
            Ok(number) if number <= last => Ok(Self {
                length,
                first: self.first | shifted(number, self.family.bits() - length),
                ..self
            }),
            _ => fail(format!("{bits} bits don't make a subnet number {wanted}")),
        }
    }

    /// The length of a prefix that has so many bits more.
    fn longer(self, bits: i64) -> Result<u32, FunctionError> {
        let length = i64::from(self.length).checked_add(bits);
        match length.and_then(|length| u32::try_from(length).ok()) {
            Some(length) if bits >= 0 && length <= self.family.bits() => Ok(length),
            _ => fail(format!(
                "a prefix of {} bits can't become {bits} bits longer",
                self.length
            )),
        }
    }
}

fn ones(count: u32) -> u128 {
    u128::MAX.checked_shr(128 - count).unwrap_or_default()
}

fn shifted(number: u128, by: u32) -> u128 {
    number.checked_shl(by).unwrap_or_default()
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.address(), self.length)
    }
}

fn subnets(prefix: &Prefix, bits: &[Value]) -> Result<Vec<String>, FunctionError> {
    let last = prefix.first | prefix.host_bits();
    let mut next = Some(prefix.first);
    let mut made = Vec::with_capacity(bits.len());
    for bits in bits {
        let length = prefix.longer(to_int(bits))?;
        let host = ones(prefix.family.bits() - length);
        // The next range of that size begins at a multiple of it.
        let first = next
            .and_then(|next| next.checked_add(host))
            .map(|next| next & !host);
        let Some(first) = first.filter(|first| *first <= last && last - first >= host) else {
            return fail(format!("{prefix} has no room for all of the subnets"));
        };
        let subnet = Prefix {
            first,
            length,
            ..*prefix
        };
        made.push(subnet.to_string());
        next = (first | host).checked_add(1);
    }
    Ok(made)
}

fn contains(range: &str, inner: &str) -> Outcome {
    let outer = Prefix::parse(range)?;
    let inner = if inner.contains('/') {
        Prefix::parse(inner)?
    } else {
        let Ok(address) = inner.parse() else {
            return fail(format!("neither an address nor a CIDR range: \"{inner}\""));
        };
        let (family, first) = number(address);
        Prefix {
            family,
            first,
            length: family.bits(),
        }
    };
    let within = inner.family == outer.family
        && inner.length >= outer.length
        && inner.first & !outer.host_bits() == outer.first;
    Ok(Value::Bool(within))
}

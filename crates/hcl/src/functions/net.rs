//! Functions of IP networks. Come in: prefixes such as `10.0.0.0/8`. Go out: addresses, prefixes,
//! masks. Like Terraform, a leading zero means nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{CallError, Parameter, Signature, number, text, whole};
use crate::context::Context;
use crate::types::Type;
use crate::value::Value;

pub(super) fn signatures() -> Vec<Signature> {
    let prefix = || Parameter::string("prefix");
    vec![
        Signature::new(
            "cidrhost",
            [prefix(), Parameter::number("hostnum")],
            cidr_host,
        ),
        Signature::new("cidrnetmask", [prefix()], |_, arguments| {
            let network = Network::parse(arguments, 0)?;
            Ok(show(network.mask(), network.size).into())
        }),
        Signature::new(
            "cidrsubnet",
            [
                prefix(),
                Parameter::number("newbits"),
                Parameter::number("netnum"),
            ],
            cidr_subnet,
        ),
        Signature::new("cidrsubnets", [prefix()], cidr_subnets)
            .and_any_number_of(Parameter::number("newbits")),
        Signature::new(
            "cidrcontains",
            [
                Parameter::string("containing_prefix"),
                Parameter::string("contained_ip_or_prefix"),
            ],
            cidr_contains,
        ),
    ]
}

/// A network: its first address, how many bits it fixes, and how many an address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    first: u128,
    fixed: u32,
    size: u32,
}

impl Network {
    fn parse(arguments: &[Value], index: usize) -> Result<Self, CallError> {
        let text = text(arguments, index)?;
        Self::read(text).ok_or_else(|| {
            CallError::argument(
                index,
                format!("{text:?} isn't a network such as \"10.0.0.0/8\""),
            )
        })
    }

    fn read(text: &str) -> Option<Self> {
        let (address, fixed) = text.split_once('/')?;
        let (address, size) = read_address(address)?;
        if fixed.is_empty() || !fixed.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let fixed = fixed.parse().ok().filter(|fixed| *fixed <= size)?;
        Some(Self::new(address, fixed, size))
    }

    fn new(address: u128, fixed: u32, size: u32) -> Self {
        let network = Self {
            first: 0,
            fixed,
            size,
        };
        Self {
            first: address & network.mask(),
            ..network
        }
    }

    fn mask(self) -> u128 {
        let all = u128::MAX >> (128 - self.size);
        all & !self.hosts()
    }

    /// The bits that aren't fixed.
    fn hosts(self) -> u128 {
        u128::MAX
            .checked_shr(128 - (self.size - self.fixed))
            .unwrap_or(0)
    }

    fn show(self) -> String {
        format!("{}/{}", show(self.first, self.size), self.fixed)
    }
}

/// An address and its number of bits.
fn read_address(text: &str) -> Option<(u128, u32)> {
    if text.contains(':') {
        let address = text.parse::<Ipv6Addr>().ok()?;
        return Some((address.into(), 128));
    }
    let mut address = 0;
    let mut count = 0;
    for part in text.split('.') {
        if part.is_empty() || part.len() > 8 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        address = address << 8 | u128::from(part.parse::<u8>().ok()?);
        count += 1;
    }
    (count == 4).then_some((address, 32))
}

fn show(address: u128, size: u32) -> String {
    if size == 32 {
        return Ipv4Addr::from(address as u32).to_string();
    }
    IpAddr::from(Ipv6Addr::from(address)).to_string()
}

/// A whole number of any size: its sign and its magnitude, `None` beyond 128 bits.
fn large(arguments: &[Value], index: usize) -> Result<(bool, Option<u128>), CallError> {
    let number = number(arguments, index)?;
    if !number.is_whole() {
        return Err(CallError::argument(
            index,
            format!("A whole number is required, not {number}"),
        ));
    }
    Ok((number.is_negative(), number.abs().to_string().parse().ok()))
}

fn cidr_host(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let network = Network::parse(arguments, 0)?;
    let (negative, host) = large(arguments, 1)?;
    let hosts = network.hosts();
    // A negative number counts from the end: -1 is the last.
    let offset = match (negative, host) {
        (false, Some(host)) if host <= hosts => Some(host),
        (true, Some(host)) if host - 1 <= hosts => Some(hosts - (host - 1)),
        _ => None,
    };
    let offset = offset.ok_or_else(|| {
        CallError::argument(
            1,
            format!("A network of {} bits has no such host", network.fixed),
        )
    })?;
    Ok(show(network.first | offset, network.size).into())
}

fn cidr_subnet(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let network = Network::parse(arguments, 0)?;
    let bits = whole(arguments, 1)?;
    let (negative, subnet) = large(arguments, 2)?;
    let fixed = u32::try_from(bits)
        .ok()
        .and_then(|bits| network.fixed.checked_add(bits))
        .filter(|fixed| *fixed <= network.size)
        .ok_or_else(|| {
            CallError::argument(
                1,
                format!("{} bits can't be extended by {bits}", network.fixed),
            )
        })?;
    let parts = u128::MAX
        .checked_shr(128 - (fixed - network.fixed))
        .unwrap_or(0);
    let subnet = subnet
        .filter(|subnet| !negative && *subnet <= parts)
        .ok_or_else(|| {
            CallError::argument(2, format!("{bits} more bits have no subnet of this number"))
        })?;
    let offset = subnet.checked_shl(network.size - fixed).unwrap_or(0);
    Ok(Network::new(network.first | offset, fixed, network.size)
        .show()
        .into())
}

/// Subnets one after the other, each aligned to its own size.
fn cidr_subnets(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let network = Network::parse(arguments, 0)?;
    context.charge_steps(arguments.len())?;
    let last = network.first | network.hosts();
    let mut subnets = Vec::with_capacity(arguments.len() - 1);
    let mut next = Some(network.first);
    for index in 1..arguments.len() {
        let bits = u32::try_from(whole(arguments, index)?)
            .ok()
            .filter(|bits| (1..=32).contains(bits))
            .ok_or_else(|| CallError::argument(index, "A prefix is extended by 1 to 32 bits"))?;
        let fixed = network.fixed + bits;
        if fixed > network.size {
            return Err(CallError::argument(
                index,
                format!(
                    "This makes {fixed} bits, and an address has {}",
                    network.size
                ),
            ));
        }
        let hosts = Network::new(0, fixed, network.size).hosts();
        // Up to the next address at which a subnet of this size can begin.
        let start = next
            .and_then(|next| next.checked_add(hosts))
            .map(|end| end & !hosts)
            .filter(|start| *start <= last)
            .ok_or_else(|| {
                CallError::argument(
                    index,
                    format!("No space is left for a subnet of {fixed} bits"),
                )
            })?;
        subnets.push(Network::new(start, fixed, network.size).show().into());
        next = (start | hosts).checked_add(1);
    }
    Ok(Value::list(Type::String, subnets))
}

fn cidr_contains(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let network = Network::parse(arguments, 0)?;
    let inner = text(arguments, 1)?;
    let inner = match read_address(inner) {
        Some((address, size)) => Network::new(address, size, size),
        None => Network::parse(arguments, 1)?,
    };
    if inner.size != network.size {
        return Err(CallError::argument(
            1,
            "An IPv4 and an IPv6 address can't be compared",
        ));
    }
    Ok((inner.fixed >= network.fixed && inner.first & network.mask() == network.first).into())
}

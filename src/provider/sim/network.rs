//! Subnets and their addresses.
//!
//! In: subnet ids of options or instances. Out: free addresses. Must not: create instances.
//!
//! An address depends only on the subnet and the token, unless another instance has it. So runs are
//! reproducible, regardless of the order of parallel calls.

use std::net::{Ipv4Addr, Ipv6Addr};

use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::config::model::ProviderKind;
use crate::provider::{CloudError, CloudErrorKind, SubnetInfo};

use super::{SimError, World, faults, hash};

/// The default number of free addresses: a /24 without the five that AWS reserves.
pub(super) const DEFAULT_SIZE: u32 = 251;

/// The default for GCP, which doesn't report free addresses and has larger subnets.
const DEFAULT_SIZE_GCP: u32 = 65_532;

/// The first host number to assign; lower ones are reserved.
const FIRST_HOST: u32 = 4;

/// The subnet of instances without one: 100.64.0.0/10.
const DEFAULT_NETWORK: &str = "";
const DEFAULT_NETWORK_BASE: u32 = 0x6440_0000;
const DEFAULT_NETWORK_BLOCK: u32 = 1 << 22;

/// The range of subnets: 10.0.0.0/8.
const SUBNETS_BASE: u32 = 0x0a00_0000;
const SUBNETS_BLOCK: u32 = 1 << 24;

/// The settings of a subnet.
struct Made {
    zone: Option<String>,
    size: u32,
}

/// The settings of a subnet: from the options, else the defaults.
fn made(world: &World, id: &str) -> Option<Made> {
    if id == DEFAULT_NETWORK {
        return Some(Made {
            zone: None,
            size: DEFAULT_NETWORK_BLOCK - FIRST_HOST - 1,
        });
    }
    if let Some(option) = world.options.subnets.get(id) {
        return Some(Made {
            zone: option.zone.clone(),
            size: option.size,
        });
    }
    (!world.options.strict_subnets).then_some(Made {
        zone: None,
        size: match world.provider {
            ProviderKind::Gcp => DEFAULT_SIZE_GCP,
            _ => DEFAULT_SIZE,
        },
    })
}

/// The existing subnets of `ids`.
///
/// Fails if the database does.
pub(super) fn describe(
    connection: &Connection,
    world: &World,
    ids: &[String],
) -> Result<Vec<SubnetInfo>, SimError> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(subnet) = made(world, id) else {
            continue;
        };
        let used: Option<u32> = connection
            .prepare_cached("SELECT used FROM subnet WHERE id = ?1")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        let available = subnet.size.saturating_sub(used.unwrap_or(0));
        found.push(match world.provider {
            ProviderKind::Gcp => SubnetInfo {
                id: id.clone(),
                zone: None,
                available: None,
            },
            _ => SubnetInfo {
                id: id.clone(),
                zone: subnet.zone,
                available: Some(available),
            },
        });
    }
    Ok(found)
}

/// Assigns an address in `subnet` to the instance of `token`; `fixed` is a requested address.
///
/// Fails if it is taken, or if none is free.
pub(super) fn take(
    transaction: &Transaction<'_>,
    world: &World,
    subnet: Option<&str>,
    zone: &str,
    token: &str,
    fixed: Option<Ipv4Addr>,
) -> Result<Ipv4Addr, SimError> {
    let id = subnet.unwrap_or(DEFAULT_NETWORK);
    let made = made(world, id).ok_or_else(|| {
        CloudError::new(
            CloudErrorKind::Invalid,
            "InvalidSubnetID.NotFound",
            format!("The subnet ID '{id}' does not exist"),
        )
    })?;
    if let Some(own) = made.zone.filter(|own| own != zone) {
        return Err(CloudError::new(
            CloudErrorKind::Invalid,
            "InvalidParameterValue",
            format!("The subnet '{id}' is in zone '{own}', the instance in '{zone}'"),
        )
        .into());
    }
    let (base, used, mut lowest_free) = found(transaction, id, made.size)?;
    let capacity = world.options.subnets.get(id).and_then(|it| it.capacity);
    if capacity.is_some_and(|capacity| used >= capacity) {
        return Err(faults::error(world.provider, CloudErrorKind::Capacity).into());
    }
    if used >= made.size {
        return Err(exhausted(world, id).into());
    }
    let mut insert = transaction.prepare_cached(
        "INSERT INTO address (subnet, host) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    let mut try_host = |host: i64| insert.execute((id, host)).map(|changed| changed == 1);
    let host = if let Some(address) = fixed {
        let host = i64::from(u32::from(address)) - i64::from(base);
        if !try_host(host)? {
            return Err(CloudError::new(
                CloudErrorKind::Invalid,
                "InvalidIPAddress.InUse",
                format!("Address {address} is in use"),
            )
            .into());
        }
        host
    } else {
        let mut taken = None;
        // In a mostly free subnet, a few guesses suffice; otherwise take the next free address
        // after the last one assigned.
        for attempt in 0_u8..16 {
            let guess = hash(&[b"address", token.as_bytes(), &[attempt]]);
            let guess = u64::from_be_bytes(guess[..8].try_into().expect("8 of 32 bytes"));
            let host = i64::from(FIRST_HOST) + (guess % u64::from(made.size)) as i64;
            if try_host(host)? {
                taken = Some(host);
                break;
            }
        }
        loop {
            if let Some(host) = taken {
                break host;
            }
            if lowest_free >= i64::from(FIRST_HOST) + i64::from(made.size) {
                return Err(exhausted(world, id).into());
            }
            if try_host(lowest_free)? {
                taken = Some(lowest_free);
            }
            lowest_free += 1;
        }
    };
    transaction
        .prepare_cached("UPDATE subnet SET used = used + 1, lowest_free = ?2 WHERE id = ?1")?
        .execute((id, lowest_free))?;
    let address = i64::from(base) + host;
    Ok(Ipv4Addr::from(address as u32))
}

/// The IPv6 address for an IPv4 address.
pub(super) fn ip6_of(ip4: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = ip4.octets();
    Ipv6Addr::new(
        0xfd00,
        0x6e73,
        0,
        0,
        0,
        0,
        u16::from_be_bytes([a, b]),
        u16::from_be_bytes([c, d]),
    )
}

/// Releases an address.
///
/// Fails if the database does.
pub(super) fn release(
    transaction: &Transaction<'_>,
    subnet: Option<&str>,
    ip4: &str,
) -> Result<(), SimError> {
    let id = subnet.unwrap_or(DEFAULT_NETWORK);
    let base: Option<i64> = transaction
        .prepare_cached("SELECT base FROM subnet WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    let (Some(base), Ok(address)) = (base, ip4.parse::<Ipv4Addr>()) else {
        return Ok(());
    };
    let host = i64::from(u32::from(address)) - base;
    let freed = transaction
        .prepare_cached("DELETE FROM address WHERE subnet = ?1 AND host = ?2")?
        .execute((id, host))?;
    if freed == 1 {
        transaction
            .prepare_cached(
                "UPDATE subnet SET used = used - 1, lowest_free = max(?2, min(lowest_free, ?3))
                 WHERE id = ?1",
            )?
            .execute((id, FIRST_HOST, host))?;
    }
    Ok(())
}

/// A subnet's base, the number of used addresses, and where to search for a free one. On first use,
/// assigns its range.
fn found(transaction: &Transaction<'_>, id: &str, size: u32) -> Result<(u32, u32, i64), SimError> {
    let known = transaction
        .prepare_cached("SELECT base, used, lowest_free FROM subnet WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    let (base, block) = if id == DEFAULT_NETWORK {
        (DEFAULT_NETWORK_BASE, DEFAULT_NETWORK_BLOCK)
    } else {
        let block = (size + FIRST_HOST + 1).next_power_of_two().max(256);
        (free_range(transaction, id, block)?, block)
    };
    let lowest_free = i64::from(FIRST_HOST);
    transaction.execute(
        "INSERT INTO subnet (id, base, block, used, lowest_free) VALUES (?1, ?2, ?3, 0, ?4)",
        (id, base, block, lowest_free),
    )?;
    Ok((base, 0, lowest_free))
}

/// The range derived from a subnet's id, or the next free one. When 10/8 is exhausted, ranges
/// overlap, which is harmless here.
fn free_range(transaction: &Transaction<'_>, id: &str, block: u32) -> Result<u32, SimError> {
    let ranges = SUBNETS_BLOCK / block;
    let digest = hash(&[b"subnet", id.as_bytes()]);
    let first = u32::from_be_bytes(digest[..4].try_into().expect("4 of 32 bytes")) % ranges;
    let base = |number: u32| SUBNETS_BASE + (number % ranges) * block;
    let mut overlapping = transaction
        .prepare("SELECT EXISTS (SELECT 1 FROM subnet WHERE base < ?2 AND base + block > ?1)")?;
    for number in first..first + ranges {
        let start = base(number);
        if !overlapping.query_row((start, start + block), |row| row.get(0))? {
            return Ok(start);
        }
    }
    Ok(base(first))
}

fn exhausted(world: &World, id: &str) -> CloudError {
    match world.provider {
        ProviderKind::Gcp => CloudError::new(
            CloudErrorKind::Capacity,
            "IP_SPACE_EXHAUSTED",
            format!("IP space of '{id}' is exhausted"),
        ),
        _ => CloudError::new(
            CloudErrorKind::Capacity,
            "InsufficientFreeAddressesInSubnet",
            format!("There are not enough free addresses in subnet '{id}'"),
        ),
    }
}

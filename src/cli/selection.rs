//! Assigns addresses of the command line to shards.
//!
//! In: addresses, with or without a shard prefix, and the shards of the run. Out: the selection for
//! each shard. Must not: guess between several shards.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use super::failure::{Failure, Failures};
use super::fleet::Fleet;
use super::session::Session;
use crate::address::{Address, AddressError, GroupName, InShard, Selector};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::merge::group::size_of;

/// What `--allow-delete` and `--allow-replace` take: everything, or a group, whose tenant may be left
/// out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedGroups {
    /// Any group.
    All,
    /// One group.
    Group(GroupName),
}

impl AllowedGroups {
    /// Whether it includes a group.
    pub fn covers(&self, group: &str) -> bool {
        match self {
            Self::All => true,
            Self::Group(name) => name.as_str() == group,
        }
    }
}

impl FromStr for AllowedGroups {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text {
            "all" => Ok(Self::All),
            name if !name.contains('/') => format!("default/{name}").parse().map(Self::Group),
            name => name.parse().map(Self::Group),
        }
    }
}

impl Display for AllowedGroups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Group(name) => name.fmt(f),
        }
    }
}

/// The address options of the command line.
#[derive(Debug, Clone, Copy, Default)]
pub struct AddressArgs<'a> {
    /// Select only these.
    pub targets: &'a [InShard<Selector>],
    /// Exclude these.
    pub excludes: &'a [InShard<Selector>],
    /// Replace these.
    pub replace: &'a [InShard<Selector>],
    /// Permit deletions in these groups.
    pub allow_delete: &'a [InShard<AllowedGroups>],
    /// Release the held back changes of these groups.
    pub allow_replace: &'a [InShard<AllowedGroups>],
}

/// The address options of one shard.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Select only these; empty means everything.
    pub targets: Vec<Selector>,
    /// Exclude these.
    pub excludes: Vec<Selector>,
    /// Replace these.
    pub replace: Vec<Selector>,
    /// Permit deletions in these groups.
    pub allow_delete: Vec<AllowedGroups>,
    /// Release the held back changes of these groups.
    pub allow_replace: Vec<AllowedGroups>,
}

impl Selection {
    /// Whether deletions in a group may exceed the budget and its protection.
    pub fn allows_delete(&self, group: &str) -> bool {
        self.allow_delete
            .iter()
            .any(|allowed| allowed.covers(group))
    }

    /// Whether a group's held back changes are released: who may delete instances may replace them.
    pub fn allows_replace(&self, group: &str) -> bool {
        let mut allowed = self.allow_replace.iter();
        allowed.any(|allowed| allowed.covers(group)) || self.allows_delete(group)
    }
}

impl Fleet<'_> {
    /// Says of each shard what is asked about it. If there are targets, the shards without one are no
    /// part of the run from here on. Fails if a shard is unknown or ambiguous, and if a group or slot
    /// is neither configured nor recorded.
    pub fn select(&mut self, asked: AddressArgs<'_>) -> Result<Vec<Selection>, Failures> {
        let mut chosen = vec![Selection::default(); self.shards.len()];
        let mut findings = Diagnostics::default();
        let places = Places::new(self);
        let mut all = |wanted: &[InShard<Selector>],
                       into: fn(&mut Selection) -> &mut Vec<Selector>| {
            for one in wanted {
                let found = places.find(one, one.address.group());
                match found.and_then(|index| places.checked(index, &one.address)) {
                    Ok(index) => into(&mut chosen[index]).push(one.address.clone()),
                    Err(finding) => findings.push(*finding),
                }
            }
        };
        all(asked.targets, |chosen| &mut chosen.targets);
        all(asked.excludes, |chosen| &mut chosen.excludes);
        all(asked.replace, |chosen| &mut chosen.replace);
        let mut allow =
            |wanted: &[InShard<AllowedGroups>],
             into: fn(&mut Selection) -> &mut Vec<AllowedGroups>| {
                for one in wanted {
                    let found = match (&one.address, &one.shard) {
                        (AllowedGroups::All, None) => Ok((0..chosen.len()).collect()),
                        (AllowedGroups::All, Some(_)) => places.named(one).map(|index| vec![index]),
                        (AllowedGroups::Group(group), _) => places
                            .find(one, group)
                            .and_then(|index| {
                                places.checked(index, &Selector::Group(group.clone()))
                            })
                            .map(|index| vec![index]),
                    };
                    match found {
                        Ok(indices) => {
                            for index in indices {
                                into(&mut chosen[index]).push(one.address.clone());
                            }
                        }
                        Err(finding) => findings.push(*finding),
                    }
                }
            };
        allow(asked.allow_delete, |chosen| &mut chosen.allow_delete);
        allow(asked.allow_replace, |chosen| &mut chosen.allow_replace);
        if findings.has_errors() {
            return Err(Failure::from(findings).into());
        }
        if !asked.targets.is_empty() {
            self.retain(|index| !chosen[index].targets.is_empty());
            chosen.retain(|chosen| !chosen.targets.is_empty());
        }
        Ok(chosen)
    }

    /// The selected slots of each shard; drops the shards without one from the run.
    ///
    /// Fails if an address belongs to no shard, or to several.
    pub fn choose_slots(
        &mut self,
        asked: &[InShard<Address>],
    ) -> Result<Vec<Vec<Address>>, Failures> {
        let targets: Vec<InShard<Selector>> = asked
            .iter()
            .map(|one| InShard {
                shard: one.shard.clone(),
                address: Selector::Slot(one.address.clone()),
            })
            .collect();
        let chosen = self.select(AddressArgs {
            targets: &targets,
            ..AddressArgs::default()
        })?;
        let slot = |selector| match selector {
            Selector::Slot(address) => Some(address),
            Selector::Group(_) => None,
        };
        Ok(chosen
            .into_iter()
            .map(|chosen| chosen.targets.into_iter().filter_map(slot).collect())
            .collect())
    }

    /// Reduces the run to the shard of a group, which `address` names.
    ///
    /// Fails if the address belongs to no shard, or to several.
    pub fn narrow<T: Display>(
        &mut self,
        address: &InShard<T>,
        group: &GroupName,
    ) -> Result<(), Failures> {
        let found = Places::new(self).find(address, group);
        let found = found.map_err(|finding| Failures::from(Failure::new(*finding)))?;
        self.retain(|index| index == found);
        Ok(())
    }
}

/// Finds the shard of a group.
struct Places<'f, 'g> {
    fleet: &'f Fleet<'g>,
    /// The slots of each shard's record by group, read if a group or slot isn't configured.
    recorded: OnceCell<Vec<BTreeMap<Arc<str>, BTreeSet<u32>>>>,
}

impl<'f, 'g> Places<'f, 'g> {
    fn new(fleet: &'f Fleet<'g>) -> Self {
        Self {
            fleet,
            recorded: OnceCell::new(),
        }
    }

    /// The shard of an address: the named one, or the only one with this group. Fails if there is
    /// none, or several.
    fn find<T: Display>(
        &self,
        asked: &InShard<T>,
        group: &GroupName,
    ) -> Result<usize, Box<Diagnostic>> {
        if asked.shard.is_some() {
            return self.named(asked);
        }
        if !self.fleet.is_several() {
            return Ok(0);
        }
        let names = self.fleet.names();
        let has: Vec<usize> = (0..names.len())
            .filter(|index| self.has(*index, group))
            .collect();
        match has[..] {
            [only] => Ok(only),
            [] => {
                let finding = Diagnostic::error(format!("no shard has `{}`", asked.address));
                let configured = || {
                    let shards = names.iter().zip(&self.fleet.shards);
                    shards.flat_map(|(shard, session)| {
                        let groups = &session.config().groups;
                        groups.iter().map(move |group| (shard, group.name.as_str()))
                    })
                };
                let near = nearest(group.as_str(), configured().map(|(_, group)| group));
                let near = near.and_then(|near| configured().find(|(_, group)| *group == near));
                Err(Box::new(match near {
                    Some((shard, group)) => {
                        finding.hint(format!("there is a group `{shard}:{group}`"))
                    }
                    None => finding.hint("Groups are listed by: nstance graph"),
                }))
            }
            [first, ..] => {
                let shards: Vec<&str> = has.iter().map(|index| &*names[*index]).collect();
                Err(Box::new(
                    Diagnostic::error(format!(
                        "`{}` is in several shards: {}",
                        asked.address,
                        shards.join(", ")
                    ))
                    .hint(format!("Say in which: {}:{}", names[first], asked.address)),
                ))
            }
        }
    }

    /// The shard that an address names. Fails if it isn't in the run.
    fn named<T: Display>(&self, asked: &InShard<T>) -> Result<usize, Box<Diagnostic>> {
        let Some(name) = &asked.shard else {
            return Ok(0);
        };
        let matching: Vec<usize> = self
            .fleet
            .shards
            .iter()
            .enumerate()
            .filter(|(_, session)| {
                let identity = session.identity();
                name.matches(&identity.cluster, &identity.shard)
            })
            .map(|(index, _)| index)
            .collect();
        let names = self.fleet.names();
        match matching[..] {
            [only] => Ok(only),
            [] => {
                let finding = Diagnostic::error(format!("no shard of this run is `{name}`"))
                    .detail(format!("asked for was `{asked}`"));
                let near = nearest(&name.to_string(), names.iter().map(String::as_str));
                Err(Box::new(match near {
                    Some(near) => finding.hint(format!("there is a shard `{near}`")),
                    None => finding.hint(format!("There is {}", names.join(", "))),
                }))
            }
            [first, ..] => Err(Box::new(
                Diagnostic::error(format!("`{name}` is a shard of several clusters"))
                    .detail(format!("asked for was `{asked}`"))
                    .hint(format!("Say of which: {}:{}", names[first], asked.address)),
            )),
        }
    }

    /// Whether a shard's configuration or record has a group.
    fn has(&self, index: usize, group: &GroupName) -> bool {
        self.fleet.shards[index].config().group(group).is_some()
            || self.recorded()[index].contains_key(group.as_str())
    }

    /// The shard again. Fails if its configuration and its record lack what the selector names.
    fn checked(&self, index: usize, selector: &Selector) -> Result<usize, Box<Diagnostic>> {
        let config = self.fleet.shards[index].config();
        let group = config.group(selector.group());
        let size = group.map(size_of);
        let recorded = || self.recorded()[index].get(selector.group().as_str());
        let is_there = match selector {
            Selector::Group(_) => size.is_some() || recorded().is_some(),
            Selector::Slot(address) => {
                size.is_some_and(|size| address.slot < size)
                    || recorded().is_some_and(|slots| slots.contains(&address.slot))
            }
        };
        if is_there {
            return Ok(index);
        }
        let finding = Diagnostic::error(format!("no group or slot matches `{selector}`"));
        let names = config.groups.iter().map(|group| group.name.as_str());
        let near = nearest(selector.group().as_str(), names);
        Err(Box::new(match (size, near) {
            (Some(0), _) => finding.hint(format!("`{}` has no slots", selector.group())),
            (Some(size), _) => finding.hint(format!(
                "`{}` has the slots 0 to {}",
                selector.group(),
                size - 1
            )),
            (None, Some(near)) => finding.hint(format!("there is a group `{near}`")),
            (None, None) => finding.hint("Groups are listed by: nstance graph"),
        }))
    }

    /// A record that can't be read counts as empty: the command reports it.
    fn recorded(&self) -> &[BTreeMap<Arc<str>, BTreeSet<u32>>] {
        self.recorded.get_or_init(|| {
            let groups = |session: &Session<'_>| {
                let snapshot = session.open_to_read().ok()??.snapshot().ok()?;
                let mut groups: BTreeMap<Arc<str>, BTreeSet<u32>> = BTreeMap::new();
                for record in snapshot.records {
                    groups.entry(record.group).or_default().insert(record.slot);
                }
                Some(groups)
            };
            let sessions = self.fleet.shards.iter();
            sessions
                .map(|session| groups(session).unwrap_or_default())
                .collect()
        })
    }
}

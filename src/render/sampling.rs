//! Chooses the groups whose single-source userdata is checked.
//!
//! In: a configuration. Out: names of groups. Must not: check anything itself.
//!
//! Instances of a group mostly differ only in the values rendered into the same text, so one
//! instance represents the group. Checking one takes as long as rendering hundreds.

use std::collections::HashSet;

use crate::address::GroupName;
use crate::config::model::{Config, Group};
use crate::merge::group::UserdataLayers;

/// The number of groups that are always checked.
const MOST: usize = 10;

/// The first groups with single-source userdata.
pub fn first(config: &Config) -> HashSet<&GroupName> {
    let all = config.groups.iter();
    let singles = all.filter(|group| text_of(config, group).is_some());
    singles.take(MOST).map(|group| &group.name).collect()
}

/// The first groups, and one group for each further text.
pub fn of_each_text(config: &Config) -> HashSet<&GroupName> {
    let mut texts = HashSet::new();
    let mut count = 0;
    let chosen = config.groups.iter().filter(|group| {
        text_of(config, group).is_some_and(|text| {
            count += 1;
            texts.insert(text) || count <= MOST
        })
    });
    chosen.map(|group| &group.name).collect()
}

fn text_of<'c>(config: &'c Config, group: &'c Group) -> Option<&'c str> {
    let (_, source) = UserdataLayers::of(config, group).single()?;
    Some(&source.content.value)
}

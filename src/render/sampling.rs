//! Which groups' userdata is looked into where it is a single source, which nothing joins.
//!
//! In: a configuration. Out: names of groups. Must not: look into anything itself.
//!
//! Most instances differ only in what is rendered into the same text, so that one of a group stands
//! for all of them. To look into one takes as long as to render hundreds.

use std::collections::HashSet;

use crate::address::GroupName;
use crate::config::model::{Config, Group};
use crate::merge::group::UserdataLayers;

/// How many groups are looked into, whatever they have.
const MOST: usize = 10;

/// The first groups that have such userdata.
pub fn first(config: &Config) -> HashSet<&GroupName> {
    let all = config.groups.iter();
    let singles = all.filter(|group| text_of(config, group).is_some());
    singles.take(MOST).map(|group| &group.name).collect()
}

/// These, and of the others one for each text.
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

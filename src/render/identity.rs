//! The id of a group, and the short ids of its slots.
//!
//! In: the state's lineage and the group's name. Out: texts that never change. Must not: be random.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

use crate::address::GroupName;

/// What the id of a group starts with.
const PREFIX: &str = "nsg";

/// How many letters and digits follow the prefix.
const LENGTH: usize = 17;

/// The number of slots with short ids of four letters; ids of later slots have six.
const FOUR_LETTERS: usize = 200_000;

/// The id of a group: 20 lower-case letters and digits.
pub fn group_id(lineage: &str, group: &GroupName) -> String {
    let digest = Sha256::digest(format!("group {lineage} {group}"));
    let letters = digest.iter().take(LENGTH);
    let letters = letters.map(|byte| char::from_digit(u32::from(*byte) % 36, 36));
    PREFIX.chars().chain(letters.flatten()).collect()
}

/// The short ids of a group's slots: distinct, and each depends on lower slots only.
#[derive(Debug, Default)]
pub(super) struct ShortIds {
    group_id: String,
    given: Vec<u32>,
    taken: HashSet<u32>,
}

impl ShortIds {
    pub(super) fn of(group_id: &str) -> Self {
        Self {
            group_id: group_id.to_owned(),
            ..Self::default()
        }
    }

    /// The short id of a slot: lower-case letters.
    pub(super) fn get(&mut self, slot: u32) -> String {
        while self.given.len() <= slot as usize {
            let next = self.given.len();
            let count = 26_u32.pow(letters(next));
            // Longer ids don't collide with shorter ones.
            let offset = if letters(next) == 4 { 0 } else { 26_u32.pow(4) };
            let found = (0_u32..).find_map(|salt| {
                let digest = Sha256::digest(format!("{} {next} {salt}", self.group_id));
                let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
                let number = offset + number % count;
                self.taken.insert(number).then_some(number)
            });
            self.given.extend(found);
        }
        let slot = slot as usize;
        let length = letters(slot);
        let mut rest = self.given[slot] - if length == 4 { 0 } else { 26_u32.pow(4) };
        let mut text = Vec::new();
        for _ in 0..length {
            text.push(char::from(b'a' + (rest % 26) as u8));
            rest /= 26;
        }
        text.into_iter().collect()
    }
}

fn letters(slot: usize) -> u32 {
    if slot < FOUR_LETTERS { 4 } else { 6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinct_and_depend_on_lower_slots_only() {
        let group = GroupName::new("default", "web");
        let id = group_id("lineage", &group);
        assert_eq!(id.len(), 20);
        assert!(id.starts_with(PREFIX));
        assert_ne!(id, group_id("lineage", &GroupName::new("default", "db")));
        assert_ne!(id, group_id("another", &group));

        let mut ids = ShortIds::of(&id);
        let all: Vec<String> = (0..5_000).map(|slot| ids.get(slot)).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert!(
            all.iter()
                .all(|id| id.len() == 4 && id.bytes().all(|it| it.is_ascii_lowercase()))
        );
        let mut again = ShortIds::of(&id);
        assert_eq!(again.get(4_000), all[4_000]);
        assert_eq!(again.get(7), all[7]);
    }
}

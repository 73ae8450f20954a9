//! The `update` block: how many instances an update changes at once, and how long it watches them.
//!
//! In: the deployment's block and that of a group. Out: the settings of the group. The rules and
//! messages are those of the Director's `UpdateConfig`.

use crate::error::Error;
use crate::value::{Data, Place, Value};

/// The update settings of an instance group.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Instances that are updated first.
    pub canaries: Count,
    /// Instances that are updated at the same time.
    pub max_in_flight: Count,
    /// How long to watch a canary.
    pub canary_watch_time: WatchTime,
    /// How long to watch any other instance.
    pub update_watch_time: WatchTime,
    /// Whether the group is updated alone; otherwise together with its neighbours.
    pub serial: bool,
    /// How an instance's VM is replaced.
    pub vm_strategy: VmStrategy,
    /// How the zones of a new group are created.
    pub initial_deploy_az_update_strategy: AzStrategy,
}

/// A number of instances, or a share of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// `3`
    Number(i64),
    /// `25%`
    Percent(u64),
}

impl Count {
    /// The number of a group of `size`. Shares are rounded down, and at most the size.
    pub fn of(self, size: u64) -> i64 {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => {
                let share = u128::from(percent) * u128::from(size) / 100;
                share.min(u128::from(size)) as i64
            }
        }
    }
}

/// The least and the longest time to watch an instance, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchTime {
    /// The first check of the instance's state.
    pub min: u64,
    /// The last check: an instance that isn't running by then has failed.
    pub max: u64,
}

/// How an instance's VM is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmStrategy {
    /// The new VM is created before the old one is stopped.
    CreateSwapDelete,
    /// The old VM is deleted first.
    DeleteCreate,
}

/// How the zones of a new group are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AzStrategy {
    /// All at once.
    Parallel,
    /// One after another.
    Serial,
}

impl VmStrategy {
    const ALL: [(&str, Self); 2] = [
        ("create-swap-delete", Self::CreateSwapDelete),
        ("delete-create", Self::DeleteCreate),
    ];

    /// Its name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateSwapDelete => "create-swap-delete",
            Self::DeleteCreate => "delete-create",
        }
    }
}

impl AzStrategy {
    const ALL: [(&str, Self); 2] = [("parallel", Self::Parallel), ("serial", Self::Serial)];

    /// Its name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parallel => "parallel",
            Self::Serial => "serial",
        }
    }
}

impl Update {
    /// The settings of a group: those of the deployment's block, except for keys that the group's
    /// block has. `place` is that of errors about a missing block.
    pub fn resolve(
        deployment: Option<&Value>,
        group: Option<&Value>,
        place: Place,
    ) -> Result<Self, Vec<Error>> {
        let mut reader = Reader {
            errors: Vec::new(),
            place,
        };
        let written = reader.block(deployment, true);
        let own = match group {
            Some(group) => reader.block(Some(group), false),
            None => Block::default(),
        };
        let canaries = reader.count(own.canaries.or(written.canaries));
        let max_in_flight = reader.count(own.max_in_flight.or(written.max_in_flight));
        let update = Self {
            canaries,
            max_in_flight,
            canary_watch_time: own
                .canary_watch_time
                .or(written.canary_watch_time)
                .unwrap_or(WatchTime { min: 0, max: 0 }),
            update_watch_time: own
                .update_watch_time
                .or(written.update_watch_time)
                .unwrap_or(WatchTime { min: 0, max: 0 }),
            serial: own.serial.or(written.serial).unwrap_or(true),
            vm_strategy: own
                .vm_strategy
                .or(written.vm_strategy)
                .unwrap_or(VmStrategy::DeleteCreate),
            initial_deploy_az_update_strategy: own
                .az_strategy
                .or(written.az_strategy)
                .unwrap_or(AzStrategy::Serial),
        };
        if reader.errors.is_empty() {
            Ok(update)
        } else {
            Err(reader.errors)
        }
    }

    /// The canaries of an update of `size` instances, at most all of them.
    pub fn effective_canaries(&self, size: u64) -> i64 {
        self.canaries.of(size).min(size as i64)
    }

    /// The instances that an update of `size` instances changes at once, at least one.
    pub fn effective_max_in_flight(&self, size: u64) -> i64 {
        self.max_in_flight.of(size).max(1)
    }
}

/// What one block sets.
#[derive(Default)]
struct Block<'v> {
    canaries: Option<&'v Value>,
    max_in_flight: Option<&'v Value>,
    canary_watch_time: Option<WatchTime>,
    update_watch_time: Option<WatchTime>,
    serial: Option<bool>,
    vm_strategy: Option<VmStrategy>,
    az_strategy: Option<AzStrategy>,
}

struct Reader {
    errors: Vec<Error>,
    place: Place,
}

impl Reader {
    fn block<'v>(&mut self, block: Option<&'v Value>, is_required: bool) -> Block<'v> {
        if let Some(other) = block.filter(|block| !block.is_map() && !block.is_null()) {
            let shown = other.inspect();
            let message = format!("Object ({shown}) did not match the required type 'Hash'");
            self.errors.push(Error::at(other.place, message));
            return Block::default();
        }
        let mut text = |key| self.text(block, key, is_required);
        let (canaries, max_in_flight) = (text("canaries"), text("max_in_flight"));
        let (canary, update) = (text("canary_watch_time"), text("update_watch_time"));
        Block {
            canaries,
            max_in_flight,
            canary_watch_time: self.watch_time(canary),
            update_watch_time: self.watch_time(update),
            vm_strategy: self.strategy(block, "vm_strategy", &VmStrategy::ALL, ""),
            serial: self.boolean(block, "serial"),
            az_strategy: self.strategy(
                block,
                "initial_deploy_az_update_strategy",
                &AzStrategy::ALL,
                "'",
            ),
        }
    }

    /// A string or a number.
    fn text<'v>(
        &mut self,
        block: Option<&'v Value>,
        key: &str,
        is_required: bool,
    ) -> Option<&'v Value> {
        let Some(value) = block.and_then(|block| block.get(key)) else {
            if is_required {
                let shown = block.map_or_else(|| "nil".to_owned(), Value::inspect);
                let message =
                    format!("Required property '{key}' was not specified in object ({shown})");
                let place = block.map_or(self.place, |block| block.place);
                self.errors.push(Error::at(place, message));
            }
            return None;
        };
        match value.data {
            Data::String(_) | Data::Integer(_) | Data::Float(_) => Some(value),
            _ => {
                self.wrong_type(key, value, "String");
                None
            }
        }
    }

    fn boolean(&mut self, block: Option<&Value>, key: &str) -> Option<bool> {
        let value = block?.get(key)?;
        if value.as_bool().is_none() {
            self.wrong_type(key, value, "boolean");
        }
        value.as_bool()
    }

    fn strategy<T: Copy>(
        &mut self,
        block: Option<&Value>,
        key: &str,
        all: &[(&str, T)],
        quote: &str,
    ) -> Option<T> {
        let value = self.text(block, key, false)?;
        let text = value.to_s();
        if let Some((_, strategy)) = all.iter().find(|(name, _)| *name == text) {
            return Some(*strategy);
        }
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let message = format!(
            "Invalid {key} '{text}', valid strategies are: {quote}{}{quote}",
            names.join(", ")
        );
        self.errors.push(Error::at(value.place, message));
        None
    }

    fn wrong_type(&mut self, key: &str, value: &Value, expected: &str) {
        let message = format!(
            "Property '{key}' value ({}) did not match the required type '{expected}'",
            value.inspect()
        );
        self.errors.push(Error::at(value.place, message));
    }

    /// `5000`, `1000-5000`
    fn watch_time(&mut self, value: Option<&Value>) -> Option<WatchTime> {
        let value = value?;
        let text = value.to_s();
        let (min, max) = text.split_once('-').unwrap_or((&text, &text));
        let message = match (milliseconds(min), milliseconds(max)) {
            (Some(min), Some(max)) if min <= max => return Some(WatchTime { min, max }),
            (Some(_), Some(_)) => "Min watch time cannot be greater than max watch time",
            _ => "Watch time should be an integer or a range of two integers",
        };
        self.errors.push(Error::at(value.place, message));
        None
    }

    /// A count. A missing one is an error already.
    fn count(&mut self, value: Option<&Value>) -> Count {
        let Some(value) = value else {
            return Count::Number(0);
        };
        let text = value.to_s();
        let count = match text.strip_suffix('%') {
            Some(percent) => milliseconds(percent)
                .filter(|_| !percent.contains(char::is_whitespace))
                .map(Count::Percent),
            None => text.parse().ok().map(Count::Number),
        };
        count.unwrap_or_else(|| {
            let error = Error::at(value.place, "cannot be calculated");
            self.errors
                .push(error.with_hint("use a number, or a percentage such as `25%`"));
            Count::Number(0)
        })
    }
}

/// Digits, with spaces around.
fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.trim_matches(|character: char| character.is_ascii_whitespace());
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read;

    const BLOCK: &str =
        "{canaries: 1, max_in_flight: 50%, canary_watch_time: 1000-2000, update_watch_time: 5}";

    fn resolved(deployment: &str, group: &str) -> Result<Update, Vec<String>> {
        let value = |text: &str| (!text.is_empty()).then(|| read(text, 0).unwrap());
        let (deployment, group) = (value(deployment), value(group));
        let update = Update::resolve(deployment.as_ref(), group.as_ref(), Place::default());
        update.map_err(|errors| errors.into_iter().map(|error| error.message).collect())
    }

    #[test]
    fn keys_of_the_group_win() {
        let group = "{serial: false, canaries: 20%, vm_strategy: create-swap-delete}";
        assert_eq!(
            resolved(BLOCK, group).unwrap(),
            Update {
                canaries: Count::Percent(20),
                max_in_flight: Count::Percent(50),
                canary_watch_time: WatchTime {
                    min: 1000,
                    max: 2000
                },
                update_watch_time: WatchTime { min: 5, max: 5 },
                serial: false,
                vm_strategy: VmStrategy::CreateSwapDelete,
                initial_deploy_az_update_strategy: AzStrategy::Serial,
            }
        );
        let deployment = BLOCK.replace('}', ", serial: false, vm_strategy: create-swap-delete}");
        let update = resolved(&deployment, "~").unwrap();
        let found = (update.serial, update.vm_strategy);
        assert_eq!(found, (false, VmStrategy::CreateSwapDelete));
    }

    #[test]
    fn shares_are_rounded_down() {
        for (count, size, expected) in [
            ("3", 10, (3, 3, 3)),
            ("30", 10, (30, 10, 30)),
            ("-1", 10, (-1, -1, 1)),
            ("'+2'", 10, (2, 2, 2)),
            ("33%", 10, (3, 3, 3)),
            ("9%", 10, (0, 0, 1)),
            ("150%", 10, (10, 10, 10)),
            ("100%", 0, (0, 0, 1)),
            ("99999999999999999999%", 3, (3, 3, 3)),
        ] {
            let group = format!("{{canaries: {count}, max_in_flight: {count}}}");
            let update = resolved(BLOCK, &group).unwrap();
            let found = (
                update.canaries.of(size),
                update.effective_canaries(size),
                update.effective_max_in_flight(size),
            );
            assert_eq!(found, expected, "{count}");
        }
    }

    #[test]
    fn watch_times_are_numbers_or_ranges() {
        let invalid = "Watch time should be an integer or a range of two integers";
        let order = "Min watch time cannot be greater than max watch time";
        for (time, expected) in [
            ("7", Ok((7, 7))),
            ("' 7 '", Ok((7, 7))),
            ("5-7", Ok((5, 7))),
            ("' 5 - 7 '", Ok((5, 7))),
            ("7-5", Err(order)),
            ("-5", Err(invalid)),
            ("5-", Err(invalid)),
            ("1-2-3", Err(invalid)),
            ("1.5", Err(invalid)),
            ("''", Err(invalid)),
            ("5s", Err(invalid)),
        ] {
            let update = resolved(BLOCK, &format!("{{update_watch_time: {time}}}"));
            let found = update.map(|update| update.update_watch_time);
            let found = found.map(|time| (time.min, time.max));
            assert_eq!(
                found,
                expected.map_err(|why| vec![why.to_owned()]),
                "{time}"
            );
        }
    }

    #[test]
    fn all_errors_are_reported() {
        for (deployment, group, expected) in [
            (
                "",
                "",
                vec![
                    "Required property 'canaries' was not specified in object (nil)",
                    "Required property 'max_in_flight' was not specified in object (nil)",
                    "Required property 'canary_watch_time' was not specified in object (nil)",
                    "Required property 'update_watch_time' was not specified in object (nil)",
                ],
            ),
            (
                "[1]",
                "",
                vec!["Object ([1]) did not match the required type 'Hash'"],
            ),
            (
                BLOCK,
                "x",
                vec!["Object (\"x\") did not match the required type 'Hash'"],
            ),
            (
                BLOCK,
                "{canaries: ~, max_in_flight: many, serial: 'yes', vm_strategy: x}",
                vec![
                    "Property 'canaries' value (nil) did not match the required type 'String'",
                    "Invalid vm_strategy 'x', valid strategies are: create-swap-delete, \
                     delete-create",
                    "Property 'serial' value (\"yes\") did not match the required type 'boolean'",
                    "cannot be calculated",
                ],
            ),
            // A count that the group replaces is never used.
            (&BLOCK.replace("50%", "half"), "max_in_flight: 1", vec![]),
        ] {
            let found = resolved(deployment, group).err().unwrap_or_default();
            assert_eq!(found, expected, "{deployment} {group}");
        }
    }
}

//! A group's `update` block: drawn by chance, written as configuration, and read naively.
//!
//! The limits are computed here once more, from the documentation, so that a wrong limit of the plan
//! is noticed.

use std::fmt::Write as _;
use std::time::Duration;

use nstance::config::model::Check;

use crate::chance::Chance;

/// A number, or a percentage of the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Count(u32),
    Percent(u32),
}

impl Amount {
    fn text(self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::Percent(percent) => format!("\"{percent}%\""),
        }
    }

    fn down(self, size: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => size * percent / 100,
        }
    }

    fn up(self, size: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => (size * percent).div_ceil(100),
        }
    }

    fn draw(chance: &mut Chance) -> Self {
        if chance.happens(50) {
            Self::Count(1 + chance.below(3) as u32)
        } else {
            Self::Percent(chance.one_of(&[20, 34, 50, 100]))
        }
    }
}

/// A check of the port that instances answer on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Health {
    /// Seconds, as the others.
    pub(crate) min_healthy_time: u64,
    pub(crate) interval: u64,
    pub(crate) deadline: u64,
}

impl Health {
    /// What the check asks.
    pub(crate) const CHECK: Check = Check::Tcp { port: 8080 };
}

/// What happens after the canaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    Seconds(u64),
    /// Until somebody promotes it.
    Manual,
}

/// An `update` block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) max_unavailable: Option<Amount>,
    pub(crate) max_surge: Option<Amount>,
    pub(crate) order: Option<&'static str>,
    pub(crate) max_creating: Option<u32>,
    pub(crate) max_deleting: Option<u32>,
    pub(crate) canaries: Option<Amount>,
    pub(crate) canary_pause: Option<Pause>,
    pub(crate) on_failure: Option<&'static str>,
    pub(crate) max_failures: Option<u32>,
    pub(crate) by_zone: bool,
    pub(crate) opportunistic: bool,
    pub(crate) health: Option<Health>,
}

impl Policy {
    /// What failures may do.
    const ON_FAILURE: [&'static str; 4] = ["stop", "continue", "rollback", "rollback"];

    pub(crate) fn draw(chance: &mut Chance) -> Self {
        let mut policy = Self {
            order: chance
                .happens(50)
                .then(|| chance.one_of(&["create_first", "delete_first"])),
            max_unavailable: chance.happens(50).then(|| Amount::draw(chance)),
            max_surge: chance.happens(50).then(|| Amount::draw(chance)),
            max_creating: chance.happens(20).then(|| chance.below(3) as u32),
            max_deleting: chance.happens(20).then(|| chance.below(3) as u32),
            canaries: chance.happens(40).then(|| Amount::draw(chance)),
            on_failure: chance.happens(40).then(|| chance.one_of(&Self::ON_FAILURE)),
            max_failures: chance.happens(20).then(|| chance.below(3) as u32),
            by_zone: chance.happens(30),
            opportunistic: chance.happens(5),
            health: chance.happens(60).then(|| Health {
                min_healthy_time: chance.one_of(&[0, 0, 3, 10, 20]),
                interval: 1 + chance.below(5) as u64,
                deadline: chance.one_of(&[30, 60, 120]),
            }),
            ..Self::default()
        };
        if policy.canaries.is_some() && chance.happens(60) {
            policy.canary_pause = Some(match chance.one_of(&[5, 40, 300, 0]) {
                0 => Pause::Manual,
                seconds => Pause::Seconds(seconds),
            });
        }
        if policy.order != Some("delete_first") && chance.happens(8) {
            policy.max_unavailable = Some(Amount::Count(0));
        }
        policy
    }

    /// Whether it says that no instance may be unavailable, so that some changes are refused.
    pub(crate) fn forbids(&self) -> bool {
        self.max_unavailable == Some(Amount::Count(0))
    }

    /// How many instances may be unavailable, and how many there may be beyond the size.
    pub(crate) fn bounds(&self, size: u32) -> (u32, u32) {
        let unavailable = self.max_unavailable.map(|amount| amount.down(size));
        let surge = self.max_surge.map(|amount| amount.up(size));
        let deletes_first = self.order == Some("delete_first");
        let creates_first = self.order == Some("create_first");
        let bounds = match (unavailable, surge) {
            (None, None) if deletes_first => (1, 0),
            (None, None) => (0, 1),
            (Some(unavailable), None) if creates_first => (unavailable, 1),
            (Some(_), None) if self.forbids() => (0, 1),
            (Some(unavailable), None) => (unavailable, 0),
            (None, Some(surge)) if deletes_first => (1, surge),
            (None, Some(surge)) => (0, surge),
            (Some(unavailable), Some(surge)) => (unavailable, surge),
        };
        if bounds == (0, 0) { (1, 0) } else { bounds }
    }

    /// How many instances change first.
    pub(crate) fn canaries(&self, size: u32) -> usize {
        self.canaries.map_or(0, |amount| amount.up(size)) as usize
    }

    /// How long nothing else begins after them; `None`: until somebody promotes it.
    pub(crate) fn pause(&self) -> Option<Duration> {
        match self.canary_pause {
            None => Some(Duration::ZERO),
            Some(Pause::Seconds(seconds)) => Some(Duration::from_secs(seconds)),
            Some(Pause::Manual) => None,
        }
    }

    /// Whether a failed group goes back.
    pub(crate) fn goes_back(&self) -> bool {
        self.on_failure == Some("rollback")
    }

    /// The block, with a comma.
    pub(crate) fn text(&self) -> String {
        let mut text = r#""update": {"#.to_owned();
        let mut say = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                write!(text, r#""{key}": {value}, "#).unwrap();
            }
        };
        let quoted = |text: &str| format!("\"{text}\"");
        say("max_unavailable", self.max_unavailable.map(Amount::text));
        say("max_surge", self.max_surge.map(Amount::text));
        say("order", self.order.map(quoted));
        say("max_creating", self.max_creating.map(|n| n.to_string()));
        say("max_deleting", self.max_deleting.map(|n| n.to_string()));
        say("canaries", self.canaries.map(Amount::text));
        say(
            "canary_pause",
            self.canary_pause.map(|pause| match pause {
                Pause::Seconds(seconds) => format!("\"{seconds}s\""),
                Pause::Manual => quoted("manual"),
            }),
        );
        say("on_failure", self.on_failure.map(quoted));
        say("max_failures", self.max_failures.map(|n| n.to_string()));
        say("zone_order", self.by_zone.then(|| quoted("one_at_a_time")));
        say(
            "opportunistic",
            self.opportunistic.then(|| "true".to_owned()),
        );
        say("health", self.health.map(|health| {
            let Health { min_healthy_time, interval, deadline } = health;
            format!(
                r#"{{"check": "tcp", "port": 8080, "min_healthy_time": "{min_healthy_time}s", "interval": "{interval}s", "deadline": "{deadline}s"}}"#
            )
        }));
        text.push_str("},");
        text
    }
}

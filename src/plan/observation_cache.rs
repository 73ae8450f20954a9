//! Observations that were compared with their records before, and were equal.
//!
//! In: what earlier plans found, records, what is seen of them now. Out: which are as recorded, and
//! what the next plan may know. May not: take for equal what nobody compared, or keep anything that
//! was rendered: digests are all there is.
//!
//! A record has a digest of what the cloud said when it was written. A cloud says more of an
//! instance once it runs, so that digest doesn't fit any more though nothing has changed. It is
//! compared then, attribute by attribute, and remembered here. Whatever is lost of this costs time
//! only.

use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_state::{Identity, Record};
use serde::{Deserialize, Serialize};

use super::build::SpecReader;
use super::change::all_tags;
use super::drift;
use super::planned::side_of;
use crate::address::Address;
use crate::digest::{hex, sha256_hex};
use crate::provider::rules::Rules;
use crate::provider::{LaunchedUserdata, Observation};
use crate::refresh::{Observed, Seen};

/// What it is kept under, among what was fetched.
pub const KEY: &str = "nstance:familiar";

/// How many digits of a record's digest are kept.
const DIGITS: usize = 32;

/// What was found equal, by provider id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Familiar {
    instances: BTreeMap<String, Found>,
}

/// Of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Found {
    /// A digest of the record that was compared.
    record: String,
    /// The digest of the observation that was equal to it, where that isn't the record's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observed: Option<String>,
    /// The launch since which its user data is known to be as recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    launch: Option<String>,
}

/// What comparing takes.
pub struct Comparing<'a> {
    /// Whose state.
    pub identity: &'a Identity,
    /// The record.
    pub records: &'a [Record],
    /// Recorded specs.
    pub specs: &'a SpecReader<'a>,
    /// The provider's rules.
    pub rules: Rules,
}

impl Familiar {
    /// Reads what was kept; what can't be read is nothing.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// What is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("its keys are strings")
    }

    fn of(&self, record: &Record) -> Option<&Found> {
        let found = self.instances.get(&record.provider_id)?;
        (found.record == print(record)).then_some(found)
    }

    /// The user data that instances are known to have: that of their records.
    pub fn userdata(&self, with: &Comparing<'_>) -> Vec<LaunchedUserdata> {
        let known = |record: &Record| {
            let launch = self.of(record)?.launch.clone()?;
            let spec = (with.specs)(record.spec)?;
            let userdata = spec.userdata.as_ref();
            Some(LaunchedUserdata {
                provider_id: record.provider_id.clone(),
                launch,
                text: userdata.map_or("", |it| it.content.display()).to_owned(),
            })
        };
        with.records.iter().filter_map(known).collect()
    }

    /// Marks in `observed` what is as recorded, though its digest isn't the record's. `launches` are
    /// those whose user data was looked at. Gives what the next plan may know.
    #[must_use]
    pub fn settle(
        &self,
        observed: &mut Observed,
        with: &Comparing<'_>,
        launches: &BTreeMap<String, String>,
    ) -> Self {
        let mut instances = BTreeMap::new();
        for record in with.records {
            let id = &record.provider_id;
            let equal = match observed.get(id) {
                None => continue,
                Some(Seen::InSync) => None,
                Some(Seen::Differs(seen)) => {
                    let digest = hex(&seen.digest);
                    let known = self.of(record).and_then(|found| found.observed.as_ref());
                    let equal = seen.stands_as(record)
                        && (known == Some(&digest) || is_equal(record, seen, with));
                    if !equal {
                        continue;
                    }
                    Some(digest)
                }
            };
            if equal.is_some() {
                observed.accept(id);
            }
            let launch = launches.get(id).cloned();
            if equal.is_some() || launch.is_some() {
                let found = Found {
                    record: print(record),
                    observed: equal,
                    launch,
                };
                instances.insert(id.clone(), found);
            }
        }
        Self { instances }
    }
}

fn is_equal(record: &Record, seen: &Observation, with: &Comparing<'_>) -> bool {
    let (Ok(attributes), Some(spec)) = (seen.attributes(), (with.specs)(record.spec)) else {
        return false;
    };
    let side = side_of(record, spec, record.spec);
    let address = Address::new(Arc::clone(&record.group).into(), record.slot);
    let whose = with.identity;
    let tags = all_tags(with.rules, &whose.cluster, &whose.shard, &address, &side);
    drift::compare(&side, &tags, seen, &attributes, with.rules).is_empty()
}

/// A digest of all that a comparison depends on but the observation: another version of the
/// program may compare more.
fn print(record: &Record) -> String {
    let text = format!(
        "{} {} {} {} {}/{} {} {}",
        env!("CARGO_PKG_VERSION"),
        record.version,
        record.instance_id,
        record.spec,
        record.group,
        record.slot,
        record.zone,
        record.attributes,
    );
    let mut digest = sha256_hex(text.as_bytes());
    digest.truncate(DIGITS);
    digest
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use nstance_state::{SpecDigest, Timestamp};

    use super::*;
    use crate::config::model::ProviderKind;
    use crate::provider::{Attributes, LifecycleState};
    use crate::spec::SpecBody;

    const IDENTITY: [&str; 3] = ["prod", "a", "sim"];

    fn spec() -> SpecBody {
        let mut body = SpecBody::empty("web");
        body.head.instance_type = "small".into();
        body
    }

    fn record() -> Record {
        Record {
            group: "default/web".into(),
            slot: 0,
            deposed: false,
            instance_id: "web1".into(),
            provider_id: "i-1".into(),
            generation: 1,
            kind: "web".into(),
            spec: spec().into_spec().digest(),
            observed: Some(SpecDigest([1; 32])),
            zone: "z".into(),
            subnet: None,
            ip4: None,
            ip6: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            attributes: "{}".into(),
            version: 7,
        }
    }

    fn identity() -> Identity {
        let [cluster, shard, provider] = IDENTITY.map(str::to_owned);
        Identity {
            cluster,
            shard,
            provider,
        }
    }

    /// What is seen of the record's instance; digests differ by `number`.
    fn seen(number: u8, change: impl FnOnce(&mut Attributes)) -> Observation {
        let rules = Rules::of(ProviderKind::Sim);
        let record = record();
        let side = side_of(&record, Arc::new(spec()), record.spec);
        let address = Address::new(Arc::clone(&record.group).into(), 0);
        let mut attributes = Attributes {
            instance_type: "small".into(),
            tags: all_tags(rules, IDENTITY[0], IDENTITY[1], &address, &side),
            ..Attributes::default()
        };
        change(&mut attributes);
        Observation {
            provider_id: "i-1".into(),
            instance_id: Some("web1".into()),
            group: Some("default/web".into()),
            slot: Some(0),
            state: LifecycleState::Running,
            zone: "z".into(),
            subnet: None,
            ip4: None,
            ip6: None,
            created_at: crate::clock::Timestamp(0),
            ended_because: None,
            digest: [number; 32],
            attributes: serde_json::to_string(&attributes).unwrap().into(),
        }
    }

    /// Settles one observation: whether it is taken to be as recorded, how often its spec was read,
    /// and what is known then.
    fn settle(
        familiar: &Familiar,
        record: &Record,
        observation: Observation,
        launch: Option<&str>,
    ) -> (bool, usize, Familiar) {
        let records = HashMap::from([("i-1", record)]);
        let mut observed = Observed::default();
        observed.add(observation, &records);
        let reads = std::sync::atomic::AtomicUsize::new(0);
        let specs = |_: SpecDigest| {
            reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Some(Arc::new(spec()))
        };
        let with = Comparing {
            identity: &identity(),
            records: std::slice::from_ref(record),
            specs: &specs,
            rules: Rules::of(ProviderKind::Sim),
        };
        let launches = launch.map(|launch| ("i-1".to_owned(), launch.to_owned()));
        let learnt = familiar.settle(&mut observed, &with, &launches.into_iter().collect());
        let in_sync = matches!(observed.get("i-1"), Some(Seen::InSync));
        (in_sync, reads.into_inner(), learnt)
    }

    #[test]
    fn what_was_equal_once_isnt_compared_again() {
        let record = record();
        let (equal, reads, learnt) = settle(&Familiar::default(), &record, seen(2, |_| {}), None);
        assert_eq!((equal, reads), (true, 1));
        let learnt = Familiar::from_bytes(&learnt.to_bytes());
        let (equal, reads, same) = settle(&learnt, &record, seen(2, |_| {}), None);
        assert_eq!((equal, reads), (true, 0));
        assert_eq!(same, learnt);
    }

    #[test]
    fn whatever_changed_is_compared() {
        let before = record();
        let (_, _, learnt) = settle(&Familiar::default(), &before, seen(2, |_| {}), None);
        let written = Record {
            version: 8,
            ..record()
        };
        let other = |attributes: &mut Attributes| attributes.instance_type = "large".into();
        let moved = || Observation {
            zone: "y".into(),
            ..seen(2, |_| {})
        };
        let stopped = || Observation {
            state: LifecycleState::Stopped,
            ..seen(2, |_| {})
        };
        for (what, record, observation, equal, reads) in [
            ("another observation", &before, seen(3, |_| {}), true, 1),
            ("another type", &before, seen(3, other), false, 1),
            ("another record", &written, seen(2, |_| {}), true, 1),
            // What digests don't cover is looked at each time.
            ("another zone", &before, moved(), false, 0),
            ("it is down", &before, stopped(), false, 0),
        ] {
            let (is_equal, count, after) = settle(&learnt, record, observation, None);
            assert_eq!((is_equal, count), (equal, reads), "{what}");
            assert_eq!(after == Familiar::default(), !equal, "{what}");
        }
    }

    #[test]
    fn user_data_is_known_of_what_is_as_recorded() {
        let record = record();
        let specs = |_: SpecDigest| Some(Arc::new(spec()));
        let with = Comparing {
            identity: &identity(),
            records: std::slice::from_ref(&record),
            specs: &specs,
            rules: Rules::of(ProviderKind::Sim),
        };
        let other = |attributes: &mut Attributes| attributes.instance_type = "large".into();
        for (observation, known) in [
            (seen(1, |_| {}), 1),
            (seen(2, |_| {}), 1),
            (seen(2, other), 0),
        ] {
            let (_, _, learnt) = settle(&Familiar::default(), &record, observation, Some("today"));
            let userdata = learnt.userdata(&with);
            assert_eq!(userdata.len(), known);
            for one in userdata {
                assert_eq!(
                    (&*one.provider_id, &*one.launch, &*one.text),
                    ("i-1", "today", "")
                );
            }
        }
    }

    #[test]
    fn what_cant_be_read_is_nothing() {
        for bytes in [&b""[..], b"{", b"[]", b"{\"i-1\": 3}"] {
            assert_eq!(Familiar::from_bytes(bytes), Familiar::default());
        }
    }
}

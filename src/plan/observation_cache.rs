//! Caches observations that earlier plans compared with their records and found equal.
//!
//! In: the cache of earlier plans, records, the current observations. Out: which instances are in
//! sync, and the cache for the next plan. Must not: mark an instance in sync without a comparison,
//! or store rendered values instead of digests.
//!
//! A record holds a digest of its observation when the record was written. A cloud reports more
//! about an instance once it runs, so that digest stops matching though nothing has changed. The
//! instance is then compared attribute by attribute, and the result is cached here. Losing the
//! cache only costs time.

use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_state::{Identity, Record};
use serde::{Deserialize, Serialize};

use super::change::{InstanceView, all_tags};
use super::drift;
use super::inputs::SpecReader;
use crate::address::Address;
use crate::digest::{hex, sha256_hex};
use crate::provider::rules::Rules;
use crate::provider::{LaunchedUserdata, Observation};
use crate::refresh::{Observed, Seen};

/// How many hex digits of a record's digest are stored.
const DIGITS: usize = 32;

/// The cache, by provider id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObservationCache {
    instances: BTreeMap<String, Entry>,
}

/// The entry of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// The digest of the compared record.
    record: String,
    /// The digest of the equal observation, if it isn't the record's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observed: Option<String>,
    /// The launch for which its userdata was found equal to the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    launch: Option<String>,
}

/// What a comparison needs besides the observation.
pub struct Recorded<'a> {
    /// The cluster, shard and provider that the state belongs to.
    pub identity: &'a Identity,
    /// The records.
    pub records: &'a [Record],
    /// Recorded specs.
    pub specs: &'a SpecReader<'a>,
    /// The provider's rules.
    pub rules: Rules,
}

impl ObservationCache {
    /// Parses a stored cache; an invalid one is empty.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// The cache in its stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("its keys are strings")
    }

    /// The entry of a record, unless the record has changed since.
    fn entry(&self, record: &Record) -> Option<&Entry> {
        let entry = self.instances.get(&record.provider_id)?;
        (entry.record == record_digest(record)).then_some(entry)
    }

    /// The instances whose userdata was already compared, with their launches.
    pub fn userdata(&self, recorded: &Recorded<'_>) -> Vec<LaunchedUserdata> {
        let known = |record: &Record| {
            let launch = self.entry(record)?.launch.clone()?;
            let spec = (recorded.specs)(record.spec)?;
            let userdata = spec.userdata.as_ref();
            Some(LaunchedUserdata {
                provider_id: record.provider_id.clone(),
                launch,
                text: userdata.map_or("", |it| it.content.display()).to_owned(),
            })
        };
        recorded.records.iter().filter_map(known).collect()
    }

    /// Marks instances as in sync if only their digests differ. `launches` lists instances whose
    /// userdata was compared. Returns the cache for the next plan.
    #[must_use]
    pub fn mark_in_sync(
        &self,
        observed: &mut Observed,
        recorded: &Recorded<'_>,
        launches: &BTreeMap<String, String>,
    ) -> Self {
        let mut instances = BTreeMap::new();
        for record in recorded.records {
            let id = &record.provider_id;
            let equal = match observed.get(id) {
                None => continue,
                Some(Seen::InSync) => None,
                Some(Seen::Differs(seen)) => {
                    let digest = hex(&seen.digest);
                    let known = self.entry(record).and_then(|entry| entry.observed.as_ref());
                    let equal = seen.is_placed_as(record)
                        && (known == Some(&digest) || is_equal(record, seen, recorded));
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
                let entry = Entry {
                    record: record_digest(record),
                    observed: equal,
                    launch,
                };
                instances.insert(id.clone(), entry);
            }
        }
        Self { instances }
    }
}

fn is_equal(record: &Record, seen: &Observation, recorded: &Recorded<'_>) -> bool {
    let (Ok(attributes), Some(spec)) = (seen.attributes(), (recorded.specs)(record.spec)) else {
        return false;
    };
    let view = InstanceView::of_record(record, spec, record.spec);
    let address = Address::new(Arc::clone(&record.group).into(), record.slot);
    let whose = recorded.identity;
    let tags = all_tags(
        recorded.rules,
        &whose.cluster,
        &whose.shard,
        &address,
        &view,
    );
    drift::compare(&view, &tags, seen, &attributes, recorded.rules).is_empty()
}

/// A digest of all other inputs of a comparison. It includes the program's version, since another
/// version may compare more.
fn record_digest(record: &Record) -> String {
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

    /// An observation of the record's instance; its digest depends on `number`.
    fn seen(number: u8, change: impl FnOnce(&mut Attributes)) -> Observation {
        let rules = Rules::of(ProviderKind::Sim);
        let record = record();
        let view = InstanceView::of_record(&record, Arc::new(spec()), record.spec);
        let address = Address::new(Arc::clone(&record.group).into(), 0);
        let mut attributes = Attributes {
            instance_type: "small".into(),
            tags: all_tags(rules, IDENTITY[0], IDENTITY[1], &address, &view),
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

    /// Marks one observation. Returns whether it is in sync, how often its spec was read, and the
    /// new cache.
    fn settle(
        cache: &ObservationCache,
        record: &Record,
        observation: Observation,
        launch: Option<&str>,
    ) -> (bool, usize, ObservationCache) {
        let records = HashMap::from([("i-1", record)]);
        let mut observed = Observed::default();
        observed.add(observation, &records);
        let reads = std::sync::atomic::AtomicUsize::new(0);
        let specs = |_: SpecDigest| {
            reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Some(Arc::new(spec()))
        };
        let recorded = Recorded {
            identity: &identity(),
            records: std::slice::from_ref(record),
            specs: &specs,
            rules: Rules::of(ProviderKind::Sim),
        };
        let launches = launch.map(|launch| ("i-1".to_owned(), launch.to_owned()));
        let learnt = cache.mark_in_sync(&mut observed, &recorded, &launches.into_iter().collect());
        let in_sync = matches!(observed.get("i-1"), Some(Seen::InSync));
        (in_sync, reads.into_inner(), learnt)
    }

    #[test]
    fn what_was_equal_once_isnt_compared_again() {
        let record = record();
        let (equal, reads, learnt) =
            settle(&ObservationCache::default(), &record, seen(2, |_| {}), None);
        assert_eq!((equal, reads), (true, 1));
        let learnt = ObservationCache::from_bytes(&learnt.to_bytes());
        let (equal, reads, same) = settle(&learnt, &record, seen(2, |_| {}), None);
        assert_eq!((equal, reads), (true, 0));
        assert_eq!(same, learnt);
    }

    #[test]
    fn whatever_changed_is_compared() {
        let before = record();
        let (_, _, learnt) = settle(&ObservationCache::default(), &before, seen(2, |_| {}), None);
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
            // Digests don't cover these, so they are always compared.
            ("another zone", &before, moved(), false, 0),
            ("it is down", &before, stopped(), false, 0),
        ] {
            let (is_equal, count, after) = settle(&learnt, record, observation, None);
            assert_eq!((is_equal, count), (equal, reads), "{what}");
            assert_eq!(after == ObservationCache::default(), !equal, "{what}");
        }
    }

    #[test]
    fn user_data_is_known_of_what_is_as_recorded() {
        let record = record();
        let specs = |_: SpecDigest| Some(Arc::new(spec()));
        let recorded = Recorded {
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
            let (_, _, learnt) = settle(
                &ObservationCache::default(),
                &record,
                observation,
                Some("today"),
            );
            let userdata = learnt.userdata(&recorded);
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
            assert_eq!(
                ObservationCache::from_bytes(bytes),
                ObservationCache::default()
            );
        }
    }
}

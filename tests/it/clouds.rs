//! The life of a fleet on a cloud, whichever it is.
//!
//! In: an account with the fleet's configuration, as each cloud's tests make one. Out: nothing; a
//! panic where record, cloud and configuration disagree. Must not: know a cloud.

use std::collections::BTreeSet;

use crate::harness::{Ended, Harness};

/// An account on a cloud, with the fleet: `web` with two instances, `store` with one, all with the
/// tag or label `team`.
pub(crate) trait Account {
    fn harness(&self) -> &Harness;

    fn run(&self, words: &str) -> Ended;

    /// The instances that exist, as the cloud has them.
    fn live(&self) -> Vec<Seen>;

    /// Sets the tag `team`, as somebody else would.
    fn set_team(&self, id: &str, value: &str);

    /// Deletes an instance, as somebody else would.
    fn delete(&self, id: &str);

    /// Stops an instance, as somebody else would.
    fn stop(&self, id: &str);
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    /// `tenant/group/slot`, by its tags.
    pub(crate) address: String,
    /// The instance id, by its tags.
    pub(crate) instance_id: String,
    /// The provider id.
    pub(crate) id: String,
    /// The tag `team`.
    pub(crate) team: String,
}

/// Runs a command that must end well.
#[track_caller]
pub(crate) fn ok(account: &dyn Account, words: &str) -> Ended {
    let ended = account.run(words);
    assert_eq!(ended.code, Some(0), "{ended}");
    ended
}

/// The instance of an address.
#[track_caller]
pub(crate) fn at(account: &dyn Account, address: &str) -> Seen {
    let mut live = account.live().into_iter();
    live.find(|one| one.address == address).expect("it is live")
}

/// Applies, and asserts that record and cloud agree, and that nothing is left to do.
#[track_caller]
pub(crate) fn apply(account: &dyn Account, options: &str) -> Ended {
    let applied = ok(account, &format!("apply --auto-approve {options}"));
    agrees(account);
    let plan = account.run("plan --detailed-exitcode");
    assert_eq!(plan.code, Some(0), "{plan}");
    assert!(plan.stdout.contains("No changes."), "{plan}");
    let drift = ok(account, "drift");
    assert!(drift.stdout.contains("No drift"), "{drift}");
    applied
}

/// Asserts that record and cloud agree to the instance. Returns how many there are.
#[track_caller]
pub(crate) fn agrees(account: &dyn Account) -> usize {
    let live = account.live();
    let there: BTreeSet<[String; 3]> = live
        .iter()
        .map(|one| [&one.address, &one.instance_id, &one.id].map(Clone::clone))
        .collect();
    let document = ok(account, "state list --json").json();
    let records = document["records"].as_array().expect("a list");
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
    let recorded: BTreeSet<[String; 3]> = records
        .iter()
        .map(|row| ["address", "instance_id", "provider_id"].map(|key| text(row, key)))
        .collect();
    assert_eq!(recorded, there, "record and cloud disagree");
    let addresses: BTreeSet<_> = live.iter().map(|one| &one.address).collect();
    assert_eq!(addresses.len(), live.len(), "a slot is filled twice");
    live.len()
}

/// The life of the fleet: made, grown, changed by others, lost and found, shrunk, ended.
pub(crate) fn a_fleet_lives(account: &dyn Account) {
    let planned = account.run("plan --detailed-exitcode");
    assert_eq!(planned.code, Some(2), "{planned}");
    assert!(account.live().is_empty(), "a plan makes nothing");
    apply(account, "");
    assert_eq!(account.live().len(), 3);

    account.harness().edit("\"size\": 2", "\"size\": 4");
    apply(account, "");
    assert_eq!(account.live().len(), 5);

    // A tag that somebody changed is put back, on the same instance.
    let web = at(account, "default/web/0");
    account.set_team(&web.id, "somebody");
    let drift = account.run("drift");
    assert_eq!(drift.code, Some(2), "{drift}");
    apply(account, "");
    assert_eq!(at(account, "default/web/0"), web);

    // What somebody deleted is made again; the others stay.
    let others = [at(account, "default/web/0"), at(account, "default/store/0")];
    let gone = at(account, "default/web/1");
    account.delete(&gone.id);
    apply(account, "");
    assert_ne!(at(account, "default/web/1").id, gone.id);
    assert_eq!(
        others,
        [at(account, "default/web/0"), at(account, "default/store/0")]
    );

    // What somebody stopped is said.
    account.stop(&others[1].id);
    let plan = account.run("plan");
    assert!(plan.stdout.contains("stopped"), "{plan}");
    apply(account, "");
    assert_eq!(at(account, "default/store/0").id, others[1].id);

    // A fleet whose state is lost is adopted, never made twice.
    let before = account.live();
    std::fs::remove_file(account.harness().path(".nstance/test/one.db")).expect("a state");
    apply(account, "");
    let ids = |live: &[Seen]| live.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&account.live()), ids(&before));

    account.harness().edit("\"size\": 4", "\"size\": 1");
    apply(account, "--allow-delete all");
    assert_eq!(account.live().len(), 2);
    ok(account, "destroy --auto-approve --allow-delete all");
    assert_eq!(agrees(account), 0);
}

/// Replaces what follows each `mark`, as far as `is_part` holds.
pub(crate) fn put(text: &str, mark: &str, put: &str, is_part: fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(is_part);
        out.push_str(mark);
        out.push_str(if rest.len() < part.len() { put } else { "" });
        out.push_str(rest);
    }
    out
}

//! Rollouts: what is kept of them, and who may ask for something.

use nstance_state::{
    NewRequest, NewRollout, Rollout, RolloutGroup, RolloutId, RolloutSlot, RolloutStatus,
    StateError, Store, Timestamp, Write,
};

use super::{Subject, created, everything, locked, opened, put, seen, started};
use crate::common::record;
use crate::lock::info;

pub(super) fn start(name: &str) -> Write {
    Write::StartRollout(Box::new(NewRollout {
        plan_digest: Some(format!("digest of {name}")),
        plan: format!("the plan of {name}").into_bytes(),
        status: RolloutStatus::Running,
    }))
}

pub(super) fn group(id: Option<RolloutId>, group: &str, stage: &str) -> Write {
    let group = RolloutGroup {
        group: group.into(),
        stage: stage.into(),
        since: Timestamp(0),
        detail: format!("{{\"at\": \"{stage}\"}}"),
    };
    Write::PutRolloutGroup { id, group }
}

pub(super) fn slot(id: Option<RolloutId>, address: &str, stage: &str) -> Write {
    let slot = RolloutSlot {
        address: address.into(),
        instance_id: format!("knd-{address}"),
        stage: stage.into(),
        since: Timestamp(0),
        detail: String::new(),
    };
    Write::PutRolloutSlot { id, slot }
}

pub(super) fn request(kind: &str) -> Write {
    Write::AddRequest(NewRequest {
        group: Some("default/web".into()),
        kind: kind.into(),
        who: "bob".into(),
    })
}

pub(super) fn last_good(group: &str, body: &str) -> Write {
    Write::PutLastGood {
        group: group.into(),
        body: body.as_bytes().to_vec(),
    }
}

fn kinds(store: &dyn Store) -> Vec<String> {
    let requests = store.rollout_requests().unwrap().into_iter();
    requests.map(|request| request.kind).collect()
}

pub(super) fn rollouts_are_kept_until_the_next_starts(subject: &dyn Subject) {
    let mut store = created(subject);
    assert_eq!(store.rollout().unwrap(), None);
    assert_eq!(store.rollout_plan(RolloutId(1)).unwrap(), None);
    assert!(store.last_good(&["default/web"]).unwrap().is_empty());
    store.commit(Timestamp(1), everything()).unwrap();
    let serial = store.meta().unwrap().serial;
    let replaced = store.rollout().unwrap().unwrap().id;

    // Groups and slots that the same batch starts a rollout for; their order is that of their names.
    let batch = vec![
        start("v2"),
        group(None, "default/web", "waiting"),
        group(None, "default/db", "canary"),
        slot(None, "default/web/1", "ready"),
        slot(None, "default/db/0", "booting"),
    ];
    let id = store.commit(Timestamp(2), batch).unwrap().rollout.unwrap();
    assert!(id > replaced);
    // The same group and the same instance again, and another instance of the same slot.
    let mut newcomer = slot(Some(id), "default/db/0", "booting");
    if let Write::PutRolloutSlot { slot, .. } = &mut newcomer {
        slot.instance_id = "knd-another".into();
        slot.detail = "it said: \"ä\"".into();
    }
    let batch = vec![
        group(Some(id), "default/db", "soaking"),
        slot(Some(id), "default/db/0", "ready"),
        newcomer,
    ];
    store.commit(Timestamp(3), batch).unwrap();
    let rollout = store.rollout().unwrap().unwrap();
    assert_eq!(rollout.id, id);
    assert_eq!(rollout.plan_digest.as_deref(), Some("digest of v2"));
    let groups: Vec<_> = rollout
        .groups
        .iter()
        .map(|group| (&*group.group, &*group.stage, group.since.0, &*group.detail))
        .collect();
    assert_eq!(
        groups,
        [
            ("default/db", "soaking", 3, "{\"at\": \"soaking\"}"),
            ("default/web", "waiting", 2, "{\"at\": \"waiting\"}"),
        ]
    );
    let slots: Vec<_> = rollout
        .slots
        .iter()
        .map(|slot| {
            (
                &*slot.instance_id,
                &*slot.stage,
                slot.since.0,
                &*slot.detail,
            )
        })
        .collect();
    assert_eq!(
        slots,
        [
            ("knd-another", "booting", 3, "it said: \"ä\""),
            ("knd-default/db/0", "ready", 3, ""),
            ("knd-default/web/1", "ready", 2, ""),
        ]
    );

    // Of the one before nothing is left: not its plan, its slots or its requests.
    assert_eq!(store.rollout_plan(replaced).unwrap(), None);
    assert_eq!(kinds(&*store), [""; 0]);
    let late = vec![group(Some(replaced), "default/web", "done")];
    let refused = store.commit(Timestamp(4), late).unwrap_err();
    assert!(matches!(refused, StateError::NotOpen { .. }), "{refused}");
    // What was good last belongs to no rollout.
    let last = |store: &dyn Store| {
        let mut found = store.last_good(&["default/web", "default/db"]).unwrap();
        found.remove("default/web")
    };
    assert_eq!(last(&*store).unwrap(), b"v0");

    // The plan stays as long as something may need it.
    let plan = |store: &dyn Store| store.rollout_plan(id).unwrap();
    for (now, status) in (5..).zip(RolloutStatus::ALL) {
        let back = Write::SetRolloutPlan {
            id,
            plan: b"the way back".to_vec(),
        };
        store.commit(Timestamp(now - 1), vec![back]).unwrap();
        let set = Write::SetRolloutStatus { id, status };
        store.commit(Timestamp(now), vec![set]).unwrap();
        let found = store.rollout().unwrap().unwrap();
        let expected = Rollout {
            status,
            changed_at: Timestamp(now),
            ..rollout.clone()
        };
        assert_eq!(found, expected);
        let dropped = matches!(status, RolloutStatus::Done | RolloutStatus::Superseded);
        assert_eq!(plan(&*store).is_none(), dropped, "{status:?}");
        assert_eq!(RolloutStatus::parse(status.as_str()), Some(status));
    }
    assert_eq!(RolloutStatus::parse("stopped"), None);

    let batch = vec![
        last_good("default/web", "v2"),
        last_good("default/db", "v2"),
        Write::RemoveLastGood {
            group: "default/db".into(),
        },
        Write::RemoveLastGood {
            group: "no such group".into(),
        },
        Write::CollectGarbage,
    ];
    store.commit(Timestamp(20), batch).unwrap();
    assert_eq!(last(&*store).unwrap(), b"v2");
    assert_eq!(seen(&*store).last_good.len(), 1);
    // None of this is a change of records.
    assert_eq!(store.meta().unwrap().serial, serial);
    assert_eq!(seen(&*opened(&*subject.crashed())), seen(&*store));
}

pub(super) fn a_request_needs_no_lock_and_fences_nobody(subject: &dyn Subject) {
    let mut running = created(subject);
    let _held = locked(subject, info("running")).unwrap();
    let batch = vec![started(), start("v1")];
    let id = running.commit(Timestamp(2), batch).unwrap().rollout;

    // Another process, which opens the state now and has no lock.
    let mut other = opened(subject);
    other.commit(Timestamp(3), vec![request("pause")]).unwrap();
    // The one that runs goes on, and so does the other.
    let batch = vec![group(id, "default/web", "paused"), started()];
    running.commit(Timestamp(4), batch).unwrap();
    let mut other = opened(subject);
    other
        .commit(Timestamp(5), vec![request("promote"), request("abort")])
        .unwrap();
    let found = running.rollout_requests().unwrap();
    let times: Vec<i64> = found.iter().map(|request| request.at.0).collect();
    assert_eq!(times, [3, 5, 5]);
    assert_eq!(found[0].group.as_deref(), Some("default/web"));
    assert_eq!((&*found[0].kind, &*found[0].who), ("pause", "bob"));
    assert!(found.is_sorted_by_key(|request| request.id));
    // Removing an unknown request changes nothing.
    let remove = Write::RemoveRequest { id: found[1].id };
    let batch = vec![remove.clone(), remove];
    running.commit(Timestamp(6), batch).unwrap();
    assert_eq!(kinds(&*running), ["pause", "abort"]);
    assert_eq!(kinds(&*opened(&*subject.crashed())), ["pause", "abort"]);

    // One that was opened before the running one took over learns so, and asks again.
    let mut early = opened(subject);
    running.commit(Timestamp(7), vec![started()]).unwrap();
    let refused = early.commit(Timestamp(8), vec![request("pause")]);
    assert!(matches!(refused, Err(StateError::Fenced { .. })));
    // Ids aren't used again.
    running.commit(Timestamp(9), vec![start("v2")]).unwrap();
    assert_eq!(kinds(&*running), [""; 0]);
    let mut other = opened(subject);
    other.commit(Timestamp(10), vec![request("pause")]).unwrap();
    assert!(running.rollout_requests().unwrap()[0].id > found[2].id);
    running
        .commit(
            Timestamp(11),
            vec![super::spec(1), put(record("default/web", 0))],
        )
        .unwrap();
}

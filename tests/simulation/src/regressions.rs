//! What broke once, by the way it broke.

use std::time::Duration;

use nstance::clock::Clock as _;
use nstance::config::model::Check;
use nstance::plan::change::{Action, Mode};
use nstance::provider::sim::SimOptions;
use nstance::provider::sim::options::{FailRule, Operation};
use nstance::provider::{
    Cloud, CloudError, CloudErrorKind, CreateRequest, DeleteRequest, ImageMatch, ImageQuery,
    Observation, Owner, Page, SubnetInfo, TargetHealth, TargetsRequest, UpdateRequest,
};
use nstance::refresh::refresh;

use crate::arrival::arrive_unharmed as arrive;
use crate::fleet::{BALANCER, Fleet, Group};
use crate::person::{options, plan};
use crate::policy::{Amount, Health, Pause, Policy};
use crate::run::{Course, End, apply, owner, plan_of};
use crate::world::World;

fn late() -> SimOptions {
    SimOptions {
        stale_listing: Duration::from_secs(5),
        ..SimOptions::default()
    }
}

/// A run that may delete what it likes.
fn free() -> Course {
    Course {
        allow_delete: true,
        ..Course::default()
    }
}

fn web(size: u32) -> Fleet {
    Fleet::of([Group::new("web", size)])
}

/// The plan after an apply forgot the instance that it had made, since no listing had it yet.
#[test]
fn an_instance_made_a_moment_ago_is_not_taken_for_gone() {
    let mut world = World::new(late());
    apply(&world, &web(2), &free()).unwrap();
    let plan = plan_of(&world, &web(2), Mode::Normal).unwrap();
    assert!(!plan.summary.has_changes(), "{:#?}", plan.changes);
    world.check().unwrap();

    // Nor while it is deleted: an interrupted deletion isn't done because nothing is seen.
    for dies_at in 0.. {
        let course = Course {
            dies_at: Some(dies_at),
            ..free()
        };
        let ran = apply(&world, &web(0), &course).unwrap();
        world.check().unwrap();
        if !matches!(ran.end, End::Died) {
            break;
        }
    }
    world.pass(Duration::from_secs(10));
    arrive(&mut world, &web(0), Mode::Normal, 1).unwrap();
}

/// A cloud that says of itself what isn't so, or where others are busy.
struct Bent<'a> {
    cloud: &'a dyn Cloud,
    window: Duration,
    on_list: &'a (dyn Fn() + Sync),
}

impl Cloud for Bent<'_> {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }
    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError> {
        let page = self.cloud.list(owner, page);
        (self.on_list)();
        page
    }
    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError> {
        self.cloud.describe(provider_ids)
    }
    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
        self.cloud.find_images(query)
    }
    fn subnets(&self, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
        self.cloud.subnets(ids)
    }
    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError> {
        self.cloud.create(request)
    }
    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError> {
        self.cloud.update(request)
    }
    fn register(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        self.cloud.register(request)
    }
    fn deregister(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        self.cloud.deregister(request)
    }
    fn target_health(
        &self,
        provider_ids: &[String],
        load_balancers: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError> {
        self.cloud.target_health(provider_ids, load_balancers)
    }
    fn probe(&self, provider_id: &str, check: &Check) -> Option<Result<(), String>> {
        self.cloud.probe(provider_id, check)
    }
    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        self.cloud.delete(request)
    }
    fn visibility_window(&self) -> Duration {
        self.window
    }
}

/// One that is shown on its way out is missed at once, however young.
#[test]
fn an_instance_seen_on_its_way_out_is_gone_however_young() {
    let world = World::new(SimOptions {
        boot_time: Duration::from_mins(1),
        ..SimOptions::default()
    });
    apply(&world, &web(2), &free()).unwrap();
    let ids: Vec<_> = world
        .live()
        .into_iter()
        .map(|row| row.provider_id)
        .collect();
    let cloud = world.cloud();
    let deletion = DeleteRequest {
        token: "by hand".to_owned(),
        provider_id: ids[0].clone(),
        drain_timeout_ms: 0,
        load_balancers: Vec::new(),
        until_gone: false,
    };
    cloud.delete(&deletion).unwrap();
    let slow = Bent {
        cloud: &cloud,
        window: Duration::from_mins(5),
        on_list: &|| (),
    };
    let snapshot = world.snapshot().unwrap();
    let now = world.clock.now();
    let observed = refresh(&slow, &owner(), snapshot.as_ref(), now, |_| {}).unwrap();
    assert!(observed.get(&ids[0]).is_none());
    assert!(observed.get(&ids[1]).is_some());
}

/// The state was lost in the midst of a replacement: the predecessor was adopted, and replaced once
/// more, by an instance that its successor stood in the way of.
#[test]
fn of_two_that_claim_a_slot_the_successor_is_adopted() {
    for stops_after in 0..12 {
        let mut world = World::new(SimOptions::default());
        apply(&world, &web(1), &free()).unwrap();
        let mut wanted = web(1);
        wanted.groups[0].image = "img-b";
        wanted.groups[0].fixed_address = Some("100.64.9.9");
        let course = Course {
            stops_after: Some(stops_after),
            ..free()
        };
        apply(&world, &wanted, &course).unwrap();
        if world.live().len() == 2 {
            world.lose_state();
            let plan = plan_of(&world, &wanted, Mode::Normal).unwrap();
            let adopted = plan.changes[0].after.as_ref().unwrap();
            assert_eq!(adopted.ip4.as_deref(), Some("100.64.9.9"));
            arrive(&mut world, &wanted, Mode::Normal, 1).unwrap();
            return;
        }
    }
    panic!("it never stopped in the midst");
}

/// The call went out long after its intent was stored; recovery counted from the intent.
#[test]
fn a_call_much_later_than_its_intent_is_found_again() {
    for seed in 0..5 {
        for dies_at in 4..24 {
            let mut world = World::new(SimOptions {
                // Each call takes longer than the listing is late.
                latency: Duration::from_secs(9),
                ..late()
            });
            let course = Course {
                seed,
                dies_at: Some(dies_at),
                ..free()
            };
            apply(&world, &web(3), &course).unwrap();
            world.check().unwrap();
            world.weather = late();
            // Nobody wants them any more, so nothing is asked for again.
            let case = format!("seed {seed}, death at {dies_at}");
            apply(&world, &web(0), &free()).unwrap();
            world.check().expect(&case);
        }
    }
}

/// A token that the cloud calls used up, while its instance is not to be seen yet.
#[test]
fn a_used_token_whose_instance_is_not_seen_yet_makes_no_second_one() {
    let fail = |error| FailRule {
        operation: Operation::Create,
        after: 0,
        count: 1,
        error,
    };
    let mut world = World::new(SimOptions {
        fail: vec![
            fail(CloudErrorKind::Ambiguous),
            fail(CloudErrorKind::TokenMismatch),
        ],
        ..late()
    });
    let ran = apply(&world, &web(1), &free()).unwrap();
    assert!(matches!(ran.end, End::Applied(ref outcome) if outcome.is_complete()));
    world.check().unwrap();
    assert_eq!(world.live().len(), 1);
    world.weather = late();
    arrive(&mut world, &web(1), Mode::Normal, 1).unwrap();
}

/// Somebody changed it by hand, and later configured the same.
#[test]
fn a_change_by_hand_that_is_configured_later_is_recorded() {
    let mut world = World::new(SimOptions::default());
    arrive(&mut world, &web(1), Mode::Normal, 1).unwrap();
    let id = world.live().remove(0).provider_id;
    world.admin().set_type(&id, "big").unwrap();
    let mut fleet = web(1);
    fleet.groups[0].instance_type = "big";
    let plan = plan_of(&world, &fleet, Mode::Normal).unwrap();
    let actions: Vec<_> = plan.changes.iter().map(|change| change.action).collect();
    assert_eq!(actions, [Action::Adopt]);
    arrive(&mut world, &fleet, Mode::Normal, 1).unwrap();
}

/// Somebody changed it by hand between its creation and the answer's arrival: what came was taken
/// for what was asked.
#[test]
fn a_change_before_the_answer_came_is_not_taken_for_wanted() {
    let mut world = World::new(SimOptions {
        lost_answer_rate: 1.0,
        ..SimOptions::default()
    });
    apply(&world, &web(1), &free()).unwrap();
    let id = world.live().remove(0).provider_id;
    world.admin().set_tag(&id, "colour", Some("white")).unwrap();
    world.weather = SimOptions::default();
    arrive(&mut world, &web(1), Mode::Normal, 1).unwrap();
}

/// The spec that a plan was about to read was let go of by an apply: the plan left an instance out,
/// as if its record were damaged.
#[test]
fn a_plan_made_while_another_applies_is_whole_or_says_why() {
    let mut world = World::new(SimOptions::default());
    arrive(&mut world, &web(1), Mode::Normal, 1).unwrap();
    let mut red = web(1);
    red.groups[0].colour = "red";
    let cloud = world.cloud();
    let applied = &|| drop(apply(&world, &red, &free()).unwrap());
    let busy = Bent {
        cloud: &cloud,
        window: Duration::ZERO,
        on_list: applied,
    };
    let mut store = world.backend().open_to_read(None).unwrap();
    let options = options(&red, Mode::Normal, &[]);
    let planned = plan(&red, &options, Some(&mut *store), &busy, &*world.clock);
    let said = planned.unwrap_err();
    assert!(
        said.contains("was changed while it was being read"),
        "{said}"
    );
}

/// A copy of an instance, tags and all, took the record of its original.
#[test]
fn a_copy_in_another_slot_leaves_its_original_recorded() {
    let mut world = World::new(SimOptions::default());
    arrive(&mut world, &web(1), Mode::Normal, 1).unwrap();
    let original = world.live().remove(0);
    let attributes = world
        .admin()
        .show(&original.provider_id)
        .unwrap()
        .attributes;
    let mut tags = attributes.tags;
    tags.insert("nstance:slot".to_owned(), "1".to_owned());
    world
        .cloud()
        .create(&CreateRequest {
            token: "by hand".to_owned(),
            instance_id: String::new(),
            name: String::new(),
            arch: "amd64".to_owned(),
            instance_type: attributes.instance_type,
            zone: "za".to_owned(),
            subnet: None,
            args: attributes.args,
            userdata: None,
            tags,
        })
        .unwrap();
    world.lost = world
        .live()
        .into_iter()
        .map(|row| row.provider_id)
        .filter(|id| *id != original.provider_id)
        .collect();
    arrive(&mut world, &web(2), Mode::Normal, 1).unwrap();
    assert_eq!(world.live().len(), 2);
    let snapshot = world.snapshot().unwrap().unwrap();
    assert_eq!(snapshot.records.len(), 2);
}

/// A fleet that a policy replaces, before and after.
fn rolled(size: u32, balanced: bool, policy: Policy) -> (Fleet, Fleet) {
    let mut from = web(size);
    from.groups[0].balanced = balanced;
    from.groups[0].policy = Some(policy);
    let mut to = from.clone();
    to.groups[0].image = "img-b";
    (from, to)
}

fn deleting_first(unavailable: u32) -> Policy {
    Policy {
        order: Some("delete_first"),
        max_unavailable: Some(Amount::Count(unavailable)),
        ..Policy::default()
    }
}

/// Where every instance may go, and `max_creating` held a gate shut, the engine asked to be woken in
/// the past, over and over.
#[test]
fn a_gate_that_max_creating_shuts_is_waited_for_without_spinning() {
    let policy = Policy {
        max_creating: Some(1),
        ..deleting_first(2)
    };
    let (from, to) = rolled(2, false, policy);
    let mut world = World::new(SimOptions {
        boot_time: Duration::from_secs(5),
        ..SimOptions::default()
    });
    arrive(&mut world, &from, Mode::Normal, 1).unwrap();
    let ran = apply(&world, &to, &free()).unwrap();
    assert!(matches!(ran.end, End::Applied(ref outcome) if outcome.is_complete()));
    assert!(ran.steps < 200, "{} steps", ran.steps);
}

/// The canary served, the instance after it didn't: the canary waited for it, and it for the canary.
#[test]
fn an_instance_that_is_not_available_does_not_wait_for_the_canaries() {
    let policy = Policy {
        canaries: Some(Amount::Count(1)),
        canary_pause: Some(Pause::Seconds(40)),
        health: Some(Health {
            min_healthy_time: 3,
            interval: 2,
            deadline: 60,
        }),
        ..deleting_first(1)
    };
    let (from, to) = rolled(2, false, policy);
    let mut world = World::new(SimOptions::default());
    arrive(&mut world, &from, Mode::Normal, 1).unwrap();
    let sick = world.live().remove(1).provider_id;
    world.admin().fail(&sick).unwrap();
    let ran = apply(&world, &to, &free()).unwrap();
    assert!(
        matches!(ran.end, End::Applied(ref outcome) if outcome.is_complete()),
        "{ran:?}"
    );
    arrive(&mut world, &to, Mode::Normal, 1).unwrap();
}

/// An instance that had lost its load balancer counted as available, since its change began with
/// what was observed.
#[test]
fn an_instance_without_its_load_balancer_is_not_available() {
    let (from, to) = rolled(3, true, deleting_first(1));
    let mut world = World::new(SimOptions::default());
    arrive(&mut world, &from, Mode::Normal, 1).unwrap();
    let lost = world.live().remove(2).provider_id;
    let request = TargetsRequest {
        provider_id: lost,
        load_balancers: vec![BALANCER.to_owned()],
    };
    world.cloud().deregister(&request).unwrap();
    // What goes out of service is looked at by `apply`.
    apply(&world, &to, &free()).unwrap();
    arrive(&mut world, &to, Mode::Normal, 1).unwrap();
}

/// An update that repaired drift left no trace in its record, so the next apply took it for one
/// that was still to be done, and planned the rest of the rollout anew.
#[test]
fn a_rollout_goes_on_after_an_update_that_changed_no_record() {
    let mut world = World::new(SimOptions::default());
    arrive(&mut world, &web(1), Mode::Normal, 1).unwrap();
    let stopped = world.live().remove(0).provider_id;
    world.admin().stop(&stopped).unwrap();
    world.weather.quota = Some(2);
    let ran = apply(&world, &web(3), &free()).unwrap();
    assert!(
        matches!(ran.end, End::Applied(ref outcome) if outcome.done.update == 1),
        "{ran:?}"
    );
    // Breaks if the ids of the instances that are left differ from those planned first.
    world.weather.quota = None;
    arrive(&mut world, &web(3), Mode::Normal, 1).unwrap();
}

/// A group that stopped after a failure was noted as one that waits in vain, which is planned anew.
#[test]
fn a_rollout_goes_on_after_a_failure_while_another_change_waits() {
    let policy = Policy {
        max_surge: Some(Amount::Count(1)),
        ..Policy::default()
    };
    let (from, to) = rolled(2, false, policy);
    let mut world = World::new(SimOptions::default());
    arrive(&mut world, &from, Mode::Normal, 1).unwrap();
    let gone = world.live().remove(0).provider_id;
    world.admin().delete(&gone).unwrap();
    world.weather.fail = vec![FailRule {
        operation: Operation::Create,
        after: 0,
        count: 1,
        error: CloudErrorKind::Denied,
    }];
    let ran = apply(&world, &to, &free()).unwrap();
    assert!(
        matches!(ran.end, End::Applied(ref outcome) if outcome.failures == 1),
        "{ran:?}"
    );
    world.weather.fail = Vec::new();
    arrive(&mut world, &to, Mode::Normal, 1).unwrap();
}

//! A small EC2: idempotent tokens, pages, transitional states, listings that lag behind,
//! protection, target groups; and faults on demand.
//!
//! In: calls. Out: answers as EC2 gives them. Must not: be kinder than EC2.

mod acts;
mod said;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nstance_ec2::{Api, ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use crate::clock::{Clock, FixedClock, Timestamp};
use said::set_tag;

pub(super) const TARGET_GROUP: &str =
    "arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/web/1";

/// A new instance is missing this long from listings, and from descriptions by id.
const LISTED_AFTER: Duration = Duration::from_secs(20);
const DESCRIBED_AFTER: Duration = Duration::from_secs(2);
const BOOT: Duration = Duration::from_secs(8);
const STOP: Duration = Duration::from_secs(20);
const END: Duration = Duration::from_secs(30);

type Gate = Arc<dyn Fn() -> bool + Send + Sync>;

pub(super) struct FakeEc2 {
    clock: Arc<FixedClock>,
    world: Mutex<World>,
    held: Mutex<Option<(Operation, Gate)>>,
    next: AtomicUsize,
}

#[derive(Default)]
struct World {
    instances: BTreeMap<String, Instance>,
    tokens: BTreeMap<String, (Value, String)>,
    /// What is described of the members of target groups, in place of `members`.
    described: BTreeMap<String, Value>,
    /// Target ids; those that drain with when they are gone.
    members: BTreeMap<String, Option<Timestamp>>,
    log: Vec<(Operation, Value)>,
    faults: BTreeMap<Operation, VecDeque<Fault>>,
    denied: Vec<Operation>,
    /// As some that speak EC2's language.
    ignores_dry_runs: bool,
    page_size: Option<usize>,
    dies: Option<String>,
}

enum Fault {
    Refuse(ApiError),
    LoseAnswer,
}

struct Instance {
    said: Value,
    state: &'static str,
    next: Option<(Timestamp, &'static str)>,
    made: Timestamp,
    protected: bool,
    userdata: String,
    dies: Option<String>,
}

impl Instance {
    fn advance(&mut self, now: Timestamp) {
        if let Some((at, state)) = self.next
            && at <= now
        {
            self.state = state;
            self.next = None;
            if state == "running"
                && let Some(code) = self.dies.take()
            {
                self.state = "terminated";
                self.said["StateReason"] = json!({"Code": code, "Message": code});
            }
        }
    }

    fn said(&self) -> Value {
        let mut said = self.said.clone();
        said["State"] = json!({"Name": self.state});
        if self.state == "pending" {
            said["BlockDeviceMappings"] = json!([]);
        }
        said
    }
}

fn refused(code: &str, message: String) -> ApiError {
    ApiError {
        status: Some(400),
        request_id: Some("0-0-0".into()),
        ..ApiError::new(ApiErrorKind::Refused, code, message)
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn list<'v>(value: &'v Value, name: &str) -> Vec<&'v str> {
    let items = value[name].as_array();
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

impl FakeEc2 {
    pub(super) fn new(clock: Arc<FixedClock>) -> Self {
        Self {
            clock,
            world: Mutex::default(),
            held: Mutex::new(None),
            next: AtomicUsize::new(0),
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap();
        let now = self.clock.now();
        for instance in world.instances.values_mut() {
            instance.advance(now);
        }
        world
            .members
            .retain(|_, until| until.is_none_or(|until| until > now));
        world
    }

    pub(super) fn page_size(&self, size: usize) {
        self.world().page_size = Some(size);
    }

    pub(super) fn fail_next(&self, operation: Operation, error: ApiError) {
        let fault = Fault::Refuse(error);
        self.world()
            .faults
            .entry(operation)
            .or_default()
            .push_back(fault);
    }

    pub(super) fn lose_next_answer(&self, operation: Operation) {
        let fault = Fault::LoseAnswer;
        self.world()
            .faults
            .entry(operation)
            .or_default()
            .push_back(fault);
    }

    /// Does what it is asked to try.
    pub(super) fn ignore_dry_runs(&self) {
        self.world().ignores_dry_runs = true;
    }

    pub(super) fn deny(&self, operations: &[Operation]) {
        self.world().denied = operations.to_vec();
    }

    /// The next call of an operation waits until `gate` is open.
    pub(super) fn hold(&self, operation: Operation, gate: Gate) {
        *self.held.lock().unwrap() = Some((operation, gate));
    }

    pub(super) fn die_at_start(&self, code: &str) {
        self.world().dies = Some(code.to_owned());
    }

    pub(super) fn instances(&self) -> Vec<String> {
        self.world().instances.keys().cloned().collect()
    }

    pub(super) fn forget_all(&self) {
        self.world().instances.clear();
    }

    pub(super) fn edit(&self, id: &str, pointer: &str, value: &Value) {
        let mut world = self.world();
        let said = &mut world.instances.get_mut(id).unwrap().said;
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        said.pointer_mut(parent).unwrap()[name] = value.clone();
        if value.is_null() {
            said.as_object_mut().unwrap().shift_remove(name);
        }
    }

    pub(super) fn tag(&self, id: &str, key: &str, value: &str) {
        set_tag(
            &mut self.world().instances.get_mut(id).unwrap().said,
            key,
            value,
        );
    }

    pub(super) fn tags(&self, id: &str) -> BTreeMap<String, String> {
        super::super::observe::tags(&self.world().instances[id].said)
    }

    pub(super) fn userdata(&self, id: &str) -> String {
        self.world().instances[id].userdata.clone()
    }

    pub(super) fn stop(&self, id: &str) {
        let now = self.clock.now();
        let mut world = self.world();
        let instance = world.instances.get_mut(id).unwrap();
        instance.state = "stopping";
        instance.next = Some((now.after(STOP), "stopped"));
    }

    pub(super) fn interrupt(&self, id: &str) {
        let mut world = self.world();
        let instance = world.instances.get_mut(id).unwrap();
        instance.state = "terminated";
        instance.next = None;
        instance.said["StateReason"] = json!({"Code": "Server.SpotInstanceTermination", "Message": "Server.SpotInstanceTermination: Spot instance termination"});
    }

    /// An instance of somebody else's.
    pub(super) fn add_stranger(&self) {
        self.call(
            Operation::RunInstances,
            &json!({"ClientToken": "other", "InstanceType": "t3.micro", "ImageId": "ami-1"}),
        )
        .unwrap();
    }

    pub(super) fn members(&self) -> Vec<String> {
        let world = self.world();
        let members = world.members.iter().filter(|(_, until)| until.is_none());
        members.map(|(id, _)| id.clone()).collect()
    }

    /// The health that a target group reports, as `(target id, port, state, reason, description)`.
    pub(super) fn describe_members(&self, arn: &str, members: &[(&str, u16, &str, &str, &str)]) {
        let members = members.iter().map(|(id, port, state, reason, why)| {
            let health = json!({"State": state, "Reason": reason, "Description": why});
            json!({"Target": {"Id": id, "Port": port}, "TargetHealth": health})
        });
        let described = json!({"TargetHealthDescriptions": members.collect::<Vec<_>>()});
        self.world().described.insert(arn.to_owned(), described);
    }

    pub(super) fn deregister(&self, id: &str) {
        self.world().members.remove(id);
    }

    pub(super) fn count(&self, operation: Operation) -> usize {
        let world = self.world();
        world
            .log
            .iter()
            .filter(|(own, _)| *own == operation)
            .count()
    }

    pub(super) fn total(&self) -> usize {
        self.world().log.len()
    }

    pub(super) fn last(&self, operation: Operation) -> (Operation, Value) {
        let world = self.world();
        let mut log = world.log.iter().rev();
        log.find(|(own, _)| *own == operation).unwrap().clone()
    }

    /// Whether both were called, and the first's first call before the second's.
    pub(super) fn comes_before(&self, first: Operation, second: Operation) -> bool {
        let world = self.world();
        let at = |wanted| world.log.iter().position(|(own, _)| *own == wanted);
        matches!((at(first), at(second)), (Some(first), Some(second)) if first < second)
    }

    /// Everything with an effect but the creation itself, the instance's id as `ID`.
    pub(super) fn changes_since_creation(&self, id: &str) -> Vec<(Operation, Value)> {
        let world = self.world();
        let changes = world
            .log
            .iter()
            .filter(|(operation, _)| !operation.is_read() && *operation != Operation::RunInstances);
        changes
            .map(|(operation, input)| {
                let text = input.to_string().replace(id, "ID");
                (*operation, serde_json::from_str(&text).unwrap())
            })
            .collect()
    }

    fn answer(&self, operation: Operation, input: &Value) -> Result<Value, ApiError> {
        let now = self.clock.now();
        let mut world = self.world();
        world.log.push((operation, input.clone()));
        if world.denied.contains(&operation) {
            return Err(refused(
                "UnauthorizedOperation",
                "You are not authorized".into(),
            ));
        }
        if input["DryRun"] == true && !world.ignores_dry_runs {
            return Err(refused("DryRunOperation", "It would have succeeded".into()));
        }
        let fault = world
            .faults
            .get_mut(&operation)
            .and_then(VecDeque::pop_front);
        match fault {
            Some(Fault::Refuse(error)) => Err(error),
            Some(Fault::LoseAnswer) => {
                world.act(operation, input, now, &self.next)?;
                Err(ApiError::new(
                    ApiErrorKind::Lost,
                    ApiError::TIMEOUT,
                    "no answer in time",
                ))
            }
            None => world.act(operation, input, now, &self.next),
        }
    }
}

impl Api for FakeEc2 {
    fn call(&self, operation: Operation, input: &Value) -> Result<Value, ApiError> {
        let held = {
            let mut held = self.held.lock().unwrap();
            held.take_if(|(own, _)| *own == operation)
        };
        if let Some((_, gate)) = held {
            while !gate() {
                std::thread::yield_now();
            }
        }
        self.answer(operation, input)
    }
}

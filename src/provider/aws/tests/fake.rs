//! A small EC2: idempotent tokens, pages, transitional states, listings that lag behind,
//! protection, target groups; and faults on demand.
//!
//! In: calls. Out: answers as EC2 gives them. May not: be kinder than EC2.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nstance_ec2::{Api, ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use crate::clock::{Clock, FixedClock, Timestamp};

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

impl World {
    fn act(
        &mut self,
        operation: Operation,
        input: &Value,
        now: Timestamp,
        next: &AtomicUsize,
    ) -> Result<Value, ApiError> {
        match operation {
            Operation::RunInstances => self.run(input, now, next),
            Operation::DescribeInstances => Ok(self.describe(input, now)),
            Operation::DescribeInstanceAttribute => {
                let instance = self.find(text(input, "InstanceId"))?;
                Ok(json!({"UserData": {"Value": instance.userdata}}))
            }
            Operation::TerminateInstances => self.terminate(input, now),
            Operation::StopInstances => {
                for id in list(input, "InstanceIds") {
                    let instance = self.find(id)?;
                    instance.state = "stopping";
                    instance.next = Some((now.after(STOP), "stopped"));
                }
                Ok(json!({}))
            }
            Operation::StartInstances => {
                for id in list(input, "InstanceIds") {
                    let instance = self.find(id)?;
                    if instance.state != "stopped" {
                        return Err(refused(
                            "IncorrectInstanceState",
                            format!("{id} isn't stopped"),
                        ));
                    }
                    instance.state = "pending";
                    instance.next = Some((now.after(BOOT), "running"));
                    instance.said["LaunchTime"] = now.to_string().into();
                }
                Ok(json!({}))
            }
            Operation::CreateTags | Operation::DeleteTags => {
                for id in list(input, "Resources") {
                    let instance = self.find(id)?;
                    for tag in input["Tags"].as_array().unwrap() {
                        let key = text(tag, "Key");
                        if operation == Operation::CreateTags {
                            set_tag(&mut instance.said, key, text(tag, "Value"));
                        } else {
                            let tags = instance.said["Tags"].as_array_mut().unwrap();
                            tags.retain(|tag| tag["Key"] != key);
                        }
                    }
                }
                Ok(json!({}))
            }
            Operation::DescribeImages => Ok(images(input)),
            Operation::GetParameter => parameter(text(input, "Name")),
            Operation::DescribeSubnets => Ok(subnets(input)),
            Operation::DescribeSecurityGroups => Ok(json!({"SecurityGroups": [
                {"GroupId": "sg-1", "GroupName": "one"}, {"GroupId": "sg-2", "GroupName": "two"},
            ]})),
            Operation::DescribeInstanceTypes => Ok(types(input)),
            Operation::GetServiceQuota => Ok(json!({"Quota": {"Value": 10.0}})),
            Operation::GetCallerIdentity => Ok(json!({
                "Arn": "arn:aws:iam::123456789012:user/test", "Account": "123456789012",
            })),
            Operation::DescribeTargetGroups => {
                Ok(json!({"TargetGroups": [{"TargetType": "instance"}]}))
            }
            Operation::DescribeTargetHealth => Ok(self.health(input, now)),
            Operation::RegisterTargets | Operation::DeregisterTargets => {
                self.move_targets(operation, input, now)
            }
            _ => self.modify(operation, input),
        }
    }

    fn find(&mut self, id: &str) -> Result<&mut Instance, ApiError> {
        let missing = || {
            refused(
                "InvalidInstanceID.NotFound",
                format!("The instance ID '{id}' does not exist"),
            )
        };
        self.instances.get_mut(id).ok_or_else(missing)
    }

    fn run(
        &mut self,
        input: &Value,
        now: Timestamp,
        next: &AtomicUsize,
    ) -> Result<Value, ApiError> {
        let token = text(input, "ClientToken").to_owned();
        if let Some((same, id)) = self.tokens.get(&token) {
            let instance = &self.instances[id];
            if matches!(instance.state, "shutting-down" | "terminated") {
                return Err(refused("IdempotentInstanceTerminated", token));
            }
            if same != input {
                return Err(refused("IdempotentParameterMismatch", token));
            }
            return Ok(json!({"Instances": [instance.said()]}));
        }
        for forbidden in ["SourceDestCheck", "Name"] {
            assert!(
                input.get(forbidden).is_none(),
                "RunInstances has no {forbidden}"
            );
        }
        let number = next.fetch_add(1, Ordering::SeqCst);
        let id = format!("i-{number:017x}");
        let said = made(&id, number, input, now);
        self.tokens.insert(token, (input.clone(), id.clone()));
        let instance = Instance {
            said,
            state: "pending",
            next: Some((now.after(BOOT), "running")),
            made: now,
            protected: input["DisableApiTermination"] == true,
            userdata: text(input, "UserData").to_owned(),
            dies: self.dies.take(),
        };
        let answer = json!({"Instances": [instance.said()]});
        self.instances.insert(id, instance);
        Ok(answer)
    }

    fn describe(&self, input: &Value, now: Timestamp) -> Value {
        let filters = input["Filters"].as_array().cloned().unwrap_or_default();
        let by_id = filters.iter().any(|filter| filter["Name"] == "instance-id");
        let lag = if by_id { DESCRIBED_AFTER } else { LISTED_AFTER };
        let matches = |instance: &Instance| {
            instance.made.after(lag) <= now
                && filters.iter().all(|filter| {
                    let tags = super::super::observe::tags(&instance.said);
                    let actual = match text(filter, "Name") {
                        "instance-id" => text(&instance.said, "InstanceId").to_owned(),
                        "instance-state-name" => instance.state.to_owned(),
                        name => {
                            let key = name.strip_prefix("tag:").unwrap();
                            tags.get(key).cloned().unwrap_or_default()
                        }
                    };
                    list(filter, "Values").contains(&actual.as_str())
                })
        };
        let found: Vec<Value> = self
            .instances
            .values()
            .filter(|instance| matches(instance))
            .map(Instance::said)
            .collect();
        let start: usize = text(input, "NextToken").parse().unwrap_or(0);
        let most = input["MaxResults"].as_u64().unwrap_or(1_000) as usize;
        let end = found.len().min(start + self.page_size.unwrap_or(most));
        // A reservation for each: so it is where each was created by itself.
        let reservations: Vec<Value> = found[start..end]
            .iter()
            .map(|instance| json!({"Instances": [instance]}))
            .collect();
        let mut answer = json!({"Reservations": reservations});
        if end < found.len() {
            answer["NextToken"] = end.to_string().into();
        }
        answer
    }

    fn terminate(&mut self, input: &Value, now: Timestamp) -> Result<Value, ApiError> {
        let ids = list(input, "InstanceIds");
        for id in &ids {
            if self.find(id)?.protected {
                return Err(refused(
                    "OperationNotPermitted",
                    format!(
                        "The instance '{id}' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again."
                    ),
                ));
            }
        }
        for id in ids {
            let instance = self.find(id)?;
            if instance.state != "terminated" {
                instance.state = "shutting-down";
                instance.next = Some((now.after(END), "terminated"));
                instance.said["StateReason"] = json!({"Code": "Client.UserInitiatedShutdown"});
            }
        }
        Ok(json!({}))
    }

    fn health(&self, input: &Value, now: Timestamp) -> Value {
        let asked: Vec<&str> = input["Targets"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|target| text(target, "Id"))
            .collect();
        let description = |id: &str, state: &str, reason: &str| json!({"Target": {"Id": id}, "TargetHealth": {"State": state, "Reason": reason}});
        let state = |until: &Option<Timestamp>| match until {
            Some(until) if *until > now => "draining",
            _ => "healthy",
        };
        let found: Vec<Value> = if asked.is_empty() {
            let members = self.members.iter();
            members
                .map(|(id, until)| description(id, state(until), ""))
                .collect()
        } else {
            asked
                .iter()
                .map(|id| match self.members.get(*id) {
                    Some(until) => description(id, state(until), ""),
                    None => description(id, "unused", "Target.NotRegistered"),
                })
                .collect()
        };
        json!({"TargetHealthDescriptions": found})
    }

    fn move_targets(
        &mut self,
        operation: Operation,
        input: &Value,
        now: Timestamp,
    ) -> Result<Value, ApiError> {
        assert_eq!(text(input, "TargetGroupArn"), TARGET_GROUP);
        for target in input["Targets"].as_array().unwrap() {
            let id = text(target, "Id");
            if operation == Operation::DeregisterTargets {
                if let Some(until) = self.members.get_mut(id) {
                    *until = Some(now.after(Duration::from_mins(5)));
                }
            } else if self.find(id)?.state == "running" {
                self.members.insert(id.to_owned(), None);
            } else {
                return Err(refused("InvalidTarget", format!("{id} isn't running")));
            }
        }
        Ok(json!({}))
    }

    fn modify(&mut self, operation: Operation, input: &Value) -> Result<Value, ApiError> {
        let id = match operation {
            Operation::DescribeIamInstanceProfileAssociations => {
                let Some(id) = list(&input["Filters"][0], "Values").first().copied() else {
                    return Ok(json!({}));
                };
                let said = &self.find(id)?.said;
                let associations: Vec<Value> = said
                    .get("IamInstanceProfile")
                    .into_iter()
                    .map(|profile| {
                        json!({"AssociationId": format!("iip-{id}"), "IamInstanceProfile": profile})
                    })
                    .collect();
                return Ok(json!({"IamInstanceProfileAssociations": associations}));
            }
            Operation::MonitorInstances | Operation::UnmonitorInstances => {
                list(input, "InstanceIds")[0].to_owned()
            }
            Operation::DisassociateIamInstanceProfile
            | Operation::ReplaceIamInstanceProfileAssociation => {
                text(input, "AssociationId").replace("iip-", "")
            }
            Operation::ModifyInstanceCreditSpecification => {
                text(&input["InstanceCreditSpecifications"][0], "InstanceId").to_owned()
            }
            Operation::ModifyNetworkInterfaceAttribute => {
                let interface = text(input, "NetworkInterfaceId");
                interface.splitn(3, '-').nth(2).unwrap().to_owned()
            }
            _ => text(input, "InstanceId").to_owned(),
        };
        let instance = self.find(&id)?;
        let running = || {
            refused(
                "IncorrectInstanceState",
                "The instance is not stopped".into(),
            )
        };
        let needs_stop = [
            "InstanceType",
            "EbsOptimized",
            "UserData",
            "PrivateDnsHostnameType",
        ];
        if needs_stop.iter().any(|name| input.get(*name).is_some()) && instance.state != "stopped" {
            return Err(running());
        }
        if instance.state == "pending" {
            return Err(refused(
                "IncorrectInstanceState",
                "The instance is pending".into(),
            ));
        }
        let said = &mut instance.said;
        match operation {
            Operation::ModifyInstanceAttribute => {
                for (name, value) in input.as_object().unwrap() {
                    match name.as_str() {
                        "Groups" => said["SecurityGroups"] = groups(value),
                        "UserData" => instance.userdata = text(value, "Value").to_owned(),
                        "DisableApiTermination" => instance.protected = value["Value"] == true,
                        "BlockDeviceMappings" => said["BlockDeviceMappings"] = value.clone(),
                        "InstanceType" | "EbsOptimized" | "SourceDestCheck" => {
                            said[name] = value["Value"].clone();
                        }
                        _ => {}
                    }
                }
            }
            Operation::ModifyNetworkInterfaceAttribute => {
                let interfaces = said["NetworkInterfaces"].as_array_mut().unwrap();
                let interface = interfaces
                    .iter_mut()
                    .find(|it| it["NetworkInterfaceId"] == input["NetworkInterfaceId"])
                    .unwrap();
                if let Some(value) = input.get("Groups") {
                    interface["Groups"] = groups(value);
                }
                if let Some(value) = input.get("SourceDestCheck") {
                    said["SourceDestCheck"] = value["Value"].clone();
                }
            }
            Operation::ModifyInstanceMetadataOptions => merge(said, "MetadataOptions", input),
            Operation::ModifyInstanceMaintenanceOptions => merge(said, "MaintenanceOptions", input),
            Operation::ModifyPrivateDnsNameOptions => {
                let mut changes = input.clone();
                if let Some(kind) = input.get("PrivateDnsHostnameType") {
                    changes["HostnameType"] = kind.clone();
                }
                merge(said, "PrivateDnsNameOptions", &changes);
            }
            Operation::MonitorInstances => said["Monitoring"] = json!({"State": "pending"}),
            Operation::UnmonitorInstances => said["Monitoring"] = json!({"State": "disabling"}),
            Operation::AssociateIamInstanceProfile
            | Operation::ReplaceIamInstanceProfileAssociation => {
                said["IamInstanceProfile"] = profile(&input["IamInstanceProfile"]);
            }
            Operation::DisassociateIamInstanceProfile => {
                said.as_object_mut()
                    .unwrap()
                    .shift_remove("IamInstanceProfile");
            }
            Operation::ModifyInstanceCreditSpecification => {}
            other => panic!("the fake doesn't know {other}"),
        }
        Ok(json!({}))
    }
}

fn set_tag(said: &mut Value, key: &str, value: &str) {
    let tags = said["Tags"].as_array_mut().unwrap();
    tags.retain(|tag| tag["Key"] != key);
    tags.push(json!({"Key": key, "Value": value}));
}

fn merge(said: &mut Value, name: &str, input: &Value) {
    for (member, value) in input.as_object().unwrap() {
        if !["InstanceId", "PrivateDnsHostnameType"].contains(&member.as_str()) {
            said[name][member] = value.clone();
        }
    }
}

fn groups(ids: &Value) -> Value {
    let ids = ids.as_array().into_iter().flatten();
    // EC2 gives them in an order of its own.
    let mut ids: Vec<&str> = ids.filter_map(Value::as_str).collect();
    ids.sort_unstable();
    let name = |id: &str| if id == "sg-1" { "one" } else { "two" };
    ids.into_iter()
        .map(|id| json!({"GroupId": id, "GroupName": name(id)}))
        .collect()
}

fn profile(asked: &Value) -> Value {
    match asked.get("Arn") {
        Some(arn) => json!({"Arn": arn, "Id": "AIPA1"}),
        None => json!({
            "Arn": format!("arn:aws:iam::123456789012:instance-profile/path/{}", text(asked, "Name")),
            "Id": "AIPA1",
        }),
    }
}

/// What EC2 says of an instance that was asked for so: with all that it chose itself.
fn made(id: &str, number: usize, input: &Value, now: Timestamp) -> Value {
    let time = now.to_string();
    let address = match input["PrivateIpAddress"].as_str() {
        Some(address) => address.to_owned(),
        None => format!("10.0.{}.{}", number / 200, number % 200 + 10),
    };
    let asked = match input["NetworkInterfaces"].as_array() {
        Some(asked) => asked.clone(),
        None => vec![
            json!({"DeviceIndex": 0, "SubnetId": input["SubnetId"], "Groups": input["SecurityGroupIds"]}),
        ],
    };
    let subnet = asked
        .iter()
        .find_map(|interface| interface["SubnetId"].as_str())
        .unwrap_or("subnet-0");
    let mut interfaces: Vec<Value> = asked
        .iter()
        .map(|interface| {
            let index = &interface["DeviceIndex"];
            json!({
                "NetworkInterfaceId": format!("eni-{index}-{id}"), "SubnetId": subnet,
                "Groups": groups(&interface["Groups"]), "InterfaceType": "interface",
                "Attachment": {"DeviceIndex": index, "NetworkCardIndex": 0, "AttachmentId": format!("eni-attach-{index}"),
                    "AttachTime": time, "DeleteOnTermination": true},
            })
        })
        .collect();
    interfaces.sort_by_key(|interface| interface["Attachment"]["DeviceIndex"].as_u64());
    let names = list(input, "SecurityGroups");
    let group_ids = if names.is_empty() {
        input["SecurityGroupIds"].clone()
    } else {
        names
            .iter()
            .map(|name| if *name == "one" { "sg-1" } else { "sg-2" })
            .collect()
    };
    let tags = input["TagSpecifications"][0]["Tags"].clone();
    let devices: Vec<Value> = input["BlockDeviceMappings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|device| json!({"DeviceName": device["DeviceName"], "Ebs": {
            "VolumeId": "vol-1", "Status": "attached",
            "DeleteOnTermination": device["Ebs"].get("DeleteOnTermination").unwrap_or(&Value::Bool(true)),
        }}))
        .collect();
    let mut said = json!({
        "InstanceId": id, "ImageId": input["ImageId"], "InstanceType": input["InstanceType"],
        "LaunchTime": time, "PrivateIpAddress": address, "SubnetId": subnet, "VpcId": "vpc-1",
        "Placement": {"AvailabilityZone": "us-west-2a", "GroupName": "", "Tenancy": "default"},
        "EbsOptimized": false, "SourceDestCheck": true,
        "Monitoring": {"State": if input["Monitoring"]["Enabled"] == true { "pending" } else { "disabled" }},
        "MetadataOptions": {"State": "pending", "HttpTokens": "optional", "HttpEndpoint": "enabled", "HttpPutResponseHopLimit": 1},
        "MaintenanceOptions": {"AutoRecovery": "default"},
        "PrivateDnsNameOptions": {"HostnameType": "ip-name", "EnableResourceNameDnsARecord": false},
        "CpuOptions": {"CoreCount": 1, "ThreadsPerCore": 2},
        "SecurityGroups": groups(&group_ids),
        "NetworkInterfaces": interfaces,
        "BlockDeviceMappings": devices,
        "Tags": if tags.is_array() { tags } else { json!([]) },
    });
    for name in ["KeyName", "EbsOptimized"] {
        if let Some(value) = input.get(name) {
            said[name] = value.clone();
        }
    }
    if let Some(options) = input.get("MetadataOptions") {
        merge(&mut said, "MetadataOptions", options);
    }
    if let Some(asked) = input.get("IamInstanceProfile") {
        said["IamInstanceProfile"] = profile(asked);
    }
    if input["InstanceMarketOptions"]["MarketType"] == "spot" {
        said["InstanceLifecycle"] = "spot".into();
    }
    said
}

fn images(input: &Value) -> Value {
    let image = |number: u32, deprecated: &str| {
        json!({
            "ImageId": format!("ami-{number}"), "Name": format!("debian-{number}"),
            "CreationDate": "2025-01-01T00:00:00.000Z", "DeprecationTime": deprecated,
        })
    };
    // The middle one was deprecated before the time of these tests; its owner sees it all the same.
    if input.get("NextToken").is_none() {
        let some = [
            image(1, "2030-01-01T00:00:00.000Z"),
            image(2, "2025-06-01T00:00:00.000Z"),
        ];
        json!({"Images": some, "NextToken": "2"})
    } else {
        json!({"Images": [image(3, "2030-01-01T00:00:00.000Z")]})
    }
}

fn parameter(name: &str) -> Result<Value, ApiError> {
    let value = match name {
        "/aws/service/debian" => "ami-9",
        "/aws/service/text" => "hello",
        _ => return Err(refused("ParameterNotFound", String::new())),
    };
    Ok(
        json!({"Parameter": {"Name": name, "Value": value, "LastModifiedDate": "2025-01-01T00:00:00Z"}}),
    )
}

fn subnets(input: &Value) -> Value {
    let asked = list(&input["Filters"][0], "Values");
    let found: Vec<Value> = asked
        .into_iter()
        .filter(|id| *id != "subnet-0")
        .map(|id| json!({"SubnetId": id, "AvailabilityZone": "us-west-2a", "AvailableIpAddressCount": 250}))
        .collect();
    json!({"Subnets": found})
}

fn types(input: &Value) -> Value {
    let asked = list(&input["Filters"][0], "Values");
    let found: Vec<Value> = [
        ("t3.micro", "x86_64"),
        ("t3.small", "x86_64"),
        ("t4g.small", "arm64"),
    ]
    .into_iter()
    .filter(|(name, _)| {
        asked.is_empty()
            || asked.iter().any(|asked| match asked.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => asked == name,
            })
    })
    .map(|(name, architecture)| {
        json!({
            "InstanceType": name,
            "ProcessorInfo": {"SupportedArchitectures": [architecture]},
            "VCpuInfo": {"DefaultVCpus": 2},
        })
    })
    .collect();
    json!({"InstanceTypes": found})
}

//! What each call does.
//!
//! In: an operation with its input. Out: its answer, as EC2 gives it. Must not: fail on demand.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nstance_ec2::{ApiError, Operation};
use serde_json::{Value, json};

use super::said::{groups, images, made, merge, parameter, profile, set_tag, subnets, types};
use super::{
    BOOT, DESCRIBED_AFTER, END, Instance, LISTED_AFTER, STOP, TARGET_GROUP, World, list, refused,
    text,
};
use crate::clock::Timestamp;
use crate::provider::aws::observe;

impl World {
    pub(super) fn act(
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
            Operation::DescribeTargetHealth => {
                let described = self.described.get(text(input, "TargetGroupArn"));
                Ok(described.map_or_else(|| self.health(input, now), Clone::clone))
            }
            Operation::RegisterTargets | Operation::DeregisterTargets => {
                self.move_targets(operation, input, now)
            }
            _ => self.modify(operation, input),
        }
    }

    pub(super) fn find(&mut self, id: &str) -> Result<&mut Instance, ApiError> {
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
                    let tags = observe::tags(&instance.said);
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

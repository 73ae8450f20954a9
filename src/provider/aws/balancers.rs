//! Target groups: membership, registering and deregistering.
//!
//! In: instances and the ARNs of target groups. Out: memberships. Must not: change a target group
//! that isn't named.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nstance_ec2::Operation;
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::provider::CloudError;

use super::calls::Calls;
use super::combine::{Combiner, together_or_alone};
use super::observe::{items, text};
use super::options::AwsOptions;

/// The maximum number of targets per call.
const MOST_TARGETS: usize = 200;

/// How long a list of members may be reused for other instances.
const FRESH: Duration = Duration::from_secs(10);

/// Whether a target joins or leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    In,
    Out,
}

/// The target groups of a configuration, and those that requests name.
pub(super) struct Balancers {
    /// The configured target groups, sorted.
    watched: Vec<String>,
    members: Mutex<Option<(Timestamp, Members)>>,
    /// Whether a group registers targets by address; queried once.
    by_address: Mutex<HashMap<String, bool>>,
    moves: Combiner<(Way, String), String, ()>,
}

/// The ARNs of each target's groups, by instance id or address.
type Members = HashMap<String, BTreeSet<String>>;

impl Balancers {
    pub(super) fn new(mut watched: Vec<String>) -> Self {
        watched.sort();
        watched.dedup();
        Self {
            watched,
            members: Mutex::default(),
            by_address: Mutex::default(),
            moves: Combiner::new(MOST_TARGETS),
        }
    }

    /// Whether target groups are configured.
    pub(super) fn watches_any(&self) -> bool {
        !self.watched.is_empty()
    }

    /// The configured target groups; `None` if there are none.
    pub(super) fn watched(&self) -> Option<Vec<String>> {
        self.watches_any().then(|| self.watched.clone())
    }

    /// Clears the cached members, at the start of a listing.
    pub(super) fn look_anew(&self) {
        *self.members.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The configured groups that an instance is in, sorted; `None` if none are configured. One
    /// call per group serves all instances.
    ///
    /// Fails if the API does.
    pub(super) fn of(
        &self,
        calls: &Calls,
        instance: &Value,
    ) -> Result<Option<Vec<String>>, CloudError> {
        if self.watched.is_empty() {
            return Ok(None);
        }
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let now = calls.clock.now();
        let is_fresh = |(at, _): &(Timestamp, Members)| now.since(*at) <= FRESH;
        if !members.as_ref().is_some_and(is_fresh) {
            *members = Some((now, self.read(calls)?));
        }
        let groups: BTreeSet<&String> = members
            .iter()
            .flat_map(|(_, members)| {
                ["InstanceId", "PrivateIpAddress"]
                    .into_iter()
                    .filter_map(|name| members.get(text(instance, name)?))
            })
            .flatten()
            .collect();
        Ok(Some(groups.into_iter().cloned().collect()))
    }

    fn read(&self, calls: &Calls) -> Result<Members, CloudError> {
        let mut members = Members::new();
        for arn in &self.watched {
            let input = json!({"TargetGroupArn": arn});
            let answer = calls.call(Operation::DescribeTargetHealth, &input)?;
            for target in items(&answer, "TargetHealthDescriptions").filter(|it| is_in(it)) {
                if let Some(id) = target.get("Target").and_then(|target| text(target, "Id")) {
                    members
                        .entry(id.to_owned())
                        .or_default()
                        .insert(arn.clone());
                }
            }
        }
        Ok(members)
    }

    /// Registers an instance in groups. Idempotent.
    ///
    /// Fails if the API does.
    pub(super) fn join(
        &self,
        calls: &Calls,
        instance: &Value,
        groups: &[String],
    ) -> Result<(), CloudError> {
        for arn in groups {
            let target = self.target(calls, arn, instance)?;
            self.send(calls, Way::In, arn, target)?;
        }
        Ok(())
    }

    /// Deregisters an instance and waits up to `drain` for its connections to end. Succeeds if it
    /// isn't a member.
    ///
    /// Fails if the API does.
    pub(super) fn leave(
        &self,
        calls: &Calls,
        options: &AwsOptions,
        instance: &Value,
        groups: &[String],
        drain: Duration,
    ) -> Result<(), CloudError> {
        let mut left = Vec::new();
        for arn in groups {
            // A deleted group has no members.
            let gone = |error: &CloudError| error.code == "TargetGroupNotFound";
            let sent = self.target(calls, arn, instance).and_then(|target| {
                self.send(calls, Way::Out, arn, target.clone())?;
                Ok(target)
            });
            match sent {
                Ok(target) => left.push((arn, target)),
                Err(error) if gone(&error) || error.code == "InvalidTarget" => {}
                Err(error) => return Err(error),
            }
        }
        if drain.is_zero() {
            return Ok(());
        }
        // After the timeout, remaining connections are cut, as the setting intends.
        calls.poll(options, drain, || {
            while let Some((arn, target)) = left.last() {
                if is_draining(calls, arn, target)? {
                    return Ok(None);
                }
                left.pop();
            }
            Ok(Some(()))
        })?;
        Ok(())
    }

    fn send(&self, calls: &Calls, way: Way, arn: &str, target: String) -> Result<(), CloudError> {
        let operation = match way {
            Way::In => Operation::RegisterTargets,
            Way::Out => Operation::DeregisterTargets,
        };
        self.look_anew();
        self.moves.ask(&(way, arn.to_owned()), target, |targets| {
            together_or_alone(targets, |targets| {
                let targets: Vec<Value> = targets.iter().map(|id| json!({"Id": id})).collect();
                let input = json!({"TargetGroupArn": arn, "Targets": targets});
                calls.call(operation, &input).map(|_| ())
            })
        })
    }

    /// An instance's target id in a group: its instance id or its address.
    ///
    /// Fails if the API does.
    fn target(&self, calls: &Calls, arn: &str, instance: &Value) -> Result<String, CloudError> {
        let known = self
            .by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(arn)
            .copied();
        let by_address = match known {
            Some(known) => known,
            None => {
                let input = json!({"TargetGroupArns": [arn]});
                let answer = calls.call(Operation::DescribeTargetGroups, &input)?;
                let group = items(&answer, "TargetGroups").next();
                let by_address = group.and_then(|group| text(group, "TargetType")) == Some("ip");
                self.by_address
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(arn.to_owned(), by_address);
                by_address
            }
        };
        let name = if by_address {
            "PrivateIpAddress"
        } else {
            "InstanceId"
        };
        Ok(text(instance, name).unwrap_or_default().to_owned())
    }
}

fn is_draining(calls: &Calls, arn: &str, target: &str) -> Result<bool, CloudError> {
    let input = json!({"TargetGroupArn": arn, "Targets": [{"Id": target}]});
    let answer = calls.call(Operation::DescribeTargetHealth, &input)?;
    Ok(items(&answer, "TargetHealthDescriptions").any(|it| health(it) == Some("draining")))
}

fn health(description: &Value) -> Option<&str> {
    text(description.get("TargetHealth")?, "State")
}

/// Whether a target is a member; a draining one isn't.
fn is_in(description: &Value) -> bool {
    let reason = description
        .get("TargetHealth")
        .and_then(|health| text(health, "Reason"));
    health(description) != Some("draining") && reason != Some("Target.NotRegistered")
}

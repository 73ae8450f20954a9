//! Target groups: membership, registering and deregistering.
//!
//! In: instances and targets: ARNs of target groups, each with `:PORT` where one is configured. Out:
//! memberships. Must not: change a target group that isn't named.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nstance_ec2::Operation;
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::provider::{CloudError, TargetHealth, TargetState};

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
    /// The configured targets, sorted.
    watched: Vec<String>,
    members: Mutex<Option<(Timestamp, Members)>>,
    /// Whether a group registers targets by address; queried once.
    by_address: Mutex<HashMap<String, bool>>,
    moves: Combiner<(Way, String), Member, ()>,
}

/// A member of a target group: an instance id or an address, and its port, by default the group's.
type Member = (String, Option<u16>);

/// The ARN of a target, and its port.
fn parts(target: &str) -> (&str, Option<u16>) {
    let port = target.rsplit_once(':');
    match port.and_then(|(arn, port)| Some((arn, port.parse().ok()?))) {
        Some((arn, port)) => (arn, Some(port)),
        None => (target, None),
    }
}

/// The targets of each member, by instance id or address.
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
        let arns: BTreeSet<&str> = self.watched.iter().map(|target| parts(target).0).collect();
        for arn in arns {
            let input = json!({"TargetGroupArn": arn});
            let answer = calls.call(Operation::DescribeTargetHealth, &input)?;
            for described in items(&answer, "TargetHealthDescriptions").filter(|it| is_in(it)) {
                let Some(member) = described.get("Target") else {
                    continue;
                };
                let port = member.get("Port").and_then(Value::as_u64);
                let watched = self.watched.iter().filter(|target| {
                    let (of, wanted) = parts(target);
                    of == arn && wanted.is_none_or(|wanted| port == Some(u64::from(wanted)))
                });
                if let Some(id) = text(member, "Id") {
                    members
                        .entry(id.to_owned())
                        .or_default()
                        .extend(watched.cloned());
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
        for target in groups {
            let (arn, port) = parts(target);
            let id = self.target(calls, arn, instance)?;
            self.send(calls, Way::In, arn, (id, port))?;
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
        for target in groups {
            let (arn, port) = parts(target);
            // A deleted group has no members.
            let gone = |error: &CloudError| error.code == "TargetGroupNotFound";
            let sent = self.target(calls, arn, instance).and_then(|id| {
                let member = (id, port);
                self.send(calls, Way::Out, arn, member.clone())?;
                Ok(member)
            });
            match sent {
                Ok(member) => left.push((arn, member)),
                Err(error) if gone(&error) || error.code == "InvalidTarget" => {}
                Err(error) => return Err(error),
            }
        }
        if drain.is_zero() {
            return Ok(());
        }
        // After the timeout, remaining connections are cut, as the setting intends.
        calls.poll(options, drain, || {
            while let Some((arn, member)) = left.last() {
                if is_draining(calls, arn, member)? {
                    return Ok(None);
                }
                left.pop();
            }
            Ok(Some(()))
        })?;
        Ok(())
    }

    /// The state of each instance with each target, from one call per target group.
    ///
    /// Fails if the API does.
    pub(super) fn health(
        calls: &Calls,
        ids: &[String],
        targets: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError> {
        let mut groups: HashMap<&str, Vec<Value>> = HashMap::new();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        for arn in targets.iter().map(|target| parts(target).0) {
            if !groups.contains_key(arn) {
                groups.insert(arn, descriptions(calls, arn)?);
            }
        }
        // Members of groups with the target type `ip` are addresses.
        let has_addresses = groups
            .values()
            .flatten()
            .any(|it| !member_id(it).starts_with("i-"));
        let instances = if has_addresses {
            calls.instances(ids)?
        } else {
            Vec::new()
        };
        let addresses: HashMap<&str, &str> = instances
            .iter()
            .filter_map(|it| Some((text(it, "InstanceId")?, text(it, "PrivateIpAddress")?)))
            .collect();
        let mut found = Vec::with_capacity(ids.len() * targets.len());
        for target in targets {
            let (arn, port) = parts(target);
            let mut members: HashMap<&str, (TargetState, Option<&str>)> = HashMap::new();
            for described in &groups[arn] {
                if port.is_some() && member_port(described) != port {
                    continue;
                }
                // Without a port, the member's worst port counts.
                let verdict = verdict(described);
                let known = members.entry(member_id(described)).or_insert(verdict);
                if badness(verdict.0) > badness(known.0) {
                    *known = verdict;
                }
            }
            for id in ids {
                let address = addresses.get(id.as_str());
                let member = members.get(id.as_str()).or_else(|| members.get(address?));
                let (state, reason) = member.copied().unwrap_or((TargetState::Absent, None));
                found.push(TargetHealth {
                    provider_id: id.clone(),
                    load_balancer: target.clone(),
                    state,
                    reason: reason.map(str::to_owned),
                });
            }
        }
        Ok(found)
    }

    fn send(&self, calls: &Calls, way: Way, arn: &str, member: Member) -> Result<(), CloudError> {
        let operation = match way {
            Way::In => Operation::RegisterTargets,
            Way::Out => Operation::DeregisterTargets,
        };
        self.look_anew();
        self.moves.ask(&(way, arn.to_owned()), member, |members| {
            together_or_alone(members, |members| {
                let targets: Vec<Value> = members.iter().map(described).collect();
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

/// A member, as requests describe it.
fn described((id, port): &Member) -> Value {
    match port {
        Some(port) => json!({"Id": id, "Port": port}),
        None => json!({"Id": id}),
    }
}

fn is_draining(calls: &Calls, arn: &str, member: &Member) -> Result<bool, CloudError> {
    let input = json!({"TargetGroupArn": arn, "Targets": [described(member)]});
    let answer = calls.call(Operation::DescribeTargetHealth, &input)?;
    Ok(items(&answer, "TargetHealthDescriptions").any(|it| health(it) == Some("draining")))
}

fn health(description: &Value) -> Option<&str> {
    text(description.get("TargetHealth")?, "State")
}

/// The descriptions of a group's members; none if the group doesn't exist any more.
///
/// Fails if the API does.
fn descriptions(calls: &Calls, arn: &str) -> Result<Vec<Value>, CloudError> {
    let input = json!({"TargetGroupArn": arn});
    match calls.call(Operation::DescribeTargetHealth, &input) {
        Ok(answer) => Ok(items(&answer, "TargetHealthDescriptions")
            .cloned()
            .collect()),
        Err(error) if error.code == "TargetGroupNotFound" => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The instance id or the address of a described member.
fn member_id(description: &Value) -> &str {
    let target = description.get("Target");
    target
        .and_then(|target| text(target, "Id"))
        .unwrap_or_default()
}

fn member_port(description: &Value) -> Option<u16> {
    let port = description.get("Target")?.get("Port")?.as_u64()?;
    u16::try_from(port).ok()
}

/// The state of a described member, and the reason that ELB gives.
fn verdict(description: &Value) -> (TargetState, Option<&str>) {
    let health = description.get("TargetHealth").unwrap_or(&Value::Null);
    let code = text(health, "Reason").filter(|code| !code.is_empty());
    let described = text(health, "Description").filter(|text| !text.is_empty());
    let state = match (text(health, "State").unwrap_or_default(), code) {
        (_, Some("Target.NotRegistered")) => TargetState::Absent,
        // Without health checks, ELB sends requests to all targets.
        ("healthy", _) | ("unavailable", Some("Target.HealthCheckDisabled")) => {
            TargetState::Healthy
        }
        // The last ones are stopped, or terminated.
        ("unhealthy" | "unhealthy.draining", _)
        | ("unused", Some("Target.InvalidState" | "Target.IpUnusable")) => TargetState::Unhealthy,
        ("unused" | "unavailable", _) => TargetState::Unused,
        ("draining", _) => TargetState::Draining,
        // `initial`, and states that ELB may add.
        _ => TargetState::Initial,
    };
    (state, described.or(code))
}

/// The order of states from good to bad.
fn badness(state: TargetState) -> u8 {
    match state {
        TargetState::Absent => 0,
        TargetState::Healthy => 1,
        TargetState::Unused => 2,
        TargetState::Initial => 3,
        TargetState::Draining => 4,
        TargetState::Unhealthy => 5,
    }
}

/// Whether a target is a member; a draining one isn't.
fn is_in(description: &Value) -> bool {
    let reason = description
        .get("TargetHealth")
        .and_then(|health| text(health, "Reason"));
    health(description) != Some("draining") && reason != Some("Target.NotRegistered")
}

//! Calls that name instances: what state they have to be in, and which one follows.
//!
//! In: a call. Out: moto's answer, or a refusal of EC2's. May not: change an answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::Refusal;
use crate::http::Request;
use crate::launch;
use crate::proxy::{Answer, Shared};
use crate::query::Query;
use crate::world::Between;
use crate::xml::Element;

/// Attributes that change only while an instance is stopped.
const WHILE_STOPPED: &[&str] = &[
    "InstanceType",
    "UserData",
    "EbsOptimized",
    "Kernel",
    "Ramdisk",
    "EnaSupport",
    "SriovNetSupport",
];

pub(crate) fn pass(shared: &Shared, query: &Query, request: &Request) -> Answer {
    let named = named(query);
    for id in &named {
        shared.world().look_for(id)?;
    }
    if query.is_dry_run() {
        return shared.forward(request);
    }
    let from_state = |verb: &str, allowed: &[&str]| {
        let message = format!("is not in a state from which it can be {verb}.");
        require(shared, query, &named, allowed, &message)
    };
    let then = match &*query.action {
        "StartInstances" => {
            let running = states(shared, query, &named)?;
            from_state("started", &["stopped", "running", "pending"])?;
            // Nothing becomes of those that run.
            let started = running.into_iter().filter(|(_, state)| state == "stopped");
            let started = started.map(|(id, _)| id).collect();
            Some((started, Between::Pending))
        }
        "StopInstances" => {
            let stopped = states(shared, query, &named)?;
            from_state("stopped", &["stopped", "running", "stopping"])?;
            let stopping = stopped.into_iter().filter(|(_, state)| state == "running");
            let stopping = stopping.map(|(id, _)| id).collect();
            Some((stopping, Between::Stopping))
        }
        "TerminateInstances" => {
            let there = states(shared, query, &named)?.into_iter();
            let ending =
                there.filter(|(_, state)| state != "terminated" && state != "shutting-down");
            Some((ending.map(|(id, _)| id).collect(), Between::ShuttingDown))
        }
        "ModifyInstanceAttribute" => {
            launch::check_user_data(query.get("UserData.Value"))?;
            if WHILE_STOPPED.iter().any(|name| changes(query, name)) {
                let message = "is not in the 'stopped' state.";
                require(shared, query, &named, &["stopped"], message)?;
            }
            None
        }
        "RegisterTargets" => {
            for (id, state) in states(shared, query, &named)? {
                if state != "running" {
                    return Err(Refusal::new(
                        400,
                        "InvalidTarget",
                        format!(
                            "The following targets are not in a running state and cannot be registered: '{id}'"
                        ),
                    ));
                }
            }
            None
        }
        "MonitorInstances" => return Ok(monitor(shared, &named, "enabled")),
        "UnmonitorInstances" => return Ok(monitor(shared, &named, "disabled")),
        _ => None,
    };
    let answer = shared.forward(&as_moto_takes_it(query, request))?;
    if let Some((ids, between)) = then {
        let ids: Vec<String> = ids;
        for id in ids {
            shared.world().passes(&id, between);
        }
    }
    Ok(answer)
}

/// moto decodes user data twice where it changes.
fn as_moto_takes_it(query: &Query, request: &Request) -> Request {
    let mut query = query.clone();
    for (name, value) in &mut query.parameters {
        if name == "UserData.Value" {
            *value = STANDARD.encode(&*value);
        }
    }
    Request {
        body: query.form().into_bytes(),
        ..request.clone()
    }
}

/// The instances that a call names.
fn named(query: &Query) -> Vec<String> {
    let targets = (1..).map_while(|number| query.get(&format!("Targets.member.{number}.Id")));
    let mut named: Vec<&str> = query.list("InstanceId");
    named.extend(query.get("InstanceId"));
    named.extend(query.list("ResourceId"));
    named.extend(targets);
    named.retain(|id| id.starts_with("i-"));
    named.into_iter().map(str::to_owned).collect()
}

/// Whether an attribute would be changed, in one of the two ways to say so.
fn changes(query: &Query, attribute: &str) -> bool {
    let named = query.get("Attribute");
    query.get(&format!("{attribute}.Value")).is_some()
        || named.is_some_and(|named| named.eq_ignore_ascii_case(attribute))
}

/// The states that are seen. Asking for them is no look.
fn states(
    shared: &Shared,
    query: &Query,
    ids: &[String],
) -> Result<Vec<(String, String)>, Refusal> {
    let mut states = Vec::new();
    for id in ids {
        let mut item = shared.instance(&query.region, id)?;
        shared.world().peek(&mut item);
        states.push((id.clone(), item.text_at("instanceState/name").to_owned()));
    }
    Ok(states)
}

fn require(
    shared: &Shared,
    query: &Query,
    ids: &[String],
    allowed: &[&str],
    message: &str,
) -> Result<(), Refusal> {
    for (id, state) in states(shared, query, ids)? {
        if !allowed.contains(&&*state) {
            return Err(Refusal::wrong_state(format!(
                "The instance '{id}' {message}"
            )));
        }
    }
    Ok(())
}

/// moto doesn't have these two actions.
fn monitor(shared: &Shared, ids: &[String], state: &'static str) -> Element {
    let item = |id: &String| {
        shared.world().set_monitoring(id, state);
        let monitoring = Element::node("monitoring", vec![Element::leaf("state", state)]);
        Element::node("item", vec![Element::leaf("instanceId", id), monitoring])
    };
    let items = ids.iter().map(item).collect();
    let set = Element::node("instancesSet", items);
    let id = Element::leaf("requestId", shared.request_id());
    Element::node("MonitorInstancesResponse", vec![id, set])
}

//! `RunInstances`: client tokens and user data, as EC2 takes them.
//!
//! In: a call. Out: moto's answer, or the one that was given for this token before. May not: make
//! two instances for one token.

use std::collections::HashMap;

use base64::Engine as _;

use crate::error::Refusal;
use crate::http::Request;
use crate::proxy::{Answer, Shared};
use crate::query::Query;
use crate::xml::Element;

/// What user data may be, decoded.
const USER_DATA: usize = 16 * 1024;

/// What was asked and answered, by region and client token.
pub(crate) type Tokens = HashMap<(String, String), Launch>;

/// An answered call.
#[derive(Debug)]
pub(crate) struct Launch {
    parameters: Vec<(String, String)>,
    instances: Vec<String>,
    answer: Element,
}

pub(crate) fn run(shared: &Shared, query: &Query, request: &Request) -> Answer {
    check_user_data(query.get("UserData"))?;
    if query.is_dry_run() {
        return shared.forward(request);
    }
    let parameters = query.sorted_without(&["ClientToken", "Version"]);
    let token = query.get("ClientToken");
    let token = token.map(|token| (query.region.clone(), token.to_owned()));
    // Held until the answer is there: of two calls with one token the second waits for the first.
    let mut tokens = shared.tokens();
    if let Some(launch) = token.as_ref().and_then(|token| tokens.get(token)) {
        return again(shared, query, launch, &parameters);
    }
    let mut answer = shared.forward(request)?;
    let mut instances = Vec::new();
    if let Some(set) = answer.at_mut("instancesSet") {
        for item in &mut set.children {
            let state = vec![Element::leaf("code", "0"), Element::leaf("name", "pending")];
            item.put(Element::node("instanceState", state));
            instances.push(item.text_at("instanceId").to_owned());
        }
    }
    for id in &instances {
        shared.world().made(id);
        // moto drops it.
        if query.get("DisableApiTermination") == Some("true") {
            let parameters = [
                ("InstanceId", &**id),
                ("DisableApiTermination.Value", "true"),
            ];
            let moto = shared.moto();
            let done = moto.call("ec2", &query.region, "ModifyInstanceAttribute", &parameters);
            done.map_err(Refusal::from)?;
        }
    }
    if let Some(token) = token {
        let launch = Launch {
            parameters,
            instances,
            answer: answer.clone(),
        };
        tokens.insert(token, launch);
    }
    Ok(answer)
}

fn again(
    shared: &Shared,
    query: &Query,
    launch: &Launch,
    parameters: &[(String, String)],
) -> Answer {
    if launch.parameters != parameters {
        return Err(Refusal::new(
            400,
            "IdempotentParameterMismatch",
            "Arguments on this idempotent request are inconsistent with arguments used in previous \
             request(s).",
        ));
    }
    for id in &launch.instances {
        let described = shared.instance(&query.region, id)?;
        if described.text_at("instanceState/name") == "terminated" {
            return Err(Refusal::new(
                400,
                "IdempotentInstanceTerminated",
                "The request cannot be completed because an instance associated with the client \
                 token has been terminated.",
            ));
        }
    }
    Ok(launch.answer.clone())
}

/// What EC2 says of user data that is too long; moto takes any.
pub(crate) fn check_user_data(encoded: Option<&str>) -> Result<(), Refusal> {
    let Some(encoded) = encoded else {
        return Ok(());
    };
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded);
    let decoded = decoded.map_err(|_| {
        Refusal::new(
            400,
            "InvalidUserData.Malformed",
            "Invalid BASE64 encoding of user data.",
        )
    })?;
    if decoded.len() > USER_DATA {
        return Err(Refusal::new(
            400,
            "InvalidParameterValue",
            format!("User data is limited to {USER_DATA} bytes"),
        ));
    }
    Ok(())
}

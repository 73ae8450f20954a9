//! `DescribeInstances`: pages that count instances, and what isn't to be seen yet.
//!
//! In: a call. Out: one page. May not: show a state that moto doesn't have in the end.

use std::collections::HashMap;
use std::vec::IntoIter;

use crate::error::Refusal;
use crate::proxy::{Answer, Shared};
use crate::query::Query;
use crate::xml::Element;

/// How many instances a page holds at most.
const PAGE: usize = 1_000;

/// What follows, by token: reservations of one instance each.
pub(crate) type Pages = HashMap<String, IntoIter<Element>>;

pub(crate) fn instances(shared: &Shared, query: &Query) -> Answer {
    let limit = limit(query)?;
    let mut rest = match query.get("NextToken") {
        Some(token) => shared.pages().remove(token).ok_or_else(|| {
            Refusal::new(
                400,
                "InvalidNextToken",
                format!("The token '{token}' is invalid"),
            )
        })?,
        None => look(shared, query)?.into_iter(),
    };
    let page: Vec<Element> = rest.by_ref().take(limit).collect();
    let mut answer = vec![
        Element::leaf("requestId", shared.request_id()),
        Element::node("reservationSet", page),
    ];
    if rest.len() > 0 {
        let token = format!("more-{}", shared.request_id());
        shared.pages().insert(token.clone(), rest);
        answer.push(Element::leaf("nextToken", token));
    }
    Ok(Element::node("DescribeInstancesResponse", answer))
}

fn limit(query: &Query) -> Result<usize, Refusal> {
    let Some(given) = query.get("MaxResults") else {
        return Ok(PAGE);
    };
    if query.get("InstanceId.1").is_some() {
        return Err(Refusal::new(
            400,
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        ));
    }
    match given.parse() {
        Ok(limit) if (5..=PAGE).contains(&limit) => Ok(limit),
        _ => Err(Refusal::new(
            400,
            "InvalidParameterValue",
            format!(
                "Value ( {given} ) for parameter maxResults is invalid. Expecting a value between 5 and {PAGE}."
            ),
        )),
    }
}

/// All that the call would show, as it is seen now.
fn look(shared: &Shared, query: &Query) -> Result<Vec<Element>, Refusal> {
    for id in query.list("InstanceId") {
        shared.world().look_for(id)?;
    }
    // moto knows other states than are shown here.
    let filters = query.filters();
    let states = filters
        .iter()
        .filter(|(name, _)| *name == "instance-state-name");
    let states: Vec<&Vec<&str>> = states.map(|(_, values)| values).collect();
    let mut asked = query.clone();
    asked.parameters.retain(|(name, _)| {
        !name.starts_with("Filter.") && !["MaxResults", "NextToken"].contains(&&**name)
    });
    let others = filters
        .iter()
        .filter(|(name, _)| *name != "instance-state-name");
    for (number, (name, values)) in (1..).zip(others) {
        let key = format!("Filter.{number}");
        asked
            .parameters
            .push((format!("{key}.Name"), (*name).to_owned()));
        for (place, value) in (1..).zip(values) {
            let value = (*value).to_owned();
            asked
                .parameters
                .push((format!("{key}.Value.{place}"), value));
        }
    }
    let mut seen = Vec::new();
    for reservation in all(shared, &asked)? {
        for item in reservation.items("instancesSet") {
            let mut item = item.clone();
            let is_seen = shared.world().show(&mut item);
            let state = item.text_at("instanceState/name");
            if is_seen && states.iter().all(|values| values.contains(&state)) {
                let mut alone = reservation.clone();
                alone.put(Element::node("instancesSet", vec![item]));
                seen.push(alone);
            }
        }
    }
    Ok(seen)
}

/// moto's reservations, of all its pages.
fn all(shared: &Shared, query: &Query) -> Result<Vec<Element>, Refusal> {
    let mut query = query.clone();
    if query.get("InstanceId.1").is_none() {
        query
            .parameters
            .push(("MaxResults".to_owned(), "1000000".to_owned()));
    }
    let mut all = Vec::new();
    loop {
        let mut answer = shared.moto().ask(&query).map_err(Refusal::from)?;
        if let Some(set) = answer.at_mut("reservationSet") {
            all.append(&mut set.children);
        }
        let token = answer.text_at("nextToken").to_owned();
        if token.is_empty() {
            return Ok(all);
        }
        query.parameters.retain(|(name, _)| name != "NextToken");
        query.parameters.push(("NextToken".to_owned(), token));
    }
}

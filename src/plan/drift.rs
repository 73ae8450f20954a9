//! Compares observations with records.
//!
//! In: a record's side and an observation. Out: the differences, and the record as observed. Must
//! not: decide what to do about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::change::{DriftedAttribute, InstanceView};
use super::nonces::without_nonce;
use crate::provider::rules::Rules;
use crate::provider::{Attributes, LifecycleState, Observation};
use crate::sensitivity::Marks;
use crate::spec::{Content, SpecBody, Userdata};

/// The path of an instance's state.
pub const STATE: &str = "state";

/// The differences, sorted by path. `expected_tags` are all tags it should have.
///
/// Ignores attributes that the cloud doesn't report. Ignores the tag with the spec's digest too:
/// that digest doesn't cover files rendered after creation.
pub fn compare(
    side: &InstanceView,
    expected_tags: &BTreeMap<String, String>,
    observation: &Observation,
    attributes: &Attributes,
    rules: Rules,
) -> Vec<DriftedAttribute> {
    let spec_tag = format!("tags.{}", rules.tag_key("spec"));
    let mut found = compare_all(side, expected_tags, observation, attributes);
    found.retain(|change| change.path != spec_tag);
    found
}

/// All differences, including every tag.
pub fn compare_all(
    side: &InstanceView,
    expected_tags: &BTreeMap<String, String>,
    observation: &Observation,
    attributes: &Attributes,
) -> Vec<DriftedAttribute> {
    let attributes = &*without_nonce(attributes, &side.spec);
    let mut found = Vec::new();
    let mut add = |path: String, recorded: Option<Value>, observed: Option<Value>| {
        if recorded != observed {
            found.push(DriftedAttribute {
                path,
                recorded,
                observed,
                ignored: false,
            });
        }
    };
    let text = |text: &str| (!text.is_empty()).then(|| Value::from(text));
    add(
        "instance_type".into(),
        text(&side.spec.head.instance_type),
        text(&attributes.instance_type),
    );
    add("zone".into(), text(&side.zone), text(&observation.zone));
    if side.subnet.is_some() {
        let subnet = |subnet: Option<&str>| subnet.map(Value::from);
        add(
            "subnet".into(),
            subnet(side.subnet.as_deref()),
            subnet(observation.subnet.as_deref()),
        );
    }
    if matches!(
        observation.state,
        LifecycleState::Stopped | LifecycleState::Stopping
    ) {
        let running = Value::from(LifecycleState::Running.as_str());
        add(
            STATE.into(),
            Some(running),
            Some(observation.state.as_str().into()),
        );
    }
    for (key, observed) in attributes.normalized(&side.spec.args).iter() {
        let recorded = side.spec.args.get(key);
        if recorded != Some(observed) {
            compare_values(&format!("args.{key}"), recorded, Some(observed), &mut add);
        }
    }
    let keys = expected_tags.keys().chain(
        attributes
            .tags
            .keys()
            .filter(|key| !expected_tags.contains_key(*key)),
    );
    for key in keys {
        let value =
            |tags: &BTreeMap<String, String>| tags.get(key).map(|v| Value::from(v.as_str()));
        add(
            format!("tags.{key}"),
            value(expected_tags),
            value(&attributes.tags),
        );
    }
    if let Some(observed) = &attributes.userdata {
        let recorded = side
            .spec
            .userdata
            .as_ref()
            .map(|userdata| userdata.content.display());
        add("userdata".into(), recorded.map(Value::from), text(observed));
    }
    if let Some(observed) = attributes.registered(&side.spec.head.load_balancers) {
        let list = |list: &[String]| (!list.is_empty()).then(|| Value::from(list.to_vec()));
        add(
            "load_balancers".into(),
            list(&side.spec.head.load_balancers),
            list(&observed),
        );
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn compare_values(
    path: &str,
    recorded: Option<&Value>,
    observed: Option<&Value>,
    add: &mut impl FnMut(String, Option<Value>, Option<Value>),
) {
    match (recorded, observed) {
        (Some(Value::Object(recorded)), Some(Value::Object(observed))) => {
            let keys = recorded
                .keys()
                .chain(observed.keys().filter(|key| !recorded.contains_key(*key)));
            for key in keys {
                compare_values(
                    &format!("{path}.{key}"),
                    recorded.get(key),
                    observed.get(key),
                    add,
                );
            }
        }
        _ => add(path.to_owned(), recorded.cloned(), observed.cloned()),
    }
}

/// The record with the observed values. Managed tags aren't part of a spec, so their changes only
/// appear in the drift.
pub fn overlay(
    side: &InstanceView,
    observation: &Observation,
    attributes: &Attributes,
    rules: Rules,
) -> InstanceView {
    let body = body_from(attributes, &side.spec, rules);
    let digest = body.clone().into_spec().digest();
    let marks = if side.marks.is_empty() {
        Marks::none()
    } else {
        Arc::new(side.marks.carried_to(&side.spec, &body))
    };
    InstanceView {
        marks,
        zone: observation.zone.as_str().into(),
        subnet: observation
            .subnet
            .as_deref()
            .map(Arc::from)
            .or_else(|| side.subnet.clone()),
        ip4: observation.ip4.as_deref().map(Arc::from),
        ip6: observation.ip6.as_deref().map(Arc::from),
        spec: Arc::new(body),
        digest,
        ..side.clone()
    }
}

/// A spec with the observed values; `like` supplies those that the cloud doesn't report.
pub fn body_from(attributes: &Attributes, like: &SpecBody, rules: Rules) -> SpecBody {
    let attributes = &*without_nonce(attributes, like);
    let mut body = like.clone();
    body.head.instance_type = attributes.instance_type.as_str().into();
    let reported = attributes.normalized(&like.args);
    // Assume that unreported values are as configured.
    let unreported: Map<String, Value> = like
        .args
        .iter()
        .filter(|(key, _)| !reported.contains_key(*key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    body.args = reported.into_owned();
    body.args.extend(unreported);
    body.args.sort_keys();
    body.tags = attributes
        .tags
        .iter()
        .filter(|(key, _)| {
            let is_default_name = *key == rules.name_tag() && !like.tags.contains_key(*key);
            !rules.is_managed_tag(key) && !is_default_name
        })
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(text) = &attributes.userdata {
        let same = body
            .userdata
            .as_ref()
            .is_some_and(|u| u.content.display() == text);
        if !same {
            body.userdata = (!text.is_empty()).then(|| Userdata {
                content: Content::Text(text.clone()),
                gzip: false,
            });
        }
    }
    if let Some(targets) = attributes.registered(&like.head.load_balancers) {
        body.head.load_balancers = targets;
    }
    body
}

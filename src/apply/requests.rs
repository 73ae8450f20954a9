//! Builds cloud requests from a plan's changes.
//!
//! In: a change and its sides. Out: the exact requests, and the records of their results. Must not:
//! decide what to change.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_state::{Intent, IntentId, Operation, Record, SpecDigest};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::journal::StoreOperation;
use super::nonce::Nonce;
use super::protocol::Step;
use crate::address::Address;
use crate::clock::Timestamp;
use crate::digest::hex;
use crate::plan::change::{Action, Change, InstanceView, Plan, RecordAttributes};
use crate::plan::drift;
use crate::provider::rules::Effect;
use crate::provider::{CreateRequest, DeleteRequest, Observation, TargetsRequest, UpdateRequest};
use crate::render::files::Deferred;
use crate::render::userdata::sent_base64;

/// The journal's data of an intent to create: the exact request, and what is needed to record its
/// result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateIntent {
    /// The request.
    pub request: CreateRequest,
    /// The planned instance.
    pub side: InstanceView,
    /// The instance id of the slot's current instance, which becomes deposed.
    pub deposes: Option<String>,
    /// The instance id of a missing instance, whose record is removed.
    pub forgets: Option<String>,
    /// Files that are rendered once the instance's addresses are known.
    pub deferred: Option<Box<Deferred>>,
    /// When the nonce in the request expires, if there is one.
    #[serde(default)]
    pub nonce_expires_at: Option<nstance_state::Timestamp>,
}

/// An idempotency token of at most 64 ASCII characters: equal for the same attempt at the same
/// operation.
pub fn token(
    lineage: &str,
    address: &Address,
    generation: u64,
    attempt: u32,
    what: &str,
) -> String {
    let mut hasher = Sha256::new();
    for part in [
        lineage,
        &address.to_string(),
        &generation.to_string(),
        &attempt.to_string(),
        what,
    ] {
        hasher.update(part.as_bytes());
        hasher.update(b"\0");
    }
    format!("nstance-{}", hex(&hasher.finalize()[..20]))
}

/// The attempt and the subnet of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Try {
    /// The number of used tokens; every distinct request needs its own.
    pub attempt: u32,
    /// The index of the subnet for a new instance ([`Change::creation`]).
    pub place: usize,
}

/// The request that creates a side of a change.
pub fn create(
    plan: &Plan,
    address: &Address,
    side: &InstanceView,
    attempt: u32,
    nonce: Option<&Nonce>,
) -> CreateRequest {
    let tags = plan.tags(address, side);
    CreateRequest {
        token: token(&plan.lineage, address, side.generation, attempt, "create"),
        instance_id: side.instance_id.to_string(),
        name: side.instance_id.to_string(),
        arch: side.spec.head.arch.to_string(),
        instance_type: side.spec.head.instance_type.to_string(),
        zone: side.zone.to_string(),
        subnet: side.subnet.as_deref().map(str::to_owned),
        args: args(side, nonce),
        userdata: userdata(side, nonce),
        tags,
    }
}

/// The args to send.
fn args(side: &InstanceView, nonce: Option<&Nonce>) -> serde_json::Map<String, serde_json::Value> {
    match nonce {
        Some(nonce) => nonce.in_args(&side.instance_id, &side.spec.args),
        None => side.spec.args.clone(),
    }
}

/// The userdata to send, in base64.
fn userdata(side: &InstanceView, nonce: Option<&Nonce>) -> Option<String> {
    let userdata = side.spec.userdata.as_ref()?;
    Some(match nonce {
        Some(nonce) => sent_base64(&nonce.in_userdata(&side.instance_id, userdata)),
        None => sent_base64(userdata),
    })
}

/// The paths that only the record has.
const OF_RECORD: [&str; 7] = [
    "vars",
    "files",
    "template",
    "subnet_pool",
    "protect",
    "index",
    "number_in_zone",
];

/// The request for an update in place to `after`.
pub fn update(
    plan: &Plan,
    change: &Change,
    after: &InstanceView,
    attempt: u32,
    nonce: Option<&Nonce>,
) -> UpdateRequest {
    let restarts = crate::plan::rollout::restarts(change);
    let mut changed: Vec<String> = change
        .attributes
        .iter()
        .map(|attribute| attribute.path.as_str())
        // Around a restart, these are steps of their own.
        .filter(|path| !(restarts && path.starts_with("load_balancers")))
        .filter(|path| {
            // The cloud doesn't have these.
            !OF_RECORD
                .iter()
                .any(|root| crate::plan::diff::covers(root, path))
        })
        .map(|path| {
            if path.starts_with("tags.") {
                "tags".to_owned()
            } else {
                path.to_owned()
            }
        })
        .collect();
    // The tag with the spec's digest differs in every update.
    changed.push("tags".to_owned());
    changed.sort();
    changed.dedup();
    UpdateRequest {
        token: token(
            &plan.lineage,
            &change.address,
            after.generation,
            attempt,
            "update",
        ),
        provider_id: after.provider_id.clone().unwrap_or_default(),
        changed,
        restart: change
            .attributes
            .iter()
            .any(|attribute| attribute.effect == Effect::Restart),
        instance_type: after.spec.head.instance_type.to_string(),
        args: args(after, nonce),
        userdata: userdata(after, nonce),
        tags: plan.tags(&change.address, after),
        load_balancers: after.spec.head.load_balancers.clone(),
        leaves: change
            .before
            .iter()
            .filter(|_| !restarts)
            .flat_map(|before| &before.spec.head.load_balancers)
            .filter(|target| !after.spec.head.load_balancers.contains(target))
            .cloned()
            .collect(),
    }
}

/// The request that deletes an instance.
pub fn delete(plan: &Plan, change: &Change, side: &InstanceView) -> DeleteRequest {
    // Unrecorded instances have no generation, so their provider id identifies them.
    let what = match (&side.provider_id, side.version) {
        (Some(id), None) => format!("delete {id}"),
        _ => "delete".to_owned(),
    };
    // Deregistering and draining are steps of their own.
    let is_drained = !side.spec.head.load_balancers.is_empty();
    DeleteRequest {
        token: token(&plan.lineage, &change.address, side.generation, 0, &what),
        provider_id: side.provider_id.clone().unwrap_or_default(),
        drain_timeout_ms: if is_drained {
            0
        } else {
            change.drain_timeout_ms
        },
        load_balancers: Vec::new(),
        until_gone: change.action == Action::DeleteThenCreate,
    }
}

/// The intent of a step that changes no record: registering, deregistering, draining.
pub fn step_intent(
    plan: &Plan,
    change: &Change,
    step: Step,
    request: &TargetsRequest,
) -> StoreOperation {
    let (operation, side) = match step {
        Step::Register => (Operation::Register, &change.after),
        Step::Deregister => (Operation::Deregister, &change.before),
        _ => (Operation::Drain, &change.before),
    };
    let side = side.as_deref().expect("the step has an instance");
    let address = &change.address;
    let what = operation.as_str();
    let token = token(&plan.lineage, address, side.generation, 0, what);
    let request_bytes = serde_json::to_vec(request).expect("a request's keys are strings");
    StoreOperation::Intend {
        intent: Box::new(Intent {
            provider_id: Some(request.provider_id.clone()),
            ..entry(address, side, operation, token, request_bytes)
        }),
        spec: None,
    }
}

/// The journal's entry of an operation; the store sets its id, apply and time.
fn entry(
    address: &Address,
    side: &InstanceView,
    operation: Operation,
    token: String,
    request: Vec<u8>,
) -> Intent {
    Intent {
        address: address.to_string(),
        group: address.group.shared(),
        slot: address.slot,
        operation,
        instance_id: side.instance_id.to_string(),
        provider_id: side.provider_id.clone(),
        generation: side.generation,
        attempt: 0,
        token,
        spec: None,
        request,
        id: IntentId::default(),
        apply_id: None,
        opened_at: nstance_state::Timestamp(0),
    }
}

/// The intent of a step.
pub fn intent(
    plan: &Plan,
    change: &Change,
    step: Step,
    Try { attempt, place }: Try,
    nonce: Option<&Nonce>,
) -> StoreOperation {
    let address = &change.address;
    let (operation, side, token, request, spec) = match step {
        Step::Create => {
            let side = change.creation(place);
            let request = create(plan, address, &side, attempt, nonce);
            let replaced = change
                .before
                .as_deref()
                .map(|before| before.instance_id.to_string());
            let intent = CreateIntent {
                side: side.clone().into_owned(),
                deposes: replaced
                    .clone()
                    .filter(|_| change.action == Action::CreateThenDelete),
                forgets: replaced.filter(|_| change.action == Action::Create),
                deferred: change.deferred.clone(),
                nonce_expires_at: nonce.map(|nonce| nonce.expires_at.into()),
                request,
            };
            let token = intent.request.token.clone();
            let spec = Some((side.digest, side.spec.to_bytes()));
            (
                Operation::Create,
                side,
                token,
                serde_json::to_vec(&intent),
                spec,
            )
        }
        Step::Update => {
            let side = change.after.as_deref().expect("an update has an after");
            let request = update(plan, change, side, attempt, nonce);
            let token = request.token.clone();
            let spec = Some((side.digest, side.spec.to_bytes()));
            (
                Operation::Update,
                Cow::Borrowed(side),
                token,
                serde_json::to_vec(&request),
                spec,
            )
        }
        _ => {
            let side = change.before.as_deref().expect("a deletion has a before");
            let request = delete(plan, change, side);
            let token = request.token.clone();
            (
                Operation::Delete,
                Cow::Borrowed(side),
                token,
                serde_json::to_vec(&request),
                None,
            )
        }
    };
    let request = request.expect("a request's keys are strings");
    StoreOperation::Intend {
        intent: Box::new(Intent {
            attempt,
            spec: spec.as_ref().map(|(digest, _)| *digest),
            ..entry(address, &side, operation, token, request)
        }),
        spec,
    }
}

/// The record of an instance, from its latest observation.
pub fn record(
    address: &Address,
    side: &InstanceView,
    observed: Option<(&Observation, &BTreeMap<String, String>)>,
    now: Timestamp,
) -> Record {
    let in_sync = observed.and_then(|(observed, tags)| {
        let attributes = observed.attributes().ok()?;
        drift::compare_all(side, tags, observed, &attributes)
            .is_empty()
            .then_some(SpecDigest(observed.digest))
    });
    let observed = observed.map(|(observed, _)| observed);
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    Record {
        group: address.group.shared(),
        slot: address.slot,
        deposed: false,
        instance_id: side.instance_id.to_string(),
        provider_id: observed.map_or_else(
            || side.provider_id.clone().unwrap_or_default(),
            |observed| observed.provider_id.clone(),
        ),
        generation: side.generation,
        kind: side.spec.head.kind.to_string(),
        spec: side.digest,
        observed: in_sync,
        zone: observed.map_or_else(|| side.zone.to_string(), |observed| observed.zone.clone()),
        subnet: observed
            .and_then(|observed| observed.subnet.clone())
            .or_else(|| text(&side.subnet)),
        ip4: observed
            .and_then(|observed| observed.ip4.clone())
            .or_else(|| text(&side.ip4)),
        ip6: observed
            .and_then(|observed| observed.ip6.clone())
            .or_else(|| text(&side.ip6)),
        created_at: side
            .created_at
            .or_else(|| observed.map(|observed| observed.created_at))
            .unwrap_or(now)
            .into(),
        updated_at: now.into(),
        attributes: RecordAttributes {
            images: side.images.clone(),
            protected: side.protected,
            marks: (!side.marks.is_empty()).then(|| Arc::clone(&side.marks)),
            number: Some(side.seat.number).filter(|it| *it != 0 && *it != address.slot + 1),
            tag: Arc::clone(&side.seat.tag),
            index: side.index,
            links: side.links.clone(),
            manifest_version: side.manifest_version,
        }
        .to_text(),
        version: 0,
    }
}

/// The side with its deferred files rendered with the instance's addresses.
///
/// Fails with a message if a file can't be rendered.
pub fn complete(
    address: &Address,
    side: &InstanceView,
    deferred: Option<&Deferred>,
    observed: &Observation,
) -> Result<InstanceView, String> {
    let Some(deferred) = deferred else {
        return Ok(side.clone());
    };
    let rendered = deferred.render(address, observed.ip4.as_deref(), observed.ip6.as_deref())?;
    let mut body = (*side.spec).clone();
    for (name, content) in rendered {
        if let Some(file) = body.files.get_mut(&name) {
            file.content = Some(content);
        }
    }
    let digest = body.clone().into_spec().digest();
    Ok(InstanceView {
        spec: Arc::new(body),
        digest,
        ..side.clone()
    })
}

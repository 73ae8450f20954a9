//! Requests to the cloud, made from a plan's changes.
//!
//! In: a change and its sides. Out: the exact requests, and the records they lead to. Must not:
//! decide what is requested.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_state::{Intent, IntentId, Operation, Record, SpecDigest};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::journal::StoreOperation;
use super::protocol::Step;
use crate::address::Address;
use crate::clock::Timestamp;
use crate::digest::hex;
use crate::plan::change::{Action, Change, InstanceView, Plan, RecordAttributes};
use crate::plan::drift;
use crate::provider::rules::Effect;
use crate::provider::{CreateRequest, DeleteRequest, Observation, UpdateRequest};
use crate::render::files::Deferred;
use crate::render::userdata::sent_base64;

/// What the journal keeps of an instance that is about to be created: the exact request, and all
/// it takes to record what comes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateIntent {
    /// The request.
    pub request: CreateRequest,
    /// The instance as it will be.
    pub side: InstanceView,
    /// The instance whose slot it takes, which then is deposed.
    pub deposes: Option<String>,
    /// The recorded instance that is gone, whose record goes too.
    pub forgets: Option<String>,
    /// Files to be rendered once its addresses are known.
    pub deferred: Option<Box<Deferred>>,
}

/// A token: the same for the same attempt at the same thing, at most 64 ASCII characters.
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

/// The how manieth try at a step it is, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Try {
    /// Tokens used up before; each try that may not repeat another has its own.
    pub attempt: u32,
    /// Which of the places that a new instance may be made in ([`Change::creation`]).
    pub place: usize,
}

/// The request that creates a side of a change.
pub fn create(plan: &Plan, address: &Address, side: &InstanceView, attempt: u32) -> CreateRequest {
    let tags = plan.tags(address, side);
    CreateRequest {
        token: token(&plan.lineage, address, side.generation, attempt, "create"),
        instance_id: side.instance_id.to_string(),
        name: side.instance_id.to_string(),
        arch: side.spec.head.arch.to_string(),
        instance_type: side.spec.head.instance_type.to_string(),
        zone: side.zone.to_string(),
        subnet: side.subnet.as_deref().map(str::to_owned),
        args: side.spec.args.clone(),
        userdata: side.spec.userdata.as_ref().map(sent_base64),
        tags,
        load_balancers: side.spec.head.load_balancers.clone(),
    }
}

/// The request that brings an instance to the `after` of a change in place.
pub fn update(plan: &Plan, change: &Change, after: &InstanceView, attempt: u32) -> UpdateRequest {
    let mut changed: Vec<String> = change
        .attributes
        .iter()
        .map(|attribute| attribute.path.as_str())
        .filter(|path| {
            // What only the record knows is no business of the cloud's.
            !["vars", "files", "template", "subnet_pool"]
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
    // The tag that carries the spec's digest changes with every change.
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
        args: after.spec.args.clone(),
        userdata: after.spec.userdata.as_ref().map(sent_base64),
        tags: plan.tags(&change.address, after),
        load_balancers: after.spec.head.load_balancers.clone(),
        leaves: change
            .before
            .iter()
            .flat_map(|before| &before.spec.head.load_balancers)
            .filter(|target| !after.spec.head.load_balancers.contains(target))
            .cloned()
            .collect(),
    }
}

/// The request that deletes an instance.
pub fn delete(plan: &Plan, change: &Change, side: &InstanceView) -> DeleteRequest {
    // An unrecorded instance has no generation: its id distinguishes it from others of its slot.
    let what = match (&side.provider_id, side.version) {
        (Some(id), None) => format!("delete {id}"),
        _ => "delete".to_owned(),
    };
    DeleteRequest {
        token: token(&plan.lineage, &change.address, side.generation, 0, &what),
        provider_id: side.provider_id.clone().unwrap_or_default(),
        drain_timeout_ms: change.drain_timeout_ms,
        load_balancers: side.spec.head.load_balancers.clone(),
        until_gone: change.action == Action::DeleteThenCreate,
    }
}

/// What the journal keeps of a step before it is tried.
pub fn intent(
    plan: &Plan,
    change: &Change,
    step: Step,
    Try { attempt, place }: Try,
) -> StoreOperation {
    let address = &change.address;
    let (operation, side, token, request, spec) = match step {
        Step::Create => {
            let side = change.creation(place);
            let request = create(plan, address, &side, attempt);
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
            let request = update(plan, change, side, attempt);
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
        Step::Delete | Step::Record => {
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
    StoreOperation::Intend {
        intent: Box::new(Intent {
            address: address.to_string(),
            group: address.group.shared(),
            slot: address.slot,
            operation,
            instance_id: side.instance_id.to_string(),
            provider_id: side.provider_id.clone(),
            generation: side.generation,
            attempt,
            token,
            spec: spec.as_ref().map(|(digest, _)| *digest),
            request: request.expect("a request's keys are strings"),
            // The store's and the journal's to say.
            id: IntentId::default(),
            apply_id: None,
            opened_at: nstance_state::Timestamp(0),
        }),
        spec,
    }
}

/// The record of an instance, given what the cloud said of it last.
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
        }
        .to_text(),
        version: 0,
    }
}

/// The side with its deferred files rendered, now that the cloud gave it addresses.
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

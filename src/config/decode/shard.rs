//! Decodes `cluster` and `shard`.
//!
//! In: the top-level object. Out: [`Cluster`] and [`Shard`]. Must not: compare them with the rest.

use std::time::Duration;

use crate::config::duration::parse_duration;
use crate::config::model::{Advertise, Cluster, Expiry, Infra, Named, ProviderKind, Shard};
use crate::config::node::Entry;
use crate::config::schema::tables;
use crate::config::source::Spanned;
use crate::diagnostic::Diagnostics;

use super::images::report_empty;
use super::reader::{Object, filled_text, no_such_choice, texts};
use super::server::storage;
use super::{absent, check_id};

/// The accepted names of providers; the first name of each is the preferred one.
pub(super) const PROVIDERS: &[(&str, ProviderKind)] = &[
    ("aws", ProviderKind::Aws),
    ("google", ProviderKind::Gcp),
    ("gcp", ProviderKind::Gcp),
    ("sim", ProviderKind::Sim),
    ("mock", ProviderKind::Sim),
    ("tmux", ProviderKind::Sim),
    ("proxmox", ProviderKind::Proxmox),
    ("yandex", ProviderKind::Yandex),
];

pub(super) fn cluster(top: &Object<'_>, findings: &mut Diagnostics) -> Cluster {
    let object = top
        .require("cluster", findings)
        .and_then(|entry| Object::of_entry(entry, &tables::CLUSTER, findings));
    let Some(object) = object else {
        return Cluster {
            id: absent(top.place),
            slug: "".into(),
            fqdn: "".into(),
            ca_cert: None,
            storage: None,
        };
    };
    let id = id(&object, "cluster", findings);
    let slug = object.text("slug", findings);
    Cluster {
        slug: slug.map_or_else(|| id.value.clone(), |slug| slug.value),
        fqdn: object.text_or_empty("fqdn", findings),
        ca_cert: object
            .get("ca_cert")
            .and_then(|entry| filled_text(entry, findings)),
        storage: storage(&object),
        id,
    }
}

/// The required `id` of a cluster or shard.
fn id(object: &Object<'_>, what: &str, findings: &mut Diagnostics) -> Spanned<std::sync::Arc<str>> {
    match object
        .require("id", findings)
        .and_then(|entry| super::reader::text(entry, findings))
    {
        Some(id) => {
            check_id(what, &id, id.span, findings);
            id
        }
        None => absent(object.place),
    }
}

/// The shard, whether its provider is valid, and whether some of its pools are invalid.
pub(super) fn shard(top: &Object<'_>, findings: &mut Diagnostics) -> (Shard, bool, bool) {
    let object = top
        .require("shard", findings)
        .and_then(|entry| Object::of_entry(entry, &tables::SHARD, findings));
    let Some(object) = object else {
        let nothing = Shard {
            id: absent(top.place),
            infra: no_infra(top),
            subnet_pools: Named::new(),
            dynamic_subnet_pools: Vec::new(),
            advertise: Advertise::default(),
            request_timeout: REQUEST_TIMEOUT,
            create_rate_limit: Duration::ZERO,
            default_drain_timeout: DRAIN_TIMEOUT,
            image_refresh_interval: IMAGE_REFRESH_INTERVAL,
            expiry: Expiry::default(),
            registration_timeout: REGISTRATION_TIMEOUT,
        };
        return (nothing, false, true);
    };
    let id = id(&object, "shard", findings);
    let pools_are_open = object.is_open("subnet_pools");
    let (infra, provider_known) = infra(&object, findings);
    let shard = Shard {
        id,
        infra,
        subnet_pools: object.named("subnet_pools", findings, |entry, findings| {
            check_id("subnet pool", &entry.key, entry.key_span, findings);
            report_empty(entry, findings);
            Some(texts(entry, findings))
        }),
        dynamic_subnet_pools: object.texts("dynamic_subnet_pools", findings),
        advertise: object
            .get("advertise")
            .map(|entry| advertise(entry, findings))
            .unwrap_or_default(),
        request_timeout: object
            .duration("request_timeout", findings)
            .unwrap_or(REQUEST_TIMEOUT),
        create_rate_limit: object
            .duration("create_rate_limit", findings)
            .unwrap_or_default(),
        default_drain_timeout: object
            .duration("default_drain_timeout", findings)
            .unwrap_or(DRAIN_TIMEOUT),
        image_refresh_interval: object
            .duration("image_refresh_interval", findings)
            .unwrap_or(IMAGE_REFRESH_INTERVAL),
        expiry: object
            .get("expiry")
            .map(|entry| expiry(entry, findings))
            .unwrap_or_default(),
        registration_timeout: object
            .get("garbage_collection")
            .and_then(|entry| entry.value.get("registration_timeout")?.as_str())
            .and_then(|text| parse_duration(text).ok())
            .filter(|timeout| !timeout.is_zero())
            .unwrap_or(REGISTRATION_TIMEOUT),
    };
    (shard, provider_known, pools_are_open)
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const REGISTRATION_TIMEOUT: Duration = Duration::from_mins(5);
const DRAIN_TIMEOUT: Duration = Duration::from_mins(5);
const IMAGE_REFRESH_INTERVAL: Duration = Duration::from_hours(6);

fn no_infra(object: &Object<'_>) -> Infra {
    Infra {
        provider: Spanned::new(ProviderKind::Sim, object.place),
        provider_name: "sim".into(),
        region: absent(object.place),
        zone: absent(object.place),
        options: None,
    }
}

fn infra(shard: &Object<'_>, findings: &mut Diagnostics) -> (Infra, bool) {
    let Some(object) = shard
        .require("infra", findings)
        .and_then(|entry| Object::of_entry(entry, &tables::INFRA, findings))
    else {
        return (no_infra(shard), false);
    };
    object.require("provider", findings);
    let provider = provider(&object, findings);
    let infra = Infra {
        provider: provider.unwrap_or(Spanned::new(ProviderKind::Sim, object.place)),
        provider_name: object
            .get("provider")
            .and_then(|entry| entry.value.as_str())
            .unwrap_or_default()
            .into(),
        region: object
            .required_text("region", findings)
            .unwrap_or_else(|| absent(object.place)),
        zone: object
            .required_text("zone", findings)
            .unwrap_or_else(|| absent(object.place)),
        options: object.object("options", findings),
    };
    (infra, provider.is_some())
}

/// The `provider` of an object, if it is a known one.
pub(super) fn provider(
    object: &Object<'_>,
    findings: &mut Diagnostics,
) -> Option<Spanned<ProviderKind>> {
    let text = object.text("provider", findings)?;
    let found = PROVIDERS.iter().find(|(word, _)| *word == &*text.value);
    if found.is_none() {
        // Don't suggest aliases of the embedded cloud, or clouds without a client.
        let usual = PROVIDERS
            .iter()
            .map(|(word, _)| *word)
            .filter(|word| matches!(*word, "aws" | "google" | "sim"));
        findings.push(no_such_choice("provider", &text, usual));
    }
    found.map(|(_, provider)| Spanned::new(*provider, text.span))
}

fn advertise(entry: &Entry, findings: &mut Diagnostics) -> Advertise {
    let Some(object) = Object::of_entry(entry, &tables::ADVERTISE, findings) else {
        return Advertise::default();
    };
    Advertise {
        health_addr: object.text_or_empty("health_addr", findings),
        election_addr: object.text_or_empty("election_addr", findings),
        registration_addr: object.text_or_empty("registration_addr", findings),
        operator_addr: object.text_or_empty("operator_addr", findings),
        agent_addr: object.text_or_empty("agent_addr", findings),
    }
}

fn expiry(entry: &Entry, findings: &mut Diagnostics) -> Expiry {
    let Some(object) = Object::of_entry(entry, &tables::EXPIRY, findings) else {
        return Expiry::default();
    };
    let expiry = Expiry {
        eligible_age: object.duration("eligible_age", findings),
        forced_age: object.duration("forced_age", findings),
        ondemand_age: object.duration("ondemand_age", findings),
    };
    // Checked here, where the places are known.
    if let (Some(eligible), Some(forced)) = (expiry.eligible_age, expiry.forced_age)
        && eligible >= forced
        && let (Some(eligible), Some(forced)) =
            (object.get("eligible_age"), object.get("forced_age"))
    {
        findings.push(
            crate::diagnostic::Diagnostic::error("`eligible_age` must be less than `forced_age`")
                .at(
                    eligible.value.span,
                    "an instance would be forced out before it may go",
                )
                .related(forced.value.span, "`forced_age`"),
        );
    }
    expiry
}

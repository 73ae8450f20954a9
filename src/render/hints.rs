//! Warnings about valid userdata that may not be intended.
//!
//! In: a configuration, and the bodies of its URLs. Out: warnings. Must not: render, or fetch.

use nstance_cloudinit::detect::{CLOUD_CONFIG, detect_bytes};

use super::layers::source_bytes;
use super::userdata::Bodies;
use crate::config::model::{Config, Joining, TextSource, Userdata, UserdataPart};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Warns if a layer's cloud-config replaces a lower layer's without an explicit merge mode. A
/// template is reported once, not for each of its groups.
pub fn replaced_layers(config: &Config, bodies: &Bodies, findings: &mut Diagnostics) {
    let defaults = config.defaults.userdata.as_ref();
    for (name, template) in &config.templates {
        let own = template.value.common.userdata.as_ref();
        let name = || format!("template `{name}`");
        warn(name, own, ("`defaults`", defaults), bodies, findings);
    }
    for group in &config.groups {
        let template = group.template.as_ref();
        let template = template.and_then(|name| config.templates.get(&name.value));
        let below = match template.and_then(|template| template.value.common.userdata.as_ref()) {
            Some(template) => ("its template", Some(template)),
            None => ("`defaults`", defaults),
        };
        let own = group.common.userdata.as_ref();
        let name = || format!("group `{}`", group.name);
        warn(name, own, below, bodies, findings);
    }
}

/// Warns if both layers are cloud-config and the upper replaces the lower by default.
fn warn(
    name: impl FnOnce() -> String,
    own: Option<&Userdata>,
    (owner, below): (&str, Option<&Userdata>),
    bodies: &Bodies,
    findings: &mut Diagnostics,
) {
    let (Some(own), Some(below)) = (own, below) else {
        return;
    };
    let is_unsaid = own.merge.is_none();
    if is_unsaid && is_cloud_config(own, bodies) && is_cloud_config(below, bodies) {
        findings.push(warning(&name(), own, owner, below));
    }
}

fn warning(name: &str, own: &Userdata, owner: &str, below: &Userdata) -> Diagnostic {
    let (joined, replaced) = (Joining::Nstance.as_str(), Joining::Replace.as_str());
    Diagnostic::warning(format!(
        "the cloud-config of {name} takes the place of that of {owner}"
    ))
    .at(own.place(), "nothing is left of the other one")
    .related(below.place(), "it stands here")
    .hint(format!(
        "`\"merge\": \"{joined}\"` in `userdata` joins them: maps merge, lists append, later values win; \
         `\"merge\": \"{replaced}\"` says that it is meant so"
    ))
}

/// Whether all of it is cloud-config, as far as that is known before rendering.
fn is_cloud_config(userdata: &Userdata, bodies: &Bodies) -> bool {
    let mut parts = userdata.parts.iter();
    let is_config = |part: &UserdataPart| match &part.content_type {
        Some(content_type) => content_type.eq_ignore_ascii_case(CLOUD_CONFIG),
        None => starts_as_cloud_config(&part.text, bodies),
    };
    parts.all(is_config)
}

fn starts_as_cloud_config(text: &TextSource, bodies: &Bodies) -> bool {
    let bytes = source_bytes(text, bodies);
    bytes.is_some_and(|bytes| detect_bytes(&bytes) == Some(CLOUD_CONFIG))
}

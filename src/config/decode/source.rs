//! Decodes `source`: the document of another program that describes groups.
//!
//! In: the top-level object. Out: its [`Source`]. Must not: read the file.

use std::sync::Arc;

use nstance_bosh::instances::Profile;

use crate::config::model::Named;
use crate::config::node::{Node, NodeValue};
use crate::config::schema::tables;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics, Reported};

use super::check_id;
use super::reader::{Object, filled_text};

/// `source`
#[derive(Debug)]
pub enum Source {
    /// With `yandex`.
    Yandex(YandexSource),
    /// With `bosh`.
    Bosh(BoshSource),
}

/// `source` with the specification of an instance group of Yandex Cloud.
#[derive(Debug)]
pub struct YandexSource {
    /// `yandex`: the file with the specification.
    pub yandex: Spanned<Arc<str>>,
    /// `group`: the name of its group; by default that of the file.
    pub group: Option<Arc<str>>,
    /// `subnet_pool`: the pool of its instances' subnets.
    pub subnet_pool: Option<Spanned<Arc<str>>>,
    /// `map`: what the specification's names are here.
    pub map: YandexMap,
}

/// `source.map` of a specification.
#[derive(Debug, Default)]
pub struct YandexMap {
    /// Where it is written, or `source` without it.
    pub span: Option<Span>,
    /// `platform`: platform → instance type.
    pub platform: Named<Arc<str>>,
    /// `image`: image id → the name of an image, or an image's id.
    pub image: Named<Arc<str>>,
    /// `zone`: zone → zone.
    pub zone: Named<Arc<str>>,
}

/// `source` with a deployment manifest of BOSH. Paths start from the file that has `source`.
#[derive(Debug)]
pub struct BoshSource {
    /// `bosh`: the manifest.
    pub bosh: Spanned<Arc<str>>,
    /// `releases`: the folder of the releases.
    pub releases: Arc<str>,
    /// `ops_files`, in the order in which they are applied.
    pub ops_files: Vec<Arc<str>>,
    /// `vars_files`; later ones win.
    pub vars_files: Vec<Arc<str>>,
    /// `linked_manifests`: manifests of other deployments, which links may come from.
    pub linked_manifests: Vec<Arc<str>>,
    /// `vars`: variables as texts of YAML; they win over vars files.
    pub vars: Vec<(String, String)>,
    /// `profile`: what `instances` counts.
    pub profile: Option<Profile>,
    /// `map`: what the manifest's names are here.
    pub map: BoshMap,
}

/// `source.map` of a deployment manifest.
#[derive(Debug)]
pub struct BoshMap {
    /// Where it is written, or `source` without it.
    pub span: Span,
    /// `stemcell`: alias → the name of an image, or an image's id.
    pub stemcell: Named<Arc<str>>,
    /// `vm_type`: VM type → instance type.
    pub vm_type: Named<Arc<str>>,
    /// `network`: network → subnet pool.
    pub network: Named<Arc<str>>,
    /// `az`: availability zone → zone.
    pub az: Named<Arc<str>>,
}

/// The keys of `source` and its `map` that belong to one program only.
const OF_YANDEX: [&str; 5] = ["group", "subnet_pool", "platform", "image", "zone"];
const OF_BOSH: [&str; 10] = [
    "releases",
    "ops_files",
    "vars_files",
    "linked_manifests",
    "vars",
    "profile",
    "stemcell",
    "vm_type",
    "network",
    "az",
];

/// The `source` of a document, if it has one. `is_alone` is whether a manifest stands alone: then the
/// command line has what it is read with.
///
/// Fails if it is invalid.
pub fn source(
    root: &Node,
    is_alone: bool,
    findings: &mut Diagnostics,
) -> Result<Option<Source>, Reported> {
    let mut entries = root.entries().iter();
    let Some(entry) = entries.find(|entry| &*entry.key == "source") else {
        return Ok(None);
    };
    let before = findings.errors();
    let object = Object::of_entry(entry, &tables::FOREIGN_SOURCE, findings).ok_or(Reported)?;
    let map = object
        .get("map")
        .and_then(|entry| Object::of_entry(entry, &tables::SOURCE_MAP, findings));
    let written = object.get("map").map(|entry| entry.key_span);
    let names = |key, findings: &mut Diagnostics| {
        map.as_ref().map_or_else(Named::default, |map| {
            map.named(key, findings, |entry, findings| {
                filled_text(entry, findings).map(|text| text.value)
            })
        })
    };
    let stray = |keys: &[&str], owner: &str, findings: &mut Diagnostics| {
        for key in keys {
            let in_map = map.as_ref().and_then(|map| map.get(key));
            if let Some(entry) = object.get(key).or(in_map) {
                findings.push(
                    Diagnostic::error(format!("`source` has `{key}`, but no `{owner}`"))
                        .at(entry.key_span, format!("belongs to `{owner}`")),
                );
            }
        }
    };
    let yandex = object.filled("yandex", findings);
    let bosh = object.filled("bosh", findings);
    let source = match (yandex, bosh) {
        (Some(yandex), None) => {
            stray(&OF_BOSH, "bosh", findings);
            let group = object.filled("group", findings).map(|group| {
                check_id("group", &group.value, group.span, findings);
                group.value
            });
            Source::Yandex(YandexSource {
                yandex,
                group,
                subnet_pool: object.filled("subnet_pool", findings),
                map: YandexMap {
                    span: written,
                    platform: names("platform", findings),
                    image: names("image", findings),
                    zone: names("zone", findings),
                },
            })
        }
        (None, Some(bosh)) => {
            stray(&OF_YANDEX, "yandex", findings);
            let releases = if is_alone {
                None
            } else {
                object.required_text("releases", findings)
            };
            let profiles = [("quarks", Profile::Quarks), ("bosh", Profile::Bosh)];
            let paths = |key, findings: &mut Diagnostics| {
                let paths = object.texts(key, findings).into_iter();
                paths.map(|path| path.value).collect()
            };
            let text = |node: &Node| match &node.value {
                NodeValue::String(text) => text.to_string(),
                _ => node.to_json().to_string(),
            };
            let vars = object.object("vars", findings);
            let vars = vars.as_ref().map(Node::entries).unwrap_or_default();
            Source::Bosh(BoshSource {
                releases: releases.map_or_else(|| "".into(), |path| path.value),
                ops_files: paths("ops_files", findings),
                vars_files: paths("vars_files", findings),
                linked_manifests: paths("linked_manifests", findings),
                vars: vars
                    .iter()
                    .map(|entry| (entry.key.to_string(), text(&entry.value)))
                    .collect(),
                profile: object
                    .choice("profile", &profiles, findings)
                    .map(|profile| profile.value),
                map: BoshMap {
                    span: written.unwrap_or(bosh.span),
                    stemcell: names("stemcell", findings),
                    vm_type: names("vm_type", findings),
                    network: names("network", findings),
                    az: names("az", findings),
                },
                bosh,
            })
        }
        (Some(yandex), Some(bosh)) => {
            findings.push(
                Diagnostic::error("`source` has `yandex` or `bosh`, not both")
                    .at(bosh.span, "a deployment manifest")
                    .related(yandex.span, "a specification"),
            );
            return Err(Reported);
        }
        (None, None) => {
            if findings.errors() == before {
                findings.push(
                    Diagnostic::error("`source` lacks `bosh` or `yandex`")
                        .at(entry.key_span, "names no file"),
                );
            }
            return Err(Reported);
        }
    };
    if findings.errors() > before {
        return Err(Reported);
    }
    Ok(Some(source))
}

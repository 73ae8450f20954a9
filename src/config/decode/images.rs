//! Decodes `images` and `load_balancers`.
//!
//! In: the top-level object. Out: [`Image`]s and [`LoadBalancer`]s. Must not: compare them with the
//! shard's provider.

use std::sync::Arc;

use crate::config::model::{
    Image, ImageFilter, ImageOrder, ImageSort, LoadBalancer, Named, OnNewer, ProviderKind,
};
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::schema::tables;
use crate::config::source::Spanned;
use crate::diagnostic::{Diagnostic, Diagnostics};

use super::reader::{Object, item_text, wrong_type};
use super::shard::provider;

pub(super) fn load_balancers(top: &Object<'_>, findings: &mut Diagnostics) -> Named<LoadBalancer> {
    top.named("load_balancers", findings, |entry, findings| {
        load_balancer(entry, findings)
    })
}

/// The words for `provider` of a load balancer that the server fills itself.
const TUNNEL: &str = "tunnel";

fn load_balancer(entry: &Entry, findings: &mut Diagnostics) -> Option<LoadBalancer> {
    let name = format!("load balancer `{}`", entry.key);
    let table = &tables::LOAD_BALANCER;
    let object = Object::open(&entry.value, entry.key_span, name, table, findings)?;
    let written = object.require("provider", findings)?;
    let provider = if written.value.as_str() == Some(TUNNEL) {
        None
    } else {
        Some(provider(&object, findings)?)
    };
    let before = findings.errors();
    let targets = match provider.map(|provider| provider.value) {
        None => {
            ports(
                &object,
                "listeners",
                &["target_port", "proxy_port"],
                findings,
            );
            Vec::new()
        }
        Some(ProviderKind::Aws) => match object.get("target_groups") {
            Some(_) => target_groups(&object, findings),
            None if object.get("target_group_arns").is_some() => {
                filled_list(&object, "target_group_arns", findings)
            }
            None => {
                object.report_missing("target_groups", None, findings);
                Vec::new()
            }
        },
        Some(ProviderKind::Gcp) => {
            ports(&object, "frontends", &["port"], findings);
            match object.get("instance_group_name") {
                Some(_) => object
                    .required_text("instance_group_name", findings)
                    .map(|name| name.value)
                    .into_iter()
                    .collect(),
                None => filled_list(&object, "network_endpoint_groups", findings)
                    .into_iter()
                    .map(|name| format!("networkEndpointGroups/{name}").into())
                    .collect(),
            }
        }
        Some(ProviderKind::Sim | ProviderKind::Yandex) => vec![Arc::clone(&entry.key)],
        Some(ProviderKind::Proxmox) => {
            findings.push(
                Diagnostic::error("load balancers of this provider aren't known").at(
                    written.value.span,
                    "expected `aws`, `google`, `tunnel`, `yandex` or `sim`",
                ),
            );
            Vec::new()
        }
    };
    (findings.errors() == before).then_some(LoadBalancer {
        provider: provider.map(|provider| provider.value),
        targets,
    })
}

/// A required list of texts with at least one item.
fn filled_list(object: &Object<'_>, key: &str, findings: &mut Diagnostics) -> Vec<Arc<str>> {
    let Some(entry) = object.require(key, findings) else {
        return Vec::new();
    };
    report_empty(entry, findings);
    let texts = object.texts(key, findings).into_iter();
    texts.map(|text| text.value).collect()
}

/// Reports an empty list.
pub(super) fn report_empty(entry: &Entry, findings: &mut Diagnostics) {
    if matches!(&entry.value.value, NodeValue::Array(items) if items.is_empty()) {
        findings.push(
            Diagnostic::error(format!("`{}` is empty", entry.key))
                .at(entry.value.span, "expected at least one item"),
        );
    }
}

/// `target_groups`: each as its ARN with `target_port`.
fn target_groups(object: &Object<'_>, findings: &mut Diagnostics) -> Vec<Arc<str>> {
    let keys = ["listener_port", "target_port", "proxy_port"];
    let mut targets = Vec::new();
    for group in ports(object, "target_groups", &keys, findings) {
        let arn = group.required_text("arn", findings);
        let port = group.get("target_port").map(|port| &port.value.value);
        if let (Some(arn), Some(NodeValue::Number(port))) = (arn, port) {
            targets.push(format!("{}:{port}", arn.value).into());
        } else if group.get("target_port").is_none() {
            group.report_missing("target_port", None, findings);
        }
    }
    targets
}

/// The objects of a list, whose ports are checked.
fn ports<'n>(
    object: &Object<'n>,
    key: &'static str,
    ports: &[&str],
    findings: &mut Diagnostics,
) -> Vec<Object<'n>> {
    let Some(entry) = object.get(key) else {
        return Vec::new();
    };
    report_empty(entry, findings);
    let NodeValue::Array(items) = &entry.value.value else {
        wrong_type(
            &entry.value,
            &format!("`{key}`"),
            "a list of objects",
            findings,
        );
        return Vec::new();
    };
    let table = match key {
        "target_groups" => &tables::TARGET_GROUP,
        "listeners" => &tables::LISTENER,
        _ => &tables::FRONTEND,
    };
    let mut objects = Vec::new();
    for item in items {
        let name = format!("an item of `{key}`");
        let Some(object) = Object::open(item, item.span, name, table, findings) else {
            continue;
        };
        for port in ports {
            let value = object.whole(port, u32::from(u16::MAX), findings);
            if let Some(zero) = value.filter(|port| port.value == 0) {
                findings.push(
                    Diagnostic::error(format!("`{port}` can't be 0"))
                        .at(zero.span, "expected a port, from 1 to 65535"),
                );
            }
        }
        objects.push(object);
    }
    objects
}

pub(super) fn images(top: &Object<'_>, findings: &mut Diagnostics) -> Named<Image> {
    top.named("images", findings, |entry, findings| {
        image_name(entry, findings);
        image(entry, findings)
    })
}

/// Whether this is a valid image name: an identifier, for `.Image.NAME`, or kebab-case, for
/// `index`.
pub(super) fn is_image_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let identifier = starts && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let kebab = starts
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.ends_with('-')
        && !name.contains("--");
    identifier || kebab
}

fn image_name(entry: &Entry, findings: &mut Diagnostics) {
    let name = &*entry.key;
    if !is_image_name(name) {
        let good: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let good = if good.starts_with(|c: char| c.is_ascii_digit()) {
            format!("_{good}")
        } else {
            good
        };
        let mut diagnostic = Diagnostic::error(format!("`{name}` can't be the name of an image"))
            .at(entry.key_span, "neither an identifier nor kebab-case");
        if !name.is_empty() {
            diagnostic = diagnostic.hint(format!(
                "`{good}` would do, and is reached as `{{{{ .Image.{good} }}}}`"
            ));
        }
        findings.push(diagnostic);
    }
}

fn image(entry: &Entry, findings: &mut Diagnostics) -> Option<Image> {
    let name = format!("image `{}`", entry.key);
    let object = Object::open(&entry.value, entry.key_span, name, &tables::IMAGE, findings)?;
    object.require("provider", findings);
    let provider = provider(&object, findings);
    let filters = object
        .get("filters")
        .map(|entry| filters(entry, findings))
        .unwrap_or_default();
    let family = object.text("family", findings);
    let project = object.text("project", findings);
    let ssm = object.text("ssm", findings);
    let include_deprecated = object.flag("include_deprecated", findings);
    let sort = object.choice(
        "sort",
        &[
            ("creation-date", ImageSort::CreationDate),
            ("name", ImageSort::Name),
        ],
        findings,
    );
    let order = object.choice(
        "order",
        &[
            ("asc", ImageOrder::Ascending),
            ("desc", ImageOrder::Descending),
        ],
        findings,
    );
    let on_newer = object.choice(
        "on_newer",
        &[
            ("replace", OnNewer::Replace),
            ("new_only", OnNewer::NewOnly),
        ],
        findings,
    );
    if provider.is_some_and(|provider| provider.value == ProviderKind::Aws) {
        for key in ["family", "project"] {
            if let Some(entry) = object.get(key) {
                findings.push(
                    Diagnostic::error(format!("an image of provider `aws` has no `{key}`"))
                        .at(entry.key_span, "belongs to provider `gcp`")
                        .hint("use `filters` and `owners`"),
                );
            }
        }
    }
    if provider.is_some_and(|provider| provider.value == ProviderKind::Gcp) {
        for key in ["ssm", "include_deprecated"] {
            if let Some(entry) = object.get(key) {
                findings.push(
                    Diagnostic::error(format!("an image of provider `gcp` has no `{key}`"))
                        .at(entry.key_span, "belongs to provider `aws`")
                        .hint("use `family` and `project`, or `filters`"),
                );
            }
        }
    }
    if object.get("ssm").is_some() {
        only_a_parameter(&object, ssm.as_ref(), findings);
    } else if family.is_none() && project.is_some() && object.get("family").is_none() {
        let why =
            "`project` says where to look for a `family`; a look-up by `filters` doesn't need it";
        object.report_missing("family", Some(why), findings);
    } else if object.lacks("family") && object.lacks("ssm") {
        at_least_one_filter(&object, findings);
    }
    let owners = object.texts("owners", findings);
    let fallback = object.filled("fallback", findings);
    Some(Image {
        provider: provider?,
        filters,
        owners: owners.into_iter().map(|owner| owner.value).collect(),
        family: family.map(|family| family.value),
        project: project.map(|project| project.value),
        ssm: ssm.map(|ssm| ssm.value),
        include_deprecated: include_deprecated.is_some_and(|flag| flag.value),
        sort: sort.map_or(ImageSort::CreationDate, |sort| sort.value),
        order: order.map_or(ImageOrder::Descending, |order| order.value),
        fallback: fallback.map(|fallback| fallback.value),
        on_newer: on_newer.map_or(OnNewer::Replace, |on_newer| on_newer.value),
    })
}

/// Rejects other look-up keys beside a parameter, which names exactly one image.
fn only_a_parameter(
    object: &Object<'_>,
    name: Option<&Spanned<Arc<str>>>,
    findings: &mut Diagnostics,
) {
    for key in [
        "filters",
        "owners",
        "family",
        "project",
        "include_deprecated",
    ] {
        if let Some(entry) = object.get(key) {
            findings.push(
                Diagnostic::error(format!("`{key}` can't stand beside `ssm`"))
                    .at(entry.key_span, "a parameter holds one image's id")
                    .hint(format!(
                        "leave out `{key}`, or look the image up by `filters`"
                    )),
            );
        }
    }
    if let Some(name) = name
        && !name.value.starts_with('/')
    {
        findings.push(
            Diagnostic::error("`ssm` isn't the name of a public parameter")
                .at(name.span, "expected a name that begins with `/`")
                .hint("for example `/aws/service/debian/release/13/latest/arm64`"),
        );
    }
}

/// Requires a filter, since a look-up without one would match any image.
fn at_least_one_filter(object: &Object<'_>, findings: &mut Diagnostics) {
    let example = "for example `{\"name\": \"name\", \"values\": [\"debian-13-arm64-*\"]}`";
    match object.get("filters") {
        None => object.report_missing("filters", Some(example), findings),
        Some(entry) => {
            if matches!(&entry.value.value, NodeValue::Array(items) if items.is_empty()) {
                findings.push(
                    Diagnostic::error("`filters` is empty")
                        .at(entry.value.span, "expected at least one filter")
                        .hint(example),
                );
            }
        }
    }
}

fn filters(entry: &Entry, findings: &mut Diagnostics) -> Vec<ImageFilter> {
    let NodeValue::Array(items) = &entry.value.value else {
        wrong_type(&entry.value, "`filters`", "a list of filters", findings);
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| filter(item, findings))
        .collect()
}

fn filter(node: &Node, findings: &mut Diagnostics) -> Option<ImageFilter> {
    let place = crate::config::source::Span {
        end: node.span.start + 1,
        ..node.span
    };
    let object = Object::open(node, place, "a filter", &tables::FILTER, findings)?;
    let name = object.required_text("name", findings);
    let values: Vec<Arc<str>> = match object.require("values", findings) {
        Some(entry) => match &entry.value.value {
            NodeValue::Array(items) if items.is_empty() => {
                findings.push(
                    Diagnostic::error("a filter has no values")
                        .at(entry.value.span, "expected at least one value"),
                );
                return None;
            }
            NodeValue::Array(items) => items
                .iter()
                .filter_map(|item| item_text(item, format_args!("an item of `values`"), findings))
                .map(|text: Spanned<Arc<str>>| text.value)
                .collect(),
            _ => {
                wrong_type(&entry.value, "`values`", "a list of strings", findings);
                return None;
            }
        },
        None => return None,
    };
    Some(ImageFilter {
        name: name?.value,
        values,
    })
}

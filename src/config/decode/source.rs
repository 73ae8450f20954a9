//! Decodes `source`: the document of another program that describes a group.
//!
//! In: the top-level object. Out: its [`Source`]. Must not: read the file.

use std::sync::Arc;

use crate::config::model::Named;
use crate::config::node::Node;
use crate::config::schema::tables;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostics, Reported};

use super::check_id;
use super::reader::{Object, filled_text};

/// `source`
#[derive(Debug)]
pub struct Source {
    /// `yandex`: the file with an instance group's specification.
    pub yandex: Spanned<Arc<str>>,
    /// `group`: the name of its group; by default that of the file.
    pub group: Option<Arc<str>>,
    /// `subnet_pool`: the pool of its instances' subnets.
    pub subnet_pool: Option<Spanned<Arc<str>>>,
    /// `map`: what the specification's names are here.
    pub map: Map,
}

/// `source.map`
#[derive(Debug, Default)]
pub struct Map {
    /// Where it is written, or `source` without it.
    pub span: Option<Span>,
    /// `platform`: platform → instance type.
    pub platform: Named<Arc<str>>,
    /// `image`: image id → the name of an image, or an image's id.
    pub image: Named<Arc<str>>,
    /// `zone`: zone → zone.
    pub zone: Named<Arc<str>>,
}

/// The `source` of a document, if it has one.
///
/// Fails if it is invalid.
pub fn source(root: &Node, findings: &mut Diagnostics) -> Result<Option<Source>, Reported> {
    let mut entries = root.entries().iter();
    let Some(entry) = entries.find(|entry| &*entry.key == "source") else {
        return Ok(None);
    };
    let before = findings.errors();
    let object = Object::of_entry(entry, &tables::FOREIGN_SOURCE, findings).ok_or(Reported)?;
    let yandex = object.required_text("yandex", findings);
    let group = object.filled("group", findings).map(|group| {
        check_id("group", &group.value, group.span, findings);
        group.value
    });
    let subnet_pool = object.filled("subnet_pool", findings);
    let map = object
        .get("map")
        .and_then(|entry| {
            let map = Object::of_entry(entry, &tables::SOURCE_MAP, findings)?;
            let mut texts = |key| {
                map.named(key, findings, |entry, findings| {
                    filled_text(entry, findings).map(|text| text.value)
                })
            };
            Some(Map {
                span: Some(entry.key_span),
                platform: texts("platform"),
                image: texts("image"),
                zone: texts("zone"),
            })
        })
        .unwrap_or_default();
    match yandex {
        Some(yandex) if findings.errors() == before => Ok(Some(Source {
            yandex,
            group,
            subnet_pool,
            map,
        })),
        _ => Err(Reported),
    }
}

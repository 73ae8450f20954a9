//! Decodes what belongs to the Nstance server: `certificates`, `server`, `nat`, `cluster.storage`.
//!
//! In: the top-level object, and entries of these sections. Out: what a planner needs of them. Must
//! not: check what only the server uses.

use std::sync::Arc;

use super::files;
use super::reader::Object;
use crate::config::model::{Certificate, File, Named, Nat, Storage};
use crate::config::node::{Entry, Node};
use crate::config::schema::tables;
use crate::diagnostic::Diagnostics;

/// The certificate that the server makes for itself, before there is an instance.
const OWN_CERTIFICATE: &str = "ca";

pub(super) fn certificate(entry: &Entry, findings: &mut Diagnostics) -> Option<Certificate> {
    let name = format!("certificate `{}`", entry.key);
    let table = &tables::CERTIFICATE;
    let object = Object::open(&entry.value, entry.key_span, name, table, findings)?;
    let names = ["cn", "dns", "ip", "uri"].into_iter();
    let names = names.filter(|_| &*entry.key != OWN_CERTIFICATE);
    Some(Certificate {
        names: names
            .filter_map(|key| Some(object.get(key)?.value.clone()))
            .collect(),
    })
}

/// `server.files`
pub(super) fn files(top: &Object<'_>, findings: &mut Diagnostics) -> Named<File> {
    let section = top.get("server");
    let object =
        section.and_then(|entry| Object::of_entry(entry, &tables::SERVER_SECTION, findings));
    object.map_or_else(Named::new, |object| files::files(&object, findings))
}

pub(super) fn nat(entry: &Entry, findings: &mut Diagnostics) -> Option<Nat> {
    let name = format!("`nat` of tenant `{}`", entry.key);
    let object = Object::open(&entry.value, entry.key_span, name, &tables::NAT, findings)?;
    Some(Nat {
        group: object.required_text("group", findings)?,
        instance_types: object.texts("instance_type_ladder", findings),
    })
}

/// `cluster.storage`
pub(super) fn storage(cluster: &Object<'_>) -> Option<Storage> {
    let section = &cluster.get("storage")?.value;
    let text = |key: &str| section.get(key).and_then(Node::as_str);
    let text = |key: &str, default: &str| Arc::from(text(key).unwrap_or(default));
    Some(Storage {
        provider: text("provider", ""),
        bucket: text("bucket", ""),
        prefix: text("prefix", "cluster/"),
    })
}

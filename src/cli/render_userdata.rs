//! `nstance render --userdata`: the userdata of instances, and where each value was written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::fleet::Reply;
use super::session::Session;
use crate::address::Address;
use crate::diagnostic::Diagnostics;
use crate::pipeline::Compiled;
use crate::plan::change::InstanceView;
use crate::render::data::InstanceFacts;
use crate::render::explanation::{Explanation, Written};
use crate::render::instance::Report;
use crate::render::links::{LinkSet, Unknown};
use crate::render::renderer::GroupRenderer;
use crate::render::userdata::gzip;
use crate::report::table;

/// The options for userdata.
#[derive(Debug, Clone, Copy)]
pub(super) struct UserdataArgs<'a> {
    /// The lineage of the state.
    pub(super) lineage: &'a str,
    /// The links of each group.
    pub(super) links: &'a BTreeMap<String, LinkSet>,
    /// Whether to show where each value was written.
    pub(super) explain: bool,
    /// Whether to show secrets.
    pub(super) show_sensitive: bool,
}

/// The userdata of instances; `bodies` are those of its URLs.
///
/// Fails if it can't be rendered.
pub(super) fn reply(
    session: &Session<'_>,
    sides: &[(&Address, &InstanceView)],
    compiled: &Compiled<'_>,
    asked: UserdataArgs<'_>,
    findings: Diagnostics,
) -> Reply {
    let explanations = if asked.explain {
        explanations(session, sides, compiled, asked)
    } else {
        Vec::new()
    };
    let of = |index: usize| explanations.get(index).and_then(Option::as_ref);
    let covered = sides.iter().map(|(address, side)| {
        let shown = if asked.show_sensitive {
            Cow::Borrowed(*side)
        } else {
            side.covered()
        };
        (*address, *side, shown)
    });
    if session.globals.json {
        let instances: Vec<Value> = covered
            .enumerate()
            .map(|(index, (address, side, shown))| {
                let mut document = json!({
                    "address": address.to_string(),
                    "userdata": text(&shown),
                    "size": Size::of(session, side).to_json(),
                });
                if let Some(explanation) = of(index) {
                    document["explanation"] = to_json(session, explanation);
                }
                document
            })
            .collect();
        return Reply::document(json!({
            "format_version": "1.0",
            "instances": instances,
            "diagnostics": session.findings_json(&findings),
        }));
    }
    let mut written = String::new();
    for (index, (address, side, shown)) in covered.enumerate() {
        let text = text(&shown).unwrap_or_default();
        if sides.len() > 1 || asked.explain {
            if index > 0 {
                written.push('\n');
            }
            written.push_str(&format!("# {}\n", session.name(address)));
        }
        if !asked.explain {
            written.push_str(text);
            if sides.len() > 1 && !text.is_empty() && !text.ends_with('\n') {
                written.push('\n');
            }
            continue;
        }
        match of(index) {
            Some(explanation) => {
                let size = Size::of(session, side);
                written.push_str(&told(session, explanation, &size));
            }
            None => written.push_str("It has no userdata.\n"),
        }
    }
    Reply::text(written).telling(findings)
}

/// The userdata as the instance reads it; base64 if it is binary.
fn text(side: &InstanceView) -> Option<&str> {
    let userdata = side.spec.userdata.as_ref();
    userdata.map(|userdata| userdata.content.display())
}

fn explanations(
    session: &Session<'_>,
    sides: &[(&Address, &InstanceView)],
    compiled: &Compiled<'_>,
    asked: UserdataArgs<'_>,
) -> Vec<Option<Explanation>> {
    let config = session.config();
    let sources = &session.loaded.sources;
    let explain = |(address, side): &(&Address, &InstanceView)| {
        let group = compiled
            .groups
            .iter()
            .find(|group| group.merged.name == address.group)?;
        let images: BTreeMap<Arc<str>, Option<Arc<str>>> = side
            .images
            .iter()
            .map(|(name, id)| (Arc::clone(name), Some(Arc::clone(id))))
            .collect();
        let renderer = GroupRenderer::new(
            group,
            config,
            &images,
            false,
            session.rules(),
            asked.lineage,
        );
        let renderer = match asked.links.get(address.group.as_str()) {
            Some(links) => renderer.with_links(links, Unknown::StandIn),
            None => renderer,
        };
        let facts = InstanceFacts {
            ip4: side.ip4.clone(),
            ip6: side.ip6.clone(),
            ..renderer.facts(address.slot, &side.instance_id, &side.place())
        };
        let mut ignored = Report::default();
        renderer.explain_userdata(address, &facts, sources, asked.show_sensitive, &mut ignored)
    };
    sides.iter().map(explain).collect()
}

/// The size of the sent userdata.
struct Size {
    bytes: usize,
    sent: usize,
    gzip: bool,
    limit: Option<usize>,
}

impl Size {
    fn of(session: &Session<'_>, side: &InstanceView) -> Self {
        let userdata = side.spec.userdata.as_ref();
        let bytes = userdata
            .map(|userdata| userdata.content.to_bytes())
            .unwrap_or_default();
        let is_gzipped = userdata.is_some_and(|userdata| userdata.gzip);
        Self {
            bytes: bytes.len(),
            sent: if is_gzipped {
                gzip(&bytes).len()
            } else {
                bytes.len()
            },
            gzip: is_gzipped,
            limit: session.rules().userdata_limit(),
        }
    }

    fn to_json(&self) -> Value {
        json!({"bytes": self.bytes, "sent": self.sent, "gzip": self.gzip, "limit": self.limit})
    }
}

/// The explanation as text.
fn told(session: &Session<'_>, explanation: &Explanation, size: &Size) -> String {
    let mut text = format!("{} bytes", size.bytes);
    if size.gzip {
        text.push_str(&format!(", gzipped {}", size.sent));
    }
    if let Some(limit) = size.limit {
        text.push_str(&format!(" of {limit}"));
    }
    let shares: Vec<_> = explanation
        .shares
        .iter()
        .map(|(layer, bytes)| format!("{bytes} of {layer}"))
        .collect();
    text.push_str(&format!(": {}\n", shares.join(", ")));
    let parts: Vec<_> = explanation
        .parts
        .iter()
        .enumerate()
        .map(|(index, part)| {
            [
                (index + 1).to_string(),
                part.content_type.clone(),
                part.filename.clone().unwrap_or_default(),
                part.bytes.to_string(),
                part.layers.join("+"),
            ]
        })
        .collect();
    text.push('\n');
    text.push_str(&table(&["PART", "TYPE", "NAME", "BYTES", "OF"], &parts));
    if !explanation.values.is_empty() {
        let rows: Vec<_> = explanation
            .values
            .iter()
            .map(|value| {
                let [by, line, place] = where_written(session, value.written.as_ref());
                [value.path.clone(), shortened(&value.value), by, line, place]
            })
            .collect();
        text.push('\n');
        let header = ["PATH", "VALUE", "SET BY", "LINE", "WRITTEN AT"];
        text.push_str(&table(&header, &rows));
    }
    if !explanation.dropped.is_empty() {
        let rows: Vec<_> = explanation
            .dropped
            .iter()
            .map(|dropped| {
                let [by, line, place] = where_written(session, Some(&dropped.written));
                let path = match &*dropped.path {
                    "" => "(all of it)".to_owned(),
                    path => path.to_owned(),
                };
                [path, dropped.why.clone(), by, line, place]
            })
            .collect();
        text.push('\n');
        let header = ["DROPPED", "WHY", "SET BY", "LINE", "WRITTEN AT"];
        text.push_str(&table(&header, &rows));
    }
    text
}

fn where_written(session: &Session<'_>, written: Option<&Written>) -> [String; 3] {
    let Some(written) = written else {
        return ["-", "", ""].map(str::to_owned);
    };
    let by = match written.part {
        Some(part) => format!("{}, part {part}", written.layer),
        None => written.layer.to_owned(),
    };
    let line = written.line.map(|line| line.to_string());
    [by, line.unwrap_or_default(), place_of(session, written)]
}

/// The place in the configuration, or in the file that it refers to.
fn place_of(session: &Session<'_>, written: &Written) -> String {
    match (&written.file, written.line, written.place) {
        (Some(file), Some(line), _) => format!("{file}:{line}"),
        (_, _, Some(place)) => session.loaded.sources.place(place),
        (_, _, None) => String::new(),
    }
}

/// A value on one line, shortened.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 48;
    let line: String = text.escape_debug().collect();
    // Remove escapes of quotes, which aren't necessary here.
    let line = line.replace("\\\"", "\"").replace("\\'", "'");
    if line.chars().count() <= LONGEST {
        line
    } else {
        line.chars().take(LONGEST - 1).chain(['…']).collect()
    }
}

/// The explanation as JSON.
fn to_json(session: &Session<'_>, explanation: &Explanation) -> Value {
    let written = |written: &Written| {
        let place = Some(place_of(session, written)).filter(|place| !place.is_empty());
        json!({
            "layer": written.layer,
            "part": written.part,
            "line": written.line,
            "written_at": place,
        })
    };
    let parts: Vec<_> = explanation
        .parts
        .iter()
        .map(|part| {
            json!({
                "content_type": part.content_type,
                "filename": part.filename,
                "bytes": part.bytes,
                "layers": part.layers,
            })
        })
        .collect();
    let values: Vec<_> = explanation
        .values
        .iter()
        .map(|value| {
            json!({
                "path": value.path,
                "value": value.value,
                "origin": value.written.as_ref().map(written),
            })
        })
        .collect();
    let dropped: Vec<_> = explanation
        .dropped
        .iter()
        .map(|dropped| {
            json!({
                "path": dropped.path,
                "why": dropped.why,
                "origin": written(&dropped.written),
            })
        })
        .collect();
    let shares: serde_json::Map<_, _> = explanation
        .shares
        .iter()
        .map(|(layer, bytes)| ((*layer).to_owned(), (*bytes).into()))
        .collect();
    json!({"parts": parts, "values": values, "dropped": dropped, "shares": shares})
}

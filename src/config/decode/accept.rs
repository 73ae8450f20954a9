//! Decodes `accept`.
//!
//! In: the top-level object. Out: the [`Acceptance`]s. Must not: look for drift.

use std::sync::Arc;

use super::reader::{Object, text, wrong_type};
use crate::address::Selector;
use crate::clock::Timestamp;
use crate::config::model::{Acceptance, Deadline};
use crate::config::node::{Node, NodeValue};
use crate::config::schema::tables;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// The accepted drift, in the order written.
pub(super) fn accept(top: &Object<'_>, findings: &mut Diagnostics) -> Vec<Acceptance> {
    let Some(entry) = top.get("accept") else {
        return Vec::new();
    };
    let NodeValue::Array(items) = &entry.value.value else {
        wrong_type(&entry.value, "`accept`", "a list of objects", findings);
        return Vec::new();
    };
    let items = items.iter();
    items
        .filter_map(|item| acceptance(item, findings))
        .collect()
}

fn acceptance(node: &Node, findings: &mut Diagnostics) -> Option<Acceptance> {
    let place = Span {
        end: node.span.start + 1,
        ..node.span
    };
    let object = Object::open(
        node,
        place,
        "an item of `accept`",
        &tables::ACCEPT,
        findings,
    )?;
    let address = object.required_text("address", findings);
    let address = address.and_then(|text| selector(&text, findings));
    let path = object.filled("path", findings).map(|path| path.value);
    let reason = object.required_text("reason", findings);
    let until = object.get("until").map(|entry| {
        let text = text(entry, findings)?;
        deadline(&text, findings)
    });
    Some(Acceptance {
        address: address?,
        path,
        reason: reason?.value,
        until: match until {
            Some(deadline) => Some(deadline?),
            None => None,
        },
        span: place,
    })
}

fn selector(text: &Spanned<Arc<str>>, findings: &mut Diagnostics) -> Option<Selector> {
    let parsed = text.value.parse();
    if parsed.is_err() {
        findings.push(
            Diagnostic::error(format!("`{}` is not a group or slot", text.value))
                .at(text.span, "expected `tenant/group` or `tenant/group/slot`")
                .hint("for example `default/web` or `default/web/0`"),
        );
    }
    parsed.ok()
}

/// A day counts until it ends in UTC.
fn deadline(text: &Spanned<Arc<str>>, findings: &mut Diagnostics) -> Option<Deadline> {
    let day = || {
        let day = text.value.parse::<jiff::civil::Date>().ok()?;
        let next = day.tomorrow().ok()?;
        let start = next.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Timestamp(start.timestamp().as_millisecond()))
    };
    // A date parses as a time, too.
    let end = if text.value.len() == "2027-01-31".len() {
        day()
    } else {
        Timestamp::parse(&text.value).ok()
    };
    if end.is_none() {
        findings.push(
            Diagnostic::error(format!("`until` can't be `{}`", text.value))
                .at(text.span, "expected a date or a time (RFC 3339)")
                .hint("for example `2027-01-31` or `2027-01-31T18:00:00Z`"),
        );
    }
    Some(Deadline {
        text: Arc::clone(&text.value),
        end: end?,
    })
}

//! Lists: filters, order, pages.
//!
//! In: everything that there is. Out: one page of it, and the token of the next. Must not: know what
//! the resources are.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Value, json};

use crate::error::Refusal;
use crate::filter::Filter;
use crate::server::Ask;
use crate::world::fingerprint;

const LARGEST_PAGE: usize = 500;

/// Pages that can be asked for.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    by_token: HashMap<String, Rest>,
    count: u64,
}

/// What comes after a page.
#[derive(Debug)]
struct Rest {
    /// What the first page was asked for: the token is for the same list alone.
    question: String,
    keys: Vec<String>,
}

/// One page.
#[derive(Debug)]
pub(crate) struct Page {
    /// In the list's order.
    pub(crate) entries: Vec<(String, Value)>,
    pub(crate) next: Option<String>,
}

impl Page {
    /// The resources alone.
    pub(crate) fn resources(self) -> Vec<Value> {
        self.entries.into_iter().map(|(_, value)| value).collect()
    }
}

impl Pages {
    /// Ends all tokens.
    pub(crate) fn expire(&mut self) {
        self.by_token.clear();
    }

    /// The page that a call asks for, of entries whose keys are in the order of their names.
    /// `schema` has the fields that a filter may name.
    pub(crate) fn page(
        &mut self,
        ask: &Ask,
        schema: &str,
        entries: Vec<(String, Value)>,
    ) -> Result<Page, Refusal> {
        let filter = filter(ask, schema)?;
        let mut entries: Vec<(String, Value)> = entries
            .into_iter()
            .filter(|(_, resource)| filter.fits(resource))
            .collect();
        match ask.call.get("orderBy").unwrap_or_default() {
            "" | "name" => entries.sort_by(|(a, _), (b, _)| a.cmp(b)),
            "creationTimestamp desc" => {
                let created = |resource: &Value| resource["creationTimestamp"].to_string();
                entries.sort_by_key(|(_, resource)| Reverse(created(resource)));
            }
            other => {
                let why = "Only name and creationTimestamp desc are supported.";
                return Err(Refusal::invalid("orderBy", other, why));
            }
        }
        let question = question(ask);
        if let Some(token) = ask.call.get("pageToken").filter(|token| !token.is_empty()) {
            let rest = self
                .by_token
                .get(token)
                .filter(|rest| rest.question == question);
            let Some(rest) = rest else {
                let why = "The page token is invalid.";
                return Err(Refusal::invalid("pageToken", token, why));
            };
            // What was deleted since is gone; what is new comes with the next list.
            entries.retain(|(key, _)| rest.keys.contains(key));
        }
        let size = page_size(ask)?;
        let next = (entries.len() > size).then(|| {
            self.count += 1;
            let keys = entries.split_off(size).into_iter().map(|(key, _)| key);
            let keys = keys.collect();
            let token = fingerprint(&json!([question, self.count]));
            self.by_token.insert(token.clone(), Rest { question, keys });
            token
        });
        Ok(Page { entries, next })
    }
}

/// A list's answer.
pub(crate) fn answer(kind: &str, path: &str, page: Page) -> Value {
    let next = page.next.clone();
    let resources = page.resources();
    let mut answer = json!({"kind": kind, "id": path});
    if !resources.is_empty() {
        answer["items"] = json!(resources);
    }
    if let Some(next) = next {
        answer["nextPageToken"] = json!(next);
    }
    answer
}

/// The filter of a call.
pub(crate) fn filter(ask: &Ask, schema: &str) -> Result<Filter, Refusal> {
    let text = ask.call.get("filter").unwrap_or_default();
    let invalid = |why: &str| {
        Refusal::invalid(
            "filter",
            text,
            &format!("Invalid list filter expression. {why}"),
        )
    };
    let filter = Filter::parse(text).map_err(|error| invalid(&error.0))?;
    for field in filter.fields() {
        if !ask.document.has_field(schema, field) {
            return Err(invalid(&format!("Unknown field '{}'.", field.join("."))));
        }
    }
    Ok(filter)
}

fn page_size(ask: &Ask) -> Result<usize, Refusal> {
    let text = ask.call.get("maxResults").unwrap_or("0");
    match text.parse() {
        Ok(0) => Ok(LARGEST_PAGE),
        Ok(size) if size <= LARGEST_PAGE => Ok(size),
        _ => {
            let why = format!("Must be between 0 and {LARGEST_PAGE}, inclusive.");
            Err(Refusal::invalid("maxResults", text, &why))
        }
    }
}

/// A list, without what may differ from page to page.
fn question(ask: &Ask) -> String {
    let parameters = ask.call.parameters.iter();
    let fixed = parameters.filter(|(name, _)| name != "pageToken" && name != "maxResults");
    let fixed: Vec<_> = fixed.collect();
    json!([ask.call.method, fixed]).to_string()
}

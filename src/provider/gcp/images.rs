//! Finds images by family, and by filters.
//!
//! In: an [`ImageQuery`]. Out: all matching images. Must not: choose among them.

use nstance_gce::Operation;
use serde_json::{Value, json};

use crate::provider::{CloudError, ImageMatch, ImageQuery};

use super::calls::Calls;
use super::observe::text;
use super::paths::path;

/// All images that match a query. Without filters, the family's own choice; with filters, all images
/// of the project (and the family, if there is one) that have one of the values of each filter, in
/// which `*` stands for any text.
///
/// Fails if the API does.
pub(super) fn find(calls: &Calls, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
    let own = [calls.place.project.clone()];
    let projects = match &query.project {
        Some(project) => std::slice::from_ref(project),
        None if query.owners.is_empty() => &own[..],
        None => &query.owners[..],
    };
    let mut found = Vec::new();
    for project in projects {
        if let Some(family) = query.family.as_ref().filter(|_| query.filters.is_empty()) {
            let input = json!({"project": project, "family": family});
            found.extend(calls.find(Operation::ImagesGetFromFamily, input)?);
            continue;
        }
        let input = json!({"project": project});
        let images = calls.pages(Operation::ImagesList, input)?;
        found.extend(images.into_iter().filter(|image| fits(image, query)));
    }
    Ok(found.iter().filter_map(matched).collect())
}

fn matched(image: &Value) -> Option<ImageMatch> {
    Some(ImageMatch {
        id: path(text(image, "selfLink")?).to_owned(),
        name: text(image, "name")?.to_owned(),
        created: text(image, "creationTimestamp")
            .unwrap_or_default()
            .to_owned(),
    })
}

/// Whether an image is ready, of the family, and has one of the values of each filter.
fn fits(image: &Value, query: &ImageQuery) -> bool {
    let is_ready = text(image, "status").is_none_or(|status| status == "READY");
    let state = image
        .get("deprecated")
        .and_then(|deprecated| text(deprecated, "state"));
    let is_current = matches!(state, None | Some("ACTIVE"));
    let is_of_family = match &query.family {
        Some(family) => text(image, "family") == Some(family),
        None => true,
    };
    is_ready
        && is_of_family
        && is_current
        && query.filters.iter().all(|filter| {
            let mut parts = filter.name.split('.');
            let value = parts.try_fold(image, |value, part| value.get(part));
            let value = match value {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => return false,
            };
            filter.values.iter().any(|pattern| is_like(&value, pattern))
        })
}

/// Whether a text fits a pattern in which `*` stands for any text.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return text == pattern;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (text, pattern, fits) in [
            ("debian-13-v1", "debian-13-*", true),
            ("debian-12-v1", "debian-13-*", false),
            ("debian-13-v1", "*", true),
            ("abcabc", "a*b*c", true),
            ("ab", "ab*b", false),
            ("x", "x", true),
            ("xy", "x", false),
        ] {
            assert_eq!(is_like(text, pattern), fits, "{text} {pattern}");
        }
    }
}

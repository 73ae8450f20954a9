//! Finds images by filters, and by public parameters.
//!
//! In: an [`ImageQuery`]. Out: all matching images. Must not: choose among them.

use nstance_ec2::Operation;
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::provider::{CloudError, CloudErrorKind, ImageMatch, ImageQuery};

use super::calls::{Calls, filter};
use super::observe::text;

/// All images that match a query.
///
/// Fails if the API does, or if a parameter holds no image id.
pub(super) fn find(calls: &Calls, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
    if let Some(name) = &query.ssm {
        return Ok(vec![by_parameter(calls, name)?]);
    }
    let found = calls.pages(Operation::DescribeImages, &input(query), "Images")?;
    let now = calls.clock.now();
    Ok(found
        .iter()
        .filter(|image| query.include_deprecated || !is_deprecated(image, now))
        .filter_map(|image| {
            Some(ImageMatch {
                id: text(image, "ImageId")?.to_owned(),
                name: text(image, "Name").unwrap_or_default().to_owned(),
                created: text(image, "CreationDate").unwrap_or_default().to_owned(),
            })
        })
        .collect())
}

/// The filters, limited to available images unless they set a state.
fn input(query: &ImageQuery) -> Value {
    let mut filters: Vec<Value> = query
        .filters
        .iter()
        .map(|given| filter(&given.name, &given.values))
        .collect();
    if !query.filters.iter().any(|given| &*given.name == "state") {
        filters.push(filter("state", &["available"]));
    }
    let mut input = json!({
        "Filters": filters,
        "IncludeDeprecated": query.include_deprecated,
        "MaxResults": 1_000,
    });
    if !query.owners.is_empty() {
        input["Owners"] = query.owners.clone().into();
    }
    input
}

/// Whether an image is deprecated. EC2 returns deprecated images to their owners regardless of the
/// request.
fn is_deprecated(image: &Value, now: Timestamp) -> bool {
    text(image, "DeprecationTime")
        .and_then(|time| Timestamp::parse(time).ok())
        .is_some_and(|time| time <= now)
}

fn by_parameter(calls: &Calls, name: &str) -> Result<ImageMatch, CloudError> {
    let answer = calls.call(Operation::GetParameter, &json!({"Name": name}))?;
    let parameter = answer.get("Parameter").unwrap_or(&Value::Null);
    let value = text(parameter, "Value").unwrap_or_default();
    let id = image_id(value).ok_or_else(|| {
        CloudError::new(
            CloudErrorKind::Invalid,
            "NoImage",
            format!("the parameter `{name}` holds no image id"),
        )
    })?;
    Ok(ImageMatch {
        id,
        name: name.to_owned(),
        created: text(parameter, "LastModifiedDate")
            .unwrap_or_default()
            .to_owned(),
    })
}

/// The image id in a parameter: its whole value, or `image_id` of a JSON object, as for ECS and
/// Bottlerocket.
fn image_id(value: &str) -> Option<String> {
    let value = value.trim();
    if value.starts_with("ami-") {
        return Some(value.to_owned());
    }
    let object: Value = serde_json::from_str(value).ok()?;
    text(&object, "image_id")
        .filter(|id| id.starts_with("ami-"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_parameters() {
        for (value, expected) in [
            ("ami-0123456789abcdef0", Some("ami-0123456789abcdef0")),
            (" ami-1\n", Some("ami-1")),
            (
                r#"{"image_id": "ami-2", "os": "Amazon Linux 2"}"#,
                Some("ami-2"),
            ),
            (r#"{"image_id": "x"}"#, None),
            ("hello", None),
            ("", None),
        ] {
            assert_eq!(image_id(value).as_deref(), expected, "{value}");
        }
    }
}

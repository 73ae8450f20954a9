//! Resolves image look-ups to ids: from the cloud, else the cache, else the fallback.
//!
//! In: configured look-ups, cached answers, a cloud. Out: an id and its source for each image, and
//! new cache entries. Must not: fail a plan; an unresolved image only fails the instances that use
//! it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_state::ImageRow;

use crate::clock::Timestamp;
use crate::config::model::{Config, Image, ImageOrder, ImageSort};
use crate::config::source::Span;
use crate::diagnostic::Diagnostic;
use crate::digest::sha256_hex;
use crate::provider::{Cloud, ImageMatch, ImageQuery};

/// Where an image's id came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSource {
    /// The cloud answered.
    Lookup,
    /// A cached answer.
    Cache,
    /// The configuration's `fallback`.
    Fallback,
}

impl ImageSource {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Cache => "cache",
            Self::Fallback => "fallback",
        }
    }
}

/// An image's id and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImage {
    /// The cloud's id.
    pub id: Arc<str>,
    /// Where the id came from.
    pub source: ImageSource,
    /// When the cloud last confirmed it; `None` for a fallback.
    pub resolved_at: Option<Timestamp>,
}

/// The result for all configured images.
#[derive(Debug, Default)]
pub struct ResolvedImages {
    /// By name; an error if no id was found.
    pub images: BTreeMap<Arc<str>, Result<ResolvedImage, ImageFailure>>,
    /// New cache entries.
    pub answers: Vec<ImageRow>,
    /// Warnings: the cache or the fallback was used after a failure.
    pub warnings: Vec<Diagnostic>,
}

/// Why an image wasn't resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFailure {
    /// The cloud's message, or nstance's own.
    pub message: String,
    /// Where the image is configured.
    pub span: Span,
}

impl ResolvedImages {
    /// Ids by name, as rendering expects them.
    pub fn ids(&self) -> BTreeMap<Arc<str>, Option<Arc<str>>> {
        self.images
            .iter()
            .map(|(name, image)| {
                (
                    Arc::clone(name),
                    image.as_ref().ok().map(|image| Arc::clone(&image.id)),
                )
            })
            .collect()
    }
}

/// Whether and when to query the cloud.
#[derive(Clone, Copy)]
pub struct Policy<'a> {
    /// The cloud; `None` if no cloud calls are allowed.
    pub cloud: Option<&'a dyn Cloud>,
    /// Query the cloud even if the cached result is fresh.
    pub refresh: bool,
    /// The current time.
    pub now: Timestamp,
}

/// Resolves every configured image that is used. `cache` holds the state's cached answers.
pub fn resolve<'n>(
    config: &Config,
    wanted: impl Fn(&str) -> bool,
    cache: &'n [ImageRow],
    policy: Policy<'_>,
) -> ResolvedImages {
    let mut resolved = ResolvedImages::default();
    for (name, image) in config.images.iter().filter(|(name, _)| wanted(name)) {
        let query = query_of(&image.value);
        let digest = digest_of(&query);
        let kept: Option<&'n ImageRow> = cache.iter().find(|row| row.name == **name);
        let is_current = kept.is_some_and(|row| row.query_digest == digest);
        let outcome = resolve_one(
            name,
            &image.value,
            image.span,
            &query,
            kept,
            is_current,
            config.shard.image_refresh_interval,
            policy,
            &mut resolved.warnings,
        );
        if let Ok(image) = &outcome
            && image.source == ImageSource::Lookup
        {
            resolved.answers.push(ImageRow {
                name: name.to_string(),
                query_digest: digest,
                image_id: image.id.to_string(),
                source: ImageSource::Lookup.as_str().to_owned(),
                resolved_at: policy.now.into(),
                detail_json: "{}".to_owned(),
            });
        }
        resolved.images.insert(Arc::clone(name), outcome);
    }
    resolved
}

#[allow(
    clippy::too_many_arguments,
    reason = "each is one fact of the decision"
)]
fn resolve_one(
    name: &str,
    image: &Image,
    span: Span,
    query: &ImageQuery,
    kept: Option<&ImageRow>,
    is_current: bool,
    interval: std::time::Duration,
    policy: Policy<'_>,
    warnings: &mut Vec<Diagnostic>,
) -> Result<ResolvedImage, ImageFailure> {
    let from_cache = |row: &ImageRow| ResolvedImage {
        id: row.image_id.as_str().into(),
        source: ImageSource::Cache,
        resolved_at: Some(row.resolved_at.into()),
    };
    if let Some(row) = kept
        && is_current
        && (policy.cloud.is_none()
            || !policy.refresh && policy.now.since(row.resolved_at.into()) < interval)
    {
        return Ok(from_cache(row));
    }
    let message = match policy.cloud.map(|cloud| cloud.find_images(query)) {
        None => "the cloud wasn't asked".to_owned(),
        Some(Ok(matches)) => match choose(matches, image.sort, image.order) {
            Some(found) => {
                return Ok(ResolvedImage {
                    id: found.id.into(),
                    source: ImageSource::Lookup,
                    resolved_at: Some(policy.now),
                });
            }
            None => "no image matches its filters".to_owned(),
        },
        Some(Err(error)) => error.to_string(),
    };
    // An answer is kept until the next look-up that succeeds, even if the look-up changed.
    if let Some(row) = kept {
        let of_before = if is_current {
            ""
        } else {
            ", by its earlier look-up"
        };
        warnings.push(
            Diagnostic::warning(format!(
                "image `{name}` is from the cache: its look-up failed: {message}"
            ))
            .at(
                span,
                format!(
                    "resolved at {}{of_before}",
                    Timestamp::from(row.resolved_at)
                ),
            ),
        );
        return Ok(from_cache(row));
    }
    if let Some(fallback) = &image.fallback {
        warnings.push(
            Diagnostic::warning(format!(
                "image `{name}` is its fallback `{fallback}`: its look-up failed: {message}"
            ))
            .at(span, "looked up here"),
        );
        return Ok(ResolvedImage {
            id: Arc::clone(fallback),
            source: ImageSource::Fallback,
            resolved_at: None,
        });
    }
    Err(ImageFailure { message, span })
}

fn query_of(image: &Image) -> ImageQuery {
    ImageQuery {
        filters: image.filters.clone(),
        owners: image.owners.iter().map(ToString::to_string).collect(),
        family: image.family.as_deref().map(str::to_owned),
        project: image.project.as_deref().map(str::to_owned),
        ssm: image.ssm.as_deref().map(str::to_owned),
        include_deprecated: image.include_deprecated,
        sort: image.sort,
        order: image.order,
    }
}

/// Identifies a query, so that a cached answer is only used for the same query.
fn digest_of(query: &ImageQuery) -> String {
    sha256_hex(format!("{query:?}").as_bytes())
}

/// The first of all matches by `sort` and `order`. Equal matches are ordered by id, so that the
/// result is stable.
pub fn choose(matches: Vec<ImageMatch>, sort: ImageSort, order: ImageOrder) -> Option<ImageMatch> {
    let key = |image: &ImageMatch| match sort {
        ImageSort::CreationDate => image.created.clone(),
        ImageSort::Name => image.name.clone(),
    };
    matches.into_iter().min_by(|a, b| {
        let by_key = match order {
            ImageOrder::Ascending => key(a).cmp(&key(b)),
            ImageOrder::Descending => key(b).cmp(&key(a)),
        };
        by_key.then_with(|| -> Ordering { a.id.cmp(&b.id) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(id: &str, name: &str, created: &str) -> ImageMatch {
        ImageMatch {
            id: id.into(),
            name: name.into(),
            created: created.into(),
        }
    }

    #[test]
    fn the_choice_is_the_first_by_sort_order_and_id() {
        let matches = || {
            vec![
                image("ami-3", "b", "2026-01-02T00:00:00.000Z"),
                image("ami-1", "a", "2026-01-01T00:00:00.000Z"),
                image("ami-2", "c", "2026-01-02T00:00:00.000Z"),
            ]
        };
        for (sort, order, expected) in [
            (ImageSort::CreationDate, ImageOrder::Descending, "ami-2"),
            (ImageSort::CreationDate, ImageOrder::Ascending, "ami-1"),
            (ImageSort::Name, ImageOrder::Descending, "ami-2"),
            (ImageSort::Name, ImageOrder::Ascending, "ami-1"),
        ] {
            assert_eq!(choose(matches(), sort, order).unwrap().id, expected);
        }
        assert_eq!(
            choose(Vec::new(), ImageSort::Name, ImageOrder::Ascending),
            None
        );
    }
}

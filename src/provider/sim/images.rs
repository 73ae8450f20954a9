//! The images of the embedded cloud, and look-ups with the clouds' rules.
//!
//! In: an [`ImageQuery`]. Out: the [`ImageMatch`]es of the catalogue, of `options.images` and of
//! published images. Must not: choose among them.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::config::model::ProviderKind;
use crate::provider::{CloudError, CloudErrorKind, ImageMatch, ImageQuery};

use super::catalogue::catalogue;
use super::{SimError, World, hash};
use crate::digest::hex;

/// The owner of published images that match no image of the catalogue: "self".
pub const OWN_ACCOUNT: &str = "123456789012";

/// An image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimImage {
    /// The image id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it was created: RFC 3339, with milliseconds.
    pub created: String,
    /// The account (AWS) or project (GCP) it belongs to.
    pub owner: String,
    /// The owner's alias, such as `amazon`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_alias: Option<String>,
    /// `amd64` or `arm64`.
    pub arch: String,
    /// GCP: the family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// The only provider that has it; `None` for all.
    #[serde(skip)]
    pub only_on: Option<ProviderKind>,
    /// Tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

impl SimImage {
    /// Fills in missing fields from the newest image of the catalogue with the same name but
    /// another date. So look-ups for Debian find a published `debian-13-arm64-20261201-1`.
    pub(super) fn take_after_catalogue(&mut self) {
        let own = stem(&self.name);
        let model = catalogue()
            .into_iter()
            .rev()
            .find(|image| stem(&image.name) == own);
        if let Some(model) = model {
            if self.owner.is_empty() || self.owner == model.owner {
                self.owner = model.owner;
                self.owner_alias = self.owner_alias.take().or(model.owner_alias);
                self.family = self.family.take().or(model.family);
            }
            if self.arch.is_empty() {
                self.arch = model.arch;
            }
        }
        if self.owner.is_empty() {
            OWN_ACCOUNT.clone_into(&mut self.owner);
        }
        if self.arch.is_empty() {
            self.arch = if self.name.contains("arm64") {
                "arm64".to_owned()
            } else {
                "amd64".to_owned()
            };
        }
        if self.created.is_empty() {
            "2026-01-01T00:00:00.000Z".clone_into(&mut self.created);
        }
    }

    /// Fills in missing fields of an image to publish, from the catalogue or generated.
    pub(super) fn published(mut self, now: Timestamp) -> Self {
        if self.created.is_empty() {
            self.created = creation_date(now);
        }
        self.take_after_catalogue();
        if self.id.is_empty() {
            self.id = if self.family.is_some() {
                gcp_id(&self.owner, &self.name)
            } else {
                ami_id(&format!("{} {}", self.name, self.created))
            };
        }
        self
    }
}

/// A generated image id in AWS's form.
pub(super) fn ami_id(of: &str) -> String {
    format!("ami-{}", &hex(&hash(&[b"image", of.as_bytes()]))[..17])
}

/// A generated image id in GCP's form.
pub(super) fn gcp_id(project: &str, name: &str) -> String {
    format!("projects/{project}/global/images/{name}")
}

/// A time in the form of AWS's creation dates.
pub(super) fn creation_date(time: Timestamp) -> String {
    let seconds = time.to_string();
    let milliseconds = time.0.rem_euclid(1000);
    format!("{}.{milliseconds:03}Z", seconds.trim_end_matches('Z'))
}

/// A name without the date and number at its end.
fn stem(name: &str) -> &str {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_date =
        |text: &str| text.len() == 8 && digits(text) || text.strip_prefix('v').is_some_and(digits);
    match name.rsplit_once('-') {
        Some((rest, last)) if is_date(last) => rest,
        Some((rest, last)) if digits(last) => match rest.rsplit_once('-') {
            Some((rest, date)) if is_date(date) => rest,
            _ => name,
        },
        _ => name,
    }
}

/// All images of the simulated provider; later ones replace earlier ones with the same id.
///
/// Fails if the database does.
pub(super) fn all(connection: &Connection, world: &World) -> Result<Vec<SimImage>, SimError> {
    let mut images: indexmap::IndexMap<String, SimImage> = catalogue()
        .into_iter()
        .chain(world.options.images.iter().cloned())
        .filter(|image| world.provider == ProviderKind::Sim || image.is_on(world.provider))
        .map(|image| (image.id.clone(), image))
        .collect();
    for image in published(connection)? {
        images.insert(image.id.clone(), image);
    }
    Ok(images.into_values().collect())
}

impl SimImage {
    fn is_on(&self, provider: ProviderKind) -> bool {
        self.only_on.is_none_or(|only| only == provider)
    }
}

/// The published images, by id.
///
/// Fails if the database does.
pub(super) fn published(connection: &Connection) -> Result<Vec<SimImage>, SimError> {
    let mut statement = connection.prepare("SELECT image FROM image ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut images = Vec::new();
    while let Some(row) = rows.next()? {
        images.push(serde_json::from_str(&row.get::<_, String>(0)?)?);
    }
    Ok(images)
}

/// The image with this id, to create an instance; `None` if there is none.
///
/// Fails if the database does.
pub(super) fn find(
    connection: &Connection,
    world: &World,
    id: &str,
) -> Result<Option<SimImage>, SimError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT image FROM image WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    if let Some(text) = text {
        return Ok(Some(serde_json::from_str(&text)?));
    }
    Ok(all(connection, world)?
        .into_iter()
        .find(|image| image.id == id || image.is_family_path(id)))
}

impl SimImage {
    /// `projects/PROJECT/global/images/family/FAMILY`, with or without a host before it.
    fn is_family_path(&self, path: &str) -> bool {
        self.family.as_ref().is_some_and(|family| {
            path.ends_with(&format!(
                "projects/{}/global/images/family/{family}",
                self.owner
            ))
        })
    }

    /// The values that a filter compares; `None` for an unknown filter.
    fn filtered_by(&self, filter: &str, as_sim: bool) -> Option<Vec<String>> {
        let text = |value: &str| vec![value.to_owned()];
        Some(match filter {
            "name" | "description" => text(&self.name),
            "image-id" => text(&self.id),
            "owner-id" => text(&self.owner),
            "owner-alias" => self.owner_alias.iter().cloned().collect(),
            "architecture" if self.arch == "amd64" => {
                let mut names = text("x86_64");
                if as_sim {
                    names.push("amd64".to_owned());
                }
                names
            }
            "architecture" => text(&self.arch),
            "creation-date" => text(&self.created),
            "state" => text("available"),
            "image-type" => text("machine"),
            "root-device-type" => text("ebs"),
            "virtualization-type" => text("hvm"),
            "hypervisor" => text("xen"),
            "ena-support" => text("true"),
            "boot-mode" => text("uefi-preferred"),
            "is-public" => text(if self.owner == OWN_ACCOUNT {
                "false"
            } else {
                "true"
            }),
            "tag-key" => self.tags.keys().cloned().collect(),
            _ => {
                let key = filter.strip_prefix("tag:")?;
                self.tags.get(key).cloned().into_iter().collect()
            }
        })
    }

    fn is_owned_by(&self, owner: &str) -> bool {
        owner == self.owner
            || self.owner_alias.as_deref() == Some(owner)
            || (owner == "self" && self.owner == OWN_ACCOUNT)
    }
}

/// Every image that `query` matches.
///
/// Fails if the query is invalid, or the database fails.
pub(super) fn search(
    connection: &Connection,
    world: &World,
    query: &ImageQuery,
) -> Result<Vec<ImageMatch>, SimError> {
    if let Some(name) = &query.ssm {
        return Ok(vec![by_parameter(all(connection, world)?, name)?]);
    }
    let as_sim = world.provider == ProviderKind::Sim;
    for filter in &query.filters {
        if SimImage::default()
            .filtered_by(&filter.name, as_sim)
            .is_none()
        {
            return Err(CloudError::new(
                CloudErrorKind::Invalid,
                "InvalidParameterValue",
                format!("The filter '{}' is invalid", filter.name),
            )
            .into());
        }
    }
    let wanted = |image: &SimImage| {
        let family = query.family.is_none() || image.family == query.family;
        let project = query
            .project
            .as_ref()
            .is_none_or(|project| *project == image.owner);
        let owners =
            query.owners.is_empty() || query.owners.iter().any(|owner| image.is_owned_by(owner));
        family
            && project
            && owners
            && query.filters.iter().all(|filter| {
                image
                    .filtered_by(&filter.name, as_sim)
                    .is_some_and(|actual| {
                        filter
                            .values
                            .iter()
                            .any(|pattern| actual.iter().any(|text| matches(pattern, text)))
                    })
            })
    };
    Ok(all(connection, world)?
        .into_iter()
        .filter(wanted)
        .map(|image| ImageMatch {
            id: image.id,
            name: image.name,
            created: image.created,
        })
        .collect())
}

/// The prefixes of public parameters, and their images; `{arch}` is replaced by the rest of the
/// name.
const PARAMETERS: &[(&str, &str)] = &[
    (
        "/aws/service/debian/release/13/latest/",
        "debian-13-{arch}-",
    ),
    (
        "/aws/service/debian/release/12/latest/",
        "debian-12-{arch}-",
    ),
    (
        "/aws/service/canonical/ubuntu/server/24.04/stable/current/",
        "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-{arch}-server-",
    ),
    (
        "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-",
        "al2023-ami-2023.",
    ),
];

/// The image of a public parameter: one published with the tag `ssm` and this name, else the newest
/// matching image of the catalogue.
///
/// Fails if there is none.
fn by_parameter(images: Vec<SimImage>, name: &str) -> Result<ImageMatch, SimError> {
    let leads_to = |image: &SimImage| {
        PARAMETERS.iter().any(|(prefix, stem)| {
            let Some(rest) = name.strip_prefix(prefix) else {
                return false;
            };
            let arch = match rest.split('/').next().unwrap_or(rest) {
                "x86_64" => "amd64",
                arch => arch,
            };
            image.arch == arch && image.name.starts_with(&stem.replace("{arch}", arch))
        })
    };
    let tagged = |image: &SimImage| image.tags.get("ssm").is_some_and(|tag| tag == name);
    let newest = images
        .into_iter()
        .filter(|image| tagged(image) || leads_to(image))
        .max_by_key(|image| (tagged(image), image.created.clone()));
    let image = newest.ok_or_else(|| {
        CloudError::new(
            CloudErrorKind::Invalid,
            "ParameterNotFound",
            format!("The parameter '{name}' does not exist"),
        )
    })?;
    Ok(ImageMatch {
        id: image.id,
        name: name.to_owned(),
        created: image.created,
    })
}

/// Whether `text` matches a filter's value: `*` is any text, `?` any character, and a backslash
/// escapes.
fn matches(pattern: &str, text: &str) -> bool {
    let mut glob = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' if glob.ends_with('*') => {}
            '*' | '?' => glob.push(character),
            _ => {
                let escaped = (character == '\\').then(|| characters.next()).flatten();
                let literal = escaped.unwrap_or(character).to_string();
                glob.push_str(&glob::Pattern::escape(&literal));
            }
        }
    }
    glob::Pattern::new(&glob).is_ok_and(|glob| glob.matches(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_describe_images_does() {
        for (pattern, text, expected) in [
            ("debian-13-arm64-*", "debian-13-arm64-20260914-2601", true),
            ("debian-13-arm64-*", "debian-13-amd64-20260914-2601", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            (
                "*noble*server-????????",
                "ubuntu-noble-x-server-20260820",
                true,
            ),
            (
                "*noble*server-???????",
                "ubuntu-noble-x-server-20260820",
                false,
            ),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("Debian*", "debian", false),
            ("é?", "éé", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_stem_is_the_name_without_its_date() {
        for (name, expected) in [
            ("debian-13-arm64-20260914-2601", "debian-13-arm64"),
            ("debian-13-arm64-20261201", "debian-13-arm64"),
            ("debian-13-trixie-v20260909", "debian-13-trixie"),
            ("debian-13", "debian-13"),
            ("golden", "golden"),
            ("golden-7", "golden-7"),
        ] {
            assert_eq!(stem(name), expected, "{name}");
        }
    }

    #[test]
    fn the_catalogue_has_no_id_twice_and_every_date_parses() {
        let images = catalogue();
        let ids: std::collections::BTreeSet<_> = images.iter().map(|image| &image.id).collect();
        assert_eq!(ids.len(), images.len());
        for image in &images {
            assert!(Timestamp::parse(&image.created).is_ok(), "{image:?}");
        }
    }
}

//! Names and paths of Compute Engine's resources.
//!
//! In: short names, partial paths, URLs. Out: paths that requests take. Must not: make calls.

/// Where requests are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The project's id.
    pub project: String,
    /// The region.
    pub region: String,
}

/// A URL or path from `projects/` on; other texts as they are.
///
/// `https://www.googleapis.com/compute/v1/projects/p/zones/z` gives `projects/p/zones/z`.
pub(super) fn path(url: &str) -> &str {
    match url.find("projects/") {
        Some(at) if at == 0 || url[..at].ends_with('/') => &url[at..],
        _ => url,
    }
}

/// The last part of a URL or path.
pub(super) fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

/// The part of a URL or path after `collection`, such as the zone after `zones`.
pub(super) fn part<'u>(url: &'u str, collection: &str) -> Option<&'u str> {
    let mut parts = url.split('/');
    parts.find(|part| *part == collection)?;
    parts.next().filter(|part| !part.is_empty())
}

/// Whether two references name one resource: one may be shorter than the other, as `zones/z/disks/d`
/// is than `projects/p/zones/z/disks/d`.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (path(one), path(other));
    let ends_with = |long: &str, short: &str| {
        let rest = long.strip_suffix(short.trim_start_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    one == other || ends_with(one, other) || ends_with(other, one)
}

/// An instance by its provider id: its zone, then its name.
pub(super) fn instance_id(zone: &str, name: &str) -> String {
    format!("{zone}/{name}")
}

/// Zone and name of a provider id: `ZONE/NAME`, or a path or URL that ends in
/// `zones/ZONE/instances/NAME`.
pub(super) fn of_instance(id: &str) -> Option<(&str, &str)> {
    if let Some(zone) = part(id, "zones") {
        return Some((zone, part(id, "instances")?));
    }
    let (zone, name) = id.split_once('/')?;
    (!zone.is_empty() && !name.is_empty() && !name.contains('/')).then_some((zone, name))
}

impl Place {
    /// A short name as the path of a resource in a zone.
    pub(super) fn zonal(zone: &str, collection: &str, short: &str) -> String {
        if short.contains('/') {
            return short.to_owned();
        }
        format!("zones/{zone}/{collection}/{short}")
    }

    /// A short name as the path of a resource in the region.
    pub(super) fn regional(&self, collection: &str, short: &str) -> String {
        if short.contains('/') {
            return path(short).to_owned();
        }
        format!(
            "projects/{}/regions/{}/{collection}/{short}",
            self.project, self.region
        )
    }

    /// Project, region and name of a subnet: `NAME`, `REGION/NAME`, a path or a URL.
    pub(super) fn subnet<'s>(&'s self, id: &'s str) -> (&'s str, &'s str, &'s str) {
        let region = part(id, "regions").or_else(|| {
            let (region, name) = id.split_once('/')?;
            (!name.contains('/') && region != "subnetworks").then_some(region)
        });
        (
            part(id, "projects").unwrap_or(&self.project),
            region.unwrap_or(&self.region),
            name(id),
        )
    }

    /// The full path of a subnet.
    pub(super) fn subnet_path(&self, id: &str) -> String {
        let (project, region, name) = self.subnet(id);
        format!("projects/{project}/regions/{region}/subnetworks/{name}")
    }

    /// The full path of an instance.
    pub(super) fn instance_path(&self, zone: &str, name: &str) -> String {
        format!("projects/{}/zones/{zone}/instances/{name}", self.project)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_one_resource_are_the_same() {
        for (one, other, same) in [
            (
                "pd-ssd",
                "https://www.googleapis.com/compute/v1/projects/p/zones/z/diskTypes/pd-ssd",
                true,
            ),
            (
                "zones/z/diskTypes/a",
                "projects/p/zones/z/diskTypes/a",
                true,
            ),
            (
                "zones/y/diskTypes/a",
                "projects/p/zones/z/diskTypes/a",
                false,
            ),
            ("sd", "projects/p/zones/z/diskTypes/pd-sd", false),
            ("a", "a", true),
        ] {
            assert_eq!(is_same(one, other), same, "{one} {other}");
            assert_eq!(is_same(other, one), same, "{other} {one}");
        }
    }

    #[test]
    fn an_instance_is_named_by_zone_and_name() {
        for (id, expected) in [
            ("z-a/web", Some(("z-a", "web"))),
            ("projects/p/zones/z/instances/i", Some(("z", "i"))),
            (
                "https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/i",
                Some(("z", "i")),
            ),
            ("web", None),
            ("/web", None),
            ("a/b/c", None),
        ] {
            assert_eq!(of_instance(id), expected, "{id}");
        }
    }

    #[test]
    fn subnets_have_a_region() {
        let place = Place {
            project: "p".into(),
            region: "r".into(),
        };
        for (id, expected) in [
            ("s", "projects/p/regions/r/subnetworks/s"),
            ("r2/s", "projects/p/regions/r2/subnetworks/s"),
            (
                "regions/r2/subnetworks/s",
                "projects/p/regions/r2/subnetworks/s",
            ),
            (
                "projects/h/regions/r/subnetworks/s",
                "projects/h/regions/r/subnetworks/s",
            ),
        ] {
            assert_eq!(place.subnet_path(id), expected, "{id}");
        }
    }
}

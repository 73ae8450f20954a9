//! `images`, `subnetworks`, `regions`, `disks`: what instances are made of.
//!
//! In: calls whose form is valid. Out: resources. Must not: change any.

use serde_json::{Value, json};

use crate::error::Refusal;
use crate::instances::zone;
use crate::list;
use crate::quotas;
use crate::server::Ask;
use crate::world::{LINK, World, regions, resource_path, zones};

/// The image that a link names, as itself or by its family.
pub(crate) fn named(world: &World, link: &str) -> Option<Value> {
    let path = resource_path(link, &world.project)?;
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["projects", project, "global", "images", "family", family] => {
            newest(world, project, family)
        }
        ["projects", project, "global", "images", name] => image(world, project, name),
        _ => None,
    }
}

/// `images.get`
pub(crate) fn get(world: &World, ask: &Ask) -> Result<Value, Refusal> {
    let (project, name) = (ask.project(), ask.call.get("image").unwrap_or_default());
    image(world, project, name)
        .ok_or_else(|| Refusal::not_found(&format!("projects/{project}/global/images/{name}")))
}

/// `images.getFromFamily`
pub(crate) fn get_from_family(world: &World, ask: &Ask) -> Result<Value, Refusal> {
    let (project, family) = (ask.project(), ask.call.get("family").unwrap_or_default());
    newest(world, project, family).ok_or_else(|| {
        Refusal::not_found(&format!("projects/{project}/global/images/family/{family}"))
    })
}

/// `images.list`
pub(crate) fn list(world: &mut World, ask: &Ask) -> Result<Value, Refusal> {
    let project = ask.project();
    let of_project = world.images.iter().filter(|(owner, _)| owner == project);
    let name = |image: &Value| image["name"].as_str().unwrap_or_default().to_owned();
    let entries = of_project.map(|(_, image)| (name(image), image.clone()));
    let entries = entries.collect();
    let page = world.pages.page(ask, "Image", entries)?;
    let path = format!("projects/{project}/global/images");
    let mut answer = list::answer("compute#imageList", &path, page);
    answer["selfLink"] = json!(format!("{LINK}{path}"));
    Ok(answer)
}

fn image(world: &World, project: &str, name: &str) -> Option<Value> {
    let is_it = |image: &Value| image["name"] == name || image["id"] == name;
    let mut images = world.images.iter();
    let found = images.find(|(owner, image)| owner == project && is_it(image));
    found.map(|(_, image)| image.clone())
}

/// The newest image of a family that isn't deprecated.
fn newest(world: &World, project: &str, family: &str) -> Option<Value> {
    let of_family = world.images.iter().filter(|(owner, image)| {
        owner == project && image["family"] == family && image.get("deprecated").is_none()
    });
    let newest = of_family.max_by_key(|(_, image)| image["creationTimestamp"].to_string());
    newest.map(|(_, image)| image.clone())
}

/// `subnetworks.get`
pub(crate) fn subnetwork(world: &World, ask: &Ask) -> Result<Value, Refusal> {
    let region = known_region(ask)?;
    let name = ask.call.get("subnetwork").unwrap_or_default();
    let path = format!(
        "projects/{}/regions/{region}/subnetworks/{name}",
        ask.project()
    );
    let found = world.subnetworks.get(&path);
    let mut subnetwork = found.cloned().ok_or_else(|| Refusal::not_found(&path))?;
    let views = ask
        .call
        .parameters
        .iter()
        .filter(|(name, _)| name == "views");
    if views
        .into_iter()
        .any(|(_, view)| view == "WITH_UTILIZATION")
    {
        let size = world.range(&path).map_or(0, |range| u64::from(range.size));
        let used = world.used_addresses(&path).len() as u64;
        subnetwork["utilizationDetails"] = json!({"ipv4Utilizations": [{
            // The range's own addresses are taken, too.
            "totalAllocatedIp": (used + 4).to_string(),
            "totalFreeIp": (size - used - 4).to_string(),
        }]});
    }
    Ok(subnetwork)
}

/// `regions.get`
pub(crate) fn region(world: &World, ask: &Ask) -> Result<Value, Refusal> {
    let name = ask.call.get("region").unwrap_or_default();
    let path = world.path(&format!("regions/{name}"));
    if !regions().any(|one| one == name) {
        return Err(Refusal::not_found(&path));
    }
    let of_region = zones().filter(|zone| crate::world::region(zone) == name);
    let links = of_region.map(|zone| format!("{LINK}{}", world.path(&format!("zones/{zone}"))));
    Ok(json!({
        "kind": "compute#region",
        "id": "1000",
        "creationTimestamp": "1969-12-31T16:00:00.000-08:00",
        "name": name,
        "description": name,
        "status": "UP",
        "zones": links.collect::<Vec<_>>(),
        "quotas": quotas::of_region(world, name),
        "selfLink": format!("{LINK}{path}"),
    }))
}

/// `disks.get`
pub(crate) fn disk(world: &World, ask: &Ask) -> Result<Value, Refusal> {
    let zone = zone(ask)?.to_owned();
    let name = ask.call.get("disk").unwrap_or_default().to_owned();
    let path = world.path(&format!("zones/{zone}/disks/{name}"));
    let found = world.disks.get(&(zone, name));
    found.cloned().ok_or_else(|| Refusal::not_found(&path))
}

/// The region of a call.
pub(crate) fn known_region<'a>(ask: &'a Ask) -> Result<&'a str, Refusal> {
    let region = ask.call.get("region").unwrap_or_default();
    if regions().any(|one| one == region) {
        Ok(region)
    } else {
        Err(Refusal::invalid("region", region, "Unknown region."))
    }
}

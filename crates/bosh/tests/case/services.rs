//! Cases of `services`.

use nstance_bosh::instances::{Naming, Profile};
use nstance_bosh::services::{Group, Layout, services};
use serde_json::{Value as Json, json};

pub(crate) fn check(case: &Json) -> Result<(), String> {
    let input = &case["input"];
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let number = |json: &Json| json.as_u64().unwrap_or_default();
    let versions = input["versions"].as_array().cloned().unwrap_or_default();
    let versions: Vec<u64> = versions.iter().map(number).collect();
    let naming = Naming {
        profile: Profile::Quarks,
        deployment: text("deployment").to_owned(),
        domain: format!("{}.{}", text("namespace"), text("service_domain")),
    };
    let group = Group {
        naming: &naming,
        instance_group: text("instance_group"),
        replicas: number(&input["replicas"]) as u32,
        az_count: number(&input["az_count"]) as u32,
        versions: &versions,
        layout: match text("layout") {
            "table" => Layout::Table,
            _ => Layout::Formula,
        },
    };
    let services: Json = services(&group)
        .into_iter()
        .map(
            |service| json!({"name": service.name, "dns": service.dns, "selects": service.selects}),
        )
        .collect();
    super::compare(case, Ok(("services", services)))
}

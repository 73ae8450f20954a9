//! The rules of changes in place on Yandex Cloud, which has no client yet.
//!
//! In: paths of a spec. Out: [`Effect`]s, as instance groups of Yandex Cloud have them. Must not:
//! know a specification; `dialect::yandex` reads those.

use crate::provider::rules::{Effect, effect_of};

/// Members that change while the instance runs.
const IN_PLACE: &[&str] = &[
    "description",
    "metadata_options",
    "name",
    "service_account_id",
];

/// Members that change while it is stopped.
const RESTART: &[&str] = &[
    "boot_disk_spec",
    "metadata",
    "network_settings",
    "placement_policy",
    "reserved_instance_pool_id",
    "resources_spec",
];

/// What a change of the attribute at `path` requires.
pub fn effect(path: &str) -> Effect {
    match path {
        // Part of the metadata there.
        "userdata" => Effect::Restart,
        _ => effect_of(path, IN_PLACE, RESTART),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_is_that_of_the_member() {
        for (path, wanted) in [
            ("tags.env", Effect::InPlace),
            ("args.name", Effect::InPlace),
            ("args.service_account_id", Effect::InPlace),
            ("instance_type", Effect::Restart),
            ("args.resources_spec.memory", Effect::Restart),
            ("args.boot_disk_spec.disk_spec.size", Effect::Restart),
            ("args.metadata.key", Effect::Restart),
            ("userdata", Effect::Restart),
            ("args.hostname", Effect::Replace),
            (
                "args.network_interface_specs[0].network_id",
                Effect::Replace,
            ),
            ("args.secondary_disk_specs", Effect::Replace),
            ("args.scheduling_policy.preemptible", Effect::Replace),
            ("args.filesystem_specs", Effect::Replace),
            ("zone", Effect::Replace),
        ] {
            assert_eq!(effect(path), wanted, "{path}");
        }
    }
}

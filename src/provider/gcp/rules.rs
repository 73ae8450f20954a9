//! The rules of Compute Engine: valid args, changes in place, managed labels.
//!
//! In: the args of one layer as written, paths of a spec, an instance's identity. Out: findings,
//! [`Effect`]s, labels. Must not: call Compute Engine.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::config::node::{Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::rules::{Effect, Ownership, effect_of, effective, managed_member};
use crate::provider::shape::{self, Members, Shape};

use super::members::INSTANCE;

/// Members of an Instance that nstance manages, and what to use instead.
const MANAGED: &[(&str, &str)] = &[
    ("name", "leave it out: it follows from the instance's id"),
    (
        "machineType",
        "set `instance_type` of the group or template",
    ),
    ("zone", "set `zones` of the group, or `shard.infra.zone`"),
];

/// Short names for several members of an Instance.
const SHORTHANDS: Members = &[
    ("AutomaticRestart", Shape::Flag),
    ("ConfidentialInstanceConfig", Shape::Object),
    ("GuestAccelerators", Shape::List(&Shape::Object)),
    ("Labels", Shape::Map(&Shape::Text)),
    ("MinCpuPlatform", Shape::Text),
    ("NetworkTags", Shape::List(&Shape::Text)),
    ("OnHostMaintenance", Shape::Text),
    ("Preemptible", Shape::Flag),
    ("ProvisioningModel", Shape::Text),
    ("ResourcePolicies", Shape::List(&Shape::Text)),
    ("ServiceAccount", Shape::Text),
    ("ServiceAccounts", Shape::List(&Shape::Object)),
    ("ShieldedInstanceConfig", Shape::Object),
    ("SourceImage", Shape::Text),
];

/// Each short name with the members that it stands for.
const SAME: &[(&str, &str)] = &[
    ("ConfidentialInstanceConfig", "confidentialInstanceConfig"),
    ("GuestAccelerators", "guestAccelerators"),
    ("MinCpuPlatform", "minCpuPlatform"),
    ("NetworkTags", "tags"),
    ("ResourcePolicies", "resourcePolicies"),
    ("ServiceAccount", "ServiceAccounts"),
    ("ServiceAccount", "serviceAccounts"),
    ("ServiceAccounts", "serviceAccounts"),
    ("ShieldedInstanceConfig", "shieldedInstanceConfig"),
];

/// The prefix of managed labels.
const OUR_LABELS: &str = "nstance-";

/// Reports invalid args of one layer.
pub fn check_args(args: &Node, findings: &mut Diagnostics) {
    for entry in args.entries() {
        let one = std::slice::from_ref(entry);
        if let Some((name, instead)) = managed(&entry.key) {
            findings.push(managed_member(entry, name, instead));
        } else if has(SHORTHANDS, &entry.key) {
            shape::check(one, SHORTHANDS, "args", findings);
        } else if has(INSTANCE, &entry.key) {
            shape::check(one, INSTANCE, "args", findings);
        } else {
            // Only short names begin with a capital letter.
            let likely = if entry.key.starts_with(|c: char| c.is_ascii_uppercase()) {
                SHORTHANDS
            } else {
                INSTANCE
            };
            findings.push(shape::unknown_member(entry, likely, "an Instance"));
        }
        match &*entry.key {
            "Labels" | "labels" => check_labels(&entry.value, findings),
            "metadata" => check_metadata(&entry.value, findings),
            _ => {}
        }
    }
    check_merged_args(&[args], findings);
}

fn has(members: Members, key: &str) -> bool {
    shape::find(members, key).is_some()
}

/// The managed member with this name, ignoring case.
fn managed(key: &str) -> Option<&'static (&'static str, &'static str)> {
    let squeezed = key.replace('_', "");
    MANAGED
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(&squeezed))
}

/// Reports members of merged layers that exclude each other.
pub fn check_merged_args(layers: &[&Node], findings: &mut Diagnostics) {
    let effective = |name: &str| effective(layers, name);
    for (shorthand, member) in SAME {
        if let (Some(first), Some(second)) = (effective(shorthand), effective(member)) {
            findings.push(
                Diagnostic::error(format!(
                    "`{shorthand}` and `{member}` say the same thing twice"
                ))
                .at(second.key_span, format!("`{member}`"))
                .related(first.key_span, format!("`{shorthand}`"))
                .hint("keep one of the two; null in a higher layer takes a lower one's away"),
            );
        }
    }
}

/// The metadata keys that userdata is sent under.
const USERDATA_KEYS: [&str; 3] = ["user-data", "user-data-encoding", "startup-script"];

/// Reports metadata items that userdata is sent as.
fn check_metadata(metadata: &Node, findings: &mut Diagnostics) {
    let items = metadata.get("items").map(|items| &items.value);
    let Some(NodeValue::Array(items)) = items else {
        return;
    };
    for key in items.iter().filter_map(|item| item.get("key")) {
        if key.as_str().is_some_and(|key| USERDATA_KEYS.contains(&key)) {
            findings.push(
                Diagnostic::error("userdata can't be set in `metadata`")
                    .at(key.span, "nstance sets this item")
                    .hint("write it as `userdata` of the group or template"),
            );
        }
    }
}

/// Warns about managed labels. Not an error, since Nstance's own examples set `nstance-group`.
fn check_labels(labels: &Node, findings: &mut Diagnostics) {
    for entry in labels.entries() {
        if sanitise_label(&entry.key).starts_with(OUR_LABELS) {
            findings.push(
                Diagnostic::warning(format!("the label `{}` has no effect", entry.key))
                    .at(
                        entry.key_span,
                        "labels that start with `nstance-` are nstance's own",
                    )
                    .hint("remove it: nstance sets its labels itself"),
            );
        }
    }
}

/// Members that Compute Engine changes on a running instance.
const IN_PLACE: &[&str] = &[
    "Labels",
    "labels",
    "NetworkTags",
    "tags",
    "metadata",
    "deletionProtection",
];

/// Members of `scheduling` that are set once and for all.
const SCHEDULED_ONCE: &[&str] = &[
    "args.scheduling.preemptible",
    "args.scheduling.provisioningModel",
];

/// Members that it changes on a stopped one.
const RESTART: &[&str] = &[
    "AutomaticRestart",
    "OnHostMaintenance",
    "scheduling",
    "MinCpuPlatform",
    "minCpuPlatform",
    "ServiceAccount",
    "ServiceAccounts",
    "serviceAccounts",
    "ShieldedInstanceConfig",
    "shieldedInstanceConfig",
];

/// What a change of the attribute at `path` requires.
pub fn effect(path: &str) -> Effect {
    if SCHEDULED_ONCE.iter().any(|once| path.starts_with(once)) {
        return Effect::Replace;
    }
    effect_of(path, IN_PLACE, RESTART)
}

/// Whether an instance has a disk of its own that isn't deleted with it. Compute Engine keeps disks
/// unless `autoDelete` is set; those that existed before are somebody else's.
pub fn leaves_disks(args: &Map<String, Value>) -> bool {
    let disks = args.get("disks").and_then(Value::as_array);
    let mut disks = disks.into_iter().flatten();
    disks.any(|disk| {
        disk.get("source").is_none() && disk.get("autoDelete") != Some(&Value::Bool(true))
    })
}

/// The managed labels of an instance, and its `name`.
pub fn managed_labels(who: &Ownership<'_>) -> BTreeMap<String, String> {
    who.facts()
        .map(|(short, value)| (format!("{OUR_LABELS}{short}"), sanitise_label(&value)))
        .chain([("name".to_owned(), cut(&sanitise_label(&who.name())))])
        .collect()
}

/// The sanitized labels in rendered args, without managed ones.
pub fn user_labels(args: &Map<String, Value>) -> BTreeMap<String, String> {
    ["labels", "Labels"]
        .into_iter()
        .filter_map(|member| args.get(member)?.as_object())
        .flatten()
        .filter_map(|(key, value)| Some((sanitise_label(key), sanitise_label(value.as_str()?))))
        .filter(|(key, _)| !key.starts_with(OUR_LABELS))
        .collect()
}

/// The maximum length of a label, in characters.
const LONGEST_LABEL: usize = 63;

/// A valid label: lower case, at most 63 characters, with hyphens in place of underscores and other
/// invalid characters.
pub fn sanitise_label(text: &str) -> String {
    let label: String = text
        .chars()
        .flat_map(char::to_lowercase)
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    cut(&label)
}

fn cut(label: &str) -> String {
    label.chars().take(LONGEST_LABEL).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_effect_is_that_of_the_member() {
        for (path, effect_wanted) in [
            ("labels.a", Effect::InPlace),
            ("tags.a", Effect::InPlace),
            ("args.NetworkTags", Effect::InPlace),
            ("args.Labels.a", Effect::InPlace),
            ("args.metadata.items", Effect::InPlace),
            ("instance_type", Effect::Restart),
            ("args.MinCpuPlatform", Effect::Restart),
            ("args.ServiceAccounts[0].scopes", Effect::Restart),
            ("args.ShieldedInstanceConfig", Effect::Restart),
            ("args.SourceImage", Effect::Replace),
            ("args.deletionProtection", Effect::InPlace),
            ("args.OnHostMaintenance", Effect::Restart),
            ("args.scheduling.automaticRestart", Effect::Restart),
            ("args.scheduling.provisioningModel", Effect::Replace),
            ("args.Preemptible", Effect::Replace),
            ("userdata", Effect::Replace),
            ("subnet_pool", Effect::Replace),
        ] {
            assert_eq!(effect(path), effect_wanted, "{path}");
        }
    }

    #[test]
    fn disks_stay_unless_they_are_deleted_too() {
        for (args, stay) in [
            (json!({}), false),
            (
                json!({"disks": [{"boot": true, "autoDelete": true}]}),
                false,
            ),
            (json!({"disks": [{"boot": true}]}), true),
            (
                json!({"disks": [{"autoDelete": true}, {"autoDelete": false}]}),
                true,
            ),
            (json!({"disks": [{"source": "data"}]}), false),
        ] {
            assert_eq!(leaves_disks(args.as_object().unwrap()), stay, "{args}");
        }
    }

    #[test]
    fn the_tables_are_sorted() {
        shape::assert_sorted(SHORTHANDS);
        shape::assert_sorted(INSTANCE);
    }

    #[test]
    fn labels_are_lower_case_with_hyphens() {
        for (text, label) in [
            ("Web_Tier", "web-tier"),
            ("a.b/c:d", "a-b-c-d"),
            ("ÄÖ", "äö"),
            ("", ""),
        ] {
            assert_eq!(sanitise_label(text), label);
        }
        assert_eq!(sanitise_label(&"x".repeat(80)).len(), 63);
        let args = json!({"Labels": {"Team_Name": "Core", "n": 1, "Nstance_Group": "x"}});
        assert_eq!(
            user_labels(args.as_object().unwrap())
                .into_iter()
                .collect::<Vec<_>>(),
            [("team-name".into(), "core".into())]
        );
    }
}

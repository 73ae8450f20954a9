//! The embedded cloud: what args may hold, what can change in place.
//!
//! In: the args of one layer as written, paths of a spec. Out: findings, [`Effect`]s. May not: ask
//! the embedded cloud.
//!
//! It takes any args, in either cloud's words; only what nstance sets itself is refused.

use crate::config::node::{Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::rules::Effect;

/// What args can't set, in lower case without separators, and what to do instead.
const MANAGED: &[(&str, &str)] = &[
    (
        "instancetype",
        "set `instance_type` of the group or template",
    ),
    (
        "machinetype",
        "set `instance_type` of the group or template",
    ),
    ("subnetid", "set `subnet_pool` of the group or template"),
    ("userdata", "set `userdata` of the group or template"),
    ("mincount", "set `size` of the group"),
    ("maxcount", "set `size` of the group"),
    ("clienttoken", "leave it out: every request gets its own"),
    (
        "dryrun",
        "leave it out: `nstance plan` shows what would happen",
    ),
    ("zone", "set `zones` of the group, or `shard.infra.zone`"),
];

/// Finds what may not be written in one layer's args.
pub fn check_args(args: &Node, findings: &mut Diagnostics) {
    let NodeValue::Object(entries) = &args.value else {
        return;
    };
    for entry in entries {
        let folded = fold(&entry.key);
        if let Some((_, instead)) = MANAGED.iter().find(|(name, _)| *name == folded) {
            findings.push(
                Diagnostic::error(format!("`{}` can't be set in args", entry.key))
                    .at(entry.key_span, "nstance sets it")
                    .hint(*instead),
            );
        }
    }
}

fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// What it takes to change the attribute at `path`.
pub fn effect(path: &str) -> Effect {
    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
    match root {
        "instance_type" => Effect::Restart,
        "kind" | "arch" | "userdata" | "subnet_pool" | "subnet" | "zone" => Effect::Replace,
        "args" => {
            let member = fold(rest.split(['.', '[']).next().unwrap_or(rest));
            if member.starts_with("image") || member == "sourceimage" {
                Effect::Replace
            } else {
                Effect::InPlace
            }
        }
        _ => Effect::InPlace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_things_change_in_place() {
        for (path, effect_wanted) in [
            ("tags.a", Effect::InPlace),
            ("args.Anything", Effect::InPlace),
            ("files.a", Effect::InPlace),
            ("instance_type", Effect::Restart),
            ("args.ImageId", Effect::Replace),
            ("args.image_family", Effect::Replace),
            ("args.SourceImage", Effect::Replace),
            ("userdata", Effect::Replace),
            ("zone", Effect::Replace),
        ] {
            assert_eq!(effect(path), effect_wanted, "{path}");
        }
    }
}

//! The rules of the embedded cloud: valid args, changes in place.
//!
//! In: the args of one layer as written, paths of a spec. Out: findings, [`Effect`]s. Must not:
//! call the embedded cloud.
//!
//! It accepts any args, in the form of either cloud; only managed members are rejected.

use crate::config::node::{Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::provider::rules::Effect;

/// Managed members, in lower case without separators, and what to use instead.
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

/// Reports invalid args of one layer.
pub fn check_args(args: &Node, findings: &mut Diagnostics) {
    let NodeValue::Object(entries) = &args.value else {
        return;
    };
    for entry in entries {
        let mut managed = MANAGED.iter();
        if let Some((_, instead)) = managed.find(|(name, _)| folded(&entry.key).eq(name.bytes())) {
            findings.push(
                Diagnostic::error(format!("`{}` can't be set in args", entry.key))
                    .at(entry.key_span, "nstance sets it")
                    .hint(*instead),
            );
        }
    }
}

/// A name in lower case without separators.
fn folded(name: &str) -> impl Iterator<Item = u8> {
    let letters = name.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
    letters.map(|byte| byte.to_ascii_lowercase())
}

/// What a change of the attribute at `path` requires.
pub fn effect(path: &str) -> Effect {
    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
    match root {
        "instance_type" => Effect::Restart,
        "kind" | "arch" | "userdata" | "subnet_pool" | "subnet" | "zone" => Effect::Replace,
        "args" => {
            let member = rest.split(['.', '[']).next().unwrap_or(rest);
            let member: Vec<u8> = folded(member).collect();
            if member.starts_with(b"image") || member == b"sourceimage" {
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

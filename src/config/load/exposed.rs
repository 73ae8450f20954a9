//! Secrets where they can't be kept.
//!
//! In: a configuration, and the same with other values in the place of secrets. Out: a finding for
//! each value that is made of one and stands where plans, tables and the record show it. May not: say
//! what the value is.

use std::sync::Arc;

use crate::config::model::{Common, Config, Group};
use crate::config::source::Spanned;
use crate::diagnostic::{Diagnostic, Diagnostics};

type Text = Spanned<Arc<str>>;

/// Finds values that differ where they mustn't be secret.
pub(super) fn find(config: &Config, twin: &Config, findings: &mut Diagnostics) {
    let mut compare = |key: &str, text: Option<&Text>, other: Option<&Text>| {
        if let Some(text) = text
            && other.is_none_or(|other| other.value != text.value)
        {
            findings.push(
                Diagnostic::error(format!("`{key}` can't be sensitive"))
                    .at(text.span, "it is recorded as it is, and shown")
                    .hint("`nonsensitive(…)` says that it may be shown"),
            );
        }
    };
    let (infra, other) = (&config.shard.infra, &twin.shard.infra);
    for (key, text, other) in [
        ("id", &config.cluster.id, &twin.cluster.id),
        ("id", &config.shard.id, &twin.shard.id),
        ("region", &infra.region, &other.region),
        ("zone", &infra.zone, &other.zone),
    ] {
        compare(key, Some(text), Some(other));
    }
    let templates = config.templates.values().zip(twin.templates.values());
    for (template, other) in templates {
        of_common(&template.value.common, &other.value.common, &mut compare);
    }
    for (group, other) in config.groups.iter().zip(&twin.groups) {
        of_group(group, other, &mut compare);
    }
}

fn of_common(
    common: &Common,
    other: &Common,
    compare: &mut impl FnMut(&str, Option<&Text>, Option<&Text>),
) {
    for (key, text, other) in [
        ("kind", &common.kind, &other.kind),
        ("instance_type", &common.instance_type, &other.instance_type),
        ("subnet_pool", &common.subnet_pool, &other.subnet_pool),
    ] {
        compare(key, text.as_ref(), other.as_ref());
    }
}

fn of_group(
    group: &Group,
    other: &Group,
    compare: &mut impl FnMut(&str, Option<&Text>, Option<&Text>),
) {
    of_common(&group.common, &other.common, compare);
    compare("template", group.template.as_ref(), other.template.as_ref());
    for (key, texts, others) in [
        ("zones", &group.zones, &other.zones),
        (
            "load_balancers",
            &group.load_balancers,
            &other.load_balancers,
        ),
    ] {
        for (index, text) in texts.iter().enumerate() {
            compare(key, Some(text), others.get(index));
        }
    }
    let slots = group.overrides.values().zip(other.overrides.values());
    for (slot, other) in slots {
        let (slot, other) = (&slot.value, &other.value);
        compare(
            "instance_type",
            slot.instance_type.as_ref(),
            other.instance_type.as_ref(),
        );
        compare(
            "subnet_pool",
            slot.subnet_pool.as_ref(),
            other.subnet_pool.as_ref(),
        );
    }
}

//! Computes the differences between two instances.
//!
//! In: two sides and the provider's rules. Out: [`AttributeChange`]s with their effects. Must not:
//! depend on how the sides were built.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::change::{AttributeChange, InstanceView};
use crate::config::model::MinimalAction;
use crate::merge::deep::{first_index, first_key};
use crate::merge::group::MergedGroup;
use crate::provider::rules::{Effect, Rules};
use crate::spec::{Files, SpecBody};

/// The path of userdata.
pub const USERDATA: &str = "userdata";

/// A group's exceptions to the provider's rules.
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    /// `lifecycle.ignore_changes`
    pub ignore_changes: Vec<Arc<str>>,
    /// `lifecycle.replace_on`
    pub replace_on: Vec<Arc<str>>,
    /// `lifecycle.restart_on`
    pub restart_on: Vec<Arc<str>>,
    /// `update.minimal_action`
    pub minimal_action: Option<Effect>,
}

impl Lifecycle {
    /// Those of a group.
    pub fn of(group: &MergedGroup<'_>) -> Self {
        Self {
            ignore_changes: group.ignore_changes.clone(),
            replace_on: group.replace_on.clone(),
            restart_on: group.restart_on.clone(),
            minimal_action: group.update.minimal_action.map(|action| match action {
                MinimalAction::Update => Effect::InPlace,
                MinimalAction::Restart => Effect::Restart,
                MinimalAction::Replace => Effect::Replace,
            }),
        }
    }

    /// Whether changes at a path are ignored.
    pub fn ignores(&self, path: &str) -> bool {
        self.ignore_changes
            .iter()
            .any(|pattern| covers(pattern, path))
    }

    /// The effect of a change at a path: the provider's, unless the group overrides it.
    fn bend(&self, path: &str, effect: Effect) -> Effect {
        let any = |patterns: &[Arc<str>]| patterns.iter().any(|pattern| covers(pattern, path));
        if any(&self.replace_on) {
            Effect::Replace
        } else if effect == Effect::Replace && any(&self.restart_on) {
            Effect::Restart
        } else if let Some(least) = self.minimal_action.filter(|_| is_of_instance(path)) {
            effect.max(least)
        } else {
            effect
        }
    }
}

/// Whether a path is of the instance itself, rather than of its record or its exported files.
fn is_of_instance(path: &str) -> bool {
    const ROOTS: [&str; 4] = ["args", "tags", "userdata", "instance_type"];
    ROOTS.iter().any(|root| covers(root, path))
}

/// Whether a path equals the pattern or lies below it.
pub fn covers(pattern: &str, path: &str) -> bool {
    path.strip_prefix(pattern)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['))
}

/// All differences, sorted by path.
pub fn diff(
    before: &InstanceView,
    after: &InstanceView,
    rules: Rules,
    lifecycle: &Lifecycle,
) -> Vec<AttributeChange> {
    let mut changes = Changes {
        rules,
        lifecycle,
        found: Vec::new(),
    };
    let (old, new) = (&before.spec, &after.spec);
    let text = |text: &str| (!text.is_empty()).then(|| Value::from(text));
    changes.add("kind", text(&old.head.kind), text(&new.head.kind));
    changes.add("arch", text(&old.head.arch), text(&new.head.arch));
    changes.add(
        "instance_type",
        text(&old.head.instance_type),
        text(&new.head.instance_type),
    );
    changes.add("zone", text(&before.zone), text(&after.zone));
    // Another tag belongs to another instance.
    let tags = (text(&before.seat.tag), text(&after.seat.tag));
    changes.add_with("tag", tags.0, tags.1, Effect::Replace);
    if before.zone == after.zone && before.seat.number != 0 {
        let number = |side: &InstanceView| Some(Value::from(side.seat.number));
        let numbers = (number(before), number(after));
        changes.add_with("number_in_zone", numbers.0, numbers.1, Effect::InPlace);
    }
    if let (Some(from), Some(to)) = (before.index, after.index) {
        changes.add_with("index", Some(from.into()), Some(to.into()), Effect::InPlace);
    }
    changes.add(
        "subnet",
        before.subnet.as_deref().and_then(text),
        after.subnet.as_deref().and_then(text),
    );
    let optional = |value: &Option<Arc<str>>| value.as_deref().map(Value::from);
    // Only a subnet outside the new pool forces a change; the pool's name is only recorded. An
    // instance without a subnet counts as outside.
    let placed = before.subnet.is_some() || new.head.subnet_pool.is_none();
    changes.add_with(
        "subnet_pool",
        optional(&old.head.subnet_pool),
        optional(&new.head.subnet_pool),
        if placed {
            Effect::InPlace
        } else {
            Effect::Replace
        },
    );
    changes.add_with(
        "template",
        optional(&old.head.template),
        optional(&new.head.template),
        Effect::InPlace,
    );
    if before.protected != after.protected {
        let protected = |side: &InstanceView| Some(Value::from(side.protected));
        changes.add_with(
            "protect",
            protected(before),
            protected(after),
            Effect::InPlace,
        );
    }
    changes.objects("args", &old.args, &new.args);
    changes.values("vars", Some(&old.vars), Some(&new.vars));
    changes.userdata(old, new);
    changes.files(&old.files, &new.files);
    for key in old
        .tags
        .keys()
        .chain(new.tags.keys().filter(|key| !old.tags.contains_key(*key)))
    {
        let get = |body: &SpecBody| body.tags.get(key).map(|value| Value::from(value.as_str()));
        changes.add(&format!("tags.{key}"), get(old), get(new));
    }
    let lists = |body: &SpecBody| {
        (!body.head.load_balancers.is_empty())
            .then(|| Value::from(body.head.load_balancers.clone()))
    };
    changes.add("load_balancers", lists(old), lists(new));
    changes.found.sort_by(|a, b| a.path.cmp(&b.path));
    changes.found
}

struct Changes<'a> {
    rules: Rules,
    lifecycle: &'a Lifecycle,
    found: Vec<AttributeChange>,
}

impl Changes<'_> {
    fn add(&mut self, path: &str, before: Option<Value>, after: Option<Value>) {
        let effect = self.rules.effect(path);
        self.add_with(path, before, after, effect);
    }

    fn add_with(
        &mut self,
        path: &str,
        before: Option<Value>,
        after: Option<Value>,
        effect: Effect,
    ) {
        if before == after || self.lifecycle.ignores(path) {
            return;
        }
        self.found.push(AttributeChange {
            path: path.to_owned(),
            before,
            after,
            unknown: false,
            effect: self.lifecycle.bend(path, effect),
            written_at: None,
        });
    }

    fn objects(&mut self, path: &str, before: &Map<String, Value>, after: &Map<String, Value>) {
        for key in before
            .keys()
            .chain(after.keys().filter(|key| !before.contains_key(*key)))
        {
            self.values(&format!("{path}.{key}"), before.get(key), after.get(key));
        }
    }

    /// Compares objects and lists of equal length recursively. A list whose length changed is one
    /// difference.
    fn values(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>) {
        match (before, after) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                self.objects(path, before, after);
            }
            (Some(Value::Array(before)), Some(Value::Array(after)))
                if before.len() == after.len() && before.iter().any(Value::is_object) =>
            {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    self.values(&format!("{path}[{index}]"), Some(before), Some(after));
                }
            }
            _ => self.add(path, before.cloned(), after.cloned()),
        }
    }

    fn userdata(&mut self, old: &SpecBody, new: &SpecBody) {
        let text = |body: &SpecBody| {
            body.userdata
                .as_ref()
                .map(|userdata| Value::from(userdata.content.display()))
        };
        self.add(USERDATA, text(old), text(new));
        let gzip = |body: &SpecBody| body.userdata.as_ref().is_some_and(|userdata| userdata.gzip);
        if text(old) == text(new) && gzip(old) != gzip(new) {
            // The cloud sees no difference, so only the record changes.
            self.add_with(
                "userdata.gzip",
                Some(gzip(old).into()),
                Some(gzip(new).into()),
                Effect::InPlace,
            );
        }
    }

    fn files(&mut self, old: &Files, new: &Files) {
        for name in old
            .keys()
            .chain(new.keys().filter(|name| !old.contains_key(*name)))
        {
            let (before, after) = (old.get(name), new.get(name));
            if before == after {
                continue;
            }
            // An embedded file is part of the userdata, whose own difference has the effect.
            let value = |file: Option<&crate::spec::File>| {
                file.and_then(|file| file.content.as_deref())
                    .map(Value::from)
            };
            let path = format!("files.{name}");
            if self.lifecycle.ignores(&path) {
                continue;
            }
            let effect = self.lifecycle.bend(&path, Effect::InPlace);
            self.found.push(AttributeChange {
                path,
                before: value(before),
                after: value(after),
                unknown: after.is_some_and(|file| file.content.is_none()),
                effect,
                written_at: None,
            });
        }
    }
}

/// Resets ignored values to their current ones, so that a change for another reason leaves them
/// alone.
pub fn keep_ignored(before: &SpecBody, after: &mut SpecBody, lifecycle: &Lifecycle) {
    for pattern in &lifecycle.ignore_changes {
        let (root, rest) = pattern.split_once('.').unwrap_or((pattern, ""));
        match (root, rest) {
            ("instance_type", "") => {
                after.head.instance_type = Arc::clone(&before.head.instance_type);
            }
            ("userdata", "") => after.userdata.clone_from(&before.userdata),
            ("load_balancers", "") => {
                after
                    .head
                    .load_balancers
                    .clone_from(&before.head.load_balancers);
            }
            ("args", "") => after.args.clone_from(&before.args),
            ("args", path) => {
                let mut old = Value::Object(before.args.clone());
                let mut new = Value::Object(std::mem::take(&mut after.args));
                keep_path(&mut old, &mut new, path);
                if let Value::Object(args) = new {
                    after.args = args;
                }
            }
            ("vars", "") => after.vars = before.vars.clone(),
            ("vars", path) => keep_path(&mut before.vars.clone(), &mut after.vars, path),
            ("tags", "") => after.tags.clone_from(&before.tags),
            ("tags", key) => match before.tags.get(key) {
                Some(value) => {
                    after.tags.insert(key.to_owned(), value.clone());
                }
                None => {
                    after.tags.remove(key);
                }
            },
            ("files", "") => after.files.clone_from(&before.files),
            ("files", name) => match before.files.get(name) {
                Some(file) => {
                    after.files.insert(name.into(), file.clone());
                }
                None => {
                    after.files.remove(name);
                }
            },
            _ => {}
        }
    }
}

fn keep_path(before: &mut Value, after: &mut Value, path: &str) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let keys = old.keys().chain(new.keys()).map(String::as_str);
            let Some((key, rest)) = first_key(path, keys) else {
                return;
            };
            let key = key.to_owned();
            if !rest.is_empty() {
                if let (Some(old), Some(new)) = (old.get_mut(&key), new.get_mut(&key)) {
                    keep_path(old, new, rest);
                }
            } else if let Some(value) = old.get(&key) {
                new.insert(key, value.clone());
            } else {
                new.remove(&key);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            let Some((index, rest)) = first_index(path) else {
                return;
            };
            if let (Some(old), Some(new)) = (old.get_mut(index), new.get_mut(index)) {
                if rest.is_empty() {
                    *new = old.clone();
                } else {
                    keep_path(old, new, rest);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::config::model::ProviderKind;
    use crate::merge::zones::Seat;

    fn side(change: impl FnOnce(&mut SpecBody)) -> InstanceView {
        let mut body = SpecBody::empty("web");
        body.head.instance_type = "small".into();
        body.args = json!({
            "ImageId": "ami-1",
            "Monitoring": {"Enabled": false},
            "Disks": [{"Size": 1, "Type": "a"}],
            "SecurityGroupIds": ["sg-1"],
        })
        .as_object()
        .cloned()
        .unwrap();
        body.tags.insert("team".into(), "a".into());
        change(&mut body);
        let digest = body.clone().into_spec().digest();
        InstanceView {
            instance_id: "web1".into(),
            provider_id: Some("i-1".into()),
            generation: 1,
            zone: "z".into(),
            seat: Seat::default(),
            index: None,
            links: BTreeMap::new(),
            manifest_version: None,
            subnet: None,
            ip4: None,
            ip6: None,
            created_at: None,
            images: BTreeMap::new(),
            protected: false,
            marks: crate::sensitivity::Marks::none(),
            version: Some(1),
            spec: body.into(),
            digest,
        }
    }

    fn paths(change: impl FnOnce(&mut SpecBody), lifecycle: &Lifecycle) -> Vec<(String, Effect)> {
        diff(
            &side(|_| {}),
            &side(change),
            Rules::of(ProviderKind::Aws),
            lifecycle,
        )
        .into_iter()
        .map(|change| (change.path, change.effect))
        .collect()
    }

    #[test]
    fn changes_are_named_where_they_are() {
        type Edit = fn(&mut SpecBody);
        let none = Lifecycle::default();
        let cases: [(Edit, &[(&str, Effect)]); 8] = [
            (|_| {}, &[]),
            (
                |b| b.head.instance_type = "large".into(),
                &[("instance_type", Effect::Restart)],
            ),
            (
                |b| b.args["Monitoring"]["Enabled"] = true.into(),
                &[("args.Monitoring.Enabled", Effect::InPlace)],
            ),
            (
                |b| b.args["ImageId"] = "ami-2".into(),
                &[("args.ImageId", Effect::Replace)],
            ),
            (
                |b| b.args["Disks"][0]["Size"] = 2.into(),
                &[("args.Disks[0].Size", Effect::Replace)],
            ),
            (
                |b| b.args["SecurityGroupIds"] = json!(["sg-1", "sg-2"]),
                &[("args.SecurityGroupIds", Effect::InPlace)],
            ),
            (
                |b| {
                    b.tags.remove("team");
                },
                &[("tags.team", Effect::InPlace)],
            ),
            (
                |b| b.vars = json!({"x": {"y": 1}}),
                &[("vars.x", Effect::InPlace)],
            ),
        ];
        for (index, (edit, expected)) in cases.into_iter().enumerate() {
            let expected: Vec<_> = expected
                .iter()
                .map(|(path, effect)| ((*path).to_owned(), *effect))
                .collect();
            assert_eq!(paths(edit, &none), expected, "case {index}");
        }
    }

    #[test]
    fn groups_bend_the_rules() {
        let lifecycle = Lifecycle {
            ignore_changes: vec!["args.Monitoring".into()],
            replace_on: vec!["tags.team".into()],
            restart_on: Vec::new(),
            ..Lifecycle::default()
        };
        let found = paths(
            |body| {
                body.args["Monitoring"]["Enabled"] = true.into();
                body.tags.insert("team".into(), "b".into());
            },
            &lifecycle,
        );
        assert_eq!(found, [("tags.team".to_owned(), Effect::Replace)]);
    }

    #[test]
    fn a_group_chooses_between_a_restart_and_a_new_instance() {
        let userdata = || vec![Arc::from("userdata")];
        for (replace_on, restart_on, effect) in [
            (vec![], vec![], Effect::Replace),
            (vec![], userdata(), Effect::Restart),
            (userdata(), vec![], Effect::Replace),
            // One per layer; the stronger effect wins.
            (userdata(), userdata(), Effect::Replace),
        ] {
            let lifecycle = Lifecycle {
                replace_on,
                restart_on,
                ..Lifecycle::default()
            };
            let change = |body: &mut SpecBody| {
                body.userdata = Some(crate::spec::Userdata {
                    content: crate::spec::Content::Text("#!/bin/sh".into()),
                    gzip: false,
                });
            };
            assert_eq!(
                paths(change, &lifecycle),
                [("userdata".to_owned(), effect)],
                "{lifecycle:?}"
            );
        }
    }

    #[test]
    fn what_is_ignored_keeps_its_value() {
        let lifecycle = Lifecycle {
            ignore_changes: vec![
                "args.Monitoring".into(),
                "tags.team".into(),
                "userdata".into(),
            ],
            ..Lifecycle::default()
        };
        let before = side(|_| {});
        let mut after = (*side(|body| {
            body.args["Monitoring"]["Enabled"] = true.into();
            body.args["ImageId"] = "ami-2".into();
            body.tags.remove("team");
        })
        .spec)
            .clone();
        keep_ignored(&before.spec, &mut after, &lifecycle);
        assert_eq!(after.args["Monitoring"]["Enabled"], json!(false));
        assert_eq!(after.args["ImageId"], json!("ami-2"));
        assert_eq!(after.tags["team"], "a");

        let lifecycle = Lifecycle {
            ignore_changes: vec!["args.Disks[0].Size".into()],
            ..Lifecycle::default()
        };
        after.args["Disks"][0] = json!({"Size": 9, "Type": "b"});
        keep_ignored(&before.spec, &mut after, &lifecycle);
        assert_eq!(after.args["Disks"][0], json!({"Size": 1, "Type": "b"}));
    }

    #[test]
    fn a_pattern_covers_what_lies_below_it() {
        for (pattern, path, covered) in [
            ("args", "args.A", true),
            ("args.A", "args.A", true),
            ("args.A", "args.A.B", true),
            ("args.A", "args.A[0]", true),
            ("args.A", "args.AB", false),
            ("args.A.B", "args.A", false),
        ] {
            assert_eq!(covers(pattern, path), covered, "{pattern} over {path}");
        }
    }
}

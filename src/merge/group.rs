//! Merges all layers of a group.
//!
//! In: a [`Config`] and one of its groups. Out: a [`MergedGroup`], with a [`MergedSlot`] for each
//! override. Must not: render templates; strings stay as written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use super::Layer;
use super::deep::{Merged, merge};
use super::zones::{Place, Zone};
use crate::address::GroupName;
use crate::config::model::{
    Arch, Common, Config, File, Group, GroupZone, Joining, Label, Named, SlotOverride, Template,
    TextSource, Texts, Update, Userdata,
};
use crate::config::source::{Span, Spanned};

/// The kind used if a provider doesn't require one.
const DEFAULT_KIND: &str = "ins";

/// One group, every layer applied.
#[derive(Debug, Clone)]
pub struct MergedGroup<'a> {
    /// `tenant/group`
    pub name: GroupName,
    /// Where the group was written.
    pub span: Span,
    /// The template's name, if it has one.
    pub template: Option<Arc<str>>,
    /// The prefix of its instances' ids.
    pub kind: Arc<str>,
    /// The architecture.
    pub arch: Arch,
    /// The instance type; empty if the provider doesn't require one.
    pub instance_type: Arc<str>,
    /// Where the instance type is written.
    pub instance_type_at: Option<(Layer, Span)>,
    /// The subnet pool.
    pub subnet_pool: Option<Spanned<Arc<str>>>,
    /// The desired number of instances.
    pub size: u32,
    /// How many instances each zone has, if that is written in place of `size`.
    pub replicas: Option<u32>,
    /// Whether `size` is written; without it, there are none.
    pub has_size: bool,
    /// Args, an object.
    pub args: Option<Merged>,
    /// Vars, an object.
    pub vars: Option<Merged>,
    /// Files by name, each with the layer that set it.
    pub files: IndexMap<Arc<str>, (Layer, &'a Spanned<File>)>,
    /// Userdata, layer by layer.
    pub userdata: UserdataLayers<'a>,
    /// Labels by name; they become tags.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Where each label is written.
    pub label_places: BTreeMap<Arc<str>, Span>,
    /// The names of sensitive labels.
    pub sensitive_labels: BTreeSet<Arc<str>>,
    /// `lifecycle.ignore_changes` of template and group.
    pub ignore_changes: Vec<Arc<str>>,
    /// `lifecycle.replace_on` of template and group.
    pub replace_on: Vec<Arc<str>>,
    /// `lifecycle.restart_on` of template and group.
    pub restart_on: Vec<Arc<str>>,
    /// `protect`, or `lifecycle.prevent_destroy`.
    pub protect: bool,
    /// How long connections may drain before an instance is deleted.
    pub drain_timeout: Duration,
    /// `update` of the group, over its template's, over that of `defaults`.
    pub update: Update,
    /// The zones that its slots are spread over; never empty.
    pub zones: Vec<Zone>,
    /// Whether the group lists zones; if not, its only one is the shard's.
    pub lists_zones: bool,
    /// Whether slots move when zones or tags change, so that zones stay even.
    pub rebalances: bool,
    /// What the group's own strings are; those of lower layers are templates.
    pub texts: Texts,
    /// `.Group.Labels`
    pub group_labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The labels among [`Self::labels`] that are texts with placeholders.
    pub placeholder_labels: BTreeSet<Arc<str>>,
    /// Names of load balancers.
    pub load_balancers: Vec<Spanned<Arc<str>>>,
    /// Slots with an override, by number.
    pub overrides: BTreeMap<u32, MergedSlot>,
}

/// The userdata of a group's layers, as written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UserdataLayers<'a> {
    /// Those of `defaults`, the template and the group.
    layers: [Option<&'a Userdata>; 3],
}

impl<'a> UserdataLayers<'a> {
    const LAYERS: [Layer; 3] = [Layer::Defaults, Layer::Template, Layer::Group];

    /// The userdata layers of a group.
    pub fn of(config: &'a Config, group: &'a Group) -> Self {
        let template = template_of(config, group);
        Self {
            layers: [
                config.defaults.userdata.as_ref(),
                template.and_then(|template| template.common.userdata.as_ref()),
                group.common.userdata.as_ref(),
            ],
        }
    }

    /// Every layer with userdata, lowest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = (Layer, &'a Userdata)> + use<'a> {
        Self::LAYERS
            .into_iter()
            .zip(self.layers)
            .filter_map(|(layer, userdata)| Some((layer, userdata?)))
    }

    /// The highest layer with userdata.
    pub fn top(&self) -> Option<(Layer, &'a Userdata)> {
        self.all().next_back()
    }

    /// The layers that are joined into the instance's userdata, lowest first: the highest layer
    /// that replaces those below it, and all above.
    pub fn joined(&self) -> impl Iterator<Item = (Layer, &'a Userdata)> + use<'a> {
        let base = self
            .all()
            .rev()
            .find(|(_, userdata)| userdata.joining() == Joining::Replace);
        let lowest = base.map_or(Layer::Vars, |(layer, _)| layer);
        self.all().filter(move |(layer, _)| *layer >= lowest)
    }

    /// The layers that a higher one replaces.
    pub fn replaced(&self) -> impl Iterator<Item = (Layer, &'a Userdata)> + use<'a> {
        let first = self.joined().next().map(|(layer, _)| layer);
        self.all()
            .take_while(move |(layer, _)| Some(*layer) != first)
    }

    /// The only source, if there is one source and nothing to join: it is sent unchanged.
    pub fn single(&self) -> Option<(Layer, &'a TextSource)> {
        let mut joined = self.joined();
        match (joined.next(), joined.next()) {
            (Some((layer, userdata)), None) => Some((layer, userdata.single()?)),
            _ => None,
        }
    }
}

/// What an override changes in a slot.
#[derive(Debug, Clone)]
pub struct MergedSlot {
    /// The instance type.
    pub instance_type: Arc<str>,
    /// The subnet pool.
    pub subnet_pool: Option<Spanned<Arc<str>>>,
    /// Args, an object.
    pub args: Option<Merged>,
    /// Vars, an object.
    pub vars: Option<Merged>,
}

impl MergedGroup<'_> {
    /// The place of a slot if all slots of the group are new.
    pub fn place_of_new(&self, slot: u32) -> Place {
        Place::of_new(&self.zones, slot)
    }

    /// The index of a slot: its own number, or with `replicas` what its zone and its number there
    /// give. A slot keeps its index unless `replicas` or the zones change.
    pub fn index_of(&self, slot: u32, place: &Place) -> u32 {
        let Some(replicas) = self.replicas else {
            return slot;
        };
        let mut zones = self.zones.iter();
        let zone = zones.position(|zone| zone.name == place.zone).unwrap_or(0);
        zone as u32 * replicas + place.seat.number.saturating_sub(1)
    }

    /// The names of its zones, in the order listed.
    pub fn zone_names(&self) -> Vec<Arc<str>> {
        let names = self.zones.iter().map(|zone| Arc::clone(&zone.name));
        names.collect()
    }

    /// Where the value at a path of `slot`'s instance is written; `None` if it has no single place.
    pub fn place_of(&self, slot: u32, path: &str) -> Option<Span> {
        let change = self.overrides.get(&slot);
        let (root, rest) = path.split_once('.').unwrap_or((path, ""));
        match root {
            "args" => change
                .map_or(self.args.as_ref(), |change| change.args.as_ref())
                .and_then(|args| args.find(rest)),
            "vars" => change
                .map_or(self.vars.as_ref(), |change| change.vars.as_ref())
                .and_then(|vars| vars.find(rest)),
            "tags" => self.label_places.get(rest).copied(),
            "files" => self.files.get(rest).map(|(_, file)| file.span),
            "userdata" => self.userdata.top().map(|(_, userdata)| userdata.place()),
            "instance_type" => self.instance_type_at.map(|(_, span)| span),
            "kind" | "arch" | "template" | "load_balancers" => Some(self.span),
            "subnet" | "subnet_pool" => self.subnet_pool.as_ref().map(|pool| pool.span),
            _ => None,
        }
    }

    /// Whether `lifecycle.ignore_changes` includes the size.
    pub fn ignores_size(&self) -> bool {
        self.ignore_changes.iter().any(|path| &**path == "size")
    }
}

pub(super) fn template_of<'a>(config: &'a Config, group: &Group) -> Option<&'a Template> {
    let name = group.template.as_ref()?;
    let template = config.templates.get(&name.value)?;
    Some(&template.value)
}

/// The desired number of instances of a group.
pub fn size_of(group: &Group) -> u32 {
    group.size.map_or(0, |size| size.value)
}

/// The merged `update` of a group.
pub fn update_of(config: &Config, group: &Group) -> Update {
    let lower = &config.defaults.update;
    let own = &group.common.update;
    match template_of(config, group) {
        Some(template) => own.over(&template.common.update.over(lower)),
        None => own.over(lower),
    }
}

/// Merges the layers of one group.
pub fn merge_group<'a>(config: &'a Config, group: &'a Group) -> MergedGroup<'a> {
    let template = template_of(config, group);
    let low = template.map(|template| &template.common);
    let high = &group.common;
    let mut files: IndexMap<_, _> = IndexMap::new();
    for (layer, common) in both(low, high) {
        for (name, file) in &common.files {
            files.insert(Arc::clone(name), (layer, file));
        }
    }
    let either = |get: fn(&Common) -> &Option<Spanned<Arc<str>>>| {
        get(high)
            .clone()
            .or_else(|| low.and_then(|common| get(common).clone()))
    };
    let text = |value: Option<Spanned<Arc<str>>>| value.map(|value| value.value);
    let instance_type = either(|common| &common.instance_type);
    let instance_type_at = instance_type.as_ref().map(|written| {
        let layer = if high.instance_type.is_some() {
            Layer::Group
        } else {
            Layer::Template
        };
        (layer, written.span)
    });
    let instance_type = text(instance_type).unwrap_or_else(|| Arc::from(""));
    let subnet_pool = either(|common| &common.subnet_pool);
    let all_lists = |get: fn(&Common) -> &Vec<Spanned<Arc<str>>>| {
        both(low, high)
            .flat_map(|(_, c)| get(c))
            .map(|path| tag_path(&path.value))
            .collect()
    };
    let labels: BTreeMap<Arc<str>, &Label> = both(low, high)
        .flat_map(|(_, common)| &common.labels)
        .map(|(name, label)| (Arc::clone(name), &label.value))
        .collect();
    let label_places = labels
        .iter()
        .map(|(name, label)| (Arc::clone(name), label.span))
        .collect();
    let sensitive_labels = labels
        .iter()
        .filter(|(_, label)| label.is_sensitive)
        .map(|(name, _)| Arc::clone(name))
        .collect();
    let setting = |get: fn(&Common) -> &Option<Spanned<bool>>| {
        get(high)
            .as_ref()
            .or_else(|| low.and_then(|common| get(common).as_ref()))
    };
    let defaults = &config.defaults;
    let args = |slot: Option<&SlotOverride>| {
        merge([
            (Layer::Defaults, defaults.args.as_ref()),
            (Layer::Template, low.and_then(|low| low.args.as_ref())),
            (Layer::Group, high.args.as_ref()),
            (Layer::Slot, slot.and_then(|slot| slot.args.as_ref())),
        ])
    };
    let vars = |slot: Option<&SlotOverride>| {
        merge([
            (Layer::Vars, config.vars.as_ref()),
            (Layer::Defaults, defaults.vars.as_ref()),
            (Layer::Template, low.and_then(|low| low.vars.as_ref())),
            (Layer::Group, high.vars.as_ref()),
            (Layer::Slot, slot.and_then(|slot| slot.vars.as_ref())),
        ])
    };
    let zones = if group.zones.is_empty() {
        vec![Zone {
            name: Arc::clone(&config.shard.infra.zone.value),
            tags: Vec::new(),
        }]
    } else {
        let zone = |zone: &GroupZone| Zone {
            name: Arc::clone(&zone.name.value),
            tags: zone.tags.iter().map(|tag| Arc::clone(&tag.value)).collect(),
        };
        group.zones.iter().map(zone).collect()
    };
    let labels_of = |labels: &Named<Label>| -> BTreeMap<Arc<str>, Arc<str>> {
        labels
            .iter()
            .map(|(name, label)| (Arc::clone(name), Arc::clone(&label.value.text)))
            .collect()
    };
    let labels: BTreeMap<Arc<str>, Arc<str>> = labels
        .into_iter()
        .map(|(name, label)| (name, Arc::clone(&label.text)))
        .collect();
    MergedGroup {
        name: group.name.clone(),
        span: group.span,
        template: group.template.as_ref().map(|name| Arc::clone(&name.value)),
        kind: text(either(|common| &common.kind)).unwrap_or_else(|| DEFAULT_KIND.into()),
        arch: high
            .arch
            .as_ref()
            .or_else(|| low.and_then(|common| common.arch.as_ref()))
            .map_or(Arch::Amd64, |arch| arch.value),
        size: size_of(group),
        replicas: group.replicas,
        has_size: group.size.is_some(),
        args: args(None),
        vars: vars(None),
        files,
        userdata: UserdataLayers::of(config, group),
        label_places,
        sensitive_labels,
        group_labels: group
            .group_labels
            .as_ref()
            .map_or_else(|| labels.clone(), labels_of),
        placeholder_labels: match group.texts {
            Texts::Placeholders => high.labels.keys().cloned().collect(),
            Texts::Templates => BTreeSet::new(),
        },
        labels,
        ignore_changes: all_lists(|common| &common.lifecycle.ignore_changes),
        replace_on: all_lists(|common| &common.lifecycle.replace_on),
        restart_on: all_lists(|common| &common.lifecycle.restart_on),
        protect: [
            setting(|common| &common.protect),
            setting(|common| &common.lifecycle.prevent_destroy),
        ]
        .iter()
        .flatten()
        .any(|set| set.value),
        drain_timeout: group
            .drain_timeout
            .map_or(config.shard.default_drain_timeout, |own| own.value),
        update: update_of(config, group),
        zones,
        lists_zones: !group.zones.is_empty(),
        rebalances: group.rebalance,
        texts: group.texts,
        load_balancers: group.load_balancers.clone(),
        overrides: group
            .overrides
            .iter()
            .map(|(slot, change)| {
                let merged = MergedSlot {
                    instance_type: text(change.instance_type.clone())
                        .unwrap_or_else(|| Arc::clone(&instance_type)),
                    subnet_pool: change.subnet_pool.clone().or_else(|| subnet_pool.clone()),
                    args: args(Some(change)),
                    vars: vars(Some(change)),
                };
                (*slot, merged)
            })
            .collect(),
        instance_type,
        instance_type_at,
        subnet_pool,
    }
}

/// Maps `labels` to `tags`, its name in an instance.
fn tag_path(path: &Arc<str>) -> Arc<str> {
    match path.strip_prefix("labels") {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => format!("tags{rest}").into(),
        _ => Arc::clone(path),
    }
}

fn both<'a>(
    low: Option<&'a Common>,
    high: &'a Common,
) -> impl Iterator<Item = (Layer, &'a Common)> {
    low.map(|common| (Layer::Template, common))
        .into_iter()
        .chain([(Layer::Group, high)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{Includes, UserdataPart};
    use crate::config::node::Sensitivity;
    use crate::config::source::SourceId;

    fn userdata(merge: Option<Joining>) -> Userdata {
        let span = Span::new(SourceId(0), 0, 0);
        Userdata {
            span,
            parts: vec![UserdataPart {
                text: TextSource {
                    span,
                    source: None,
                    encoding: None,
                    content: Spanned::new("x".into(), span),
                    sensitivity: Sensitivity::Open,
                },
                content_type: None,
                filename: None,
                merge: None,
            }],
            is_list: false,
            merge: merge.map(|merge| Spanned::new(merge, span)),
            includes: Includes::Keep,
            compress: None,
        }
    }

    #[test]
    fn a_layer_replaces_those_below_unless_it_joins_them() {
        use Joining::{Append, CloudInit, Nstance, Replace};
        use Layer::{Defaults, Group, Template};
        let none = || None;
        let silent = || Some(userdata(None));
        let says = |merge| Some(userdata(Some(merge)));
        for (layers, joined, single) in [
            ([none(), none(), none()], &[][..], false),
            ([silent(), none(), none()], &[Defaults], true),
            ([silent(), silent(), silent()], &[Group], true),
            (
                [silent(), silent(), says(Append)],
                &[Template, Group],
                false,
            ),
            (
                [silent(), says(Nstance), says(CloudInit)],
                &[Defaults, Template, Group],
                false,
            ),
            (
                [silent(), says(Replace), says(Append)],
                &[Template, Group],
                false,
            ),
            ([silent(), none(), says(Nstance)], &[Defaults, Group], false),
            ([says(Append), says(Nstance), silent()], &[Group], true),
            // A single layer isn't joined.
            ([says(Append), none(), none()], &[Defaults], true),
            ([none(), none(), says(Nstance)], &[Group], true),
        ] {
            let layered = UserdataLayers {
                layers: layers.each_ref().map(Option::as_ref),
            };
            let names: Vec<Layer> = layered.joined().map(|(layer, _)| layer).collect();
            assert_eq!(names, joined);
            assert_eq!(layered.single().is_some(), single, "{names:?}");
            let lost = layered.replaced().count();
            assert_eq!(lost + joined.len(), layered.all().count(), "{names:?}");
        }
    }

    #[test]
    fn the_highest_layer_that_sets_a_key_of_update_wins() {
        use crate::check::Purpose;
        use crate::config::model::{Amount, Check, UpdateOrder};
        use crate::config::variables::Given;
        use crate::load::load_text;

        let text = r#"{
            "cluster": {"id": "c"},
            "shard": {"id": "s", "infra": {"provider": "sim", "region": "r", "zone": "z"}},
            "defaults": {"update": {
                "max_surge": 1, "max_creating": 9,
                "health": {"check": "tcp", "port": 22, "retries": 7},
                "drain": {"command": ["low"]},
            }},
            "templates": {
                "t": {"update": {"max_surge": "50%", "order": "create_first", "max_deleting": 3}},
                "bare": {},
            },
            "groups": {"default": {
                "all": {"template": "t", "size": 1, "update": {
                    "max_surge": 4, "health": {"min_healthy_time": "1m"},
                }},
                "template": {"template": "t", "size": 1},
                "defaults": {"template": "bare", "size": 1},
                "alone": {"size": 1, "update": {"max_creating": 0}},
            }},
        }"#;
        let loaded = load_text(Purpose::Plan, "a.jsonc", text, &Given::default());
        assert!(loaded.findings.is_empty());
        let config = loaded.config.unwrap();
        let merged = |name: &str| {
            let group = config.group(&GroupName::new("default", name)).unwrap();
            merge_group(&config, group).update
        };
        for (name, surge, creating, deleting, order) in [
            (
                "all",
                Amount::Count(4),
                9,
                Some(3),
                Some(UpdateOrder::CreateFirst),
            ),
            (
                "template",
                Amount::Percent(50),
                9,
                Some(3),
                Some(UpdateOrder::CreateFirst),
            ),
            ("defaults", Amount::Count(1), 9, None, None),
            ("alone", Amount::Count(1), 0, None, None),
        ] {
            let update = merged(name);
            assert_eq!(update.max_surge.unwrap().value, surge, "{name}");
            assert_eq!(update.max_creating, Some(creating), "{name}");
            assert_eq!(update.max_deleting, deleting, "{name}");
            assert_eq!(update.order.map(|order| order.value), order, "{name}");
            assert_eq!(update.drain.as_deref(), Some(&["low".into()][..]), "{name}");
            // `health` is one key: what a higher layer leaves out is the default.
            let health = update.health.unwrap();
            let (check, retries) = match name {
                "all" => (Check::Running, 2),
                _ => (Check::Tcp { port: 22 }, 7),
            };
            assert_eq!((health.check, health.retries), (check, retries), "{name}");
        }
    }
}

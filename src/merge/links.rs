//! Finds the provider of each link that a group consumes.
//!
//! In: a configuration. Out: the [`Links`] of each group, or errors with a place. Must not: render
//! properties, or know instances.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::address::GroupName;
use crate::config::model::{Common, Config, Consumed, Group, Named, Provided};
use crate::config::node::Node;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::graph::unknown_group;

use super::group::template_of;

/// A link of a group.
#[derive(Debug, Clone)]
pub struct Link<'a> {
    /// The consumer's name for it.
    pub name: Arc<str>,
    /// Where that is written.
    pub span: Span,
    /// What provides it; `None` for an optional link without a provider.
    pub provider: Option<Provider<'a>>,
}

/// What provides a link.
#[derive(Debug, Clone)]
pub struct Provider<'a> {
    /// The group.
    pub group: GroupName,
    /// Its place among the groups of the configuration.
    pub index: usize,
    /// Its name for the link.
    pub link: Arc<str>,
    /// Its values.
    pub properties: Option<&'a Node>,
}

impl Provider<'_> {
    /// The group, and its name for the link.
    pub fn key(&self) -> (GroupName, Arc<str>) {
        (self.group.clone(), Arc::clone(&self.link))
    }
}

/// The links of all groups, by the consuming group.
#[derive(Debug, Default)]
pub struct Links<'a> {
    of: HashMap<GroupName, Vec<Link<'a>>>,
}

impl<'a> Links<'a> {
    /// The links that a group consumes, in the order written.
    pub fn of(&self, group: &GroupName) -> &[Link<'a>] {
        self.of.get(group).map_or(&[], Vec::as_slice)
    }

    /// The providers of all links, some more than once.
    pub fn providers(&self) -> impl Iterator<Item = &Provider<'a>> {
        let links = self.of.values().flatten();
        links.filter_map(|link| link.provider.as_ref())
    }
}

/// A link that a group offers.
struct Offer<'a> {
    group: &'a GroupName,
    index: usize,
    name: Arc<str>,
    provided: &'a Spanned<Provided>,
}

/// What a group offers; its own links replace those of its template.
fn provided<'a>(config: &'a Config, group: &'a Group) -> Vec<(Arc<str>, &'a Spanned<Provided>)> {
    layered(config, group, |common| &common.provides)
}

/// What a group consumes; its own links replace those of its template.
fn consumed<'a>(config: &'a Config, group: &'a Group) -> Vec<(Arc<str>, &'a Spanned<Consumed>)> {
    layered(config, group, |common| &common.consumes)
}

fn layered<'a, T>(
    config: &'a Config,
    group: &'a Group,
    get: impl Fn(&'a Common) -> &'a Named<T>,
) -> Vec<(Arc<str>, &'a Spanned<T>)> {
    let low = template_of(config, group).map(|template| get(&template.common));
    let high = get(&group.common);
    let from_below = low.into_iter().flatten();
    let from_below = from_below.filter(|(name, _)| !high.contains_key(*name));
    let all = from_below.chain(high);
    all.map(|(name, value)| (Arc::clone(name), value)).collect()
}

/// Finds the providers of all links. A link without one, or with several, is a finding, and the
/// group is then without it.
pub fn resolve<'a>(config: &'a Config, findings: &mut Diagnostics) -> Links<'a> {
    let mut consumers = config.groups.iter().filter_map(|group| {
        let links = consumed(config, group);
        (!links.is_empty()).then_some((group, links))
    });
    let Some(first) = consumers.next() else {
        return Links::default();
    };
    let mut offers: HashMap<&str, Vec<Offer<'a>>> = HashMap::new();
    for (index, group) in config.groups.iter().enumerate() {
        for (name, provided) in provided(config, group) {
            let of_type = offers.entry(&provided.value.link_type).or_default();
            of_type.push(Offer {
                group: &group.name,
                index,
                name,
                provided,
            });
        }
    }
    let groups: HashSet<&GroupName> = config.groups.iter().map(|group| &group.name).collect();
    let mut links = Links::default();
    for (group, consumed) in std::iter::once(first).chain(consumers) {
        let each = consumed.into_iter().filter_map(|(name, consumed)| {
            match find(config, &groups, group, &name, consumed, &offers) {
                Ok(provider) => Some(Link {
                    name,
                    span: consumed.span,
                    provider,
                }),
                Err(finding) => {
                    findings.push(finding.about(&group.name));
                    None
                }
            }
        });
        links.of.insert(group.name.clone(), each.collect());
    }
    links
}

fn find<'a>(
    config: &Config,
    groups: &HashSet<&GroupName>,
    group: &Group,
    name: &str,
    consumed: &Spanned<Consumed>,
    offers: &HashMap<&str, Vec<Offer<'a>>>,
) -> Result<Option<Provider<'a>>, Box<Diagnostic>> {
    let Consumed {
        link_type,
        from,
        link,
        optional,
    } = &consumed.value;
    let of_type = offers.get(&**link_type).map_or(&[][..], Vec::as_slice);
    let from_group = from
        .as_ref()
        .map(|from| named_group(config, groups, group, from))
        .transpose()?;
    let fits = |offer: &&Offer<'_>| {
        let is_from = match &from_group {
            Some(from) => offer.group == from,
            None => offer.group.tenant() == group.name.tenant(),
        };
        is_from && link.as_ref().is_none_or(|link| offer.name == link.value)
    };
    let mut fitting = of_type.iter().filter(fits);
    let Some(first) = fitting.next() else {
        if *optional && from.is_none() {
            return Ok(None);
        }
        let finding = missing(group, name, consumed, from_group.as_ref(), offers);
        return Err(Box::new(finding));
    };
    let others: Vec<&Offer<'_>> = fitting.collect();
    if others.is_empty() {
        return Ok(Some(Provider {
            group: first.group.clone(),
            index: first.index,
            link: Arc::clone(&first.name),
            properties: first.provided.value.properties.as_ref(),
        }));
    }
    let mut finding = Diagnostic::error(format!("several groups provide link `{name}`"))
        .at(consumed.span, format!("expected one of type `{link_type}`"));
    for offer in std::iter::once(&first).chain(&others) {
        let label = format!("{} provides `{}`", offer.group, offer.name);
        finding = finding.related(offer.provided.span, label);
    }
    let hint = "Name the group with `from`, and its link with `link`";
    Err(Box::new(finding.hint(hint)))
}

/// The group that `from` names.
fn named_group(
    config: &Config,
    groups: &HashSet<&GroupName>,
    group: &Group,
    from: &Spanned<Arc<str>>,
) -> Result<GroupName, Box<Diagnostic>> {
    let name = if from.value.contains('/') {
        from.value.parse().ok()
    } else {
        Some(GroupName::new(group.name.tenant(), &from.value))
    };
    name.filter(|name| groups.contains(name))
        .ok_or_else(|| Box::new(unknown_group(config, &from.value, from.span)))
}

fn missing(
    group: &Group,
    name: &str,
    consumed: &Spanned<Consumed>,
    from: Option<&GroupName>,
    offers: &HashMap<&str, Vec<Offer<'_>>>,
) -> Diagnostic {
    let wanted = &consumed.value.link_type;
    let who = match from {
        Some(from) => format!("group `{from}` doesn't provide"),
        None => "no group provides".to_owned(),
    };
    let finding = Diagnostic::error(format!("{who} link `{name}`")).at(
        consumed.span,
        format!("expected a provider of type `{wanted}`"),
    );
    let elsewhere = offers
        .get(&**wanted)
        .into_iter()
        .flatten()
        .find(|offer| offer.group.tenant() != group.name.tenant());
    if let Some(offer) = elsewhere.filter(|_| from.is_none()) {
        return finding.hint(format!(
            "Another tenant has one: `\"from\": \"{}\"`",
            offer.group
        ));
    }
    match nearest(wanted, offers.keys().copied()) {
        Some(near) if near != &**wanted => {
            finding.hint(format!("There is a link of type `{near}`"))
        }
        _ => finding.hint(format!(
            "Provide it in the other group: `\"provides\": {{\"{wanted}\": {{}}}}`"
        )),
    }
}

//! What of a configuration can't be known, since it couldn't be read.
//!
//! In: nothing (data only; `decode` fills it). Out: [`Gaps`]. May not: say why; that was reported.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Config, Group};
use crate::address::GroupName;

/// What of a configuration couldn't be read, which was reported: nobody says what follows from it.
/// None of it in a configuration without errors.
#[derive(Debug, Clone, Default)]
pub struct Gaps {
    /// `shard.infra.provider`: nothing is judged by a guessed one.
    pub provider: bool,
    /// Some of the vars that all groups have.
    pub vars: bool,
    /// Values somewhere: they are [`Unknown`](crate::config::node::NodeValue::Unknown).
    pub values: bool,
    /// Maps that may have more names than could be read.
    pub names: HashSet<&'static str>,
    /// Load balancers of which more than the name is wrong.
    pub load_balancers: HashSet<Arc<str>>,
    /// The same for images.
    pub images: HashSet<Arc<str>>,
    /// Something of these templates: what they lack may only be unreadable.
    pub templates: HashSet<Arc<str>>,
    /// The same for groups.
    pub groups: HashSet<GroupName>,
}

/// What of a group or a template decides what others of it mean, and couldn't be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unread {
    /// All of it, or which template a group has.
    pub template: bool,
    /// Some of the vars.
    pub vars: bool,
    /// Some of the files.
    pub files: bool,
}

impl Gaps {
    /// Whether there are any.
    pub fn are_there(&self) -> bool {
        let Self {
            provider,
            vars,
            values,
            names,
            load_balancers,
            images,
            templates,
            groups,
        } = self;
        *provider
            || *vars
            || *values
            || !names.is_empty()
            || !load_balancers.is_empty()
            || !images.is_empty()
            || !templates.is_empty()
            || !groups.is_empty()
    }

    /// Whether a map may have more names than could be read: none is missing in it.
    pub fn has_more(&self, map: &str) -> bool {
        self.names.contains(map)
    }
}

impl Config {
    /// What of a group and its template decides what others mean, and couldn't be read.
    pub fn unread(&self, group: &Group) -> Unread {
        let own = group.common.unread;
        let name = group.template.as_ref();
        let template = name.map(|name| self.templates.get(&name.value));
        let below = match template {
            None => Unread::default(),
            Some(Some(template)) => template.value.common.unread,
            Some(None) => Unread {
                template: true,
                ..Unread::default()
            },
        };
        let template = own.template || below.template;
        Unread {
            template,
            vars: self.gaps.vars || template || own.vars || below.vars,
            files: template || own.files || below.files,
        }
    }

    /// Whether what a group seems to lack may be there, and couldn't be read.
    pub fn is_unreadable(&self, group: &Group) -> bool {
        self.gaps.groups.contains(&group.name)
            || group.template.as_ref().is_some_and(|name| {
                !self.templates.contains_key(&name.value)
                    || self.gaps.templates.contains(&name.value)
            })
    }
}

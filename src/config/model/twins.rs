//! A configuration with other contents: what secrets are told from the rest by.
//!
//! In: two configurations that were made of the same files. Out: one of them with the other's contents.
//! May not: take anything else of it, such as names.

use super::{Common, Config, Defaults, SlotOverride, TextSource, Userdata};

impl Config {
    /// This configuration with args, vars, userdata, files, labels and dependencies of another,
    /// which holds the same groups and templates. `None` if it doesn't.
    pub(in crate::config) fn with_contents_of(&self, other: &Self) -> Option<Self> {
        let mut made = self.clone();
        made.vars.clone_from(&other.vars);
        made.defaults.args.clone_from(&other.defaults.args);
        made.defaults.vars.clone_from(&other.defaults.vars);
        take_texts(
            &mut made.defaults.userdata,
            other.defaults.userdata.as_ref(),
        );
        for (snippet, other) in made
            .templates_lib
            .values_mut()
            .zip(other.templates_lib.values())
        {
            if !snippet.value.is_url() {
                snippet.value.clone_from(&other.value);
            }
        }
        let alike = self.templates.keys().eq(other.templates.keys())
            && self.templates_lib.keys().eq(other.templates_lib.keys())
            && self.groups.len() == other.groups.len();
        if !alike {
            return None;
        }
        for (template, other) in made.templates.values_mut().zip(other.templates.values()) {
            template.value.common.take_contents(&other.value.common);
        }
        for (group, other) in made.groups.iter_mut().zip(&other.groups) {
            if group.name != other.name || !group.overrides.keys().eq(other.overrides.keys()) {
                return None;
            }
            group.common.take_contents(&other.common);
            group.depends_on.clone_from(&other.depends_on);
            let slots = group.overrides.values_mut();
            for (slot, other) in slots.zip(other.overrides.values()) {
                slot.value.args.clone_from(&other.value.args);
                slot.value.vars.clone_from(&other.value.vars);
            }
        }
        Some(made)
    }

    /// This configuration without args, vars, userdata, files, labels and dependencies.
    pub(in crate::config) fn without_contents(&self) -> Self {
        let mut made = Self {
            vars: None,
            defaults: Defaults::default(),
            ..self.clone()
        };
        let templates = made.templates.values_mut();
        let templates = templates.map(|template| &mut template.value.common);
        let groups = made.groups.iter_mut().map(|group| &mut group.common);
        for common in templates.chain(groups) {
            common.take_contents(&Common::default());
        }
        for group in &mut made.groups {
            group.depends_on.clear();
            for slot in group.overrides.values_mut() {
                slot.value = SlotOverride::default();
            }
        }
        made
    }
}

impl Common {
    fn take_contents(&mut self, other: &Self) {
        self.args.clone_from(&other.args);
        self.vars.clone_from(&other.vars);
        self.files.clone_from(&other.files);
        self.labels.clone_from(&other.labels);
        take_texts(&mut self.userdata, other.userdata.as_ref());
    }
}

/// Takes other texts. A URL stays, as nobody asks for another one's body.
fn take_texts(mine: &mut Option<Userdata>, other: Option<&Userdata>) {
    let mut taken = other.cloned();
    if let (Some(mine), Some(taken)) = (&*mine, &mut taken)
        && mine.parts.len() == taken.parts.len()
    {
        for (mine, taken) in mine.parts.iter().zip(&mut taken.parts) {
            if mine.text.is_url() {
                taken.text.clone_from(&mine.text);
            }
        }
    } else if mine
        .as_ref()
        .and_then(Userdata::single)
        .is_some_and(TextSource::is_url)
    {
        return;
    }
    *mine = taken;
}

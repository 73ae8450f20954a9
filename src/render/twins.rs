//! What of a spec is made of secrets.
//!
//! In: a group, and the same with other values in the place of its secrets. Out: [`Marks`] of what
//! is rendered otherwise from them; errors that tell nothing of a secret. May not: cost anything
//! where a group has no secrets.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::data::InstanceFacts;
use super::instance::Report;
use super::renderer::{GroupRenderer, Parts};
use crate::address::Address;
use crate::marks::{Mark, Marks, TextMark};
use crate::spec::{Content, Files, InstanceSpec, Userdata};

/// Addresses for files that are to be rendered when an instance has its own.
const EXAMPLE_IP4: &str = "192.0.2.1";
const EXAMPLE_IP6: &str = "2001:db8::1";

impl GroupRenderer<'_> {
    /// What of an instance's spec mustn't be shown. All but `spec` is as it was rendered with.
    pub fn marks(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
        spec: &InstanceSpec,
    ) -> Arc<Marks> {
        if self.twins.is_empty() {
            return Marks::none();
        }
        let slot = address.slot;
        let make = || Arc::new(self.make_marks(address, instance, kept, spec));
        if self.is_shared(slot) && self.twins.iter().all(|twin| twin.is_shared(slot)) {
            let shared = self.shared_marks(slot);
            return Arc::clone(shared.get_or_init(make));
        }
        make()
    }

    fn make_marks(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
        spec: &InstanceSpec,
    ) -> Marks {
        let mut marks = Marks::default();
        let body = spec.to_body();
        for (index, twin) in self.twins.iter().enumerate() {
            let parts = twin.parts(address, instance, kept, false, &mut Report::default());
            let vars = &twin.variant(address.slot).1.vars.value;
            // Only the first must be rendered: the others ask for more than a template may bear.
            let found = differences(spec, vars, &parts, index == 0);
            marks = marks.or(&found, &body);
        }
        let awaited = spec
            .files
            .value
            .iter()
            .any(|(_, file)| file.content.is_none());
        if awaited {
            for name in self.secret_files(address, instance, kept, &spec.files.value) {
                marks.files.insert(name, TextMark::Whole);
            }
        }
        marks
    }

    /// The files that aren't rendered yet, and will be made of a secret.
    fn secret_files(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
        files: &Files,
    ) -> Vec<String> {
        let instance = InstanceFacts {
            ip4: Some(instance.ip4.clone().unwrap_or_else(|| EXAMPLE_IP4.into())),
            ip6: Some(instance.ip6.clone().unwrap_or_else(|| EXAMPLE_IP6.into())),
            ..instance.clone()
        };
        let rendered = |renderer: &Self| {
            let ignored = &mut Report::default();
            renderer
                .parts(address, &instance, kept, false, ignored)
                .files
        };
        let content = |files: &Option<crate::spec::Part<Files>>, name: &str| {
            files.as_ref()?.value.get(name)?.content.clone()
        };
        let real = rendered(self);
        let others: Vec<_> = self.twins.iter().map(rendered).collect();
        let awaited = files.iter().filter(|(_, file)| file.content.is_none());
        awaited
            .map(|(name, _)| name.to_string())
            .filter(|name| {
                let real = content(&real, name);
                let mut others = others.iter().enumerate().map(|(index, files)| {
                    let other = content(files, name);
                    other != real && (index == 0 || other.is_some())
                });
                real.is_none() || others.any(|differs| differs)
            })
            .collect()
    }

    /// Renders what an instance is made of; what errors say of secrets is left out.
    pub(super) fn parts_concealed(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
        report: &mut Report,
    ) -> Parts {
        let known = report.known_errors();
        let parts = self.parts(address, instance, kept, false, report);
        if report.has_more_than(&known) {
            for twin in &self.twins {
                let mut others = report.another();
                twin.parts(address, instance, kept, true, &mut others);
                report.conceal(&known, &others);
            }
        }
        parts
    }
}

/// What of a spec is something else with other secrets. Where these can't be rendered, all is
/// hidden if it is `needed`.
fn differences(spec: &InstanceSpec, vars: &Value, parts: &Parts, needed: bool) -> Marks {
    let mut marks = Marks {
        vars: Mark::of_difference(&spec.vars.value, vars),
        ..Marks::default()
    };
    match &parts.args {
        Some((args, tags)) => {
            marks.args = of_objects(&spec.args.value, &args.value);
            marks.tags = of_objects(&texts(&spec.tags.value), &texts(&tags.value));
        }
        None if needed => (marks.args, marks.tags) = (Mark::Whole, Mark::Whole),
        None => {}
    }
    let userdata = spec.userdata.as_ref().map(|part| &*part.value);
    match &parts.userdata {
        Some(other) => {
            let other = other.0.as_ref().map(|part| &*part.value);
            marks.userdata = of_userdata(userdata, other);
        }
        None if needed && userdata.is_some() => marks.userdata = TextMark::Whole,
        None => {}
    }
    for (name, file) in &*spec.files.value {
        let Some(text) = &file.content else { continue };
        let mark = match &parts.files {
            Some(others) => {
                let other = others
                    .value
                    .get(name)
                    .and_then(|file| file.content.as_ref());
                other.map_or(TextMark::Whole, |other| {
                    TextMark::of_difference(text, other)
                })
            }
            None if needed => TextMark::Whole,
            None => TextMark::Open,
        };
        if !mark.is_open() {
            marks.files.insert(name.to_string(), mark);
        }
    }
    marks
}

fn texts(tags: &BTreeMap<String, String>) -> Map<String, Value> {
    let tags = tags.iter();
    tags.map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect()
}

fn of_objects(real: &Map<String, Value>, other: &Map<String, Value>) -> Mark {
    Mark::of_difference(&real.clone().into(), &other.clone().into())
}

/// Bytes that are no text have no lines.
fn of_userdata(real: Option<&Userdata>, other: Option<&Userdata>) -> TextMark {
    match (
        real.map(|real| &real.content),
        other.map(|other| &other.content),
    ) {
        (None, _) => TextMark::Open,
        (Some(Content::Text(real)), Some(Content::Text(other))) => {
            TextMark::of_difference(real, other)
        }
        (Some(real), Some(other)) if real == other => TextMark::Open,
        (Some(_), _) => TextMark::Whole,
    }
}

//! Computes which parts of an instance's spec are sensitive.
//!
//! In: a compiled group, and a rendered spec of it. Out: its [`Marks`]. Costs nothing for groups
//! without sensitive values.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use nstance_gotemplate::Sensitive;
use serde_json::{Map, Value};

use super::data::InstanceFacts;
use super::files::CompiledFile;
use super::group::CompiledGroup;
use super::instance::{Execution, Report, Timing};
use super::renderer::{GroupRenderer, fixed_address};
use crate::address::Address;
use crate::merge::deep::Merged;
use crate::sensitivity::{Mark, Marks, TextMark};
use crate::spec::{Content, InstanceSpec};

impl CompiledGroup<'_> {
    /// Whether any part of its instances is built from sensitive data.
    pub(super) fn has_sensitive(&self) -> bool {
        let data = &self.sensitive;
        let merged = &self.merged;
        let slots = merged.overrides.values().map(|slot| &slot.args);
        let mut args = std::iter::once(&merged.args).chain(slots).flatten();
        let mut variants = std::iter::once(&self.base).chain(self.overrides.values());
        !data.is_empty()
            || args.any(Merged::is_sensitive_within)
            || variants.any(|variant| !variant.args.mark(data).is_open())
            || self
                .userdata
                .iter()
                .any(|userdata| userdata.is_sensitive(data))
            || self.files.iter().any(|file| file.is_sensitive(data))
    }
}

impl GroupRenderer<'_> {
    /// The sensitive parts of a spec. The other arguments must be those it was rendered with.
    pub fn marks(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
        spec: &InstanceSpec,
    ) -> Arc<Marks> {
        if !self.group.is_sensitive {
            return Marks::none();
        }
        let make = || Arc::new(self.make_marks(address, instance, kept, spec));
        match self.shared_marks(address.slot) {
            Some(shared) => Arc::clone(shared.get_or_init(make)),
            None => make(),
        }
    }

    fn make_marks(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        kept: &BTreeMap<Arc<str>, Arc<str>>,
        spec: &InstanceSpec,
    ) -> Marks {
        let group = &self.group.merged;
        let (args, vars) = match group.overrides.get(&address.slot) {
            Some(slot) => (&slot.args, &slot.vars),
            None => (&group.args, &group.vars),
        };
        let of = |value: &Option<Merged>| value.as_ref().map_or(Mark::Open, Mark::of_merged);
        let made = self
            .variant(address.slot)
            .1
            .args
            .mark(&self.group.sensitive);
        let args = of(args).or(&made);
        let mut facts = instance.clone();
        if facts.ip4.is_none() {
            facts.ip4 = fixed_address(&spec.args.value).map(Into::into);
        }
        let labels = self.labels_of(address.slot, &facts);
        let root = self.root(address.slot, &facts, kept, labels.as_ref());
        let mut execution = Execution {
            root: &root,
            address,
            timing: Timing::AfterCreation,
            report: &mut Report::default(),
            sensitive: &self.group.sensitive,
            unknown: false,
        };
        let mut files = BTreeMap::new();
        for file in &self.group.files {
            let content = spec.files.value.get(&file.name);
            let content = content.and_then(|file| file.content.as_deref());
            let mark = file.mark(content, &mut execution);
            if !mark.is_open() {
                files.insert(file.name.to_string(), mark);
            }
        }
        Marks {
            tags: self.tags_mark(&args, spec),
            args,
            vars: of(vars),
            userdata: self.userdata_mark(spec, &mut execution),
            files,
        }
    }

    /// The sensitive tags: those of sensitive labels, and those set by sensitive args.
    fn tags_mark(&self, args: &Mark, spec: &InstanceSpec) -> Mark {
        let covered = args.cover(&Value::Object(Map::clone(&spec.args.value)));
        let shown = covered.as_object().map(|args| self.rules.user_tags(args));
        let shown = shown.unwrap_or_default();
        let of_args = self.rules.user_tags(&spec.args.value);
        let labels = self.group.merged.sensitive_labels.iter();
        let labels: Vec<_> = labels.map(|label| self.rules.sanitise_tag(label)).collect();
        let tags = spec.tags.value.keys().map(|key| {
            let is_hidden = match of_args.get(key) {
                Some(value) => shown.get(key) != Some(value),
                None => labels.contains(key),
            };
            (&**key, if is_hidden { Mark::Whole } else { Mark::Open })
        });
        Mark::of_keys(tags)
    }

    fn userdata_mark(&self, spec: &InstanceSpec, execution: &mut Execution<'_>) -> TextMark {
        let data = &self.group.sensitive;
        let is_carried = |file: &&CompiledFile| {
            let rendered = spec.files.value.get(&file.name);
            rendered.is_some_and(|rendered| rendered.in_userdata)
        };
        let carried = self.group.files.iter().filter(is_carried);
        let carried: Vec<_> = carried.collect();
        let is_file_sensitive = carried.iter().any(|file| file.is_sensitive(data));
        let source = self.group.userdata.as_ref();
        let is_sensitive =
            is_file_sensitive || source.is_some_and(|source| source.is_sensitive(data));
        let Some(userdata) = spec.userdata.as_ref().filter(|_| is_sensitive) else {
            return TextMark::Open;
        };
        // Only a single source that is sent unchanged keeps its lines; files follow it.
        let single = source.and_then(|source| source.single());
        let (Some(part), Content::Text(text)) = (single, &userdata.value.content) else {
            return TextMark::Whole;
        };
        let Some(own) = part.render(execution) else {
            return TextMark::Whole;
        };
        let Ok(own) = String::from_utf8(own) else {
            return TextMark::Whole;
        };
        let Some(start) = text.find(&own) else {
            return TextMark::Whole;
        };
        let moved = |range: Range<usize>| start + range.start..start + range.end;
        let bytes = part.sensitive_bytes(execution).into_iter().map(moved);
        let end = start + own.len();
        let behind = if is_file_sensitive {
            bytes_of_files(&text[end..], &carried, data)
        } else {
            Vec::new()
        };
        let behind = behind
            .into_iter()
            .map(|range| end + range.start..end + range.end);
        let bytes: Vec<_> = bytes.chain(behind).collect();
        TextMark::of_bytes(text, &bytes)
    }
}

/// The sensitive bytes of the embedded files that follow userdata; all bytes if the files can't be
/// located.
fn bytes_of_files(text: &str, files: &[&CompiledFile], data: &Sensitive) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut left = files.iter();
    let mut file = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("- path: ") {
            file = left.next();
        }
        let is_hidden = file.is_some_and(|file| {
            file.is_sensitive(data) && (line.starts_with("  content: ") || file.is_sensitive)
        });
        if is_hidden {
            found.push(start..start + line.len());
        }
        start += line.len();
    }
    if left.next().is_some() {
        // Their contents are encoded, so they can't be located.
        return std::iter::once(0..text.len()).collect();
    }
    found
}

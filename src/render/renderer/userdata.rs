//! Renders an instance's userdata, joins it with embedded files and packs it.
//!
//! In: a [`GroupRenderer`] and an instance. Out: its userdata, its layers, or errors. Must not:
//! implement joining or packing.

use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_gotemplate::Value as TemplateValue;

use super::{GroupRenderer, RenderedUserdata, with_address};
use crate::address::Address;
use crate::config::model::{Compress, Deliver};
use crate::diagnostic::Severity;
use crate::render::cache::Place;
use crate::render::data::{InstanceFacts, LARGEST_NONCE, NONCE_PREFIX};
use crate::render::instance::{Execution, Note, Report, Timing};
use crate::render::join_cache::Joint;
use crate::render::layers;
use crate::render::rendered_layer::RenderedLayer;
use crate::render::userdata::{self, CarriedFile};
use crate::spec::{Files, Part};

impl GroupRenderer<'_> {
    pub(super) fn render_userdata(
        &self,
        files: Option<&Part<Files>>,
        root: &TemplateValue,
        address: &Address,
        report: &mut Report,
    ) -> Option<RenderedUserdata> {
        let source = self.group.userdata.as_ref();
        let around = source.map_or(self.group.merged.span, |userdata| userdata.span);
        let mut execution = Execution {
            root,
            address,
            timing: Timing::BeforeCreation,
            report,
            sensitive: &self.group.sensitive,
            unknown: false,
        };
        let Some(files) = files else {
            // The files failed; still report the userdata's own errors.
            let source = source?;
            if let Some(mut layers) = source.render(&mut execution)
                && execution.report.is_trial()
            {
                source.check_parts(&mut layers, &mut execution);
            }
            return None;
        };
        let compress = source.map_or(Compress::Auto, |userdata| userdata.compress);
        let mut carried = self.carried_files(&files.value);
        let mut excess = None;
        let limit = self.rules.userdata_limit().unwrap_or(0);
        loop {
            let (whole, sizes) = match source {
                None => (userdata::compose(None, &carried), Sizes::Own(0)),
                Some(source) => match source.single() {
                    Some(part) => {
                        let own = part.render(&mut execution)?;
                        let sizes = Sizes::Own(own.len());
                        (userdata::compose(Some(own), &carried), sizes)
                    }
                    None => {
                        let rendered = source.render(&mut execution)?;
                        let joint = source.join(rendered, &carried, &mut execution)?;
                        (Some(joint.bytes.clone()), Sizes::Layers(joint))
                    }
                },
            };
            let nonces = whole.as_deref().filter(|_| self.group.reads_nonce);
            let nonces = nonces.map_or(0, |whole| {
                memchr::memmem::find_iter(whole, NONCE_PREFIX).count()
            });
            let packed = whole
                .map(|whole| userdata::pack(whole, nonces * LARGEST_NONCE, compress, self.rules));
            let sent = match packed.transpose() {
                Ok(userdata) => {
                    if let Some(excess) = excess {
                        let note = self.too_large(excess);
                        execution
                            .report
                            .note(Place::Behind(around), 0, note, address);
                    }
                    return Some(RenderedUserdata {
                        userdata: userdata.map(Part::new),
                        is_without_files: excess.is_some(),
                    });
                }
                Err(sent) => sent,
            };
            if carried.iter().any(|file| file.may_be_exported) {
                excess = Some(sent - limit);
                carried.retain(|file| !file.may_be_exported);
                continue;
            }
            execution.report.failure(
                "userdata is too large",
                Place::Behind(around),
                format!(
                    "{sent} bytes are more than the {limit} that {} takes; {}",
                    self.rules.kind().as_str(),
                    sizes.told(&carried),
                ),
                (compress == Compress::Never).then(|| {
                    "Let it be gzipped with `compress: auto`, or fetch the bulk at boot".to_owned()
                }),
                address,
            );
            return None;
        }
    }

    /// The warning that files are exported, since the userdata is too large with them.
    fn too_large(&self, excess: usize) -> Note {
        Note {
            severity: Severity::Warning,
            is_strict: false,
            summary: format!(
                "the files of `{}` don't fit into userdata",
                self.group.merged.name
            ),
            label: "with them, it is too large".to_owned(),
            detail: Some(format!(
                "{excess} bytes more than the {} that {} takes; these files are exported",
                self.rules.userdata_limit().unwrap_or(0),
                self.rules.kind().as_str()
            )),
            hint: Some("Copy them to the instances from the folder `.nstance`".to_owned()),
        }
    }

    /// Checks userdata with a single source, rendered for `slot`: whether cloud-init will accept
    /// it. Adds findings to the report, except rendering errors, which rendering itself reports.
    /// Returns true if there is nothing to check.
    pub fn check_userdata(&self, slot: u32, report: &mut Report) -> bool {
        if !self.is_looked_into {
            return true;
        }
        let group = &self.group.merged;
        let facts = self.example(slot);
        let address = Address::new(group.name.clone(), slot);
        self.check_single(&address, &facts, report)
    }

    fn check_single(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        report: &mut Report,
    ) -> bool {
        let source = self.group.userdata.as_ref();
        let single = source.and_then(|source| Some((source, source.single()?)));
        let Some((source, part)) = single else {
            return true;
        };
        let variant = self.variant(address.slot).1;
        let labels = self.labels_of(address.slot, instance);
        let none = &BTreeMap::new();
        let root =
            |instance: &InstanceFacts| self.root(address.slot, instance, none, labels.as_ref());
        let mut check = |instance: &InstanceFacts| {
            let root = root(instance);
            let mut ignored = Report::default();
            let mut execution = Execution {
                root: &root,
                address,
                timing: Timing::BeforeCreation,
                report: &mut ignored,
                sensitive: &self.group.sensitive,
                unknown: false,
            };
            let rendered = part.render(&mut execution)?;
            let mut execution = Execution {
                report: &mut *report,
                ..execution
            };
            Some(source.check_single(rendered, &mut execution))
        };
        let is_sound = check(instance).or_else(|| {
            let ignored = &mut Report::default();
            let args =
                self.render_args(variant, &root(instance), labels.as_ref(), address, ignored)?;
            check(&with_address(instance, &args)?)
        });
        is_sound.unwrap_or(true)
    }

    /// The layers of an instance's userdata, including embedded files; `None` if there is none, or
    /// if rendering fails.
    pub(in crate::render) fn rendered_layers(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        report: &mut Report,
    ) -> Option<Vec<RenderedLayer>> {
        let parts = self.parts(address, instance, &BTreeMap::new(), true, report);
        let addressed = parts
            .args
            .as_ref()
            .and_then(|args| with_address(instance, args));
        let instance = addressed.as_ref().unwrap_or(instance);
        let files = parts.files?;
        let carried = self.carried_files(&files.value);
        let Some(source) = &self.group.userdata else {
            return (!carried.is_empty()).then(|| vec![RenderedLayer::of_files(&carried, true)]);
        };
        let labels = self.labels_of(address.slot, instance);
        let none = &BTreeMap::new();
        let root = self.root(address.slot, instance, none, labels.as_ref());
        let mut execution = Execution {
            root: &root,
            address,
            timing: Timing::BeforeCreation,
            report,
            sensitive: &self.group.sensitive,
            unknown: false,
        };
        let rendered = source.render(&mut execution)?;
        let mut layers = source.with_files(rendered, &carried);
        source.trace(&mut layers, &execution);
        Some(layers)
    }

    /// The files embedded in the userdata.
    fn carried_files<'f>(&'f self, files: &'f Files) -> Vec<CarriedFile<'f>> {
        let carried = self.group.files.iter().filter_map(|file| {
            let Deliver::Userdata {
                path,
                permissions,
                owner,
                ..
            } = &file.deliver
            else {
                return None;
            };
            let (_, source) = self.group.merged.files.get(&file.name)?;
            Some(CarriedFile {
                name: &file.name,
                span: source.span,
                is_sensitive: file.is_sensitive(&self.group.sensitive),
                path,
                permissions: permissions.as_deref(),
                owner: owner.as_deref(),
                may_be_exported: file.may_be_exported(),
                content: files
                    .get(&file.name)
                    .filter(|file| file.in_userdata)?
                    .content
                    .as_deref()?,
            })
        });
        carried.collect()
    }
}

/// The sizes of userdata's parts, for the error that it is too large.
enum Sizes {
    /// A single text with this many bytes, and the files.
    Own(usize),
    /// Layers, including the files.
    Layers(Arc<Joint>),
}

impl Sizes {
    /// A text about the largest part, or about each layer's share.
    fn told(&self, carried: &[CarriedFile<'_>]) -> String {
        match self {
            Self::Own(size) => {
                let largest = carried
                    .iter()
                    .map(|file| (format!("the file `{}`", file.name), file.content.len()))
                    .chain([("the userdata itself".to_owned(), *size)])
                    .max_by_key(|(_, size)| *size);
                let (what, size) = largest.unwrap_or_default();
                format!("{size} of them are {what}")
            }
            Self::Layers(joint) => {
                let shares = joint.shares.iter();
                let shares: Vec<_> = shares
                    .map(|(layer, size)| format!("{size} of {}", layers::owner(layer)))
                    .collect();
                format!("not compressed, there are {}", shares.join(", "))
            }
        }
    }
}

//! Compiles, renders and joins the layers of a group's userdata.
//!
//! In: the layers of a [`MergedGroup`], fetched bodies; then an instance's data. Out: the bytes for
//! the instance; findings with the place of their line. Must not: fetch, or implement cloud-init's
//! merging (`nstance-cloudinit` does).

mod findings;

use std::borrow::Cow;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use nstance_cloudinit::layers::{LayerPart, Mode, Severity as FindingSeverity, is_read};
use nstance_cloudinit::userdata::{Bodies as CloudBodies, gather};
use nstance_gotemplate::Sensitive;

use super::args::is_template;
use super::cache::{Compiled, Place, TemplateCache};
use super::instance::Execution;
use super::join_cache::{Joins, Joint};
use super::rendered_layer::RenderedLayer;
use super::texts::TextKinds;
use super::userdata::{self, Bodies, CarriedFile};
use crate::config::model::{
    Compress, Encoding, Includes, Joining, TextSource, Userdata, UserdataPart,
};
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, all};
use crate::merge::Layer;
use crate::merge::group::MergedGroup;

pub(super) use findings::owner;

/// Userdata with parsed templates.
pub(super) struct CompiledUserdata {
    /// The layers that aren't replaced, lowest first; never empty.
    pub(super) layers: Vec<CompiledLayer>,
    /// Whether it is one text that is sent unchanged.
    is_single: bool,
    /// Where it is written; with several layers, the highest one's place.
    pub(super) span: Span,
    pub(super) compress: Compress,
    joins: Arc<Joins>,
}

/// A layer with parsed templates.
pub(super) struct CompiledLayer {
    pub(super) layer: Layer,
    joining: Joining,
    pub(super) parts: Vec<CompiledPart>,
    /// The URLs that its parts include, if nstance fetches them.
    included: Option<Included>,
}

/// The URLs that the parts of a layer include.
struct Included {
    bodies: Arc<CloudBodies>,
    /// Whether some of them weren't fetched.
    is_lacking: bool,
}

/// A parsed part of a layer.
pub(super) struct CompiledPart {
    pub(super) text: PartText,
    /// Where its text is written.
    pub(super) place: Place,
    /// The sensitive bytes of a text without templates.
    sensitive: Vec<Range<usize>>,
    /// The file that its text is read from.
    pub(super) file: Option<Arc<str>>,
    content_type: Option<Arc<str>>,
    filename: Option<Arc<str>>,
    merge: Option<Arc<str>>,
}

/// The text of a part.
pub(super) enum PartText {
    /// A template and its source text.
    Template(Compiled, Arc<str>),
    /// Bytes without templates.
    Constant(Vec<u8>),
    /// A URL that wasn't fetched.
    Absent,
}

/// Parses the userdata of a group.
///
/// Fails if a template has an error.
pub(super) fn compile(
    merged: &MergedGroup<'_>,
    bodies: &Bodies,
    cache: &mut TemplateCache<'_>,
    findings: &mut Diagnostics,
) -> Result<Option<CompiledUserdata>, Reported> {
    let Some((_, top)) = merged.userdata.top() else {
        return Ok(None);
    };
    let is_single = merged.userdata.single().is_some();
    let kinds = TextKinds::of(merged);
    let mut layers = Vec::with_capacity(1);
    let mut compress = None;
    for (layer, userdata) in merged.userdata.joined() {
        compress = userdata.compress.or(compress);
        let included = included(userdata, bodies, findings);
        let parts = all(userdata
            .parts
            .iter()
            .map(|part| compile_part(part, layer, &kinds, bodies, cache, findings)));
        layers.push(parts.map(|parts| CompiledLayer {
            layer,
            joining: userdata.joining(),
            parts,
            included,
        }));
    }
    Ok(Some(CompiledUserdata {
        layers: all(layers.into_iter())?,
        is_single,
        span: top.place(),
        compress: compress.unwrap_or_default(),
        joins: cache.joins(),
    }))
}

/// The bodies that the parts of a layer include, if nstance fetches them.
fn included(userdata: &Userdata, bodies: &Bodies, findings: &mut Diagnostics) -> Option<Included> {
    if userdata.includes == Includes::Keep {
        return None;
    }
    let mut all = CloudBodies::new();
    let mut is_lacking = false;
    for part in &userdata.parts {
        let Some(bytes) = source_bytes(&part.text, bodies) else {
            continue;
        };
        let kind = part.content_type.as_deref().map(|kind| &**kind);
        let gathered = gather(&bytes, kind, &mut |url| bodies.get(url).cloned());
        all.extend(gathered.bodies);
        for url in gathered.missing {
            if is_template(&url) {
                findings.push(
                    Diagnostic::error("an address that is included is a template")
                        .at(
                            part.text.content.span,
                            "it is rendered later than it is fetched",
                        )
                        .detail(format!("the address is {url}"))
                        .hint("Write the address as it is, or leave out `\"includes\": \"fetch\"`"),
                );
            } else {
                is_lacking = true;
            }
        }
    }
    Some(Included {
        bodies: Arc::new(all),
        is_lacking,
    })
}

/// A source's decoded bytes; `None` if they weren't fetched.
pub fn source_bytes<'b>(source: &'b TextSource, bodies: &'b Bodies) -> Option<Cow<'b, [u8]>> {
    let bytes: &[u8] = if source.is_url() {
        bodies.get(&source.content.value)?
    } else {
        source.content.value.as_bytes()
    };
    match source.encoding {
        None | Some(Encoding::Plain) => Some(bytes.into()),
        encoding => Some(userdata::decode(bytes, encoding).ok()?.into()),
    }
}

fn compile_part(
    part: &UserdataPart,
    layer: Layer,
    kinds: &TextKinds<'_>,
    bodies: &Bodies,
    cache: &mut TemplateCache<'_>,
    findings: &mut Diagnostics,
) -> Result<CompiledPart, Reported> {
    let (text, place) = compile_text(&part.text, layer, kinds, bodies, cache, findings)?;
    let value = |value: &Option<Spanned<Arc<str>>>| value.as_ref().map(|v| Arc::clone(&v.value));
    let url = &part.text.content.value;
    let is_file = part.text.is_url() && url.starts_with("file:");
    let sensitive = match &text {
        PartText::Constant(bytes) => match str::from_utf8(bytes) {
            Ok(text) => part.text.sensitivity.bytes(text),
            Err(_) if part.text.sensitivity.is_open() => Vec::new(),
            Err(_) => iter::once(0..bytes.len()).collect(),
        },
        PartText::Template(..) | PartText::Absent => Vec::new(),
    };
    Ok(CompiledPart {
        text,
        place,
        sensitive,
        file: is_file.then(|| Arc::clone(url)),
        content_type: value(&part.content_type),
        filename: value(&part.filename),
        merge: value(&part.merge),
    })
}

fn compile_text(
    source: &TextSource,
    layer: Layer,
    kinds: &TextKinds<'_>,
    bodies: &Bodies,
    cache: &mut TemplateCache<'_>,
    findings: &mut Diagnostics,
) -> Result<(PartText, Place), Reported> {
    let span = source.content.span;
    let behind = Place::Behind(span);
    let bytes: &[u8] = if source.is_url() {
        match bodies.get(&source.content.value) {
            Some(body) => body,
            None => return Ok((PartText::Absent, behind)),
        }
    } else {
        source.content.value.as_bytes()
    };
    let bytes = match userdata::decode(bytes, source.encoding) {
        Ok(bytes) => bytes,
        Err(error) => {
            findings.push(
                Diagnostic::error("userdata can't be decoded")
                    .at(span, format!("its content {error}"))
                    .hint("`encoding` says how the content is encoded: plain, base64, gzip or base64+gzip"),
            );
            return Err(Reported);
        }
    };
    let is_literal = !source.is_url() && source.encoding.is_none_or(|e| e == Encoding::Plain);
    let place = if is_literal {
        Place::Literal(span)
    } else {
        behind
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => {
            let text: Arc<str> = text.into();
            let sensitivity = &source.sensitivity;
            match kinds.compile(&text, layer, place, sensitivity, cache, findings)? {
                Some(compiled) => PartText::Template(compiled, text),
                None => PartText::Constant(text.as_bytes().to_vec()),
            }
        }
        // Binary data can't contain a template.
        Err(error) => PartText::Constant(error.into_bytes()),
    };
    Ok((text, place))
}

impl CompiledUserdata {
    /// Whether a part or an included URL wasn't fetched.
    pub(super) fn is_lacking(&self) -> bool {
        let mut parts = self.parts();
        let mut included = self
            .layers
            .iter()
            .filter_map(|layer| layer.included.as_ref());
        parts.any(|part| matches!(part.text, PartText::Absent))
            || included.any(|included| included.is_lacking)
    }

    /// Every part of every layer.
    pub(super) fn parts(&self) -> impl Iterator<Item = &CompiledPart> {
        self.layers.iter().flat_map(|layer| &layer.parts)
    }

    /// Every template.
    pub(super) fn templates(&self) -> impl Iterator<Item = &Compiled> {
        self.parts().filter_map(|part| match &part.text {
            PartText::Template(compiled, _) => Some(compiled),
            PartText::Constant(_) | PartText::Absent => None,
        })
    }

    /// The only text, if there is nothing to join.
    pub(super) fn single(&self) -> Option<&CompiledPart> {
        self.part(0, 0).filter(|_| self.is_single)
    }

    /// Whether any part of it is built from sensitive data.
    pub(super) fn is_sensitive(&self, data: &Sensitive) -> bool {
        self.parts().any(|part| part.is_sensitive(data))
    }

    /// Sets the sensitive bytes of its rendered layers.
    pub(super) fn trace(&self, layers: &mut [RenderedLayer], execution: &Execution<'_>) {
        for (compiled, layer) in self.layers.iter().zip(layers) {
            let parts = compiled.parts.iter();
            layer.sensitive = parts.map(|part| part.sensitive_bytes(execution)).collect();
        }
    }

    /// Renders every part; `None` if one fails or isn't known. For validation, the other parts are
    /// then checked separately.
    pub(super) fn render(&self, execution: &mut Execution<'_>) -> Option<Vec<RenderedLayer>> {
        let mut layers = Vec::with_capacity(self.layers.len() + 1);
        // Why something is lacking was reported where it was fetched.
        let mut sound = !self.is_lacking();
        for layer in &self.layers {
            let mut parts = Vec::with_capacity(layer.parts.len());
            for part in &layer.parts {
                match part.render(execution) {
                    Some(content) => parts.push(LayerPart {
                        content,
                        content_type: part.content_type.as_deref().map(str::to_owned),
                        filename: part.filename.as_deref().map(str::to_owned),
                        merge: part.merge.as_deref().map(str::to_owned),
                        headers: Vec::new(),
                    }),
                    None => {
                        sound = false;
                        parts.push(LayerPart::new(""));
                    }
                }
            }
            layers.push(RenderedLayer {
                name: layer_name(layer.layer),
                mode: mode(layer.joining),
                parts,
                included: layer.included.as_ref().map(|one| Arc::clone(&one.bodies)),
                files: Vec::new(),
                sensitive: Vec::new(),
            });
        }
        if !sound && execution.report.is_trial() {
            self.check_parts(&mut layers, execution);
        }
        sound.then_some(layers)
    }

    /// Checks each part separately, if the joined result isn't known. An error that a higher layer
    /// may replace is a warning.
    pub(super) fn check_parts(&self, layers: &mut [RenderedLayer], execution: &mut Execution<'_>) {
        self.trace(layers, execution);
        let is_alone = layers.iter().map(|layer| layer.parts.len()).sum::<usize>() == 1;
        for (number, layer) in layers.iter().enumerate() {
            for (index, part) in layer.parts.iter().enumerate() {
                if !is_read(&part.content) {
                    continue;
                }
                let alone = RenderedLayer {
                    mode: Mode::Replace,
                    parts: vec![LayerPart {
                        merge: None,
                        ..part.clone()
                    }],
                    ..layer.clone()
                };
                let joint = self.joins.get(&[alone]);
                let errors = joint.findings.iter();
                for error in errors.filter(|finding| finding.severity == FindingSeverity::Error) {
                    let mut finding = error.clone();
                    if !is_alone && !finding.path.is_empty() {
                        finding.severity = FindingSeverity::Warning;
                    }
                    if let Some(place) = &mut finding.place {
                        (place.layer, place.part) = (number, index);
                    }
                    self.tell(&finding, layers, execution.report, execution.address);
                }
            }
        }
    }
}

impl CompiledPart {
    /// Whether any of its text is built from sensitive data.
    fn is_sensitive(&self, data: &Sensitive) -> bool {
        match &self.text {
            PartText::Template(compiled, _) => compiled.trace(data).is_some(),
            PartText::Constant(_) | PartText::Absent => !self.sensitive.is_empty(),
        }
    }

    /// The sensitive bytes of its text for an instance.
    pub(super) fn sensitive_bytes(&self, execution: &Execution<'_>) -> Vec<Range<usize>> {
        match &self.text {
            PartText::Template(compiled, _) => execution.sensitive_bytes(compiled),
            PartText::Constant(_) | PartText::Absent => self.sensitive.clone(),
        }
    }

    /// Its text for an instance.
    pub(super) fn render(&self, execution: &mut Execution<'_>) -> Option<Vec<u8>> {
        match &self.text {
            PartText::Template(compiled, _) => execution.bytes(compiled),
            PartText::Constant(bytes) => Some(bytes.clone()),
            // Why it is absent was reported where it was fetched.
            PartText::Absent => None,
        }
    }
}

/// The name of a layer in messages.
pub(super) fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Defaults => "defaults",
        Layer::Template => "template",
        Layer::Vars | Layer::Group | Layer::Slot => "group",
    }
}

fn mode(joining: Joining) -> Mode {
    match joining {
        Joining::Replace => Mode::Replace,
        Joining::Append => Mode::Append,
        Joining::CloudInit => Mode::CloudInit,
        Joining::Nstance => Mode::Nstance,
    }
}

impl CompiledUserdata {
    /// Joins rendered layers with the embedded files, which become `write_files` of the only
    /// cloud-config, or else another part. Returns `None` if that fails; the report has the error.
    pub(super) fn join(
        &self,
        rendered: Vec<RenderedLayer>,
        files: &[CarriedFile<'_>],
        execution: &mut Execution<'_>,
    ) -> Option<Arc<Joint>> {
        let mut layers = self.with_files(rendered, files);
        let joint = self.joins.get(&layers);
        let is_sound = self.tell_all(&joint, &mut layers, execution);
        is_sound.then_some(joint)
    }

    /// Checks a single source that is sent unchanged: whether cloud-init will accept it. Adds
    /// errors to the report.
    pub(super) fn check_single(&self, rendered: Vec<u8>, execution: &mut Execution<'_>) -> bool {
        let Some(layer) = self.layers.first().filter(|_| is_read(&rendered)) else {
            self.tell_ignored(&rendered, execution);
            return true;
        };
        let mut layers = [RenderedLayer {
            name: layer_name(layer.layer),
            mode: Mode::Replace,
            parts: vec![LayerPart::new(rendered)],
            included: None,
            files: Vec::new(),
            sensitive: Vec::new(),
        }];
        let joint = self.joins.get(&layers);
        self.tell_all(&joint, &mut layers, execution)
    }

    /// The layers and, if there are files, one more: it extends `write_files` of the only
    /// cloud-config, or else is another part.
    pub(super) fn with_files(
        &self,
        mut layers: Vec<RenderedLayer>,
        files: &[CarriedFile<'_>],
    ) -> Vec<RenderedLayer> {
        if !files.is_empty() {
            let joins = !self.is_single && self.joins.get(&layers).is_config;
            layers.push(RenderedLayer::of_files(files, joins));
        }
        layers
    }

    /// The part that a finding is about; `None` for the layer of files.
    pub(super) fn part(&self, layer: usize, part: usize) -> Option<&CompiledPart> {
        self.layers.get(layer)?.parts.get(part)
    }
}

//! One layer joined to the ones below it, by its mode.
//!
//! In: layers. Out: the pieces that are left of them, merged where a mode says so. May not: write
//! anything out (that is `output`).

use super::check::Told;
use super::lost::{Done, Lost, Reason, lost};
use super::pieces::{Content, Piece};
use super::{
    Dropped, Joined, Layer, LayerFinding, Mode, Options, Place, Severity, Source, Why, place,
};
use crate::merge::Documented;
use crate::merge::Merger;
use crate::parts::{Buffer, Config, Part};
use crate::value::{Map, Origin, Value};

pub(super) struct Joiner<'l> {
    pub(super) layers: &'l [Layer],
    pub(super) options: Options,
    pub(super) sources: Vec<Source>,
    pub(super) pieces: Vec<Piece>,
    pub(super) findings: Vec<LayerFinding>,
    pub(super) dropped: Vec<Dropped>,
    /// Cloud-configs as cloud-init merges them, in order: where each says how to merge it, if it does.
    described: Vec<Option<Place>>,
    /// Whether one of them can't be read, so that nobody knows what it says of that.
    has_unreadable: bool,
    /// What the schema has to say of layers by themselves: the result says how bad it is.
    pub(super) told: Vec<Told>,
}

impl<'l> Joiner<'l> {
    pub(super) fn new(layers: &'l [Layer], options: Options) -> Self {
        Self {
            layers,
            options,
            sources: Vec::new(),
            pieces: Vec::new(),
            findings: Vec::new(),
            dropped: Vec::new(),
            described: Vec::new(),
            has_unreadable: false,
            told: Vec::new(),
        }
    }

    pub(super) fn join(mut self) -> Joined {
        let layers = self.layers;
        for (number, layer) in layers.iter().enumerate() {
            let pieces = self.pieces(number, layer);
            self.check_pieces(&pieces);
            let mode = if number == 0 {
                Mode::Append
            } else {
                layer.mode
            };
            match mode {
                Mode::Replace => self.replace(number, pieces),
                Mode::Append => self.pieces.extend(pieces),
                Mode::CloudInit => {
                    self.pieces.extend(pieces);
                    self.collapse();
                }
                Mode::Nstance => self.join_natively(pieces),
            }
        }
        let known = self.config();
        self.check_described();
        self.check_result(known.as_ref());
        self.finish(known)
    }

    /// The layer takes the place of all below.
    fn replace(&mut self, number: usize, pieces: Vec<Piece>) {
        let below = std::mem::replace(&mut self.pieces, pieces);
        // What they lost among themselves is lost anyway.
        self.dropped
            .retain(|dropped| matches!(dropped.why, Why::Replaced { .. }));
        for piece in &below {
            for source in piece.sources() {
                if let Some(place) = self.at(source, None, None) {
                    self.dropped.push(Dropped {
                        place,
                        path: String::new(),
                        why: Why::Replaced { by_layer: number },
                    });
                }
            }
        }
        self.described.clear();
        self.has_unreadable = false;
        // What is wrong with what isn't sent does no harm.
        for finding in &mut self.findings {
            if finding.place.as_ref().is_some_and(|at| at.layer < number) {
                finding.severity = Severity::Warning;
            }
        }
    }

    fn buffer(&self) -> Buffer {
        if !self.options.as_documented {
            return Buffer::new();
        }
        let documented = Documented {
            delete_absent: true,
        };
        Buffer::as_documented(documented, true)
    }

    /// Merges what the machine would merge, up to the first piece that only the machine knows: what
    /// stands behind that is merged with what comes of it.
    fn collapse(&mut self) {
        let mut chosen: Vec<usize> = Vec::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            if piece.is_open() {
                let rest = self.pieces[index + 1..].iter().find(|p| p.is_config());
                if let Some(later) = rest.map(|piece| piece.source) {
                    self.warn_of_open(index, later, "is sent as it is, behind that");
                }
                break;
            }
            if piece.is_config() {
                chosen.push(index);
            }
        }
        self.merge_chosen(&chosen);
    }

    /// Merges pieces into the first of them; one alone is left as it was written.
    fn merge_chosen(&mut self, chosen: &[usize]) {
        let [first, rest @ ..] = chosen else { return };
        if rest.is_empty() {
            return;
        }
        let pieces: Vec<Piece> = chosen.iter().map(|at| self.pieces[*at].clone()).collect();
        let (buffer, sources) = self.merged(&pieces);
        self.pieces[*first].content = Content::Merged(Box::new(buffer), sources);
        self.pieces[*first].part = Part::cloud_config(String::new(), Vec::new());
        let mut index = 0;
        self.pieces.retain(|_| {
            index += 1;
            !rest.contains(&(index - 1))
        });
    }

    fn warn_of_open(&mut self, open: usize, later: usize, what: &str) {
        let kind = self.pieces[open].part.content_type.clone();
        let at = self.at(self.pieces[open].source, Some(1), None);
        let name = self
            .at(later, None, None)
            .map_or_else(String::new, |place| self.name(&place));
        self.warning(
            at,
            format!("only the machine knows what comes of this {kind}: {name} {what}"),
            Some("What has to be merged here is cloud-config, in the layer itself"),
        );
    }

    fn name(&self, place: &Place) -> String {
        format!("layer `{}`", self.layers[place.layer].name)
    }

    /// Merges pieces one after the other, as cloud-init does, and notes what is lost.
    fn merged(&mut self, pieces: &[Piece]) -> (Buffer, Vec<usize>) {
        let mut buffer = self.buffer();
        let mut sources = Vec::new();
        for piece in pieces {
            sources.extend(piece.sources());
            let before = buffer.value().cloned();
            let (merged, new) = match &piece.content {
                Content::Merged(earlier, _) if before.is_none() => {
                    buffer = (**earlier).clone();
                    continue;
                }
                Content::Merged(earlier, _) => {
                    let Some(value) = earlier.value().cloned() else {
                        continue;
                    };
                    let config = Config {
                        value: value.clone(),
                        described: Vec::new(),
                        described_at: None,
                    };
                    (buffer.merge(&config), Some(value))
                }
                Content::Config(config) => {
                    let at = config.described_at.map(|origin| origin.line);
                    let at = self
                        .at(piece.source, at.or(Some(1)), None)
                        .filter(|_| !config.described.is_empty());
                    let merged = buffer.merge(config);
                    if merged.is_ok() {
                        self.described.push(at);
                    }
                    (merged, Some(config.value.clone()))
                }
                Content::Patch(text) => (buffer.patch(text, piece.source as u32), None),
                Content::Unreadable => {
                    buffer.skip();
                    self.has_unreadable = true;
                    continue;
                }
                Content::Other => continue,
            };
            match merged {
                Ok(()) => {
                    let nothing = Value::from(Map::default());
                    let before = before.unwrap_or(nothing);
                    let done = Done::ByMergers {
                        appends: appends(&piece.content),
                    };
                    if let Some(after) = buffer.value() {
                        let lost = lost(&before, new.as_ref(), after, done);
                        self.note(lost);
                    }
                }
                Err(error) => self.failed(piece, &error),
            }
        }
        (buffer, sources)
    }

    fn failed(&mut self, piece: &Piece, error: &crate::Error) {
        let at = self.at(piece.source, error.line, error.column);
        let said = format!("cloud-init would leave this part out: {error}");
        // An unknown merger was told of when the part was read.
        let is_told = |known: &LayerFinding| {
            known.summary == said
                && known.place.as_ref().map(|at| (at.layer, at.part))
                    == at.as_ref().map(|at| (at.layer, at.part))
        };
        if !self.findings.iter().any(is_told) {
            self.error(at, said, None);
        }
        if let Some(place) = self.at(piece.source, None, None) {
            self.dropped.push(Dropped {
                place,
                path: String::new(),
                why: Why::Failed,
            });
        }
    }

    fn note(&mut self, lost: Vec<Lost>) {
        for Lost {
            origin,
            path,
            reason,
        } in lost
        {
            let Some(place) = place(&self.sources, origin) else {
                continue;
            };
            let known = |origin: Origin| super::place(&self.sources, origin);
            let why = match reason {
                Reason::Overridden(by) => Why::Overridden { by: known(by) },
                Reason::Kept(earlier) => Why::Kept {
                    earlier: known(earlier),
                },
                Reason::Repeated => Why::Repeated,
                Reason::NotInList => Why::Cut,
                Reason::Gone => Why::Deleted,
            };
            let dropped = Dropped { place, path, why };
            if !self.dropped.contains(&dropped) {
                self.dropped.push(dropped);
            }
        }
    }

    /// Joins a layer as `nstance` does: what is below is one value, what the layer says is another.
    fn join_natively(&mut self, pieces: Vec<Piece>) {
        let configs = pieces.iter().filter(|piece| piece.is_config()).count();
        let below = self.pieces.iter().filter(|piece| piece.is_config()).count();
        if configs == 0 || below == 0 && configs == 1 {
            self.pieces.extend(pieces);
            return;
        }
        for index in 0..self.pieces.len() {
            if self.pieces[index].is_open() {
                let later = pieces.iter().find(|piece| piece.is_config());
                let later = later.map_or(0, |piece| piece.source);
                self.warn_of_open(
                    index,
                    later,
                    "is merged into what isn't, and comes behind it",
                );
            }
        }
        let (known, others): (Vec<Piece>, Vec<Piece>) = std::mem::take(&mut self.pieces)
            .into_iter()
            .partition(Piece::is_config);
        let (mut buffer, mut sources) = self.merged(&known);
        let mut own: Vec<Piece> = Vec::new();
        let mut place = None;
        let mut all = others;
        for piece in pieces {
            match piece.content {
                Content::Other => all.push(piece),
                Content::Patch(ref text) => {
                    buffer = self.merge_own(buffer, &std::mem::take(&mut own));
                    sources.push(piece.source);
                    place = Some(all.len());
                    if let Err(error) = buffer.patch(text, piece.source as u32) {
                        self.failed(&piece, &error);
                    }
                }
                _ => {
                    sources.push(piece.source);
                    place = Some(all.len());
                    own.push(piece);
                }
            }
        }
        buffer = self.merge_own(buffer, &own);
        let source = sources.first().copied().unwrap_or_default();
        all.insert(
            place.unwrap_or(0),
            Piece {
                part: Part::cloud_config(String::new(), Vec::new()),
                source,
                content: Content::Merged(Box::new(buffer), sources),
            },
        );
        self.pieces = all;
    }

    /// Merges what one layer's cloud-configs make together into what there is.
    fn merge_own(&mut self, buffer: Buffer, own: &[Piece]) -> Buffer {
        let counted = self.described.len();
        let (layer, _) = self.merged(own);
        let described = self.described.split_off(counted);
        if let Some(Some(at)) = described.into_iter().next() {
            self.warning(
                Some(at),
                "this has no effect: it says how to merge, and the layer is merged as `nstance` does it",
                Some("Take it away, or let the layer's mode be `cloud-init`"),
            );
        }
        let Some(new) = layer.value() else {
            return buffer;
        };
        let Some(base) = buffer.value() else {
            return layer;
        };
        match super::native::merge(base, new) {
            Ok(merged) => {
                let lost = lost(base, Some(new), &merged, Done::Natively);
                self.note(lost);
                self.buffer().holding(merged)
            }
            Err(error) => {
                let place = own.first().map(|piece| piece.source);
                let at = place.and_then(|source| self.at(source, None, None));
                self.error(at, format!("this layer can't be merged: {error}"), None);
                buffer
            }
        }
    }

    /// The cloud-config that the machine will have, as far as it is known here.
    fn config(&mut self) -> Option<Value> {
        let pieces: Vec<Piece> = self
            .pieces
            .iter()
            .filter(|piece| piece.is_config())
            .cloned()
            .collect();
        let (buffer, _) = self.merged(&pieces);
        buffer.value().cloned()
    }

    /// Whether the first part alone says how to merge: that has an effect on that part only.
    fn check_described(&mut self) {
        let [Some(first), rest @ ..] = &self.described[..] else {
            return;
        };
        if rest.iter().any(Option::is_some) || self.has_unreadable || self.options.as_documented {
            return;
        }
        let (at, is_alone) = (Some(first.clone()), rest.is_empty());
        let summary =
            "this has no effect: it says how the first part is merged, and nothing is there";
        if is_alone {
            self.warning(
                at,
                "this has no effect: it says how to merge, and there is only one part",
                None,
            );
        } else {
            let hint =
                "Say it in the parts behind it: each says how it is merged into what is there";
            self.error(at, summary, Some(hint));
        }
    }
}

/// Whether mergers put one text behind the other.
fn appends(content: &Content) -> bool {
    let Content::Config(config) = content else {
        return false;
    };
    let mergers = config.mergers().ok().flatten().unwrap_or_default();
    let appends = |merger: &Merger| matches!(merger, Merger::Str { append: true });
    mergers.list.iter().any(appends)
}

impl Piece {
    /// The sources that it came of.
    pub(super) fn sources(&self) -> Vec<usize> {
        match &self.content {
            Content::Merged(_, sources) => sources.clone(),
            _ => vec![self.source],
        }
    }
}

//! What is left of the layers, as bytes.
//!
//! In: pieces. Out: the user data, its parts, and each layer's share. May not: change what was
//! written: one part of a layer that is left alone goes out byte for byte.

use super::joiner::Joiner;
use super::pieces::{Content, Piece, needs_header, says_itself};
use super::{Joined, JoinedPart, LayerPart};
use crate::detect::CLOUD_CONFIG;
use crate::merge::Mergers;
use crate::mime_write::{Outgoing, write};
use crate::parts::Part;
use crate::userdata::{NOT_MULTIPART, is_message};
use crate::value::{Origin, Value};
use crate::yaml::emit_marked;

/// The most that a merged cloud-config may have.
const LARGEST: usize = 16 << 20;
/// What a cloud-config begins with.
const HEADER: &str = "#cloud-config\n";

impl Joiner<'_> {
    pub(super) fn finish(mut self, config: Option<Value>) -> Joined {
        let pieces = std::mem::take(&mut self.pieces);
        let untouched = self.untouched(&pieces).map(|part| part.content.clone());
        let parts: Vec<JoinedPart> = pieces
            .iter()
            .filter_map(|piece| self.joined_part(piece))
            .collect();
        let (bytes, starts) = match (untouched, &parts[..]) {
            (Some(written), _) => (written, Vec::new()),
            (None, []) => (Vec::new(), Vec::new()),
            (None, [part]) if is_enough(part) => (part.content.clone(), vec![0]),
            (None, [part]) if fits_header(part) => {
                let mut bytes = HEADER.as_bytes().to_vec();
                bytes.extend(&part.content);
                (bytes, vec![0])
            }
            (None, parts) => self.message(parts),
        };
        let shares = self.shares(&pieces, &parts, &bytes, &starts);
        self.sort_findings();
        Joined {
            bytes,
            parts,
            config,
            findings: self.findings,
            dropped: self.dropped,
            shares,
            sources: self.sources,
        }
    }

    /// The one part of a layer that all of this is, as it was written.
    fn untouched(&self, pieces: &[Piece]) -> Option<&LayerPart> {
        let place = |source: usize| {
            let source = &self.sources[source - 1];
            (source.layer, source.part)
        };
        let first = pieces.first().map(|piece| place(piece.source))?;
        let is_whole = |piece: &Piece| {
            place(piece.source) == first && !matches!(piece.content, Content::Merged(..))
        };
        let part = &self.layers[first.0].parts[first.1];
        let own = || (1..=self.sources.len()).filter(|source| place(*source) == first);
        if own().any(|source| self.sources[source - 1].is_fetched) {
            return None;
        }
        let all_are_there = own().count() == pieces.len() && pieces.iter().all(is_whole);
        // What is said of it beside its content has to be sent too.
        let is_cloud_config = pieces.iter().all(|piece| {
            piece.part.content_type == CLOUD_CONFIG && says_itself(CLOUD_CONFIG, &part.content)
        });
        let says_no_more = part.headers.is_empty()
            && part.content_type.as_ref().is_none_or(|kind| {
                kind.starts_with("multipart/") || says_itself(kind, &part.content)
            })
            && (part.filename.is_none() || is_cloud_config);
        let needs_more = pieces.iter().any(|piece| needs_header(&piece.part));
        let is_whole_part = part.merge.is_none() || !needs_more;
        (all_are_there && says_no_more && is_whole_part).then_some(part)
    }

    fn joined_part(&mut self, piece: &Piece) -> Option<JoinedPart> {
        let mut layers: Vec<usize> = piece
            .sources()
            .iter()
            .map(|source| self.sources[source - 1].layer)
            .collect();
        layers.sort_unstable();
        layers.dedup();
        let Content::Merged(buffer, _) = &piece.content else {
            return Some(JoinedPart {
                content_type: piece.part.content_type.clone(),
                filename: Some(piece.part.filename.clone()).filter(|name| !name.is_empty()),
                headers: piece.part.headers.clone(),
                content: piece.part.content.clone(),
                layers,
                marks: Vec::new(),
                place: self.at(piece.source, None, None),
            });
        };
        let (content, marks) = self.emitted(buffer.value()?)?;
        Some(JoinedPart {
            content_type: CLOUD_CONFIG.to_owned(),
            content: content.into_bytes(),
            layers,
            marks,
            ..JoinedPart::default()
        })
    }

    fn emitted(&mut self, value: &Value) -> Option<(String, Vec<(usize, Origin)>)> {
        let mut text = HEADER.to_owned();
        let map = value.as_map();
        let has = |name: &str| map.is_some_and(|map| map.named(name).is_some());
        if map.is_none() {
            let what = value.type_name();
            self.error(
                None,
                format!("a patch makes {what} of the cloud-config, and it has to be a mapping"),
                None,
            );
            return None;
        }
        if has("merge_how") {
            self.error(
                None,
                "a patch sets `merge_how`, which would be read as saying how to merge",
                Some("Take it out of the patch"),
            );
            return None;
        }
        if has("merge_type") {
            // Behind `merge_how` it is data, as it was where it came from.
            let mergers = Mergers::DEFAULT;
            text.push_str(&format!("merge_how: {mergers}\n"));
        }
        match emit_marked(value, LARGEST) {
            Ok(marked) => {
                let before = text.len();
                text.push_str(&marked.text);
                let marks = marked.marks.into_iter();
                let marks = marks.map(|(at, origin)| (at + before, origin)).collect();
                Some((text, marks))
            }
            Err(error) => {
                self.error(
                    None,
                    format!("the cloud-config can't be written: {error}"),
                    Some("It may have 16 MiB, and no value within itself"),
                );
                None
            }
        }
    }

    fn message(&mut self, parts: &[JoinedPart]) -> (Vec<u8>, Vec<usize>) {
        let outgoing: Vec<Outgoing<'_>> = parts
            .iter()
            .map(|part| Outgoing {
                content_type: match &*part.content_type {
                    NOT_MULTIPART => "text/plain",
                    other => other,
                },
                filename: part.filename.as_deref().unwrap_or(""),
                headers: &part.headers,
                content: &part.content,
            })
            .collect();
        match write(&outgoing) {
            Ok(written) => (written.bytes, written.starts),
            Err(error) => {
                let at = parts[error.part].place.clone();
                self.error(
                    at,
                    format!("this part can't be sent: {}", error.problem),
                    None,
                );
                (Vec::new(), Vec::new())
            }
        }
    }

    /// How many bytes each layer accounts for: of a merged part, the lines that it wrote; of others,
    /// all, and what is around them. What is around all of them is the first's.
    fn shares(
        &self,
        pieces: &[Piece],
        parts: &[JoinedPart],
        bytes: &[u8],
        starts: &[usize],
    ) -> Vec<usize> {
        let mut shares = vec![0; self.layers.len()];
        let Some(first) = pieces.first() else {
            return shares;
        };
        let first = self.sources[first.source - 1].layer;
        if starts.len() != parts.len() || parts.is_empty() {
            shares[first] = bytes.len();
            return shares;
        }
        shares[first] += starts[0];
        for (number, (part, start)) in parts.iter().zip(starts).enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(bytes.len());
            let size = end - start;
            let owner = part.layers.first().copied().unwrap_or(first);
            if part.marks.is_empty() {
                shares[owner] += size;
                continue;
            }
            // Encoded, a part has other bytes than it was made of: each layer has as much of them.
            let mut written = vec![0; self.layers.len()];
            let mut at = 0;
            let mut of = owner;
            for (next, origin) in &part.marks {
                written[of] += next - at;
                at = *next;
                of = self
                    .sources
                    .get((origin.layer as usize).wrapping_sub(1))
                    .map_or(owner, |source| source.layer);
            }
            written[of] += part.content.len() - at;
            let mut left = size;
            for (layer, written) in written.iter().enumerate() {
                let share = size * written / part.content.len().max(1);
                shares[layer] += share;
                left -= share;
            }
            shares[owner] += left;
        }
        shares
    }

    fn sort_findings(&mut self) {
        let mut seen = std::collections::HashSet::new();
        self.findings.retain(|finding| seen.insert(finding.clone()));
        self.findings.sort_by_key(|finding| {
            let place = finding.place.clone();
            (place.is_none(), place)
        });
    }
}

/// Whether a part alone needs nothing around it.
fn is_enough(part: &JoinedPart) -> bool {
    let is_config = part.content_type == CLOUD_CONFIG;
    // How one cloud-config is merged, and what it is called, says nothing.
    let says_more = part
        .headers
        .iter()
        .any(|(name, _)| !is_config || name.eq_ignore_ascii_case("launch-index"))
        || !is_config && part.filename.is_some();
    let as_sent = Part {
        content_type: part.content_type.clone(),
        filename: String::new(),
        headers: part.headers.clone(),
        content: part.content.clone(),
    };
    !says_more && !needs_header(&as_sent) && says_itself(&part.content_type, &part.content)
}

/// Whether a cloud-config lacks nothing but its first line.
fn fits_header(part: &JoinedPart) -> bool {
    let with_header = [HEADER.as_bytes(), &part.content].concat();
    let headed = JoinedPart {
        content: with_header,
        ..part.clone()
    };
    part.content_type == CLOUD_CONFIG && is_enough(&headed) && !is_message(&headed.content)
}

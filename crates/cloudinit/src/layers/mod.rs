//! Layers of user data, joined into what one machine gets.
//!
//! In: [`Layer`]s, the lowest first, each of parts in any form that cloud-init takes. Out: the
//! [`Joined`] user data, where each of its values was written, what was lost on the way, and what is
//! wrong. May not: fetch what is included, render templates, or lose anything without saying so.
//!
//! What cloud-init only warns about on a machine that boots is an error here.

mod check;
mod joiner;
mod lost;
mod native;
mod output;
mod pieces;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::detect::{ARCHIVE, CLOUD_CONFIG, JSON_PATCH, detect_bytes};
use crate::userdata::{Bodies, is_message, unpack};
use crate::value::{Origin, Value};

pub use native::merge as merge_natively;

/// How a layer joins the ones below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// It takes their place.
    #[default]
    Replace,
    /// Its parts come behind theirs; the machine merges them, each as it says itself.
    Append,
    /// All parts are merged here as the machine would merge them, each as it says itself.
    CloudInit,
    /// Mappings are merged, lists appended without repeating what is there, later scalars win; `users`
    /// match by `name` and `write_files` by `path`. What parts say of merging doesn't count.
    Nstance,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Replace, Self::Append, Self::CloudInit, Self::Nstance];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Append => "append",
            Self::CloudInit => "cloud-init",
            Self::Nstance => "nstance",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// There is no mode of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownMode;

impl fmt::Display for UnknownMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a mode is one of `replace`, `append`, `cloud-init` and `nstance`")
    }
}

impl std::error::Error for UnknownMode {}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let mut all = Self::ALL.into_iter();
        all.find(|mode| mode.name() == name).ok_or(UnknownMode)
    }
}

/// User data of one level of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    /// What messages call it.
    pub name: String,
    /// How it joins the ones below it. That of the lowest doesn't count.
    pub mode: Mode,
    /// Its parts, in order.
    pub parts: Vec<LayerPart>,
    /// What the addresses say that its parts include, which is put in their place; `None`: what
    /// includes something is sent as it is, and the machine fetches it.
    pub included: Option<Arc<Bodies>>,
}

/// A part of a layer: anything that cloud-init takes, a message or an archive of parts too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerPart {
    /// What it says.
    pub content: Vec<u8>,
    /// Its type, such as `text/cloud-config`; by how it begins where there is none.
    pub content_type: Option<String>,
    /// Its name.
    pub filename: Option<String>,
    /// How it is merged, such as `list(append)+dict(recurse_list)`: the header `Merge-Type`.
    pub merge: Option<String>,
    /// Other headers, such as `Launch-Index`.
    pub headers: Vec<(String, String)>,
}

impl LayerPart {
    /// A part that says itself what it is.
    pub fn new(content: impl Into<Vec<u8>>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }
}

/// What may be chosen beside the modes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Merge as cloud-init's documentation says where the program does otherwise: mergers are left
    /// on a stack for the parts that follow, and `allow_delete` deletes the keys that the new value
    /// doesn't have. No machine does that.
    pub as_documented: bool,
}

/// A place in a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The layer, from 0.
    pub layer: usize,
    /// The part of the layer, from 0.
    pub part: usize,
    /// Of a part that holds parts, the name of the one in it that lines are counted in; `None`: they
    /// are counted in the part as it was written.
    pub within: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, in characters, from 1.
    pub column: Option<u32>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The machine wouldn't get what was meant.
    Error,
    /// Worth knowing.
    Warning,
}

/// Something that is wrong with a layer, or with what came of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LayerFinding {
    /// How bad it is.
    pub severity: Severity,
    /// Where; `None`: with the whole.
    pub place: Option<Place>,
    /// The keys and indices that lead to it, such as `users[0].name`; empty where there are none.
    pub path: String,
    /// What is wrong, one sentence without a full stop.
    pub summary: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

/// Why something that was written isn't in the result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Why {
    /// Its whole layer gave way to this one.
    Replaced {
        /// The layer that took its place.
        by_layer: usize,
    },
    /// A later value took its place.
    Overridden {
        /// Where that was written.
        by: Option<Place>,
    },
    /// An earlier value stayed.
    Kept {
        /// Where that was written.
        earlier: Option<Place>,
    },
    /// Lists were merged index by index, and it has an index that the earlier list doesn't have.
    Cut,
    /// The list has an equal entry already.
    Repeated,
    /// A later layer deleted it.
    Deleted,
    /// The part that it is in can't be merged.
    Failed,
}

/// Something that was written and isn't in the result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dropped {
    /// Where it was written.
    pub place: Place,
    /// The keys and indices that led to it, such as `runcmd[1]`; empty: all of the part.
    pub path: String,
    /// Why.
    pub why: Why,
}

/// A part of the result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinedPart {
    /// Its type.
    pub content_type: String,
    /// Its name.
    pub filename: Option<String>,
    /// Its other headers.
    pub headers: Vec<(String, String)>,
    /// What it says.
    pub content: Vec<u8>,
    /// The layers that it came of, each once, in order.
    pub layers: Vec<usize>,
    /// Where its lines were written, if it was merged here: the byte at which a line begins, and the
    /// origin of what follows. Empty where the part is as it was written.
    pub marks: Vec<(usize, Origin)>,
    /// Where it was written, if it wasn't merged.
    pub place: Option<Place>,
}

/// What came of layers.
#[derive(Debug, Clone, Default)]
pub struct Joined {
    /// What the machine gets, not packed: empty where nothing is left.
    pub bytes: Vec<u8>,
    /// The parts of it.
    pub parts: Vec<JoinedPart>,
    /// The cloud-config that the machine will make of it, as far as that is known here; `None`:
    /// there is none. [`Joined::place`] knows where its values were written.
    pub config: Option<Value>,
    /// What is wrong, by layer and line.
    pub findings: Vec<LayerFinding>,
    /// What is lost.
    pub dropped: Vec<Dropped>,
    /// How many of the result's bytes each layer accounts for: together all of them.
    pub shares: Vec<usize>,
    sources: Vec<Source>,
}

impl Joined {
    /// Where a value of [`Joined::config`] was written. `None`: nowhere.
    pub fn place(&self, origin: Origin) -> Option<Place> {
        place(&self.sources, origin)
    }

    /// Whether the machine wouldn't get what was meant.
    pub fn has_errors(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }
}

/// A part as it was found in a layer. The `layer` of an [`Origin`] is its number, from 1.
#[derive(Debug, Clone)]
struct Source {
    layer: usize,
    part: usize,
    /// Its name, or its number, in the part of the layer that holds it.
    within: Option<String>,
    /// How many lines of the layer's part stand before it.
    lines_before: u32,
    /// Whether it was fetched, and isn't in the layer's part.
    is_fetched: bool,
}

fn place(sources: &[Source], origin: Origin) -> Option<Place> {
    let source = sources.get((origin.layer as usize).checked_sub(1)?)?;
    let line = (origin.line > 0).then(|| origin.line + source.lines_before);
    Some(Place {
        layer: source.layer,
        part: source.part,
        within: source.within.clone(),
        line,
        column: (origin.column > 0).then_some(origin.column),
    })
}

/// Whether user data is read here, alone or in its parts: cloud-config, a message or an archive of
/// parts, packed or not. Anything else is only passed on.
pub fn is_read(bytes: &[u8]) -> bool {
    let unpacked = unpack(bytes);
    let bytes = unpacked.as_deref().unwrap_or(bytes);
    is_message(bytes)
        || matches!(
            detect_bytes(bytes),
            Some(CLOUD_CONFIG | ARCHIVE | JSON_PATCH)
        )
}

/// Joins layers, the lowest first.
pub fn join(layers: &[Layer]) -> Joined {
    join_with(layers, Options::default())
}

/// Joins layers, the lowest first, by these options.
pub fn join_with(layers: &[Layer], options: Options) -> Joined {
    joiner::Joiner::new(layers, options).join()
}

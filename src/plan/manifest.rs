//! The manifest of a BOSH deployment, as plans and the state keep it.
//!
//! In: the manifest after ops files and variables, and what the state kept of earlier ones. Out: its
//! version, its differences from the one that was applied last, and what the state keeps. Must not:
//! read a state, or write one.

use nstance_bosh::diff::{Line, diff};
use nstance_bosh::yaml;
use nstance_state::{FetchedRow, Write};
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::digest::sha256_hex;

/// The name under which the state keeps it, beside the bodies of URLs: it may have secrets, and is
/// sealed.
pub const KEPT_AS: &str = "bosh:manifest";

/// What the state keeps.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// The version of the manifest whose apply began last.
    version: u64,
    /// The digest of that manifest.
    latest: String,
    /// The manifest that was applied last, whole.
    applied: Option<String>,
}

/// The manifest of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedManifest {
    /// Its version: the number of changes of the manifest, from 1.
    pub version: u64,
    /// Its YAML.
    text: String,
    /// The manifest that was applied last; `None` before the first one.
    applied: Option<String>,
    /// Whether the plan covers only a part of it.
    is_part: bool,
    /// Whether its properties are shown.
    #[serde(skip)]
    pub shows_sensitive: bool,
}

impl PlannedManifest {
    /// A manifest after those that the state `kept`. One that isn't the latest has the next version.
    pub fn new(text: &str, kept: Option<&[u8]>, is_part: bool) -> Self {
        let kept: Option<Kept> = kept.and_then(|kept| serde_json::from_slice(kept).ok());
        let kept = kept.unwrap_or_default();
        let is_latest = kept.latest == sha256_hex(text.as_bytes());
        Self {
            version: kept.version + u64::from(!is_latest),
            text: text.to_owned(),
            applied: kept.applied,
            is_part,
            shows_sensitive: false,
        }
    }

    /// The differences from the manifest that was applied last, as BOSH prints them. Empty for the
    /// first manifest.
    pub fn differences(&self) -> Vec<Line> {
        let read = |text: &str| yaml::read(text, 0).ok();
        let Some(applied) = self.applied.as_deref().and_then(read) else {
            return Vec::new();
        };
        read(&self.text).map_or_else(Vec::new, |planned| {
            diff(&applied, &planned, !self.shows_sensitive)
        })
    }

    /// What the state keeps once an apply begins: its instances get the version.
    pub fn begun(&self, now: Timestamp) -> Write {
        self.keep(self.applied.clone(), now)
    }

    /// What the state keeps once an apply made all changes; `None` if it has that already, or if
    /// they are a part.
    pub fn done(&self, now: Timestamp) -> Option<Write> {
        let is_new = self.applied.as_ref() != Some(&self.text);
        (is_new && !self.is_part).then(|| self.keep(Some(self.text.clone()), now))
    }

    fn keep(&self, applied: Option<String>, now: Timestamp) -> Write {
        let kept = Kept {
            version: self.version,
            latest: sha256_hex(self.text.as_bytes()),
            applied,
        };
        Write::PutFetched(FetchedRow {
            url: KEPT_AS.to_owned(),
            digest: String::new(),
            body: serde_json::to_vec(&kept).expect("its keys are strings"),
            fetched_at: now.into(),
        })
    }
}

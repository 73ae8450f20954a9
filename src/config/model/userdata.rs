//! Userdata of one layer, and texts that may be elsewhere.
//!
//! In: nothing (data only). Out: [`Userdata`], [`TextSource`]. Must not: hold anything that the
//! configuration doesn't say.

use std::sync::Arc;

use crate::config::node::Sensitivity;
use crate::config::source::{Span, Spanned};

/// `userdata` of one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Userdata {
    /// The whole value's place.
    pub span: Span,
    /// What it consists of, one part at least.
    pub parts: Vec<UserdataPart>,
    /// Whether it is written as `parts`.
    pub is_list: bool,
    /// `merge`, as written: how it joins the layers below; `None`: it replaces them.
    pub merge: Option<Spanned<Joining>>,
    /// `includes`: what becomes of what its parts include.
    pub includes: Includes,
    /// `compress`, as written; `None`: auto, or what a layer below that it joins says.
    pub compress: Option<Compress>,
}

impl Userdata {
    /// How it joins the layers below.
    pub fn joining(&self) -> Joining {
        self.merge.map_or(Joining::Replace, |merge| merge.value)
    }

    /// Where it is written: its text, or all of it.
    pub fn place(&self) -> Span {
        self.single().map_or(self.span, |text| text.content.span)
    }

    /// The one source that it is, sent as it is: no list of parts, and nothing to be fetched for it.
    pub fn single(&self) -> Option<&TextSource> {
        match &self.parts[..] {
            [part] if !self.is_list && self.includes == Includes::Keep => Some(&part.text),
            _ => None,
        }
    }
}

/// One of a userdata's parts.
#[derive(Debug, Clone, PartialEq)]
pub struct UserdataPart {
    /// Its text.
    pub text: TextSource,
    /// `type`: its MIME type; `None`: what its first line says.
    pub content_type: Option<Spanned<Arc<str>>>,
    /// `filename`
    pub filename: Option<Spanned<Arc<str>>>,
    /// `merge`: its `Merge-Type` header, which says how cloud-init merges it.
    pub merge: Option<Spanned<Arc<str>>>,
}

/// `userdata.merge`: how a layer joins those below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Joining {
    /// `replace`: they don't count.
    Replace,
    /// `append`: its parts come after theirs.
    Append,
    /// `cloud-init`: merged as cloud-init would.
    CloudInit,
    /// `nstance`: maps recurse, lists append what they lack, later scalars win.
    Nstance,
}

impl Joining {
    /// The name in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Append => "append",
            Self::CloudInit => "cloud-init",
            Self::Nstance => "nstance",
        }
    }
}

/// `userdata.includes`: what becomes of `#include`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Includes {
    /// `keep`: the machine fetches it.
    #[default]
    Keep,
    /// `fetch`: it is fetched when planning.
    Fetch,
}

/// A text, or where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct TextSource {
    /// The whole value's place.
    pub span: Span,
    /// `source`, as written; `None`: inline.
    pub source: Option<UserdataSource>,
    /// `encoding` of the source, as written; `None`: plain.
    pub encoding: Option<Encoding>,
    /// `content`: the text, or the URL.
    pub content: Spanned<Arc<str>>,
    /// The sensitive part of the content; a URL's content has none.
    pub sensitivity: Sensitivity,
}

impl TextSource {
    /// Whether `content` is a URL.
    pub fn is_url(&self) -> bool {
        self.source == Some(UserdataSource::Url)
    }
}

/// Where userdata comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserdataSource {
    /// `inline`
    Inline,
    /// `url`: `https://`, `http://` or `file:` relative to the configuration.
    Url,
}

/// How a userdata source is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `plain`
    Plain,
    /// `base64`
    Base64,
    /// `gzip`, with a URL only.
    Gzip,
    /// `base64+gzip`
    Base64Gzip,
}

/// Whether userdata is gzipped when sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compress {
    /// `auto`: where it would not fit otherwise.
    #[default]
    Auto,
    /// `always`
    Always,
    /// `never`
    Never,
}

//! The model of userdata, and of texts with a source.
//!
//! In: nothing (data only). Out: [`Userdata`], [`TextSource`].

use std::sync::Arc;

use crate::config::node::Sensitivity;
use crate::config::source::{Span, Spanned};

/// `userdata` of one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Userdata {
    /// The whole value's place.
    pub span: Span,
    /// Its parts; never empty.
    pub parts: Vec<UserdataPart>,
    /// Whether it is written as `parts`.
    pub is_list: bool,
    /// `merge`, as written: how it joins the layers below; `None` means it replaces them.
    pub merge: Option<Spanned<Joining>>,
    /// `includes`: how `#include` in its parts is handled.
    pub includes: Includes,
    /// `compress`, as written; `None` means auto, or the setting of a layer below that it joins.
    pub compress: Option<Compress>,
}

impl Userdata {
    /// How it joins the layers below.
    pub fn joining(&self) -> Joining {
        self.merge.map_or(Joining::Replace, |merge| merge.value)
    }

    /// Where its text is written; for several parts, the whole value.
    pub fn place(&self) -> Span {
        self.single().map_or(self.span, |text| text.content.span)
    }

    /// The only source, if it is sent unchanged: not a list of parts, and without fetched includes.
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
    /// `type`: its MIME type; `None` means it is derived from the first line.
    pub content_type: Option<Spanned<Arc<str>>>,
    /// `filename`
    pub filename: Option<Spanned<Arc<str>>>,
    /// `merge`: its `Merge-Type` header, which sets how cloud-init merges it.
    pub merge: Option<Spanned<Arc<str>>>,
}

/// `userdata.merge`: how a layer joins the layers below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Joining {
    /// `replace`: it replaces them.
    Replace,
    /// `append`: its parts follow theirs.
    Append,
    /// `cloud-init`: merged as cloud-init would.
    CloudInit,
    /// `nstance`: maps merge recursively, lists append missing items, later scalars win.
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

/// `userdata.includes`: how `#include` is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Includes {
    /// `keep`: the instance fetches it.
    #[default]
    Keep,
    /// `fetch`: nstance fetches it when planning.
    Fetch,
}

/// A text, or its source.
#[derive(Debug, Clone, PartialEq)]
pub struct TextSource {
    /// The whole value's place.
    pub span: Span,
    /// `source`, as written; `None` means inline.
    pub source: Option<UserdataSource>,
    /// `encoding` of the source, as written; `None` means plain.
    pub encoding: Option<Encoding>,
    /// `content`: the text, or the URL.
    pub content: Spanned<Arc<str>>,
    /// The sensitive parts of the content; a URL's body has none.
    pub sensitivity: Sensitivity,
}

impl TextSource {
    /// Whether `content` is a URL.
    pub fn is_url(&self) -> bool {
        self.source == Some(UserdataSource::Url)
    }
}

/// The source of userdata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserdataSource {
    /// `inline`
    Inline,
    /// `url`: `https://`, `http://` or `file:` relative to the configuration.
    Url,
}

/// The encoding of a userdata source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `plain`
    Plain,
    /// `base64`
    Base64,
    /// `gzip`; only for a URL.
    Gzip,
    /// `base64+gzip`
    Base64Gzip,
}

/// Whether userdata is gzipped when sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compress {
    /// `auto`: only if it would not fit otherwise.
    #[default]
    Auto,
    /// `always`
    Always,
    /// `never`
    Never,
}

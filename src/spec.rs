//! What one instance must be: fully merged, fully rendered, hashable.
//!
//! In: rendered parts. Out: [`InstanceSpec`] and its [`SpecDigest`]. May not: render or compare.
//!
//! A spec is made of parts that instances share where they are equal; its digest is a digest of
//! the parts' digests, so that an instance costs only what is its own. Identity (ids, zone, subnet,
//! addresses, the tags that carry them) is not part of it: instances that differ in nothing else
//! have one spec.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nstance_state::SpecDigest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A value that may be shared, and its digest.
#[derive(Debug, Clone)]
pub struct Part<T> {
    /// The value.
    pub value: Arc<T>,
    /// Made when it is asked for, once for all who share the value: not everybody asks.
    digest: Arc<OnceLock<[u8; 32]>>,
}

impl<T: Serialize> Part<T> {
    /// A part of this value.
    pub fn new(value: T) -> Self {
        Self {
            value: Arc::new(value),
            digest: Arc::default(),
        }
    }

    /// The digest of the value's canonical JSON.
    pub fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| {
            let json = serde_json::to_vec(&*self.value).expect("a part's keys are strings");
            Sha256::digest(json).into()
        })
    }
}

/// What isn't rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The prefix of the instance id.
    pub kind: Arc<str>,
    /// The architecture.
    pub arch: Arc<str>,
    /// The instance type.
    pub instance_type: Arc<str>,
    /// The subnet pool.
    pub subnet_pool: Option<Arc<str>>,
    /// The template's name.
    pub template: Option<Arc<str>>,
    /// What it is registered with: target groups, instance groups, or names on `sim`; sorted.
    pub load_balancers: Vec<String>,
}

/// Rendered userdata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Userdata {
    /// What the instance reads.
    #[serde(flatten)]
    pub content: Content,
    /// Whether it is gzipped when sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gzip: bool,
}

/// Bytes that are nearly always text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// UTF-8.
    Text(String),
    /// Anything else, in base64.
    Base64(String),
}

impl Content {
    /// Bytes as text if they are.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Base64(BASE64.encode(error.as_bytes())),
        }
    }

    /// The bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Base64(text) => BASE64.decode(text).unwrap_or_default(),
        }
    }

    /// The text, or the base64 of what is none.
    pub fn display(&self) -> &str {
        match self {
            Self::Text(text) | Self::Base64(text) => text,
        }
    }
}

/// A rendered file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// `env`, `json`, `string`, `secret`, `storage`, `certificate`.
    pub kind: Arc<str>,
    /// Its content, or the rendered source of what the server delivers; `None` while it depends on
    /// something not known yet.
    pub content: Option<String>,
    /// Whether the server delivers it, so that it is only described here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_server: bool,
    /// Whether it goes out in the userdata; if not, it is exported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_userdata: bool,
}

/// The files of an instance, by name.
pub type Files = BTreeMap<Arc<str>, File>;

/// What one instance must be.
#[derive(Debug, Clone)]
pub struct InstanceSpec {
    /// What isn't rendered.
    pub head: Part<Head>,
    /// Rendered args, an object.
    pub args: Part<Map<String, Value>>,
    /// Merged vars, an object.
    pub vars: Part<Value>,
    /// Rendered userdata.
    pub userdata: Option<Part<Userdata>>,
    /// Rendered files.
    pub files: Part<Files>,
    /// The user's tags (managed ones follow from who the instance is).
    pub tags: Part<BTreeMap<String, String>>,
}

impl InstanceSpec {
    /// Puts the parts together.
    pub fn new(
        head: Part<Head>,
        args: Part<Map<String, Value>>,
        vars: Part<Value>,
        userdata: Option<Part<Userdata>>,
        files: Part<Files>,
        tags: Part<BTreeMap<String, String>>,
    ) -> Self {
        Self {
            head,
            args,
            vars,
            userdata,
            files,
            tags,
        }
    }

    /// The digest of all of it.
    pub fn digest(&self) -> SpecDigest {
        let mut hasher = Sha256::new();
        hasher.update(b"nstance spec 1\0");
        for digest in [
            self.head.digest(),
            self.args.digest(),
            self.vars.digest(),
            self.files.digest(),
            self.tags.digest(),
        ] {
            hasher.update(digest);
        }
        if let Some(userdata) = &self.userdata {
            hasher.update(userdata.digest());
        }
        SpecDigest(hasher.finalize().into())
    }

    /// The form that the state and plan files keep.
    pub fn to_body(&self) -> SpecBody {
        SpecBody {
            head: (*self.head.value).clone(),
            args: (*self.args.value).clone(),
            vars: (*self.vars.value).clone(),
            userdata: self.userdata.as_ref().map(|part| (*part.value).clone()),
            files: (*self.files.value).clone(),
            tags: (*self.tags.value).clone(),
        }
    }
}

/// A spec as the state and plan files keep it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpecBody {
    /// What isn't rendered.
    #[serde(flatten)]
    pub head: Head,
    /// Rendered args.
    pub args: Map<String, Value>,
    /// Merged vars.
    pub vars: Value,
    /// Rendered userdata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userdata: Option<Userdata>,
    /// Rendered files.
    pub files: Files,
    /// The user's tags.
    pub tags: BTreeMap<String, String>,
}

impl SpecBody {
    /// A spec that says nothing but its kind, for an instance nothing is known of.
    pub fn empty(kind: &str) -> Self {
        Self {
            head: Head {
                kind: kind.into(),
                arch: "amd64".into(),
                instance_type: "".into(),
                subnet_pool: None,
                template: None,
                load_balancers: Vec::new(),
            },
            args: Map::new(),
            vars: Value::Object(Map::new()),
            userdata: None,
            files: Files::new(),
            tags: BTreeMap::new(),
        }
    }

    /// The spec these parts make.
    pub fn into_spec(self) -> InstanceSpec {
        InstanceSpec::new(
            Part::new(self.head),
            Part::new(self.args),
            Part::new(self.vars),
            self.userdata.map(Part::new),
            Part::new(self.files),
            Part::new(self.tags),
        )
    }

    /// The bytes the state keeps under the spec's digest.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a spec's keys are strings")
    }
}

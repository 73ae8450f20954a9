//! What the types of an SDK are called and hold, read from its sources.
//!
//! In: the folder of a crate that smithy-rs wrote. Out: [`Type`]s. May not: guess a name.
//!
//! The SDKs follow rules of their own for acronyms, digits, reserved words and what is optional.
//! Their sources say what came of them; names are matched without case and underscores.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Failure, process};

/// A crate of `Cargo.lock`, as cargo unpacked it.
pub(super) struct Found {
    pub(super) version: String,
    pub(super) folder: PathBuf,
}

/// The sources of one SDK.
pub(super) struct Sdk {
    /// The name of its crate.
    pub(super) name: String,
    folder: PathBuf,
    /// Files of `types/` by squeezed name.
    types: HashMap<String, PathBuf>,
}

/// A type of the SDK.
#[derive(Debug)]
pub(super) enum Type {
    Structure(Structure),
    Enumeration,
}

#[derive(Debug)]
pub(super) struct Structure {
    /// By squeezed name.
    pub(super) fields: BTreeMap<String, Field>,
    /// Whether its builder's `build` may fail.
    pub(super) fallible: bool,
}

#[derive(Debug)]
pub(super) struct Field {
    /// As the source has it, so that `type` is `r#type`.
    pub(super) name: String,
    pub(super) optional: bool,
    pub(super) deprecated: bool,
    pub(super) holds: Holds,
}

/// What a field holds, `Option` left out.
#[derive(Debug, PartialEq)]
pub(super) enum Holds {
    Text,
    Flag,
    Whole,
    Long,
    Number,
    Time,
    Blob,
    /// A type of the SDK, by its name.
    Named(String),
    List(Box<Holds>),
    Map(Box<Holds>),
}

/// The packages that cargo would build with every feature, by name.
pub(super) fn crates() -> Result<HashMap<String, Found>, Failure> {
    let text = process::output(process::cargo().args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--all-features",
    ]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    Ok(packages
        .iter()
        .filter_map(|package| {
            let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
            let found = Found {
                version: package["version"].as_str()?.to_owned(),
                folder: folder.to_owned(),
            };
            Some((package["name"].as_str()?.to_owned(), found))
        })
        .collect())
}

/// A name without what differs between ways of writing it.
pub(super) fn squeeze(name: &str) -> String {
    name.strip_prefix("r#")
        .unwrap_or(name)
        .chars()
        .filter(|c| *c != '_')
        .flat_map(char::to_lowercase)
        .collect()
}

impl Sdk {
    pub(super) fn open(name: &str, folder: &Path) -> Result<Self, Failure> {
        let mut types = HashMap::new();
        let folder_of_types = folder.join("src/types");
        // A service without types of its own has no such folder.
        if folder_of_types.is_dir() {
            for entry in fs::read_dir(folder_of_types)? {
                let path = entry?.path();
                if let Some(stem) = path.file_stem() {
                    types.insert(squeeze(&stem.to_string_lossy()), path);
                }
            }
        }
        Ok(Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
            types,
        })
    }

    /// The type of a shape.
    pub(super) fn named(&self, shape: &str) -> Result<Type, Failure> {
        let path = self
            .types
            .get(&squeeze(shape))
            .ok_or_else(|| Failure::say(format!("the SDK has no type `{shape}`")))?;
        read_type(&fs::read_to_string(path)?)
            .ok_or_else(|| Failure::say(format!("no type found in {}", path.display())))
    }

    /// The input or output of an operation; `module` is its name in the SDK, `side` is `input` or
    /// `output`.
    pub(super) fn of_operation(&self, module: &str, side: &str) -> Result<Structure, Failure> {
        let path = self
            .folder
            .join(format!("src/operation/{module}/_{module}_{side}.rs"));
        let text = fs::read_to_string(&path)
            .map_err(|error| Failure::say(format!("{}: {error}", path.display())))?;
        match read_type(&text) {
            Some(Type::Structure(structure)) => Ok(structure),
            _ => Err(Failure::say(format!("no structure in {}", path.display()))),
        }
    }
}

/// The first public type of a file.
fn read_type(text: &str) -> Option<Type> {
    // A long type stands on a line of its own.
    let text = text.replace(":\n        ::std", ": ::std");
    let mut lines = text.lines().map(str::trim);
    let kind = lines.by_ref().find_map(|line| {
        let (kind, _) = line.strip_prefix("pub ")?.split_once(' ')?;
        matches!(kind, "struct" | "enum").then_some(kind)
    })?;
    if kind == "enum" {
        return Some(Type::Enumeration);
    }
    let mut fields = BTreeMap::new();
    let mut deprecated = false;
    for line in lines.by_ref().take_while(|line| *line != "}") {
        if line.starts_with("#[deprecated") {
            deprecated = true;
        }
        let Some((name, kind)) = line
            .strip_prefix("pub ")
            .and_then(|rest| rest.split_once(": "))
        else {
            continue;
        };
        let kind = kind.trim_end_matches(',');
        let inner = inside(kind, "::std::option::Option<");
        let field = Field {
            name: name.to_owned(),
            optional: inner.is_some(),
            deprecated,
            holds: read_holds(inner.unwrap_or(kind))?,
        };
        deprecated = false;
        fields.insert(squeeze(name), field);
    }
    // `build` stands in the same file, its result on the same line or two lines further on.
    let build = text.split("pub fn build(").nth(1).unwrap_or_default();
    let signature = build.split('{').next().unwrap_or_default();
    Some(Type::Structure(Structure {
        fields,
        fallible: signature.contains("Result<"),
    }))
}

fn inside<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    text.strip_prefix(prefix)?.strip_suffix('>')
}

fn read_holds(text: &str) -> Option<Holds> {
    if let Some(inner) = inside(text, "::std::boxed::Box<") {
        return read_holds(inner);
    }
    if let Some(inner) = inside(text, "::std::vec::Vec<") {
        return Some(Holds::List(Box::new(read_holds(inner)?)));
    }
    if let Some(inner) = inside(text, "::std::collections::HashMap<::std::string::String, ") {
        return Some(Holds::Map(Box::new(read_holds(inner)?)));
    }
    Some(match text {
        "::std::string::String" => Holds::Text,
        "bool" => Holds::Flag,
        "i32" => Holds::Whole,
        "i64" => Holds::Long,
        "f64" => Holds::Number,
        "::aws_smithy_types::DateTime" => Holds::Time,
        "::aws_smithy_types::Blob" => Holds::Blob,
        _ => Holds::Named(text.strip_prefix("crate::types::")?.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
/// A thing.
#[non_exhaustive]
#[derive(::std::clone::Clone)]
pub struct Thing {
    /// <p>Its type.</p>
    pub r#type: ::std::string::String,
    #[deprecated(
        note = "No more.",
        since = "2024-01-08"
    )]
    pub ipv6_addresses: ::std::option::Option<::std::vec::Vec<crate::types::Address>>,
    pub tags:
        ::std::option::Option<::std::collections::HashMap<::std::string::String, i64>>,
}
impl Thing {
}
impl ThingBuilder {
    pub fn build(
        self,
    ) -> ::std::result::Result<crate::types::Thing, ::aws_smithy_types::error::operation::BuildError> {
    }
}
"#;

    #[test]
    fn a_structure_is_read_as_it_is_written() {
        let Some(Type::Structure(thing)) = read_type(SOURCE) else {
            panic!("no structure");
        };
        assert!(thing.fallible);
        let field = |name: &str| &thing.fields[&squeeze(name)];
        assert_eq!(field("Type").name, "r#type");
        assert!(!field("Type").optional);
        assert!(field("Ipv6Addresses").deprecated);
        assert!(!field("Tags").deprecated);
        assert_eq!(
            field("Ipv6Addresses").holds,
            Holds::List(Box::new(Holds::Named("Address".to_owned())))
        );
        assert_eq!(field("Tags").holds, Holds::Map(Box::new(Holds::Long)));
    }

    #[test]
    fn an_enumeration_is_told_from_a_structure() {
        let text = "pub enum State {\n    Pending,\n}\n";
        assert!(matches!(read_type(text), Some(Type::Enumeration)));
    }
}

//! Semantic versions, and constraints on them as Masterminds' semver 3 has them.

mod constraint;

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use super::arguments::{fail, text};
use super::{Entry, Outcome, entry};
use crate::function::FunctionError;
use crate::function::Kind::Str;
use crate::map::{Struct, StructType};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(
        "semver",
        "S",
        "the version S, with `.Major`, `.Minor`, `.Patch`, `.Prerelease`, `.Metadata`, `.Original`",
        &[Str],
        |_, a| Ok(Version::parse(&text(&a[0]))?.into_value(&text(&a[0]))),
    ),
    entry(
        "semverCompare",
        "CONSTRAINT S",
        "whether the version S meets the constraint, such as `^1.2` or `>=1.2, <2`",
        &[Str, Str],
        compare,
    ),
];

fn compare(budget: &mut crate::function::Budget, arguments: &[Value]) -> Outcome {
    budget.charge(text(&arguments[0]).len())?;
    let constraints = constraint::parse(&text(&arguments[0]))?;
    let version = Version::parse(&text(&arguments[1]))?;
    Ok(Value::Bool(constraints.iter().any(|all| {
        all.iter().all(|constraint| constraint.admits(&version))
    })))
}

/// A version; what follows `+` counts for nothing in comparisons.
#[derive(Clone, Debug, Default, PartialEq)]
struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: String,
    metadata: String,
}

/// Whether all parts between points are letters, digits and hyphens.
fn is_dotted(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    text.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(fits))
}

impl Version {
    /// Reads a version, of which all but the first number may lack.
    fn parse(source: &str) -> Result<Self, FunctionError> {
        const WRONG: &str = "Invalid Semantic Version";
        let text = source.strip_prefix('v').unwrap_or(source);
        let (text, metadata) = match text.split_once('+') {
            Some((text, metadata)) if is_dotted(metadata) => (text, metadata),
            Some(_) => return fail(WRONG),
            None => (text, ""),
        };
        let (numbers, prerelease) = match text.split_once('-') {
            Some((numbers, prerelease)) if is_dotted(prerelease) => (numbers, prerelease),
            Some(_) => return fail(WRONG),
            None => (text, ""),
        };
        let parts: Vec<&str> = numbers.split('.').collect();
        let digits =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.len() > 3 || !parts.iter().all(digits) {
            return fail(WRONG);
        }
        let number = |index: usize| match parts.get(index) {
            None => Ok(0),
            Some(part) => part.parse().map_err(|_| {
                FunctionError::new(format!(
                    "Error parsing version segment: strconv.ParseUint: parsing \"{part}\": value \
                     out of range"
                ))
            }),
        };
        let leading_zero = |part: &str| {
            part.len() > 1
                && part.starts_with('0')
                && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let version = Self {
            major: number(0)?,
            minor: number(1)?,
            patch: number(2)?,
            prerelease: prerelease.to_owned(),
            metadata: metadata.to_owned(),
        };
        if prerelease.split('.').any(leading_zero) {
            return fail("Version segment starts with 0");
        }
        Ok(version)
    }

    fn shown(&self) -> String {
        let mut shown = format!("{}.{}.{}", self.major, self.minor, self.patch);
        for (mark, part) in [('-', &self.prerelease), ('+', &self.metadata)] {
            if !part.is_empty() {
                shown.push(mark);
                shown.push_str(part);
            }
        }
        shown
    }

    fn into_value(self, original: &str) -> Value {
        static TYPE: OnceLock<Arc<StructType>> = OnceLock::new();
        let fields = [
            "Major",
            "Minor",
            "Patch",
            "Prerelease",
            "Metadata",
            "Original",
            "String",
        ];
        let version_type = TYPE.get_or_init(|| StructType::new("*semver.Version", fields));
        let shown = self.shown();
        let values = vec![
            Value::Int64(self.major as i64),
            Value::Int64(self.minor as i64),
            Value::Int64(self.patch as i64),
            self.prerelease.into(),
            self.metadata.into(),
            original.into(),
            shown.as_str().into(),
        ];
        Value::Struct(Struct::new(Arc::clone(version_type), values).with_text(shown))
    }

    fn numbers(&self) -> (u64, u64, u64) {
        (self.major, self.minor, self.patch)
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.numbers()
            .cmp(&other.numbers())
            .then_with(|| prereleases(&self.prerelease, &other.prerelease))
    }
}

/// The order of prereleases: none comes last.
fn prereleases(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(left), Some(right)) => match (left.parse::<u64>(), right.parse::<u64>()) {
                (Ok(left), Ok(right)) => left.cmp(&right),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => left.cmp(right),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

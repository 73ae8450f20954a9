//! Constraints on versions: `^1.2`, `~1.2.3`, `1.x`, `>=1, <2`, `1 - 2`, `… || …`.

use super::Version;
use crate::function::FunctionError;
use crate::sprig::arguments::fail;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// The longer ones first, since they begin with the shorter.
const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
];

/// From which number on a constraint leaves a version open.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Open {
    No,
    Major,
    Minor,
    Patch,
}

/// One comparison.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    operator: Operator,
    version: Version,
    open: Open,
}

/// Reads alternatives, each of which is a list of comparisons that all have to hold.
pub(super) fn parse(source: &str) -> Result<Vec<Vec<Constraint>>, FunctionError> {
    source.split("||").map(all).collect()
}

fn all(source: &str) -> Result<Vec<Constraint>, FunctionError> {
    let improper = || FunctionError::new(format!("improper constraint: {source}"));
    let mut made = Vec::new();
    let mut rest = source.trim_start();
    loop {
        let (operator, after) = operator(rest);
        let (text, after) = version_text(after.trim_start()).ok_or_else(improper)?;
        let mut after = after;
        match hyphenated(after) {
            Some((upper, end)) if operator.is_none() => {
                made.push((Operator::GreaterOrEqual, text));
                made.push((Operator::LessOrEqual, upper));
                after = end;
            }
            _ => made.push((operator.unwrap_or(Operator::Equal), text)),
        }
        rest = after.trim_start();
        let spaced = rest.len() < after.len();
        if rest.is_empty() {
            break;
        }
        match rest.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None if spaced => {}
            None => return Err(improper()),
        }
    }
    made.into_iter()
        .map(|(operator, text)| Constraint::new(operator, text))
        .collect()
}

fn operator(text: &str) -> (Option<Operator>, &str) {
    for (sign, operator) in OPERATORS {
        if let Some(rest) = text.strip_prefix(sign) {
            return (Some(operator), rest);
        }
    }
    (None, text)
}

/// ` - 1.4`, and what follows.
fn hyphenated(text: &str) -> Option<(&str, &str)> {
    let hyphen = text.trim_start();
    let after = hyphen.strip_prefix('-')?;
    let upper = after.trim_start();
    if hyphen.len() == text.len() || upper.len() == after.len() {
        return None;
    }
    version_text(upper)
}

/// The version at the beginning of a text, and what follows.
fn version_text(text: &str) -> Option<(&str, &str)> {
    let mut rest = text.strip_prefix('v').unwrap_or(text);
    let number = |text: &str| {
        text.bytes()
            .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'x' | b'X' | b'*'))
            .count()
    };
    let first = number(rest);
    if first == 0 {
        return None;
    }
    rest = &rest[first..];
    for _ in 0..2 {
        if let Some(after) = rest.strip_prefix('.')
            && number(after) > 0
        {
            rest = &after[number(after)..];
        }
    }
    for mark in ['-', '+'] {
        if let Some(after) = rest.strip_prefix(mark) {
            let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            let length = after.bytes().take_while(|byte| fits(byte)).count();
            if !super::is_dotted(&after[..length]) {
                return None;
            }
            rest = &after[length..];
        }
    }
    let length = text.len() - rest.len();
    Some((&text[..length], rest))
}

impl Constraint {
    fn new(operator: Operator, text: &str) -> Result<Self, FunctionError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (numbers, suffix) = text.split_at(end);
        let mut parts = numbers.split('.');
        let mut next = || {
            parts
                .next()
                .filter(|part| !matches!(*part, "x" | "X" | "*"))
        };
        let (full, open) = match next() {
            None => (format!("0.0.0{suffix}"), Open::Major),
            Some(major) => match next() {
                None => (format!("{major}.0.0{suffix}"), Open::Minor),
                Some(minor) => match next() {
                    None => (format!("{major}.{minor}.0{suffix}"), Open::Patch),
                    Some(patch) => (format!("{major}.{minor}.{patch}{suffix}"), Open::No),
                },
            },
        };
        match Version::parse(&full) {
            Ok(version) => Ok(Self {
                operator,
                version,
                open,
            }),
            Err(_) => fail("constraint Parser Error"),
        }
    }

    /// Whether a version is as it has to be. A prerelease never is unless the constraint names one.
    pub(super) fn admits(&self, version: &Version) -> bool {
        let order = version.compare(&self.version);
        let closed = self.open == Open::No;
        let unasked = !version.prerelease.is_empty() && self.version.prerelease.is_empty();
        if unasked && !(closed && self.operator == Operator::NotEqual) {
            return false;
        }
        match self.operator {
            Operator::Equal if closed => order.is_eq(),
            Operator::Equal | Operator::Tilde => order.is_ge() && self.tilde(version),
            Operator::NotEqual if closed => order.is_ne(),
            Operator::NotEqual => self.differs(version),
            Operator::Greater if closed => order.is_gt(),
            Operator::Greater => self.is_beyond(version),
            Operator::Less => order.is_lt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::LessOrEqual if closed => order.is_le(),
            Operator::LessOrEqual => {
                let (ours, theirs) = (&self.version, version);
                theirs.major < ours.major
                    || theirs.major == ours.major
                        && (theirs.minor <= ours.minor || self.open == Open::Minor)
            }
            Operator::Caret => order.is_ge() && self.caret(version),
        }
    }

    fn tilde(&self, version: &Version) -> bool {
        let ours = &self.version;
        let anything = matches!(self.open, Open::No | Open::Major) && ours.numbers() == (0, 0, 0);
        anything
            || version.major == ours.major
                && (version.minor == ours.minor || self.open == Open::Minor)
    }

    fn caret(&self, version: &Version) -> bool {
        let ours = &self.version;
        if ours.major > 0 || self.open == Open::Minor {
            return version.major == ours.major;
        }
        if version.major > 0 {
            return false;
        }
        if ours.minor > 0 || self.open == Open::Patch {
            return version.minor == ours.minor;
        }
        version.minor == 0 && version.patch == ours.patch
    }

    fn differs(&self, version: &Version) -> bool {
        let ours = &self.version;
        if version.major != ours.major {
            return true;
        }
        match self.open {
            Open::Minor => false,
            Open::Patch => version.minor != ours.minor,
            _ => version.minor != ours.minor || version.patch != ours.patch,
        }
    }

    fn is_beyond(&self, version: &Version) -> bool {
        let ours = &self.version;
        if version.major != ours.major {
            return version.major > ours.major;
        }
        match self.open {
            Open::Patch => version.minor > ours.minor,
            Open::Minor => false,
            _ => version.compare(ours).is_gt(),
        }
    }
}

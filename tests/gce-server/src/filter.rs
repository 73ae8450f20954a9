//! The language of list filters.
//!
//! In: a filter's text; resources as JSON. Out: whether a resource fits, or why the text isn't a
//! filter. Must not: know which fields there are; the caller checks them.
//!
//! There are two languages, which Google documents at the `filter` parameter. One is AIP-160's:
//! `labels.a=b`, `name:*`, `AND`, `OR`, `NOT`, parentheses; expressions side by side are joined by
//! `AND`, and `OR` binds tighter than it. The other has regular expressions: `name eq 'a.*'`,
//! `(name ne a) (zone eq b)`. One text can't use both.

use std::cmp::Ordering;

use regex::Regex;
use serde_json::Value;

/// A filter.
#[derive(Debug)]
pub(crate) enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
    Is(Restriction),
}

/// A comparison of one field.
#[derive(Debug)]
pub(crate) struct Restriction {
    path: Vec<String>,
    test: Test,
}

#[derive(Debug)]
enum Test {
    /// `=` and `:`, with a `*` at either end.
    Equal(String),
    /// `:*`
    Present,
    /// `<`, `<=`, `>`, `>=`: the orderings that are wanted.
    Ordered(&'static [Ordering], String),
    /// `eq` with a regular expression for the whole value.
    Matches(Regex),
}

/// Why a text isn't a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotAFilter(pub(crate) String);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Operator(&'static str),
    Word(String),
    Quoted(String),
}

const OPERATORS: &[&str] = &["!=", "<=", ">=", "=", "<", ">", ":"];

impl Filter {
    /// Reads a filter. An empty text fits everything.
    pub(crate) fn parse(text: &str) -> Result<Self, NotAFilter> {
        let tokens = tokens(text)?;
        let regular = is_regular(&tokens);
        let mut parser = Parser {
            rest: &tokens,
            regular,
        };
        if tokens.is_empty() {
            return Ok(Self::All(Vec::new()));
        }
        let filter = if regular {
            parser.list()?
        } else {
            parser.all()?
        };
        match parser.rest.first() {
            None => Ok(filter),
            Some(token) => Err(NotAFilter(format!("unexpected {token:?}"))),
        }
    }

    /// Whether a resource fits.
    pub(crate) fn fits(&self, resource: &Value) -> bool {
        match self {
            Self::All(inner) => inner.iter().all(|one| one.fits(resource)),
            Self::Any(inner) => inner.iter().any(|one| one.fits(resource)),
            Self::Not(inner) => !inner.fits(resource),
            Self::Is(restriction) => restriction.fits(resource),
        }
    }

    /// The fields it names.
    pub(crate) fn fields(&self) -> Vec<&[String]> {
        match self {
            Self::All(inner) | Self::Any(inner) => inner.iter().flat_map(Self::fields).collect(),
            Self::Not(inner) => inner.fields(),
            Self::Is(restriction) => vec![&restriction.path],
        }
    }
}

impl Restriction {
    fn fits(&self, resource: &Value) -> bool {
        let mut values = Vec::new();
        collect(resource, &self.path, &mut values);
        values.into_iter().any(|value| match &self.test {
            Test::Present => true,
            Test::Equal(wanted) => equals(&text_of(value), wanted),
            Test::Matches(pattern) => pattern.is_match(&text_of(value)),
            Test::Ordered(wanted, than) => wanted.contains(&order(&text_of(value), than)),
        })
    }
}

/// The values at a path; arrays are looked through.
fn collect<'a>(value: &'a Value, path: &[String], out: &mut Vec<&'a Value>) {
    if let Value::Array(items) = value {
        for item in items {
            collect(item, path, out);
        }
    } else if let Some((first, rest)) = path.split_first() {
        if let Some(inner) = value.get(first) {
            collect(inner, rest, out);
        }
    } else {
        out.push(value);
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn equals(value: &str, wanted: &str) -> bool {
    match (wanted.strip_prefix('*'), wanted.strip_suffix('*')) {
        (Some(rest), Some(_)) => value.contains(rest.strip_suffix('*').unwrap_or(rest)),
        (Some(end), None) => value.ends_with(end),
        (None, Some(start)) => value.starts_with(start),
        (None, None) => value == wanted,
    }
}

/// Numbers by value, texts by letters.
fn order(value: &str, than: &str) -> Ordering {
    match (value.parse::<f64>(), than.parse::<f64>()) {
        (Ok(value), Ok(than)) => value.total_cmp(&than),
        _ => value.cmp(than),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, NotAFilter> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let operator = OPERATORS
            .iter()
            .find(|operator| rest.starts_with(**operator));
        rest = if let Some(operator) = operator {
            tokens.push(Token::Operator(operator));
            &rest[operator.len()..]
        } else if first == '(' || first == ')' {
            tokens.push(if first == '(' {
                Token::Open
            } else {
                Token::Close
            });
            &rest[1..]
        } else if first == '"' || first == '\'' {
            let (quoted, after) = quoted(rest, first)?;
            tokens.push(Token::Quoted(quoted));
            after
        } else {
            let is_end = |c: char| c.is_whitespace() || "()\"'=!<>:".contains(c);
            let end = rest.find(is_end).unwrap_or(rest.len());
            if end == 0 {
                return Err(NotAFilter(format!("unexpected '{first}'")));
            }
            tokens.push(Token::Word(rest[..end].to_owned()));
            &rest[end..]
        }
        .trim_start();
    }
    Ok(tokens)
}

/// A quoted text and what follows; a backslash takes the next character as it is.
fn quoted(text: &str, quote: char) -> Result<(String, &str), NotAFilter> {
    let mut out = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == quote {
            return Ok((out, &text[at + quote.len_utf8()..]));
        }
        match letter {
            '\\' => out.extend(letters.next().map(|(_, escaped)| escaped)),
            _ => out.push(letter),
        }
    }
    Err(NotAFilter("a quote isn't closed".to_owned()))
}

/// Whether a text is of the language with regular expressions: its second word is `eq` or `ne`.
fn is_regular(tokens: &[Token]) -> bool {
    let mut words = tokens.iter().filter(|token| **token != Token::Open);
    let second = words.nth(1);
    matches!(second, Some(Token::Word(word)) if word == "eq" || word == "ne")
}

struct Parser<'a> {
    rest: &'a [Token],
    regular: bool,
}

impl Parser<'_> {
    fn take(&mut self) -> Option<Token> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first.clone())
    }

    fn takes(&mut self, wanted: &Token) -> bool {
        let found = self.rest.first() == Some(wanted);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn takes_word(&mut self, wanted: &str) -> bool {
        self.takes(&Token::Word(wanted.to_owned()))
    }

    /// Expressions joined by `AND`, or side by side.
    fn all(&mut self) -> Result<Filter, NotAFilter> {
        let mut inner = vec![self.any()?];
        while self
            .rest
            .first()
            .is_some_and(|token| *token != Token::Close)
        {
            self.takes_word("AND");
            inner.push(self.any()?);
        }
        Ok(Filter::All(inner))
    }

    fn any(&mut self) -> Result<Filter, NotAFilter> {
        let mut inner = vec![self.one()?];
        while self.takes_word("OR") {
            inner.push(self.one()?);
        }
        Ok(Filter::Any(inner))
    }

    fn one(&mut self) -> Result<Filter, NotAFilter> {
        if self.takes_word("NOT") || self.takes_word("-") {
            return Ok(Filter::Not(Box::new(self.one()?)));
        }
        if self.takes(&Token::Open) {
            let inner = self.all()?;
            return self.close(inner);
        }
        self.restriction()
    }

    /// One expression with a regular expression, or several in parentheses.
    fn list(&mut self) -> Result<Filter, NotAFilter> {
        if self.rest.first() != Some(&Token::Open) {
            return self.restriction();
        }
        let mut inner = Vec::new();
        while self.takes(&Token::Open) {
            let one = self.restriction()?;
            inner.push(self.close(one)?);
        }
        Ok(Filter::All(inner))
    }

    fn close(&mut self, inner: Filter) -> Result<Filter, NotAFilter> {
        if self.takes(&Token::Close) {
            Ok(inner)
        } else {
            Err(NotAFilter("a parenthesis isn't closed".to_owned()))
        }
    }

    fn restriction(&mut self) -> Result<Filter, NotAFilter> {
        let path = match self.take() {
            Some(Token::Word(word)) => self.path(&word)?,
            other => return Err(NotAFilter(format!("expected a field, found {other:?}"))),
        };
        let operator = match self.take() {
            Some(Token::Operator(operator)) if !self.regular => operator.to_owned(),
            Some(Token::Word(word)) if self.regular && (word == "eq" || word == "ne") => word,
            other => return Err(NotAFilter(format!("expected an operator, found {other:?}"))),
        };
        let (value, is_quoted) = self.value()?;
        let (test, positive) = match &*operator {
            ":" if value == "*" && !is_quoted => (Test::Present, true),
            ":" | "=" => (Test::Equal(value), true),
            "!=" => (Test::Equal(value), false),
            "<" => (Test::Ordered(&[Ordering::Less], value), true),
            "<=" => (
                Test::Ordered(&[Ordering::Less, Ordering::Equal], value),
                true,
            ),
            ">" => (Test::Ordered(&[Ordering::Greater], value), true),
            ">=" => (
                Test::Ordered(&[Ordering::Greater, Ordering::Equal], value),
                true,
            ),
            word => {
                let pattern = Regex::new(&format!("^(?:{value})$"));
                let pattern = pattern.map_err(|error| NotAFilter(error.to_string()))?;
                (Test::Matches(pattern), word == "eq")
            }
        };
        let is = Filter::Is(Restriction { path, test });
        Ok(if positive {
            is
        } else {
            Filter::Not(Box::new(is))
        })
    }

    /// A field's path. A part may be quoted: `labels."a.b"=c`.
    fn path(&mut self, word: &str) -> Result<Vec<String>, NotAFilter> {
        let mut parts: Vec<String> = word.split('.').map(str::to_owned).collect();
        if parts.last().is_some_and(String::is_empty)
            && let Some(Token::Quoted(quoted)) = self.rest.first()
        {
            parts.pop();
            parts.push(quoted.clone());
            self.rest = &self.rest[1..];
        }
        if parts.iter().any(String::is_empty) || ["AND", "OR", "NOT"].contains(&word) {
            return Err(NotAFilter(format!("'{word}' isn't a field")));
        }
        Ok(parts)
    }

    /// A value, and whether it was quoted. A regular expression may hold what is an operator
    /// elsewhere, and parentheses, which then have to be closed.
    fn value(&mut self) -> Result<(String, bool), NotAFilter> {
        match self.take() {
            Some(Token::Quoted(text)) => Ok((text, true)),
            Some(Token::Word(word)) => {
                let mut value = word;
                // A URL has a colon.
                while let [Token::Operator(":"), Token::Word(next), ..] = self.rest {
                    value = format!("{value}:{next}");
                    self.rest = &self.rest[2..];
                }
                Ok((value, false))
            }
            other => Err(NotAFilter(format!("expected a value, found {other:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Filter;

    #[test]
    fn filters_fit_what_they_should() {
        let resource = json!({
            "name": "web-1",
            "status": "RUNNING",
            "labels": {"env": "prod", "nstance-slot": "0", "empty": "", "a.b": "c"},
            "scheduling": {"automaticRestart": false},
            "disks": [{"diskSizeGb": "10"}, {"diskSizeGb": "200"}],
            "zone": "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a",
        });
        for (text, expected) in [
            ("", true),
            ("name=web-1", true),
            ("name = \"web-1\"", true),
            ("name='web-1'", true),
            ("name=web-2", false),
            ("name!=web-2", true),
            ("name=web-*", true),
            ("name=*-1", true),
            ("name=*b*", true),
            ("name:web-1", true),
            ("labels.env=prod", true),
            ("labels.env:prod", true),
            ("labels.env:*", true),
            ("labels.nobody:*", false),
            ("labels.nobody!=x", true),
            ("labels.nstance-slot=0", true),
            ("labels.empty=\"\"", true),
            ("labels.\"a.b\"=c", true),
            ("labels.env=prod labels.nstance-slot=0", true),
            ("labels.env=prod AND labels.nstance-slot=1", false),
            ("(labels.env=prod) (labels.nstance-slot=0)", true),
            ("(labels.env=prod) AND (labels.nstance-slot=1)", false),
            ("(labels.env=prod) OR (labels.nstance-slot=1)", true),
            ("labels.env=dev OR labels.env=prod AND name=web-2", false),
            ("name=web-1 OR name=x AND labels.env=dev", false),
            ("((name=web-1) (labels.env=prod))", true),
            ("NOT name=web-1", false),
            ("NOT (name=web-2)", true),
            ("scheduling.automaticRestart=false", true),
            ("scheduling.automaticRestart = true", false),
            ("disks.diskSizeGb>100", true),
            ("disks.diskSizeGb>200", false),
            ("disks.diskSizeGb<=10", true),
            (
                "zone=https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a",
                true,
            ),
            ("name eq web-.*", true),
            ("name eq web", false),
            ("name eq 'web-(1|2)'", true),
            ("name ne .*-2", true),
            ("name ne \".*-1\"", false),
            ("(name eq web-.) (status ne STOPPED)", true),
            ("(name eq web-.) (status eq STOPPED)", false),
            ("labels.env eq pr.d", true),
        ] {
            let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert_eq!(filter.fits(&resource), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for text in [
            "name",
            "name=",
            "=web",
            "name=web AND",
            "AND name=web",
            "(name=web",
            "name=web)",
            "name=\"web",
            "name eq",
            "name eq (",
            "name eq a labels.b=c",
            "(name eq a) (labels.b=c)",
            "labels.=a",
            "name == a",
            "name=a !",
            "name eq '['",
        ] {
            assert!(Filter::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fields_are_named() {
        let filter = Filter::parse("(labels.a=b OR name:*) NOT status=c").unwrap();
        let fields: Vec<String> = filter.fields().iter().map(|path| path.join(".")).collect();
        assert_eq!(fields, ["labels.a", "name", "status"]);
    }
}

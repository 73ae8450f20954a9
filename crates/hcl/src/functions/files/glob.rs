//! The patterns of `fileset`. Comes in: a pattern; goes out: which paths match. `*` and `?` stop at
//! `/`, `**` is any number of folders, `{a,b}` is a choice, `[a-z]` one of several characters.

use regex::Regex;

/// The most patterns that one with braces stands for.
const MOST_CHOICES: usize = 1024;

/// A pattern without braces.
pub(super) struct Pattern {
    /// The folder that it starts in: all in front that isn't a pattern.
    pub(super) start: String,
    /// Of the rest, with a `/` behind.
    rest: Regex,
}

impl Pattern {
    /// What a pattern with braces stands for.
    pub(super) fn all(pattern: &str) -> Result<Vec<Self>, String> {
        let pattern = pattern.trim_start_matches('/');
        if pattern.is_empty() {
            return Ok(Vec::new());
        }
        let mut waiting = vec![pattern.to_owned()];
        let mut patterns = Vec::new();
        while let Some(pattern) = waiting.pop() {
            match choices(&pattern)? {
                Some(choices) => waiting.extend(choices),
                None => patterns.push(Self::new(&pattern)?),
            }
            if waiting.len() + patterns.len() > MOST_CHOICES {
                return Err(format!(
                    "The braces stand for more than {MOST_CHOICES} patterns"
                ));
            }
        }
        Ok(patterns)
    }

    fn new(pattern: &str) -> Result<Self, String> {
        let cleaned = super::path::clean(pattern);
        let names: Vec<&str> = cleaned.split('/').collect();
        let is_plain = |name: &&&str| !name.contains(['*', '?', '[', '\\']);
        let plain = names[..names.len() - 1].iter().take_while(is_plain).count();
        let (start, names) = names.split_at(plain);
        let mut rest = "^".to_owned();
        for name in names {
            match *name {
                "**" => rest.push_str("(?:[^/]*/)*"),
                name => {
                    expression(name, &mut rest)?;
                    rest.push('/');
                }
            }
        }
        let start = match start {
            [] => ".".to_owned(),
            folders => folders.join("/"),
        };
        let rest = Regex::new(&format!("{rest}$"));
        let rest = rest.map_err(|_| "The pattern has a `[` with an invalid range".to_owned())?;
        Ok(Self { start, rest })
    }

    /// `path` is relative to the start.
    pub(super) fn matches(&self, path: &str) -> bool {
        self.rest.is_match(&format!("{path}/"))
    }
}

/// The patterns that the first braces make of one; None if there are none.
fn choices(pattern: &str) -> Result<Option<Vec<String>>, String> {
    let mut starts = Vec::new();
    let (mut depth, mut end) = (0, None);
    let mut escaped = false;
    for (at, character) in pattern.char_indices() {
        match character {
            _ if escaped => {}
            '{' => {
                if depth == 0 {
                    starts.push(at);
                }
                depth += 1;
            }
            ',' if depth == 1 => starts.push(at),
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    end = Some(at);
                    break;
                }
            }
            _ => {}
        }
        escaped = !escaped && character == '\\';
    }
    let Some(&first) = starts.first() else {
        return Ok(None);
    };
    let Some(end) = end else {
        return Err("The pattern has a `{` that isn't closed".to_owned());
    };
    let ends = starts[1..].iter().chain([&end]);
    Ok(Some(
        starts
            .iter()
            .zip(ends)
            .map(|(start, stop)| {
                let (before, behind) = (&pattern[..first], &pattern[end + 1..]);
                format!("{before}{}{behind}", &pattern[start + 1..*stop])
            })
            .collect(),
    ))
}

/// Writes one name of a pattern as a regular expression.
fn expression(name: &str, out: &mut String) -> Result<(), String> {
    let mut characters = name.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => class(&mut characters, out)
                .ok_or("The pattern has a `[` that isn't closed, or with nothing in it")?,
            '\\' => literal(characters.next().ok_or("The pattern ends in `\\`")?, out),
            _ => literal(character, out),
        }
    }
    Ok(())
}

fn literal(character: char, out: &mut String) {
    out.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
}

/// What stands behind `[`.
fn class(characters: &mut std::str::Chars<'_>, out: &mut String) -> Option<()> {
    let start = if characters.as_str().starts_with('^') {
        characters.next();
        "[[^"
    } else {
        "[["
    };
    out.push_str(start);
    let begin = out.len();
    loop {
        let first = match characters.next()? {
            ']' if out.len() == begin => return None,
            ']' => break,
            '\\' => characters.next()?,
            character => character,
        };
        literal(first, out);
        if characters.as_str().starts_with('-') {
            characters.next();
            out.push('-');
            match characters.next()? {
                ']' => return None,
                '\\' => literal(characters.next()?, out),
                character => literal(character, out),
            }
        }
    }
    // A `/` only ever ends a name.
    out.push_str("]&&[^/]]");
    Some(())
}

//! The patterns of `fileset`. Comes in: a pattern; goes out: which paths match. `*` and `?` stop at
//! `/`, `**` is any number of folders, `{a,b}` is a choice, `[a-z]` one of several characters.

/// The most patterns that one with braces stands for.
const MOST_CHOICES: usize = 1024;

/// A pattern without braces.
pub(super) struct Pattern {
    /// The folder that it starts in: all in front that isn't a pattern.
    pub(super) start: String,
    parts: Vec<Part>,
}

enum Part {
    /// `**`
    Folders,
    Name(Vec<Token>),
}

enum Token {
    Character(char),
    One,
    Any,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
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
        let mut start = Vec::new();
        let mut parts = Vec::new();
        let names: Vec<&str> = cleaned.split('/').collect();
        let last = names.len() - 1;
        for (index, name) in names.into_iter().enumerate() {
            let tokens = tokens(name)?;
            let plain = tokens
                .iter()
                .map(|token| match token {
                    Token::Character(character) => Some(*character),
                    _ => None,
                })
                .collect::<Option<String>>();
            match plain {
                Some(name) if parts.is_empty() && index < last => start.push(name),
                _ if name == "**" => parts.push(Part::Folders),
                _ => parts.push(Part::Name(tokens)),
            }
        }
        let start = if start.is_empty() {
            ".".to_owned()
        } else {
            start.join("/")
        };
        Ok(Self { start, parts })
    }

    /// `path` is relative to the start.
    pub(super) fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        // Which numbers of names the parts so far can have taken.
        let mut taken = vec![false; names.len() + 1];
        taken[0] = true;
        for part in &self.parts {
            let mut next = vec![false; names.len() + 1];
            match part {
                Part::Folders => {
                    let first = taken.iter().position(|reached| *reached);
                    next[first.unwrap_or(names.len())..].fill(first.is_some());
                }
                Part::Name(tokens) => {
                    for (index, name) in names.iter().enumerate() {
                        next[index + 1] = taken[index] && name_matches(tokens, name);
                    }
                }
            }
            taken = next;
        }
        taken[names.len()]
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

fn tokens(name: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut characters = name.chars();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => Token::Any,
            '?' => Token::One,
            '[' => class(&mut characters)
                .ok_or("The pattern has a `[` that isn't closed, or with nothing in it")?,
            '\\' => Token::Character(characters.next().ok_or("The pattern ends in `\\`")?),
            _ => Token::Character(character),
        });
    }
    Ok(tokens)
}

/// What stands behind `[`.
fn class(characters: &mut std::str::Chars<'_>) -> Option<Token> {
    let negated = characters.as_str().starts_with('^');
    if negated {
        characters.next();
    }
    let mut ranges = Vec::new();
    loop {
        let first = match characters.next()? {
            ']' if ranges.is_empty() => return None,
            ']' => return Some(Token::Class { negated, ranges }),
            '\\' => characters.next()?,
            character => character,
        };
        let mut last = first;
        if characters.as_str().starts_with('-') {
            characters.next();
            last = match characters.next()? {
                ']' => return None,
                '\\' => characters.next()?,
                character => character,
            };
        }
        ranges.push((first, last));
    }
}

/// Goes back to the last `*` only: that is enough.
fn name_matches(tokens: &[Token], name: &str) -> bool {
    let letters: Vec<char> = name.chars().collect();
    let (mut token, mut letter) = (0, 0);
    let mut star = None;
    while letter < letters.len() {
        let fits = match tokens.get(token) {
            Some(Token::Any) => {
                star = Some((token, letter));
                token += 1;
                continue;
            }
            Some(Token::One) => true,
            Some(Token::Character(character)) => *character == letters[letter],
            Some(Token::Class { negated, ranges }) => {
                let within =
                    |(first, last): &(char, char)| (*first..=*last).contains(&letters[letter]);
                ranges.iter().any(within) != *negated
            }
            None => false,
        };
        if fits {
            token += 1;
            letter += 1;
        } else if let Some((at, from)) = star {
            token = at + 1;
            letter = from + 1;
            star = Some((at, letter));
        } else {
            return false;
        }
    }
    tokens[token..]
        .iter()
        .all(|token| matches!(token, Token::Any))
}

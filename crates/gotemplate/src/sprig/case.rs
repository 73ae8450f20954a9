//! Letters: upper and lower, and the ways of writing several words as one.
//!
//! In: bytes, in which what isn't UTF-8 counts as U+FFFD. Out: bytes.

use crate::unicode::decode;

/// The characters of a string.
pub(super) fn characters(bytes: &[u8]) -> Vec<char> {
    let mut rest = bytes;
    let mut characters = Vec::with_capacity(bytes.len());
    while !rest.is_empty() {
        let (character, width) = decode(rest);
        characters.push(character.unwrap_or('\u{fffd}'));
        rest = &rest[width..];
    }
    characters
}

/// The one character that is the upper case of another: Unicode's simple mapping.
pub(super) fn upper_of(character: char) -> char {
    match u32::from(character) {
        // The simple mapping of these is to title case, the full one to several letters.
        code @ (0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7) => shifted(code, 8),
        code @ (0x1fb3 | 0x1fc3 | 0x1ff3) => shifted(code, 9),
        _ => single(character.to_uppercase(), character),
    }
}

fn shifted(code: u32, by: u32) -> char {
    char::from_u32(code + by).unwrap_or('\u{fffd}')
}

pub(super) fn lower_of(character: char) -> char {
    match character {
        'İ' => 'i',
        _ => single(character.to_lowercase(), character),
    }
}

fn title_of(character: char) -> char {
    match character {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        // Georgian has capitals, but no title case.
        'ა'..='ჺ' | 'ჽ'..='ჿ' => character,
        _ => upper_of(character),
    }
}

fn single(mut mapped: impl ExactSizeIterator<Item = char>, otherwise: char) -> char {
    if mapped.len() == 1 {
        mapped.next().unwrap_or(otherwise)
    } else {
        otherwise
    }
}

pub(super) fn is_upper(character: char) -> bool {
    character.is_uppercase()
}

fn collect(characters: impl Iterator<Item = char>) -> Vec<u8> {
    characters.collect::<String>().into_bytes()
}

pub(super) fn upper(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_ascii() {
        return bytes.to_ascii_uppercase();
    }
    collect(characters(bytes).into_iter().map(upper_of))
}

pub(super) fn lower(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_ascii() {
        return bytes.to_ascii_lowercase();
    }
    collect(characters(bytes).into_iter().map(lower_of))
}

/// Whether words end before it, for Go's `strings.Title`.
fn separates(character: char) -> bool {
    match character {
        '_' => false,
        '\0'..='\x7f' => !character.is_ascii_alphanumeric(),
        _ => character.is_whitespace(),
    }
}

/// Changes characters, each told the one before it.
fn with_previous(bytes: &[u8], change: impl Fn(char, char) -> char) -> Vec<u8> {
    let mut previous = ' ';
    let changed = characters(bytes).into_iter().map(|character| {
        let changed = change(previous, character);
        previous = character;
        changed
    });
    collect(changed)
}

pub(super) fn title(bytes: &[u8]) -> Vec<u8> {
    with_previous(bytes, |previous, character| {
        if separates(previous) {
            title_of(character)
        } else {
            character
        }
    })
}

pub(super) fn untitle(bytes: &[u8]) -> Vec<u8> {
    with_previous(bytes, |previous, character| {
        if previous.is_whitespace() {
            lower_of(character)
        } else {
            character
        }
    })
}

pub(super) fn swap(bytes: &[u8]) -> Vec<u8> {
    with_previous(bytes, |previous, character| {
        if is_upper(character) {
            lower_of(character)
        } else if previous.is_whitespace() {
            title_of(character)
        } else if character.is_lowercase() {
            upper_of(character)
        } else {
            character
        }
    })
}

fn connects(character: char) -> bool {
    matches!(character, ' ' | '-' | '_')
}

/// Words with capitals and nothing between them. Of several connecting characters all but one stay.
pub(super) fn camel(bytes: &[u8]) -> Vec<u8> {
    let all = characters(bytes);
    let leading = all.iter().take_while(|each| connects(**each)).count();
    let mut made: String = all[..leading].iter().collect();
    if leading == all.len() {
        // With no word to begin, the last one is there once more.
        made.extend(all.last());
    }
    let mut begins = true;
    for (index, character) in all.iter().copied().enumerate().skip(leading) {
        if connects(character) {
            let next = all[index..].iter().find(|next| !connects(**next));
            let last = all.get(index + 1).is_some_and(|next| !connects(*next));
            if next.is_none() || !last {
                made.push(character);
            }
            begins = true;
        } else if begins {
            made.push(upper_of(character));
            begins = false;
        } else {
            made.push(lower_of(character));
        }
    }
    made.into_bytes()
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Upper,
    Digit,
    Connects,
    Other,
    Mark,
}

fn class(character: char) -> Class {
    match character {
        _ if connects(character) => Class::Connects,
        _ if is_upper(character) => Class::Upper,
        _ if character.is_numeric() => Class::Digit,
        _ if character.is_alphabetic() => Class::Other,
        _ => Class::Mark,
    }
}

/// Words in small letters with a connecting character between them.
pub(super) fn connected(bytes: &[u8], connector: char) -> Vec<u8> {
    let all = characters(bytes);
    let classes: Vec<Class> = all.iter().copied().map(class).collect();
    let at = |index: usize| classes.get(index).copied().unwrap_or(Class::Connects);
    let mut made = String::new();
    // Whether the word began with a digit: such a one takes digits and small letters alike.
    let mut numeral = false;
    let mut fresh = true;
    // After another mark, the connecting ones are marks like it.
    let mut marks = false;
    for index in 0..all.len() {
        if marks && matches!(all[index], '-' | '_') {
            made.push(all[index]);
            continue;
        }
        marks = at(index) == Class::Mark;
        if marks {
            made.push(all[index]);
            fresh = true;
            continue;
        }
        if at(index) == Class::Connects {
            made.push(connector);
            fresh = true;
            continue;
        }
        let previous = if index == 0 {
            Class::Connects
        } else {
            at(index - 1)
        };
        let begins = match at(index) {
            Class::Upper => match previous {
                Class::Upper => at(index + 1) == Class::Other,
                Class::Other | Class::Digit => true,
                _ => false,
            },
            Class::Digit if previous != Class::Digit && !numeral => {
                let after = classes[index..]
                    .iter()
                    .position(|each| *each != Class::Digit);
                after.is_some_and(|after| at(index + after) == Class::Other)
                    && matches!(previous, Class::Upper | Class::Other)
            }
            _ => false,
        };
        if begins {
            made.push(connector);
        }
        if begins || fresh {
            numeral = at(index) == Class::Digit;
            fresh = false;
        }
        made.push(lower_of(all[index]));
    }
    made.into_bytes()
}

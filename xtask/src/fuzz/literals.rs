//! Literals of every kind that Go's lexer knows, and some that it doesn't.
//!
//! In: chance. Out: source text. May not: promise that it is valid.

use super::random::Random;

/// Characters that something treats specially, somewhere.
const ODD: &str = "\0\x01\x07\x08\x1b\x7f\u{80}\u{85}\u{a0}\u{ad}éßİŉ\u{301}日本\u{200b}\u{200d}\u{2028}\u{2029}\u{202e}\u{feff}\u{fffd}\u{e000}🚀\u{10ffff}";
const PLAIN: &str = "abcXYZ019 \t\n_-+.,:;%#&<>'\"\\/=?~`{}|()";

pub(super) const NUMBERS: [&str; 36] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-7",
    "10",
    "97",
    "255",
    "256",
    "0x1F",
    "0X1f",
    "0b101",
    "0o17",
    "017",
    "08",
    "1_000",
    "0_7",
    "0x_1p-2",
    "1e3",
    "1E+3",
    "1e-7",
    "1e21",
    "1e20",
    "1.",
    ".5",
    "1.5",
    "-0.0",
    "0.1",
    "1e400",
    "9223372036854775807",
    "9223372036854775808",
    "1i",
    "1+2i",
    "-9223372036854775808",
    "18446744073709551616",
];

/// A string, without quotes: characters that are plain, odd or any at all.
pub(super) fn text(random: &mut Random) -> String {
    (0..random.below(8)).map(|_| character(random)).collect()
}

pub(super) fn character(random: &mut Random) -> char {
    match random.below(8) {
        0..5 => random.character(PLAIN),
        5 | 6 => random.character(ODD),
        _ => char::from_u32(random.below(0x3_2000) as u32).unwrap_or('\u{fffd}'),
    }
}

/// A literal of any kind.
pub(super) fn any(random: &mut Random) -> String {
    match random.below(8) {
        0 | 1 => number(random),
        2 | 3 => string(random),
        4 => raw_string(random),
        5 => rune(random),
        6 => format!("{:?}", format(random)),
        _ => random
            .pick(&["true", "false", "nil", "\"\"", "``", "."])
            .to_owned(),
    }
}

pub(super) fn number(random: &mut Random) -> String {
    if random.one_in(2) {
        return random.pick(&NUMBERS).to_owned();
    }
    let sign = random.pick(&["", "", "", "-", "+"]);
    let (prefix, alphabet) = match random.below(8) {
        0 => ("0x", "0123456789abcdefABCDEF_."),
        1 => ("0b", "01_"),
        2 => ("0o", "01234567_"),
        3 => ("0", "01234567_89"),
        _ => ("", "0123456789_."),
    };
    let digits = |random: &mut Random, most: usize| -> String {
        let count = random.between(1, most);
        // Underscores and points are rare.
        let digit = |random: &mut Random| match random.character(alphabet) {
            '_' | '.' if !random.one_in(3) => '0',
            digit => digit,
        };
        (0..count).map(|_| digit(random)).collect()
    };
    let most = if random.one_in(4) { 24 } else { 6 };
    let mut text = format!("{sign}{prefix}{}", digits(random, most));
    if random.one_in(3) {
        text.push_str(random.pick(&["e", "E", "p", "P", "."]));
        text.push_str(random.pick(&["", "-", "+"]));
        text.push_str(&random.below(400).to_string());
    }
    if random.one_in(12) {
        text.push('i');
    } else if random.one_in(20) {
        text.push_str(&format!(
            "{}{}i",
            random.pick(&["+", "-"]),
            random.below(30)
        ));
    }
    text
}

/// An interpreted string with every kind of escape.
pub(super) fn string(random: &mut Random) -> String {
    let inner: String = (0..random.below(6)).map(|_| unit(random, '"')).collect();
    format!("\"{inner}\"")
}

fn raw_string(random: &mut Random) -> String {
    let inner = text(random).replace('`', "\r\n");
    format!("`{inner}`")
}

fn rune(random: &mut Random) -> String {
    let count = if random.one_in(12) {
        random.below(3)
    } else {
        1
    };
    let inner: String = (0..count).map(|_| unit(random, '\'')).collect();
    format!("'{inner}'")
}

/// A character between quotes, escaped where it has to be, and now and then where it needn't.
fn unit(random: &mut Random, quote: char) -> String {
    match random.below(10) {
        0 => format!("\\{}", random.character("abfnrtv\\'\"")),
        1 => format!("\\x{:02x}", random.below(256)),
        2 => format!("\\{:03o}", random.below(300)),
        3 => format!("\\u{:04x}", random.below(0x1_0000)),
        4 => format!("\\U{:08X}", random.below(0x11_2000)),
        5 if random.one_in(6) => format!("\\{}", character(random)),
        _ => match character(random) {
            '\n' => "\\n".to_owned(),
            character if character == quote || character == '\\' => format!("\\{character}"),
            character => character.to_string(),
        },
    }
}

/// A format for `printf`, unquoted: verbs under flags, widths, precisions and indices.
pub(super) fn format(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.between(1, 3) {
        if random.one_in(4) {
            text.push(random.character("abc |%é"));
        }
        text.push_str(&verb(random));
    }
    text
}

fn verb(random: &mut Random) -> String {
    let mut text = "%".to_owned();
    while random.one_in(2) {
        text.push(random.character("+-# 0"));
    }
    let index = |random: &mut Random| -> String {
        if random.one_in(12) {
            let inside = random.pick(&["1", "2", "3", "0", "9", "", "x", "-1", "99999999"]);
            format!("[{inside}]")
        } else {
            String::new()
        }
    };
    let amount = |random: &mut Random| match random.below(10) {
        0 => "*".to_owned(),
        1 if random.one_in(30) => random.pick(&["1000000", "1000001", "999"]).to_owned(),
        1 => random.between(20, 120).to_string(),
        2 => "0".to_owned(),
        3 => String::new(),
        _ => random.between(1, 12).to_string(),
    };
    if random.one_in(3) {
        text.push_str(&index(random));
        text.push_str(&amount(random));
    }
    if random.one_in(3) {
        text.push('.');
        text.push_str(&index(random));
        text.push_str(&amount(random));
    }
    text.push_str(&index(random));
    text.push(match random.below(30) {
        0 => character(random),
        _ => random.character("vvvdsqxXtTbcoOUeEfFgGw%"),
    });
    text
}

//! `textencodebase64` and `textdecodebase64`. Come in: texts, and the names that IANA has for
//! encodings. Go out: the encoded bytes in base64, and back. Not one character is replaced by
//! another: what can't be said is an error.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::pages::PAGES;
use super::{CallError, Context, Value, lenient, text};

enum Charset {
    /// Big-endian or not; `true` behind it if a mark says which.
    Utf16(bool, bool),
    /// What bytes from 128 mean.
    Bytes(Vec<char>),
    Library(&'static encoding_rs::Encoding),
}

/// The aliases of IANA that are in use and that the library doesn't know, or takes for another.
const ALIASES: &[(&str, &str)] = &[
    ("ansi_x3.4-1968", "us-ascii"),
    ("ansi_x3.4-1986", "us-ascii"),
    ("iso646-us", "us-ascii"),
    ("iso_646.irv:1991", "us-ascii"),
    ("iso-ir-6", "us-ascii"),
    ("cp367", "us-ascii"),
    ("ibm367", "us-ascii"),
    ("us", "us-ascii"),
    ("csascii", "us-ascii"),
    ("iso_8859-1:1987", "iso-8859-1"),
    ("iso_8859-1", "iso-8859-1"),
    ("iso-ir-100", "iso-8859-1"),
    ("latin1", "iso-8859-1"),
    ("l1", "iso-8859-1"),
    ("cp819", "iso-8859-1"),
    ("ibm819", "iso-8859-1"),
    ("csisolatin1", "iso-8859-1"),
    ("iso_8859-9:1989", "iso-8859-9"),
    ("iso_8859-9", "iso-8859-9"),
    ("iso-ir-148", "iso-8859-9"),
    ("latin5", "iso-8859-9"),
    ("l5", "iso-8859-9"),
    ("csisolatin5", "iso-8859-9"),
    ("cspc8codepage437", "ibm437"),
    ("cspc850multilingual", "ibm850"),
    ("cspcp852", "ibm852"),
    ("ibm00858", "ibm858"),
    ("ccsid00858", "ibm858"),
    ("cp00858", "ibm858"),
    ("pc-multilingual-850+euro", "ibm858"),
];

/// Labels of the web that IANA doesn't have, or means otherwise.
const NOT_OF_IANA: [&str; 5] = ["ascii", "unicode", "x-user-defined", "replacement", "utf8"];

fn charset(name: &str) -> Option<Charset> {
    let lower = name.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == lower);
    let lower = alias.map_or(&*lower, |(_, name)| name);
    let latin = || (128..256).filter_map(char::from_u32);
    let charset = match lower {
        "utf-16" => Charset::Utf16(true, true),
        "utf-16be" => Charset::Utf16(true, false),
        "utf-16le" => Charset::Utf16(false, false),
        "us-ascii" => Charset::Bytes(Vec::new()),
        "iso-8859-1" => Charset::Bytes(latin().collect()),
        "iso-8859-9" => Charset::Bytes(
            latin()
                .map(|letter| match letter {
                    'Ð' => 'Ğ',
                    'Ý' => 'İ',
                    'Þ' => 'Ş',
                    'ð' => 'ğ',
                    'ý' => 'ı',
                    'þ' => 'ş',
                    _ => letter,
                })
                .collect(),
        ),
        _ if NOT_OF_IANA.contains(&lower) => return None,
        _ => {
            let number = lower.strip_prefix("ibm").or(lower.strip_prefix("cp"));
            let number = number.unwrap_or(lower);
            match PAGES.iter().find(|(page, _)| page[3..] == *number) {
                Some((_, page)) => Charset::Bytes(page.chars().collect()),
                None => {
                    let label = lower.as_bytes();
                    Charset::Library(encoding_rs::Encoding::for_label_no_replacement(label)?)
                }
            }
        }
    };
    Some(charset)
}

fn named(arguments: &[Value]) -> Result<Charset, CallError> {
    let name = text(arguments, 1)?;
    charset(name).ok_or_else(|| {
        let message = format!("IANA's list has no encoding {name:?}, or it isn't known here");
        CallError::argument(1, message)
    })
}

pub(super) fn encode(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let text = text(arguments, 0)?;
    context.charge_bytes(text.len().saturating_mul(3))?;
    let bytes = named(arguments)?.encode(text).ok_or_else(|| {
        CallError::argument(
            0,
            "The string has characters that the encoding doesn't have",
        )
    })?;
    Ok(STANDARD.encode(bytes).into())
}

pub(super) fn decode(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let bytes = lenient(text(arguments, 0)?)?;
    context.charge_bytes(bytes.len().saturating_mul(3))?;
    match named(arguments)?.decode(&bytes) {
        Some(text) if !text.contains(char::REPLACEMENT_CHARACTER) => Ok(Value::string(text)),
        _ => {
            let message = "What is encoded has bytes that mean nothing in the encoding";
            Err(CallError::argument(0, message))
        }
    }
}

impl Charset {
    fn encode(&self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Utf16(big, marked) => {
                let mark = marked.then_some(0xfeff);
                let units = mark.into_iter().chain(text.encode_utf16());
                let bytes = |unit: u16| {
                    if *big {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    }
                };
                Some(units.flat_map(bytes).collect())
            }
            Self::Bytes(page) => text
                .chars()
                .map(|letter| {
                    if letter.is_ascii() {
                        return u8::try_from(letter).ok();
                    }
                    let at = page.iter().position(|known| *known == letter)?;
                    u8::try_from(at + 128).ok()
                })
                .collect(),
            Self::Library(encoding) => {
                let (bytes, _, replaced) = encoding.encode(text);
                (!replaced).then(|| bytes.into_owned())
            }
        }
    }

    fn decode(&self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Utf16(big, marked) => {
                let (big, bytes) = match bytes {
                    [0xff, 0xfe, rest @ ..] if *marked => (false, rest),
                    [0xfe, 0xff, rest @ ..] if *marked => (true, rest),
                    _ => (*big, bytes),
                };
                let (pairs, []) = bytes.as_chunks::<2>() else {
                    return None;
                };
                let units = pairs.iter().map(|pair| {
                    if big {
                        u16::from_be_bytes(*pair)
                    } else {
                        u16::from_le_bytes(*pair)
                    }
                });
                char::decode_utf16(units)
                    .collect::<Result<String, _>>()
                    .ok()
            }
            Self::Bytes(page) => bytes
                .iter()
                .map(|byte| match byte {
                    0..128 => Some(char::from(*byte)),
                    _ => page.get(usize::from(*byte) - 128).copied(),
                })
                .collect(),
            Self::Library(encoding) => encoding
                .decode_without_bom_handling_and_without_replacement(bytes)
                .map(std::borrow::Cow::into_owned),
        }
    }
}

//! Encodings and digests.

use std::fmt::Write as _;

use sha1::Digest;

use super::arguments::{bytes, string};
use super::{Entry, entry};
use crate::function::Kind::Str;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("b64enc", "S", "S in base64", &[Str], |_, a| {
        string(BASE64.encode(bytes(&a[0])))
    }),
    entry(
        "b64dec",
        "S",
        "what is S in base64; the error where it isn't base64",
        &[Str],
        |_, a| decoded(&BASE64, &a[0]),
    ),
    entry("b32enc", "S", "S in base32", &[Str], |_, a| {
        string(BASE32.encode(bytes(&a[0])))
    }),
    entry(
        "b32dec",
        "S",
        "what is S in base32; the error where it isn't base32",
        &[Str],
        |_, a| decoded(&BASE32, &a[0]),
    ),
    entry(
        "sha1sum",
        "S",
        "the SHA-1 digest of S, in hexadecimal",
        &[Str],
        |_, a| string(hexadecimal(&sha1::Sha1::digest(bytes(&a[0])))),
    ),
    entry(
        "sha256sum",
        "S",
        "the SHA-256 digest of S, in hexadecimal",
        &[Str],
        |_, a| string(hexadecimal(&sha2::Sha256::digest(bytes(&a[0])))),
    ),
    entry(
        "sha512sum",
        "S",
        "the SHA-512 digest of S, in hexadecimal",
        &[Str],
        |_, a| string(hexadecimal(&sha2::Sha512::digest(bytes(&a[0])))),
    ),
    entry(
        "adler32sum",
        "S",
        "the Adler-32 checksum of S",
        &[Str],
        |_, a| string(adler32(bytes(&a[0])).to_string()),
    ),
];

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    high << 16 | low
}

/// A base of a power of two, with `=` to fill up groups.
struct Base {
    name: &'static str,
    alphabet: &'static [u8],
    /// Bits that a digit stands for.
    bits: u32,
    /// Digits in a group.
    group: usize,
}

const BASE64: Base = Base {
    name: "base64",
    alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    bits: 6,
    group: 4,
};

const BASE32: Base = Base {
    name: "base32",
    alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    bits: 5,
    group: 8,
};

fn decoded(base: &Base, value: &Value) -> super::Outcome {
    match base.decode(bytes(value)) {
        Ok(bytes) => string(bytes),
        Err(at) => string(format!("illegal {} data at input byte {at}", base.name)),
    }
}

impl Base {
    fn encode(&self, bytes: &[u8]) -> Vec<u8> {
        let mut made = Vec::with_capacity(bytes.len() * 8 / self.bits as usize + self.group);
        let (mut held, mut count) = (0_u32, 0);
        let digit = |held: u32| self.alphabet[(held & ((1 << self.bits) - 1)) as usize];
        for byte in bytes {
            held = held << 8 | u32::from(*byte);
            count += 8;
            while count >= self.bits {
                count -= self.bits;
                made.push(digit(held >> count));
            }
        }
        if count > 0 {
            made.push(digit(held << (self.bits - count)));
        }
        while made.len() % self.group != 0 {
            made.push(b'=');
        }
        made
    }

    /// The bytes of a group's digits.
    fn bytes_of(&self, group: &[u8], made: &mut Vec<u8>) {
        let (mut held, mut count) = (0_u64, 0);
        for digit in group {
            held = held << self.bits | u64::from(*digit);
            count += self.bits;
        }
        while count >= 8 {
            count -= 8;
            made.push((held >> count) as u8);
        }
    }

    fn digit(&self, byte: u8) -> Option<u8> {
        let found = self.alphabet.iter().position(|known| *known == byte)?;
        Some(found as u8)
    }

    /// The bytes, or where Go says that the text is wrong: it has its own ways of counting.
    fn decode(&self, text: &[u8]) -> Result<Vec<u8>, usize> {
        let is_break = |byte: u8| matches!(byte, b'\r' | b'\n');
        if self.bits == 6 {
            return self.decode_64(text, is_break);
        }
        let kept: Vec<u8> = text
            .iter()
            .copied()
            .filter(|byte| !is_break(*byte))
            .collect();
        self.decode_32(&kept)
    }

    fn decode_64(&self, text: &[u8], is_break: impl Fn(u8) -> bool) -> Result<Vec<u8>, usize> {
        let next = |from: usize| (from..text.len()).find(|at| !is_break(text[*at]));
        let mut made = Vec::new();
        let mut group = Vec::with_capacity(self.group);
        let mut from = 0;
        while let Some(at) = next(from) {
            from = at + 1;
            if let Some(digit) = self.digit(text[at]) {
                group.push(digit);
                if group.len() == self.group {
                    self.bytes_of(&group, &mut made);
                    group.clear();
                }
                continue;
            }
            if text[at] != b'=' || group.len() < 2 {
                return Err(at);
            }
            if group.len() == 2 {
                match next(from) {
                    None => return Err(text.len()),
                    Some(second) if text[second] != b'=' => return Err(second - 1),
                    Some(second) => from = second + 1,
                }
            }
            self.bytes_of(&group, &mut made);
            return match next(from) {
                None => Ok(made),
                Some(more) => Err(more),
            };
        }
        if group.is_empty() {
            Ok(made)
        } else {
            Err(text.len() - group.len())
        }
    }

    fn decode_32(&self, text: &[u8]) -> Result<Vec<u8>, usize> {
        let mut made = Vec::new();
        let mut group = Vec::with_capacity(self.group);
        for (at, byte) in text.iter().enumerate() {
            let rest = &text[at + 1..];
            if *byte == b'=' && group.len() >= 2 && rest.len() < self.group {
                let missing = self.group - 1 - group.len();
                if rest.len() < missing {
                    return Err(text.len());
                }
                if let Some(wrong) = rest[..missing].iter().position(|byte| *byte != b'=') {
                    return Err(at + wrong);
                }
                if matches!(group.len(), 3 | 6) {
                    return Err(at);
                }
                self.bytes_of(&group, &mut made);
                return Ok(made);
            }
            group.push(self.digit(*byte).ok_or(at)?);
            if group.len() == self.group {
                self.bytes_of(&group, &mut made);
                group.clear();
            }
        }
        if group.is_empty() {
            Ok(made)
        } else {
            Err(text.len() - group.len())
        }
    }
}

//! Encodings and digests.

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
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
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

    /// The bytes, or where Go says that the text is wrong.
    fn decode(&self, text: &[u8]) -> Result<Vec<u8>, usize> {
        // Line breaks count in base64's places, and don't in base32's.
        let counts = self.bits == 6;
        let digits: Vec<(usize, u8)> = text
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'))
            .collect();
        let place = |index: usize| match digits.get(index) {
            Some((at, _)) if counts => *at,
            None if counts => text.len(),
            _ => index,
        };
        let mut made = Vec::new();
        for (number, group) in digits.chunks(self.group).enumerate() {
            let start = number * self.group;
            let (mut held, mut count) = (0_u64, 0);
            let data = group.iter().position(|(_, byte)| *byte == b'=');
            for (index, (_, byte)) in group[..data.unwrap_or(group.len())].iter().enumerate() {
                let Some(digit) = self.alphabet.iter().position(|known| known == byte) else {
                    return Err(place(start + index));
                };
                held = held << self.bits | digit as u64;
                count += self.bits;
            }
            match data {
                None if group.len() < self.group => {
                    return Err(match counts {
                        true => text.len() - group.len(),
                        false => start,
                    });
                }
                None => {}
                Some(data) => {
                    self.check_padding(group, data)
                        .map_err(|at| place(start + at))?;
                    let after = start + self.group;
                    if digits.len() > after {
                        return Err(place(after));
                    }
                }
            }
            while count >= 8 {
                count -= 8;
                made.push((held >> count) as u8);
            }
        }
        Ok(made)
    }

    /// Whether a group that has `data` digits is filled up as it must be; else where it isn't.
    fn check_padding(&self, group: &[(usize, u8)], data: usize) -> Result<(), usize> {
        let whole = match self.bits {
            6 => data >= 2,
            _ => matches!(data, 2 | 4 | 5 | 7),
        };
        if !whole {
            return Err(data);
        }
        match (data..self.group).find(|at| group.get(*at).is_none_or(|(_, byte)| *byte != b'=')) {
            None => Ok(()),
            Some(at) if group.len() <= at => Err(at),
            Some(at) => Err(at - 1),
        }
    }
}

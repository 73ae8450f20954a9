//! `rsadecrypt`. Come in: what was encrypted with PKCS #1 v1.5, in base64, and the private key in
//! PEM. Goes out: the text.
//!
//! Whoever can time this has the key's file anyway, so nothing is done to hide how long it takes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;

use super::{CallError, Parameter, Signature, text};
use crate::context::Context;
use crate::value::Value;

/// The longest modulus in bytes: 16,384 bits. What is longer takes too long.
const LONGEST: usize = 2048;

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

pub(super) fn signatures() -> Vec<Signature> {
    vec![Signature::new(
        "rsadecrypt",
        [
            Parameter::string("ciphertext"),
            Parameter::string("privatekey"),
        ],
        decrypt,
    )]
}

fn decrypt(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let encrypted = super::encoding::lenient(text(arguments, 0)?)?;
    let (modulus, exponent) = private_key(text(arguments, 1)?).ok_or_else(|| {
        CallError::argument(
            1,
            "This isn't an RSA key in PEM, unencrypted: `BEGIN RSA PRIVATE KEY` or \
             `BEGIN PRIVATE KEY`",
        )
    })?;
    let failed = || CallError::argument(0, "This wasn't encrypted for the key");
    let length = modulus.bits().div_ceil(8) as usize;
    let number = BigUint::from_bytes_be(&encrypted);
    if encrypted.len() > length || number >= modulus {
        return Err(failed());
    }
    let decrypted = number.modpow(&exponent, &modulus).to_bytes_be();
    // 0 (which the number hasn't), 2, eight bytes or more that aren't 0, 0, the text
    if decrypted.len() + 1 != length || decrypted[0] != 2 {
        return Err(failed());
    }
    let end = decrypted.iter().position(|byte| *byte == 0);
    let end = end.filter(|end| *end > 8).ok_or_else(failed)?;
    String::from_utf8(decrypted[end + 1..].to_vec())
        .map(Value::string)
        .map_err(|_| CallError::argument(0, "What is encrypted isn't text in UTF-8"))
}

/// Its modulus and private exponent.
fn private_key(pem: &str) -> Option<(BigUint, BigUint)> {
    let (_, behind) = pem.split_once("-----BEGIN ")?;
    let (kind, behind) = behind.split_once("-----")?;
    let (body, _) = behind.split_once("-----END ")?;
    let body: String = body.split_whitespace().collect();
    let bytes = STANDARD.decode(body).ok()?;
    let mut der = Der(&bytes);
    let mut fields = Der(der.take(SEQUENCE)?);
    match kind {
        "RSA PRIVATE KEY" => {}
        "PRIVATE KEY" => {
            fields.take(INTEGER)?;
            fields.take(SEQUENCE)?;
            fields = Der(Der(fields.take(OCTETS)?).take(SEQUENCE)?);
        }
        _ => return None,
    }
    fields.take(INTEGER)?;
    let modulus = BigUint::from_bytes_be(fields.take(INTEGER)?);
    fields.take(INTEGER)?;
    let exponent = BigUint::from_bytes_be(fields.take(INTEGER)?);
    let size = modulus.bits().div_ceil(8) as usize;
    (11..=LONGEST).contains(&size).then_some(())?;
    (exponent < modulus).then_some((modulus, exponent))
}

/// What is left of a text in DER.
struct Der<'t>(&'t [u8]);

impl<'t> Der<'t> {
    /// The content of the next element, which is of this kind.
    fn take(&mut self, kind: u8) -> Option<&'t [u8]> {
        let [found, first, rest @ ..] = self.0 else {
            return None;
        };
        let (length, rest) = if *first < 128 {
            (usize::from(*first), rest)
        } else {
            let (digits, rest) = rest.split_at_checked(usize::from(*first) - 128)?;
            let fits = digits.len() <= 4;
            let length = digits.iter().fold(0, |length: usize, digit| {
                length.wrapping_shl(8) | usize::from(*digit)
            });
            (fits.then_some(length)?, rest)
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (*found == kind).then_some(content)
    }
}

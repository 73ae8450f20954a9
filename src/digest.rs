//! SHA-256 in hexadecimal.
//!
//! In: bytes. Out: text. May not: know what is digested.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Two hexadecimal digits a byte.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string doesn't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The SHA-256 of bytes, 64 digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

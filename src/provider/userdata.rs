//! User data as clouds give it back, made readable.
//!
//! In: bytes. Out: text. May not: fail; what can't be read is shown as it came.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The most that gzipped userdata may unpack to.
const UNPACKED_LIMIT: u64 = 64 << 20;

/// Unpacked where it is gzipped, in base64 where it isn't UTF-8.
pub(super) fn readable(bytes: Vec<u8>) -> String {
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let mut reader = flate2::read::MultiGzDecoder::new(&bytes[..]).take(UNPACKED_LIMIT);
        match reader.read_to_end(&mut unpacked) {
            Ok(_) => unpacked,
            // A cloud takes bytes as they come; the instance would find out.
            Err(_) => bytes,
        }
    } else {
        bytes
    };
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => BASE64.encode(error.as_bytes()),
    }
}

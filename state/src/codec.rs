//! Compresses content that is stored once and read rarely.
//!
//! In: bytes. Out: a zlib stream, whose checksum detects damage; and the reverse. Must not: touch
//! files or the database.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// The compression level.
#[derive(Clone, Copy)]
pub(crate) enum Effort {
    /// For short-lived content.
    Low,
    /// For permanent content.
    Normal,
}

/// Compresses `bytes`.
pub(crate) fn pack(bytes: &[u8], effort: Effort) -> Vec<u8> {
    let level = match effort {
        Effort::Low => Compression::fast(),
        Effort::Normal => Compression::default(),
    };
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 4 + 64), level);
    encoder
        .write_all(bytes)
        .expect("writing to a vector can't fail");
    encoder.finish().expect("writing to a vector can't fail")
}

/// Decompresses bytes, which must have length `size`; that bounds the memory which a damaged stream
/// can use.
///
/// Fails if the stream is damaged, or its length differs.
pub(crate) fn unpack(packed: &[u8], size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size);
    // One more byte, to detect a longer stream.
    ZlibDecoder::new(packed)
        .take(size as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() != size {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} bytes were to be {size}", bytes.len()),
        ));
    }
    Ok(bytes)
}

/// Combines a text and bytes, to compress and encrypt them together.
pub(crate) fn join(text: &str, bytes: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(8 + text.len() + bytes.len());
    joined.extend((text.len() as u64).to_le_bytes());
    joined.extend(text.as_bytes());
    joined.extend(bytes);
    joined
}

/// Splits what [`join`] combined.
///
/// Fails if the bytes are damaged.
pub(crate) fn split(joined: &[u8]) -> io::Result<(&str, &[u8])> {
    let split = || {
        let (length, rest) = joined.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (text, bytes) = rest.split_at_checked(length)?;
        Some((str::from_utf8(text).ok()?, bytes))
    };
    split().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no text before its bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        for bytes in [
            &b""[..],
            b"a",
            &[0; 10_000],
            "{\"userdata\": \"ä\"}".as_bytes(),
        ] {
            for effort in [Effort::Low, Effort::Normal] {
                assert_eq!(unpack(&pack(bytes, effort), bytes.len()).unwrap(), bytes);
            }
        }
    }

    #[test]
    fn what_is_joined_is_split() {
        for (text, bytes) in [("", &b""[..]), ("https://a/ä", b""), ("a", b"\0\xff")] {
            assert_eq!(split(&join(text, bytes)).unwrap(), (text, bytes));
        }
        for damaged in [
            &b""[..],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[255; 9],
            &[1, 0, 0, 0, 0, 0, 0, 0, 255],
        ] {
            assert!(split(damaged).is_err());
        }
    }

    #[test]
    fn another_size_and_damage_are_noticed() {
        let packed = pack(&[7; 5000], Effort::Normal);
        assert!(unpack(&packed, 4999).is_err());
        assert!(unpack(&packed, 5001).is_err());
        assert!(unpack(&packed[..packed.len() - 6], 5000).is_err());
        let mut damaged = packed;
        *damaged.last_mut().unwrap() ^= 1;
        assert!(unpack(&damaged, 5000).is_err());
    }
}

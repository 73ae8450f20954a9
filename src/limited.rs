//! Reading what may be larger than anybody meant it to be.
//!
//! In: a file or a stream, and how much of it is read at most. Out: bytes, or an error that names the
//! limit. May not: know what is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// All that there is to read, of which no more than `limit` bytes are.
pub(crate) fn read(source: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    read_into(Vec::new(), source, limit)
}

/// The bytes of a file of no more than `limit`. They are written to memory once, unless it grows
/// meanwhile.
pub(crate) fn read_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    if size > limit {
        return Err(too_large(limit));
    }
    // A pipe or a device doesn't say how much there is, and a file may grow.
    read_into(Vec::with_capacity(size as usize + 1), file, limit)
}

/// The same, which has to be text.
pub(crate) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read_file(path, limit)?;
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it isn't UTF-8"))
}

fn read_into(mut bytes: Vec<u8>, source: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    source.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(limit));
    }
    Ok(bytes)
}

fn too_large(limit: u64) -> io::Error {
    let limit = match limit >> 20 {
        0 => format!("{limit} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    };
    let why = format!("it has more than {limit}, which is the most that is read");
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_file(&path, 5).unwrap(), b"12345");
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        assert_eq!(read(&b"12345"[..], 5).unwrap(), b"12345");
        let why = "it has more than 4 bytes, which is the most that is read";
        assert_eq!(read_file(&path, 4).unwrap_err().to_string(), why);
        assert_eq!(read(&b"12345"[..], 4).unwrap_err().to_string(), why);
        // What has no end.
        let endless = read(io::repeat(b' '), 2 << 20).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
        assert!(endless.to_string().contains("2 MiB"), "{endless}");
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(
            read_text(&path, 5).unwrap_err().to_string(),
            "it isn't UTF-8"
        );
    }
}

//! Functions on paths with slashes: words about names, no files.

use super::arguments::{bytes, string};
use super::{Entry, entry};
use crate::function::Kind::Str;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Entry] = &[
    BASE,
    DIR,
    CLEAN,
    EXT,
    IS_ABS,
    BASE.named("osBase"),
    DIR.named("osDir"),
    CLEAN.named("osClean"),
    EXT.named("osExt"),
    IS_ABS.named("osIsAbs"),
];

const BASE: Entry = entry(
    "base",
    "PATH",
    "the last part of the path",
    &[Str],
    |_, a| string(base(bytes(&a[0]))),
);

const DIR: Entry = entry(
    "dir",
    "PATH",
    "the path without its last part",
    &[Str],
    |_, a| {
        let path = bytes(&a[0]);
        let end = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |slash| slash + 1);
        string(clean(&path[..end]))
    },
);

const CLEAN: Entry = entry(
    "clean",
    "PATH",
    "the shortest path that is the same",
    &[Str],
    |_, a| string(clean(bytes(&a[0]))),
);

const EXT: Entry = entry(
    "ext",
    "PATH",
    "the end of the last part, from its last point on",
    &[Str],
    |_, a| {
        let path = bytes(&a[0]);
        let found = path.iter().rposition(|byte| matches!(byte, b'.' | b'/'));
        string(match found {
            Some(point) if path[point] == b'.' => &path[point..],
            _ => b"",
        })
    },
);

const IS_ABS: Entry = entry(
    "isAbs",
    "PATH",
    "whether the path begins at the root",
    &[Str],
    |_, a| Ok(Value::Bool(bytes(&a[0]).first() == Some(&b'/'))),
);

fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let end = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |last| last + 1);
    let path = &path[..end];
    let start = path
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |slash| slash + 1);
    if path.is_empty() {
        b"/"
    } else {
        &path[start..]
    }
}

fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.first() == Some(&b'/');
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            b".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/", &joined[..]].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}

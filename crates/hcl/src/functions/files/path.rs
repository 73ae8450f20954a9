//! Paths as texts, by the rules of Go's `path/filepath` where `/` is the separator.

/// The shortest path that says the same: no `.`, no `..` but in front, no doubled or last `/`.
pub(crate) fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." => {
                    parts.pop();
                }
                _ if rooted => {}
                _ => parts.push(part),
            },
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// The last part.
pub(super) fn base(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    match (path.is_empty(), trimmed.is_empty()) {
        (true, _) => ".",
        (false, true) => "/",
        (false, false) => trimmed.rsplit('/').next().unwrap_or(trimmed),
    }
}

/// All but the last part.
pub(super) fn folder(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, _)) => clean(&format!("{folder}/")),
        None => ".".to_owned(),
    }
}

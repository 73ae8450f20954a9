//! What a part is, by how it begins.

/// The beginnings and what they mean, longest first.
const BEGINNINGS: [(&str, &str); 12] = [
    (
        "text/x-shellscript-per-instance",
        "text/x-shellscript-per-instance",
    ),
    ("text/x-shellscript-per-boot", "text/x-shellscript-per-boot"),
    ("text/x-shellscript-per-once", "text/x-shellscript-per-once"),
    ("#cloud-config-archive", ARCHIVE),
    ("#cloud-config-jsonp", JSON_PATCH),
    ("## template: jinja", JINJA),
    ("#cloud-boothook", "text/cloud-boothook"),
    ("#include-once", INCLUDE_ONCE),
    ("#part-handler", "text/part-handler"),
    ("#cloud-config", CLOUD_CONFIG),
    ("#include", INCLUDE),
    ("#!", SHELL_SCRIPT),
];

/// A cloud-config.
pub const CLOUD_CONFIG: &str = "text/cloud-config";
/// A JSON patch to the cloud-config so far.
pub const JSON_PATCH: &str = "text/cloud-config-jsonp";
/// A list of parts.
pub const ARCHIVE: &str = "text/cloud-config-archive";
/// A template that is rendered on the machine.
pub const JINJA: &str = "text/jinja2";
/// Addresses of more user data.
pub const INCLUDE: &str = "text/x-include-url";
/// Addresses of more user data, which is kept after the first boot.
pub const INCLUDE_ONCE: &str = "text/x-include-once-url";
/// A program with `#!`.
pub const SHELL_SCRIPT: &str = "text/x-shellscript";

/// The type of a text that begins so; `None`: it isn't known. Blanks before it don't count, and
/// anything may follow: `#cloud-configurations` is a cloud-config.
pub fn detect(text: &str) -> Option<&'static str> {
    let text = trim_start(text);
    // Only as much as can matter, but characters may become longer.
    let end = text.char_indices().nth(40).map_or(text.len(), |(at, _)| at);
    let start = text[..end].to_lowercase();
    let found = BEGINNINGS
        .iter()
        .find(|(beginning, _)| start.starts_with(beginning));
    found.map(|(_, kind)| *kind)
}

/// The same for bytes, which have no type where they aren't UTF-8.
pub fn detect_bytes(bytes: &[u8]) -> Option<&'static str> {
    detect(std::str::from_utf8(bytes).ok()?)
}

/// What Python takes for white space.
fn is_blank(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\u{1c}'..='\u{1f}')
}

pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(is_blank)
}

pub(crate) fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

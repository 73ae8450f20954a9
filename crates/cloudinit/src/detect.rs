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

/// First lines that people get wrong, as they must be.
const FIRST_LINES: [&str; 8] = [
    "#cloud-config-archive",
    "#cloud-config-jsonp",
    "#cloud-config",
    "#cloud-boothook",
    "#include-once",
    "#include",
    "#part-handler",
    "## template: jinja",
];

/// Words that a line of a shell script often begins with.
const SHELL_WORDS: [&str; 28] = [
    "apk",
    "apt",
    "apt-get",
    "bash",
    "cat",
    "cd",
    "chmod",
    "chown",
    "cp",
    "curl",
    "dnf",
    "docker",
    "echo",
    "export",
    "hostname",
    "hostnamectl",
    "install",
    "ln",
    "mkdir",
    "mv",
    "rm",
    "sed",
    "set",
    "sudo",
    "systemctl",
    "useradd",
    "wget",
    "yum",
];

/// Keys that a cloud-config often begins with.
const CONFIG_KEYS: [&str; 14] = [
    "apt",
    "bootcmd",
    "disable_root",
    "fqdn",
    "groups",
    "hostname",
    "manage_etc_hosts",
    "ntp",
    "package_update",
    "packages",
    "runcmd",
    "ssh_authorized_keys",
    "users",
    "write_files",
];

/// The first line that a text lacks, if cloud-init ignores it and it looks as if it were meant for
/// cloud-init. What other programs read, such as Ignition or cloudbase-init, has no such line.
pub fn missing_first_line(text: &str) -> Option<&'static str> {
    if text.contains('\0') || detect(text).is_some() {
        return None;
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let bare = |line: &str| -> String {
        let letters = line.chars().filter(|c| c.is_alphanumeric());
        letters.collect::<String>().to_lowercase()
    };
    let first = lines.next()?;
    let is_comment = first.starts_with('#');
    let meant = FIRST_LINES.iter().find(|line| bare(line) == bare(first));
    if let Some(line) = meant {
        return Some(line);
    }
    if first.starts_with("# !") || first.starts_with("!/") {
        return Some("#!/bin/sh");
    }
    // PowerShell and Windows scripts of cloudbase-init.
    if ["#ps1", "#windows"]
        .iter()
        .any(|known| first.to_lowercase().starts_with(known))
    {
        return None;
    }
    let mut content = std::iter::once(first).chain(lines);
    // It may stand below a comment.
    let below = is_comment.then(|| {
        let mut below = text.lines().map(str::trim);
        below.find_map(|line| FIRST_LINES.iter().find(|known| **known == line))
    });
    if let Some(line) = below.flatten() {
        return Some(line);
    }
    let told = content.find(|line| !line.starts_with('#'))?;
    let word = told.split([' ', '\t', '=', ';']).next().unwrap_or_default();
    if let Some(key) = told.split(':').next()
        && told.contains(':')
        && CONFIG_KEYS.contains(&key)
    {
        return Some("#cloud-config");
    }
    SHELL_WORDS.contains(&word).then_some("#!/bin/sh")
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

#[cfg(test)]
mod tests {
    use super::missing_first_line;

    #[test]
    fn only_what_is_meant_for_cloud_init_misses_a_line() {
        for (text, expected) in [
            ("# cloud-config\npackages: [nginx]\n", Some("#cloud-config")),
            ("#cloud_config\n", Some("#cloud-config")),
            ("cloud-config\npackages: []\n", Some("#cloud-config")),
            ("packages:\n- nginx\n", Some("#cloud-config")),
            (
                "# Web servers\n#cloud-config\npackages: []\n",
                Some("#cloud-config"),
            ),
            ("# Web servers\nruncmd: [ls]\n", Some("#cloud-config")),
            ("# include\nhttp://a\n", Some("#include")),
            ("apt-get update\n", Some("#!/bin/sh")),
            ("# Install\nset -eu\n", Some("#!/bin/sh")),
            ("# !/bin/sh\necho\n", Some("#!/bin/sh")),
            ("!/bin/bash\n", Some("#!/bin/sh")),
            ("#!/bin/sh\necho\n", None),
            ("#cloud-config\n", None),
            ("\n  #cloud-config\n", None),
            ("", None),
            ("{\"ignition\": {\"version\": \"3.4.0\"}}", None),
            ("variant: fcos\nversion: 1.5.0\n", None),
            ("version: v1alpha1\nmachine:\n  type: worker\n", None),
            ("<powershell>\nmkdir a\n</powershell>\n", None),
            ("#ps1_sysnative\nmkdir a\n", None),
            ("[settings.kubernetes]\n", None),
            ("KEY=value\n", None),
        ] {
            assert_eq!(missing_first_line(text), expected, "{text}");
        }
    }
}

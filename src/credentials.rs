//! Credentials by their names, and within URLs: what no variable says is sensitive, and is all the same.
//!
//! In: names and URLs. Out: the texts that must not be shown, a URL without them. Must not use
//! them.

use crate::digest::sha256_hex;

/// Words in the names of options and of a URL's parameters that hold credentials.
const TELLING: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "signature",
    "private_key",
    "privatekey",
    "access_key",
    "accesskey",
    "api_key",
];

/// Whether a name tells that its value is a credential.
pub fn is_telling(name: &str) -> bool {
    let name = name.to_lowercase().replace('-', "_");
    TELLING.iter().any(|word| name.contains(word)) || matches!(&*name, "sig" | "key" | "apikey")
}

/// What of a URL lets one in: the password before the host, parameters that sign it.
pub fn of_url(url: &str) -> Vec<String> {
    let Some(parts) = Parts::of(url) else {
        return Vec::new();
    };
    let password = parts.user.and_then(|user| user.split_once(':'));
    let mut found: Vec<String> = password
        .map(|(_, password)| password.to_owned())
        .into_iter()
        .collect();
    for parameter in parts.query.unwrap_or_default().split('&') {
        if let Some((name, value)) = parameter.split_once('=')
            && is_telling(name)
        {
            found.push(value.to_owned());
        }
    }
    found.retain(|secret| !secret.is_empty());
    found
}

/// A URL as messages show it: what isn't written in the configuration was never said to be a secret.
pub fn shown_url(url: &str) -> String {
    match Parts::of(url) {
        Some(parts) if parts.query.is_some() => format!("{}?…", parts.bare()),
        Some(parts) => parts.bare(),
        None => url.to_owned(),
    }
}

/// A URL without its credentials, with everything else that it needs to be used.
pub fn without_credentials(url: &str) -> String {
    let secrets = of_url(url);
    let hide = |shown: String, secret: &String| shown.replace(secret.as_str(), "…");
    secrets.iter().fold(url.to_owned(), hide)
}

/// What a URL is kept under: itself; of one with credentials what isn't one, and a digest of all.
pub fn key_of_url(url: &str) -> String {
    let Some(parts) = Parts::of(url) else {
        return url.to_owned();
    };
    if parts.user.is_none() && parts.query.is_none() {
        return url.to_owned();
    }
    let digest = sha256_hex(url.as_bytes());
    format!("{}#sha256={digest}", parts.bare())
}

struct Parts<'u> {
    scheme: &'u str,
    user: Option<&'u str>,
    /// Host and path.
    rest: &'u str,
    query: Option<&'u str>,
}

impl<'u> Parts<'u> {
    /// `None` for what is no URL with a host.
    fn of(url: &'u str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let rest = rest.split('#').next().unwrap_or(rest);
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let host = rest.find('/').unwrap_or(rest.len());
        let user = rest[..host].rfind('@').map(|at| &rest[..at]);
        Some(Self {
            scheme,
            user,
            rest: user.map_or(rest, |user| &rest[user.len() + 1..]),
            query,
        })
    }

    fn bare(&self) -> String {
        format!("{}://{}", self.scheme, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_hold_credentials() {
        for (url, expected) in [
            ("https://example.com/a?b=c", vec![]),
            ("https://me:pa55@example.com/a@b", vec!["pa55"]),
            ("https://me:p@ss@example.com", vec!["p@ss"]),
            ("https://me@example.com", vec![]),
            (
                "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=abc&X-Amz-Security-Token=t#f",
                vec!["abc", "t"],
            ),
            (
                "https://a.blob.core.windows.net/c?sv=1&sig=x%2F",
                vec!["x%2F"],
            ),
            ("file:a/b?token=c", vec![]),
        ] {
            assert_eq!(of_url(url), expected, "{url}");
        }
    }

    #[test]
    fn urls_are_shown_without_credentials() {
        for (url, shown) in [
            (
                "https://me:pa55@example.com/a?sig=1",
                "https://example.com/a?…",
            ),
            ("a.sh of http://me@h/b", "a.sh of http://h/b"),
            ("a.sh", "a.sh"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }

    #[test]
    fn urls_are_kept_without_credentials() {
        for url in ["https://example.com/a", "file:a", "http://h:80/p"] {
            assert_eq!(key_of_url(url), url);
        }
        let key = key_of_url("https://me:pa55@example.com/a?sig=1");
        assert!(key.starts_with("https://example.com/a#sha256="), "{key}");
        assert_eq!(key, key_of_url("https://me:pa55@example.com/a?sig=1"));
        assert_ne!(key, key_of_url("https://me:pa55@example.com/a?sig=2"));
    }
}

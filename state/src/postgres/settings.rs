//! Where a server is, and how to log in, as libpq's programs read it.
//!
//! In: a URL, and the environment. Out: a connection. Must not: show a password, or read the
//! environment itself.
//!
//! Of the URL's parameters, those about TLS are read here; the driver reads the others. What the URL
//! leaves out comes from `PGHOST` and its like, then from a password file. Certificates are verified
//! in full unless `sslmode` says otherwise.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::verify::{self, Verification};
use crate::error::{Result, StateError};

/// What is read of the environment.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// A server, and how to log in.
#[derive(Clone)]
pub(super) struct Settings {
    config: Config,
    /// `None` without TLS.
    tls: Option<Tls>,
    /// The URL without its password.
    pub(super) shown: String,
}

impl Settings {
    /// Reads a URL. Certificates are read when a connection is made.
    ///
    /// Fails if the URL is invalid.
    pub(super) fn read(url: &str, environment: Environment<'_>) -> Result<Self> {
        let invalid = |why: String| StateError::InvalidUrl { why };
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut tls, mut rest) = (Tls::default(), String::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value);
            match name {
                "sslmode" => tls.mode = Some(value),
                "sslrootcert" => tls.roots = Some(value),
                "sslcert" => tls.certificate = Some(value),
                "sslkey" => tls.key = Some(value),
                _ => {
                    let _ = write!(rest, "{}{pair}", if rest.is_empty() { '?' } else { '&' });
                }
            }
        }
        let mut config: Config = format!("{base}{rest}")
            .parse()
            .map_err(|error: postgres::Error| invalid(reason(&error)))?;
        complete(&mut config, environment).map_err(invalid)?;
        tls.complete(environment);
        let is_remote = config
            .get_hosts()
            .iter()
            .any(|host| matches!(host, Host::Tcp(_)));
        let mode = tls.mode.clone().filter(|mode| mode != "verify-full");
        let tls = match tls.verification().map_err(invalid)? {
            Some(_) if is_remote => Some(tls),
            _ => None,
        };
        config.ssl_mode(if tls.is_some() {
            SslMode::Require
        } else {
            SslMode::Disable
        });
        let mut shown = shown(&config);
        if is_remote && let Some(mode) = mode {
            let _ = write!(shown, "?sslmode={mode}");
        }
        Ok(Self { config, tls, shown })
    }

    /// Opens a connection.
    ///
    /// Fails if the server can't be reached, or refuses, or if a certificate can't be read.
    pub(super) fn connect(&self) -> std::result::Result<Client, String> {
        let connected = match &self.tls {
            Some(tls) => self.config.connect(tls.connector()?),
            None => self.config.connect(NoTls),
        };
        connected.map_err(|error| reason(&error))
    }
}

/// Fills in what the URL leaves out.
///
/// Fails if a variable has an invalid value.
fn complete(config: &mut Config, environment: Environment<'_>) -> std::result::Result<(), String> {
    let number = |name: &str| {
        let text = environment(name)?;
        Some(
            text.parse::<u16>()
                .map_err(|_| format!("{name} is `{text}`, which is no number")),
        )
    };
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let host = environment("PGHOST").filter(|host| !host.is_empty());
        config.host(&host.unwrap_or_else(|| "localhost".to_owned()));
    }
    if config.get_ports().is_empty()
        && let Some(port) = number("PGPORT").transpose()?
    {
        config.port(port);
    }
    if config.get_user().is_none() {
        let user = environment("PGUSER").or_else(|| environment("USER"));
        config.user(user.as_deref().unwrap_or("postgres"));
    }
    if config.get_dbname().is_none() {
        let name = environment("PGDATABASE");
        let name = name.or_else(|| config.get_user().map(str::to_owned));
        config.dbname(name.as_deref().unwrap_or("postgres"));
    }
    if config.get_password().is_none() {
        let password = environment("PGPASSWORD").or_else(|| from_file(config, environment));
        if let Some(password) = password {
            config.password(password);
        }
    }
    if config.get_connect_timeout().is_none() {
        let seconds = number("PGCONNECT_TIMEOUT").transpose()?.unwrap_or(10);
        config.connect_timeout(Duration::from_secs(seconds.into()));
    }
    if config.get_application_name().is_none() {
        let name = environment("PGAPPNAME");
        config.application_name(name.as_deref().unwrap_or("nstance"));
    }
    // A server that is gone without a word is noticed in about a minute.
    config.keepalives_idle(Duration::from_secs(30));
    config.keepalives_interval(Duration::from_secs(10));
    config.keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_mins(1));
    Ok(())
}

/// The password of the first entry of the password file that fits.
fn from_file(config: &Config, environment: Environment<'_>) -> Option<String> {
    let path = match environment("PGPASSFILE") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(environment("HOME")?).join(".pgpass"),
    };
    if !is_private(&path) {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let host = match config.get_hosts().first()? {
        Host::Tcp(host) => host.clone(),
        // As libpq calls every socket in its usual place.
        #[cfg(unix)]
        Host::Unix(_) => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let wanted = [
        host,
        port.to_string(),
        config.get_dbname()?.to_owned(),
        config.get_user()?.to_owned(),
    ];
    text.lines().find_map(|line| password(line, &wanted))
}

/// libpq ignores a password file that others may read.
fn is_private(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        metadata.is_file() && metadata.mode().trailing_zeros() >= 6
    }
    #[cfg(not(unix))]
    {
        metadata.is_file()
    }
}

/// The password of a line `host:port:database:user:password`, if it fits.
fn password(line: &str, wanted: &[String; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let count = fields.len();
        let field = fields.last_mut()?;
        match character {
            '\\' => field.extend(characters.next()),
            ':' if count < 5 => fields.push(String::new()),
            other => field.push(other),
        }
    }
    let password = (fields.len() == 5).then(|| fields.pop()).flatten()?;
    let fits = fields
        .iter()
        .zip(wanted)
        .all(|(field, wanted)| field == "*" || field == wanted);
    fits.then_some(password)
}

/// What the URL and the environment say about TLS.
#[derive(Clone, Default)]
struct Tls {
    mode: Option<String>,
    /// The user's folder, which may have a file with authorities.
    home: Option<String>,
    roots: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Tls {
    fn complete(&mut self, environment: Environment<'_>) {
        self.home = environment("HOME");
        for (value, name) in [
            (&mut self.mode, "PGSSLMODE"),
            (&mut self.roots, "PGSSLROOTCERT"),
            (&mut self.certificate, "PGSSLCERT"),
            (&mut self.key, "PGSSLKEY"),
        ] {
            if value.is_none() {
                *value = environment(name).filter(|value| !value.is_empty());
            }
        }
    }

    /// What is verified; `None` if TLS is off.
    ///
    /// Fails if the mode is unknown, or if only one of certificate and key is given.
    fn verification(&self) -> std::result::Result<Option<Verification>, String> {
        if self.certificate.is_some() != self.key.is_some() {
            return Err("`sslcert` and `sslkey` belong together".to_owned());
        }
        match self.mode.as_deref().unwrap_or("verify-full") {
            "disable" => Ok(None),
            "require" => Ok(Some(Verification::Nothing)),
            "verify-ca" => Ok(Some(Verification::Authority)),
            "verify-full" => Ok(Some(Verification::Full)),
            mode => Err(format!(
                "`sslmode={mode}` isn't offered: use verify-full, verify-ca, require, or disable"
            )),
        }
    }

    /// What makes connections with TLS.
    ///
    /// Fails if a file can't be read.
    fn connector(&self) -> std::result::Result<MakeRustlsConnect, String> {
        let verification = self.verification()?.unwrap_or(Verification::Full);
        let roots = match verification {
            Verification::Nothing => RootCertStore::empty(),
            _ => self.roots()?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = verify::verifier(verification, roots, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("the key {key} can't be read: {error}"))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| error.to_string())?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(MakeRustlsConnect::new(config))
    }

    /// The authorities that are trusted: those of a file, else those of the system.
    ///
    /// Fails if there are none.
    fn roots(&self) -> std::result::Result<RootCertStore, String> {
        let home = self.home.as_deref().map(Path::new);
        let own = home
            .map(|home| home.join(".postgresql/root.crt"))
            .filter(|path| path.exists())
            .map(|path| path.display().to_string());
        let file = self.roots.clone().or(own).filter(|file| file != "system");
        let mut roots = RootCertStore::empty();
        let found = match &file {
            Some(file) => certificates(file)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        roots.add_parsable_certificates(found);
        if roots.is_empty() {
            let place = file.unwrap_or_else(|| "the system".to_owned());
            return Err(format!("{place} has no certificate of an authority"));
        }
        Ok(roots)
    }
}

fn certificates(path: &str) -> std::result::Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error| format!("the certificate {path} can't be read: {error}");
    CertificateDer::pem_file_iter(path)
        .map_err(unreadable)?
        .collect::<std::result::Result<_, _>>()
        .map_err(unreadable)
}

/// A URL without password, and without parameters but for a socket.
fn shown(config: &Config) -> String {
    let mut shown = String::from("postgresql://");
    if let Some(user) = config.get_user() {
        let _ = write!(shown, "{user}@");
    }
    let (mut hosts, mut socket) = (Vec::new(), String::new());
    for (index, host) in config.get_hosts().iter().enumerate() {
        match host {
            Host::Tcp(host) => {
                let ports = config.get_ports();
                let port = ports.get(index).or(ports.first());
                hosts.push(match port.filter(|port| **port != 5432) {
                    Some(port) => format!("{host}:{port}"),
                    None => host.clone(),
                });
            }
            #[cfg(unix)]
            Host::Unix(path) => {
                socket = format!("?host={}", path.display());
                let port = config.get_ports().first().filter(|port| **port != 5432);
                let _ = port.map(|port| write!(socket, "&port={port}"));
            }
        }
    }
    let database = config.get_dbname().unwrap_or_default();
    let _ = write!(shown, "{}/{database}{socket}", hosts.join(","));
    shown
}

/// What an error says, with its causes, on one line.
pub(crate) fn reason(error: &postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{} ({})", said.message(), said.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            let _ = write!(text, ": {more}");
        }
        cause = error.source();
    }
    text
}

/// The characters of `%20` and its like.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str, variables: &[(&str, &str)]) -> Result<Settings> {
        Settings::read(url, &|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_a_url_leaves_out_comes_from_the_environment() {
        for (url, variables, shown) in [
            (
                "postgresql://ops@db.example.com/fleet?sslmode=require",
                &[] as &[(&str, &str)],
                "postgresql://ops@db.example.com/fleet?sslmode=require",
            ),
            (
                "postgres://ops:secret@db.example.com:6432/fleet?sslmode=disable",
                &[("PGHOST", "other"), ("PGPORT", "1")],
                "postgresql://ops@db.example.com:6432/fleet?sslmode=disable",
            ),
            (
                "postgresql://",
                &[
                    ("PGHOST", "db"),
                    ("PGPORT", "6000"),
                    ("PGUSER", "ci"),
                    ("PGDATABASE", "states"),
                    ("PGPASSWORD", "secret"),
                    ("PGSSLMODE", "disable"),
                ],
                "postgresql://ci@db:6000/states?sslmode=disable",
            ),
            (
                "postgresql:///states?host=/run/postgresql",
                &[("USER", "me")],
                "postgresql://me@/states?host=/run/postgresql",
            ),
            (
                "postgresql:///",
                &[("PGSSLMODE", "disable")],
                "postgresql://postgres@localhost/postgres?sslmode=disable",
            ),
        ] {
            assert_eq!(read(url, variables).unwrap().shown, shown, "{url}");
        }
    }

    #[test]
    fn what_is_invalid_is_refused_without_a_password() {
        for (url, variables, why) in [
            (
                "postgresql://a:secret@h/d?sslmode=prefer",
                &[] as &[(&str, &str)],
                "isn't offered",
            ),
            ("postgresql://a:secret@h:port/d", &[], ""),
            ("postgresql://a:secret@h/d?nonsense=1", &[], "nonsense"),
            (
                "postgresql://a:secret@h/d?sslmode=require&sslcert=x",
                &[],
                "belong together",
            ),
            (
                "postgresql://a:secret@h/d",
                &[("PGCONNECT_TIMEOUT", "soon")],
                "PGCONNECT_TIMEOUT",
            ),
        ] {
            let Err(error) = read(url, variables) else {
                panic!("{url} was accepted");
            };
            let text = error.to_string();
            assert!(
                text.contains(why) && !text.contains("secret"),
                "{url}: {text}"
            );
        }
    }

    #[test]
    fn an_authority_that_cant_be_read_is_named() {
        let settings = read(
            "postgresql://a:secret@127.0.0.1/d?sslrootcert=/nowhere",
            &[],
        );
        let error = settings.unwrap().connect().err().unwrap();
        assert!(
            error.starts_with("the certificate /nowhere can't be read"),
            "{error}"
        );
    }

    #[test]
    fn a_password_file_is_read_as_libpq_reads_it() {
        let wanted = ["db", "5432", "states", "ops"].map(str::to_owned);
        for (line, expected) in [
            ("db:5432:states:ops:secret", Some("secret")),
            ("*:*:*:ops:a\\:b\\\\c", Some("a:b\\c")),
            ("*:*:*:ops:a:b", Some("a:b")),
            ("db:5433:states:ops:secret", None),
            ("# db:5432:states:ops:secret", None),
            ("db:5432:states:ops", None),
        ] {
            assert_eq!(password(line, &wanted).as_deref(), expected, "{line}");
        }
    }
}

//! Hashes. Come in: strings, as their bytes of UTF-8. Go out: hashes in hexadecimal or base64, and
//! UUIDs made of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::{CallError, Parameter, Signature, text};
use crate::context::Context;
use crate::value::Value;

pub(super) fn signatures() -> Vec<Signature> {
    let one = |name, body| Signature::new(name, [Parameter::string("str")], body);
    vec![
        one("md5", hash::<Md5>),
        one("sha1", hash::<Sha1>),
        one("sha256", hash::<Sha256>),
        one("sha512", hash::<Sha512>),
        one("base64sha256", base64_hash::<Sha256>),
        one("base64sha512", base64_hash::<Sha512>),
        Signature::new(
            "uuidv5",
            [Parameter::string("namespace"), Parameter::string("name")],
            uuid_v5,
        ),
    ]
}

fn hash<D: Digest>(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    Ok(hex(&D::digest(text(arguments, 0)?)).into())
}

fn base64_hash<D: Digest>(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    Ok(STANDARD.encode(D::digest(text(arguments, 0)?)).into())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn uuid_v5(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let namespace = match text(arguments, 0)? {
        "dns" => uuid::Uuid::NAMESPACE_DNS,
        "url" => uuid::Uuid::NAMESPACE_URL,
        "oid" => uuid::Uuid::NAMESPACE_OID,
        "x500" => uuid::Uuid::NAMESPACE_X500,
        other => uuid::Uuid::parse_str(other).map_err(|_| {
            CallError::argument(0, "The namespace must be dns, url, oid, x500 or a UUID")
        })?,
    };
    Ok(
        uuid::Uuid::new_v5(&namespace, text(arguments, 1)?.as_bytes())
            .to_string()
            .into(),
    )
}

//! Functions of files and paths. Come in: paths as they are written. Go out: what the context's
//! files hold, or paths, always with `/`. Nothing here asks the operating system.

mod glob;
pub(crate) mod path;

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::hash::hex;
use super::{CallError, Parameter, Signature, text};
use crate::context::Context;
use crate::types::Type;
use crate::value::Value;

pub(super) fn signatures() -> Vec<Signature> {
    let one = |name, body| Signature::new(name, [Parameter::string("path")], body);
    vec![
        one("file", |context, arguments| {
            let bytes = read(context, arguments)?;
            context.charge_bytes(bytes.len())?;
            String::from_utf8(bytes).map(Value::string).map_err(|_| {
                CallError::argument(0, "The file isn't UTF-8 text; `filebase64` reads any file")
            })
        }),
        one("filebase64", |context, arguments| {
            let bytes = read(context, arguments)?;
            context.charge_bytes(bytes.len())?;
            Ok(STANDARD.encode(bytes).into())
        }),
        one("filemd5", file_hash::<Md5>),
        one("filesha1", file_hash::<Sha1>),
        one("filesha256", file_hash::<Sha256>),
        one("filesha512", file_hash::<Sha512>),
        one("filebase64sha256", base64_file_hash::<Sha256>),
        one("filebase64sha512", base64_file_hash::<Sha512>),
        one("fileexists", |context, arguments| {
            let path = text(arguments, 0)?;
            match context.files.exists(&located(context, path)?) {
                Ok(exists) => Ok(exists.into()),
                Err(error) => Err(unreadable(path, &error)),
            }
        }),
        Signature::new(
            "fileset",
            [Parameter::string("path"), Parameter::string("pattern")],
            file_set,
        ),
        one("basename", |_, arguments| {
            Ok(Value::string(path::base(text(arguments, 0)?)))
        }),
        one("dirname", |_, arguments| {
            Ok(Value::string(path::folder(text(arguments, 0)?)))
        }),
        one("abspath", |context, arguments| {
            let path = text(arguments, 0)?;
            if path.starts_with('/') {
                return Ok(Value::string(path::clean(path)));
            }
            let base = context.files.base();
            let base = base.to_string_lossy().replace('\\', "/");
            Ok(Value::string(path::clean(&format!("{base}/{path}"))))
        }),
        one("pathexpand", |context, arguments| {
            let path = text(arguments, 0)?;
            Ok(Value::string(expanded(context, path)?))
        }),
    ]
}

/// With the home folder for `~`.
fn expanded(context: &Context, path: &str) -> Result<String, CallError> {
    let Some(rest) = path.strip_prefix('~') else {
        return Ok(path.to_owned());
    };
    if !rest.is_empty() && !rest.starts_with('/') {
        let message = "The home folder of another user isn't known here";
        return Err(CallError::argument(0, message));
    }
    let home = context.files.home().ok_or_else(|| {
        CallError::argument(0, "There is no home folder here, which `~` stands for")
    })?;
    let home = home.to_string_lossy().replace('\\', "/");
    Ok(path::clean(&format!("{home}/{rest}")))
}

/// As the context's files take it.
pub(crate) fn located(context: &Context, path: &str) -> Result<String, CallError> {
    Ok(path::clean(&expanded(context, path)?))
}

fn read(context: &Context, arguments: &[Value]) -> Result<Vec<u8>, CallError> {
    let path = text(arguments, 0)?;
    context
        .files
        .read(&located(context, path)?)
        .map_err(|error| unreadable(path, &error))
}

fn file_hash<D: Digest>(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    Ok(hex(&D::digest(read(context, arguments)?)).into())
}

fn base64_file_hash<D: Digest>(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    Ok(STANDARD.encode(D::digest(read(context, arguments)?)).into())
}

fn unreadable(path: &str, error: &io::Error) -> CallError {
    CallError::argument(0, format!("The file can't be read: {error}: {path}"))
}

/// The files below a folder whose paths match, relative to the folder.
fn file_set(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let folder = located(context, text(arguments, 0)?)?;
    let patterns = glob::Pattern::all(text(arguments, 1)?)
        .map_err(|message| CallError::argument(1, message))?;
    let mut found = Vec::new();
    for pattern in patterns {
        let start = path::clean(&format!("{folder}/{}", pattern.start));
        let files = match context.files.list(&start) {
            Ok(files) => files,
            Err(error) if is_no_folder(&error) => continue,
            Err(error) => return Err(unreadable(&start, &error)),
        };
        context.charge_steps(files.len())?;
        for file in files {
            if pattern.matches(&file) {
                let whole = format!("{}/{file}", pattern.start);
                context.charge_bytes(whole.len())?;
                found.push(Value::string(path::clean(&whole)));
            }
        }
    }
    Ok(Value::set(Type::String, found))
}

fn is_no_folder(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

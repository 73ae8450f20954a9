//! `base64gzip`. Comes in: a string; goes out: a file of gzip without name or time, so that the same
//! string always gives the same bytes.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};

use super::{CallError, Context, Value, text};

/// What gzip calls a system that it doesn't know, as Go does.
const NO_SYSTEM: u8 = 255;

pub(super) fn encode(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let text = text(arguments, 0)?;
    context.charge_bytes(text.len())?;
    let mut writer = GzBuilder::new()
        .mtime(0)
        .operating_system(NO_SYSTEM)
        .write(Vec::new(), Compression::default());
    let bytes = writer
        .write_all(text.as_bytes())
        .and_then(|()| writer.finish())
        .map_err(|error| CallError::new(format!("It can't be compressed: {error}")))?;
    Ok(STANDARD.encode(bytes).into())
}

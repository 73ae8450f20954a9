//! Reads and validates requests.
//!
//! In: the parts of requests. Out: their values, or the simulated provider's error. Must not:
//! change anything.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::Transaction;
use serde_json::{Map, Value};

use crate::config::model::ProviderKind;
use crate::provider::rules::Rules;
use crate::provider::{CloudError, CloudErrorKind, CreateRequest, readable_userdata};

use super::{SimError, World, faults, hash, images};
use crate::digest::hex;

/// The provider id for a token (GCP: for a name), in the simulated provider's form.
///
/// Fails if the database does.
pub(super) fn provider_id(
    transaction: &Transaction<'_>,
    world: &World,
    request: &CreateRequest,
) -> Result<String, SimError> {
    let digits = hex(&hash(&[b"instance", request.token.as_bytes()]));
    let id = match world.provider {
        ProviderKind::Aws => format!("i-{}", &digits[..17]),
        ProviderKind::Gcp => request.name.clone(),
        ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => {
            format!("sim-{}", &digits[..16])
        }
    };
    if id.is_empty() {
        return Err(invalid("invalid", "The name is empty".to_owned()));
    }
    let taken = transaction
        .prepare_cached("SELECT 1 FROM instance WHERE provider_id = ?1 AND deleted_at IS NULL")?
        .exists([&id])?;
    if taken {
        let mut error = faults::error(world.provider, CloudErrorKind::TokenMismatch);
        error.message = format!("The instance '{id}' already exists");
        return Err(error.into());
    }
    Ok(id)
}

/// With `strict_images`: fails unless the image exists and matches the instance's architecture.
pub(super) fn check_image(
    transaction: &Transaction<'_>,
    world: &World,
    request: &CreateRequest,
) -> Result<(), SimError> {
    if !world.options.strict_images {
        return Ok(());
    }
    let Some(id) = image(&request.args) else {
        return Err(invalid(
            "MissingParameter",
            "The request must contain the parameter ImageId".to_owned(),
        ));
    };
    match images::find(transaction, world, id)? {
        None => Err(invalid(
            "InvalidAMIID.NotFound",
            format!("The image id '[{id}]' does not exist"),
        )),
        Some(image) if image.arch != request.arch => Err(invalid(
            "InvalidParameterValue",
            format!(
                "The architecture '{}' of the instance does not match the architecture '{}' of \
                 the image '{id}'",
                request.arch, image.arch
            ),
        )),
        Some(_) => Ok(()),
    }
}

/// The image that args request.
pub(super) fn image(args: &Map<String, Value>) -> Option<&str> {
    let disk = || {
        args.get("disks")?
            .get(0)?
            .get("initializeParams")?
            .get("sourceImage")
    };
    args.get("ImageId")
        .or_else(|| args.get("SourceImage"))
        .or_else(disk)?
        .as_str()
}

/// Userdata as text: decompressed if it is gzipped, in base64 if it isn't UTF-8.
///
/// Fails if it isn't base64, or is too large.
pub(super) fn decode_userdata(
    provider: ProviderKind,
    encoded: Option<&str>,
) -> Result<Option<String>, SimError> {
    let Some(encoded) = encoded else {
        return Ok(None);
    };
    let bytes = BASE64.decode(encoded).map_err(|error| {
        invalid(
            "InvalidUserData.Malformed",
            format!("Invalid BASE64 encoding of user data: {error}"),
        )
    })?;
    if let Some(limit) = Rules::of(provider).userdata_limit()
        && bytes.len() > limit
    {
        return Err(invalid(
            "InvalidParameterValue",
            format!(
                "User data is limited to {limit} bytes; this has {}",
                bytes.len()
            ),
        ));
    }
    Ok(Some(readable_userdata(bytes)))
}

/// The names sorted, without duplicates.
pub(super) fn sorted(names: &[String]) -> Vec<String> {
    let unique: BTreeSet<&String> = names.iter().collect();
    unique.into_iter().cloned().collect()
}

/// The address that args request for the instance or its first interface.
///
/// Fails if it isn't an address.
pub(super) fn fixed_address(args: &Map<String, Value>) -> Result<Option<Ipv4Addr>, SimError> {
    let asked = args
        .get("PrivateIpAddress")
        .or_else(|| {
            args.get("NetworkInterfaces")?
                .get(0)?
                .get("PrivateIpAddress")
        })
        .or_else(|| args.get("networkInterfaces")?.get(0)?.get("networkIP"))
        .or_else(|| {
            let first = args.get("network_interface_specs")?.get(0)?;
            first.get("primary_v4_address_spec")?.get("address")
        });
    match asked {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_str()
            .and_then(|text| text.parse().ok())
            .map(Some)
            .ok_or_else(|| {
                invalid(
                    "InvalidParameterValue",
                    format!("Value ({value}) for parameter PrivateIpAddress is invalid"),
                )
            }),
    }
}

/// Whether args request an IPv6 address.
pub(super) fn wants_ip6(args: &Map<String, Value>) -> bool {
    let interface = args
        .get("NetworkInterfaces")
        .and_then(|interfaces| interfaces.get(0));
    args.get("Ipv6AddressCount")
        .or_else(|| interface?.get("Ipv6AddressCount"))
        .and_then(Value::as_u64)
        .is_some_and(|count| count > 0)
}

/// The error for an invalid request.
pub(super) fn invalid(code: &str, message: String) -> SimError {
    CloudError::new(CloudErrorKind::Invalid, code, message).into()
}

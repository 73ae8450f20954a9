//! Builds the body of `instances.insert`.
//!
//! In: a [`CreateRequest`]. Out: the Instance to create. Must not: call Compute Engine.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::provider::{CloudError, CloudErrorKind, CreateRequest};

use super::normalize::{SCHEDULING, SHORT};
use super::observe::{ENCODING, STARTUP_SCRIPT, USER_DATA};
use super::options::GcpOptions;
use super::paths::Place;

/// What a service account may do: as much as its roles allow.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The size and type of a boot disk that args don't describe.
const BOOT_DISK: (&str, &str) = ("30", "pd-standard");

/// The `requestId` of a token. The same token gives the same one.
pub(super) fn request_id(token: &str) -> String {
    let digest = Sha256::digest(token.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes)
        .into_uuid()
        .to_string()
}

/// The Instance that a request asks for.
///
/// Fails if userdata can't be sent.
pub(super) fn instance(
    request: &CreateRequest,
    options: &GcpOptions,
    place: &Place,
) -> Result<Value, CloudError> {
    let zone = request.zone.as_str();
    let mut body = members(&request.args, zone, place);
    let machine_type = Place::zonal(zone, "machineTypes", &request.instance_type);
    body.insert("name".into(), request.name.as_str().into());
    body.insert("machineType".into(), machine_type.into());
    body.insert("labels".into(), json!(request.tags));
    disks(&mut body, &request.args, zone);
    interfaces(&mut body, request.subnet.as_deref(), place);
    let items = metadata(
        request.args.get("metadata"),
        request.userdata.as_deref(),
        options,
    )?;
    if !items.is_empty() {
        body.insert("metadata".into(), json!({"items": items}));
    }
    Ok(Value::Object(body))
}

/// The members of an Instance that args ask for, with full names, without labels and metadata.
pub(super) fn members(args: &Map<String, Value>, zone: &str, place: &Place) -> Map<String, Value> {
    let mut body = Map::new();
    let mut scheduling = args
        .get("scheduling")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (name, value) in args {
        let value = without_nulls(value);
        if value.is_null() {
            continue;
        }
        let pair = |pairs: &[(&str, &'static str)]| {
            let found = pairs.iter().find(|(short, _)| short == name);
            found.map(|(_, member)| *member)
        };
        if let Some(member) = pair(&SCHEDULING) {
            scheduling.insert(member.to_owned(), value);
            continue;
        }
        match name.as_str() {
            "Labels" | "labels" | "SourceImage" | "metadata" | "scheduling" => {}
            "NetworkTags" => {
                body.insert("tags".into(), json!({"items": value}));
            }
            "ServiceAccount" => {
                let account = json!([{"email": value, "scopes": [SCOPE]}]);
                body.insert("serviceAccounts".into(), account);
            }
            name => match pair(&SHORT) {
                Some(member) => {
                    body.insert(member.to_owned(), camel(value));
                }
                None => {
                    body.insert(name.to_owned(), value);
                }
            },
        }
    }
    let scheduling = without_nulls(&Value::Object(scheduling));
    if let Value::Object(mut scheduling) = scheduling
        && !scheduling.is_empty()
    {
        interruptible(&mut scheduling);
        body.insert("scheduling".into(), scheduling.into());
    }
    complete(&mut body, zone, place);
    body
}

/// A value whose members have the API's names: in values of short names, the Nstance server reads
/// `enable_secure_boot`.
fn camel(value: Value) -> Value {
    match value {
        Value::Object(object) => object
            .into_iter()
            .map(|(name, value)| (camel_name(&name), camel(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.into_iter().map(camel).collect(),
        other => other,
    }
}

/// A name in the API's form: `enableSecureBoot` for `enable_secure_boot`.
pub(super) fn camel_name(name: &str) -> String {
    let mut words = name.split('_');
    let mut joined = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        joined.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        joined.push_str(letters.as_str());
    }
    joined
}

/// An instance that Google may take back can't be restarted or moved by Google.
fn interruptible(scheduling: &mut Map<String, Value>) {
    let is_spot = scheduling.get("provisioningModel") == Some(&json!("SPOT"))
        || scheduling.get("preemptible") == Some(&json!(true));
    if is_spot {
        let defaults = [
            ("automaticRestart", json!(false)),
            ("onHostMaintenance", json!("TERMINATE")),
        ];
        for (member, value) in defaults {
            scheduling.entry(member).or_insert(value);
        }
    }
}

/// Makes short names of other resources full.
fn complete(body: &mut Map<String, Value>, zone: &str, place: &Place) {
    let zonal = |value: &mut Value, collection: &str| {
        if let Some(short) = value.as_str() {
            *value = Place::zonal(zone, collection, short).into();
        }
    };
    for account in list(body, "serviceAccounts") {
        if let Value::Object(account) = account {
            account.entry("scopes").or_insert_with(|| json!([SCOPE]));
        }
    }
    for accelerator in list(body, "guestAccelerators") {
        if let Some(kind) = accelerator.get_mut("acceleratorType") {
            zonal(kind, "acceleratorTypes");
        }
    }
    for policy in list(body, "resourcePolicies") {
        if let Some(short) = policy.as_str() {
            *policy = place.regional("resourcePolicies", short).into();
        }
    }
    for disk in list(body, "disks") {
        if let Some(source) = disk.get_mut("source") {
            zonal(source, "disks");
        }
        let params = disk.get_mut("initializeParams");
        if let Some(kind) = params.and_then(|params| params.get_mut("diskType")) {
            zonal(kind, "diskTypes");
        }
    }
    for interface in list(body, "networkInterfaces") {
        if let Some(network) = interface.get_mut("network")
            && let Some(short) = network.as_str().filter(|short| !short.contains('/'))
        {
            *network = format!("global/networks/{short}").into();
        }
        if let Some(subnet) = interface.get_mut("subnetwork")
            && let Some(id) = subnet.as_str()
        {
            *subnet = place.subnet_path(id).into();
        }
    }
}

fn list<'b>(body: &'b mut Map<String, Value>, name: &str) -> impl Iterator<Item = &'b mut Value> {
    let items = body.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten()
}

/// Gives the Instance a boot disk, and that the image.
fn disks(body: &mut Map<String, Value>, args: &Map<String, Value>, zone: &str) {
    let image = args.get("SourceImage").filter(|image| !image.is_null());
    let has_boot = list(body, "disks").any(|disk| disk["boot"] == true);
    if !has_boot && !body.contains_key("sourceMachineImage") {
        let (size, kind) = BOOT_DISK;
        let disk = json!({
            "boot": true,
            "autoDelete": true,
            "initializeParams": {
                "diskSizeGb": size,
                "diskType": Place::zonal(zone, "diskTypes", kind),
            },
        });
        let disks = body.entry("disks").or_insert_with(|| json!([]));
        if let Value::Array(disks) = disks {
            disks.insert(0, disk);
        }
    }
    let Some(image) = image else {
        return;
    };
    let boot = list(body, "disks").find(|disk| disk["boot"] == true);
    let Some(Value::Object(boot)) = boot else {
        return;
    };
    if boot.contains_key("source") {
        return;
    }
    let params = boot.entry("initializeParams").or_insert_with(|| json!({}));
    if let Value::Object(params) = params {
        params.entry("sourceImage").or_insert_with(|| image.clone());
    }
}

/// Gives the first network interface the subnet of the pool.
fn interfaces(body: &mut Map<String, Value>, subnet: Option<&str>, place: &Place) {
    let interfaces = body.entry("networkInterfaces").or_insert_with(|| json!([]));
    let Value::Array(interfaces) = interfaces else {
        return;
    };
    if interfaces.is_empty() {
        interfaces.push(json!({}));
    }
    let Some(Value::Object(first)) = interfaces.first_mut() else {
        return;
    };
    if let Some(subnet) = subnet {
        first.insert("subnetwork".into(), place.subnet_path(subnet).into());
    }
    let is_placed = ["subnetwork", "network", "networkAttachment"];
    if !is_placed.iter().any(|member| first.contains_key(*member)) {
        first.insert("network".into(), "global/networks/default".into());
    }
}

/// The metadata items: those of args, then userdata.
///
/// Fails if userdata isn't text and only cloud-init could decode it.
pub(super) fn metadata(
    asked: Option<&Value>,
    userdata: Option<&str>,
    options: &GcpOptions,
) -> Result<Vec<Value>, CloudError> {
    let mut items = asked
        .and_then(|metadata| metadata.get("items")?.as_array().cloned())
        .unwrap_or_default();
    let bytes = userdata.map(|userdata| BASE64.decode(userdata).unwrap_or_default());
    let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
        return Ok(items);
    };
    let mut encoding = None;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            encoding = Some("base64");
            BASE64.encode(error.as_bytes())
        }
    };
    let key = options.userdata_key.as_deref().unwrap_or_else(|| {
        if encoding.is_some() || is_for_cloud_init(&text) {
            USER_DATA
        } else {
            STARTUP_SCRIPT
        }
    });
    if encoding.is_some() && key != USER_DATA {
        return Err(CloudError::new(
            CloudErrorKind::Invalid,
            "invalid",
            format!("userdata that isn't text can't be the metadata `{key}`"),
        )
        .hint("set `compress` of userdata to `never`, or leave `userdata_key` out"));
    }
    items.push(json!({"key": key, "value": text}));
    if let Some(encoding) = encoding {
        items.push(json!({"key": ENCODING, "value": encoding}));
    }
    Ok(items)
}

/// Whether cloud-init reads a text by its beginning. It also runs scripts, and so does Google's
/// guest agent, which every image has.
fn is_for_cloud_init(text: &str) -> bool {
    const BEGINNINGS: [&str; 8] = [
        "#cloud-config",
        "#cloud-boothook",
        "#include",
        "#part-handler",
        "#upstart-job",
        "## template: jinja",
        "Content-Type:",
        "MIME-Version:",
    ];
    let text = text.trim_start();
    let begins = |beginning: &str| {
        let start = text.get(..beginning.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    };
    BEGINNINGS.iter().any(|beginning| begins(beginning))
}

/// A value without nulls in it.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), without_nulls(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items
            .iter()
            .filter(|item| !item.is_null())
            .map(without_nulls)
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn request(args: &Value, subnet: Option<&str>, userdata: Option<&[u8]>) -> CreateRequest {
        CreateRequest {
            token: "nstance-1".into(),
            instance_id: "web06".into(),
            name: "web06".into(),
            arch: "amd64".into(),
            instance_type: "e2-small".into(),
            zone: "r-a".into(),
            subnet: subnet.map(str::to_owned),
            args: args.as_object().unwrap().clone(),
            userdata: userdata.map(|bytes| BASE64.encode(bytes)),
            tags: BTreeMap::from([("nstance-slot".into(), "0".into())]),
        }
    }

    #[test]
    fn the_instance_is_the_args_and_what_is_ours() {
        let place = Place {
            project: "p".into(),
            region: "r".into(),
        };
        let boot = |image: Value| {
            let mut disk = json!({"boot": true, "autoDelete": true, "initializeParams": {"diskSizeGb": "30", "diskType": "zones/r-a/diskTypes/pd-standard"}});
            if !image.is_null() {
                disk["initializeParams"]["sourceImage"] = image;
            }
            disk
        };
        let subnet = json!([{"subnetwork": "projects/p/regions/r/subnetworks/s"}]);
        let default = json!([{"network": "global/networks/default"}]);
        for (what, args, in_subnet, userdata, expected) in [
            (
                "defaults",
                json!({"SourceImage": "projects/d/global/images/i"}),
                Some("s"),
                None,
                json!({"disks": [boot(json!("projects/d/global/images/i"))], "networkInterfaces": subnet}),
            ),
            (
                "own disks keep their image",
                json!({"SourceImage": "i", "disks": [
                    {"boot": true, "initializeParams": {"diskType": "pd-ssd"}},
                    {"source": "data"},
                ]}),
                None,
                None,
                json!({"disks": [
                    {"boot": true, "initializeParams": {"diskType": "zones/r-a/diskTypes/pd-ssd", "sourceImage": "i"}},
                    {"source": "zones/r-a/disks/data"},
                ], "networkInterfaces": default}),
            ),
            (
                "a further disk",
                json!({"disks": [{"source": "zones/r-a/disks/x"}]}),
                None,
                None,
                json!({"disks": [boot(Value::Null), {"source": "zones/r-a/disks/x"}], "networkInterfaces": default}),
            ),
            (
                "short names",
                json!({
                    "NetworkTags": ["http"], "ServiceAccount": "a@p", "ProvisioningModel": "SPOT",
                    "GuestAccelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": 1}],
                    "ResourcePolicies": ["daily"], "Labels": {"a": "b"}, "MinCpuPlatform": null,
                    "networkInterfaces": [{"network": "main", "accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}],
                }),
                None,
                None,
                json!({
                    "tags": {"items": ["http"]},
                    "serviceAccounts": [{"email": "a@p", "scopes": [SCOPE]}],
                    "guestAccelerators": [{"acceleratorType": "zones/r-a/acceleratorTypes/nvidia-l4", "acceleratorCount": 1}],
                    "resourcePolicies": ["projects/p/regions/r/resourcePolicies/daily"],
                    "networkInterfaces": [{"network": "global/networks/main", "accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}],
                    "scheduling": {"provisioningModel": "SPOT", "automaticRestart": false, "onHostMaintenance": "TERMINATE"},
                    "disks": [boot(Value::Null)],
                }),
            ),
            (
                "userdata beside metadata",
                json!({"metadata": {"items": [{"key": "a", "value": "1"}]}}),
                Some("s"),
                Some(&b"#cloud-config\n{}"[..]),
                json!({"disks": [boot(Value::Null)], "networkInterfaces": subnet, "metadata": {"items": [
                    {"key": "a", "value": "1"}, {"key": "user-data", "value": "#cloud-config\n{}"},
                ]}}),
            ),
            (
                "a script",
                json!({}),
                Some("s"),
                Some(&b"#!/bin/sh\n"[..]),
                json!({"disks": [boot(Value::Null)], "networkInterfaces": subnet, "metadata": {"items": [
                    {"key": "startup-script", "value": "#!/bin/sh\n"},
                ]}}),
            ),
            (
                "gzip",
                json!({}),
                Some("s"),
                Some(&[0x1f, 0x8b, 0xff][..]),
                json!({"disks": [boot(Value::Null)], "networkInterfaces": subnet, "metadata": {"items": [
                    {"key": "user-data", "value": "H4v/"}, {"key": "user-data-encoding", "value": "base64"},
                ]}}),
            ),
        ] {
            let Value::Object(mut expected) = expected else {
                unreachable!("an object is written above");
            };
            expected.insert("name".into(), "web06".into());
            expected.insert(
                "machineType".into(),
                "zones/r-a/machineTypes/e2-small".into(),
            );
            expected.insert("labels".into(), json!({"nstance-slot": "0"}));
            let made = instance(
                &request(&args, in_subnet, userdata),
                &GcpOptions::default(),
                &place,
            );
            assert_eq!(made.unwrap(), Value::Object(expected), "{what}");
        }
    }

    #[test]
    fn a_token_has_one_request_id() {
        let id = request_id("nstance-1");
        assert_eq!(id, request_id("nstance-1"));
        assert_ne!(id, request_id("nstance-2"));
        assert_eq!(uuid::Uuid::parse_str(&id).unwrap().to_string(), id);
    }
}

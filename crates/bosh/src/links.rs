//! Links: what jobs provide to other jobs, what they consume, and which provider each consumer gets.
//!
//! The rules are those of the BOSH Director. One is the Quarks operator's: a link that is set to
//! `nil` is null even if the job requires it, unless the profile is BOSH's.

use serde_json::{Map, Value as Json, json};

use crate::Error;
use crate::instances::{Instance, Naming, Profile};
use crate::manifest::{InstanceGroup, Job};
use crate::release::{JobSpec, ProvidesSpec};
use crate::value::{Place, Value};

/// A link that a job provides.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// The deployment.
    pub deployment: String,
    /// The instance group.
    pub group: String,
    /// The job.
    pub job: String,
    /// The name under which consumers find it.
    pub name: String,
    /// The name in the release, or in the custom definition.
    pub original_name: String,
    /// The type.
    pub kind: String,
    /// Whether other deployments may consume it.
    pub shared: bool,
    /// Whether anyone may consume it.
    pub consumable: bool,
    /// The exported properties.
    pub properties: Map<String, Json>,
    /// The names of the group's networks; the one that addresses belong to is the first.
    pub networks: Vec<String>,
    /// The group's instances, by ascending index.
    pub instances: Vec<Instance>,
    /// How the instances are named.
    pub naming: Naming,
}

/// A link that a job's spec consumes.
#[derive(Debug, Clone, PartialEq)]
pub struct Consumer {
    /// The instance group.
    pub group: String,
    /// The job.
    pub job: String,
    /// The name in the release.
    pub name: String,
    /// The type.
    pub kind: String,
    /// Whether the job also works without it.
    pub optional: bool,
    /// What the manifest says of it.
    pub choice: Choice,
    /// Where the manifest says it, or else the job's place.
    pub place: Place,
}

/// How a consumer's provider is chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// By its type.
    Implicit,
    /// The link is set to `nil`.
    Blocked,
    /// The link is written in the manifest.
    Manual(Box<Link>),
    /// By its type and name.
    Explicit {
        /// The provider's name.
        name: String,
        /// The provider's deployment; `None` for the consumer's own.
        deployment: Option<String>,
        /// The network that the provider's group has to have.
        network: Option<String>,
    },
}

/// The content of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Who provides it.
    pub provider: LinkProvider,
    /// The address of the provider's group; of a manual link as written.
    pub address: Json,
    /// The exported properties; of a manual link as written.
    pub properties: Json,
    /// All instances of the provider's group; of a manual link as written.
    pub instances: Json,
}

/// Who provides a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkProvider {
    /// The manifest's `consumes` itself.
    Manual,
    /// A job.
    Job {
        /// Its deployment.
        deployment: String,
        /// Its instance group.
        group: String,
        /// Its name.
        job: String,
        /// The name under which the link was found.
        name: String,
        /// The link's name in the release.
        original_name: String,
        /// The link's type.
        kind: String,
        /// The network of the addresses.
        network: String,
    },
}

/// What the links of a job are read from.
#[derive(Debug, Clone, Copy)]
pub struct JobOfGroup<'m> {
    /// The group.
    pub group: &'m InstanceGroup,
    /// The job in the group.
    pub job: &'m Job,
    /// The job's spec.
    pub spec: &'m JobSpec,
}

/// The specs of a job's instances, as links and `spec` show them.
pub fn job_instances(naming: &Naming, group: &str, job: &str, instances: &[Instance]) -> Vec<Json> {
    let name = naming.job_instance_name(group, job);
    let instances = instances.iter().map(|instance| {
        json!({
            "name": name,
            "index": instance.index,
            "id": naming.job_instance_id(group, instance.index, job),
            "az": instance.az,
            "address": instance.address,
            "bootstrap": instance.bootstrap,
        })
    });
    instances.collect()
}

/// The links that a job provides: those of custom definitions first, then those of its spec.
/// `source` is what the job's properties are taken from.
///
/// Names that the manifest gives and nothing defines are a warning.
///
/// # Errors
///
/// All errors of the job's `provides` and custom definitions.
pub fn providers(
    at: JobOfGroup,
    source: &Value,
    naming: &Naming,
    instances: &[Instance],
    warnings: &mut Vec<Error>,
) -> Result<Vec<Provider>, Vec<Error>> {
    let custom = custom_definitions(at)?;
    let mut errors = Vec::new();
    let mut providers = Vec::new();
    for definition in custom.iter().chain(&at.spec.provides) {
        let mut provider = Provider {
            deployment: naming.deployment.clone(),
            group: at.group.name.clone(),
            job: at.job.name.clone(),
            name: definition.name.clone(),
            original_name: definition.name.clone(),
            kind: definition.kind.clone(),
            shared: false,
            consumable: true,
            properties: Map::new(),
            networks: networks(at.group),
            instances: instances.to_vec(),
            naming: naming.clone(),
        };
        if let Some(entry) = entry(at.job.provides.as_ref(), &definition.name)
            && let Err(error) = apply_provides(&mut provider, entry)
        {
            errors.push(error);
            continue;
        }
        match exported_properties(at, definition, source) {
            Ok(properties) => {
                provider.properties = properties;
                providers.push(provider);
            }
            Err(wrong) => errors.extend(wrong),
        }
    }
    let unknown = unknown_names(at.job.provides.as_ref(), |name| {
        custom
            .iter()
            .chain(&at.spec.provides)
            .any(|link| link.name == name)
    });
    warn_of_unknown(&unknown, "provider", at, warnings);
    if errors.is_empty() {
        Ok(providers)
    } else {
        Err(errors)
    }
}

/// The default network first, then the others in the manifest's order.
fn networks(group: &InstanceGroup) -> Vec<String> {
    let default = group.default_network();
    let mut names: Vec<String> = default.map(str::to_owned).into_iter().collect();
    for network in &group.networks {
        if Some(network.name.as_str()) != default {
            names.push(network.name.clone());
        }
    }
    names
}

fn custom_definitions(at: JobOfGroup) -> Result<Vec<ProvidesSpec>, Vec<Error>> {
    let (job, group) = (&at.job.name, &at.group.name);
    let mut definitions: Vec<ProvidesSpec> = Vec::new();
    let mut errors = Vec::new();
    let mut duplicates = Vec::new();
    for value in &at.job.custom_provider_definitions {
        let text = |key: &str| {
            value
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        for (key, title) in [("name", "Name"), ("type", "Type")] {
            if text(key).is_none() {
                let message = format!(
                    "{title} for custom link provider definition in manifest in job '{job}' in \
                     instance group '{group}' must be a valid non-empty string."
                );
                errors.push(Error::at(value.place, message));
            }
        }
        let name = value.get("name").map(Value::to_s).unwrap_or_default();
        if at.spec.provides.iter().any(|link| link.name == name) {
            let message = format!(
                "Custom provider '{name}' in job '{job}' in instance group '{group}' is already \
                 defined in release '{}'",
                at.job.release
            );
            errors.push(Error::at(value.place, message));
        }
        if definitions.iter().any(|link| link.name == name) {
            let message = format!(
                "Custom provider '{name}' in job '{job}' in instance group '{group}' is defined \
                 multiple times in manifest."
            );
            let error = Error::at(value.place, message);
            // A third definition isn't another error.
            if duplicates
                .iter()
                .all(|known: &Error| known.message != error.message)
            {
                duplicates.push(error);
            }
        }
        let properties = value.get("properties").and_then(Value::as_list);
        definitions.push(ProvidesSpec {
            name,
            kind: value.get("type").map(Value::to_s).unwrap_or_default(),
            properties: properties
                .unwrap_or_default()
                .iter()
                .map(Value::to_s)
                .collect(),
        });
    }
    errors.extend(duplicates);
    if errors.is_empty() {
        Ok(definitions)
    } else {
        Err(errors)
    }
}

/// Applies what the manifest says of a provided link.
fn apply_provides(provider: &mut Provider, entry: &Value) -> Result<(), Error> {
    if is_nil_text(entry) {
        provider.consumable = false;
        return Ok(());
    }
    let Provider {
        job,
        group,
        original_name: link,
        ..
    } = &provider;
    if !entry.is_map() {
        let message = format!(
            "Provider '{link}' in job '{job}' in instance group '{group}' specified in the \
             manifest should only be a hash or string 'nil'"
        );
        return Err(Error::at(entry.place, message));
    }
    if let Some(error) = name_or_type(entry, link, job, group) {
        return Err(error);
    }
    if let Some(name) = entry.get("as") {
        provider.name = text_of("as", name)?;
    }
    provider.shared = entry.get("shared").and_then(Value::as_bool) == Some(true);
    Ok(())
}

/// The exported properties: the value in `source` if its whole path is there, even if it is null,
/// or else the spec's default.
fn exported_properties(
    at: JobOfGroup,
    definition: &ProvidesSpec,
    source: &Value,
) -> Result<Map<String, Json>, Vec<Error>> {
    let mut exported = Map::new();
    let mut errors = Vec::new();
    for name in &definition.properties {
        let mut parts = name.split('.');
        let given = parts.try_fold(source, |value, part| value.get(part));
        let mut declared = at.spec.properties.iter();
        let default = declared.find(|property| property.name == *name);
        match given.or(default.map(|property| &property.default)) {
            Some(value) => export(&mut exported, name, value.to_json()),
            None => {
                let message = format!(
                    "Link property {name} in template {} is not defined in release spec",
                    at.job.name
                );
                errors.push(Error::at(at.job.place, message));
            }
        }
    }
    if errors.is_empty() {
        Ok(exported)
    } else {
        Err(errors)
    }
}

fn export(exported: &mut Map<String, Json>, name: &str, value: Json) {
    match name.split_once('.') {
        None => {
            exported.insert(name.to_owned(), value);
        }
        Some((first, rest)) => {
            let next = exported
                .entry(first)
                .or_insert_with(|| Json::Object(Map::new()));
            // A link that exports `a` and `a.b` with a scalar `a` keeps the scalar.
            if let Json::Object(next) = next {
                export(next, rest, value);
            }
        }
    }
}

/// The links that a job's spec consumes, with what the manifest says of each. `deployments` are the
/// names of those that links may come from.
///
/// Names that the manifest gives and the spec doesn't are a warning.
///
/// # Errors
///
/// All errors of the job's `consumes`.
pub fn consumers(
    at: JobOfGroup,
    deployments: &[&str],
    warnings: &mut Vec<Error>,
) -> Result<Vec<Consumer>, Vec<Error>> {
    let mut consumers = Vec::new();
    let mut errors = Vec::new();
    for consumed in &at.spec.consumes {
        let entry = entry(at.job.consumes.as_ref(), &consumed.name);
        match choice(at, &consumed.name, entry, deployments) {
            Ok(choice) => consumers.push(Consumer {
                group: at.group.name.clone(),
                job: at.job.name.clone(),
                name: consumed.name.clone(),
                kind: consumed.kind.clone(),
                optional: consumed.optional,
                place: entry.map_or(at.job.place, |entry| entry.place),
                choice,
            }),
            Err(wrong) => errors.extend(wrong),
        }
    }
    let unknown = unknown_names(at.job.consumes.as_ref(), |name| {
        at.spec.consumes.iter().any(|link| link.name == name)
    });
    warn_of_unknown(&unknown, "consumer", at, warnings);
    if errors.is_empty() {
        Ok(consumers)
    } else {
        Err(errors)
    }
}

fn choice(
    at: JobOfGroup,
    link: &str,
    entry: Option<&Value>,
    deployments: &[&str],
) -> Result<Choice, Vec<Error>> {
    let Some(entry) = entry else {
        return Ok(Choice::Implicit);
    };
    if is_nil_text(entry) {
        return Ok(Choice::Blocked);
    }
    let errors = entry_errors(at, link, entry);
    if !errors.is_empty() {
        return Err(errors);
    }
    let written = |key: &str| entry.get(key).map_or(Json::Null, Value::to_json);
    if ["instances", "properties", "address"]
        .iter()
        .any(|key| entry.get(key).is_some())
    {
        return Ok(Choice::Manual(Box::new(Link {
            provider: LinkProvider::Manual,
            address: written("address"),
            properties: written("properties"),
            instances: written("instances"),
        })));
    }
    let text = |key: &str| match entry.get(key) {
        Some(value) => text_of(key, value).map(Some).map_err(|error| vec![error]),
        None => Ok(None),
    };
    let from = text("from")?.unwrap_or_else(|| link.to_owned());
    // `false` and null are as good as no deployment in Ruby.
    let deployment = match entry.get("deployment") {
        Some(value) if !value.is_null() && value.as_bool() != Some(false) => text("deployment")?,
        _ => None,
    };
    if let Some(name) = &deployment
        && !deployments.contains(&name.as_str())
    {
        let message = format!(
            "Link '{from}' in job '{}' from instance group '{}' consumes from deployment '{name}', \
             but the deployment does not exist.",
            at.job.name, at.group.name
        );
        return Err(vec![Error::at(entry.place, message)]);
    }
    let name = from.trim_end_matches('.').rsplit('.').next();
    Ok(Choice::Explicit {
        name: name.unwrap_or_default().to_owned(),
        deployment,
        network: match entry.get("network") {
            Some(value) if !value.is_null() => text("network")?,
            _ => None,
        },
    })
}

/// The errors of one entry of `consumes`.
fn entry_errors(at: JobOfGroup, link: &str, entry: &Value) -> Vec<Error> {
    let (job, group) = (&at.job.name, &at.group.name);
    let error = |message: String| Error::at(entry.place, message);
    if !entry.is_map() {
        return vec![error(format!(
            "Consumer '{link}' in job '{job}' in instance group '{group}' specified in the \
             manifest should only be a hash or string 'nil'"
        ))];
    }
    let has = |key: &str| entry.get(key).is_some();
    let mut errors = Vec::new();
    for key in ["instances", "properties"] {
        if has(key) && has("from") {
            errors.push(error(format!(
                "Cannot specify both '{key}' and 'from' keys for link '{link}' in job '{job}' in \
                 instance group '{group}'."
            )));
        }
    }
    if has("properties") && !has("instances") {
        errors.push(error(format!(
            "Cannot specify 'properties' without 'instances' for link '{link}' in job '{job}' in \
             instance group '{group}'."
        )));
    }
    if entry
        .get("ip_addresses")
        .is_some_and(|value| value.as_bool().is_none())
    {
        errors.push(error(format!(
            "Cannot specify non boolean values for 'ip_addresses' field for link '{link}' in job \
             '{job}' in instance group '{group}'."
        )));
    }
    errors.extend(name_or_type(entry, link, job, group));
    errors
}

/// Gives a consumer its link. `providers` are those of all known deployments; `own` is the name of
/// the consumer's.
///
/// # Errors
///
/// The lines of the message under `Failed to resolve links`: no provider, several, or one without
/// the requested network.
pub fn resolve(
    consumer: &Consumer,
    own: &str,
    providers: &[&Provider],
    profile: Option<Profile>,
) -> Result<Option<Link>, String> {
    let (name, deployment, network) = match &consumer.choice {
        Choice::Manual(link) => return Ok(Some(Link::clone(link))),
        Choice::Blocked if profile == Some(Profile::Bosh) && !consumer.optional => {
            return Err(failure(consumer, &[], None));
        }
        Choice::Blocked => return Ok(None),
        Choice::Implicit => (None, own, None),
        Choice::Explicit {
            name,
            deployment,
            network,
        } => (
            Some(name),
            deployment.as_deref().unwrap_or(own),
            network.as_deref(),
        ),
    };
    let candidates: Vec<&Provider> = providers
        .iter()
        .copied()
        .filter(|provider| provider.consumable && provider.kind == consumer.kind)
        .filter(|provider| provider.deployment == deployment)
        .filter(|provider| name.is_none_or(|name| provider.name == *name))
        .filter(|provider| deployment == own || provider.shared)
        .collect();
    match candidates.as_slice() {
        [] if consumer.optional && consumer.choice == Choice::Implicit => Ok(None),
        [provider]
            if network.is_none_or(|name| provider.networks.iter().any(|own| own == name)) =>
        {
            Ok(Some(content(provider, network)))
        }
        candidates => Err(failure(consumer, candidates, network)),
    }
}

fn content(provider: &Provider, network: Option<&str>) -> Link {
    let Provider {
        deployment,
        group,
        job,
        naming,
        ..
    } = provider;
    let default = provider.networks.first().map(String::as_str);
    let chosen = network.or(default).unwrap_or_default();
    let mut instances = provider.instances.clone();
    for instance in &mut instances {
        instance.address = naming.instance_address(group, chosen, instance.index);
    }
    Link {
        provider: LinkProvider::Job {
            deployment: deployment.clone(),
            group: group.clone(),
            job: job.clone(),
            name: provider.name.clone(),
            original_name: provider.original_name.clone(),
            kind: provider.kind.clone(),
            network: chosen.to_owned(),
        },
        address: naming.group_address(group, chosen).into(),
        properties: Json::Object(provider.properties.clone()),
        instances: job_instances(naming, group, job, &instances).into(),
    }
}

/// The message of a link that can't be resolved. As in BOSH, several candidates all get the network
/// that the consumer asks for.
fn failure(consumer: &Consumer, candidates: &[&Provider], network: Option<&str>) -> String {
    let Consumer {
        name,
        kind,
        job,
        group,
        ..
    } = consumer;
    let alias = match &consumer.choice {
        Choice::Explicit { name: alias, .. } if alias != name => format!("alias '{alias}' and "),
        _ => String::new(),
    };
    let title = if candidates.len() > 1 {
        "Multiple link providers found:"
    } else {
        "Details below:"
    };
    let mut message = format!(
        "Failed to resolve link '{name}' with {alias}type '{kind}' from job '{job}' in instance \
         group '{group}'. {title}"
    );
    if candidates.is_empty() {
        message.push_str("\n    - No link providers found");
    }
    for provider in candidates {
        let alias = if provider.name == provider.original_name {
            String::new()
        } else {
            format!("with alias '{}' ", provider.name)
        };
        message.push_str(&format!(
            "\n    - Link provider '{}' {alias}from job '{}' in instance group '{}' in deployment \
             '{}'",
            provider.original_name, provider.job, provider.group, provider.deployment
        ));
        if let Some(network) = network {
            message.push_str(&format!(" does not belong to network '{network}'"));
        }
    }
    message
}

fn entry<'m>(map: Option<&'m Value>, name: &str) -> Option<&'m Value> {
    map?.get(name)
}

/// In manifests, the string `nil` blocks a link; YAML's null is an error.
fn is_nil_text(value: &Value) -> bool {
    value.as_str() == Some("nil")
}

fn text_of(key: &str, value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => {
            let inspected = value.inspect();
            let message = format!(
                "Property '{key}' value ({inspected}) did not match the required type 'String'"
            );
            Err(Error::at(value.place, message))
        }
    }
}

fn name_or_type(entry: &Value, link: &str, job: &str, group: &str) -> Option<Error> {
    let wrong = entry.get("name").or_else(|| entry.get("type"))?;
    let message = format!(
        "Cannot specify 'name' or 'type' properties in the manifest for link '{link}' in job \
         '{job}' in instance group '{group}'. Please provide these keys in the release only."
    );
    Some(Error::at(wrong.place, message))
}

fn unknown_names(map: Option<&Value>, known: impl Fn(&str) -> bool) -> Vec<&Value> {
    let entries = map.and_then(Value::as_map).unwrap_or_default();
    let keys = entries.iter().map(|entry| &entry.key);
    keys.filter(|key| key.as_str().is_none_or(|name| !known(name)))
        .collect()
}

fn warn_of_unknown(names: &[&Value], kind: &str, at: JobOfGroup, warnings: &mut Vec<Error>) {
    let Some(first) = names.first() else { return };
    let mut message = format!("Manifest defines unknown {kind}s:");
    for name in names {
        message.push_str(&format!(
            "\n  - Job '{}' does not define link {kind} '{}' in the release spec",
            at.job.name,
            name.to_s()
        ));
    }
    warnings.push(Error::at(first.place, message));
}

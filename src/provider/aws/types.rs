//! Instance types, and quotas.
//!
//! In: names of types. Out: their architectures, and quotas that would be exceeded. Must not:
//! reject anything.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use nstance_ec2::Operation;
use serde_json::{Value, json};

use crate::diagnostic::nearest;
use crate::provider::{CloudError, InstanceType, WantedCapacity};

use super::calls::{Calls, FILTER_VALUES, filter, instances_of};
use super::observe::text;

/// Types by name, each queried once per run; `None` if a type doesn't exist.
#[derive(Default)]
pub(super) struct Types {
    known: Mutex<BTreeMap<String, Option<InstanceType>>>,
}

impl Types {
    /// The existing types of `names`.
    ///
    /// Fails if the API does.
    pub(super) fn get(
        &self,
        calls: &Calls,
        names: &[String],
    ) -> Result<Vec<InstanceType>, CloudError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown: Vec<&String> = names
            .iter()
            .filter(|name| !known.contains_key(*name))
            .collect();
        for names in unknown.chunks(FILTER_VALUES) {
            // By filter, so that a name that doesn't exist isn't an error.
            let found = list(calls, &json!({"Filters": [filter("instance-type", names)]}))?;
            for name in names {
                known.insert((*name).clone(), None);
            }
            known.extend(found.into_iter().map(|it| (it.name.clone(), Some(it))));
        }
        Ok(names
            .iter()
            .filter_map(|name| known.get(name)?.clone())
            .collect())
    }

    /// Messages about quotas that would be exceeded. A quota that can't be queried is ignored.
    pub(super) fn limits_ahead(
        &self,
        calls: &Calls,
        region: &str,
        wanted: &[WantedCapacity],
    ) -> Vec<String> {
        self.measure(calls, region, wanted).unwrap_or_default()
    }

    fn measure(
        &self,
        calls: &Calls,
        region: &str,
        wanted: &[WantedCapacity],
    ) -> Result<Vec<String>, CloudError> {
        let mut more: BTreeMap<&'static Quota, Vec<(String, usize)>> = BTreeMap::new();
        for wanted in wanted {
            if let Some(quota) = Quota::of(&wanted.instance_type, wanted.interruptible) {
                let entry = (wanted.instance_type.clone(), wanted.count);
                more.entry(quota).or_default().push(entry);
            }
        }
        if more.is_empty() {
            return Ok(Vec::new());
        }
        let running = running(calls)?;
        let mut said = Vec::new();
        for (quota, more) in more {
            let input = json!({"ServiceCode": "ec2", "QuotaCode": quota.code});
            let answer = calls.call(Operation::GetServiceQuota, &input)?;
            let limit = answer.pointer("/Quota/Value").and_then(Value::as_f64);
            let Some(limit) = limit else { continue };
            let used: Vec<(String, usize)> = running
                .iter()
                .filter(|((name, spot), _)| Quota::of(name, *spot) == Some(quota))
                .map(|((name, _), count)| (name.clone(), *count))
                .collect();
            let (used, more) = (self.vcpus(calls, &used)?, self.vcpus(calls, &more)?);
            if (used + more) as f64 > limit {
                said.push(format!(
                    "the account may run {limit} vCPUs of {} in {region}; {used} are in use, and this plan adds {more}",
                    quota.what
                ));
            }
        }
        Ok(said)
    }

    fn vcpus(&self, calls: &Calls, counts: &[(String, usize)]) -> Result<u64, CloudError> {
        let names: Vec<String> = counts.iter().map(|(name, _)| name.clone()).collect();
        let types = self.get(calls, &names)?;
        let of = |name: &str| {
            let found = types.iter().find(|it| it.name == name);
            found.map_or(0, |it| u64::from(it.vcpus))
        };
        Ok(counts
            .iter()
            .map(|(name, count)| of(name) * *count as u64)
            .sum())
    }
}

/// A type that may have been meant: of the same family, or of any.
pub(super) fn near(calls: &Calls, name: &str) -> Option<String> {
    let (family, _) = name.split_once('.')?;
    let of = |pattern: &str| {
        let input = json!({"Filters": [filter("instance-type", &[pattern])]});
        list(calls, &input).unwrap_or_default()
    };
    let mut types = of(&format!("{family}.*"));
    if types.is_empty() {
        types = of("*");
    }
    let names = types.iter().map(|it| it.name.as_str());
    nearest(name, names).map(str::to_owned)
}

/// A vCPU quota of Service Quotas.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Quota {
    /// The families it covers, by the prefix of their names.
    families: &'static [&'static str],
    spot: bool,
    code: &'static str,
    what: &'static str,
}

const STANDARD: &[&str] = &["a", "c", "d", "h", "i", "m", "r", "t", "z"];

/// The quotas that matter for fleets; those of other families aren't checked.
static QUOTAS: [Quota; 6] = [
    Quota {
        families: STANDARD,
        spot: false,
        code: "L-1216C47A",
        what: "on-demand standard instances (A, C, D, H, I, M, R, T, Z)",
    },
    Quota {
        families: STANDARD,
        spot: true,
        code: "L-34B43A08",
        what: "spot standard instances (A, C, D, H, I, M, R, T, Z)",
    },
    Quota {
        families: &["g", "vt"],
        spot: false,
        code: "L-DB2E81BA",
        what: "on-demand G and VT instances",
    },
    Quota {
        families: &["p"],
        spot: false,
        code: "L-417A185B",
        what: "on-demand P instances",
    },
    Quota {
        families: &["inf"],
        spot: false,
        code: "L-1945791B",
        what: "on-demand Inf instances",
    },
    Quota {
        families: &["x"],
        spot: false,
        code: "L-7295265B",
        what: "on-demand X instances",
    },
];

impl Quota {
    fn of(instance_type: &str, spot: bool) -> Option<&'static Self> {
        let letters = instance_type
            .split(|character: char| !character.is_ascii_lowercase())
            .next()?;
        // `im4gn` and `is4gen` belong to the I family, `mac` and `hpc` to none of these.
        let family = match letters {
            "im" | "is" => "i",
            other => other,
        };
        QUOTAS
            .iter()
            .find(|quota| quota.spot == spot && quota.families.contains(&family))
    }
}

/// The number of running instances in the account, by type and whether they are spot instances.
///
/// Fails if the API does.
fn running(calls: &Calls) -> Result<BTreeMap<(String, bool), usize>, CloudError> {
    let input = json!({
        "Filters": [filter("instance-state-name", &["pending", "running"])],
        "MaxResults": 1_000,
    });
    let reservations = calls.pages(Operation::DescribeInstances, &input, "Reservations")?;
    let mut counts = BTreeMap::new();
    for instance in reservations.iter().flat_map(instances_of) {
        if let Some(name) = text(instance, "InstanceType") {
            let spot = text(instance, "InstanceLifecycle") == Some("spot");
            *counts.entry((name.to_owned(), spot)).or_default() += 1;
        }
    }
    Ok(counts)
}

fn list(calls: &Calls, input: &Value) -> Result<Vec<InstanceType>, CloudError> {
    let mut input = input.clone();
    input["MaxResults"] = 100.into();
    let found = calls.pages(Operation::DescribeInstanceTypes, &input, "InstanceTypes")?;
    Ok(found
        .iter()
        .filter_map(|it| {
            let architectures = it.pointer("/ProcessorInfo/SupportedArchitectures");
            let vcpus = it.pointer("/VCpuInfo/DefaultVCpus").and_then(Value::as_u64);
            Some(InstanceType {
                name: text(it, "InstanceType")?.to_owned(),
                architectures: architectures
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(|name| match name {
                        "x86_64" => "amd64".to_owned(),
                        other => other.to_owned(),
                    })
                    .collect(),
                vcpus: u32::try_from(vcpus.unwrap_or(0)).unwrap_or(u32::MAX),
            })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_go_by_family() {
        for (name, spot, expected) in [
            ("t3.micro", false, Some("L-1216C47A")),
            ("m7i-flex.large", false, Some("L-1216C47A")),
            ("im4gn.large", false, Some("L-1216C47A")),
            ("t3.micro", true, Some("L-34B43A08")),
            ("g5.xlarge", false, Some("L-DB2E81BA")),
            ("p5.48xlarge", false, Some("L-417A185B")),
            ("inf2.xlarge", false, Some("L-1945791B")),
            ("x2idn.large", false, Some("L-7295265B")),
            ("mac2.metal", false, None),
            ("hpc7a.96xlarge", false, None),
            ("", false, None),
        ] {
            let code = Quota::of(name, spot).map(|quota| quota.code);
            assert_eq!(code, expected, "{name} {spot}");
        }
    }
}

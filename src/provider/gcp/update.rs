//! Plans the calls of an update.
//!
//! In: a request, and the current Instance. Out: [`Work`]: the calls in a safe order. Must not: make
//! calls.
//!
//! What already has the wanted value is skipped, so that updates are idempotent: an instance with the
//! new type isn't stopped again.

use std::collections::BTreeMap;

use nstance_gce::Operation;
use serde_json::{Map, Value, json};

use crate::provider::{CloudError, CloudErrorKind, UpdateRequest};

use super::normalize;
use super::observe::{self, labels, metadata, name_of_type, text, userdata_keys};
use super::options::GcpOptions;
use super::paths::Place;
use super::request;

/// All calls of an update.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Calls that a running instance allows.
    pub calls: Vec<(Operation, Value)>,
    /// Calls that require the instance to be stopped.
    pub stopped: Vec<(Operation, Value)>,
    /// Whether to start the instance at the end.
    pub start: bool,
    /// Whether its groups change.
    pub moves: bool,
}

/// The work to update `instance`, which is in `zone`. Inputs lack the instance's place and name.
///
/// Fails if the request changes something that can't change in place.
pub(super) fn work(
    request: &UpdateRequest,
    instance: &Value,
    zone: &str,
    options: &GcpOptions,
    place: &Place,
) -> Result<Work, CloudError> {
    let observed = observe::observation(instance, options, None, None)
        .and_then(|observation| observation.attributes().ok());
    let planner = Planner {
        request,
        instance,
        options,
        reported: observed
            .map(|attributes| attributes.args)
            .unwrap_or_default(),
        wanted: request::members(&request.args, zone, place),
        zone,
    };
    let mut work = Work {
        start: request.restart,
        ..Work::default()
    };
    let mut done: Vec<&str> = Vec::new();
    for path in &request.changed {
        let (root, rest) = path.split_once('.').unwrap_or((path, ""));
        match root {
            "state" => work.start = true,
            "instance_type" => planner.instance_type(&mut work),
            "tags" => planner.labels(&mut work),
            "load_balancers" => work.moves = true,
            // The instance sees no difference; only the record changes.
            "protect" => {}
            "userdata" if !rest.is_empty() => {}
            "args" => {
                let member = rest.split(['.', '[']).next().unwrap_or(rest);
                if !done.contains(&member) {
                    done.push(member);
                    planner.member(member, &mut work)?;
                }
            }
            _ => return Err(unchangeable(path)),
        }
    }
    Ok(work)
}

fn unchangeable(path: &str) -> CloudError {
    CloudError::new(
        CloudErrorKind::Invalid,
        "UnsupportedOperation",
        format!("Compute Engine can't change `{path}` of an instance that exists"),
    )
}

struct Planner<'a> {
    request: &'a UpdateRequest,
    instance: &'a Value,
    options: &'a GcpOptions,
    /// The current args.
    reported: Map<String, Value>,
    /// The wanted members of the Instance, with full names.
    wanted: Map<String, Value>,
    zone: &'a str,
}

impl Planner<'_> {
    /// Whether an arg already has the wanted value.
    fn is_so(&self, member: &str) -> bool {
        let wanted = self.request.args.get(member);
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_null()) else {
            return false;
        };
        let asked = Map::from_iter([(member.to_owned(), wanted.clone())]);
        normalize::normalized(&asked, &self.reported).get(member) == Some(wanted)
    }

    fn instance_type(&self, work: &mut Work) {
        let wanted = &self.request.instance_type;
        if name_of_type(self.instance) != *wanted {
            let machine_type = Place::zonal(self.zone, "machineTypes", wanted);
            let input = json!({"body": {"machineType": machine_type}});
            work.stopped
                .push((Operation::InstancesSetMachineType, input));
        }
    }

    fn labels(&self, work: &mut Work) {
        let mut now = labels(self.instance);
        let before = now.clone();
        // Others manage the ignored ones.
        now.retain(|key, _| self.options.ignores_label(key));
        let wanted: BTreeMap<String, String> =
            now.into_iter().chain(self.request.tags.clone()).collect();
        if wanted != before {
            let body = json!({
                "labels": wanted,
                "labelFingerprint": text(self.instance, "labelFingerprint").unwrap_or_default(),
            });
            let input = json!({"body": body});
            work.calls.push((Operation::InstancesSetLabels, input));
        }
    }

    fn member(&self, member: &str, work: &mut Work) -> Result<(), CloudError> {
        if self.is_so(member) {
            return Ok(());
        }
        let of = |name: &str| self.wanted.get(name).cloned();
        let current = |name: &str| self.instance.get(name).unwrap_or(&Value::Null);
        let fingerprint = |name: &str| text(current(name), "fingerprint").unwrap_or_default();
        match member {
            // They come with the tags.
            "Labels" | "labels" => {}
            "NetworkTags" | "tags" => {
                let tags = of("tags").unwrap_or_else(|| json!({}));
                let body = json!({"items": tags["items"], "fingerprint": fingerprint("tags")});
                let input = json!({"body": request::without_nulls(&body)});
                work.calls.push((Operation::InstancesSetTags, input));
            }
            "metadata" => {
                let items = self.metadata()?;
                let body = json!({"items": items, "fingerprint": fingerprint("metadata")});
                let input = json!({"body": body});
                work.calls.push((Operation::InstancesSetMetadata, input));
            }
            "deletionProtection" => {
                let on = of("deletionProtection").unwrap_or(Value::Bool(false));
                let input = json!({"deletionProtection": on});
                work.calls
                    .push((Operation::InstancesSetDeletionProtection, input));
            }
            "MinCpuPlatform" | "minCpuPlatform" => {
                let platform = of("minCpuPlatform").unwrap_or_else(|| "Automatic".into());
                let input = json!({"body": {"minCpuPlatform": platform}});
                work.stopped
                    .push((Operation::InstancesSetMinCpuPlatform, input));
            }
            "ServiceAccount" | "ServiceAccounts" | "serviceAccounts" => {
                let account = of("serviceAccounts").map(|accounts| accounts[0].clone());
                let account = account.filter(|account| !account.is_null());
                let input = json!({"body": account.unwrap_or_else(|| json!({}))});
                work.stopped
                    .push((Operation::InstancesSetServiceAccount, input));
            }
            "ShieldedInstanceConfig" | "shieldedInstanceConfig" => {
                let config = of("shieldedInstanceConfig").unwrap_or_else(|| json!({}));
                let operation = Operation::InstancesUpdateShieldedInstanceConfig;
                work.stopped.push((operation, json!({"body": config})));
            }
            "AutomaticRestart" | "OnHostMaintenance" | "scheduling" => {
                let wanted = of("scheduling").unwrap_or_else(|| json!({}));
                let mut scheduling = current("scheduling").clone();
                if let (Value::Object(scheduling), Value::Object(wanted)) =
                    (&mut scheduling, wanted)
                {
                    scheduling.extend(wanted);
                }
                let input = json!({"body": scheduling});
                let set = (Operation::InstancesSetScheduling, input);
                if !work.stopped.contains(&set) {
                    work.stopped.push(set);
                }
            }
            _ => return Err(unchangeable(&format!("args.{member}"))),
        }
        Ok(())
    }

    /// All metadata items: those of args, and userdata as it is. It ran already, so a change of it
    /// replaces the instance.
    fn metadata(&self) -> Result<Vec<Value>, CloudError> {
        let asked = self.request.args.get("metadata");
        let mut items = request::metadata(asked, None, self.options)?;
        let keys = userdata_keys(self.options);
        for key in keys.into_iter().chain([observe::ENCODING]) {
            let is_set = items.iter().any(|item| item["key"] == key);
            if let Some(value) = metadata(self.instance, key).filter(|_| !is_set) {
                items.push(json!({"key": key, "value": value}));
            }
        }
        Ok(items)
    }
}

/// The groups to join and to leave.
pub(super) fn moves(request: &UpdateRequest, there: &[String]) -> (Vec<String>, Vec<String>) {
    let joins = request.load_balancers.iter();
    let joins = joins.filter(|name| !there.contains(name)).cloned();
    let leaves = request.leaves.iter();
    let leaves = leaves.filter(|name| !request.load_balancers.contains(name));
    (joins.collect(), leaves.cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(changed: &[&str], args: &Value) -> UpdateRequest {
        UpdateRequest {
            token: "t".into(),
            provider_id: "z/i".into(),
            changed: changed.iter().map(|path| (*path).to_owned()).collect(),
            restart: false,
            instance_type: "e2-medium".into(),
            args: args.as_object().unwrap().clone(),
            userdata: None,
            tags: BTreeMap::from([("a".into(), "1".into()), ("b".into(), "2".into())]),
            load_balancers: Vec::new(),
            leaves: Vec::new(),
        }
    }

    #[test]
    fn an_update_makes_the_calls_that_are_left() {
        use Operation as Op;
        let instance = json!({
            "name": "i", "zone": "z", "status": "RUNNING",
            "machineType": "https://www.googleapis.com/compute/v1/projects/p/zones/z/machineTypes/e2-small",
            "labels": {"a": "1", "c": "3", "goog-x": "y"}, "labelFingerprint": "l",
            "tags": {"items": ["http"], "fingerprint": "t"},
            "metadata": {"fingerprint": "m", "items": [{"key": "startup-script", "value": "#!"}, {"key": "old", "value": "1"}]},
            "scheduling": {"automaticRestart": true, "onHostMaintenance": "MIGRATE", "preemptible": false},
            "serviceAccounts": [{"email": "a@p", "scopes": ["s"]}],
            "deletionProtection": true,
        });
        let options = GcpOptions {
            ignore_labels: vec!["goog-*".into()],
            ..GcpOptions::default()
        };
        let place = Place {
            project: "p".into(),
            region: "r".into(),
        };
        for (changed, args, calls, stopped) in [
            (
                &["instance_type"][..],
                json!({}),
                vec![],
                vec![(
                    Op::InstancesSetMachineType,
                    json!({"body": {"machineType": "zones/z/machineTypes/e2-medium"}}),
                )],
            ),
            (
                &["tags.b"],
                json!({}),
                vec![(
                    Op::InstancesSetLabels,
                    json!({"body": {"labels": {"a": "1", "b": "2", "goog-x": "y"}, "labelFingerprint": "l"}}),
                )],
                vec![],
            ),
            (
                &["args.NetworkTags"],
                json!({"NetworkTags": ["http"]}),
                vec![],
                vec![],
            ),
            (
                &["args.NetworkTags[0]"],
                json!({"NetworkTags": ["ssh"]}),
                vec![(
                    Op::InstancesSetTags,
                    json!({"body": {"items": ["ssh"], "fingerprint": "t"}}),
                )],
                vec![],
            ),
            (
                &["args.NetworkTags"],
                json!({}),
                vec![(Op::InstancesSetTags, json!({"body": {"fingerprint": "t"}}))],
                vec![],
            ),
            (
                &["args.metadata.items"],
                json!({"metadata": {"items": [{"key": "new", "value": "2"}]}}),
                vec![(
                    Op::InstancesSetMetadata,
                    json!({"body": {"items": [{"key": "new", "value": "2"}, {"key": "startup-script", "value": "#!"}], "fingerprint": "m"}}),
                )],
                vec![],
            ),
            (
                &["args.deletionProtection"],
                json!({}),
                vec![(
                    Op::InstancesSetDeletionProtection,
                    json!({"deletionProtection": false}),
                )],
                vec![],
            ),
            (
                &["args.ServiceAccount"],
                json!({"ServiceAccount": "b@p"}),
                vec![],
                vec![(
                    Op::InstancesSetServiceAccount,
                    json!({"body": {"email": "b@p", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}}),
                )],
            ),
            (
                &["args.AutomaticRestart", "args.OnHostMaintenance"],
                json!({"AutomaticRestart": false, "OnHostMaintenance": "TERMINATE"}),
                vec![],
                vec![(
                    Op::InstancesSetScheduling,
                    json!({"body": {"automaticRestart": false, "onHostMaintenance": "TERMINATE", "preemptible": false}}),
                )],
            ),
            (&["protect", "userdata.layers"], json!({}), vec![], vec![]),
        ] {
            let found = work(&request(changed, &args), &instance, "z", &options, &place).unwrap();
            assert_eq!(
                (found.calls, found.stopped),
                (calls, stopped),
                "{changed:?} {args}"
            );
        }
        let error = work(
            &request(&["args.disks"], &json!({})),
            &instance,
            "z",
            &options,
            &place,
        );
        assert_eq!(error.unwrap_err().kind, CloudErrorKind::Invalid);
    }
}

//! Logs the calls to a cloud.
//!
//! In: a cloud. Out: the same cloud, with an event for each call: the operation, what it is about,
//! its duration and its outcome. Must not: log values of a request (args, userdata, tags).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{
    Access, AccessSample, Cloud, CloudError, CreateRequest, DeleteRequest, ImageMatch, ImageQuery,
    InstanceType, LaunchedUserdata, Observation, Owner, Page, SubnetInfo, TargetHealth,
    TargetsRequest, UpdateRequest, WantedCapacity,
};
use crate::config::model::Check;
use crate::stage::millis;

/// The target of the events.
const TARGET: &str = "nstance::cloud";

/// A cloud whose calls are logged.
pub struct LoggedCloud(Box<dyn Cloud>);

impl LoggedCloud {
    /// Wraps a cloud.
    pub fn new(cloud: Box<dyn Cloud>) -> Self {
        Self(cloud)
    }

    /// Makes a call. `about` names its subject, and `found` counts what its answer has.
    fn call<T>(
        &self,
        operation: &'static str,
        about: impl FnOnce() -> String,
        call: impl FnOnce(&dyn Cloud) -> Result<T, CloudError>,
        found: impl FnOnce(&T) -> usize,
    ) -> Result<T, CloudError> {
        let start = Instant::now();
        let result = call(&*self.0);
        let duration_ms = millis(start.elapsed());
        let cloud = self.0.name();
        // The values of fields are only made for an event that is logged.
        match &result {
            Ok(answer) => tracing::debug!(
                target: TARGET, cloud, operation, about = about(), found = found(answer),
                duration_ms, "call succeeded"
            ),
            Err(error) => tracing::debug!(
                target: TARGET, cloud, operation, about = about(),
                retryable = error.kind.is_retryable(), error = error.summary(), duration_ms,
                "call failed"
            ),
        }
        result
    }
}

/// The only id, or how many there are.
fn ids(ids: &[String]) -> String {
    match ids {
        [only] => only.clone(),
        several => format!("{} ids", several.len()),
    }
}

/// The address in the tags of a new instance, and its instance id.
fn new_instance(request: &CreateRequest) -> String {
    let tag = |short: &str| {
        let keys = [format!("nstance:{short}"), format!("nstance-{short}")];
        keys.iter().find_map(|key| request.tags.get(key))
    };
    let id = &request.instance_id;
    match (tag("tenant"), tag("group"), tag("slot")) {
        (Some(tenant), Some(group), Some(slot)) => format!("{tenant}/{group}/{slot} {id}"),
        _ => id.clone(),
    }
}

fn one<T>(_: &T) -> usize {
    1
}

impl Cloud for LoggedCloud {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError> {
        self.call(
            "list",
            || format!("{}/{}", owner.cluster, owner.shard),
            |cloud| cloud.list(owner, page),
            |page| page.instances.len(),
        )
    }

    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError> {
        self.call(
            "describe",
            || ids(provider_ids),
            |cloud| cloud.describe(provider_ids),
            Vec::len,
        )
    }

    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
        self.call(
            "find images",
            String::new,
            |cloud| cloud.find_images(query),
            Vec::len,
        )
    }

    fn subnets(&self, wanted: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
        self.call(
            "subnets",
            || ids(wanted),
            |cloud| cloud.subnets(wanted),
            Vec::len,
        )
    }

    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError> {
        self.call(
            "create",
            || new_instance(request),
            |cloud| cloud.create(request),
            one,
        )
    }

    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError> {
        self.call(
            "update",
            || request.provider_id.clone(),
            |cloud| cloud.update(request),
            one,
        )
    }

    fn register(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        self.call(
            "register",
            || request.provider_id.clone(),
            |cloud| cloud.register(request),
            one,
        )
    }

    fn deregister(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        self.call(
            "deregister",
            || request.provider_id.clone(),
            |cloud| cloud.deregister(request),
            one,
        )
    }

    fn target_health(
        &self,
        provider_ids: &[String],
        load_balancers: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError> {
        self.call(
            "target health",
            || ids(provider_ids),
            |cloud| cloud.target_health(provider_ids, load_balancers),
            Vec::len,
        )
    }

    fn probe(&self, provider_id: &str, check: &Check) -> Option<Result<(), String>> {
        self.0.probe(provider_id, check)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        self.call(
            "delete",
            || request.provider_id.clone(),
            |cloud| cloud.delete(request),
            one,
        )
    }

    fn instance_types(&self, names: &[String]) -> Result<Option<Vec<InstanceType>>, CloudError> {
        self.call(
            "instance types",
            || ids(names),
            |cloud| cloud.instance_types(names),
            |types| types.as_ref().map_or(0, Vec::len),
        )
    }

    fn near_instance_type(&self, name: &str) -> Option<String> {
        self.0.near_instance_type(name)
    }

    fn limits_ahead(&self, wanted: &[WantedCapacity]) -> Vec<String> {
        let limits = self.call(
            "limits",
            String::new,
            |cloud| Ok(cloud.limits_ahead(wanted)),
            Vec::len,
        );
        limits.unwrap_or_default()
    }

    fn asks_for_userdata(&self) -> bool {
        self.0.asks_for_userdata()
    }

    fn recall_userdata(&self, known: Vec<LaunchedUserdata>) {
        self.0.recall_userdata(known);
    }

    fn userdata_launches(&self) -> BTreeMap<String, String> {
        self.0.userdata_launches()
    }

    fn check_access(&self, sample: &AccessSample) -> Option<Result<Access, CloudError>> {
        let answer = self.call(
            "check access",
            String::new,
            |cloud| cloud.check_access(sample).transpose(),
            one,
        );
        answer.transpose()
    }

    fn visibility_window(&self) -> Duration {
        self.0.visibility_window()
    }

    fn wait_timeout(&self) -> Duration {
        self.0.wait_timeout()
    }

    fn parallelism(&self) -> usize {
        self.0.parallelism()
    }
}

//! The AWS implementation of [`Cloud`].
//!
//! In: requests, and an [`Api`] that makes calls. Out: observations and errors. Must not: read the
//! configuration or the state, or keep data beyond a run.
//!
//! A request that needs several calls (stop an instance to update it) is completed before it
//! returns. If the process dies in between, the next plan reports the rest as drift.

mod changes;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nstance_ec2::{Api, Operation};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::provider::{
    Access, AccessSample, Cloud, CloudError, CloudErrorKind, CreateRequest, DeleteRequest,
    ImageMatch, ImageQuery, InstanceType, LaunchedUserdata, LifecycleState, Observation, Owner,
    Page, SubnetInfo, TargetHealth, TargetsRequest, UpdateRequest, WantedCapacity,
    readable_userdata,
};

use super::access;
use super::balancers::Balancers;
use super::calls::{Calls, filter, instances_of, unreadable};
use super::combine::{Combiner, together_or_alone};
use super::observe::{self, Beside, items, text};
use super::options::AwsOptions;
use super::request::{self, SOURCE_DEST_CHECK};
use super::types::{self, Types};
use super::update::{self, Work};
use super::{images, network};

/// The maximum number of instances in a `TerminateInstances`, and of resources in a `CreateTags`.
const MOST_AT_ONCE: usize = 1_000;

/// The number of parallel calls: enough to fill batches, and far below the API's limits.
const PARALLELISM: usize = 20;

/// A change of tags that several resources share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Tagging {
    Set(BTreeMap<String, String>),
    Remove(Vec<String>),
}

/// EC2 and related services, in one account and region.
pub struct AwsCloud {
    calls: Calls,
    options: AwsOptions,
    region: String,
    balancers: Balancers,
    types: Types,
    terminations: Combiner<(), String, ()>,
    taggings: Combiner<Tagging, String, ()>,
    looks: Combiner<(), String, Option<Value>>,
    /// Launch time and userdata by instance; userdata can't change while an instance runs.
    userdata: Mutex<HashMap<String, (String, String)>>,
}

impl AwsCloud {
    /// A cloud that calls `api`, with the rates of `options`. It observes membership in
    /// `target_groups`, the configured ARNs.
    pub fn new(
        api: Arc<dyn Api>,
        options: AwsOptions,
        region: &str,
        target_groups: Vec<String>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            calls: Calls::new(api, clock, &options),
            options,
            region: region.to_owned(),
            balancers: Balancers::new(target_groups),
            types: Types::default(),
            terminations: Combiner::new(MOST_AT_ONCE),
            taggings: Combiner::new(MOST_AT_ONCE),
            looks: Combiner::new(super::calls::FILTER_VALUES),
            userdata: Mutex::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn waiting_deletions(&self) -> usize {
        self.terminations.waiting()
    }

    /// The current description of an instance, from a batched call.
    ///
    /// Fails if the API does.
    fn look(&self, id: &str) -> Result<Option<Value>, CloudError> {
        self.looks
            .ask(&(), id.to_owned(), |ids| match self.calls.instances(ids) {
                Ok(found) => ids
                    .iter()
                    .map(|id| {
                        let is_it = |it: &&Value| text(it, "InstanceId") == Some(id);
                        Ok(found.iter().find(is_it).cloned())
                    })
                    .collect(),
                Err(error) => vec![Err(error); ids.len()],
            })
    }

    /// The description of an instance.
    ///
    /// Fails if it doesn't exist.
    fn need(&self, id: &str) -> Result<Value, CloudError> {
        let found = self.look(id)?.filter(is_live);
        found.ok_or_else(|| {
            CloudError::new(
                CloudErrorKind::NotFound,
                "InvalidInstanceID.NotFound",
                format!("the instance `{id}` doesn't exist"),
            )
        })
    }

    /// The observation of an instance, with results of other calls.
    ///
    /// Fails if the description is invalid.
    fn observation(&self, instance: &Value, beside: Beside) -> Result<Observation, CloudError> {
        observe::observation(instance, &self.options, beside)
            .ok_or_else(|| unreadable(Operation::DescribeInstances, "id or state of an instance"))
    }

    fn observe(&self, instance: &Value) -> Result<Observation, CloudError> {
        let live = is_live(instance);
        let beside = Beside {
            load_balancers: if live {
                self.balancers.of(&self.calls, instance)?
            } else {
                None
            },
            watched: self.balancers.watched(),
            userdata: if live && self.options.userdata_drift {
                Some(self.userdata(instance)?)
            } else {
                None
            },
        };
        self.observation(instance, beside)
    }

    /// An instance's userdata as text, queried once per launch.
    ///
    /// Fails if the API does.
    fn userdata(&self, instance: &Value) -> Result<String, CloudError> {
        let id = text(instance, "InstanceId").unwrap_or_default();
        let launched = text(instance, "LaunchTime").unwrap_or_default();
        // The userdata of a stopped instance can change before its next launch.
        let is_up = matches!(
            observe::state(instance),
            Some(LifecycleState::Pending | LifecycleState::Running)
        );
        if is_up
            && let Some((launch, text)) = self.known_userdata().get(id)
            && launch == launched
        {
            return Ok(text.clone());
        }
        let text = readable(&self.raw_userdata(id)?);
        let mut known = self.known_userdata();
        if is_up {
            known.insert(id.to_owned(), (launched.to_owned(), text.clone()));
        } else {
            known.remove(id);
        }
        Ok(text)
    }

    fn known_userdata(&self) -> MutexGuard<'_, HashMap<String, (String, String)>> {
        self.userdata.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An instance's userdata in base64.
    ///
    /// Fails if the API does.
    fn raw_userdata(&self, id: &str) -> Result<String, CloudError> {
        let input = json!({"InstanceId": id, "Attribute": "userData"});
        let answer = self
            .calls
            .call(Operation::DescribeInstanceAttribute, &input)?;
        let value = answer.get("UserData").and_then(|data| text(data, "Value"));
        Ok(value.unwrap_or_default().to_owned())
    }

    /// Completes a creation once the instance exists. If this fails, the engine repeats the
    /// creation with the same token, which ends here again.
    fn finish(&self, request: &CreateRequest, made: Value) -> Result<Observation, Unfinished> {
        let id = text(&made, "InstanceId").unwrap_or_default().to_owned();
        let mut instance = made;
        let check = request.args.get(SOURCE_DEST_CHECK);
        let check = check
            .filter(|check| check.is_boolean() && instance.get(SOURCE_DEST_CHECK) != Some(*check));
        if let Some(check) = check {
            // A pending instance can't be changed.
            instance = self
                .wait_until(&id, LifecycleState::Running)?
                .map_err(Unfinished::Ended)?;
            let (operation, input) = update::source_dest_check(&instance, json!({"Value": check}));
            self.calls.call(operation, &input)?;
            instance[SOURCE_DEST_CHECK] = check.clone();
        }
        let watched = self.balancers.watched();
        let sent = request.userdata.as_deref().unwrap_or_default();
        Ok(self.observation(
            &instance,
            Beside {
                // It is registered later.
                load_balancers: watched.is_some().then(Vec::new),
                watched,
                userdata: self.options.userdata_drift.then(|| readable(sent)),
            },
        )?)
    }

    /// Waits for a state.
    ///
    /// Fails if the instance ends, or on a timeout.
    fn wait_for(&self, id: &str, state: LifecycleState) -> Result<Value, CloudError> {
        self.wait_until(id, state)?
    }

    /// Waits for a state. The inner result is an error if the instance ended.
    ///
    /// Fails if the API does, or on a timeout.
    fn wait_until(
        &self,
        id: &str,
        state: LifecycleState,
    ) -> Result<Result<Value, CloudError>, CloudError> {
        let timeout = self.options.wait_timeout;
        let reached = self.calls.poll(&self.options, timeout, || {
            // Not visible yet.
            let Some(instance) = self.look(id)? else {
                return Ok(None);
            };
            Ok(match observe::state(&instance) {
                Some(now) if now == state => Some(Ok(instance)),
                Some(now) if !now.is_live() => Some(Err(ended(id, &instance))),
                _ => None,
            })
        })?;
        reached.ok_or_else(|| {
            let (state, seconds) = (state.as_str(), timeout.as_secs());
            CloudError::new(
                CloudErrorKind::Ambiguous,
                "WaitTimeout",
                format!("`{id}` wasn't {state} within {seconds}s"),
            )
            .hint(
                "run apply again; `wait_timeout` in `shard.infra.options` says how long is waited",
            )
        })
    }

    /// Deregisters an instance from these target groups, and from those of the configuration that it
    /// is in. Waits up to `drain` for its connections to end.
    ///
    /// Fails if the API does.
    fn leave(&self, id: &str, requested: &[String], drain: Duration) -> Result<(), CloudError> {
        if requested.is_empty() && !self.balancers.watches_any() {
            return Ok(());
        }
        // An instance that isn't found has nothing to drain; the deletion checks whether it exists.
        let Some(instance) = self.look(id)?.filter(is_live) else {
            return Ok(());
        };
        let mut groups = self
            .balancers
            .of(&self.calls, &instance)?
            .unwrap_or_default();
        groups.extend(requested.iter().cloned());
        groups.sort();
        groups.dedup();
        self.balancers
            .leave(&self.calls, &self.options, &instance, &groups, drain)
    }
}

impl Cloud for AwsCloud {
    fn name(&self) -> &'static str {
        "aws"
    }

    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError> {
        if page.is_none() {
            self.balancers.look_anew();
        }
        // Includes instances that are shutting down, so that their absence later is certain.
        let mut input = json!({
            "Filters": [
                filter("tag:nstance:managed", &["true"]),
                filter("tag:nstance:cluster-id", &[&owner.cluster]),
                filter("tag:nstance:shard", &[&owner.shard]),
            ],
            "MaxResults": 1_000,
        });
        if let Some(page) = page {
            input["NextToken"] = page.into();
        }
        let answer = self.calls.call(Operation::DescribeInstances, &input)?;
        let instances = items(&answer, "Reservations")
            .flat_map(instances_of)
            .map(|instance| self.observe(instance))
            .collect::<Result<_, _>>()?;
        let next = text(&answer, "NextToken").filter(|next| !next.is_empty());
        Ok(Page {
            instances,
            next: next.map(str::to_owned),
        })
    }

    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError> {
        self.calls
            .instances(provider_ids)?
            .iter()
            .map(|instance| self.observe(instance))
            .collect()
    }

    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
        images::find(&self.calls, query)
    }

    fn subnets(&self, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
        network::subnets(&self.calls, ids)
    }

    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError> {
        let input = request::run_instances(request);
        let mut answer = self.calls.call(Operation::RunInstances, &input)?;
        let made = answer
            .get_mut("Instances")
            .and_then(|instances| instances.get_mut(0))
            .map(Value::take)
            .filter(|made| text(made, "InstanceId").is_some())
            .ok_or_else(|| unreadable(Operation::RunInstances, "instance"))?;
        let id = text(&made, "InstanceId").unwrap_or_default().to_owned();
        self.finish(request, made)
            .map_err(|unfinished| unfinished.told(&id))
    }

    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError> {
        let id = request.provider_id.as_str();
        let instance = self.need(id)?;
        let work = update::work(request, &instance, &self.options)?;
        if work != Work::default() {
            self.carry_out(request, instance, &work)?;
        }
        self.observe(&self.need(id)?)
    }

    fn register(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        let instance = self.need(&request.provider_id)?;
        self.balancers
            .join(&self.calls, &instance, &request.load_balancers)
    }

    fn deregister(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        self.leave(
            &request.provider_id,
            &request.load_balancers,
            Duration::ZERO,
        )
    }

    fn target_health(
        &self,
        provider_ids: &[String],
        load_balancers: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError> {
        Balancers::health(&self.calls, provider_ids, load_balancers)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        let id = request.provider_id.as_str();
        let drain = Duration::from_millis(request.drain_timeout_ms);
        self.leave(id, &request.load_balancers, drain)?;
        let ended = self.terminations.ask(&(), id.to_owned(), |ids| {
            together_or_alone(ids, |ids| {
                let input = json!({"InstanceIds": ids});
                self.calls
                    .call(Operation::TerminateInstances, &input)
                    .map(|_| ())
            })
        });
        match ended {
            Err(error) if error.kind == CloudErrorKind::NotFound => return Ok(()),
            ended => ended?,
        }
        if request.until_gone {
            let timeout = self.options.wait_timeout;
            self.calls.poll(&self.options, timeout, || {
                let state = self.look(id)?.as_ref().and_then(observe::state);
                let gone = state.is_none_or(|state| state == LifecycleState::Terminated);
                Ok(gone.then_some(()))
            })?;
        }
        Ok(())
    }

    fn instance_types(&self, names: &[String]) -> Result<Option<Vec<InstanceType>>, CloudError> {
        self.types.get(&self.calls, names).map(Some)
    }

    fn near_instance_type(&self, name: &str) -> Option<String> {
        types::near(&self.calls, name)
    }

    fn limits_ahead(&self, wanted: &[WantedCapacity]) -> Vec<String> {
        self.types.limits_ahead(&self.calls, &self.region, wanted)
    }

    fn asks_for_userdata(&self) -> bool {
        self.options.userdata_drift
    }

    fn recall_userdata(&self, known: Vec<LaunchedUserdata>) {
        let known = known.into_iter();
        let known = known.map(|known| (known.provider_id, (known.launch, known.text)));
        self.known_userdata().extend(known);
    }

    fn userdata_launches(&self) -> BTreeMap<String, String> {
        let known = self.known_userdata();
        let launches = known.iter();
        launches
            .map(|(id, (launch, _))| (id.clone(), launch.clone()))
            .collect()
    }

    fn check_access(&self, sample: &AccessSample) -> Option<Result<Access, CloudError>> {
        let watches = self.balancers.watches_any();
        Some(access::check(&self.calls, &self.region, sample, watches))
    }

    fn wait_timeout(&self) -> Duration {
        self.options.wait_timeout
    }

    fn visibility_window(&self) -> Duration {
        self.options.visibility_window
    }

    fn parallelism(&self) -> usize {
        PARALLELISM
    }
}

fn is_live(instance: &Value) -> bool {
    observe::state(instance).is_some_and(LifecycleState::is_live)
}

/// Decodes base64 to text.
fn readable(base64: &str) -> String {
    let bytes = BASE64.decode(base64).unwrap_or_default();
    readable_userdata(bytes)
}

/// The error that a new instance ended early.
fn ended(id: &str, instance: &Value) -> CloudError {
    let reason = instance.get("StateReason");
    let code = reason.and_then(|reason| text(reason, "Code"));
    let kind = match code {
        Some("Server.InsufficientInstanceCapacity") => CloudErrorKind::Capacity,
        Some("Client.VolumeLimitExceeded") => CloudErrorKind::Quota,
        _ => CloudErrorKind::Invalid,
    };
    let why = observe::ended_because(instance).unwrap_or_else(|| "EC2 doesn't say why".to_owned());
    CloudError::new(
        kind,
        code.unwrap_or("Terminated"),
        format!("`{id}` ended: {why}"),
    )
}

/// Why a created instance isn't ready.
enum Unfinished {
    /// It ended, and nothing is left of it.
    Ended(CloudError),
    /// It exists, but a later call failed.
    Open(CloudError),
}

impl From<CloudError> for Unfinished {
    fn from(error: CloudError) -> Self {
        Self::Open(error)
    }
}

impl Unfinished {
    /// The error of the creation. If the instance exists, the error must not mean that nothing
    /// happened: the creation is retried with the same token. If that fails too, its intent stays
    /// open and the next run finds the instance.
    fn told(self, id: &str) -> CloudError {
        match self {
            Self::Ended(error) => error,
            Self::Open(mut error) => {
                error.message =
                    format!("`{id}` was created, and isn't ready yet: {}", error.message);
                if !error.kind.is_retryable() {
                    error.kind = CloudErrorKind::Ambiguous;
                }
                error
            }
        }
    }
}

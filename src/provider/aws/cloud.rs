//! AWS as a [`Cloud`].
//!
//! In: requests, and an [`Api`] that makes calls. Out: observations and errors. Must not: read the
//! configuration or the state, or keep anything beyond a run.
//!
//! What happens to an instance beyond one call (registered once it runs, stopped to be changed) is
//! done while its request is answered. Where a process dies in between, the next plan sees what is
//! missing as drift.

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
    Page, SubnetInfo, UpdateRequest, WantedCapacity, readable_userdata,
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

/// The most instances of one `TerminateInstances`, and resources of one `CreateTags`.
const MOST_AT_ONCE: usize = 1_000;

/// How many calls are under way at once: enough to fill batches, and far below the limits of
/// requests.
const PARALLELISM: usize = 20;

/// Tags that several resources get or lose in one call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Tagging {
    Set(BTreeMap<String, String>),
    Remove(Vec<String>),
}

/// EC2 and what belongs to it, in one account and region.
pub struct AwsCloud {
    calls: Calls,
    options: AwsOptions,
    region: String,
    balancers: Balancers,
    types: Types,
    terminations: Combiner<(), String, ()>,
    taggings: Combiner<Tagging, String, ()>,
    looks: Combiner<(), String, Option<Value>>,
    /// Launch and user data by instance: it can't change while an instance runs.
    userdata: Mutex<HashMap<String, (String, String)>>,
}

impl AwsCloud {
    /// A cloud that asks `api`, as fast as `options` say. `target_groups` are the ARNs that the
    /// configuration names: membership is looked at in these.
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

    /// One instance as it is described now, whoever else is asked about in the same call.
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

    /// One instance, which must be there.
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

    /// What an instance is, with what other calls tell of it.
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

    /// An instance's user data as text, asked for once a launch.
    fn userdata(&self, instance: &Value) -> Result<String, CloudError> {
        let id = text(instance, "InstanceId").unwrap_or_default();
        let launched = text(instance, "LaunchTime").unwrap_or_default();
        // What is down may get other user data before it is launched again.
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

    /// An instance's user data in base64.
    fn raw_userdata(&self, id: &str) -> Result<String, CloudError> {
        let input = json!({"InstanceId": id, "Attribute": "userData"});
        let answer = self
            .calls
            .call(Operation::DescribeInstanceAttribute, &input)?;
        let value = answer.get("UserData").and_then(|data| text(data, "Value"));
        Ok(value.unwrap_or_default().to_owned())
    }

    /// What is done once an instance exists. Its creation is repeated with the same token if this
    /// fails, and ends here again.
    fn finish(&self, request: &CreateRequest, made: Value) -> Result<Observation, Unfinished> {
        let id = text(&made, "InstanceId").unwrap_or_default().to_owned();
        let mut instance = made;
        let check = request.args.get(SOURCE_DEST_CHECK);
        let check = check
            .filter(|check| check.is_boolean() && instance.get(SOURCE_DEST_CHECK) != Some(*check));
        // What is pending can't be changed, and target groups don't take it.
        if check.is_some() || !request.load_balancers.is_empty() {
            instance = self
                .wait_until(&id, LifecycleState::Running)?
                .map_err(Unfinished::Ended)?;
        }
        if let Some(check) = check {
            let (operation, input) = update::source_dest_check(&instance, json!({"Value": check}));
            self.calls.call(operation, &input)?;
            instance[SOURCE_DEST_CHECK] = check.clone();
        }
        self.balancers
            .join(&self.calls, &instance, &request.load_balancers)?;
        let mut groups = request.load_balancers.clone();
        groups.sort();
        let watched = self.balancers.watched();
        let sent = request.userdata.as_deref().unwrap_or_default();
        Ok(self.observation(
            &instance,
            Beside {
                load_balancers: watched.is_some().then_some(groups),
                watched,
                userdata: self.options.userdata_drift.then(|| readable(sent)),
            },
        )?)
    }

    /// Waits until an instance has come to a state; one that ends meanwhile is an error.
    fn wait_for(&self, id: &str, state: LifecycleState) -> Result<Value, CloudError> {
        self.wait_until(id, state)?
    }

    /// Waits until an instance has come to a state, or has ended: then the inner error says why.
    fn wait_until(
        &self,
        id: &str,
        state: LifecycleState,
    ) -> Result<Result<Value, CloudError>, CloudError> {
        let timeout = self.options.wait_timeout;
        let reached = self.calls.poll(&self.options, timeout, || {
            // Not to be seen yet.
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

    /// Takes an instance out of its target groups before it ends.
    fn drain(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        if request.load_balancers.is_empty() && !self.balancers.watches_any() {
            return Ok(());
        }
        // What can't be seen has nothing to drain; whether it is gone, its deletion tells.
        let Some(instance) = self.look(&request.provider_id)?.filter(is_live) else {
            return Ok(());
        };
        let mut groups = self
            .balancers
            .of(&self.calls, &instance)?
            .unwrap_or_default();
        groups.extend(request.load_balancers.iter().cloned());
        groups.sort();
        groups.dedup();
        let drain = Duration::from_millis(request.drain_timeout_ms);
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
        // Instances on their way out are listed too: then their absence later is certain.
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

    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        let id = request.provider_id.as_str();
        self.drain(request)?;
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

/// What base64 holds, as text.
fn readable(base64: &str) -> String {
    let bytes = BASE64.decode(base64).unwrap_or_default();
    readable_userdata(bytes)
}

/// An instance that was made and didn't live long enough to be of use.
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

/// Why an instance that was made isn't ready.
enum Unfinished {
    /// It has ended: nothing of it is left.
    Ended(CloudError),
    /// It is there, and what comes after its creation failed.
    Open(CloudError),
}

impl From<CloudError> for Unfinished {
    fn from(error: CloudError) -> Self {
        Self::Open(error)
    }
}

impl Unfinished {
    /// The error of the creation. Whatever another error means by itself, an instance that is there
    /// isn't undone by it: its creation is tried again with the same token, and in the end left
    /// open, so that the next run finds the instance.
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

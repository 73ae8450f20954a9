//! AWS as a [`Cloud`].
//!
//! In: requests, and an [`Api`] that makes calls. Out: observations and errors. May not: read the
//! configuration or the state, or keep anything beyond a run.
//!
//! What happens to an instance beyond one call (registered once it runs, stopped to be changed) is
//! done while its request is answered. Where a process dies in between, the next plan sees what is
//! missing as drift.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nstance_ec2::{Api, Operation};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::provider::{
    Access, AccessSample, Cloud, CloudError, CloudErrorKind, CreateRequest, DeleteRequest,
    ImageMatch, ImageQuery, InstanceType, LifecycleState, Observation, Owner, Page, SubnetInfo,
    UpdateRequest, WantedCapacity, userdata,
};

use super::access;
use super::balancers::Balancers;
use super::calls::{Calls, filter, instances_of, unreadable};
use super::combine::{Combiner, together_or_alone};
use super::observe::{self, Beside, items, text};
use super::options::AwsOptions;
use super::request::{self, SOURCE_DEST_CHECK};
use super::types::Types;
use super::update::{self, Work};
use super::{images, network};

/// The most instances of one TerminateInstances, and resources of one CreateTags.
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
    /// User data by instance and launch: it can't change while an instance runs.
    userdata: Mutex<HashMap<(String, String), String>>,
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
            .ask((), id.to_owned(), |ids| match self.calls.instances(ids) {
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
        let key = (id.to_owned(), launched.to_owned());
        let known = || self.userdata.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known().get(&key) {
            return Ok(text.clone());
        }
        let text = readable(&self.raw_userdata(id)?);
        known().insert(key, text.clone());
        Ok(text)
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
    fn finish(&self, request: &CreateRequest, made: Value) -> Result<Observation, CloudError> {
        let id = text(&made, "InstanceId").unwrap_or_default().to_owned();
        let mut instance = made;
        let check = request.args.get(SOURCE_DEST_CHECK);
        let check = check
            .filter(|check| check.is_boolean() && instance.get(SOURCE_DEST_CHECK) != Some(*check));
        // What is pending can't be changed, and target groups don't take it.
        if check.is_some() || !request.load_balancers.is_empty() {
            instance = self.wait_for(&id, LifecycleState::Running)?;
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
        self.observation(
            &instance,
            Beside {
                load_balancers: watched.is_some().then_some(groups),
                watched,
                userdata: self.options.userdata_drift.then(|| readable(sent)),
            },
        )
    }

    /// Waits until an instance has come to a state. One that ends meanwhile is an error that says
    /// why.
    fn wait_for(&self, id: &str, state: LifecycleState) -> Result<Value, CloudError> {
        let timeout = self.options.wait_timeout;
        let reached = self.calls.poll(&self.options, timeout, || {
            // Not to be seen yet.
            let Some(instance) = self.look(id)? else {
                return Ok(None);
            };
            match observe::state(&instance) {
                Some(now) if now == state => Ok(Some(instance)),
                Some(now) if !now.is_live() => Err(ended(id, &instance)),
                _ => Ok(None),
            }
        })?;
        reached.ok_or_else(|| {
            CloudError::new(
                CloudErrorKind::Ambiguous,
                "WaitTimeout",
                format!(
                    "`{id}` wasn't {} within {}s",
                    state.as_str(),
                    timeout.as_secs()
                ),
            )
            .hint(
                "run apply again; `wait_timeout` in `shard.infra.options` says how long is waited",
            )
        })
    }

    /// Does all that an update takes.
    fn carry_out(
        &self,
        request: &UpdateRequest,
        mut instance: Value,
        work: &Work,
    ) -> Result<(), CloudError> {
        let id = request.provider_id.as_str();
        let state = observe::state(&instance).unwrap_or(LifecycleState::Running);
        if work.needs_settled(state) {
            instance = self.wait_for(id, LifecycleState::Running)?;
        }
        for (operation, input) in &work.calls {
            self.modify(*operation, input)?;
        }
        if let Some(names) = &work.group_names {
            let vpc = text(&instance, "VpcId").unwrap_or_default();
            let groups = network::security_groups(&self.calls, vpc, names)?;
            let (operation, input) = update::security_groups(&instance, &groups.into());
            self.calls.call(operation, &input)?;
        }
        if let Some(wanted) = &work.profile {
            self.set_profile(id, wanted.as_ref())?;
        }
        let userdata = match &work.userdata {
            Some(wanted) if *wanted != self.raw_userdata(id)? => Some(wanted),
            _ => None,
        };
        let mut state = observe::state(&instance).unwrap_or(LifecycleState::Running);
        if work.needs_stop(userdata.is_some()) {
            if state == LifecycleState::Running {
                self.calls
                    .call(Operation::StopInstances, &json!({"InstanceIds": [id]}))?;
            }
            self.wait_for(id, LifecycleState::Stopped)?;
            state = LifecycleState::Stopped;
            for (operation, input) in &work.stopped {
                self.modify(*operation, input)?;
            }
            if let Some(userdata) = userdata {
                let input = json!({"InstanceId": id, "UserData": {"Value": userdata}});
                self.modify(Operation::ModifyInstanceAttribute, &input)?;
            }
        }
        let is_down = matches!(state, LifecycleState::Stopped | LifecycleState::Stopping);
        if work.start && is_down {
            if state == LifecycleState::Stopping {
                self.wait_for(id, LifecycleState::Stopped)?;
            }
            self.calls
                .call(Operation::StartInstances, &json!({"InstanceIds": [id]}))?;
        }
        if work.moves {
            self.move_targets(request)?;
        }
        self.tag(id, &work.set_tags, &work.remove_tags)
    }

    /// A modifying call; some say in their answer what they didn't do.
    fn modify(&self, operation: Operation, input: &Value) -> Result<(), CloudError> {
        let answer = self.calls.call(operation, input)?;
        let failed = items(&answer, "UnsuccessfulInstanceCreditSpecifications").next();
        let Some(error) = failed.map(|failed| failed.get("Error").unwrap_or(&Value::Null)) else {
            return Ok(());
        };
        Err(CloudError::new(
            CloudErrorKind::Invalid,
            text(error, "Code").unwrap_or("Unsuccessful"),
            text(error, "Message").unwrap_or("the credit specification wasn't changed"),
        ))
    }

    fn set_profile(&self, id: &str, wanted: Option<&Value>) -> Result<(), CloudError> {
        let filters = [
            filter("instance-id", &[id]),
            filter("state", &["associating", "associated"]),
        ];
        let associations = self.calls.pages(
            Operation::DescribeIamInstanceProfileAssociations,
            &json!({"Filters": filters}),
            "IamInstanceProfileAssociations",
        )?;
        let association = associations.first();
        let association_id = association.and_then(|it| text(it, "AssociationId"));
        let arn = association
            .and_then(|it| text(it.get("IamInstanceProfile")?, "Arn"))
            .unwrap_or_default();
        let is_wanted = |wanted: &Value| {
            text(wanted, "Arn") == Some(arn)
                || text(wanted, "Name") == Some(observe::profile_name(arn))
        };
        let (operation, input) = match (association_id, wanted) {
            (None, None) => return Ok(()),
            (Some(_), Some(wanted)) if is_wanted(wanted) => return Ok(()),
            (Some(association), Some(wanted)) => (
                Operation::ReplaceIamInstanceProfileAssociation,
                json!({"AssociationId": association, "IamInstanceProfile": wanted}),
            ),
            (Some(association), None) => (
                Operation::DisassociateIamInstanceProfile,
                json!({"AssociationId": association}),
            ),
            (None, Some(wanted)) => (
                Operation::AssociateIamInstanceProfile,
                json!({"InstanceId": id, "IamInstanceProfile": wanted}),
            ),
        };
        self.calls.call(operation, &input).map(|_| ())
    }

    /// Puts an instance into the target groups it should be in, and takes it out of the others.
    fn move_targets(&self, request: &UpdateRequest) -> Result<(), CloudError> {
        let id = request.provider_id.as_str();
        let wanted = &request.load_balancers;
        // EC2 takes running instances only.
        let instance = if wanted.is_empty() {
            self.need(id)?
        } else {
            self.wait_for(id, LifecycleState::Running)?
        };
        self.balancers.look_anew();
        let now = self
            .balancers
            .of(&self.calls, &instance)?
            .unwrap_or_default();
        let missing: Vec<String> = wanted
            .iter()
            .filter(|group| !now.contains(group))
            .cloned()
            .collect();
        self.balancers.join(&self.calls, &instance, &missing)?;
        let mut surplus: Vec<String> = now;
        surplus.extend(request.leaves.iter().cloned());
        surplus.retain(|group| !wanted.contains(group));
        surplus.sort();
        surplus.dedup();
        let drain = Duration::ZERO;
        self.balancers
            .leave(&self.calls, &self.options, &instance, &surplus, drain)
    }

    fn tag(
        &self,
        id: &str,
        set: &BTreeMap<String, String>,
        remove: &[String],
    ) -> Result<(), CloudError> {
        if !set.is_empty() {
            let key = Tagging::Set(set.clone());
            self.taggings.ask(key, id.to_owned(), |ids| {
                let tags = request::tag_list(set);
                self.tagging(Operation::CreateTags, ids, &tags)
            })?;
        }
        if !remove.is_empty() {
            let key = Tagging::Remove(remove.to_vec());
            self.taggings.ask(key, id.to_owned(), |ids| {
                let tags: Vec<Value> = remove.iter().map(|key| json!({"Key": key})).collect();
                self.tagging(Operation::DeleteTags, ids, &tags)
            })?;
        }
        Ok(())
    }

    fn tagging(
        &self,
        operation: Operation,
        ids: &[String],
        tags: &[Value],
    ) -> Vec<Result<(), CloudError>> {
        together_or_alone(ids, |ids| {
            let input = json!({"Resources": ids, "Tags": tags});
            self.calls.call(operation, &input).map(|_| ())
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
            .map_err(|error| unfinished(&id, error))
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
        let ended = self.terminations.ask((), id.to_owned(), |ids| {
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
        self.types.near(&self.calls, name)
    }

    fn limits_ahead(&self, wanted: &[WantedCapacity]) -> Vec<String> {
        self.types.limits_ahead(&self.calls, &self.region, wanted)
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
    userdata::readable(bytes)
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

/// An instance exists, and what comes after its creation failed. Whatever the error means by
/// itself, the creation isn't undone by it: it is tried again with the same token, and in the end
/// left open, so that the next run finds the instance.
fn unfinished(id: &str, mut error: CloudError) -> CloudError {
    let has_ended = error.message.contains("` ended: ");
    if !has_ended {
        error.message = format!("`{id}` was created, and isn't ready yet: {}", error.message);
        if !error.kind.is_retryable() {
            error.kind = CloudErrorKind::Ambiguous;
        }
    }
    error
}

//! The Compute Engine implementation of [`Cloud`].
//!
//! In: requests, and an [`Api`] that makes calls. Out: observations and errors. Must not: read the
//! configuration or the state, or keep data beyond a run.
//!
//! A request that needs several calls (stop an instance to update it) is completed before it returns.
//! If the process dies in between, the next plan reports the rest as drift.

use std::sync::Arc;
use std::time::Duration;

use nstance_gce::{Api, Operation};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::provider::{
    Access, AccessSample, Cloud, CloudError, CloudErrorKind, CreateRequest, DeleteRequest,
    ImageMatch, ImageQuery, LifecycleState, Observation, Owner, Page, SubnetInfo, TargetHealth,
    TargetsRequest, UpdateRequest, WantedCapacity,
};

use super::calls::Calls;
use super::groups::Groups;
use super::observe::{self, labels, text};
use super::options::GcpOptions;
use super::paths::{Place, name, of_instance};
use super::update::{self, Work};
use super::{access, errors, images, network, quotas, request};

/// The number of parallel calls: operations in flight, each of which takes half a minute.
const PARALLELISM: usize = 20;

/// From this number on, instances are listed rather than read one by one.
const MANY: usize = 10;

/// How often an update is planned anew because others changed the instance meanwhile.
const MOST_LOOKS: usize = 5;

/// Compute Engine, in one project and region.
pub struct GcpCloud {
    calls: Calls,
    options: GcpOptions,
    groups: Groups,
    /// The configured subnets, as written.
    subnets: Vec<String>,
}

/// What a configuration names that the cloud observes.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// Instance groups, and `networkEndpointGroups/NAME`.
    pub groups: Vec<String>,
    /// Subnets.
    pub subnets: Vec<String>,
}

impl GcpCloud {
    /// A cloud that calls `api` in `project`, with the rates of `options`. It observes membership in
    /// the `named` groups, and calls subnets as they are named.
    pub fn new(
        api: Arc<dyn Api>,
        options: GcpOptions,
        project: &str,
        region: &str,
        named: Named,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let place = Place {
            project: project.to_owned(),
            region: region.to_owned(),
        };
        Self {
            calls: Calls::new(api, clock, place, &options),
            options,
            groups: Groups::new(named.groups),
            subnets: named.subnets,
        }
    }

    /// An instance; `None` if it doesn't exist.
    ///
    /// Fails if the API does.
    fn find(&self, zone: &str, name: &str) -> Result<Option<Value>, CloudError> {
        let input = json!({"zone": zone, "instance": name});
        self.calls.find(Operation::InstancesGet, input)
    }

    /// An instance, its zone and its name.
    ///
    /// Fails if it doesn't exist.
    fn need<'i>(&self, id: &'i str) -> Result<(Value, &'i str, &'i str), CloudError> {
        let missing = || {
            CloudError::new(
                CloudErrorKind::NotFound,
                "notFound",
                format!("the instance `{id}` doesn't exist"),
            )
        };
        let (zone, name) = of_instance(id).ok_or_else(missing)?;
        let found = self.find(zone, name)?.ok_or_else(missing)?;
        Ok((found, zone, name))
    }

    fn observe(&self, instance: &Value) -> Result<Observation, CloudError> {
        let zone = name(text(instance, "zone").unwrap_or_default());
        let own = text(instance, "name").unwrap_or_default();
        let groups = self.groups.of(&self.calls, zone, own)?;
        let watched = self.groups.watched();
        let observed = observe::observation(instance, &self.options, groups, watched);
        let mut observed = observed.ok_or_else(|| {
            CloudError::new(
                CloudErrorKind::Ambiguous,
                "UnreadableAnswer",
                format!("the instance `{own}` has no zone, or a status that isn't known"),
            )
        })?;
        let place = &self.calls.place;
        let is_it = |id: &&String| observed.subnet.as_ref() == Some(&place.subnet_path(id));
        if let Some(configured) = self.subnets.iter().find(is_it) {
            observed.subnet = Some(configured.clone());
        }
        Ok(observed)
    }

    /// The input of an operation on an instance.
    fn on(operation: Operation, zone: &str, name: &str, mut input: Value) -> Value {
        let parameter = match operation {
            Operation::InstancesSetDeletionProtection => "resource",
            _ => "instance",
        };
        input["zone"] = zone.into();
        input[parameter] = name.into();
        input
    }

    /// Carries out an update, as far as it isn't stale.
    fn carry_out(
        &self,
        request: &UpdateRequest,
        work: &Work,
        instance: &Value,
        (zone, name): (&str, &str),
    ) -> Result<(), CloudError> {
        let change = |operation, input: &Value| {
            let input = Self::on(operation, zone, name, input.clone());
            self.calls.change(operation, input)
        };
        for (operation, input) in &work.calls {
            change(*operation, input)?;
        }
        let mut state = observe::state(instance);
        if !work.stopped.is_empty() {
            if state != Some(LifecycleState::Stopped) {
                change(Operation::InstancesStop, &json!({}))?;
                state = Some(LifecycleState::Stopped);
            }
            for (operation, input) in &work.stopped {
                change(*operation, input)?;
            }
        }
        if work.start && state == Some(LifecycleState::Stopped) {
            change(Operation::InstancesStart, &json!({}))?;
        }
        if work.moves {
            let there = self.groups.of(&self.calls, zone, name)?;
            let (joins, leaves) = update::moves(request, &there.unwrap_or_default());
            self.groups.join(&self.calls, zone, name, &joins)?;
            self.groups.leave(&self.calls, zone, name, &leaves)?;
        }
        Ok(())
    }
}

/// Whether an error says that an instance of the name exists.
fn is_taken(error: &CloudError) -> bool {
    matches!(&*error.code, "alreadyExists" | "RESOURCE_ALREADY_EXISTS")
}

/// Whether an instance carries the labels that say whose it is, as a request would set them.
fn is_ours(instance: &Value, request: &CreateRequest) -> bool {
    let there = labels(instance);
    let whose = ["managed", "instance-id", "cluster-id", "shard"];
    whose.iter().all(|short| {
        let key = format!("nstance-{short}");
        there.get(&key) == request.tags.get(&key)
    })
}

impl Cloud for GcpCloud {
    fn name(&self) -> &'static str {
        "gcp"
    }

    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError> {
        if page.is_none() {
            self.groups.look_anew();
        }
        let label = super::sanitise_label;
        let filter = format!(
            "labels.nstance-managed=true AND labels.nstance-cluster-id={} AND labels.nstance-shard={}",
            label(&owner.cluster),
            label(&owner.shard)
        );
        let (instances, next) = self.calls.instances(&filter, page)?;
        let instances = instances.iter().map(|instance| self.observe(instance));
        Ok(Page {
            instances: instances.collect::<Result<_, _>>()?,
            next,
        })
    }

    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError> {
        let mut found = Vec::new();
        if provider_ids.len() < MANY {
            for id in provider_ids {
                let Some((zone, name)) = of_instance(id) else {
                    continue;
                };
                if let Some(instance) = self.find(zone, name)? {
                    found.push(self.observe(&instance)?);
                }
            }
            return Ok(found);
        }
        let wanted: Vec<(&str, &str)> = provider_ids
            .iter()
            .filter_map(|id| of_instance(id))
            .collect();
        let mut page = None;
        loop {
            let filter = "labels.nstance-managed=true";
            let (instances, next) = self.calls.instances(filter, page.as_deref())?;
            for instance in &instances {
                let zone = name(text(instance, "zone").unwrap_or_default());
                let own = text(instance, "name").unwrap_or_default();
                if wanted.contains(&(zone, own)) {
                    found.push(self.observe(instance)?);
                }
            }
            match next {
                Some(next) => page = Some(next),
                None => return Ok(found),
            }
        }
    }

    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
        images::find(&self.calls, query)
    }

    fn subnets(&self, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
        network::subnets(&self.calls, ids)
    }

    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError> {
        let (zone, own) = (request.zone.as_str(), request.name.as_str());
        let input = json!({
            "zone": zone,
            "body": request::instance(request, &self.options, &self.calls.place)?,
        });
        let inserting = Operation::InstancesInsert;
        let made = self.calls.change_once(inserting, input, &request.token);
        let refused = match made {
            Ok(()) => None,
            Err(error) if error.kind.is_retryable() => return Err(error),
            Err(error) => Some(error),
        };
        // The name says what was created, whatever an answer that was lost said, and a repeated one
        // says now.
        match (self.find(zone, own)?, refused) {
            (Some(instance), refused) if refused.is_none() || is_ours(&instance, request) => {
                self.observe(&instance)
            }
            (Some(_), Some(error)) if is_taken(&error) => Err(CloudError::new(
                CloudErrorKind::Invalid,
                "alreadyExists",
                format!("the name `{own}` belongs to another instance in {zone}"),
            )
            .hint("rename or delete that instance: its labels aren't those of this one")),
            (_, Some(error)) => Err(error),
            (_, None) => Err(CloudError::new(
                CloudErrorKind::TokenMismatch,
                "notFound",
                format!("`{own}` was created in {zone}, and is gone"),
            )),
        }
    }

    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError> {
        let id = request.provider_id.as_str();
        let mut looks = 0;
        loop {
            looks += 1;
            let (instance, zone, name) = self.need(id)?;
            let work = update::work(request, &instance, zone, &self.options, &self.calls.place)?;
            match self.carry_out(request, &work, &instance, (zone, name)) {
                Err(error) if errors::is_stale(&error) && looks < MOST_LOOKS => {}
                done => {
                    done?;
                    return self.observe(&self.need(id)?.0);
                }
            }
        }
    }

    fn register(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        let (_, zone, name) = self.need(&request.provider_id)?;
        self.groups
            .join(&self.calls, zone, name, &request.load_balancers)
    }

    fn deregister(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        let Some((zone, name)) = of_instance(&request.provider_id) else {
            return Ok(());
        };
        let groups = &request.load_balancers;
        self.groups.leave(&self.calls, zone, name, groups)
    }

    fn target_health(
        &self,
        provider_ids: &[String],
        load_balancers: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError> {
        self.groups
            .health(&self.calls, provider_ids, load_balancers)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        let Some((zone, name)) = of_instance(&request.provider_id) else {
            return Ok(());
        };
        let mut groups = request.load_balancers.clone();
        groups.extend(self.groups.watched().unwrap_or_default());
        groups.sort();
        groups.dedup();
        self.groups.leave(&self.calls, zone, name, &groups)?;
        let input = json!({"zone": zone, "instance": name});
        let deleting = Operation::InstancesDelete;
        let deleted = self.calls.change_once(deleting, input, &request.token);
        match deleted {
            Err(error) if error.kind == CloudErrorKind::NotFound => Ok(()),
            deleted => deleted,
        }
    }

    fn limits_ahead(&self, wanted: &[WantedCapacity]) -> Vec<String> {
        quotas::limits_ahead(&self.calls, wanted)
    }

    fn check_access(&self, _sample: &AccessSample) -> Option<Result<Access, CloudError>> {
        Some(access::check(&self.calls, self.groups.watches_any()))
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

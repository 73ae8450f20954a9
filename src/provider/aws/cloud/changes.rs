//! Executes an update.
//!
//! In: a request, the current instance, the [`Work`]. Out: calls in a safe order. Must not: decide
//! what changes.

use std::collections::BTreeMap;
use std::time::Duration;

use nstance_ec2::Operation;
use serde_json::{Value, json};

use super::super::calls::filter;
use super::super::combine::together_or_alone;
use super::super::observe::{self, items, text};
use super::super::update::{self, Work};
use super::super::{network, request};
use super::{AwsCloud, Tagging};
use crate::provider::{CloudError, CloudErrorKind, LifecycleState, UpdateRequest};

impl AwsCloud {
    /// Executes all calls of an update.
    ///
    /// Fails at the first call that fails.
    pub(super) fn carry_out(
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
            self.set_profile(id, wanted.asked())?;
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
                self.known_userdata().remove(id);
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

    /// Makes a modifying call; some report failures in their answer.
    ///
    /// Fails if the call or its answer does.
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

    /// Registers an instance in the wanted target groups, and deregisters it from the others.
    ///
    /// Fails if the API does.
    fn move_targets(&self, request: &UpdateRequest) -> Result<(), CloudError> {
        let id = request.provider_id.as_str();
        let wanted = &request.load_balancers;
        // Only running instances can be registered.
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
            self.taggings.ask(&key, id.to_owned(), |ids| {
                let tags = request::tag_list(set);
                self.tagging(Operation::CreateTags, ids, &tags)
            })?;
        }
        if !remove.is_empty() {
            let key = Tagging::Remove(remove.to_vec());
            self.taggings.ask(&key, id.to_owned(), |ids| {
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
}

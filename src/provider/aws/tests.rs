//! [`AwsCloud`] against something that behaves as EC2 where it matters.

mod answers;
mod changes;
mod ends;
mod fake;
mod life;
mod targets;

use std::sync::Arc;
use std::time::Duration;

use nstance_ec2::{ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use super::{AwsCloud, AwsOptions};
use crate::clock::{Clock, FixedClock, Timestamp};
use crate::provider::{Cloud, CreateRequest, DeleteRequest, Observation, Owner, UpdateRequest};
use fake::FakeEc2;

struct Lab {
    ec2: Arc<FakeEc2>,
    clock: Arc<FixedClock>,
    cloud: Arc<AwsCloud>,
}

impl Lab {
    fn new() -> Self {
        Self::with(AwsOptions::default(), &[])
    }

    fn with(options: AwsOptions, target_groups: &[&str]) -> Self {
        let clock = Arc::new(FixedClock::new(Timestamp(1_750_000_000_000)));
        let ec2 = Arc::new(FakeEc2::new(Arc::clone(&clock)));
        let cloud = Arc::new(AwsCloud::new(
            Arc::clone(&ec2) as Arc<dyn nstance_ec2::Api>,
            options,
            "us-west-2",
            target_groups.iter().map(|arn| (*arn).to_owned()).collect(),
            Arc::clone(&clock) as Arc<dyn Clock>,
        ));
        Self { ec2, clock, cloud }
    }

    fn listed(&self) -> Vec<Observation> {
        let mut found = Vec::new();
        let mut page = None;
        loop {
            let next = self.cloud.list(&owner(), page.as_deref()).unwrap();
            found.extend(next.instances);
            page = next.next;
            if page.is_none() {
                return found;
            }
        }
    }

    /// Keeps the first deletion until so many others wait for it.
    fn hold_deletions_until(&self, others: usize) {
        let cloud = Arc::clone(&self.cloud);
        let gate = move || cloud.waiting_deletions() >= others;
        self.ec2.hold(Operation::TerminateInstances, Arc::new(gate));
    }

    /// A running instance.
    fn made(&self, args: &Value) -> Observation {
        let made = self.cloud.create(&request(0, args)).unwrap();
        self.clock.sleep(Duration::from_mins(1));
        let described = self.cloud.describe(&[made.provider_id]).unwrap();
        described.into_iter().next().unwrap()
    }
}

fn owner() -> Owner {
    Owner {
        cluster: "prod".into(),
        shard: "a".into(),
    }
}

fn request(slot: u32, args: &Value) -> CreateRequest {
    let tags = [
        ("Name", "prod-web".to_owned()),
        ("nstance:managed", "true".to_owned()),
        ("nstance:cluster-id", "prod".to_owned()),
        ("nstance:shard", "a".to_owned()),
        ("nstance:instance-id", format!("web{slot}")),
        ("nstance:tenant", "default".to_owned()),
        ("nstance:group", "web".to_owned()),
        ("nstance:slot", slot.to_string()),
    ];
    let mut all = json!({"ImageId": "ami-1"});
    for (name, value) in args.as_object().unwrap() {
        all[name] = value.clone();
    }
    CreateRequest {
        token: format!("nstance-{slot}"),
        instance_id: format!("web{slot}"),
        name: format!("web{slot}"),
        arch: "amd64".into(),
        instance_type: "t3.micro".into(),
        zone: "us-west-2a".into(),
        subnet: Some("subnet-1".into()),
        args: all.as_object().unwrap().clone(),
        userdata: Some("I2Nsb3VkLWNvbmZpZwo=".into()),
        tags: tags
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    }
}

/// An update that wants what was asked for, with other args.
fn update(observed: &Observation, changed: &[&str], args: &Value) -> UpdateRequest {
    let wanted = request(observed.slot.unwrap(), args);
    UpdateRequest {
        token: "update".into(),
        provider_id: observed.provider_id.clone(),
        changed: changed.iter().map(|path| (*path).to_owned()).collect(),
        restart: false,
        instance_type: wanted.instance_type,
        args: wanted.args,
        userdata: wanted.userdata,
        tags: wanted.tags,
        load_balancers: Vec::new(),
        leaves: Vec::new(),
    }
}

fn delete(observed: &Observation) -> DeleteRequest {
    DeleteRequest {
        token: "delete".into(),
        provider_id: observed.provider_id.clone(),
        drain_timeout_ms: 0,
        load_balancers: Vec::new(),
        until_gone: false,
    }
}

/// The args of an observation as they compare with what was asked for.
fn compared(observed: &Observation, asked: &Value) -> Value {
    let attributes = observed.attributes().unwrap();
    let args = attributes.normalized(asked.as_object().unwrap());
    Value::Object(args.into_owned())
}

fn refused(code: &str) -> ApiError {
    ApiError {
        status: Some(400),
        ..ApiError::new(ApiErrorKind::Refused, code, "refused by the test")
    }
}
mod tokens {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// However often a creation is asked for, and whatever happens to its answers, there is one
        /// instance, and the last answer is about it.
        #[test]
        fn creating_again_gives_the_same_instance(
            faults in prop::collection::vec(0_u8..4, 0..6),
            key in prop::option::of("[a-z]{1,4}"),
        ) {
            let lab = Lab::new();
            let wanted = request(0, &json!({"KeyName": key}));
            for fault in faults {
                match fault {
                    0 => lab.ec2.lose_next_answer(Operation::RunInstances),
                    1 => lab.ec2.fail_next(Operation::RunInstances, refused("RequestLimitExceeded")),
                    2 => lab.clock.sleep(Duration::from_secs(40)),
                    _ => {}
                }
                if let Err(error) = lab.cloud.create(&wanted) {
                    prop_assert!(error.kind.is_retryable(), "{}", error);
                }
            }
            let made = lab.cloud.create(&wanted).unwrap();
            prop_assert_eq!(lab.ec2.instances(), [made.provider_id]);
        }
    }
}

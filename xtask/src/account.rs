//! An account at moto, with the proxy before it: what chores that need AWS run against.
//!
//! In: what is declared. Out: a configuration, and what moto itself has. May not: ask nstance.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use nstance_ec2_proxy::{Chance, Element, Habits, Moto, Proxy, Refused};
use serde_json::json;

use crate::Failure;
use crate::fuzz::random::Random;
use crate::kill::{Instances, Place};

const REGION: &str = "eu-north-1";

/// An account, and what instances need there.
pub(crate) struct Account {
    proxy: Proxy,
    subnet: String,
    group: String,
    images: [String; 2],
}

impl Account {
    /// A new account at the moto that listens there.
    pub(crate) fn new(moto: SocketAddr) -> Result<Self, Failure> {
        let moto = Moto::at(moto);
        let ec2 = |action: &str, parameters: &[(&str, &str)]| {
            moto.call("ec2", REGION, action, parameters)
        };
        let vpc = ec2("CreateVpc", &[("CidrBlock", "10.111.0.0/16")])?;
        let vpc = ("VpcId", vpc.text_at("vpc/vpcId"));
        let subnet = ec2(
            "CreateSubnet",
            &[
                vpc,
                ("CidrBlock", "10.111.0.0/18"),
                ("AvailabilityZone", "eu-north-1a"),
            ],
        )?;
        let group = ec2(
            "CreateSecurityGroup",
            &[vpc, ("GroupName", "nodes"), ("GroupDescription", "nodes")],
        )?;
        let image = |name: &str| -> Result<String, Refused> {
            let parameters = [("Name", name), ("RootDeviceName", "/dev/xvda")];
            let answer = ec2("RegisterImage", &parameters)?;
            Ok(answer.text_at("imageId").to_owned())
        };
        Ok(Self {
            subnet: subnet.text_at("subnet/subnetId").to_owned(),
            group: group.text_at("groupId").to_owned(),
            images: [image("one")?, image("two")?],
            proxy: Proxy::start(moto)?,
        })
    }

    /// The proxy, for its log.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    fn declared(&self, groups: &serde_json::Value) -> String {
        let options = json!({
            "endpoint_url": self.proxy.url(),
            "visibility_window": "300ms",
            "poll_interval": "20ms",
            "run_rate": {"burst": 10_000, "per_second": 10_000},
            "read_rate": {"burst": 10_000, "per_second": 10_000},
        });
        let infra = json!({
            "provider": "aws", "region": REGION, "zone": "eu-north-1a", "options": options,
        });
        json!({
            "cluster": {"id": "kill"},
            "shard": {"id": "one", "infra": infra, "subnet_pools": {"all": [self.subnet]}},
            "groups": {"default": groups},
        })
        .to_string()
    }
}

/// Gives a command the credentials that moto takes.
pub(crate) fn credentials(command: &mut Command) {
    command
        .env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "not-a-secret")
        .env("AWS_EC2_METADATA_DISABLED", "true");
}

impl Place for Account {
    fn equip(&self, command: &mut Command) {
        credentials(command);
    }

    /// Lets calls fail, get lost and take time, until [`Self::calm`].
    fn disturb(&self, chance: &mut Random) {
        let mut below = |bound: usize| chance.below(bound);
        self.proxy.set_habits(Habits {
            hidden: below(2) as u32,
            pending: below(3) as u32,
            stopping: below(3) as u32,
            shutting_down: below(3) as u32,
            ..Habits::default()
        });
        self.proxy.set_chance(Some(Chance {
            seed: below(usize::MAX) as u64,
            throttled: [0, 50][below(2)],
            failed: [0, 20][below(2)],
            failed_after: [0, 20][below(2)],
            lost_requests: [0, 20][below(2)],
            lost_answers: [0, 50][below(2)],
            longest_delay: Duration::from_millis(below(80) as u64),
        }));
    }

    /// Ends all that [`Self::disturb`] began.
    fn calm(&self) {
        self.proxy.set_habits(Habits::default());
        self.proxy.set_chance(None);
    }

    /// What declares so many instances a group: types, images and tags by chance.
    fn configuration(&self, sizes: &BTreeMap<&'static str, u32>, chance: &mut Random) -> String {
        let mut groups = serde_json::Map::new();
        for (name, size) in sizes {
            let instance_type = ["m7g.large", "m7g.xlarge"][chance.below(2)];
            let image = &self.images[chance.below(2)];
            let colour = ["red", "blue"][chance.below(2)];
            let tags =
                json!([{"ResourceType": "instance", "Tags": [{"Key": "colour", "Value": colour}]}]);
            let args = json!({
                "ImageId": image,
                "SecurityGroupIds": [self.group],
                "TagSpecifications": tags,
            });
            let group = json!({
                "kind": "web", "arch": "arm64", "instance_type": instance_type,
                "subnet_pool": "all", "size": size, "args": args,
                "userdata": "#!/bin/sh\nhostname {{ .Instance.Hostname }}\n",
            });
            groups.insert((*name).to_owned(), group);
        }
        self.declared(&json!(groups))
    }

    /// The instances that moto has and that aren't terminated.
    fn live(&self) -> Result<Instances, Failure> {
        let parameters = [("MaxResults", "1000000")];
        let moto = self.proxy.moto();
        let answer = moto.call("ec2", REGION, "DescribeInstances", &parameters)?;
        let reservations = answer.items("reservationSet").iter();
        let items = reservations.flat_map(|reservation| reservation.items("instancesSet"));
        let live = items.filter(|item| item.text_at("instanceState/name") != "terminated");
        Ok(live.map(triple).collect())
    }

    fn longest(&self) -> Duration {
        Duration::from_millis(1_500)
    }
}

fn triple(item: &Element) -> [String; 3] {
    let tag = |key: &str| {
        let mut tags = item.items("tagSet").iter();
        let found = tags.find(|tag| tag.text_at("key") == format!("nstance:{key}"));
        found.map_or("-", |tag| tag.text_at("value"))
    };
    let address = format!("{}/{}/{}", tag("tenant"), tag("group"), tag("slot"));
    let id = item.text_at("instanceId").to_owned();
    [address, tag("instance-id").to_owned(), id]
}

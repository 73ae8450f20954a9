//! An account on AWS of its own for each test: moto, with the proxy before it.
//!
//! In: configurations and command lines, and what others do in the account. Out: what a command
//! left, as a text in which no id is another on the next run; what moto has. May not: ask nstance
//! what there is in the cloud.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nstance_ec2_proxy::{Element, Moto, Proxy};

use crate::clouds::{Account, Seen, put};
use crate::harness::{Ended, Harness};

pub(crate) const REGION: &str = "eu-north-1";

/// Two groups, with everything that the tests change about them.
pub(crate) const FLEET: &str = include_str!("../data/aws_fleet.jsonc");

pub(crate) struct Aws {
    pub(crate) harness: Harness,
    pub(crate) proxy: Proxy,
    /// Ids that the account has, and what texts say instead: of the same length, since columns are
    /// as wide as what stands in them.
    names: RefCell<Vec<(String, String)>>,
}

impl Aws {
    /// An account with a network of three subnets (the first two in zone `a`), two security groups
    /// and one image. None where there is no moto.
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    pub(crate) fn new() -> Option<Self> {
        let Some(moto) = Moto::for_test() else {
            eprintln!("left out: NSTANCE_TEST_MOTO isn't set; `cargo xtask test` starts one");
            return None;
        };
        let proxy = Proxy::start(moto).unwrap();
        let aws = Self {
            harness: Harness::empty(),
            names: RefCell::new(vec![
                (proxy.url(), "http://127.0.0.1:1".to_owned()),
                (proxy.moto().account().to_owned(), "123456789012".to_owned()),
            ]),
            proxy,
        };
        aws.furnish(REGION, 0);
        Some(aws)
    }

    /// The same, with a configuration.
    pub(crate) fn with(config: &str) -> Option<Self> {
        let aws = Self::new()?;
        aws.harness.configure(&aws.filled(config));
        Some(aws)
    }

    /// The fleet, applied.
    pub(crate) fn applied(config: &str) -> Option<Self> {
        let aws = Self::with(config)?;
        aws.ok("apply --auto-approve");
        Some(aws)
    }

    /// The same network in another region: its ids are shown with numbers above 10.
    pub(crate) fn furnish_more(&self, region: &str) {
        self.furnish(region, 10);
    }

    /// A network and an image in a region. Addresses have as many digits each.
    fn furnish(&self, region: &str, above: usize) {
        let ec2 = |action: &str, parameters: &[(&str, &str)]| {
            self.proxy
                .moto()
                .call("ec2", region, action, parameters)
                .unwrap()
        };
        let answer = ec2("CreateVpc", &[("CidrBlock", "10.111.0.0/16")]);
        let vpc = answer.text_at("vpc/vpcId");
        self.name(vpc, "vpc-", above + 1);
        for (number, zone, block) in [
            (1, "a", "10.111.111.128/25"),
            (2, "a", "10.111.112.128/25"),
            (3, "b", "10.111.113.128/25"),
            // For many.
            (4, "a", "10.111.192.0/18"),
        ] {
            let zone = format!("{region}{zone}");
            let parameters = [
                ("VpcId", vpc),
                ("CidrBlock", block),
                ("AvailabilityZone", &zone),
            ];
            let subnet = ec2("CreateSubnet", &parameters);
            self.name(subnet.text_at("subnet/subnetId"), "subnet-", above + number);
        }
        for (number, name) in [(1, "nodes"), (2, "extra")] {
            let parameters = [
                ("GroupName", name),
                ("GroupDescription", name),
                ("VpcId", vpc),
            ];
            let group = ec2("CreateSecurityGroup", &parameters);
            self.name(group.text_at("groupId"), "sg-", above + number);
        }
        self.add_image_in(region, "debian-13-arm64-20261101");
    }

    /// Registers an image, whose id is shown with the next number.
    pub(crate) fn add_image(&self, name: &str) -> String {
        self.add_image_in(REGION, name)
    }

    fn add_image_in(&self, region: &str, name: &str) -> String {
        let parameters = [
            ("Name", name),
            ("Architecture", "arm64"),
            ("RootDeviceName", "/dev/xvda"),
        ];
        let moto = self.proxy.moto();
        let answer = moto.call("ec2", region, "RegisterImage", &parameters);
        let image = answer.unwrap().text_at("imageId").to_owned();
        let names = self.names.borrow();
        let known = names.iter().filter(|(_, shown)| shown.starts_with("ami-"));
        let number = known.count() + 1;
        drop(names);
        self.name(&image, "ami-", number);
        image
    }

    /// Registers an image that is younger than those of before: moto's dates have seconds.
    pub(crate) fn add_newer_image(&self, name: &str) -> String {
        let newest = self.newest_image();
        let moto = self.proxy.moto();
        // A second is over long before this many tries are.
        for _ in 0..10_000 {
            let image = self.add_image(name);
            if self.newest_image() > newest {
                return image;
            }
            moto.call("ec2", REGION, "DeregisterImage", &[("ImageId", &image)])
                .unwrap();
            self.names.borrow_mut().pop();
        }
        panic!("moto's clock stands still");
    }

    fn newest_image(&self) -> String {
        let images = self.call("DescribeImages", &[("Owner.1", "self")]);
        let dates = images.items("imagesSet").iter();
        let dates = dates.map(|image| image.text_at("creationDate").to_owned());
        dates.max().unwrap_or_default()
    }

    /// Shows an id as the one of a number.
    fn name(&self, id: &str, prefix: &str, number: usize) {
        let mut names = self.names.borrow_mut();
        names.push((id.to_owned(), form(prefix, number)));
    }

    /// The id that is shown as the one of a number.
    pub(crate) fn id(&self, prefix: &str, number: usize) -> String {
        let shown = form(prefix, number);
        let names = self.names.borrow();
        let found = names.iter().find(|(_, name)| *name == shown);
        found.map(|(id, _)| id.clone()).expect("it is known")
    }

    /// A text with the account's ids in it, from one as it is shown.
    pub(crate) fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (id, shown) in &*self.names.borrow() {
            text = text.replace(shown, id);
        }
        text
    }

    /// A text as it is on every run. When calls are tried again, and which take long, is chance's.
    pub(crate) fn shown(&self, text: &str) -> String {
        let lines = text.split_inclusive('\n');
        let mut text: String = lines
            .filter(|line| !line.contains(": trying again in ") && !line.contains(": Still "))
            .filter(|line| !line.contains(" change done") && !line.contains(" changes done"))
            .collect();
        for (id, shown) in &*self.names.borrow() {
            text = text.replace(id, shown);
        }
        for prefix in ["i-", "vol-", "eni-"] {
            text = self.numbered(&text, prefix);
        }
        let text = put(&text, "10.111.11", "x.xxx", |c| {
            c.is_ascii_digit() || c == '.'
        });
        // Who waits for the same call of looking shares it.
        let text = put(&text, " complete after ", "0s", |c| {
            c.is_ascii_digit() || "ms.".contains(c)
        });
        let text = put(&text, "created_at    = \"", "2026-12-01T00:00:00Z", |c| {
            c != '"'
        });
        put(&text, "00000000-0000-4000-8000-", "xxxxxxxxxxxx", |c| {
            c.is_ascii_hexdigit()
        })
    }

    /// Numbers ids that moto made up, in the order they are first seen.
    fn numbered(&self, text: &str, prefix: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(prefix) {
            let (before, found) = rest.split_at(at);
            out.push_str(before);
            let end = found[prefix.len()..]
                .find(|c: char| !c.is_ascii_hexdigit())
                .map_or(found.len(), |end| prefix.len() + end);
            let (id, after) = found.split_at(end);
            let is_word = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
            if id.len() == prefix.len() + 17 && !is_word {
                let mut names = self.names.borrow_mut();
                let known = names.iter().find(|(known, _)| known == id);
                let shown = known.map(|(_, shown)| shown.clone());
                let shown = shown.unwrap_or_else(|| {
                    let of_kind = |shown: &String| shown.starts_with(prefix);
                    let number = names.iter().filter(|(_, shown)| of_kind(shown)).count();
                    let shown = form(prefix, number + 1);
                    names.push((id.to_owned(), shown.clone()));
                    shown
                });
                out.push_str(&shown);
            } else {
                out.push_str(id);
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    /// A command with credentials, ready to run.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = self.harness.command(words);
        command
            .env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
            .env("AWS_SECRET_ACCESS_KEY", "not-a-secret")
            .env("AWS_EC2_METADATA_DISABLED", "true");
        command
    }

    /// Runs a command at the time that moto has, where it matters how old an instance is: other
    /// commands come months later.
    pub(crate) fn run_now(&self, words: &str) -> Ended {
        let mut command = self.command(words);
        command.env("NSTANCE_NOW", jiff::Timestamp::now().to_string());
        self.harness.end(words, command)
    }

    pub(crate) fn run(&self, words: &str) -> Ended {
        self.harness.end(words, self.command(words))
    }

    /// Runs a command that must end well.
    #[track_caller]
    pub(crate) fn ok(&self, words: &str) -> Ended {
        let ended = self.run(words);
        assert_eq!(ended.code, Some(0), "{ended}");
        ended
    }

    /// Runs a command and gives all it left, as it is on every run.
    pub(crate) fn told(&self, words: &str) -> String {
        self.shown(&self.run(words).to_string())
    }

    /// Applies, checks that record and cloud agree, and that nothing is left to do. Gives what the
    /// apply said.
    #[track_caller]
    pub(crate) fn apply(&self, options: &str) -> String {
        let words = format!("apply --auto-approve {options}");
        let applied = self.ok(words.trim());
        self.agrees();
        self.settled();
        self.shown(&applied.to_string())
    }

    #[track_caller]
    pub(crate) fn settled(&self) {
        let plan = self.run("plan --detailed-exitcode");
        assert!(plan.stdout.contains("No changes."), "{plan}");
        assert_eq!(plan.code, Some(0), "{plan}");
        let drift = self.ok("drift");
        assert!(drift.stdout.contains("No drift"), "{drift}");
    }

    /// Changes what stands once in the configuration; ids as they are shown.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        self.harness.edit(&self.filled(from), &self.filled(to));
    }

    /// A call to moto, as somebody else's.
    pub(crate) fn call(&self, action: &str, parameters: &[(&str, &str)]) -> Element {
        let answer = self.proxy.moto().call("ec2", REGION, action, parameters);
        answer.unwrap_or_else(|refused| panic!("{action}: {refused}"))
    }

    /// An instance's user data.
    pub(crate) fn userdata(&self, id: &str) -> String {
        let asked = [("InstanceId", id), ("Attribute", "userData")];
        let answer = self.call("DescribeInstanceAttribute", &asked);
        let bytes = BASE64.decode(answer.text_at("userData/value")).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The instances that aren't terminated, by address.
    pub(crate) fn live(&self) -> Vec<Instance> {
        live(self.proxy.moto(), REGION)
    }

    /// The instance of an address.
    #[track_caller]
    pub(crate) fn instance(&self, address: &str) -> Instance {
        let live = self.live();
        let found = live.into_iter().find(|one| one.address == address);
        found.expect("it is live")
    }

    /// Asserts that record and cloud agree to the instance. Gives how many there are.
    #[track_caller]
    pub(crate) fn agrees(&self) -> usize {
        let live = self.live();
        let there: BTreeSet<[String; 3]> = live.iter().map(Instance::triple).collect();
        let document = self.ok("state list --json").json();
        let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
        let records = document["records"].as_array().unwrap();
        let recorded: BTreeSet<[String; 3]> = records
            .iter()
            .map(|row| ["address", "instance_id", "provider_id"].map(|key| text(row, key)))
            .collect();
        assert_eq!(recorded, there, "record and cloud disagree");
        let addresses: BTreeSet<_> = live.iter().map(|one| &one.address).collect();
        assert_eq!(addresses.len(), live.len(), "a slot is filled twice");
        assert_eq!(records.len(), live.len());
        live.len()
    }

    /// A target group with a name; its ARN.
    pub(crate) fn add_target_group(&self, name: &str) -> String {
        let vpc = self.id("vpc-", 1);
        let parameters = [
            ("Name", name),
            ("Protocol", "TCP"),
            ("Port", "6443"),
            ("VpcId", &*vpc),
            ("TargetType", "instance"),
        ];
        let answer = self.balancing("CreateTargetGroup", &parameters);
        let arn = answer.text_at("CreateTargetGroupResult/TargetGroups/member/TargetGroupArn");
        let arn = arn.to_owned();
        let (head, tail) = arn.rsplit_once('/').unwrap();
        assert_eq!(tail.len(), 16);
        let shown = format!("{head}/{}", "0".repeat(16));
        let shown = self.shown(&shown);
        self.names.borrow_mut().insert(0, (arn.clone(), shown));
        arn
    }

    /// The instances registered with a target group.
    pub(crate) fn targets(&self, arn: &str) -> BTreeSet<String> {
        let targets = self.targets_with_ports(arn).into_iter();
        targets.map(|(id, _)| id).collect()
    }

    /// The instances registered with a target group, and their ports.
    pub(crate) fn targets_with_ports(&self, arn: &str) -> BTreeSet<(String, String)> {
        let answer = self.balancing("DescribeTargetHealth", &[("TargetGroupArn", arn)]);
        let members = answer.items("DescribeTargetHealthResult/TargetHealthDescriptions");
        let part = |member: &Element, name: &str| member.text_at(name).to_owned();
        members
            .iter()
            .map(|member| (part(member, "Target/Id"), part(member, "Target/Port")))
            .collect()
    }

    /// A call to moto's load balancing, as somebody else's.
    pub(crate) fn balancing(&self, action: &str, parameters: &[(&str, &str)]) -> Element {
        let moto = self.proxy.moto();
        let answer = moto.call("elasticloadbalancing", REGION, action, parameters);
        answer.unwrap_or_else(|refused| panic!("{action}: {refused}"))
    }
}

/// An instance, as moto has it.
#[derive(Debug)]
pub(crate) struct Instance {
    /// `tenant/group/slot`, by its tags.
    pub(crate) address: String,
    pub(crate) id: String,
    pub(crate) item: Element,
}

impl Instance {
    pub(crate) fn tag(&self, key: &str) -> &str {
        tag(&self.item, key)
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        self.item.text_at(path)
    }

    /// Its security groups.
    pub(crate) fn groups(&self) -> BTreeSet<String> {
        let interface = self.item.at("networkInterfaceSet/item").unwrap();
        let groups = interface.items("groupSet").iter();
        groups
            .map(|group| group.text_at("groupId").to_owned())
            .collect()
    }

    fn triple(&self) -> [String; 3] {
        let id = self.tag("nstance:instance-id").to_owned();
        [self.address.clone(), id, self.id.clone()]
    }
}

fn tag<'a>(item: &'a Element, key: &str) -> &'a str {
    let tags = item.items("tagSet");
    let found = tags.iter().find(|tag| tag.text_at("key") == key);
    found.map_or("", |tag| tag.text_at("value"))
}

/// The instances of a region that aren't terminated, by address.
pub(crate) fn live(moto: &Moto, region: &str) -> Vec<Instance> {
    let parameters = [("MaxResults", "1000000")];
    let answer = moto.call("ec2", region, "DescribeInstances", &parameters);
    let answer = answer.unwrap();
    let reservations = answer.items("reservationSet").iter();
    let items = reservations.flat_map(|reservation| reservation.items("instancesSet"));
    let mut live: Vec<Instance> = items
        .filter(|item| item.text_at("instanceState/name") != "terminated")
        .map(|item| Instance {
            address: format!(
                "{}/{}/{}",
                tag(item, "nstance:tenant"),
                tag(item, "nstance:group"),
                tag(item, "nstance:slot")
            ),
            id: item.text_at("instanceId").to_owned(),
            item: item.clone(),
        })
        .collect();
    live.sort_by(|a, b| a.address.cmp(&b.address));
    live
}

/// An id with a number for what moto made up.
fn form(prefix: &str, number: usize) -> String {
    format!("{prefix}{number:017}")
}

impl Account for Aws {
    fn harness(&self) -> &Harness {
        &self.harness
    }

    fn run(&self, words: &str) -> Ended {
        Self::run(self, words)
    }

    fn live(&self) -> Vec<Seen> {
        let live = Self::live(self).into_iter();
        live.map(|one| Seen {
            instance_id: one.tag("nstance:instance-id").to_owned(),
            team: one.tag("team").to_owned(),
            address: one.address.clone(),
            id: one.id.clone(),
        })
        .collect()
    }

    fn set_team(&self, id: &str, value: &str) {
        let tags = [
            ("ResourceId.1", id),
            ("Tag.1.Key", "team"),
            ("Tag.1.Value", value),
        ];
        self.call("CreateTags", &tags);
    }

    fn delete(&self, id: &str) {
        self.call("TerminateInstances", &[("InstanceId.1", id)]);
    }

    fn stop(&self, id: &str) {
        self.call("StopInstances", &[("InstanceId.1", id)]);
    }
}

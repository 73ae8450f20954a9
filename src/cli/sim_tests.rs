use clap::Parser;
use serde_json::Value;

use super::*;
use crate::clock::FixedClock;
use crate::config::model::ProviderKind;
use crate::provider::sim::{SimCloud, SimOptions};
use crate::provider::{Cloud, CreateRequest, TargetsRequest};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    sim: SimArgs,
}

struct Desk {
    folder: tempfile::TempDir,
    clock: Arc<FixedClock>,
}

impl Desk {
    /// A cloud with two instances.
    fn new() -> Self {
        let clock = Arc::new(FixedClock::new(Timestamp(1_800_000_000_000)));
        let desk = Self {
            folder: tempfile::tempdir().unwrap(),
            clock,
        };
        let cloud = SimCloud::open(
            &desk.path(),
            &SimOptions::default(),
            ProviderKind::Aws,
            desk.clock.clone(),
        )
        .unwrap();
        for slot in 0..2 {
            let made = cloud.create(&request(slot)).unwrap();
            let targets = TargetsRequest {
                provider_id: made.provider_id,
                load_balancers: vec!["tg-a".to_owned()],
            };
            cloud.register(&targets).unwrap();
        }
        desk.clock.sleep(std::time::Duration::from_mins(3));
        desk
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("sim.db")
    }

    fn try_run(&self, line: &str, json: bool) -> Result<String, SimError> {
        let words = std::iter::once("nstance").chain(line.split(' '));
        let args = Line::try_parse_from(words).unwrap().sim;
        let mut out = Vec::new();
        run(&args, &self.path(), self.clock.clone(), json, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn run(&self, line: &str) -> String {
        self.try_run(line, false).unwrap()
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.try_run(line, true).unwrap()).unwrap()
    }
}

fn request(slot: u32) -> CreateRequest {
    let tags = [
        ("nstance:managed", "true".to_owned()),
        ("nstance:cluster-id", "prod".to_owned()),
        ("nstance:shard", "a".to_owned()),
        ("nstance:tenant", "default".to_owned()),
        ("nstance:group", "web".to_owned()),
        ("nstance:slot", slot.to_string()),
        ("nstance:instance-id", format!("web{slot:026}")),
    ];
    CreateRequest {
        token: format!("token-{slot}"),
        instance_id: format!("web{slot:026}"),
        name: format!("web-{slot}"),
        arch: "amd64".to_owned(),
        instance_type: "t3.small".to_owned(),
        zone: "us-west-2a".to_owned(),
        subnet: (slot == 0).then(|| "subnet-a".to_owned()),
        args: [("ImageId".to_owned(), Value::from("ami-1"))]
            .into_iter()
            .collect(),
        userdata: Some("I2Nsb3VkLWNvbmZpZwo=".to_owned()),
        tags: tags
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    }
}

#[test]
fn the_listing_is_a_table() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.run("list"), @r###"
    ID                   ADDRESS        STATE    TYPE      ZONE        SUBNET    IP4             AGE  INSTANCE ID
    i-5ffb8c5ffbc19d5e3  default/web/0  running  t3.small  us-west-2a  subnet-a  10.241.90.116   3m   web00000000000000000000000000
    i-ccfdbbf736db5be3a  default/web/1  running  t3.small  us-west-2a            100.118.51.251  3m   web00000000000000000000000001
    "###);
}

#[test]
fn an_instance_is_shown_whole() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.run("show default/web/0"), @r###"
    id           i-5ffb8c5ffbc19d5e3
    instance id  web00000000000000000000000000
    address      default/web/0
    cluster      prod
    shard        a
    state        running
    type         t3.small
    zone         us-west-2a
    subnet       subnet-a
    ip4          10.241.90.116
    created      2027-01-15T08:00:00Z
    balancers    tg-a

    tags
      nstance:cluster-id = prod
      nstance:group = web
      nstance:instance-id = web00000000000000000000000000
      nstance:managed = true
      nstance:shard = a
      nstance:slot = 0
      nstance:tenant = default

    args
      {
        "ImageId": "ami-1"
      }

    userdata
      #cloud-config
    "###);
}

#[test]
fn instances_change_by_hand() {
    let desk = Desk::new();
    for (line, words) in [
        ("stop default/web/0", "(default/web/0) stopped"),
        ("start default/web/0", "(default/web/0) started"),
        ("fail default/web/0", "(default/web/0) is unhealthy"),
        ("recover default/web/0", "(default/web/0) recovered"),
        ("set-type default/web/0 m5.large", "(default/web/0) changed"),
        (
            "set-tag default/web/0 team=blue a=b=c",
            "(default/web/0) tagged",
        ),
        (
            "set-tag default/web/0 --unset team --unset nstance:slot",
            " tagged",
        ),
        ("delete default/web/1", "(default/web/1) deleted"),
    ] {
        let said = desk.run(line);
        assert!(said.trim_end().ends_with(words), "{line}: {said}");
    }
    let left = desk.json("list");
    assert_eq!(left["instances"].as_array().unwrap().len(), 1);
    let id = left["instances"][0]["provider_id"].as_str().unwrap();
    let shown = desk.json(&format!("show {id}"));
    let attributes = &shown["instance"]["attributes"];
    assert_eq!(attributes["instance_type"], "m5.large");
    assert_eq!(attributes["tags"]["a"], "b=c");
    assert_eq!(attributes["tags"]["team"], Value::Null);
    assert_eq!(shown["instance"]["address"], Value::Null);
    assert_eq!(
        desk.json("list --all")["instances"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn an_instance_that_was_failed_is_shown_as_unhealthy() {
    let desk = Desk::new();
    let health = |desk: &Desk| desk.json("show default/web/0")["instance"]["unhealthy"].clone();
    desk.run("fail default/web/0");
    assert!(
        desk.run("show default/web/0")
            .contains("\nhealth       unhealthy (by hand)\n")
    );
    assert_eq!(health(&desk), true);
    desk.run("recover default/web/0");
    assert!(!desk.run("show default/web/0").contains("health"));
    assert_eq!(health(&desk), false);
}

#[test]
fn every_answer_can_be_json() {
    let desk = Desk::new();
    for (line, key) in [
        ("list", "instances"),
        ("show default/web/0", "instance"),
        ("stop default/web/0", "instance"),
        ("image publish golden --tag role=web", "image"),
        ("image list", "images"),
        ("reset --yes", "deleted"),
    ] {
        let document = desk.json(line);
        assert_eq!(document["format_version"], "1.0", "{line}");
        assert!(!document[key].is_null(), "{line}");
    }
}

#[test]
fn images_are_published_and_listed() {
    let desk = Desk::new();
    let line = "image publish debian-13-arm64-20270101-1 --id ami-new \
                --created 2027-01-01T00:00:00Z --tag role=web";
    assert_eq!(
        desk.run(line),
        "ami-new (debian-13-arm64-20270101-1) published\n"
    );
    let listing = desk.run("image list");
    let published: Vec<_> = listing.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        published,
        [
            "debian-13-arm64-20270101-1",
            "arm64",
            "2027-01-01",
            "136693071363",
            "ami-new"
        ]
    );
}

#[test]
fn a_reset_wants_to_be_meant() {
    let desk = Desk::new();
    let error = desk.try_run("reset", false).unwrap_err();
    assert!(
        matches!(error, SimError::Unconfirmed { instances: 2 }),
        "{error}"
    );
    assert_eq!(desk.json("list")["instances"].as_array().unwrap().len(), 2);
    let said = desk.run("reset --yes");
    assert_eq!(
        said,
        "The simulated cloud is empty (2 instances deleted).\n"
    );
    assert_eq!(desk.run("list"), "No instances.\n");
}

#[test]
fn wrong_words_are_refused() {
    for line in [
        "set-tag x",
        "set-tag x novalue",
        "image publish x --created today",
        "stop",
    ] {
        let words = std::iter::once("nstance").chain(line.split(' '));
        assert!(Line::try_parse_from(words).is_err(), "{line}");
    }
    let desk = Desk::new();
    let error = desk.try_run("stop default/web/7", false).unwrap_err();
    assert!(matches!(error, SimError::NotFound { .. }), "{error}");
}

#[test]
fn ages_are_short() {
    for (seconds, words) in [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7_200, "2h"),
        (172_800, "2d"),
    ] {
        assert_eq!(short(std::time::Duration::from_secs(seconds)), words);
    }
}

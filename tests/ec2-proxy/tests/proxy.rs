//! The proxy against moto: what it does beyond what moto does.
//!
//! In: calls, as SDKs make them. Out: EC2's behaviour. Ends at once where there is no moto:
//! `cargo xtask test -p nstance-ec2-proxy` starts one.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]
#![allow(clippy::print_stderr, reason = "a test that is left out says so")]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nstance_ec2_proxy::{
    Chance, ERRORS, Element, Fault, Habits, Health, Moto, Outcome, Proxy, Refusal, Rule,
};

const REGION: &str = "eu-north-1";

/// A proxy, and what one needs to make instances.
struct World {
    proxy: Proxy,
    image: String,
}

impl World {
    /// None where there is no moto.
    fn new() -> Option<Self> {
        let Some(moto) = Moto::for_test() else {
            eprintln!("left out: NSTANCE_TEST_MOTO isn't set");
            return None;
        };
        let parameters = [("Name", "test"), ("RootDeviceName", "/dev/sda1")];
        let image = moto
            .call("ec2", REGION, "RegisterImage", &parameters)
            .unwrap();
        Some(Self {
            image: image.text_at("imageId").to_owned(),
            proxy: Proxy::start(moto).unwrap(),
        })
    }

    /// A call, through the proxy. The error is its code; empty where the connection was closed.
    fn call(&self, action: &str, parameters: &[(&str, &str)]) -> Result<Element, String> {
        self.call_to("ec2", action, parameters)
    }

    fn call_to(
        &self,
        service: &str,
        action: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Element, String> {
        let reply = self.post(service, action, parameters);
        let Some((_, body)) = reply.split_once("\r\n\r\n") else {
            return Err(String::new());
        };
        let document = Element::parse(body).unwrap();
        for path in ["Errors/Error/Code", "Error/Code"] {
            if document.at(path).is_some() {
                return Err(document.text_at(path).to_owned());
            }
        }
        assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
        Ok(document)
    }

    /// A call, and the reply as it comes; empty where the connection was closed.
    fn post(&self, service: &str, action: &str, parameters: &[(&str, &str)]) -> String {
        let version = if service == "ec2" {
            "2016-11-15"
        } else {
            "2015-12-01"
        };
        let mut body = format!("Action={action}&Version={version}");
        for (name, value) in parameters {
            body.push_str(&format!("&{name}={}", value.replace('+', "%2B")));
        }
        let address = self.proxy.url().replace("http://", "");
        let mut stream = TcpStream::connect(&address).unwrap();
        let length = body.len();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {address}\r\nAuthorization: AWS4-HMAC-SHA256 Credential=A/2026\
             0101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0\r\nContent-Type: \
             application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        // What ends the connection when the answer is there.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = String::new();
        let _ = stream.read_to_string(&mut reply);
        reply
    }

    /// Makes an instance.
    fn run(&self, more: &[(&str, &str)]) -> Result<String, String> {
        let mut parameters = vec![
            ("ImageId", &*self.image),
            ("InstanceType", "m7g.large"),
            ("MinCount", "1"),
            ("MaxCount", "1"),
        ];
        parameters.extend(more);
        let answer = self.call("RunInstances", &parameters)?;
        let item = answer.at("instancesSet/item").unwrap();
        assert_eq!(item.text_at("instanceState/name"), "pending");
        Ok(item.text_at("instanceId").to_owned())
    }

    /// The state of an instance, through the proxy.
    fn state(&self, id: &str) -> Result<String, String> {
        let answer = self.call("DescribeInstances", &[("InstanceId.1", id)])?;
        let item = answer.at("reservationSet/item/instancesSet/item").unwrap();
        Ok(item.text_at("instanceState/name").to_owned())
    }

    /// How many instances moto has.
    fn there(&self) -> usize {
        let answer = self
            .proxy
            .moto()
            .call("ec2", REGION, "DescribeInstances", &[]);
        let answer = answer.unwrap();
        let reservations = answer.items("reservationSet").iter();
        reservations
            .map(|one| one.items("instancesSet").len())
            .sum()
    }
}

#[test]
fn a_token_makes_one_instance() {
    let Some(world) = World::new() else { return };
    let token = ("ClientToken", "one");
    let first = world.run(&[token]).unwrap();
    assert_eq!(world.run(&[token]).unwrap(), first);
    assert_eq!(world.there(), 1);
    let other = world.run(&[token, ("EbsOptimized", "true")]);
    assert_eq!(other.unwrap_err(), "IdempotentParameterMismatch");
    world
        .call("TerminateInstances", &[("InstanceId.1", &first)])
        .unwrap();
    assert_eq!(
        world.run(&[token]).unwrap_err(),
        "IdempotentInstanceTerminated"
    );
    assert_ne!(world.run(&[("ClientToken", "two")]).unwrap(), first);
    assert_eq!(world.there(), 2);
}

#[test]
fn calls_with_one_token_at_once_make_one_instance() {
    let Some(world) = World::new() else { return };
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let run = || world.run(&[("ClientToken", "one")]).unwrap();
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!((ids.len(), world.there()), (1, 1));
}

#[test]
fn a_token_isnt_used_up_by_what_failed() {
    let Some(world) = World::new() else { return };
    let token = ("ClientToken", "one");
    let wrong = world.run(&[token, ("SubnetId", "subnet-0000")]);
    assert_eq!(wrong.unwrap_err(), "InvalidSubnetID.NotFound");
    assert_eq!(
        world.run(&[token, ("DryRun", "true")]).unwrap_err(),
        "DryRunOperation"
    );
    world.run(&[token]).unwrap();
    assert_eq!(world.there(), 1);
}

#[test]
fn what_is_new_is_hidden_for_so_many_looks() {
    let Some(world) = World::new() else { return };
    world.proxy.set_habits(Habits {
        hidden: 3,
        ..Habits::default()
    });
    let id = world.run(&[]).unwrap();
    let listed = || {
        let answer = world.call("DescribeInstances", &[]).unwrap();
        answer.items("reservationSet").len()
    };
    assert_eq!(world.state(&id).unwrap_err(), "InvalidInstanceID.NotFound");
    assert_eq!(listed(), 0);
    let tag = [
        ("ResourceId.1", &*id),
        ("Tag.1.Key", "a"),
        ("Tag.1.Value", "b"),
    ];
    assert_eq!(
        world.call("CreateTags", &tag).unwrap_err(),
        "InvalidInstanceID.NotFound"
    );
    assert_eq!(listed(), 1);
    world.call("CreateTags", &tag).unwrap();
    assert_eq!(world.state(&id).unwrap(), "running");
}

#[test]
fn states_pass_through_others() {
    let Some(world) = World::new() else { return };
    world.proxy.set_habits(Habits {
        hidden: 0,
        pending: 2,
        stopping: 2,
        shutting_down: 1,
        ..Habits::default()
    });
    let id = world.run(&[]).unwrap();
    let one = [("InstanceId.1", &*id)];
    let stop = || world.call("StopInstances", &one);
    let start = || world.call("StartInstances", &one);
    let change = || {
        let parameters = [("InstanceId", &*id), ("InstanceType.Value", "m7g.xlarge")];
        world.call("ModifyInstanceAttribute", &parameters)
    };
    let wrong = Err("IncorrectInstanceState".to_owned());
    let state = || world.state(&id).unwrap();
    let by_state = |state: &str| {
        let filter = [
            ("Filter.1.Name", "instance-state-name"),
            ("Filter.1.Value.1", state),
        ];
        let answer = world.call("DescribeInstances", &filter).unwrap();
        answer.items("reservationSet").len()
    };
    assert_eq!(stop(), wrong);
    assert_eq!((by_state("pending"), state()), (1, "pending".to_owned()));
    assert_eq!(state(), "running");
    assert_eq!(change(), wrong);
    stop().unwrap();
    assert_eq!(start(), wrong);
    assert_eq!(change(), wrong);
    assert_eq!((by_state("stopped"), state()), (0, "stopping".to_owned()));
    assert_eq!((by_state("stopped"), state()), (1, "stopped".to_owned()));
    change().unwrap();
    stop().unwrap();
    assert_eq!(state(), "stopped");
    start().unwrap();
    assert_eq!(
        [state(), state(), state()],
        ["pending", "pending", "running"]
    );
    world.call("TerminateInstances", &one).unwrap();
    assert_eq!([state(), state()], ["shutting-down", "terminated"]);
}

#[test]
fn what_others_do_is_seen_at_once() {
    let Some(world) = World::new() else { return };
    world.proxy.set_habits(Habits {
        pending: 9,
        ..Habits::default()
    });
    let id = world.run(&[]).unwrap();
    assert_eq!(world.state(&id).unwrap(), "pending");
    let moto = world.proxy.moto();
    moto.call(
        "ec2",
        REGION,
        "TerminateInstances",
        &[("InstanceId.1", &id)],
    )
    .unwrap();
    assert_eq!(world.state(&id).unwrap(), "terminated");
}

#[test]
fn targets_have_to_run() {
    let Some(world) = World::new() else { return };
    world.proxy.set_habits(Habits {
        pending: 1,
        ..Habits::default()
    });
    let id = world.run(&[]).unwrap();
    let moto = world.proxy.moto();
    let vpcs = moto.call("ec2", REGION, "DescribeVpcs", &[]).unwrap();
    let group = moto
        .call(
            "elasticloadbalancing",
            REGION,
            "CreateTargetGroup",
            &[
                ("Name", "api"),
                ("Protocol", "TCP"),
                ("Port", "6443"),
                ("VpcId", vpcs.text_at("vpcSet/item/vpcId")),
                ("TargetType", "instance"),
            ],
        )
        .unwrap();
    let arn = group.text_at("CreateTargetGroupResult/TargetGroups/member/TargetGroupArn");
    let parameters = [("TargetGroupArn", arn), ("Targets.member.1.Id", &id)];
    let register = || world.call_to("elasticloadbalancing", "RegisterTargets", &parameters);
    assert_eq!(register().unwrap_err(), "InvalidTarget");
    assert_eq!(world.state(&id).unwrap(), "pending");
    register().unwrap();
}

#[test]
fn user_data_has_a_limit() {
    let Some(world) = World::new() else { return };
    let of = |length: usize| STANDARD.encode(vec![b'x'; length]);
    let longest = world.run(&[("UserData", &of(16_384))]).unwrap();
    let too_long = world.run(&[("UserData", &of(16_385))]);
    assert_eq!(too_long.unwrap_err(), "InvalidParameterValue");
    let none = world.run(&[("UserData", "not base64")]);
    assert_eq!(none.unwrap_err(), "InvalidUserData.Malformed");
    world
        .call("StopInstances", &[("InstanceId.1", &longest)])
        .unwrap();
    let change = |value: &str| {
        let parameters = [("InstanceId", &*longest), ("UserData.Value", value)];
        world.call("ModifyInstanceAttribute", &parameters)
    };
    assert_eq!(change(&of(16_385)).unwrap_err(), "InvalidParameterValue");
    change(&STANDARD.encode("second")).unwrap();
    let parameters = [("InstanceId", &*longest), ("Attribute", "userData")];
    let described = world
        .call("DescribeInstanceAttribute", &parameters)
        .unwrap();
    let value = STANDARD
        .decode(described.text_at("userData/value"))
        .unwrap();
    assert_eq!(value, b"second");
}

#[test]
fn termination_protection_holds_from_the_beginning() {
    let Some(world) = World::new() else { return };
    let id = world.run(&[("DisableApiTermination", "true")]).unwrap();
    let end = || world.call("TerminateInstances", &[("InstanceId.1", &id)]);
    assert_eq!(end().unwrap_err(), "OperationNotPermitted");
    let parameters = [
        ("InstanceId", &*id),
        ("DisableApiTermination.Value", "false"),
    ];
    world.call("ModifyInstanceAttribute", &parameters).unwrap();
    end().unwrap();
}

#[test]
fn monitoring_is_turned_on_and_off() {
    let Some(world) = World::new() else { return };
    let id = world.run(&[]).unwrap();
    let one = [("InstanceId.1", &*id)];
    let monitoring = || {
        let answer = world.call("DescribeInstances", &one).unwrap();
        let item = answer.at("reservationSet/item/instancesSet/item").unwrap();
        item.text_at("monitoring/state").to_owned()
    };
    assert_eq!(monitoring(), "disabled");
    world.call("MonitorInstances", &one).unwrap();
    assert_eq!(monitoring(), "enabled");
    world.call("UnmonitorInstances", &one).unwrap();
    assert_eq!(monitoring(), "disabled");
}

#[test]
fn pages_count_instances() {
    let Some(world) = World::new() else { return };
    for _ in 0..3 {
        // One reservation of four.
        let parameters = [
            ("ImageId", &*world.image),
            ("InstanceType", "m7g.large"),
            ("MinCount", "4"),
            ("MaxCount", "4"),
        ];
        world.call("RunInstances", &parameters).unwrap();
    }
    let (mut ids, mut lengths) = (BTreeSet::new(), Vec::new());
    let mut token = String::new();
    loop {
        let mut parameters = vec![("MaxResults", "5")];
        if !token.is_empty() {
            parameters.push(("NextToken", &token));
        }
        let answer = world.call("DescribeInstances", &parameters).unwrap();
        let mut length = 0;
        for reservation in answer.items("reservationSet") {
            for item in reservation.items("instancesSet") {
                ids.insert(item.text_at("instanceId").to_owned());
                length += 1;
            }
        }
        lengths.push(length);
        token = answer.text_at("nextToken").to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!((ids.len(), &*lengths), (12, &[5, 5, 2] as &[i32]));
    for (parameters, code) in [
        ([("MaxResults", "4"), ("X", "")], "InvalidParameterValue"),
        ([("MaxResults", "1001"), ("X", "")], "InvalidParameterValue"),
        (
            [("MaxResults", "5"), ("NextToken", "none")],
            "InvalidNextToken",
        ),
        (
            [("MaxResults", "5"), ("InstanceId.1", "i-0")],
            "InvalidParameterCombination",
        ),
    ] {
        assert_eq!(
            world.call("DescribeInstances", &parameters).unwrap_err(),
            code
        );
    }
}

#[test]
fn calls_fail_as_they_are_told_to() {
    let Some(world) = World::new() else { return };
    let token = ("ClientToken", "one");
    let lost = String::new();
    let add = |fault| world.proxy.add(Rule::next("RunInstances", fault));
    add(Fault::LoseRequest);
    assert_eq!((world.run(&[token]), world.there()), (Err(lost.clone()), 0));
    add(Fault::LoseAnswer);
    assert_eq!((world.run(&[token]), world.there()), (Err(lost), 1));
    add(Fault::RefuseAfter(Refusal::named("InternalError")));
    let refused = Err("InternalError".to_owned());
    assert_eq!(
        (world.run(&[("ClientToken", "two")]), world.there()),
        (refused, 2)
    );
    add(Fault::Delay(Duration::from_millis(1)));
    world.run(&[token]).unwrap();
    assert_eq!(world.there(), 2);
    let outcomes: Vec<Outcome> = world
        .proxy
        .take_calls()
        .into_iter()
        .map(|call| call.outcome)
        .collect();
    let expected = [
        Outcome::Lost { effect: false },
        Outcome::Lost { effect: true },
        Outcome::Refused("InternalError".to_owned()),
        Outcome::Answered,
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(world.proxy.count("RunInstances"), 0, "the log began anew");
}

#[test]
fn a_rule_is_for_the_calls_it_names() {
    let Some(world) = World::new() else { return };
    let full = Fault::Refuse(Refusal::named("InsufficientInstanceCapacity"));
    let rule = Rule::every("RunInstances", full).with("InstanceType", "m7g.large");
    world.proxy.add(rule.after(1));
    world.run(&[]).unwrap();
    for _ in 0..3 {
        assert_eq!(world.run(&[]).unwrap_err(), "InsufficientInstanceCapacity");
    }
    world.call("DescribeInstances", &[]).unwrap();
    world.proxy.clear();
    world.run(&[]).unwrap();
}

#[test]
fn each_error_comes_as_ec2_writes_it() {
    let Some(world) = World::new() else { return };
    for (code, status, message) in ERRORS {
        let refusal = Refusal::named(code);
        world
            .proxy
            .add(Rule::next("RunInstances", Fault::Refuse(refusal)));
        let reply = world.post("ec2", "RunInstances", &[]);
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        let body = reply.split_once("\r\n\r\n").unwrap().1;
        let document = Element::parse(body).unwrap();
        assert_eq!(document.text_at("Errors/Error/Code"), *code);
        assert_eq!(document.text_at("Errors/Error/Message"), *message);
        assert_eq!(document.text_at("RequestID").len(), 36);
    }
}

#[test]
fn chance_repeats_itself() {
    let Some(world) = World::new() else { return };
    let chance = Chance {
        seed: 3,
        throttled: 200,
        lost_requests: 100,
        lost_answers: 100,
        ..Chance::default()
    };
    let outcomes = || -> Vec<Result<(), String>> {
        world.proxy.set_chance(Some(chance));
        let describe = |number: usize| {
            let name = number.to_string();
            let filter = [("Filter.1.Name", "tag:x"), ("Filter.1.Value.1", &*name)];
            world.call("DescribeInstances", &filter).map(drop)
        };
        (0..40).map(|number| describe(number % 20)).collect()
    };
    let first = outcomes();
    assert_eq!(outcomes(), first);
    let failed = first.iter().filter(|outcome| outcome.is_err()).count();
    assert!((4..30).contains(&failed), "{failed}");
}

#[test]
fn targets_are_as_healthy_as_a_test_says() {
    let Some(world) = World::new() else { return };
    let elb = "elasticloadbalancing";
    let moto = world.proxy.moto();
    let vpcs = moto.call("ec2", REGION, "DescribeVpcs", &[]).unwrap();
    let group = [
        ("Name", "api"),
        ("Protocol", "TCP"),
        ("Port", "6443"),
        ("VpcId", vpcs.text_at("vpcSet/item/vpcId")),
        ("TargetType", "instance"),
    ];
    let group = moto.call(elb, REGION, "CreateTargetGroup", &group).unwrap();
    let arn = group.text_at("CreateTargetGroupResult/TargetGroups/member/TargetGroupArn");
    let (one, two) = (world.run(&[]).unwrap(), world.run(&[]).unwrap());
    let change = |action: &str, id: &str| {
        let parameters = [("TargetGroupArn", arn), ("Targets.member.1.Id", id)];
        world.call_to(elb, action, &parameters).unwrap();
    };
    let state = |id: &str| {
        let parameters = [("TargetGroupArn", arn)];
        let answer = world
            .call_to(elb, "DescribeTargetHealth", &parameters)
            .unwrap();
        let members = answer.items("DescribeTargetHealthResult/TargetHealthDescriptions");
        let found = members.iter().find(|it| it.text_at("Target/Id") == id);
        found.map(|it| it.text_at("TargetHealth/State").to_owned())
    };
    let healthy = Some("healthy".to_owned());
    world.proxy.set_habits(Habits {
        initial: 1,
        draining: 1,
        ..Habits::default()
    });
    change("RegisterTargets", &one);
    assert_eq!(state(&one).as_deref(), Some("initial"));
    assert_eq!(state(&one), healthy);
    change("RegisterTargets", &two);
    let unhealthy = Health::of([&*one], "unhealthy", "Target.Timeout");
    let unhealthy = unhealthy.after_deregistrations(1).looks(1);
    let unused = Health::of_others([&*one], "unused", "Target.NotInUse");
    world.proxy.set_health(vec![unhealthy, unused]);
    assert_eq!(state(&two).as_deref(), Some("initial"));
    assert_eq!(state(&two).as_deref(), Some("unused"));
    assert_eq!(state(&one), healthy);
    change("DeregisterTargets", &two);
    assert_eq!(state(&two).as_deref(), Some("draining"));
    // That was the one look.
    assert_eq!(state(&one), healthy);
    assert_eq!(state(&two), None);
}

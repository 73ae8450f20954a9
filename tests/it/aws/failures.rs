//! What AWS answers when it doesn't do what was asked.

use insta::assert_snapshot;

use nstance_ec2_proxy::{Chance, ERRORS, Fault, Habits, Refusal, Rule};

use super::world::{Aws, FLEET};

/// One instance.
const ONE: &str = include_str!("../data/aws_one.jsonc");

#[test]
fn each_error_is_told_in_words_that_help() {
    let Some(aws) = Aws::with(ONE) else { return };
    let mut all = String::new();
    for (code, ..) in ERRORS {
        aws.proxy.clear();
        // What the last error left open would be settled first.
        let _ = std::fs::remove_dir_all(aws.harness.path(".nstance"));
        let fault = Fault::Refuse(Refusal::named(code));
        aws.proxy.add(Rule::every("RunInstances", fault));
        let ended = aws.run("apply --auto-approve");
        assert_ne!(ended.code, Some(0), "{code}: {ended}");
        // What failed is told on standard error; what was planned is the same each time.
        let told = ended
            .stderr
            .lines()
            .filter(|line| !is_beside_the_point(line));
        let told: Vec<&str> = told.collect();
        all.push_str(&format!(
            "== {code}: {:?}\n{}\n\n",
            ended.code,
            told.join("\n")
        ));
        assert!(aws.live().is_empty(), "{code}");
    }
    assert_snapshot!("errors", aws.shown(&all));
    aws.proxy.clear();
    aws.apply("");
}

/// Whether a line is the same for each error.
fn is_beside_the_point(line: &str) -> bool {
    line.starts_with("Made a key") || line.contains(": trying again in ")
}

#[test]
fn errors_of_reading_are_told_too() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    let mut all = String::new();
    for code in [
        "UnauthorizedOperation",
        "AuthFailure",
        "RequestExpired",
        "OptInRequired",
    ] {
        aws.proxy.clear();
        let fault = Fault::Refuse(Refusal::named(code));
        aws.proxy.add(Rule::every("DescribeInstances", fault));
        let ended = aws.run("plan");
        all.push_str(&format!("== {code}\n{ended}\n"));
    }
    assert_snapshot!("read_errors", aws.shown(&all));
}

#[test]
fn user_data_that_is_too_long_is_an_error_of_the_plan() {
    let Some(aws) = Aws::with(FLEET) else { return };
    // Not to be made shorter by gzip.
    let mut noise = String::new();
    let mut number = 1_u64;
    while noise.len() < 40_000 {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        noise.push_str(&format!("{:016x}", number ^ number >> 29));
    }
    aws.edit(
        "#!/bin/sh\\nhostname",
        &format!("#!/bin/sh\\n# {noise}\\nhostname"),
    );
    let told = aws.told("plan").replace(&noise, "[NOISE]");
    assert_snapshot!("userdata_too_long", told);
    assert_eq!(aws.proxy.count("RunInstances"), 0);
}

#[test]
fn throttling_is_waited_out() {
    let Some(aws) = Aws::with(FLEET) else { return };
    let throttled = || Fault::Refuse(Refusal::named("RequestLimitExceeded"));
    aws.proxy
        .add(Rule::next("DescribeInstances", throttled()).times(2));
    aws.proxy
        .add(Rule::next("RunInstances", throttled()).times(2));
    aws.apply("");
    assert_eq!(aws.live().len(), 3);
}

#[test]
fn a_lost_answer_makes_nothing_twice() {
    let Some(aws) = Aws::with(FLEET) else { return };
    for fault in [Fault::LoseAnswer, Fault::LoseRequest] {
        aws.proxy.add(Rule::next("RunInstances", fault));
    }
    let internal = Fault::RefuseAfter(Refusal::named("InternalError"));
    aws.proxy.add(Rule::next("RunInstances", internal));
    aws.apply("");
    assert_eq!(aws.live().len(), 3);
}

#[test]
fn lost_answers_that_go_on_are_settled_by_the_next_apply() {
    let Some(aws) = Aws::with(FLEET) else { return };
    aws.proxy
        .add(Rule::every("RunInstances", Fault::LoseAnswer));
    let ended = aws.run("apply --auto-approve");
    let told: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| !is_beside_the_point(line))
        .collect();
    assert_snapshot!("lost_answers", aws.shown(&told.join("\n")));
    let made: Vec<String> = aws.live().into_iter().map(|one| one.id).collect();
    aws.proxy.clear();
    aws.apply("");
    for id in made {
        assert!(
            aws.live().iter().any(|one| one.id == id),
            "{id} was made already"
        );
    }
    assert_eq!(aws.live().len(), 3);
}

#[test]
fn what_isnt_seen_yet_is_made_once() {
    let Some(aws) = Aws::with(FLEET) else { return };
    aws.proxy.set_habits(Habits {
        hidden: 4,
        pending: 2,
        shutting_down: 3,
        ..Habits::default()
    });
    let run = |words: &str| {
        let ended = aws.run_now(words);
        assert_eq!(ended.code, Some(0), "{ended}");
        ended
    };
    run("apply --auto-approve");
    for _ in 0..3 {
        let plan = run("plan");
        assert!(plan.stdout.contains("No changes."), "{plan}");
        run("apply --auto-approve");
    }
    assert_eq!(aws.live().len(), 3);
    aws.apply("");
    aws.edit("\"size\": 2", "\"size\": 1");
    aws.apply("--allow-delete all");
    assert_eq!(aws.live().len(), 2);
}

#[test]
fn whatever_happens_the_fleet_is_there_in_the_end() {
    let Some(aws) = Aws::with(FLEET) else { return };
    for (seed, size) in [(1, 6), (2, 3), (3, 9), (4, 0), (5, 5)] {
        aws.proxy.set_habits(Habits {
            hidden: 2,
            pending: 1,
            stopping: 1,
            shutting_down: 2,
            ..Habits::default()
        });
        aws.proxy.set_chance(Some(Chance {
            seed,
            throttled: 80,
            failed: 40,
            failed_after: 40,
            lost_requests: 40,
            lost_answers: 60,
            ..Chance::default()
        }));
        let config = FLEET.replace("\"size\": 2", &format!("\"size\": {size}"));
        aws.harness.configure(&aws.filled(&config));
        // How it ends is chance's; that the next one, left alone, gets there isn't.
        aws.run_now("apply --auto-approve --allow-delete all");
        aws.proxy.set_chance(None);
        aws.proxy.set_habits(Habits::default());
        // What is hidden is seen after the window, at the latest.
        let ended = aws.run_now("apply --auto-approve --allow-delete all");
        assert_eq!(ended.code, Some(0), "{ended}");
        aws.apply("--allow-delete all");
        assert_eq!(aws.live().len(), size + 1, "seed {seed}");
    }
}

#[test]
fn without_credentials_it_says_what_to_set() {
    let Some(aws) = Aws::with(FLEET) else { return };
    let mut command = aws.command("plan");
    command
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY");
    let ended = aws.harness.end("plan", command);
    assert_snapshot!("no_credentials", aws.shown(&ended.to_string()));
}

/// Service Quotas tells the limit, so the plan says it before EC2 does.
#[test]
fn a_quota_is_said_before_it_is_hit() {
    let Some(aws) = Aws::with(FLEET) else { return };
    // Three instances of two processors.
    aws.proxy.set_quota("L-1216C47A", 6.0);
    let fits = aws.ok("plan");
    assert_eq!(fits.stderr, "", "{fits}");
    aws.ok("apply --auto-approve");
    aws.edit("\"size\": 2", "\"size\": 4");
    assert_snapshot!("quota", aws.told("plan"));
    // Others may end meanwhile: EC2 has the last word.
    aws.apply("");
    aws.proxy.take_calls();
    aws.ok("plan");
    assert_eq!(aws.proxy.count("GetServiceQuota"), 0);
}

#[test]
fn doctor_names_what_isnt_allowed() {
    let Some(aws) = Aws::applied(FLEET) else {
        return;
    };
    assert_snapshot!("doctor_well", aws.told("doctor"));
    let denied = || Fault::Refuse(Refusal::named("UnauthorizedOperation"));
    for action in ["RunInstances", "DescribeSubnets", "TerminateInstances"] {
        aws.proxy.add(Rule::every(action, denied()));
    }
    assert_snapshot!("doctor_denied", aws.told("doctor"));
}

#[test]
fn the_pools_next_subnet_is_tried_where_there_is_no_capacity() {
    let Some(aws) = Aws::with(FLEET) else { return };
    let full = Fault::Refuse(Refusal::named("InsufficientInstanceCapacity"));
    let first = aws.id("subnet-", 1);
    aws.proxy
        .add(Rule::every("RunInstances", full).with("SubnetId", &first));
    assert_snapshot!("next_subnet", aws.apply(""));
    for instance in aws.live() {
        assert_eq!(instance.text("subnetId"), aws.id("subnet-", 2));
    }
    aws.agrees();
}

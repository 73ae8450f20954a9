//! The formats of `plan`, `apply` and `drift`: in a pull request, in a CI log, for a CI server.

use insta::assert_snapshot;
use serde_json::json;

use crate::harness::{AWS, Harness, TWO};

/// [`TWO`], applied, then changed: deletions, restarts, and drift.
fn changed() -> Harness {
    let harness = Harness::applied(TWO);
    harness.ok("sim set-tag default/db/0 Owner=someone");
    harness.edit("\"size\": 3", "\"size\": 2");
    harness.edit(
        "\"instance_type\": \"small\"",
        "\"instance_type\": \"medium\"",
    );
    harness
}

/// Text without the token of this process.
fn without_token(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(at) = text.find("::nstance-") {
        let token = text[at + 2..at + 2 + "nstance-".len() + 32].to_owned();
        text = text.replace(&token, "TOKEN");
    }
    text
}

#[test]
fn a_plan_as_markdown() {
    let harness = changed();
    assert_snapshot!(harness.ok("plan --format markdown"));
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("plan --format markdown"));
}

#[test]
fn a_plan_with_userdata_and_look_ups_as_markdown() {
    let harness = Harness::with(AWS);
    harness.ok("apply --sim --auto-approve");
    harness.edit("kubeadm join", "kubeadm join --v=5");
    harness.edit("\"knc\", \"size\": 3", "\"knc\", \"size\": 2");
    let ended = harness.run("plan --sim --format markdown");
    assert_snapshot!(ended);
}

#[test]
fn a_plan_for_github() {
    let harness = changed();
    harness.write("summary.md", "before\n");
    let words = "plan --format github";
    let link = [
        ("GITHUB_SERVER_URL", "https://github.example"),
        ("GITHUB_REPOSITORY", "shop/fleet"),
        ("GITHUB_RUN_ID", "42"),
    ];
    let mut command = harness.command(words);
    command
        .envs(link)
        .env("GITHUB_STEP_SUMMARY", harness.path("summary.md"))
        .env("GITHUB_OUTPUT", harness.path("outputs"))
        .env("GITHUB_WORKSPACE", harness.path("").parent().unwrap());
    let mut ended = harness.end(words, command);
    ended.stdout = without_token(&ended.stdout).replace(
        harness.path("").file_name().unwrap().to_str().unwrap(),
        "[NAME]",
    );
    assert_snapshot!(ended);
    let summary = String::from_utf8(harness.read("summary.md")).unwrap();
    assert!(
        summary.starts_with("before\n<!-- nstance plan -->\n### Plan: "),
        "{summary}"
    );
    assert!(summary.contains("[job](https://github.example/shop/fleet/actions/runs/42)"));
    assert_snapshot!(String::from_utf8(harness.read("outputs")).unwrap());
}

#[test]
fn several_reports_of_one_run() {
    let harness = changed();
    let ended = harness.ok(
        "plan --report markdown=plan.md --report gitlab=plan.json --report json=whole.json \
         --report text=plan.txt --report github=-",
    );
    assert!(
        ended.stdout.contains("::notice title=nstance plan::Plan: "),
        "{ended}"
    );
    let read = |name: &str| String::from_utf8(harness.read(name)).unwrap();
    assert!(read("plan.md").contains("1 to destroy"));
    let counts: serde_json::Value = serde_json::from_str(&read("plan.json")).unwrap();
    assert_eq!(counts, json!({"create": 0, "update": 3, "delete": 1}));
    let mut whole: serde_json::Value = serde_json::from_str(&read("whole.json")).unwrap();
    assert_eq!(whole["summary"]["update"], 3);
    // The document is the one that `--json` prints, at another time.
    let mut printed = harness.json("plan --json");
    for document in [&mut whole, &mut printed] {
        document.as_object_mut().unwrap().remove("diagnostics");
    }
    assert_eq!(whole, printed);
    // What is printed and what is written are the same.
    let printed = ended.stdout.split("::").next().unwrap();
    assert_eq!(read("plan.txt"), printed);
}

#[test]
fn errors_are_annotations_with_their_place() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"template\": \"vm\", \"size\": 3",
        "\"template\": \"wm\", \"size\": 3",
    );
    let mut ended = harness.run("plan --format github --report markdown=plan.md");
    assert_eq!(ended.code, Some(1), "{ended}");
    ended.stdout = without_token(&ended.stdout);
    assert_snapshot!(ended);
    assert_snapshot!(String::from_utf8(harness.read("plan.md")).unwrap());
}

#[test]
fn an_apply_as_markdown() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"options\": {}",
        r#""options": { "fail": [{"operation": "create", "after": 2, "count": 99, "error": "quota"}] }"#,
    );
    let ended = harness.run("apply --auto-approve --format markdown --report json=result.json");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert_snapshot!(ended);
    let document: serde_json::Value = serde_json::from_slice(&harness.read("result.json")).unwrap();
    assert_eq!(document["applied"]["status"], "failed");
    assert_eq!(document["applied"]["undone"].as_array().unwrap().len(), 3);
}

#[test]
fn an_apply_for_github_and_gitlab() {
    let harness = Harness::with(TWO);
    let words = "destroy --auto-approve --format github --report gitlab=done.json";
    let mut ended = harness.ok(words);
    ended.stdout = without_token(&ended.stdout);
    assert_snapshot!(ended);
    let counts: serde_json::Value = serde_json::from_slice(&harness.read("done.json")).unwrap();
    assert_eq!(counts, json!({"create": 0, "update": 0, "delete": 0}));
}

#[test]
fn drift_in_every_format() {
    let harness = Harness::applied(TWO);
    harness.edit(
        "\"groups\"",
        "\"accept\": [{ \"address\": \"default/db\", \"reason\": \"<known> & \\\"meant\\\"\" }],\n  \"groups\"",
    );
    harness.ok("sim set-tag default/web/0 Owner=someone");
    harness.ok("sim delete default/web/1");
    harness.ok("sim delete default/db/0");
    for format in ["markdown", "github", "junit"] {
        let mut ended = harness.run(&format!("drift --format {format}"));
        assert_eq!(ended.code, Some(2), "{ended}");
        ended.stdout = without_token(&ended.stdout);
        assert_snapshot!(ended);
    }
    let ended = harness.run("drift --against config --format junit");
    assert_eq!(ended.code, Some(2), "{ended}");
    assert_snapshot!(ended);
}

#[test]
fn a_format_that_a_command_lacks_is_refused() {
    let harness = Harness::with(TWO);
    for words in [
        "plan --format junit",
        "drift --report gitlab=x.json",
        "plan --report pdf=x.pdf",
        "plan --report markdown",
        "plan --format pdf",
    ] {
        assert_snapshot!(harness.run(words));
    }
}

#[test]
fn no_report_replaces_what_is_needed() {
    let harness = Harness::with(TWO);
    harness.give_key();
    harness.ok("plan --out saved.plan");
    let files = harness.files();
    for (words, why) in [
        (
            "plan --report markdown=missing/plan.md",
            "there is no such folder",
        ),
        (
            "plan --report markdown=nstance.jsonc",
            "a file of the configuration",
        ),
        ("plan --html ./nstance.jsonc", "a file of the configuration"),
        ("plan --report json=saved.plan", "a saved plan"),
        ("plan --html .nstance/key", "a key"),
        ("plan --html a.html --report markdown=a.html", "two results"),
        ("plan --out a --html a", "two results"),
        ("report saved.plan --html saved.plan", "a saved plan"),
        (
            "drift --report text=nstance.jsonc",
            "a file of the configuration",
        ),
        (
            "plan --format markdown --report json=-",
            "room for one report",
        ),
        // Nothing is applied whose result can't be written.
        (
            "apply --auto-approve --report markdown=missing/plan.md",
            "there is no such folder",
        ),
        ("apply saved.plan --report json=saved.plan", "two results"),
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert!(text.contains(why), "{ended}");
        assert_eq!(harness.files(), files, "{ended}");
    }
    // An invalid configuration isn't replaced by its errors either.
    harness.edit("\"small\"", "17");
    let config = harness.read("nstance.jsonc");
    let ended = harness.run("plan --report markdown=nstance.jsonc");
    assert!(
        ended.stderr.contains("a file of the configuration"),
        "{ended}"
    );
    assert!(harness.read("nstance.jsonc") == config);
}

/// A word that has nothing to do with a slot's number.
fn key(number: usize) -> String {
    let letter = |place: u32| char::from(b'a' + (number * 7919 / 26_usize.pow(place) % 26) as u8);
    (0..6).map(letter).collect()
}

/// A group whose instances all differ, with much userdata.
fn big(instances: usize, version: &str) -> String {
    let groups: Vec<String> = (0..instances / 50)
        .map(|group| {
            let overrides: Vec<String> = (0..50)
                .map(|slot| {
                    let key = key(group * 50 + slot);
                    format!("\"{slot}\": {{ \"vars\": {{ \"KEY\": \"{version}-{key}\" }} }}")
                })
                .collect();
            format!(
                "\"g{group}\": {{ \"template\": \"vm\", \"size\": 50, \"overrides\": {{ {} }} }}",
                overrides.join(", ")
            )
        })
        .collect();
    let lines = (0..60).map(|line| format!("line {line} of a script\\n"));
    let lines = lines.collect::<Vec<_>>().concat();
    format!(
        r##"{{ "cluster": {{ "id": "test" }},
        "shard": {{ "id": "one", "infra": {{ "provider": "sim", "region": "r", "zone": "z" }} }},
        "destroy_budget": {{ "count": 5000 }},
        "templates": {{ "vm": {{ "kind": "srv", "arch": "amd64", "instance_type": "small",
          "args": {{ "ImageId": "debian-13" }}, "vars": {{ "KEY": "" }},
          "userdata": {{ "source": "inline",
            "content": "#!/bin/sh\n```\n</details>\n@everyone\necho {{{{ .Vars.KEY }}}}\n{lines}" }} }} }},
        "groups": {{ "default": {{ {} }} }} }}"##,
        groups.join(", ")
    )
}

#[test]
fn a_comment_has_githubs_length_and_says_what_it_lacks() {
    let harness = Harness::with(&big(1_000, "a"));
    let ended = harness.ok("plan --format markdown");
    let text = &ended.stdout;
    assert!(text.len() <= 65_536, "{} bytes", text.len());
    assert!(text.len() > 50_000, "{} bytes", text.len());
    assert!(
        text.contains("**Left out, since the length is limited:** details of "),
        "{ended}"
    );
    assert!(text.contains("1000 to add"), "{ended}");
    // Each group is named, and each fence is longer than what is in it.
    for group in 0..20 {
        assert!(text.contains(&format!("<code>default/g{group}</code>")));
    }
    assert_eq!(
        text.matches("<details").count(),
        text.matches("\n</details>\n").count()
    );
    assert!(
        text.contains("````diff\n"),
        "a fence in userdata makes the fence longer"
    );
}

#[test]
fn several_shards_make_one_comment() {
    let harness = Harness::empty();
    for shard in ["a", "b"] {
        let config = TWO.replace("\"id\": \"one\"", &format!("\"id\": \"{shard}\""));
        harness.write(&format!("{shard}.jsonc"), config);
    }
    assert_snapshot!(harness.ok("-c a.jsonc -c b.jsonc plan --format markdown"));
    let ended = harness.ok("-c a.jsonc -c b.jsonc drift --report junit=drift.xml");
    assert!(
        ended.stdout.contains("No drift. 2 shards looked at."),
        "{ended}"
    );
    assert_snapshot!(String::from_utf8(harness.read("drift.xml")).unwrap());
}

#[test]
fn what_apply_refuses_is_an_error_of_the_plan() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"groups\"",
        "\"destroy_budget\": { \"count\": 0, \"percent\": 0 },\n  \"groups\"",
    );
    harness.edit(
        "\"instance_type\": \"large\"",
        "\"instance_type\": \"large\", \"protect\": true",
    );
    harness.ok("apply --auto-approve");
    harness.edit("\"size\": 3", "\"size\": 1");
    harness.edit("\"debian-13\"", "\"debian-12\"");
    let mut ended = harness.ok("plan --format github --report markdown=plan.md");
    ended.stdout = without_token(&ended.stdout);
    let at = ended.stdout.find("::TOKEN::").unwrap();
    assert_snapshot!(&ended.stdout[at..]);
    let text = String::from_utf8(harness.read("plan.md")).unwrap();
    assert!(text.contains("--allow-replace default/db"), "{text}");
}

//! `jobs`: BOSH manifests, interpolated, resolved and rendered.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::OnceLock;

use insta::assert_snapshot;
use serde_json::json;

use crate::harness::{CANARY, Ended, Harness};

/// What names the example's deployment.
const SHOP: &str = "-c manifest.yml --releases releases --vars-file vars.yml --profile quarks";

fn shop() -> Harness {
    Harness::example("bosh")
}

/// Whether there is Ruby. In CI there must be.
fn has_ruby() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = Command::new("ruby").arg("--version").output().is_ok();
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(found || !in_ci, "Ruby is missing: apt-get install ruby");
        found
    })
}

/// Runs a command in the environment of the harness, with Ruby and these variables.
fn with_ruby(harness: &Harness, words: &str, variables: &[(&str, &str)]) -> Ended {
    let mut command = harness.command(words);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(variables.iter().copied());
    harness.end(words, command)
}

/// Changes what is written once in a file.
#[track_caller]
fn edit(harness: &Harness, file: &str, from: &str, to: &str) {
    let text = String::from_utf8(harness.read(file)).unwrap();
    assert_eq!(text.matches(from).count(), 1, "`{from}` is in {file} once");
    harness.write(file, text.replacen(from, to, 1));
}

#[test]
fn manifests_are_interpolated() {
    let harness = shop();
    assert_snapshot!(harness.ok(
        "jobs interpolate manifest.yml --ops-file ops/scale-web.yml --vars-file vars.yml --var \
         title=Shop"
    ));
    let json = harness.json("-c manifest.yml jobs interpolate --vars-file vars.yml --json");
    assert_eq!(json["format_version"], "1.0");
    assert_eq!(json["diagnostics"], json!([]));
    let jobs = &json["manifest"]["instance_groups"][1]["jobs"];
    assert_eq!(jobs[0]["properties"]["server"]["title"], "The shop");
}

#[test]
fn ops_files_and_variables_may_come_from_the_environment() {
    let harness = shop();
    harness.write(
        "ops/more.yml",
        "- {type: replace, path: /tags?/x, value: ((x))}",
    );
    let words = "jobs interpolate --json";
    let mut command = harness.command(words);
    command
        .env("NSTANCE_CONFIG", "manifest.yml")
        .env("NSTANCE_FROM", "bosh")
        .env("NSTANCE_OPS_FILES", "ops/scale-web.yml:ops/more.yml")
        .env("NSTANCE_VARS_FILES", "vars.yml")
        .env("NSTANCE_VAR_x", "1")
        .env("NSTANCE_VAR_title", "of the environment");
    let manifest = &harness.end(words, command).json()["manifest"];
    assert_eq!(manifest["tags"], json!({"x": 1}));
    assert_eq!(manifest["instance_groups"][1]["instances"], 3);
    let server = &manifest["instance_groups"][1]["jobs"][0]["properties"]["server"];
    assert_eq!(server["title"], "The shop");
}

#[test]
fn errors_of_interpolation_are_reported_together() {
    let harness = shop();
    harness.write(
        "ops/bad.yml",
        "- {type: replace, path: name, value: x}\n- {type: swap, path: /a}\n",
    );
    harness.write("bad-vars.yml", format!("db_password: [{CANARY}\n"));
    let mut shown = String::new();
    for words in [
        "jobs interpolate missing.yml --ops-file none.yml --vars-file bad-vars.yml",
        "jobs interpolate manifest.yml --ops-file ops/bad.yml",
        "jobs interpolate manifest.yml --var tilte=Shop --var-errs --var-errs-unused",
        "jobs interpolate manifest.yml --var tilte=Shop --var-errs --json",
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        shown.push_str(&format!("{ended}\n"));
    }
    assert_snapshot!(shown);
}

#[test]
fn groups_are_resolved() {
    let harness = shop();
    assert_snapshot!(harness.ok(&format!("{SHOP} jobs resolve web")));
    let all = harness.json(&format!("{SHOP} jobs resolve --version 7 --json"));
    let documents = all["documents"].as_array().unwrap().iter();
    let names: Vec<&str> = documents.map(|one| one["name"].as_str().unwrap()).collect();
    let expected = ["db", "web", "smoke-tests"].map(|name| format!("dig-resolved.{name}-v7"));
    assert_eq!(names, expected);
}

#[test]
fn bpm_is_part_of_the_documents() {
    if !has_ruby() {
        return;
    }
    let words = format!("{SHOP} jobs resolve db --bpm");
    assert_snapshot!(with_ruby(&shop(), &words, &[]));
}

#[test]
fn files_are_rendered() {
    if !has_ruby() {
        return;
    }
    let harness = shop();
    assert_snapshot!(with_ruby(
        &harness,
        &format!("{SHOP} jobs render web/3"),
        &[]
    ));
    let words = format!("{SHOP} jobs render web --json");
    let document = with_ruby(&harness, &words, &[]).json();
    let instances = document["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 4);
    assert_eq!(instances[2]["az"], "z2");
    assert_eq!(
        instances[2]["files"]["server/config/bpm.yml"]["mode"],
        "0644"
    );
}

#[test]
fn files_are_written_with_their_modes() {
    if !has_ruby() {
        return;
    }
    let harness = shop();
    let words = format!("{SHOP} jobs render db --out out");
    assert_snapshot!(with_ruby(&harness, &words, &[]));
    let files = harness.files();
    let files: Vec<&String> = files
        .iter()
        .filter(|file| file.starts_with("out/"))
        .collect();
    let expected = [
        "out/db/0/postgres/bin/pre-start",
        "out/db/0/postgres/config/bpm.yml",
        "out/db/0/postgres/config/postgresql.conf",
        "out/db/0/postgres/monit",
    ];
    assert_eq!(files, expected);
    for (file, expected) in expected.iter().zip([0o755, 0o644, 0o644, 0o644]) {
        let mode = std::fs::metadata(harness.path(file)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, expected, "{file}");
    }
}

#[test]
fn the_environment_of_quarks_chooses_an_instance() {
    if !has_ruby() {
        return;
    }
    let harness = shop();
    let group = ("INSTANCE_GROUP_NAME", "web");
    for (words, variables, expected) in [
        ("jobs render", &[group] as &[_], "0 1 2 3"),
        (
            "jobs render",
            &[group, ("AZ_INDEX", "2"), ("POD_ORDINAL", "1")],
            "3",
        ),
        (
            "jobs render",
            &[group, ("AZ_INDEX", "2"), ("HOSTNAME", "web-z1-0")],
            "2",
        ),
        ("jobs render", &[group, ("POD_ORDINAL", "1")], "1"),
        ("jobs render db", &[group], "0"),
        (
            "jobs render web/3",
            &[("AZ_INDEX", "1"), ("POD_ORDINAL", "0")],
            "3",
        ),
    ] {
        let words = format!("{SHOP} {words} --json");
        let document = with_ruby(&harness, &words, variables).json();
        let instances = document["instances"].as_array().unwrap().iter();
        let indices: Vec<String> = instances.map(|one| one["index"].to_string()).collect();
        assert_eq!(indices.join(" "), expected, "{words} {variables:?}");
    }
    let mut shown = String::new();
    for variables in [
        &[] as &[_],
        &[group, ("AZ_INDEX", "one")],
        &[group, ("AZ_INDEX", "1")],
        &[group, ("AZ_INDEX", "3"), ("POD_ORDINAL", "0")],
        &[group, ("POD_ORDINAL", "0"), ("REPLICAS", "4")],
        &[("INSTANCE_GROUP_NAME", "wbe")],
    ] {
        let ended = with_ruby(&harness, &format!("{SHOP} jobs render"), variables);
        assert_eq!(ended.code, Some(1), "{ended}");
        shown.push_str(&ended.stderr);
    }
    let ended = harness.run(&format!("{SHOP} jobs render web/4"));
    shown.push_str(&ended.stderr);
    assert_snapshot!(shown);
}

#[test]
fn without_ruby_it_is_said_who_needs_it() {
    let harness = shop();
    let missing = "--ruby /nonexistent/ruby";
    let render = format!("{SHOP} {missing} jobs render db");
    let resolve = format!("{SHOP} {missing} jobs resolve --bpm");
    // The harness has no PATH.
    let on_path = format!("{SHOP} jobs render web/0");
    let mut shown = String::new();
    for words in [render, resolve, on_path] {
        let ended = harness.run(&words);
        assert_eq!(ended.code, Some(1), "{ended}");
        shown.push_str(&format!("{ended}\n"));
    }
    let without = harness.ok(&format!("{SHOP} {missing} jobs render db --no-render"));
    shown.push_str(&without.to_string());
    assert_snapshot!(shown);
    let files = harness.json(&format!(
        "{SHOP} {missing} jobs render db --no-render --json"
    ));
    assert!(files["instances"][0]["files"].is_object(), "{files}");
    harness.write("releases/web/jobs/server/templates/bpm.yml.erb", "{}\n");
    harness.write("releases/web/jobs/server/templates/server.json.erb", "{}\n");
    harness.ok(&format!("{SHOP} {missing} jobs render web"));
}

#[test]
fn errors_of_templates_are_those_of_bosh() {
    if !has_ruby() {
        return;
    }
    let harness = shop();
    edit(
        &harness,
        "releases/web/jobs/server/templates/server.json.erb",
        "p('server.title')",
        "p('server.tilte')",
    );
    harness.write(
        "releases/web/jobs/server/templates/bpm.yml.erb",
        "a\n<%= link('dbs') %>\n<%= 1",
    );
    edit(
        &harness,
        "releases/web/jobs/server/spec",
        "  server.json.erb:",
        "  missing.erb: config/missing\n  server.json.erb:",
    );
    let mut shown = String::new();
    for words in [
        "jobs render web",
        "jobs resolve web --bpm",
        "jobs render web/0 --json",
    ] {
        let ended = with_ruby(&harness, &format!("{SHOP} {words}"), &[]);
        assert_eq!(ended.code, Some(1), "{ended}");
        shown.push_str(&format!("{ended}\n"));
    }
    assert_snapshot!(shown);
}

#[test]
fn errors_of_a_deployment_are_reported_together() {
    let harness = shop();
    let mut shown = String::new();
    let mut refused = |words: &str| {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        shown.push_str(&format!("{ended}\n"));
    };
    refused("-c manifest.yml jobs resolve");
    refused("-c manifest.yml jobs resolve --releases elsewhere");
    refused("-c manifest.yml jobs resolve --releases releases");
    refused(&format!("{SHOP} jobs resolve wbe"));
    std::fs::remove_dir_all(harness.path("releases/web/jobs/smoke")).unwrap();
    std::fs::remove_dir_all(harness.path("releases/db")).unwrap();
    refused(&format!("{SHOP} jobs resolve"));
    edit(
        &harness,
        "manifest.yml",
        "{name: smoke, release: web}",
        "{name: smoke, release: wbe}",
    );
    edit(&harness, "manifest.yml", "instances: 2", "instances: many");
    refused(&format!("{SHOP} jobs dns"));
    assert_snapshot!(shown);
}

#[test]
fn options_of_other_languages_are_refused() {
    let harness = shop();
    let mut shown = String::new();
    for words in [
        "plan --releases releases",
        "plan --from nstance --ops-file ops/scale-web.yml",
        "jobs dns --from yandex --profile quarks",
        "jobs dns --from nstance",
        "jobs dns",
        "jobs dns -c a.yml -c b.yml",
        "jobs dns -c manifest.yml --var-file vars.yml",
        "-c manifest.yml --from bosh --vars-file vars.yml validate",
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        shown.push_str(&format!("{ended}\n"));
    }
    assert_snapshot!(shown);
    // In the environment they may be for other commands.
    harness.configure(crate::harness::TWO);
    let mut command = harness.command("validate");
    command
        .env("NSTANCE_RELEASES", "releases")
        .env("NSTANCE_PROFILE", "quarks");
    let ended = harness.end("validate", command);
    assert_eq!(ended.code, Some(0), "{ended}");
}

#[test]
fn warnings_are_shown_and_may_be_errors() {
    let harness = shop();
    edit(
        &harness,
        "manifest.yml",
        "name: shop",
        "name: shop\nupdates: {}",
    );
    harness.write(
        "releases/db/jobs/postgres/templates/pre-start.erb",
        "<%= 1\n",
    );
    let words = format!("{SHOP} jobs dns --format hosts");
    assert_snapshot!(harness.ok(&words));
    assert_eq!(harness.ok(&format!("{words} -q")).stderr, "");
    let ended = harness.run(&format!("{words} --strict"));
    assert_eq!(ended.code, Some(1), "{ended}");
}

#[test]
fn dns_records_name_groups_and_instances() {
    let harness = shop();
    assert_snapshot!(harness.ok(&format!("{SHOP} jobs dns")));
    let json = harness.json(&format!("{SHOP} jobs dns --format json"));
    assert_eq!(json["records"].as_array().unwrap().len(), 9);
    let record = &json["records"][1];
    let expected = json!({
        "name": "shop-db-0.default.svc.cluster.local",
        "addresses": [],
        "group": "db",
        "index": 0,
    });
    assert_eq!(*record, expected);
    let bosh = SHOP.replace("quarks", "bosh");
    let bosh = harness.ok(&format!("{bosh} jobs dns --format hosts"));
    assert!(
        bosh.stdout.contains("# q-s0.db.default.shop.bosh"),
        "{bosh}"
    );
}

#[test]
fn groups_whose_names_lead_elsewhere_are_not_written() {
    let harness = shop();
    edit(
        &harness,
        "manifest.yml",
        "name: smoke-tests",
        "name: ../smoke",
    );
    harness.write("releases/web/jobs/smoke/templates/run.erb", "x\n");
    let words = format!("{SHOP} jobs render --out out --no-render");
    let mut command = harness.command(&words);
    command.env("INSTANCE_GROUP_NAME", "../smoke");
    let ended = harness.end(&words, command);
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(
        ended.stderr.contains("can't be a folder's: ../smoke"),
        "{ended}"
    );
    assert!(!harness.path("smoke").exists());
}

#[test]
fn links_come_from_other_deployments() {
    let harness = shop();
    let web = "name: front\nreleases: [{name: web, version: '3.0'}]\ninstance_groups:\n- name: web\n  instances: 1\n  \
               jobs:\n  - name: server\n    release: web\n    properties: {server: {title: t}}\n    \
               consumes: {db: {from: data, deployment: back}}\n";
    let db = "name: back\nreleases: [{name: db, version: '1.2'}]\ninstance_groups:\n- name: db\n  instances: 2\n  \
              jobs:\n  - name: postgres\n    release: db\n    properties: {postgres: {password: p}}\n    \
              provides: {db: {as: data, shared: true}}\n";
    harness.write("front.yml", web);
    harness.write("back.yml", db);
    let words = "-c front.yml --releases releases jobs resolve web --json";
    if !has_ruby() {
        return;
    }
    let alone = with_ruby(&harness, words, &[]);
    assert_eq!(alone.code, Some(1));
    assert!(alone.stdout.contains("back"), "{alone}");
    let words = format!("{words} --linked-manifest back.yml");
    let linked = with_ruby(&harness, &words, &[]);
    assert_eq!(linked.code, Some(0), "{linked}");
    let text = linked.stdout;
    assert!(
        text.contains("back-db-1.default.svc.cluster.local"),
        "{text}"
    );
}

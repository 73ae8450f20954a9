//! Deployment manifests of BOSH, planned and applied: alone, and named by `source`.

use std::process::Command;
use std::sync::OnceLock;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::{CANARY, Ended, Harness};

/// The example's deployment, alone.
const SHOP: &str = "-c manifest.yml --from bosh --releases releases --vars-file vars.yml";

/// A configuration whose `source` is the example's deployment.
const SOURCE: &str = r#"{
  "cluster": {"id": "prod"},
  "shard": {
    "id": "one",
    "infra": {"provider": "sim", "region": "r", "zone": "z1"},
    "subnet_pools": {"default": ["subnet-1"]}
  },
  "dns": {"domain": "example.com"},
  "source": {
    "bosh": "manifest.yml", "releases": "releases", "vars_files": ["vars.yml"],
    "ops_files": ["ops/scale-web.yml"], "vars": {"title": "A title"}, "profile": "bosh"
  }
}"#;

/// The same on AWS.
const AWS: &str = r#"{
  "cluster": {"id": "shop"},
  "shard": {
    "id": "one",
    "infra": {"provider": "aws", "region": "eu-west-1", "zone": "eu-west-1a"},
    "subnet_pools": {"main": ["subnet-0a1", "subnet-0b2"]}
  },
  "images": {"ubuntu": {"provider": "aws", "owners": ["self"], "filters": [{"name": "name", "values": ["u*"]}], "fallback": "ami-0a1b2c3d"}},
  "source": {
    "bosh": "manifest.yml", "releases": "releases", "vars_files": ["vars.yml"], "profile": "quarks",
    "map": {
      "stemcell": {"default": "ubuntu"},
      "vm_type": {"small": "t3.small", "large": "m5.large"},
      "network": {"default": "main"},
      "az": {"z1": "eu-west-1a", "z2": "eu-west-1b"}
    }
  }
}"#;

fn shop() -> Harness {
    let harness = Harness::example("bosh");
    harness.write(
        "vars.yml",
        format!("title: The shop\npostgres_password: {CANARY}\n"),
    );
    // Time stands still in tests.
    edit(
        &harness,
        "manifest.yml",
        "update_watch_time: 1000-",
        "update_watch_time: 0-",
    );
    edit(
        &harness,
        "manifest.yml",
        "canary_watch_time: 1000-",
        "canary_watch_time: 0-",
    );
    harness
}

/// A deployment that needs no Ruby.
const SMALL: &str = "-c manifest.yml --from bosh --releases releases";

fn small() -> Harness {
    let harness = Harness::empty();
    harness.write(
        "manifest.yml",
        "name: shop
releases: [{name: shop, version: 1}]
stemcells: [{alias: default, os: ubuntu, version: 1}]
instance_groups:
- name: web
  instances: 2
  jobs: [{name: server, release: shop, properties: {password: ((password))}}]
  vm_type: small
  stemcell: default
  networks: [{name: default}]
",
    );
    harness.write(
        "releases/shop/jobs/server/spec",
        "name: server\ntemplates: {}\nproperties: {password: {}}\n",
    );
    harness
}

fn quarks() -> String {
    format!("{SHOP} --profile quarks")
}

/// The example beside a configuration.
fn named(config: &str) -> Harness {
    let harness = shop();
    harness.configure(config);
    harness
}

/// Whether there is Ruby. In CI there must be.
#[expect(clippy::print_stdout, reason = "says why nothing was tested")]
fn has_ruby() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = *FOUND.get_or_init(|| {
        let found = Command::new("ruby").arg("--version").output().is_ok();
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(found || !in_ci, "Ruby is missing: apt-get install ruby");
        found
    });
    if !found {
        println!("skipped: Ruby is missing");
    }
    found
}

/// Runs a command that finds Ruby.
fn run(harness: &Harness, words: &str) -> Ended {
    let mut command = harness.command(words);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    harness.end(words, command)
}

#[track_caller]
fn ok(harness: &Harness, words: &str) -> Ended {
    let ended = run(harness, words);
    assert_eq!(ended.code, Some(0), "{ended}");
    ended
}

#[track_caller]
fn failed(harness: &Harness, words: &str) -> Ended {
    let ended = run(harness, words);
    assert_eq!(ended.code, Some(1), "{ended}");
    ended
}

/// Changes what is written once in a file.
#[track_caller]
fn edit(harness: &Harness, file: &str, from: &str, to: &str) {
    let text = String::from_utf8(harness.read(file)).unwrap();
    assert_eq!(text.matches(from).count(), 1, "`{from}` is in {file} once");
    harness.write(file, text.replacen(from, to, 1));
}

/// The planned instances by address.
fn instances(harness: &Harness, options: &str) -> Vec<(String, Value)> {
    let plan = ok(harness, &format!("{options} plan --json")).json();
    let changes = plan["resource_changes"].as_array().unwrap().iter();
    let instance = |change: &Value| {
        let address = change["address"].as_str().unwrap().to_owned();
        (address, change["change"]["after"].clone())
    };
    changes.map(instance).collect()
}

#[test]
fn a_manifest_is_planned_and_applied() {
    if !has_ruby() {
        return;
    }
    let harness = shop();
    let shop = quarks();
    assert_snapshot!("bosh_plan", ok(&harness, &format!("{shop} plan")));
    assert_snapshot!(
        "bosh_apply",
        ok(&harness, &format!("{shop} apply --auto-approve -q"))
    );
    assert_snapshot!("bosh_again", ok(&harness, &format!("{shop} plan")));
    assert_eq!(ok(&harness, &format!("{shop} drift")).stdout, "No drift.\n");
    assert_snapshot!(
        "bosh_explained",
        ok(
            &harness,
            &format!("{shop} explain default/web/2.instance_type")
        )
    );
    // Zone and number in the zone stay; index, id and address don't.
    let scaled = format!("{shop} --ops-file ops/scale-web.yml");
    assert_snapshot!("bosh_renumbered", ok(&harness, &format!("{scaled} plan")));
    ok(
        &harness,
        &format!("{scaled} apply --auto-approve --allow-replace all"),
    );
    assert_snapshot!(
        "bosh_services",
        ok(&harness, &format!("{scaled} jobs services"))
    );
    let again = ok(&harness, &format!("{scaled} plan -q"));
    assert!(again.stdout.starts_with("No changes."), "{again}");
}

#[test]
fn a_plan_shows_how_the_manifest_changes() {
    let harness = small();
    let shop = SMALL;
    let first = format!("{shop} --var password=first-{CANARY}");
    let planned = harness.ok(&format!("{first} plan --json")).json();
    assert_eq!(planned["manifest"], json!({"version": 1, "diff": []}));
    harness.ok(&format!("{first} apply --auto-approve"));

    // A secret alone changes a line, and the version.
    let second = format!("{shop} --var password=second-{CANARY}");
    let planned = harness.ok(&format!("{second} plan"));
    assert_snapshot!("bosh_manifest_secret", planned);
    let harness = harness.showing_secrets();
    let planned = harness.ok(&format!("{second} plan --show-sensitive"));
    assert!(
        planned
            .stdout
            .contains(&format!("+       password: second-{CANARY}")),
        "{planned}"
    );
    harness.ok(&format!("{second} apply --auto-approve"));
    let planned = harness.ok(&format!("{second} plan --json")).json();
    assert_eq!(planned["manifest"], json!({"version": 2, "diff": []}));

    // A part of the manifest doesn't count as applied; what it changes has the version.
    edit(&harness, "manifest.yml", "instances: 2", "instances: 4");
    harness.ok(&format!(
        "{second} apply --auto-approve --target default/web/2"
    ));
    assert_snapshot!(
        "bosh_manifest_part",
        harness.ok(&format!("{second} plan -q"))
    );
    let services = harness.ok(&format!("{second} jobs services --json")).json();
    let selects = services["services"].as_array().unwrap().iter();
    let selects: Vec<&Value> = selects
        .map(|service| &service["selects"][0]["name"])
        .collect();
    assert_eq!(
        json!(selects),
        json!(["z0-v1-0", "z0-v1-1", "z0-v3-2", null])
    );
    let refused = failed(&harness, &format!("{second} --profile bosh jobs services"));
    assert!(
        refused
            .stderr
            .contains("only the profile `quarks` has services"),
        "{refused}"
    );
}

#[test]
fn what_has_no_equal_is_said() {
    let harness = small();
    edit(
        &harness,
        "manifest.yml",
        "name: shop\n",
        "name: shop\nfeatures: {use_dns_addresses: true, converge_variables: false}\n",
    );
    edit(
        &harness,
        "manifest.yml",
        "  vm_type: small",
        "  vm_type: small\n  persistent_disk: 1024\n  env: {bosh: {}}",
    );
    let shop = format!("{SMALL} --var password=x");
    assert_snapshot!("bosh_no_equal", harness.ok(&format!("{shop} validate")));
}

#[test]
fn files_have_what_jobs_render_shows() {
    if !has_ruby() {
        return;
    }
    let harness = shop().showing_secrets();
    let shop = quarks();
    let rendered = ok(
        &harness,
        &format!("{shop} render default/web/3 --json --show-sensitive"),
    );
    let file = &rendered.json()["instances"][0]["files"]["server/config/server.json"];
    let shown = ok(&harness, &format!("{shop} jobs render web/3 --json")).json();
    assert!(
        shown.to_string().contains(&file["content"].to_string()),
        "{shown}\n{file}"
    );
    // The unit is that of the instance.
    let shown = rendered.json().to_string();
    assert!(shown.contains("INSTANCE=3"), "{shown}");
}

#[test]
fn a_source_names_a_manifest() {
    if !has_ruby() {
        return;
    }
    let harness = named(SOURCE).showing_secrets();
    let all = instances(&harness, "");
    let shown: Vec<String> = all
        .iter()
        .map(|(address, it)| format!("{address} {} {}", it["instance_type"], it["zone"]))
        .collect();
    assert_eq!(
        shown,
        [
            "default/db/0 \"large\" \"z1\"",
            "default/web/0 \"small\" \"z1\"",
            "default/web/1 \"small\" \"z2\"",
            "default/web/2 \"small\" \"z1\"",
        ]
    );
    ok(&harness, "apply --auto-approve");
    let again = ok(&harness, "plan -q");
    assert!(again.stdout.starts_with("No changes."), "{again}");
    let shown = ok(&harness, "render default/web/0 --show-sensitive").stdout;
    assert!(shown.contains("A title"), "{shown}");
    assert!(shown.contains(".prod.example.com"), "{shown}");
}

#[test]
fn a_converted_manifest_plans_no_changes() {
    if !has_ruby() {
        return;
    }
    let harness = shop().showing_secrets();
    let shop = quarks();
    ok(&harness, &format!("{shop} apply --auto-approve"));
    let converted = ok(&harness, &format!("{shop} convert --to yaml"));
    assert!(converted.stderr.contains("in clear text"), "{converted}");
    harness.write("nstance.yaml", &converted.stdout);
    let again = ok(&harness, "-c nstance.yaml plan -q");
    assert!(again.stdout.starts_with("No changes."), "{again}");
}

#[test]
fn names_of_other_clouds_are_mapped() {
    if !has_ruby() {
        return;
    }
    let harness = named(AWS);
    assert_snapshot!("bosh_on_aws", ok(&harness, "--sim plan -q"));
    harness.edit("\"large\": \"m5.large\"", "\"huge\": \"m5.large\"");
    harness.edit("\"network\": {\"default\": \"main\"}", "\"network\": {}");
    harness.edit(", \"z2\": \"eu-west-1b\"", "");
    harness.edit(
        "\"stemcell\": {\"default\": \"ubuntu\"}",
        "\"stemcell\": {}",
    );
    assert_snapshot!("bosh_unmapped", failed(&harness, "--sim plan"));
}

#[test]
fn files_that_do_not_fit_are_exported() {
    if !has_ruby() {
        return;
    }
    let harness = named(AWS);
    // It can't be compressed.
    let mut state = 1_u64;
    let bulk: String = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}\n", state ^ (state >> 31))
    })
    .take(3_000)
    .collect();
    harness.write("releases/web/jobs/server/templates/bulk.txt", bulk);
    edit(
        &harness,
        "releases/web/jobs/server/spec",
        "templates:\n",
        "templates:\n  bulk.txt: data/bulk.txt\n  ip.erb: config/ip\n",
    );
    harness.write(
        "releases/web/jobs/server/templates/ip.erb",
        "<%= spec.networks.default.ip %> <%= spec.ip %>\n",
    );
    let applied = ok(&harness, "--sim apply --auto-approve");
    assert_snapshot!("bosh_exported", applied.stderr);
    let exported = |name: &str| {
        let file = format!(".nstance/shop/one/files/default/web/1/server/{name}");
        String::from_utf8(harness.read(&file)).unwrap()
    };
    assert_eq!(exported("data/bulk.txt").lines().count(), 3_000);
    let address = exported("config/ip");
    let (network, own) = address.trim().split_once(' ').unwrap();
    assert_eq!(network, own);
    assert!(own.parse::<std::net::Ipv4Addr>().is_ok(), "{address}");
    let again = ok(&harness, "--sim plan -q");
    assert!(again.stdout.contains("No changes."), "{again}");
}

#[test]
fn profiles_count_instances() {
    if !has_ruby() {
        return;
    }
    let harness = shop();
    assert_snapshot!("bosh_no_profile", failed(&harness, &format!("{SHOP} plan")));
    let web = |profile: &str| {
        let all = instances(&harness, &format!("{SHOP} --profile {profile}"));
        let zones = all
            .iter()
            .filter(|(address, _)| address.starts_with("default/web/"))
            .map(|(_, instance)| instance["zone"].as_str().unwrap().to_owned());
        zones.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(web("quarks"), "z1 z2 z1 z2");
    assert_eq!(web("bosh"), "z1 z2");
}

/// A change of the example that has errors.
type Case = (&'static str, fn(&Harness));

#[test]
fn errors_have_places() {
    if !has_ruby() {
        return;
    }
    let cases: [Case; 9] = [
        ("two groups become one", |harness| {
            edit(harness, "manifest.yml", "- name: db\n", "- name: wEb\n");
        }),
        ("names that are too long", |harness| {
            let long = "a-name-that-is-longer-than-any-id-may-be";
            edit(
                harness,
                "manifest.yml",
                "name: shop",
                &format!("name: {long}"),
            );
        }),
        ("invalid update block", |harness| {
            edit(
                harness,
                "manifest.yml",
                "max_in_flight: 1\n",
                "max_in_flight: many\n",
            );
        }),
        ("missing keys of the update block", |harness| {
            edit(harness, "manifest.yml", "  canaries: 1\n", "");
        }),
        ("a process without a program", |harness| {
            edit(
                harness,
                "releases/web/jobs/server/templates/bpm.yml.erb",
                "    executable: /var/vcap/packages/server/bin/server\n",
                "",
            );
        }),
        ("an invalid template of processes", |harness| {
            edit(
                harness,
                "releases/web/jobs/server/templates/bpm.yml.erb",
                "spec.index",
                "p('no.such')",
            );
        }),
        ("a misspelled variable", |harness| {
            edit(harness, "manifest.yml", "((title))", "((titel))");
        }),
        ("a missing template", |harness| {
            let template = "releases/web/jobs/server/templates/server.json.erb";
            std::fs::remove_file(harness.path(template)).unwrap();
        }),
        ("an invalid template", |harness| {
            edit(
                harness,
                "releases/db/jobs/postgres/templates/postgresql.conf.erb",
                "port =",
                "<%= p('no.such') %> =",
            );
        }),
    ];
    let mut shown = String::new();
    for (name, change) in cases {
        let harness = shop();
        change(&harness);
        let ended = failed(&harness, &format!("{} plan", quarks()));
        shown.push_str(&format!("# {name}\n{}\n", ended.stderr));
    }
    assert_snapshot!("bosh_errors", shown);
}

#[test]
fn keys_of_source_belong_to_one_program() {
    let mut shown = String::new();
    for (from, to) in [
        ("\"releases\": \"releases\", ", ""),
        (
            "\"profile\": \"bosh\"",
            "\"profile\": \"best\", \"group\": \"a\"",
        ),
        ("\"bosh\": \"manifest.yml\"", "\"yandex\": \"manifest.yml\""),
        (
            "\"bosh\": \"manifest.yml\"",
            "\"yandex\": \"a\", \"bosh\": \"b\"",
        ),
        ("\"bosh\": \"manifest.yml\", ", ""),
    ] {
        let harness = named(SOURCE);
        harness.edit(from, to);
        shown.push_str(&format!(
            "# {to}\n{}\n",
            failed(&harness, "validate").stderr
        ));
    }
    assert_snapshot!("bosh_source_keys", shown);
}

#[test]
fn a_manifest_in_a_folder_is_not_a_configuration() {
    let harness = shop();
    harness.write("folder/nstance.yaml", harness.read("manifest.yml"));
    assert_snapshot!("bosh_folder", failed(&harness, "-c folder plan"));
    assert_snapshot!(
        "bosh_is_a_file",
        failed(&harness, "-c folder --from bosh --releases releases plan")
    );
}

#[test]
fn errands_have_an_instance_while_they_run() {
    if !has_ruby() {
        return;
    }
    let harness = shop();
    let shop = quarks();
    ok(&harness, &format!("{shop} apply --auto-approve"));
    let listed = || ok(&harness, &format!("{shop} sim list")).stdout;
    assert!(!listed().contains("smoke-tests"));
    let ended = std::thread::scope(|scope| {
        let words = format!("{shop} jobs run-errand smoke-tests");
        let mut command = harness.command(&words);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let errand = scope.spawn(move || command.output().unwrap());
        assert!(harness.comes(|| listed().contains("smoke-tests/0  running")));
        ok(&harness, &format!("{shop} sim stop default/smoke-tests/0"));
        errand.join().unwrap()
    });
    assert!(ended.status.success(), "{ended:?}");
    assert!(!listed().contains("smoke-tests"));
    let late = failed(
        &harness,
        &format!("{shop} jobs run-errand smoke-tests --timeout 0s -q"),
    );
    assert!(late.stderr.contains("did not stop in time"), "{late}");
    assert!(!listed().contains("smoke-tests"));
    let again = ok(&harness, &format!("{shop} plan -q"));
    assert!(again.stdout.starts_with("No changes."), "{again}");
    assert_snapshot!(
        "bosh_no_errand",
        failed(&harness, &format!("{shop} jobs run-errand web"))
    );
}

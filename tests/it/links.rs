//! Links between groups: what is known while planning, and what apply does once addresses are known.
//!
//! In: groups with `provides` and `consumes` on the embedded cloud. Out: plans, userdata and exported
//! files through their lives. Must not: check how providers are found; `merge::links` does.

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::Harness;

/// A database, web servers that have its address, and a quorum whose members know each other.
const FLEET: &str = r##"{
  "cluster": {"id": "shop", "fqdn": "shop.example"},
  "shard": {"id": "one", "infra": {"provider": "sim", "region": "eu-1", "zone": "a"}},
  "templates": {"vm": {"kind": "srv", "arch": "amd64", "instance_type": "small"}},
  "groups": {"default": {
    "web": {
      "template": "vm", "size": 2, "consumes": {"db": {}},
      "userdata": "#!/bin/sh\n{{ range .Link.db.Instances }}# {{ .Name }} {{ .IP4 }}:{{ $.Link.db.Properties.port }}\n{{ end }}"
    },
    "db": {
      "template": "vm", "size": 1, "vars": {"port": 5432},
      "provides": {"db": {"properties": {"port": "{{ .Vars.port }}"}}}
    },
    "quorum": {
      "template": "vm", "size": 2, "provides": {"peers": {}}, "consumes": {"peers": {}},
      "files": {"peers": {"kind": "string", "template": "{{ range .Link.peers.Instances }}{{ .Address }} {{ .IP4 }}\n{{ end }}"}}
    }
  }}
}"##;

fn record(harness: &Harness, address: &str) -> Value {
    let document = harness.json("show --json");
    let records = document["instances"].as_array().unwrap().iter();
    let mut records = records.filter(|record| record["address"] == address);
    records.next().unwrap().clone()
}

fn ip4(harness: &Harness, address: &str) -> String {
    record(harness, address)["ip4"].as_str().unwrap().to_owned()
}

fn userdata(harness: &Harness, address: &str) -> String {
    let shown = harness.json(&format!("show {address} --json"));
    shown["instances"][0]["userdata"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn peers(harness: &Harness, slot: u32) -> String {
    let path = format!(".nstance/shop/one/files/default/quorum/{slot}/peers");
    String::from_utf8(harness.read(&path)).unwrap()
}

/// The file that every member of the quorum must have.
fn all_peers(harness: &Harness, size: u32) -> String {
    let line = |slot| {
        let ip4 = ip4(harness, &format!("default/quorum/{slot}"));
        format!("shop-quorum-{slot}.default.one.shop.example {ip4}\n")
    };
    (0..size).map(line).collect()
}

/// The actions of each address that isn't left as it is.
fn actions(plan: &Value) -> Vec<String> {
    let changes = plan["resource_changes"].as_array().unwrap().iter();
    let actions = changes.map(|change| {
        let actions = change["change"]["actions"].as_array().unwrap();
        let actions: Vec<&str> = actions.iter().filter_map(Value::as_str).collect();
        format!(
            "{} {}",
            change["address"].as_str().unwrap(),
            actions.join("+")
        )
    });
    actions.filter(|shown| !shown.ends_with("no-op")).collect()
}

#[test]
fn texts_get_addresses_once_they_are_known() {
    let harness = Harness::with(FLEET);
    assert_snapshot!("new_fleet", harness.ok("plan"));
    let plan = harness.json("plan --json");
    let web = plan["resource_changes"].as_array().unwrap().iter();
    let web = web.filter(|change| change["name"] == "default/web");
    for change in web {
        assert_eq!(change["change"]["after_unknown"]["userdata"], true);
    }
    harness.ok("apply --auto-approve");
    let db = ip4(&harness, "default/db/0");
    let text = format!("#!/bin/sh\n# db-0 {db}:5432\n");
    assert_eq!(userdata(&harness, "default/web/0"), text);
    assert_eq!(userdata(&harness, "default/web/1"), text);
    for slot in 0..2 {
        assert_eq!(peers(&harness, slot), all_peers(&harness, 2));
    }
    harness.ok("plan --detailed-exitcode");
}

#[test]
fn a_saved_plan_has_what_late_texts_need() {
    let harness = Harness::with(FLEET);
    harness.ok("plan --out fleet.plan");
    // What is applied is the plan, not the configuration.
    harness.edit("\"port\": 5432", "\"port\": 3306");
    harness.ok("apply fleet.plan");
    let db = ip4(&harness, "default/db/0");
    let text = format!("#!/bin/sh\n# db-0 {db}:5432\n");
    assert_eq!(userdata(&harness, "default/web/1"), text);
}

#[test]
fn a_neighbour_that_grows_replaces_no_fleet() {
    let harness = Harness::applied(FLEET);
    harness.edit("\"size\": 1", "\"size\": 2");
    assert_snapshot!("neighbour_grows", harness.ok("plan"));
    harness.ok("apply --auto-approve");
    let before = record(&harness, "default/web/0");
    assert_eq!(actions(&harness.json("plan --json")), [""; 0]);
    harness.ok("apply --auto-approve --allow-replace web");
    let after = record(&harness, "default/web/0");
    assert_ne!(before["provider_id"], after["provider_id"]);
    let (one, two) = (ip4(&harness, "default/db/0"), ip4(&harness, "default/db/1"));
    let text = format!("#!/bin/sh\n# db-0 {one}:5432\n# db-1 {two}:5432\n");
    assert_eq!(userdata(&harness, "default/web/0"), text);
    harness.ok("plan --detailed-exitcode");
}

#[test]
fn one_apply_replaces_provider_and_consumers() {
    let harness = Harness::applied(FLEET);
    let plan = "--replace default/db/0 --allow-replace web";
    harness.ok(&format!("apply --auto-approve {plan}"));
    let db = ip4(&harness, "default/db/0");
    let text = format!("#!/bin/sh\n# db-0 {db}:5432\n");
    assert_eq!(userdata(&harness, "default/web/0"), text);
    assert_eq!(userdata(&harness, "default/web/1"), text);
    harness.ok("plan --detailed-exitcode");
}

#[test]
fn exported_files_follow_in_place() {
    let harness = Harness::applied(FLEET);
    let before = record(&harness, "default/quorum/0");
    harness.edit("\"size\": 2, \"provides\"", "\"size\": 3, \"provides\"");
    assert_snapshot!("quorum_grows", harness.ok("plan"));
    harness.ok("apply --auto-approve");
    let after = record(&harness, "default/quorum/0");
    assert_eq!(before["provider_id"], after["provider_id"]);
    for slot in 0..3 {
        assert_eq!(peers(&harness, slot), all_peers(&harness, 3));
    }
    harness.ok("plan --detailed-exitcode");
    // A replaced member has another address, which the others learn.
    harness.ok("apply --auto-approve --replace default/quorum/1");
    for slot in 0..3 {
        assert_eq!(peers(&harness, slot), all_peers(&harness, 3));
    }
    harness.ok("plan --detailed-exitcode");
}

#[test]
fn properties_are_known_while_planning() {
    let harness = Harness::applied(FLEET);
    harness.edit("\"port\": 5432", "\"port\": 3306");
    assert_snapshot!("property_changes", harness.ok("plan"));
}

/// A fixed address needs no order, so groups can read each other's.
#[test]
fn fixed_addresses_are_known_while_planning() {
    let group = |own: &str, other: &str, address: &str| {
        format!(
            r#""{own}": {{
              "template": "vm", "size": 1, "provides": {{"{own}": {{}}}}, "consumes": {{"{other}": {{}}}},
              "args": {{"PrivateIpAddress": "{address}"}},
              "userdata": "{{{{ range .Link.{other}.Instances }}}}{{{{ .IP4 }}}}{{{{ end }}}}"
            }}"#
        )
    };
    let (east, west) = (
        group("east", "west", "10.0.0.1"),
        group("west", "east", "10.0.0.2"),
    );
    let start = FLEET.find("\"groups\"").unwrap();
    let config = format!(
        "{}\"groups\": {{\"default\": {{{east}, {west}}}}}}}",
        &FLEET[..start]
    );
    let harness = Harness::with(&config);
    let plan = harness.json("plan --json");
    let after = |index: usize| &plan["resource_changes"][index]["change"]["after"]["userdata"];
    assert_eq!([after(0), after(1)], ["10.0.0.2", "10.0.0.1"]);
    harness.ok("apply --auto-approve");
    harness.ok("plan --detailed-exitcode");
}

/// Zones are numbered one after the other, so another number of replicas renumbers all but the first.
#[test]
fn replicas_renumber_and_keep_their_instances() {
    let config = FLEET.replace(
        "\"size\": 2, \"provides\"",
        "\"replicas\": 2, \"zones\": [\"a\", \"b\"], \"provides\"",
    );
    let harness = Harness::applied(&config);
    let index = |address: &str| record(&harness, address)["index"].clone();
    let all: Vec<Value> = (0..4)
        .map(|slot| index(&format!("default/quorum/{slot}")))
        .collect();
    assert_eq!(all, [0, 2, 1, 3]);
    let before = harness.live();
    harness.edit("\"replicas\": 2", "\"replicas\": 3");
    assert_snapshot!("renumbered", harness.ok("plan"));
    harness.ok("apply --auto-approve");
    assert!(before.is_subset(&harness.live()));
    let all: Vec<Value> = (0..6)
        .map(|slot| index(&format!("default/quorum/{slot}")))
        .collect();
    assert_eq!(all, [0, 3, 1, 4, 2, 5]);
    harness.ok("plan --detailed-exitcode");
}

#[test]
fn a_target_includes_the_groups_that_it_links_to() {
    let harness = Harness::with(FLEET);
    harness.ok("apply --auto-approve --target default/web");
    let db = ip4(&harness, "default/db/0");
    let text = format!("#!/bin/sh\n# db-0 {db}:5432\n");
    assert_eq!(userdata(&harness, "default/web/0"), text);
}

/// Without the database there is no address, so the web servers aren't tried.
#[test]
fn consumers_of_a_failed_provider_are_not_tried() {
    let config = FLEET.replace(
        "\"region\"",
        "\"options\": {\"capacity\": {\"huge\": 0}}, \"region\"",
    );
    let config = config.replace("\"size\": 1,", "\"size\": 1, \"instance_type\": \"huge\",");
    let harness = Harness::with(&config);
    let ended = harness.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("2 changes were not tried"),
        "{}",
        ended.stderr
    );
    assert_eq!(harness.live().len(), 2);
}

/// A text that names no address can't be known to wait for one, unless it is exported.
#[test]
fn whole_links_are_printed_once_their_addresses_are_known() {
    let whole = "{{ printf `%v` .Link.db.Instances }}";
    let userdata = "{{ range .Link.db.Instances }}# {{ .Name }} {{ .IP4 }}";
    let printed = format!("{whole}{{{{ range .Link.db.Instances }}}}");
    let harness = Harness::with(&FLEET.replace(userdata, &printed));
    let refused = harness.run("apply --auto-approve");
    assert_eq!(refused.code, Some(1));
    assert_snapshot!("whole_link", refused.stderr);
    assert!(harness.live().is_empty());

    let config = FLEET.replace(
        "\"peers\": {}}, \"consumes\": {",
        "\"peers\": {}}, \"consumes\": {\"db\": {}, ",
    );
    let config = config.replace(
        "{{ range .Link.peers.Instances }}",
        &format!("{whole}{{{{ range .Link.peers.Instances }}}}"),
    );
    let harness = Harness::applied(&config);
    let db = ip4(&harness, "default/db/0");
    assert!(peers(&harness, 0).contains(&db), "{}", peers(&harness, 0));
    harness.ok("plan --detailed-exitcode");
}

#[test]
fn a_provider_that_comes_or_goes_replaces_no_fleet() {
    let optional = FLEET.replace("{\"db\": {}},", "{\"db\": {\"optional\": true}},");
    let optional = optional.replace(
        "{{ range .Link.db.Instances }}",
        "{{ with .Link.db }}{{ range .Instances }}",
    );
    let optional = optional.replace(
        "{{ $.Link.db.Properties.port }}\\n{{ end }}",
        "{{ $.Link.db.Properties.port }}\\n{{ end }}{{ else }}none{{ end }}",
    );
    let harness = Harness::applied(&optional);
    let from = optional.find("    \"db\": {\n").unwrap();
    let to = optional.find("    \"quorum\"").unwrap();
    let without = format!("{}{}", &optional[..from], &optional[to..]);
    harness.configure(&without);
    let plan = harness.ok("plan");
    assert!(
        plan.stdout.contains("it has 0 instances instead of 1"),
        "{plan}"
    );
    assert_eq!(
        actions(&harness.json("plan --json")),
        ["default/db/0 delete"]
    );
    harness.ok("apply --auto-approve --allow-delete db --allow-replace web");
    assert_eq!(userdata(&harness, "default/web/0"), "#!/bin/sh\nnone");
    harness.configure(&optional);
    let plan = harness.ok("plan");
    assert!(
        plan.stdout.contains("it has 1 instances instead of 0"),
        "{plan}"
    );
    assert_eq!(
        actions(&harness.json("plan --json")),
        ["default/db/0 create"]
    );
}

/// The last good configuration is rendered with the addresses that the provider has by then.
#[test]
fn a_rollback_reads_the_new_addresses() {
    let update = "\"args\": {\"ImageId\": \"good\"}, \"update\": {\"on_failure\": \"rollback\", \"order\": \"delete_first\", \"health\": {\"check\": \"tcp\", \"port\": 80, \"deadline\": \"1s\", \"interval\": \"1s\"}}, \"consumes\": {\"db\": {}},";
    let config = FLEET.replace("\"consumes\": {\"db\": {}},", update);
    let config = config.replace(
        "\"region\"",
        "\"options\": {\"unhealthy\": {\"bad\": 1.0}}, \"region\"",
    );
    let harness = Harness::applied(&config);
    harness.edit("\"size\": 1", "\"size\": 2");
    harness.edit("\"good\"", "\"bad\"");
    let ended = harness.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(
        !ended.stderr.contains("can't be rolled back fully"),
        "{ended}"
    );
    assert!(
        ended
            .stderr
            .contains("rolled back to its last good configuration"),
        "{ended}"
    );
    let (one, two) = (ip4(&harness, "default/db/0"), ip4(&harness, "default/db/1"));
    let text = format!("#!/bin/sh\n# db-0 {one}:5432\n# db-1 {two}:5432\n");
    assert_eq!(userdata(&harness, "default/web/0"), text);
    let record = record(&harness, "default/web/0");
    assert!(record.to_string().contains("good"), "{record}");
}

#[test]
fn sensitive_properties_stay_masked() {
    let config = FLEET.replace(
        "\"templates\"",
        "\"variables\": {\"password\": {\"type\": \"string\", \"sensitive\": true, \"default\": \"hunter2\"}}, \"templates\"",
    );
    let config = config.replace(
        "\"vars\": {\"port\": 5432}",
        "\"vars\": {\"port\": \"${var.password}\"}",
    );
    let harness = Harness::with(&config);
    let plan = harness.ok("plan").to_string();
    assert!(!plan.contains("hunter2"), "{plan}");
    harness.ok("apply --auto-approve");
    // The record itself says what is sensitive, and has no digest of it.
    let start = config.find("\"variables\"").unwrap();
    harness.configure(&format!("{}\"groups\": {{}}}}", &config[..start]));
    let shown = harness.ok("show default/web/0").to_string();
    assert!(shown.contains("(sensitive line)"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    let states = harness.files();
    let states = states.iter().filter(|name| name.ends_with("one.db"));
    for state in states {
        let bytes = harness.read(state);
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"));
        assert!(String::from_utf8_lossy(&bytes).contains("\"properties\":\"\""));
    }
}

#[test]
fn dns_records_have_the_recorded_addresses() {
    let harness = Harness::with(FLEET);
    let hosts = harness.ok("jobs dns --format hosts").stdout;
    assert!(hosts.contains("# shop-web-1.default.one.shop.example (address not known yet)\n"));
    harness.ok("apply --auto-approve");
    let (db, web) = (
        ip4(&harness, "default/db/0"),
        ip4(&harness, "default/web/1"),
    );
    let hosts = harness.ok("jobs dns --format hosts").stdout;
    for line in [
        format!("{db} shop-db.default.one.shop.example\n"),
        format!("{db} shop-db-0.default.one.shop.example\n"),
        format!("{web} shop-web.default.one.shop.example\n"),
        format!("{web} shop-web-1.default.one.shop.example\n"),
    ] {
        assert!(hosts.contains(&line), "{line}{hosts}");
    }
    let zone = harness.ok("jobs dns").stdout;
    assert!(zone.contains(&format!("shop-db.default.one.shop.example. IN A {db}\n")));
    let document = harness.json("jobs dns --json");
    assert_eq!(document["records"][0]["group"], "default/web");
}

#[test]
fn links_are_blocks_in_hcl() {
    let harness = Harness::empty();
    harness.write(
        "nstance.hcl",
        r#"
cluster { id = "x" }
shard {
  id = "a"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
group "db" {
  size = 1
  vars = { port = 1 }
  provides "db" { properties = { port = "{{ .Vars.port }}" } }
}
group "web" {
  size     = 1
  userdata = "{{ .Link.db.Properties.port }}{{ .Link.db.Properties.prot }}."
  consumes "db" { from = "db" }
}
"#,
    );
    let planned = harness.ok("plan");
    assert!(planned.stdout.contains("            1.\n"), "{planned}");
    assert_snapshot!("unknown_property", planned.stderr);
}

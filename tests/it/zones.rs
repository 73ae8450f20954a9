//! Groups in several zones: which place each slot has, and what moves it.
//!
//! In: a native group with zones and tags on the embedded cloud. Out: zones, numbers and tags of its
//! instances through their lives. Must not: check the deal itself; `plan::places` does.

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::Harness;

/// Three instances in two zones; their userdata says all that they know of their places.
const FLEET: &str = r##"{
  "cluster": {"id": "test"},
  "shard": {"id": "one", "infra": {"provider": "sim", "region": "eu-1", "zone": "eu-1a"}},
  "groups": {"default": {"kafka": {
    "kind": "kaf", "arch": "amd64", "instance_type": "small", "size": 3,
    "zones": [{"zone": "eu-1a", "tags": ["red", "green"]}, {"zone": "eu-1b", "tags": ["blue", "grey"]}],
    "group_labels": {"env": "prod"},
    "labels": {"role": "broker"},
    "vars": {"ip_red": "10.0.0.1", "ip_green": "10.0.0.2", "ip_blue": "10.0.1.1", "ip_grey": "10.0.1.2"},
    "args": {"ImageId": "debian-13", "PrivateIpAddress": "{{ index .Vars (printf \"ip_%s\" .Instance.Tag) }}"},
    "userdata": "#!/bin/sh\n# {{ .Instance.Number }}: {{ .Instance.NumberInZone }} of {{ .Instance.Zone }}, {{ .Instance.Tag }}, {{ .Instance.ShortID }}\n# {{ .Group.ID }} {{ .Group.Labels.env }} {{ .Instance.Labels.role }}\n"
  }}}
}"##;

/// The fleet, applied.
fn fleet() -> Harness {
    Harness::applied(FLEET)
}

/// `0=eu-1a/1/red`, for each recorded slot.
fn places(harness: &Harness) -> String {
    let document = harness.json("show --json");
    let records = document["instances"].as_array().unwrap().iter();
    let place = |record: &Value| {
        let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        let slot = text("address");
        let (_, slot) = slot.rsplit_once('/').unwrap();
        let tag = text("tag");
        let tag = if tag.is_empty() {
            tag
        } else {
            format!("/{tag}")
        };
        format!("{slot}={}/{}{tag}", text("zone"), record["number_in_zone"])
    };
    records.map(place).collect::<Vec<_>>().join(" ")
}

/// `+3`, `-1` or `±1`, for each slot that a plan creates, deletes or replaces; `~1` for another
/// change.
fn changes(harness: &Harness) -> String {
    let plan = harness.json("plan --json");
    let changes = plan["resource_changes"].as_array().unwrap().iter();
    let shown = changes.filter_map(|change| {
        let actions = change["change"]["actions"].as_array().unwrap();
        let has = |action: &str| actions.iter().any(|it| it == action);
        let sign = match (has("create"), has("delete"), has("no-op")) {
            (true, true, _) => "±",
            (true, false, _) => "+",
            (false, true, _) => "-",
            (false, false, true) => return None,
            (false, false, false) => "~",
        };
        Some(format!("{sign}{}", change["index"]))
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The cloud's id of the instance at an address.
fn provider_id(harness: &Harness, address: &str) -> String {
    let live = harness.live();
    let [_, _, id] = live.iter().find(|[own, ..]| own == address).unwrap();
    id.clone()
}

#[test]
fn instances_know_their_places() {
    let harness = Harness::with(FLEET);
    assert_snapshot!("plan", harness.ok("plan"));
    harness.ok("apply --auto-approve");
    assert_eq!(
        places(&harness),
        "0=eu-1a/1/red 1=eu-1b/1/blue 2=eu-1a/2/green"
    );
    assert_snapshot!("shown", harness.ok("state show default/kafka/2"));
    let shown = harness.json("show --json");
    let addresses = shown["instances"].as_array().unwrap().iter();
    let addresses: Vec<_> = addresses.map(|it| &it["ip4"]).collect();
    assert_eq!(addresses, ["10.0.0.1", "10.0.1.1", "10.0.0.2"]);
}

#[test]
fn slots_keep_their_places_when_the_group_grows_and_shrinks() {
    let harness = fleet();
    harness.edit("\"size\": 3", "\"size\": 4");
    // The userdata of the others has numbers and ids that must not change.
    assert_eq!(changes(&harness), "+3");
    harness.ok("apply --auto-approve");
    let all = "0=eu-1a/1/red 1=eu-1b/1/blue 2=eu-1a/2/green 3=eu-1b/2/grey";
    assert_eq!(places(&harness), all);
    harness.edit("\"size\": 4", "\"size\": 1");
    assert_eq!(changes(&harness), "-1 -2 -3");
    harness.ok("apply --auto-approve");
    assert_eq!(places(&harness), "0=eu-1a/1/red");
    harness.edit("\"size\": 1", "\"size\": 4");
    harness.ok("apply --auto-approve");
    assert_eq!(places(&harness), all);
    assert_eq!(harness.agrees(""), 4);
}

#[test]
fn a_lost_instance_comes_back_to_its_place() {
    let harness = fleet();
    let userdata = |harness: &Harness| {
        let shown = harness.json("state show --json default/kafka/0");
        shown["userdata"].clone()
    };
    let before = userdata(&harness);
    assert!(before.is_string(), "{before}");
    harness.ok(&format!(
        "sim delete {}",
        provider_id(&harness, "default/kafka/0")
    ));
    assert_eq!(changes(&harness), "+0");
    harness.ok("apply --auto-approve");
    assert_eq!(
        places(&harness),
        "0=eu-1a/1/red 1=eu-1b/1/blue 2=eu-1a/2/green"
    );
    assert_eq!(userdata(&harness), before);
    // A hole whose record is gone, too, is filled with what is free.
    let id = provider_id(&harness, "default/kafka/0");
    harness.ok("state rm default/kafka/0");
    harness.ok(&format!("sim delete {id}"));
    assert_eq!(changes(&harness), "+0");
    harness.ok("apply --auto-approve");
    assert_eq!(
        places(&harness),
        "0=eu-1a/1/red 1=eu-1b/1/blue 2=eu-1a/2/green"
    );
}

#[test]
fn a_removed_tag_replaces_its_instance() {
    let harness = fleet();
    harness.edit("[\"blue\", \"grey\"]", "[\"grey\", \"blue\"]");
    assert_eq!(changes(&harness), "", "another order");
    harness.edit("[\"grey\", \"blue\"]", "[\"grey\"]");
    assert_eq!(changes(&harness), "±1");
    assert_snapshot!("tag_removed", harness.ok("plan"));
    harness.ok("apply --auto-approve");
    assert_eq!(
        places(&harness),
        "0=eu-1a/1/red 1=eu-1b/1/grey 2=eu-1a/2/green"
    );
    // With even zones, the first tags are in use.
    harness.edit("[\"grey\"]", "[\"blue\", \"grey\"]");
    assert_eq!(changes(&harness), "");
    harness.edit("\"zones\"", "\"rebalance\": true, \"zones\"");
    assert_eq!(changes(&harness), "±1");
    assert_eq!(harness.agrees(""), 3);
}

#[test]
fn a_removed_zone_moves_its_instances() {
    let harness = fleet();
    let other = ", {\"zone\": \"eu-1b\", \"tags\": [\"blue\", \"grey\"]}";
    harness.edit(other, "");
    harness.edit("\"red\", \"green\"", "\"red\", \"green\", \"blue\"");
    assert_eq!(changes(&harness), "±1");
    assert_snapshot!("zone_removed", harness.ok("plan"));
    harness.ok("apply --auto-approve");
    assert_eq!(
        places(&harness),
        "0=eu-1a/1/red 1=eu-1a/3/blue 2=eu-1a/2/green"
    );
    assert_eq!(harness.agrees(""), 3);
}

#[test]
fn a_further_zone_moves_instances_only_to_be_even() {
    let harness = Harness::with(FLEET);
    harness.edit("\"ip_red\"", "\"ip_cyan\": \"10.0.2.1\", \"ip_red\"");
    harness.ok("apply --auto-approve");
    let third = "{\"zone\": \"eu-1c\", \"tags\": [\"cyan\"]}";
    harness.edit("\"grey\"]}]", &format!("\"grey\"]}}, {third}]"));
    assert_eq!(changes(&harness), "");
    harness.edit("\"zones\"", "\"rebalance\": true, \"zones\"");
    assert_eq!(changes(&harness), "±2");
    assert_snapshot!("evened_out", harness.ok("plan"));
    harness.ok("apply --auto-approve");
    assert_eq!(
        places(&harness),
        "0=eu-1a/1/red 1=eu-1b/1/blue 2=eu-1c/1/cyan"
    );
    assert_eq!(changes(&harness), "");
    assert_eq!(harness.agrees(""), 3);
}

#[test]
fn a_moved_slot_keeps_its_place() {
    let harness = fleet();
    harness.ok("state mv default/kafka/1 default/kafka/5");
    assert_eq!(
        places(&harness),
        "0=eu-1a/1/red 2=eu-1a/2/green 5=eu-1b/1/blue"
    );
    harness.ok("apply --auto-approve");
    assert_eq!(
        places(&harness),
        "0=eu-1a/1/red 2=eu-1a/2/green 5=eu-1b/1/blue"
    );
    // The hole is the next to be filled.
    harness.edit("\"size\": 3", "\"size\": 4");
    assert_eq!(changes(&harness), "+1");
    harness.ok("apply --auto-approve");
    let all = "0=eu-1a/1/red 1=eu-1b/2/grey 2=eu-1a/2/green 5=eu-1b/1/blue";
    assert_eq!(places(&harness), all);
    // A renamed group keeps all places.
    harness.edit("\"kafka\": {", "\"brokers\": {");
    harness.ok("state mv default/kafka default/brokers");
    harness.ok("apply --auto-approve");
    assert_eq!(places(&harness), all);
    assert_eq!(harness.agrees(""), 4);
}

#[test]
fn a_slot_follows_its_tag_to_another_zone() {
    for (rebalance, expected) in [
        ("", "0=eu-1b/1/red 1=eu-1a/1/blue 2=eu-1b/2/green"),
        (
            "\"rebalance\": true, ",
            "0=eu-1b/1/red 1=eu-1a/1/blue 2=eu-1a/2/grey",
        ),
    ] {
        let harness = fleet();
        harness.edit("\"red\", \"green\"", "\"x\"");
        harness.edit("\"blue\", \"grey\"", "\"red\", \"green\"");
        harness.edit("\"x\"", "\"blue\", \"grey\"");
        harness.edit("\"zones\"", &format!("{rebalance}\"zones\""));
        // With their tags they keep their addresses, which another one couldn't have before.
        assert_eq!(changes(&harness), "±0 ±1 ±2");
        harness.ok("apply --auto-approve");
        assert_eq!(places(&harness), expected);
        assert_eq!(harness.agrees(""), 3);
    }
}

#[test]
fn a_group_gets_zones_and_tags_later() {
    let harness = Harness::with(FLEET);
    let zones = "\"zones\": [{\"zone\": \"eu-1a\", \"tags\": [\"red\", \"green\"]}, {\"zone\": \"eu-1b\", \"tags\": [\"blue\", \"grey\"]}],";
    let address = "\"{{ index .Vars (printf \\\"ip_%s\\\" .Instance.Tag) }}\"";
    harness.edit(zones, "");
    harness.edit(&format!(", \"PrivateIpAddress\": {address}"), "");
    harness.edit("{{ .Instance.Labels.role }}", "");
    harness.edit(", {{ .Instance.Tag }}, {{ .Instance.ShortID }}", "");
    harness.ok("apply --auto-approve");
    assert_eq!(places(&harness), "0=eu-1a/1 1=eu-1a/2 2=eu-1a/3");
    // The same zone, listed.
    harness.edit("\"size\": 3,", "\"size\": 3, \"zones\": [\"eu-1a\"],");
    assert_eq!(changes(&harness), "");
    harness.edit("[\"eu-1a\"]", "[\"eu-1a\", {\"zone\": \"eu-1b\"}]");
    assert_eq!(changes(&harness), "");
    harness.edit(
        "[\"eu-1a\", {\"zone\": \"eu-1b\"}]",
        "[{\"zone\": \"eu-1a\", \"tags\": [\"x\", \"y\", \"z\"]}]",
    );
    assert_eq!(changes(&harness), "±0 ±1 ±2");
    harness.ok("apply --auto-approve");
    assert_eq!(places(&harness), "0=eu-1a/1/x 1=eu-1a/2/y 2=eu-1a/3/z");
}

#[test]
fn a_placeholder_text_reads_the_same_places() {
    let harness = fleet();
    let before = harness.json("render --json");
    for (from, to) in [
        (
            "\"kind\": \"kaf\"",
            "\"texts\": \"placeholders\", \"kind\": \"kaf\"",
        ),
        (
            "{{ index .Vars (printf \\\"ip_%s\\\" .Instance.Tag) }}",
            "{ip_{instance.tag}}",
        ),
        (
            "{{ .Instance.Number }}: {{ .Instance.NumberInZone }} of {{ .Instance.Zone }}",
            "{instance.index}: {instance.index_in_zone} of {instance.zone_id}",
        ),
        (
            "{{ .Instance.Tag }}, {{ .Instance.ShortID }}",
            "{instance.tag}, {instance.short_id}",
        ),
        (
            "{{ .Group.ID }} {{ .Group.Labels.env }}",
            "{instance_group.id} {instance_group.labels.env}",
        ),
        ("{{ .Instance.Labels.role }}", "{instance.labels.role}"),
    ] {
        harness.edit(from, to);
    }
    // The variables are no part of what instances are.
    assert_eq!(changes(&harness), "~0 ~1 ~2");
    let texts = |document: &Value| {
        let instances = document["instances"].as_array().unwrap().iter();
        let text = |it: &Value| {
            [
                it["userdata"].clone(),
                it["args"].clone(),
                it["tags"]["role"].clone(),
            ]
        };
        instances.map(text).collect::<Vec<_>>()
    };
    assert_eq!(texts(&harness.json("render --json")), texts(&before));
}

#[test]
fn a_change_acts_at_least_as_the_policy_says() {
    let harness = fleet();
    let labels = "\"labels\": {\"role\"";
    harness.edit(labels, "\"labels\": {\"team\": \"a\", \"role\"");
    assert_eq!(changes(&harness), "~0 ~1 ~2");
    let paths = |harness: &Harness| {
        let plan = harness.json("plan --json");
        plan["resource_changes"][0]["change"]["restart_paths"].clone()
    };
    assert!(paths(&harness).as_array().is_none_or(Vec::is_empty));
    harness.edit(
        "\"kind\": \"kaf\"",
        "\"update\": {\"minimal_action\": \"restart\"}, \"kind\": \"kaf\"",
    );
    assert_eq!(changes(&harness), "~0 ~1 ~2");
    assert!(
        paths(&harness)
            .as_array()
            .is_some_and(|paths| !paths.is_empty())
    );
    harness.edit(
        "\"minimal_action\": \"restart\"",
        "\"minimal_action\": \"replace\"",
    );
    assert_eq!(changes(&harness), "±0 ±1 ±2");
    // It applies to what changes only.
    harness.edit("\"team\": \"a\", ", "");
    assert_eq!(changes(&harness), "");
}

#[test]
fn a_path_without_a_value_is_an_error() {
    let harness = fleet();
    let ended = harness.run("explain default/kafka/0.args.nope");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended.stderr);
}

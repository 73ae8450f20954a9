//! Userdata in layers: configuration, rendering, plans, errors.

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Ended, Harness};

const LAYERS: &str = include_str!("data/layers.yaml");

fn layers() -> Harness {
    let harness = Harness::empty();
    harness.write("nstance.yaml", LAYERS);
    harness
}

fn edited(from: &str, to: &str) -> Harness {
    let harness = layers();
    edit(&harness, from, to);
    harness
}

fn edit(harness: &Harness, from: &str, to: &str) {
    let config = String::from_utf8(harness.read("nstance.yaml")).unwrap();
    assert_eq!(config.matches(from).count(), 1, "`{from}` stands once");
    harness.write("nstance.yaml", config.replacen(from, to, 1));
}

/// The userdata that an instance of a group gets.
fn userdata(harness: &Harness, address: &str) -> String {
    let document = harness.json(&format!("render {address} --userdata --json"));
    let userdata = document["instances"][0]["userdata"].as_str();
    userdata.unwrap().to_owned()
}

#[test]
fn layers_join_by_their_mode() {
    let harness = layers();
    harness.ok("validate");
    assert_snapshot!(harness.ok("render default/web/1 --userdata"));
    assert_snapshot!(harness.ok("render default/scripts --userdata"));
    // As the machine would merge them: the group's packages replace the others.
    assert_snapshot!(harness.ok("render default/cloud --userdata"));
    // `replace` is the default: nothing of the others is left.
    assert_eq!(
        userdata(&harness, "default/alone"),
        "#!/bin/sh\necho alone\n"
    );
}

#[test]
fn every_value_has_its_origin() {
    let harness = layers();
    let told = harness.ok("render default/web/1 --userdata --explain");
    assert_snapshot!(told);
    let same = harness.ok("explain default/web/1.userdata");
    // The clock goes on, and with it the ids.
    assert_eq!(same.stdout.lines().count(), told.stdout.lines().count());
    assert_snapshot!(harness.ok("explain default/scripts/0.userdata"));
    let document = harness.json("render default/web/0 --userdata --explain --json");
    let explained = &document["instances"][0]["explanation"];
    let value = |path: &str| {
        let mut values = explained["values"].as_array().unwrap().iter();
        values.find(|value| value["path"] == path).unwrap().clone()
    };
    assert_eq!(value("packages[0]")["origin"]["layer"], "defaults");
    assert_eq!(value("packages[0]")["origin"]["line"], 2);
    assert_eq!(value("users[0].groups[0]")["origin"]["layer"], "group");
    let place = value("write_files[0].content")["origin"]["written_at"].clone();
    let line = LAYERS
        .lines()
        .position(|line| line.contains("{{ .Vars.ROLE }}"));
    let expected = format!("nstance.yaml:{}:", line.unwrap() + 1);
    assert!(place.as_str().unwrap().starts_with(&expected), "{place}");
    let shares = explained["shares"].as_object().unwrap();
    let total: u64 = shares.values().filter_map(Value::as_u64).sum();
    assert_eq!(
        Some(total),
        document["instances"][0]["size"]["bytes"].as_u64()
    );
}

#[test]
fn what_has_no_userdata_of_its_own_is_explained_too() {
    let harness = Harness::with(
        r##"{
  "cluster": { "id": "test" },
  "shard": { "id": "one", "infra": { "provider": "sim", "region": "r", "zone": "z" } },
  "groups": { "default": {
    "files": { "instance_type": "small", "files": { "motd": { "kind": "string", "template": "Hi.\n", "deliver": "userdata", "path": "/etc/motd" } } },
    "none": { "instance_type": "small" },
    "plain": { "instance_type": "small", "userdata": "#cloud-config\n# a comment\ntimezone: UTC\n" },
  } },
}"##,
    );
    assert_snapshot!(harness.ok("render --userdata --explain"));
    assert_eq!(
        userdata(&harness, "default/plain/0"),
        "#cloud-config\n# a comment\ntimezone: UTC\n"
    );
}

#[test]
fn only_addresses_with_userdata_are_explained() {
    let harness = layers();
    for words in [
        "explain default/web/0",
        "explain default/web/0.args",
        "explain .userdata",
        "explain",
        "explain --vars default/web/0.userdata",
    ] {
        assert_eq!(harness.run(words).code, Some(1), "{words}");
    }
    assert_snapshot!(harness.run("explain default/web/0.args").stderr);
    assert_snapshot!(harness.run("explain default/nope.userdata").stderr);
}

/// A change of the configuration, and how the plan shows it.
fn changed(from: &str, to: &str, address: &str) -> Ended {
    let harness = layers();
    harness.ok("apply --auto-approve");
    edit(&harness, from, to);
    harness.ok(&format!("plan --target {address}"))
}

#[test]
fn a_plan_shows_parts() {
    assert_snapshot!(changed(
        "packages: [curl, chrony]",
        "packages: [curl, jq]",
        "default/web/0"
    ));
    assert_snapshot!(changed(
        "echo hi",
        "echo hello\n              echo more",
        "default/scripts"
    ));
    assert_snapshot!(changed(
        "            filename: hi.sh\n",
        "            filename: hello.sh\n",
        "default/scripts"
    ));
    let harness = layers();
    assert_snapshot!(harness.ok("plan --target default/scripts"));
}

#[test]
fn packed_userdata_is_opened() {
    let packed = |text: &str| {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(text)
    };
    let config = |text: &str| {
        format!(
            "cluster: {{id: test}}\nshard: {{id: one, infra: {{provider: sim, region: r, zone: z}}}}\n\
             groups: {{default: {{web: {{instance_type: small, userdata: {text}}}}}}}\n"
        )
    };
    let harness = Harness::empty();
    harness.write(
        "nstance.yaml",
        config(&packed("#cloud-config\ntimezone: UTC\n")),
    );
    harness.ok("apply --auto-approve");
    harness.write(
        "nstance.yaml",
        config(&packed("#cloud-config\ntimezone: Europe/Berlin\n")),
    );
    assert_snapshot!(harness.ok("plan"));
}

#[test]
fn a_layer_that_replaces_another_is_told_of_once() {
    let silent = edited("      merge: nstance # of the template\n", "");
    let told = silent.ok("validate");
    assert_snapshot!(told);
    let meant = edited("merge: nstance # of the template", "merge: replace");
    assert_eq!(meant.ok("validate").stderr, "");
    // A plan isn't the place for it.
    assert_eq!(silent.ok("plan").stderr, "");
}

#[test]
fn what_cloud_init_would_leave_out_is_an_error() {
    // A list where a text belongs.
    let wrong = edited("hostname: \"{{ .Instance.Hostname }}\"", "hostname: [a]");
    assert_snapshot!(wrong.run("validate").stderr);
    assert_eq!(wrong.run("plan").code, Some(1));
    // No YAML, in a part whose lines have moved.
    let broken = edited(
        "runcmd: [echo]",
        "{{ range $i := list 1 2 3 }}# {{ $i }}\n              {{ end }}runcmd: [echo",
    );
    edit(&broken, "cluster:", "functions: sprig\ncluster:");
    assert_snapshot!(broken.run("validate").stderr);
    // Mergers without `dict`.
    let lost = edited(
        "runcmd: [echo]",
        "merge_how: list(append)\n              runcmd: [echo]",
    );
    assert_snapshot!(lost.run("validate").stderr);
    // A part that nothing handles.
    let unknown = edited("#!/bin/sh\n              echo hi", "echo hi");
    assert_snapshot!(unknown.run("validate").stderr);
}

#[test]
fn errors_are_placed_in_every_language() {
    let jsonc = Harness::with(
        r##"{
  "cluster": { "id": "test" },
  "shard": { "id": "one", "infra": { "provider": "sim", "region": "r", "zone": "z" } },
  "defaults": { "userdata": "#cloud-config\npackages: [curl]\n" },
  "groups": { "default": { "web": {
    "instance_type": "small",
    "userdata": {
      "merge": "nstance",
      "parts": ["#cloud-config\ntimezone: \u0055TC\npackages: curl\n"],
    },
  } } },
}"##,
    );
    assert_snapshot!(jsonc.run("validate").stderr);
    let hcl = Harness::empty();
    hcl.write(
        "nstance.hcl",
        r##"cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
defaults {
  userdata = "#cloud-config\npackages: [curl]\n"
}
group "web" {
  instance_type = "small"
  userdata {
    merge = "cloud-init"
    part {
      content = <<-EOT
        #cloud-config
        merge_how: "dict(recurse_list)+list(apend)"
        packages: [git]
      EOT
    }
    part {
      content  = "#!/bin/sh\n"
      filename = "a.sh"
      merge    = "list"
    }
  }
}
"##,
    );
    assert_snapshot!(hcl.run("validate").stderr);
}

#[test]
fn a_limit_is_told_with_the_share_of_each_layer() {
    let config = |more: &str| {
        let random: String = (0..9_000u64)
            .map(|n| char::from(b'!' + (n.wrapping_mul(2_654_435_761) >> 7) as u8 % 90))
            .filter(|c| !matches!(c, '\\' | '"' | '{' | '}'))
            .collect();
        format!(
            r##"{{
  "cluster": {{ "id": "test" }},
  "shard": {{ "id": "one", "infra": {{ "provider": "aws", "region": "us-west-2", "zone": "us-west-2a" }} }},
  "defaults": {{ "userdata": "#!/bin/sh\n# {random}\n" }},
  "groups": {{ "default": {{ "web": {{
    "instance_type": "t3.small", "arch": "amd64", "kind": "web", "args": {{ "ImageId": "ami-1" }},
    "userdata": {{ "merge": "append", "parts": ["#!/bin/sh\n# {random}\n# {random}\n"]{more} }},
  }} }} }},
}}"##
        )
    };
    // The same thrice is gzipped to a third.
    let fits = Harness::with(&config(""));
    fits.ok("validate");
    let never = Harness::with(&config(", \"compress\": \"never\""));
    let told = never.run("validate");
    assert_eq!(told.code, Some(1), "{told}");
    let message = told
        .stderr
        .lines()
        .find(|line| line.contains("more than the 16384"));
    let message = message.unwrap();
    assert!(
        message.contains("of `defaults`") && message.contains("of the group"),
        "{message}"
    );
}

#[test]
fn what_an_instance_was_given_is_opened() {
    let harness = layers();
    let early = harness.run("userdata decode default/scripts/0");
    assert_eq!(early.code, Some(1), "{early}");
    harness.ok("apply --auto-approve");
    let by_address = harness.ok("userdata decode default/scripts/0");
    assert_snapshot!(by_address);
    let listed = harness.json("sim list --json");
    let mut instances = listed["instances"].as_array().unwrap().iter();
    let script = instances.find(|instance| instance["address"] == "default/scripts/0");
    let script = script.unwrap();
    for id in ["provider_id", "instance_id"] {
        let id = script[id].as_str().unwrap();
        let by_id = harness.ok(&format!("userdata decode {id}"));
        assert_eq!(by_id.stdout, by_address.stdout);
    }
    for (asked, told) in [
        (
            "default/scripts/7",
            "nothing is recorded for `default/scripts/7`",
        ),
        ("i-0123", "there is no such file: i-0123"),
        ("nope.txt", "there is no such file: nope.txt"),
    ] {
        let refused = harness.run(&format!("userdata decode {asked}"));
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains(told), "{refused}");
    }
    // A file of that name is what is meant.
    harness.write("i-0123", "#!/bin/sh\n");
    let file = harness.ok("userdata decode i-0123").stdout;
    assert!(file.contains("text/x-shellscript"), "{file}");
}

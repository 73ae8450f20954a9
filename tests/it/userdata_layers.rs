//! Userdata in layers: configuration, rendering, plans, errors.

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Ended, Harness};
use crate::web;

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
    "files": { "size": 1, "instance_type": "small", "files": { "motd": { "kind": "string", "template": "Hi.\n", "deliver": "userdata", "path": "/etc/motd" } } },
    "none": { "size": 1, "instance_type": "small" },
    "plain": { "size": 1, "instance_type": "small", "userdata": "#cloud-config\n# a comment\ntimezone: UTC\n" },
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
fn only_what_has_an_address_is_explained() {
    let harness = layers();
    for words in [
        "explain .userdata",
        "explain",
        "explain --vars default/web/0.userdata",
    ] {
        assert_eq!(harness.run(words).code, Some(1), "{words}");
    }
    assert_snapshot!(harness.run("explain default/nope.userdata").stderr);
    assert_snapshot!(harness.ok("explain default/web/0").stdout);
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
             groups: {{default: {{web: {{size: 1, instance_type: small, userdata: {text}}}}}}}\n"
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
    "size": 1, "instance_type": "small",
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
  size          = 1
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
    "size": 1, "instance_type": "t3.small", "arch": "amd64", "kind": "web", "args": {{ "ImageId": "ami-1" }},
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
            "no group or slot matches `default/scripts/7`",
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

/// A configuration of one group, whose userdata is this.
fn alone(userdata: &str) -> Harness {
    Harness::with(&format!(
        r#"{{
  "cluster": {{ "id": "test" }},
  "shard": {{ "id": "one", "infra": {{ "provider": "sim", "region": "r", "zone": "z" }} }},
  "vars": {{ "LIST": "a" }},
  "groups": {{ "default": {{ "web": {{ "instance_type": "small", "size": 3, "userdata": {userdata} }} }} }},
}}"#
    ))
}

#[test]
fn a_single_source_is_looked_into() {
    // YAML that can't be read, through an escape; it is the same in a plan.
    let broken = alone(r##""#cloud-config\ntimezone: UTC\npackages: [\u0061\n""##);
    let told = broken.run("validate");
    assert_eq!(told.code, Some(1));
    assert_snapshot!(told.stderr);
    let planned = broken.run("plan");
    assert_eq!(planned.code, Some(1));
    assert!(
        planned
            .stderr
            .contains("cloud-init would leave this part out"),
        "{planned}"
    );
    for (userdata, code, said) in [
        // The top level is no mapping.
        (
            r##""#cloud-config\n- a\n""##,
            1,
            "cloud-init would leave this part out",
        ),
        // Text in a message that Python spoils.
        (
            r#""MIME-Version: 1.0\nContent-Type: text/cloud-config\n\ntimezone: Z\u00fcrich\n""#,
            1,
            "isn't ASCII",
        ),
        (
            r##""#cloud-config\npackages: {{ .Vars.LIST }}\n""##,
            1,
            "`packages` is a string",
        ),
        (
            r##""#cloud-config\nno_such_key: 1\n""##,
            1,
            "cloud-init knows no key `no_such_key`",
        ),
        (
            r##""#cloud-config\npackages: [a]\npackages: [b]\n""##,
            0,
            "is written twice",
        ),
        // Not for cloud-init, or for no one to read here.
        (r##""#!/bin/sh\necho [\n""##, 0, ""),
        (r##""#include\nhttps://example.com/a\n""##, 0, ""),
        (r###""## template: jinja\n#cloud-config\na: [\n""###, 0, ""),
        (r#""{\"ignition\": {\"version\": \"3.0.0\"}}""#, 0, ""),
        (r#""<powershell>\n</powershell>\n""#, 0, ""),
    ] {
        let harness = alone(userdata);
        for words in ["validate", "plan"] {
            let told = harness.run(words);
            assert_eq!(told.code, Some(code), "{words}: {told}");
            assert!(told.stderr.contains(said), "{words}: {told}");
            assert_eq!(told.stderr.is_empty(), said.is_empty(), "{words}: {told}");
            // Once, though there are three instances.
            assert!(
                said.is_empty() || told.stderr.matches(said).count() == 1,
                "{told}"
            );
        }
    }
}

#[test]
fn what_a_single_source_says_of_a_secret_is_hidden() {
    let harness = Harness::empty();
    harness.write(
        "nstance.yaml",
        "cluster: {id: test}\nshard: {id: one, infra: {provider: sim, region: r, zone: z}}\n\
         variables: {word: {type: string, sensitive: true, default: \"hunter2: [\"}}\n\
         groups: {default: {web: {size: 1, instance_type: small, userdata: \"#cloud-config\\ntimezone: ${var.word}\\n\"}}}\n",
    );
    for words in ["validate", "plan"] {
        let told = harness.run(words);
        assert_eq!(told.code, Some(1), "{told}");
        assert!(!told.stderr.contains("hunter2"), "{told}");
    }
}

#[test]
fn a_file_in_the_userdata_has_the_place_of_its_definition() {
    let harness = layers();
    let document = harness.json("explain default/web/0.userdata --json");
    let values = document["instances"][0]["explanation"]["values"].as_array();
    let of_file = values
        .unwrap()
        .iter()
        .find(|value| value["value"] == "/etc/motd");
    let place = of_file.unwrap()["origin"]["written_at"].as_str().unwrap();
    let line = LAYERS.lines().position(|line| line.contains("motd: {kind"));
    let expected = format!("nstance.yaml:{}:7", line.unwrap() + 1);
    assert_eq!(place, expected);
}

#[test]
fn what_is_included_is_fetched_when_asked() {
    let base = web::serve(&[
        ("/a", "#include-once\n# once more\n{base}/b\n{base}/c\n"),
        ("/b", "#cloud-config\npackages: [curl]\n"),
        ("/c", "#!/bin/sh\necho {{ hi }}\n"),
        ("/broken", "#cloud-config\npackages: [\n"),
    ]);
    let config = |url: &str, includes: &str| {
        alone(&format!(
            r##"{{ "merge": "nstance", "includes": "{includes}", "content": "#include\n{url}\n" }}"##
        ))
    };
    let harness = config(&format!("{base}/a"), "fetch");
    // No network is asked here.
    harness.ok("validate");
    let got = userdata(&harness, "default/web/0");
    assert!(!got.contains("#include"), "{got}");
    // What was fetched is no template.
    assert!(
        got.contains("packages: [curl]") && got.contains("echo {{ hi }}"),
        "{got}"
    );
    // What was fetched is kept, as the body of a URL is.
    harness.ok("apply --auto-approve");
    let kept = config(&format!("{base}/a"), "keep");
    assert_eq!(
        userdata(&kept, "default/web/0"),
        format!("#include\n{base}/a\n")
    );
    let broken = config(&format!("{base}/broken"), "fetch").run("plan");
    assert_eq!(broken.code, Some(1), "{broken}");
    assert_snapshot!(broken.stderr.replace(&base, "http://127.0.0.1:PORT"));
    let gone = config(&format!("{base}/gone"), "fetch").run("plan");
    assert_eq!(gone.code, Some(1), "{gone}");
    assert!(
        gone.stderr.contains(&format!("It includes {base}/gone")),
        "{gone}"
    );
    // Of the machine, not of this one.
    let local = config("file:///etc/hostname", "fetch").run("plan");
    assert!(local.stderr.contains("it is no `https://"), "{local}");
    let template = config("https://example.com/{{ .Group.Name }}", "fetch").run("validate");
    assert_eq!(template.code, Some(1), "{template}");
    assert!(
        template
            .stderr
            .contains("an address that is included is a template"),
        "{template}"
    );
}

#[test]
fn a_url_that_fails_leaves_out_its_instances_only() {
    let base = web::serve(&[("/a", "#cloud-config\npackages: [curl]\n")]);
    let harness = Harness::empty();
    let group = |path: &str| {
        format!(
            "cluster: {{id: c}}\nshard:\n  id: s\n  infra: {{provider: sim, region: r, zone: z}}\n\
             templates:\n  a: {{kind: aaa, arch: amd64, instance_type: small}}\n\
             groups:\n  default:\n    db: {{template: a, size: 1}}\n    \
             web: {{template: a, size: 1, userdata: {{source: url, content: '{base}/{path}'}}}}\n"
        )
    };
    harness.write("nstance.yaml", group("gone"));
    let plan = harness.run("plan --json");
    assert_eq!(plan.code, Some(1), "{plan}");
    let document: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(document["errored"], true);
    assert_eq!(document["summary"]["create"], 1);
    let diagnostics = document["diagnostics"].as_array().unwrap();
    let summaries: Vec<_> = diagnostics.iter().map(|one| &one["summary"]).collect();
    assert_eq!(summaries, ["userdata can't be fetched"], "{plan}");
    let refused = harness.run("apply --auto-approve");
    assert_eq!(refused.code, Some(1), "{refused}");
    // What runs already isn't touched.
    harness.write("nstance.yaml", group("a"));
    harness.ok("apply --auto-approve");
    harness.write("nstance.yaml", group("gone"));
    let rest = harness.run("plan --json");
    let document: Value = serde_json::from_str(&rest.stdout).unwrap();
    assert_eq!(document["summary"]["delete"], 0, "{rest}");
    assert_eq!(document["summary"]["create"], 0, "{rest}");
    // What can't be rendered is compared with its record all the same.
    assert_eq!(harness.run("drift").code, Some(0));
    harness.ok("sim set-type default/web/0 huge");
    assert_eq!(harness.run("drift").code, Some(2));
    harness.ok("sim delete default/web/0");
    let missing = harness.run("drift");
    assert_eq!(missing.code, Some(2), "{missing}");
}

#[test]
fn files_are_fetched_for_without_a_configuration() {
    let base = web::serve(&[
        ("/a", "#include {base}/b\n"),
        ("/b", "#cloud-config\npackages: [curl]\n"),
    ]);
    let harness = Harness::empty();
    harness.write("one", format!("#include\n{base}/a\n"));
    harness.write("two", "#cloud-config\npackages: [git]\n");
    let merged = harness
        .ok("userdata merge one two --mode nstance --fetch")
        .stdout;
    assert_eq!(merged, "#cloud-config\npackages:\n  - curl\n  - git\n");
    let opened = harness.ok("userdata decode one --fetch").stdout;
    assert!(
        opened.contains(&format!("{base}/b, ")) && opened.contains("packages: [curl]"),
        "{opened}"
    );
    let kept = harness.ok("userdata decode one").stdout;
    assert!(!kept.contains("packages"), "{kept}");
    harness.write("gone", format!("#include\n{base}/gone\n"));
    let gone = harness.run("userdata merge gone --fetch");
    assert_eq!(gone.code, Some(1), "{gone}");
    assert!(
        gone.stderr
            .contains(&format!("{base}/gone can't be fetched")),
        "{gone}"
    );
}

/// A URL that can't be fetched concerns the instances that need it, and nobody else.
#[test]
fn a_url_that_cannot_be_fetched_stops_its_own_instances_only() {
    let harness = Harness::empty();
    let config = |url: &str| {
        format!(
            r##"{{
  "cluster": {{ "id": "test" }},
  "shard": {{ "id": "one", "infra": {{ "provider": "sim", "region": "r", "zone": "z" }} }},
  "templates": {{ "unused": {{ "userdata": {{ "source": "url", "content": "http://127.0.0.1:1/unused.sh" }} }} }},
  "groups": {{ "default": {{
    "far": {{ "size": 1, "instance_type": "small", "userdata": {{ "source": "url", "content": "{url}" }} }},
    "near": {{ "size": 1, "instance_type": "small", "userdata": "#!/bin/sh\n" }},
  }} }},
}}"##
        )
    };
    harness.configure(&config("http://127.0.0.1:1/far.sh"));
    for words in [
        "validate",
        "plan --target default/near",
        "apply --auto-approve --target default/near",
        "render default/near",
        "drift",
    ] {
        let ended = harness.ok(words);
        assert!(!ended.stderr.contains("can't be fetched"), "{ended}");
    }
    let whole = harness.run("plan");
    assert_eq!(whole.code, Some(1));
    assert!(
        whole.stdout.contains("its userdata can't be fetched"),
        "{whole}"
    );
    assert_eq!(
        whole.stderr.matches("can't be fetched").count(),
        1,
        "{whole}"
    );
    harness.ok("destroy --auto-approve");
    assert_eq!(harness.live().len(), 0);
}

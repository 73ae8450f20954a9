//! `render`: the examples of the configuration's specification, and the command's options.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::{AWS, Harness, STARTER};

/// A configuration that says only what it needs to, with more of it.
fn with(more: &str) -> Harness {
    Harness::with(&format!(
        "{{\n  \"cluster\": {{ \"id\": \"test\" }},\n  \"shard\": {{ \"id\": \"one\", \"infra\": {{ \"provider\": \"sim\", \"region\": \"local-1\", \"zone\": \"local-1a\" }} }},\n{more}\n}}\n"
    ))
}

fn instances(harness: &Harness, words: &str) -> Vec<Value> {
    harness.json(words)["instances"].as_array().unwrap().clone()
}

#[test]
fn args_merge_as_the_table_says() {
    let harness = with(
        r#"
  "defaults": { "args": { "a": 1, "b": { "hello": "world", "always": "here" }, "c": { "goodbye": "world" } } },
  "templates": {
    "example": {
      "kind": "exa", "arch": "amd64", "instance_type": "small",
      "args": { "a": "2", "b": { "hello": "there", "location": "world" }, "c": 3 },
    },
  },
  "groups": { "default": { "example": { "template": "example", "size": 1 } } },"#,
    );
    let rendered = instances(&harness, "render --json");
    assert_eq!(
        rendered[0]["args"],
        json!({ "a": "2", "b": { "hello": "there", "always": "here", "location": "world" }, "c": 3 })
    );
    assert_snapshot!(harness.ok("render --explain"));
}

#[test]
fn vars_come_from_the_highest_layer_that_sets_them() {
    let harness = with(
        r#"
  "vars": { "EXAMPLE": "one" },
  "defaults": { "userdata": "{{ .Vars.EXAMPLE }}" },
  "templates": { "default": { "vars": { "EXAMPLE": "two" } } },
  "groups": {
    "blue": { "size": 1 },
    "green": { "size": 1, "template": "default" },
    "red": { "size": 1, "template": "default", "vars": { "EXAMPLE": "three" } },
    "black": { "size": 1, "vars": { "EXAMPLE": "four" } },
  },"#,
    );
    let rendered = |group: &str| {
        let rendered = instances(&harness, &format!("render --json default/{group}"));
        assert_eq!(rendered.len(), 1);
        assert_eq!(rendered[0]["vars"]["EXAMPLE"], rendered[0]["userdata"]);
        rendered[0]["userdata"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        ["blue", "green", "red", "black"].map(rendered),
        ["one", "two", "three", "four"]
    );
}

#[test]
fn an_image_is_the_newest_match_of_the_catalogue() {
    let harness = Harness::with(AWS);
    let catalogue = harness.json("sim image list --json");
    let newest = catalogue["images"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|image| {
            image["name"]
                .as_str()
                .unwrap()
                .starts_with("debian-13-arm64-")
        })
        .max_by_key(|image| image["created"].as_str().unwrap())
        .unwrap();
    let rendered = instances(&harness, "render --json --sim default/workers/0");
    assert_eq!(rendered[0]["args"]["ImageId"], newest["id"]);
}

#[test]
fn files_are_rendered_as_their_kinds_say() {
    let harness = Harness::with(AWS);
    let rendered = instances(&harness, "render --json --sim default/workers/0");
    let id = rendered[0]["instance_id"].as_str().unwrap();
    let files = &rendered[0]["files"];
    assert_eq!(files["node.env"]["kind"], "env");
    assert_eq!(
        files["node.env"]["content"],
        format!(
            "INSTANCE_ID={id}\nENVIRONMENT=production\nK8S_NODE_LABELS=topology.kubernetes.io/zone=us-west-2a\nCLUSTER_FQDN=prod.example.com\n"
        )
    );
    assert_eq!(files["limits.json"]["kind"], "json");
    assert_eq!(
        files["limits.json"]["content"],
        format!("{{\n  \"port\": 10250,\n  \"node\": \"{id}\"\n}}\n")
    );
}

#[test]
fn both_hashes_are_there_and_cover_what_they_should() {
    let harness = Harness::with(AWS);
    let hashes = |harness: &Harness| {
        let rendered = instances(harness, "render --json --sim default/workers/0");
        ["infra", "runtime"].map(|name| {
            let hash = rendered[0]["hashes"][name].as_str().unwrap().to_owned();
            let digits = hash.strip_prefix("sha256:").unwrap();
            assert!(
                digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{hash}"
            );
            hash
        })
    };
    let [infra, runtime] = hashes(&harness);
    harness.edit("\"port\": 10250", "\"port\": 10251");
    let [same, other] = hashes(&harness);
    assert_eq!(same, infra);
    assert_ne!(other, runtime);
    harness.edit("\"m7g.xlarge\"", "\"m7g.2xlarge\"");
    let [changed, same] = hashes(&harness);
    assert_ne!(changed, infra);
    assert_eq!(same, other);
}

#[test]
fn the_document_has_the_keys_of_the_contract() {
    let harness = Harness::with(AWS);
    let document = harness.json("render --json --sim");
    assert_eq!(document["format_version"], "1.0");
    let rendered = document["instances"].as_array().unwrap();
    assert_eq!(rendered.len(), 7);
    for instance in rendered {
        for key in [
            "address",
            "instance_id",
            "provider_id",
            "kind",
            "arch",
            "instance_type",
            "zone",
            "subnet_pool",
            "subnet",
            "args",
            "vars",
            "userdata",
            "files",
            "tags",
            "load_balancers",
            "hashes",
            "warnings",
        ] {
            assert!(
                instance.get(key).is_some(),
                "`{key}` is missing: {instance:#}"
            );
        }
    }
    assert_eq!(
        harness.files(),
        ["nstance.jsonc"],
        "rendering makes nothing"
    );
}

#[test]
fn text_explanation_and_files() {
    let harness = Harness::with(AWS);
    assert_snapshot!(harness.ok("render --sim default/workers/1"));
    assert_snapshot!(harness.ok("render --sim --explain default/workers/1"));
    assert_snapshot!(harness.ok("render --sim --out rendered default/workers"));
    let rendered: Vec<_> = harness
        .files()
        .into_iter()
        .filter(|file| file.starts_with("rendered/default/workers/3/"))
        .collect();
    assert_eq!(
        rendered,
        [
            "files/limits.json",
            "files/node.env",
            "spec.json",
            "userdata"
        ]
        .map(|file| format!("rendered/default/workers/3/{file}"))
    );
    let userdata = String::from_utf8(harness.read("rendered/default/workers/3/userdata")).unwrap();
    assert!(
        userdata.ends_with("kubeadm join 10.0.0.10:8992\n"),
        "{userdata}"
    );
    let spec: Value =
        serde_json::from_slice(&harness.read("rendered/default/workers/3/spec.json")).unwrap();
    assert_eq!(spec["address"], "default/workers/3");
}

#[test]
fn what_is_recorded_renders_with_its_own_id() {
    let harness = Harness::applied(STARTER);
    let recorded = harness.json("show --json")["instances"][1]["instance_id"].clone();
    let rendered = instances(&harness, "render --json default/web/1");
    assert_eq!(rendered[0]["instance_id"], recorded);
    assert!(
        rendered[0]["userdata"]
            .as_str()
            .unwrap()
            .contains(recorded.as_str().unwrap())
    );
}

#[test]
fn what_is_not_configured_is_an_error() {
    let harness = Harness::starter();
    let ended = harness.run("render default/wbe");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
}

#[test]
fn what_is_too_large_is_not_read() {
    let harness = Harness::empty();
    let sparse = |name: &str, size| {
        let file = std::fs::File::create(harness.path(name)).unwrap();
        file.set_len(size).unwrap();
    };
    sparse("data.json", (16 << 20) + 1);
    sparse("plan", (1 << 30) + 1);
    for (command, want) in [
        (
            "render --template-string x --data data.json",
            "error: it has more than 16 MiB, which is the most that is read: data.json",
        ),
        (
            "render --template-string x --data /dev/zero",
            "error: it has more than 16 MiB, which is the most that is read: /dev/zero",
        ),
        (
            "show plan",
            "it has more than 1024 MiB, which is the most that is read",
        ),
    ] {
        let ended = harness.run(command);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains(want), "{ended}");
    }
}

#[test]
fn a_template_of_the_command_line() {
    let harness = Harness::empty();
    harness.write("data.json", r#"{"name": "world", "numbers": [1, 2, 3]}"#);
    let template = "Hello {{ .name }}:{{ range .numbers }} {{ . }}{{ end }}";
    let ended = harness.run_of(&[
        "render",
        "--template-string",
        template,
        "--data",
        "data.json",
    ]);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(ended.stdout, "Hello world: 1 2 3");
    for template in ["{{ .name", "{{ nope .name }}", "{{ index .numbers 9 }}"] {
        let ended = harness.run_of(&[
            "render",
            "--template-string",
            template,
            "--data",
            "data.json",
        ]);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert_snapshot!(ended);
    }
}

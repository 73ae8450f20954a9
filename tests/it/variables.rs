//! Variables of every language, through the real binary: where values come from, and which counts.

use insta::assert_snapshot;

use crate::harness::{CANARY, Harness};

const HCL: &str = r#"
variable "region" {
  type        = string
  default     = "default"
  description = "where the fleet runs"
}
variable "size" {
  type    = number
  default = 1
}
variable "zones" {
  type    = list(string)
  default = ["z"]
}
variable "token" {
  type      = string
  default   = "hunter2"
  sensitive = true
}
cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
group "web" {
  instance_type = "small"
  size          = var.size
  zones         = var.zones
  vars          = { REGION = var.region }
  args          = { Token = "Bearer ${var.token}" }
}
"#;

const YAML: &str = r#"
variables:
  region: {type: string, default: default, description: where the fleet runs}
  size: {type: number, default: 1}
  zones: {type: list(string), default: [z]}
  token: {type: string, default: hunter2, sensitive: true}
cluster: {id: test}
shard: {id: one, infra: {provider: sim, region: r, zone: z}}
groups:
  default:
    web:
      instance_type: small
      size: ${var.size}
      zones: ${var.zones}
      vars: {REGION: "${var.region}"}
      args: {Token: "Bearer ${var.token}"}
"#;

const JSONC: &str = r#"{
  "variables": {
    "region": {"type": "string", "default": "default", "description": "where the fleet runs"},
    "size": {"type": "number", "default": 1},
    "zones": {"type": "list(string)", "default": ["z"]},
    "token": {"type": "string", "default": "hunter2", "sensitive": true},
  },
  "cluster": {"id": "test"},
  "shard": {"id": "one", "infra": {"provider": "sim", "region": "r", "zone": "z"}},
  "groups": {"default": {"web": {
    "instance_type": "small",
    "size": "${var.size}",
    "zones": "${var.zones}",
    "vars": {"REGION": "${var.region}"},
    "args": {"Token": "Bearer ${var.token}"},
  }}},
}
"#;

/// Each form of one configuration.
fn forms() -> [(&'static str, Harness); 3] {
    [
        ("nstance.hcl", HCL),
        ("nstance.yaml", YAML),
        ("nstance.jsonc", JSONC),
    ]
    .map(|(name, text)| {
        let harness = Harness::empty();
        harness.write(name, text);
        harness.write("a.tfvars", "region = \"a\"\nsize = 2\nzones = [\"a\"]\n");
        harness.write("b.json", "{\"region\": \"b\", // last\n \"nope\": 1}");
        harness.write("c.yaml", "region: c\nzones: [x, y]\n");
        (name, harness)
    })
}

#[test]
fn the_command_line_wins_over_files_over_the_environment_over_defaults() {
    for (name, harness) in forms() {
        for (environment, words, region, size) in [
            (None, "", "default", 1),
            (Some("e"), "", "e", 1),
            (Some("e"), "--var-file a.tfvars", "a", 2),
            (Some("e"), "--var-file a.tfvars --var-file c.yaml", "c", 2),
            (Some("e"), "--var-file c.yaml --var-file a.tfvars", "a", 2),
            (
                Some("e"),
                "--var region=v --var-file a.tfvars --var size=3",
                "v",
                3,
            ),
            (None, "--var region=v --var region=w", "w", 1),
        ] {
            let line = format!("render --json {words}");
            let mut command = harness.command(&line);
            if let Some(value) = environment {
                command.env("NSTANCE_VAR_region", value);
            }
            let ended = harness.end(&line, command);
            assert_eq!(ended.code, Some(0), "{name}: {ended}");
            let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
            let instances = document["instances"].as_array().unwrap();
            assert_eq!(instances.len(), size, "{name}: {ended}");
            assert_eq!(instances[0]["vars"]["REGION"], region, "{name}: {line}");
        }
    }
}

#[test]
fn every_origin_is_told() {
    for (name, harness) in forms() {
        let line = "explain --vars --var-file a.tfvars --var size=3";
        let mut command = harness.command(line);
        command.env("NSTANCE_VAR_token", "from-outside");
        command.env("NSTANCE_VAR_other", "isn't ours");
        let ended = harness.end(line, command);
        assert!(!ended.to_string().contains("from-outside"), "{ended}");
        assert_snapshot!(format!("origins_{}", name.replace('.', "_")), ended);
        let defaults = harness.ok("explain --vars --json");
        assert!(!defaults.to_string().contains("hunter2"), "{defaults}");
        if name == "nstance.yaml" {
            assert_snapshot!("origins_json", defaults);
        }
    }
}

/// What isn't declared, isn't of its type, or isn't there.
#[test]
fn values_that_do_not_fit_are_explained() {
    for (name, harness) in forms() {
        let unknown = harness.run("validate --var regoin=x --var-file b.json --var zzz=1");
        assert_eq!(unknown.code, Some(1));
        let wrong = harness.run_of(&["validate", "--var", "size=many", "--var", "zones=a b"]);
        assert_eq!(wrong.code, Some(1));
        harness.write("bad.tfvars", "size = [\nregion = var.x\n");
        harness.write(
            "block.hcl",
            "group \"x\" {}\nsize = \"many\"\nregion = upper(var.y)\n",
        );
        let files = harness.run("validate --var-file bad.tfvars --var-file block.hcl --var-file nope.json --var-file x.toml");
        assert_eq!(files.code, Some(1));
        if name == "nstance.hcl" {
            assert_snapshot!("unknown_variables", unknown);
            assert_snapshot!("wrong_values", wrong);
            assert_snapshot!("wrong_files", files);
        }
        // What is sensitive isn't shown, not even where it is wrong.
        let text = std::fs::read_to_string(harness.path(name)).unwrap();
        let numeric = text
            .replace(
                "type      = string\n  default   = \"hunter2\"",
                "type = number\n  default = 1",
            )
            .replace(
                "{type: string, default: hunter2,",
                "{type: number, default: 1,",
            )
            .replace(
                "\"string\", \"default\": \"hunter2\"",
                "\"number\", \"default\": 1",
            );
        assert_ne!(text, numeric);
        harness.write(name, numeric);
        let hidden = harness.run("validate --var token=swordfish");
        assert_eq!(hidden.code, Some(1));
        let shown = format!("{}{}", hidden.stdout, hidden.stderr);
        assert!(!shown.contains("swordfish"), "{hidden}");
    }
}

#[test]
fn without_variables_vars_are_set_as_before() {
    let harness = Harness::empty();
    harness.write(
        "nstance.yaml",
        "vars: {A: 1, B: '${not.read}'}\ncluster: {id: test}\n\
         shard: {id: one, infra: {provider: sim, region: r, zone: z}}\n\
         groups: {default: {web: {size: 1, instance_type: small}}}\n",
    );
    harness.write("v.yaml", "A: [1, 2]\nC: three\n");
    let line = "render --json --var-file v.yaml --var D=4";
    let mut command = harness.command(line);
    command
        .env("NSTANCE_VAR_A", "env")
        .env("NSTANCE_VAR_E", "5");
    let ended = harness.end(line, command);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        document["instances"][0]["vars"],
        serde_json::json!({"A": [1, 2], "B": "${not.read}", "C": "three", "D": "4", "E": "5"})
    );
    assert_snapshot!(harness.ok("explain --vars --var-file v.yaml --var D=4"));
}

/// `${…}` in every kind of string of YAML and JSON, beside Go's braces; and places behind it.
#[test]
fn interpolation_leaves_go_templates_alone() {
    let harness = Harness::empty();
    let yaml = r#"
variables:
  name: {default: "some name"}
  list: {default: [1, two, {three: 3.5}]}
  null: {default: null}
cluster: {id: test}
shard: {id: one, infra: {provider: sim, region: r, zone: z}}
vars:
  PLAIN: a ${var.name} b
  TYPED: ${var.list}
  NULL: "${var.null}"
  ESCAPED: '$${var.name} $$ $ ${"${var.name}"}!'
  GO: "{{ if eq .Vars.PLAIN \"${var.name}\" }}${upper(var.name)}{{ end }}"
  INNER: '${join("-", [for x in ["a", "b"] : "${x}}"])}'
groups:
  default:
    web:
      size: 1
      instance_type: small
"#;
    harness.write("nstance.yaml", yaml);
    let document = harness.json("render --json");
    assert_eq!(
        document["instances"][0]["vars"],
        serde_json::json!({
            "PLAIN": "a some name b",
            "TYPED": [1, "two", {"three": 3.5}],
            "NULL": "",
            "ESCAPED": "${var.name} $$ $ some name!",
            "GO": "{{ if eq .Vars.PLAIN \"${var.name}\" }}SOME NAME{{ end }}",
            "INNER": "a}-b}",
        })
    );
    harness.write(
        "nstance.yaml",
        r#"
variables:
  name: {default: "some name"}
cluster: {id: test}
shard: {id: one, infra: {provider: sim, region: r, zone: z}}
groups:
  default:
    web:
      size: 1
      instance_type: small
      userdata: |
        #!/bin/sh
        echo ${var.name} $${HOME} ${upper(
          var.name)} {{ nope1 }}
      args:
        DOUBLE: "\u00e9\t${var.name} {{ nope2 }}"
"#,
    );
    assert_snapshot!("places_behind_interpolation", harness.run("validate"));
    harness.write(
        "nstance.yaml",
        r#"
variables:
  name: {default: "some name"}
  list: {default: [1]}
cluster: {id: test}
shard: {id: one, infra: {provider: sim, region: r, zone: z}}
vars:
  A: "\u00e9 ${var.nam} ${upper(}"
  B: a ${var.list}
  C: "a ${var.name"
  D: |
    text
      ${uper(var.name)} ${1 + "x"}
  E: ${HOME}
"#,
    );
    assert_snapshot!("wrong_interpolations", harness.run("validate"));
}

/// A required variable in a group, or in the shard's region.
const REQUIRED: [(&str, &str); 2] = [
    (
        "nstance.hcl",
        r#"
variable "password" {
  type      = string
  sensitive = true
}
variable "shard" { type = string }
locals { id = var.shard }
cluster { id = "test" }
shard {
  id = local.id
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
group "web" {
  kind          = "web"
  arch          = "arm64"
  instance_type = "small"
  size          = 2
  args          = { ImageId = "debian-13", Token = var.password }
}
"#,
    ),
    (
        "nstance.yaml",
        "variables:\n  password: {type: string, sensitive: true}\n  shard: {type: string}\n\
         cluster: {id: test}\nshard:\n  id: \"${var.shard}\"\n  infra: {provider: sim, region: r, zone: z}\n\
         groups:\n  default:\n    web: {kind: web, arch: arm64, instance_type: small, size: 2,\n      \
         args: {ImageId: debian-13, Token: \"${var.password}\"}}\n",
    ),
];

#[test]
fn what_renders_nothing_needs_only_the_variables_of_the_shard() {
    for (name, config) in REQUIRED {
        let harness = Harness::empty();
        harness.give_key();
        harness.write(name, config);
        let given = "--var shard=one --var password=hunter2";
        harness.ok(&format!("plan --out first.plan {given}"));
        // A saved plan has everything that was rendered.
        harness.ok("apply first.plan --var shard=one");
        assert_eq!(harness.live().len(), 2);
        for words in [
            "state list",
            "state show default/web",
            "state history",
            "show",
            "sim list",
            "sim delete default/web/1",
            "state rm default/web/1",
        ] {
            let ended = harness.ok(&format!("{words} --var shard=one"));
            assert!(!ended.stderr.contains("has no value"), "{ended}");
        }
        for words in ["state list", "show", "apply first.plan"] {
            let ended = harness.run(words);
            assert_eq!(ended.code, Some(1), "{ended}");
            let said = "variable `shard` has no value";
            assert!(ended.stderr.contains(said), "{ended}");
        }
        let plan = harness.run("plan --var shard=one");
        assert_eq!(plan.code, Some(1), "{plan}");
        assert!(
            plan.stderr.contains("variable `password` has no value"),
            "{plan}"
        );
    }
}

#[test]
fn secrets_of_a_saved_plan_are_masked_without_their_variables() {
    let (name, config) = REQUIRED[0];
    let harness = Harness::empty();
    harness.give_key();
    // The cloud refuses the address, and quotes it.
    harness.write(
        name,
        config.replace(
            "Token = var.password",
            "PrivateIpAddress = \"${var.password}{{ .Instance.Index }}\"",
        ),
    );
    harness.ok(&format!(
        "plan --out first.plan --var shard=one --var password={CANARY}"
    ));
    let ended = harness.run("apply first.plan --var shard=one");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.stderr.contains("(sensitive value)"), "{ended}");
}

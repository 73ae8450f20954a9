//! Variables of every language, through the real binary: where values come from, and which counts.

use insta::assert_snapshot;

use crate::harness::Harness;

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
         groups: {default: {web: {instance_type: small}}}\n",
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
      instance_type: small
"#;
    harness.write("nstance.yaml", yaml);
    let document = harness.json("render --json");
    assert_eq!(
        document["instances"][0]["vars"],
        serde_json::json!({
            "PLAIN": "a some name b",
            "TYPED": [1, "two", {"three": 3.5}],
            "NULL": null,
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

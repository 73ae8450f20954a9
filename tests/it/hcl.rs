//! Configurations in HCL, through the real binary.

use insta::assert_snapshot;

use crate::harness::Harness;

const QUICKSTART: &str = include_str!("../good/quickstart.hcl");

#[test]
fn the_quickstart_in_hcl_renders_and_plans_the_same() {
    let jsonc = Harness::example("quickstart");
    let hcl = Harness::empty();
    hcl.write("nstance.hcl", QUICKSTART);
    for words in [
        "render --json",
        "plan --json",
        "plan",
        "graph",
        "validate --json",
    ] {
        let (expected, found) = (jsonc.ok(words), hcl.ok(words));
        assert!(!expected.stdout.is_empty());
        let renamed = found.stdout.replace("nstance.hcl", "nstance.jsonc");
        assert_eq!(renamed, expected.stdout, "{words}");
        assert_eq!(found.stderr, expected.stderr, "{words}");
    }
    hcl.ok("apply --auto-approve");
    let again = hcl.ok("plan --detailed-exitcode");
    assert!(again.stdout.contains("no changes are needed"), "{again}");
}

/// References, locals, `for_each`, and files beside the configuration.
const FLEET: &str = r#"
variable "region" {
  default = "eu"
}

locals {
  names = { for name in ["api", "web"] : name => upper(name) }
  env   = "A=${var.region}\nB={{ .Vars.B }}\n"
}

cluster { id = "test" }

shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
  subnet_pools = { a = ["subnet-1"] }
}

image "debian-13" {
  provider = "sim"
  filter {
    name   = "name"
    values = ["debian-13-amd64-*"]
  }
}

load_balancer "front" { provider = "sim" }

template "base" {
  for_each      = toset(["small", "large"])
  kind          = "bas"
  arch          = "amd64"
  instance_type = each.key
  args          = { Image = image.debian-13, Region = var.region }
  userdata      = templatefile("${path.module}/user.tpl", { region = var.region })
}

group "front" {
  for_each       = local.names
  name           = "${each.key}-front"
  size           = 1
  template       = template.base["large"]
  load_balancers = [load_balancer.front]
  depends_on     = [group.data.db]
  vars           = { B = each.value }
  file "env" {
    kind     = "string"
    template = local.env
  }
}

group "data" "db" {
  template = template.base-small
  size     = 1
}
"#;

#[test]
fn a_fleet_of_expressions_is_planned_and_applied() {
    let harness = Harness::empty();
    harness.write("nstance.hcl", FLEET);
    harness.write(
        "user.tpl",
        "#!/bin/sh\necho ${region} {{ .Instance.Type }}\n",
    );
    assert_snapshot!("fleet_graph", harness.ok("graph --format mermaid"));
    assert_snapshot!("fleet_plan", harness.ok("plan"));
    harness.ok("apply --auto-approve");
    assert!(harness.ok("plan").stdout.contains("no changes are needed"));
    let moved = harness.ok("plan --var region=us");
    assert!(
        moved
            .stdout
            .contains("Plan: 3 to add, 0 to change, 3 to destroy."),
        "{moved}"
    );
}

/// Positions in templates go through quotes, interpolations and indentation.
#[test]
fn mistakes_in_templates_are_found_in_every_kind_of_string() {
    let harness = Harness::empty();
    harness.write(
        "nstance.hcl",
        r#"
variable "long" { default = "some text of a variable" }
locals {
  one = <<-EOT
    #!/bin/sh
    echo ${var.long}; echo {{ nope1 }}
  EOT
  shared = <<-EOT
    #!/bin/sh
      echo ${upper(
        var.long
      )} {{ nope2 }}
  EOT
  twice = { for name in ["a", "bb"] : name => "${name} {{ nope3 }}" }
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
  size          = 1
  instance_type = "small"
  userdata      = local.shared
  args = {
    QUOTED  = "tab\t\u00e9 $${x} ${var.long} {{ nope4 }}"
    HEREDOC = <<EOT
  é %%{ if } {{ nope5 }}
EOT
    ONE    = local.one
    TWICE  = local.twice.bb
    JOINED = join(" ", ["a", "{{ nope6 }}"])
  }
}
"#,
    );
    let ended = harness.run("validate");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert_snapshot!(ended);
}

#[test]
fn files_of_all_languages_join() {
    let harness = Harness::empty();
    harness.write(
        "fleet/a.hcl",
        "include = [\"../more/*\"]\nlocals { zone = \"z\" }\n",
    );
    harness.write(
        "fleet/b.hcl",
        "cluster { id = \"test\" }\nshard {\n  id = \"one\"\n  infra {\n    provider = \"sim\"\n    region = \"r\"\n    zone = local.zone\n  }\n}\n\
         group \"web\" {\n  size = 1\n  template = template.base\n  userdata = templatefile(\"user.sh\", {})\n  depends_on = [group.db]\n}\n",
    );
    harness.write("fleet/user.sh", "#!/bin/sh\n");
    harness.write("more/t.yaml", "templates: {base: {instance_type: small}}\n");
    harness.write(
        "more/g.jsonc",
        "{\"groups\": {\"default\": {\"db\": {\"template\": \"base\", \"size\": 1}}}}",
    );
    harness.write(
        "more/h.hcl",
        "group \"other\" \"x\" {\n  size = 1\n  template = template.base\n  vars = { ROOT = path.root, DEPENDS = local.zone, F = can(templatefile(\"user.sh\", {})) }\n}\n",
    );
    harness.write(
        "fleet/prod_override.hcl",
        "group \"web\" {\n  size = 3\n}\nlocals {\n  zone = \"y\"\n}\n",
    );
    let valid = harness.ok("-c fleet validate");
    assert_eq!(valid.stdout, "The configuration is valid: 3 groups.\n");
    let rendered = harness.ok("-c fleet render --json");
    let document: serde_json::Value = serde_json::from_str(&rendered.stdout).unwrap();
    let instances = document["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 5);
    for instance in instances {
        assert_eq!(instance["zone"], "y");
    }
    let vars = &instances
        .iter()
        .find(|i| i["address"] == "other/x/0")
        .unwrap()["vars"];
    assert_eq!(vars["ROOT"], "../fleet");
    assert_eq!(vars["F"], false);

    harness.write(
        "more/again.hcl",
        "template \"base\" {\n  size = 2\n}\nlocals {\n  zone = 1\n}\n",
    );
    let twice = harness.run("-c fleet validate");
    assert_snapshot!("defined_twice", twice);
}

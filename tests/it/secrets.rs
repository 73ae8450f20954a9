//! Secrets: a canary goes in by every way there is, and mustn't come out by any.
//!
//! What a run prints and what it leaves behind is searched for the canary, as it is and in whatever
//! form it was turned into on the way.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use insta::assert_snapshot;
use nstance::digest::hex;
use sha2::{Digest as _, Sha256};

use crate::harness::{CANARY, Ended, Harness};

const HCL: &str = include_str!("data/secrets.hcl");
const YAML: &str = include_str!("data/secrets.yaml");
const LAYERS: &str = include_str!("data/secrets_layers.yaml");

/// What holds the secrets because it has to: the cloud itself, and files that are asked for.
const MEANT_TO_HOLD: [&str; 2] = [".nstance/sim.db", ".nstance/test/one/files/"];

/// The canary in every form that it may take.
fn forms() -> Vec<String> {
    let mut forms = vec![
        CANARY.to_lowercase(),
        CANARY.chars().rev().collect::<String>().to_lowercase(),
        CANARY[..9].to_lowercase(),
        hex(CANARY.as_bytes()),
        hex(&Sha256::digest(CANARY)),
        "yranac".to_owned(),
    ];
    // Whatever stands before it, the middle is the same.
    for before in ["", "x", "xx"] {
        let encoded = STANDARD.encode(format!("{before}{CANARY}"));
        forms.push(encoded[4..16].to_lowercase());
    }
    let upper = STANDARD.encode(CANARY.to_uppercase());
    forms.push(upper[..12].to_lowercase());
    let part = STANDARD.encode(&CANARY[..9]);
    forms.push(part.to_lowercase());
    forms
}

#[track_caller]
fn assert_hidden(what: &str, bytes: &[u8]) {
    assert_without(
        &forms(),
        what,
        &String::from_utf8_lossy(bytes).to_lowercase(),
    );
}

#[track_caller]
fn assert_without(forms: &[String], what: &str, text: &str) {
    for form in forms {
        if let Some(at) = text.find(&**form) {
            let start = text.floor_char_boundary(at.saturating_sub(300));
            panic!("{what} holds `{form}`: {}", &text[start..at + form.len()]);
        }
    }
}

/// A folder, and how its variables get their values.
struct Cage {
    harness: Harness,
    options: &'static str,
    /// Whether secrets are only hidden by their place.
    is_without_net: bool,
    /// The format of the log, if everything is logged.
    log: Option<&'static str>,
    /// What else must not be found, letter for letter.
    forms: Vec<String>,
}

impl Cage {
    fn new(name: &str, config: &str, options: &'static str) -> Self {
        let harness = Harness::empty();
        harness.write(name, config);
        harness.write("secret.tfvars", vars(CANARY));
        harness.write("new.tfvars", vars(&format!("new {CANARY} new")));
        harness.write(
            "secret.json",
            format!(
                "{{\"password\": \"{CANARY}\", \"database\": {{\"user\": \"u-{CANARY}\", \
                 \"password\": \"{CANARY}\", \"hosts\": [\"h-{CANARY}\"]}}}}"
            ),
        );
        Self {
            harness,
            options,
            is_without_net: false,
            log: None,
            forms: Vec::new(),
        }
    }

    /// The same, without the last net.
    fn without_net(self) -> Self {
        Self {
            is_without_net: true,
            ..self
        }
    }

    /// The same with a log of everything.
    fn logging(self, format: &'static str) -> Self {
        Self {
            log: Some(format),
            ..self
        }
    }

    #[track_caller]
    fn run(&self, words: &str) -> Ended {
        self.run_with(self.options, words)
    }

    #[track_caller]
    fn run_with(&self, options: &str, words: &str) -> Ended {
        let words = format!("{options} {words}");
        let mut command = self.harness.command(&words);
        if options.is_empty() {
            let database =
                format!("{{ user = \"u\", password = \"{CANARY}\", hosts = [\"{CANARY}\"] }}");
            command
                .env("NSTANCE_VAR_password", CANARY)
                .env("NSTANCE_VAR_database", database);
        }
        if self.is_without_net {
            command.env("NSTANCE_TEST_WITHOUT_NET", "1");
        }
        if let Some(format) = self.log {
            command
                .env("NSTANCE_LOG", "trace")
                .env("NSTANCE_LOG_FORMAT", format);
        }
        let ended = self.harness.end(&words, command);
        self.assert_hidden(&format!("the output of {words}"), ended.stdout.as_bytes());
        self.assert_hidden(&format!("the messages of {words}"), ended.stderr.as_bytes());
        let is_logged = ended.stderr.contains("nstance::command");
        assert_eq!(is_logged, self.log.is_some(), "{ended}");
        ended
    }

    #[track_caller]
    fn assert_hidden(&self, what: &str, bytes: &[u8]) {
        assert_hidden(what, bytes);
        assert_without(&self.forms, what, &String::from_utf8_lossy(bytes));
    }

    #[track_caller]
    fn ok(&self, words: &str) -> Ended {
        let ended = self.run(words);
        assert!(matches!(ended.code, Some(0 | 2)), "{ended}");
        ended
    }

    #[track_caller]
    fn fails(&self, words: &str) -> Ended {
        let ended = self.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        ended
    }

    /// Nothing that was left behind holds the canary.
    #[track_caller]
    fn assert_nothing_left(&self, own: &[&str]) {
        for file in self.harness.files() {
            let is = |names: &[&str]| names.iter().any(|name| file.starts_with(name));
            if !is(own) && !is(&MEANT_TO_HOLD) {
                self.assert_hidden(&file, &self.harness.read(&file));
            }
        }
    }
}

fn vars(value: &str) -> String {
    format!(
        "password = \"{value}\"\ndatabase = {{\n  user = \"u-{value}\"\n  password = \"{value}\"\n  \
         hosts = [\"h-{value}\"]\n}}\n"
    )
}

const OWN: [&str; 5] = ["nstance.", "secret.", "new.", "wrong.", "broken."];

/// A whole life, each command in all of its forms.
fn live(cage: &Cage, name: &str) {
    for words in [
        "validate",
        "validate --json",
        "graph",
        "graph --format json",
        "graph --format mermaid",
        "images",
        "explain --vars",
        "explain --vars --json",
        "render",
        "render --json",
        "render --explain",
        "render --userdata",
        "render --userdata --explain",
        "render --userdata --explain --json",
        "explain default/web.userdata",
        "render --out rendered",
        "plan",
        "plan --json",
        "plan --verbose",
        "plan --format markdown",
        "plan --format github --report json=whole.json --report text=plan.txt",
        "plan --html plan.html",
        "report --html report.html",
    ] {
        cage.ok(words);
    }
    cage.fails("plan --out saved.plan");
    cage.harness.give_key();
    for words in [
        "plan --out saved.plan",
        "show saved.plan",
        "show saved.plan --json",
        "report saved.plan --html saved.html",
        "apply saved.plan --auto-approve --html apply.html --format markdown --report json=applied.json",
        "show",
        "show --json",
        "show default/web",
        "show default/web/0",
        "userdata decode default/web/0",
        "userdata decode default/web/0 --json",
        "state list --json",
        "state show default/web/1",
        "state show default/web/1 --json",
        "state history",
        "state history 1 --json",
        "state backup backup.db",
        "state pull",
        "doctor",
        "doctor --json",
        "state mv default/web/0 default/web/7",
        "state undo --auto-approve",
        "plan --detailed-exitcode",
        "render default/web/0",
        "drift",
        "drift --json",
    ] {
        cage.ok(words);
    }
    if name != "nstance.jsonc" {
        cage.fails("convert --to jsonc");
    }
    // Somebody changes what is there, behind our back.
    let listed = cage.ok("sim list --json").json();
    let id = listed["instances"][0]["provider_id"].as_str().unwrap();
    cage.ok(&format!("sim set-tag {id} token=changed"));
    cage.ok(&format!("sim set-type {id} large"));
    for words in [
        "drift",
        "drift --json",
        "drift --format markdown",
        "drift --format github",
        "drift --against config --format junit --report text=drift.txt",
        "plan --format markdown",
        "doctor --json",
        "doctor --out repair.plan",
        "plan",
        "plan --json",
        "plan --refresh-only",
        "report --html drift.html",
    ] {
        cage.ok(words);
    }
    // Other values: the old ones are in the record alone.
    let new = "--var-file new.tfvars";
    for words in [
        "plan",
        "plan --json",
        "plan --out saved.plan",
        "show saved.plan --json",
        "report --html new.html",
        "apply --auto-approve --json",
        "plan --destroy --json",
        "state history --json",
    ] {
        let ended = cage.run_with(new, words);
        assert_eq!(ended.code, Some(0), "{ended}");
    }
    // Without the configuration's secrets.
    let plain = "cluster { id = \"test\" }\nshard {\n  id = \"one\"\n  infra {\n    provider = \"sim\"\n    \
                 region = \"r\"\n    zone = \"z\"\n  }\n}\n";
    cage.harness.write("plain/nstance.hcl", plain);
    let plain = "-c plain/nstance.hcl --state sqlite:.nstance/test/one.db --key-file .nstance/key";
    for words in [
        "plan --refresh=false",
        "plan --refresh=false --json",
        "show --json",
        "show default/web/0",
    ] {
        let ended = cage.run_with(plain, words);
        assert_eq!(ended.code, Some(0), "{ended}");
    }
    cage.ok("destroy --auto-approve");
    cage.ok("state history --json");
    cage.assert_nothing_left(&OWN);
}

#[test]
fn nothing_of_a_secret_is_shown_or_left() {
    for (name, config, options, log) in [
        ("nstance.hcl", HCL, "--var-file secret.tfvars", "text"),
        ("nstance.yaml", YAML, "--var-file secret.json", "json"),
        ("nstance.yaml", LAYERS, "--var-file secret.json", "text"),
    ] {
        let cage = Cage::new(name, config, options).without_net();
        live(&cage.logging(log), name);
    }
}

/// Canaries of four characters and of seven digits, too short for the net, and what is only there
/// because of them.
const SHORT: [&str; 2] = ["Q~7x", "7730491"];
const GATED: [&str; 3] = ["gated-by-hcl", "gated-by-go", "gated-in-a-file"];

fn short_forms() -> Vec<String> {
    let mut forms: Vec<String> = SHORT
        .iter()
        .chain(&GATED)
        .map(|&text| text.into())
        .collect();
    for secret in SHORT {
        forms.push(hex(secret.as_bytes()));
        forms.push(hex(&Sha256::digest(secret)));
        // The third is as long as base64 takes it: what follows changes nothing.
        for before in ["", "x", "xx"] {
            let encoded = STANDARD.encode(format!("{before}{secret}"));
            let end = (before.len() + secret.len()) / 3 * 4;
            forms.push(encoded[before.len().div_ceil(3) * 4..end].to_owned());
        }
    }
    // Shorter ones are in sealed documents by chance.
    forms.retain(|form| form.len() > 4 || SHORT.contains(&&**form));
    forms
}

#[test]
fn short_and_numeric_secrets_are_hidden_by_their_place() {
    let config = include_str!("data/canaries.hcl");
    let cage = Cage::new("nstance.hcl", config, "--var-file secret.tfvars").without_net();
    let mut cage = cage.logging("json");
    cage.forms = short_forms();
    let values =
        |short: &str, pin: &str| format!("short = \"{short}\"\npin = {pin}\nlong = \"{CANARY}\"\n");
    cage.harness
        .write("secret.tfvars", values(SHORT[0], SHORT[1]));
    let newer = values(&format!("{}!", SHORT[0]), &format!("{}2", SHORT[1]));
    cage.harness.write("new.tfvars", newer);
    live(&cage, "nstance.jsonc");
    let ended = cage.fails("convert --to yaml");
    assert!(
        ended.stderr.contains("sensitive values can't be converted"),
        "{ended}"
    );
    // What is wrong, in each stage.
    for (from, to) in [
        ("regex = \"open\"", "regex = regex(\"^x\", var.short)"),
        ("regex = \"open\"", "regex = tonumber(var.short)"),
        ("regex = \"open\"", "regex = {a = 1}[var.short]"),
        ("zone     = \"z\"", "zone     = var.short"),
        ("size          = 2", "size          = var.pin"),
        ("size          = 2", "size          = var.short"),
        ("size          = 2", "depends_on = [var.short]"),
        ("size          = 2", "kind = var.short"),
        ("size          = 2", "name = \"n-${var.short}\""),
        ("regex = \"open\"", "(var.short) = 1"),
        ("echo open", "{{ fail .Vars.SHORT }}"),
        ("echo open", "{{ index .Vars.SHORT 99 }}"),
        ("echo open", "{{ template \"${var.short}\" . }}"),
        ("echo open", "{{ .Group.${var.short} }}"),
        ("echo open", "{{ ${var.short} }}"),
        ("echo open", "{{ printf \"%d\" ${var.pin}x }}"),
        (
            "packages: [curl]",
            "packages: {\"${var.short}\": ${var.pin}}",
        ),
        ("packages: [curl]", "packages: ${var.short}: ["),
        ("packages: [curl]", "packages: {\"{{ .Vars.SHORT }}\": 1}"),
    ] {
        assert!(config.contains(from), "{from}");
        cage.harness
            .write("nstance.hcl", config.replacen(from, to, 1));
        for words in ["validate", "validate --json", "plan"] {
            cage.fails(words);
        }
    }
    cage.assert_nothing_left(&OWN);
}

#[test]
fn values_of_the_environment_and_the_command_line_are_as_secret() {
    let cage = Cage::new("nstance.hcl", HCL, "").without_net();
    for words in [
        "plan",
        "plan --json",
        "apply --auto-approve",
        "show --json",
        "render",
        "explain --vars",
    ] {
        cage.ok(words);
    }
    let database = format!("database={{user=\"{CANARY}\",password=\"x\",hosts=[]}}");
    let password = format!("password={CANARY}");
    let arguments = ["--var", &password, "--var", &database];
    for words in [&["plan"][..], &["plan", "--json"], &["explain", "--vars"]] {
        let ended = cage.harness.run_of(&[&arguments[..], words].concat());
        assert_eq!(ended.code, Some(0), "{ended}");
        assert_hidden("the output", ended.stdout.as_bytes());
        assert_hidden("the messages", ended.stderr.as_bytes());
    }
    cage.assert_nothing_left(&OWN);
}

#[test]
fn what_is_wrong_with_layers_tells_nothing_of_a_secret() {
    let cage = Cage::new("nstance.yaml", LAYERS, "--var-file secret.json").without_net();
    let cage = cage.logging("text");
    cage.ok("validate");
    let from = "hostname: \"{{ .Instance.Hostname }}\"";
    assert!(LAYERS.contains(from));
    for to in [
        // A key that nobody knows, a value of the wrong type, no YAML at all, mergers.
        "\"${var.password}\": 1",
        "\"{{ .Vars.PASSWORD }}\": 1",
        "hostname: {\"${var.password}\": 1}",
        "disk_setup: {\"${var.password}\": \"${var.password}\"}",
        "hostname: ${var.password}: [",
        "hostname: !<${var.password}> a",
        "hostname: *${var.password}",
        "hostname: [\"${var.password}\"]",
        "? {${var.password}: 1}\n          : 2",
    ] {
        let config = LAYERS.replacen(from, to, 1);
        cage.harness.write("nstance.yaml", &config);
        for words in [
            "validate",
            "plan",
            "plan --json",
            "render --userdata --explain",
        ] {
            cage.fails(words);
        }
    }
    cage.assert_nothing_left(&OWN);
}

#[test]
fn errors_tell_nothing_of_a_secret() {
    let cage = Cage::new("nstance.hcl", HCL, "--var-file secret.tfvars").without_net();
    cage.ok("validate");
    // Files of values that are wrong.
    for text in [
        format!("password = \"{CANARY}\n"),
        format!("password = {CANARY}\n"),
        format!("pasword = \"{CANARY}\"\n"),
        format!("password = [\"{CANARY}\"]\n"),
        format!("password = \"x\"\ndatabase = \"{CANARY}\"\n"),
        format!("password = \"{CANARY}\" \"{CANARY}\"\n"),
        format!("password = <<EOT\n{CANARY}\n"),
        format!("password {{\n  x = \"{CANARY}\"\n}}\n"),
        format!("password = nope(\"{CANARY}\")\n"),
    ] {
        cage.harness.write("wrong.tfvars", &text);
        for words in ["plan", "plan --json", "validate --json"] {
            let ended = cage.run_with("--var-file wrong.tfvars", words);
            assert_eq!(ended.code, Some(1), "{text}{ended}");
        }
    }
    for (name, text) in [
        ("wrong.json", format!("{{\"password\": \"{CANARY}\"")),
        (
            "wrong.json",
            format!("{{\"password\": {{\"a\": \"{CANARY}\"}}}}"),
        ),
        ("wrong.yaml", format!("password: \"{CANARY}\n")),
        ("wrong.yaml", format!("- {CANARY}\n")),
    ] {
        cage.harness.write(name, &text);
        let ended = cage.run_with(&format!("--var-file {name}"), "plan");
        assert_eq!(ended.code, Some(1), "{text}{ended}");
    }
    // Templates and expressions that can't cope with a secret.
    for (from, to) in [
        ("echo open line", "{{ fail .Vars.PASSWORD }}"),
        ("echo open line", "{{ index .Vars.PASSWORD 99 }}"),
        ("echo open line", "{{ mustFromJson .Vars.PASSWORD }}"),
        ("echo open line", "{{ b64enc .Vars.PASSWORD | fail }}"),
        ("echo open line", "{{ template .Vars.PASSWORD }}"),
        ("base64encode(local.login)", "base64decode(var.password)"),
        ("base64encode(local.login)", "jsondecode(var.password)"),
        ("base64encode(local.login)", "{a = 1}[var.password]"),
        ("sha256(var.password)", "var.database"),
        (
            "template = { OPEN = \"1\"",
            "template = { (var.password) = \"1\"",
        ),
        ("length(var.password) > 3", "length(var.password) > 300"),
        ("length(var.password) > 3", "tonumber(var.password) > 300"),
        (
            "template = \"base\"\n  size",
            "template = var.password\n  size",
        ),
        ("size     = 2", "size = var.password"),
    ] {
        assert!(HCL.contains(from), "{from}");
        cage.harness.write("nstance.hcl", HCL.replacen(from, to, 1));
        for words in ["plan", "plan --json", "validate"] {
            cage.fails(words);
        }
    }
    cage.assert_nothing_left(&OWN);
}

#[test]
fn what_the_cloud_says_is_searched_for_secrets() {
    for (options, argument, said) in [
        (
            "{}",
            "PrivateIpAddress = \"${var.password}{{ .Instance.ID }}\"",
            "(sensitive value)",
        ),
        (
            "{ strict_images = true }",
            "ImageId = var.password",
            "[(sensitive value)]",
        ),
    ] {
        let config = HCL.replacen("{ seed = 1 }", options, 1).replacen(
            "Open  ",
            &format!("{argument}\n    Open  "),
            1,
        );
        let cage = Cage::new("nstance.hcl", &config, "--var-file secret.tfvars");
        cage.ok("plan");
        let ended = cage.fails("apply --auto-approve");
        assert!(ended.stderr.contains(said), "{ended}");
        let ended = cage.fails("apply --auto-approve --json");
        assert!(ended.stdout.contains(said), "{ended}");
        for words in [
            "state history --json",
            "state history 1 --json",
            "state history 1",
        ] {
            cage.ok(words);
        }
        cage.assert_nothing_left(&OWN);
    }
}

#[test]
fn credentials_of_options_and_urls_are_secrets() {
    let config = format!(
        "cluster: {{id: test}}\nshard:\n  id: one\n  infra:\n    provider: aws\n    region: r\n    \
         zone: z\n    options: {{secret_access_key: \"{CANARY}\", endpoint_url: \"https://me:{CANARY}@h\"}}\n\
         groups:\n  default:\n    web:\n      size: 1\n      kind: web\n      arch: arm64\n      instance_type: small\n      \
         args: {{ImageId: x}}\n      userdata: {{source: url, content: \"http://me:{CANARY}@127.0.0.1:1/x?sig={CANARY}\"}}\n    \
         more:\n      size: 1\n      kind: web\n      arch: arm64\n      instance_type: small\n      args: {{ImageId: x}}\n      \
         userdata: {{includes: fetch, content: \"#include http://me:{CANARY}@127.0.0.1:1/y?sig={CANARY}\"}}\n"
    );
    let cage = Cage::new("nstance.yaml", &config, "--sim");
    cage.ok("validate");
    for words in [
        "plan",
        "plan --json",
        "apply --auto-approve --json",
        "render",
    ] {
        cage.fails(words);
    }
    assert_snapshot!("unfetched", cage.fails("plan"));
    cage.fails(&format!("plan --state postgres://me:{CANARY}@host/state"));
    cage.assert_nothing_left(&OWN);
}

#[test]
fn a_render_shows_secrets_when_asked_to() {
    let cage = Cage::new("nstance.hcl", HCL, "--var-file secret.tfvars");
    let harness = cage.harness.showing_secrets();
    let options = "--var-file secret.tfvars";
    let shown = harness.ok(&format!("{options} render default/web/0 --show-sensitive"));
    assert!(
        shown
            .stdout
            .contains(&format!("export PASSWORD='{CANARY}'")),
        "{shown}"
    );
    let shown = harness.json(&format!(
        "{options} render default/web/0 --show-sensitive --json"
    ));
    let instance = &shown["instances"][0];
    assert_eq!(instance["vars"]["PASSWORD"], CANARY);
    assert_eq!(instance["sensitive_values"]["vars"]["PASSWORD"], true);
    harness.ok(&format!(
        "{options} render default/web/0 --show-sensitive --out clear"
    ));
    let userdata = harness.path("clear/default/web/0/userdata");
    assert!(String::from_utf8_lossy(&std::fs::read(&userdata).unwrap()).contains(CANARY));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(userdata).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn exported_files_are_their_owners_alone() {
    let cage = Cage::new("nstance.hcl", HCL, "--var-file secret.tfvars");
    cage.ok("apply --auto-approve");
    let file = cage
        .harness
        .path(".nstance/test/one/files/default/web/0/env");
    assert!(String::from_utf8_lossy(&std::fs::read(&file).unwrap()).contains(CANARY));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_plan_reads_with_its_secrets_hidden() {
    let cage = Cage::new("nstance.hcl", HCL, "--var-file secret.tfvars");
    assert_snapshot!("create", cage.ok("plan"));
    cage.ok("apply --auto-approve");
    assert_snapshot!(
        "change",
        cage.run_with("--var-file new.tfvars", "plan --target default/web/0")
    );
    assert_snapshot!("explained", cage.ok("render default/web/0 --explain"));
    let document = cage.ok("render default/packed/0 --json").json();
    assert_snapshot!("rendered", serde_json::to_string_pretty(&document).unwrap());
    let listed = cage.ok("sim list --json").json();
    let id = listed["instances"][0]["provider_id"].as_str().unwrap();
    cage.ok(&format!("sim set-tag {id} token=changed"));
    assert_snapshot!("drifted", cage.ok("drift"));
}

#[test]
fn a_new_mark_alone_changes_no_instance() {
    let cage = Cage::new("nstance.hcl", HCL, "--var-file secret.tfvars");
    let open = HCL.replacen(
        "  type      = number\n  sensitive = true",
        "  type = number",
        1,
    );
    assert_ne!(open, HCL);
    cage.harness.write("nstance.hcl", &open);
    cage.ok("apply --auto-approve");
    cage.harness.write("nstance.hcl", HCL);
    let planned = cage.run("plan --detailed-exitcode");
    assert_eq!(planned.code, Some(0), "{planned}");
    // What is shown of it follows the configuration all the same.
    let shown = cage.ok("render default/web/0 --json").json();
    assert_eq!(shown["instances"][0]["args"]["Pin"], "(sensitive value)");
}

/// A piece of a secret, or a short one, that breaks what it stands in.
#[test]
fn findings_tell_nothing_that_only_a_secret_makes_them_say() {
    let harness = Harness::empty();
    let head = "cluster { id = \"c\" }\nshard {\n  id = \"s\"\n  infra {\n    provider = \"sim\"\n    \
                region = \"r\"\n    zone = \"z\"\n  }\n}\n";
    for (secret, body, told) in [
        ("ab{{zulu9 xy", "args = { A = var.pw }", "zulu9"),
        (
            "ab{{zulu9 xy",
            "userdata = \"#!/bin/sh\\n${var.pw}\"",
            "zulu9",
        ),
        (
            "zulu9 battery",
            "args = { A = \"{{ ${var.pw} }}\" }",
            "zulu9",
        ),
        (
            "zulu9",
            "args = { A = \"{{ .Group.${var.pw} }}\" }",
            "zulu9",
        ),
        (
            "zulu9",
            "vars = { A = \"{{ .Nope.${var.pw} }}\" }\nargs = { A = \"{{ .${var.pw} }}\" }",
            "zulu9",
        ),
        ("4711", "subnet_pool = \"pool-${var.pw}\"", "4711"),
        ("4711", "template = var.pw", "4711"),
        ("4711", "depends_on = [var.pw]", "4711"),
        ("4711", "load_balancers = [var.pw]", "4711"),
        ("4711", "kind = var.pw", "4711"),
        ("4711", "arch = var.pw", "4711"),
        ("4711", "moved_from = var.pw", "4711"),
        ("4711711", "size = tonumber(var.pw)", "4711"),
        (
            "4711",
            "lifecycle {\n  ignore_changes = [var.pw]\n}",
            "4711",
        ),
    ] {
        let variable = "variable \"pw\" {\n  sensitive = true\n}\n";
        let group = format!("group \"web\" {{\n  size = 1\n  instance_type = \"m\"\n{body}\n}}\n");
        harness.write("nstance.hcl", format!("{head}{variable}{group}"));
        harness.write("s.tfvars", format!("pw = \"{secret}\"\n"));
        for words in ["validate", "validate --json", "plan"] {
            let ended = harness.run(&format!("{words} --var-file s.tfvars"));
            assert_eq!(ended.code, Some(1), "{body}\n{ended}");
            let all = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!all.contains(told), "{body}\n{all}");
        }
    }
}

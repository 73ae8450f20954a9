//! The same calls as botocore: what goes over the wire, and what comes out of an answer.
//!
//! `tests/corpora/botocore.jsonl` holds a few of each operation. `cargo xtask test` makes thousands
//! of them anew, with `NSTANCE_EC2_CASES` as their file.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::child::Job;
use crate::server::{Answer, Request, Server};

/// How many calls one process makes: their answers come back in one line.
const AT_ONCE: usize = 500;

#[test]
fn what_is_sent_and_read_is_what_botocore_sends_and_reads() {
    let path = std::env::var_os("NSTANCE_EC2_CASES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpora/botocore.jsonl"),
        PathBuf::from,
    );
    let cases: Vec<Value> = fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(!cases.is_empty(), "{} has no cases", path.display());
    let mut different = Vec::new();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for cases in cases.chunks(AT_ONCE) {
        compare(cases, &mut different);
    }
    for case in &cases {
        *count
            .entry(case["operation"].as_str().unwrap())
            .or_default() += 1;
    }
    assert_eq!(count.len(), nstance_ec2::Operation::ALL.len(), "{count:?}");
    assert!(
        different.is_empty(),
        "{} of {} cases differ:\n{}",
        different.len(),
        cases.len(),
        different[..different.len().min(10)].join("\n")
    );
}

/// Makes the calls of some cases, and says what is different.
fn compare(cases: &[Value], different: &mut Vec<String>) {
    let answers: Arc<Vec<String>> = Arc::new(
        cases
            .iter()
            .map(|case| case["answer"].as_str().unwrap().to_owned())
            .collect(),
    );
    let next = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        let index = next.fetch_add(1, Ordering::Relaxed);
        Answer::xml(answers[index].clone())
    });
    let mut job = Job::call(
        &server.url,
        nstance_ec2::Operation::RunInstances,
        Value::Null,
    );
    job.calls = cases
        .iter()
        .map(|case| {
            let operation = case["operation"].as_str().unwrap().to_owned();
            (operation, case["input"].clone())
        })
        .collect();
    let home = tempfile::tempdir().unwrap();
    let outputs = job.run(home.path());
    let requests = server.requests();
    assert_eq!(
        (outputs.len(), requests.len()),
        (cases.len(), cases.len()),
        "a call was left out, or sent twice: {outputs:?}"
    );
    for ((case, output), request) in cases.iter().zip(outputs).zip(&requests) {
        let id = &case["id"];
        if let Some(text) = difference(&case["sent"], request) {
            different.push(format!("{id} sends {text}"));
        }
        match output {
            Ok(output) => {
                if let Some(text) = unlike(&case["output"], &output, "") {
                    different.push(format!("{id} reads {text}"));
                }
            }
            Err(error) => different.push(format!("{id}: {error}")),
        }
    }
}

/// How a request isn't what botocore sends.
fn difference(wanted: &Value, request: &Request) -> Option<String> {
    if let Some(document) = wanted.get("json") {
        if *document == serde_json::from_str::<Value>(&request.body).unwrap()
            && wanted["target"] == request.header("x-amz-target")
        {
            return None;
        }
        return Some(format!("{} in place of {wanted}", request.body));
    }
    let sent: BTreeMap<String, String> = request.form().into_iter().collect();
    let wanted: BTreeMap<String, String> = serde_json::from_value(wanted["form"].clone()).unwrap();
    let names = sent.keys().chain(wanted.keys());
    let name = names
        .into_iter()
        .find(|name| sent.get(*name) != wanted.get(*name))?;
    Some(format!(
        "{name} as {:?} in place of {:?}",
        sent.get(name),
        wanted.get(name)
    ))
}

/// The first place where two values aren't alike.
fn unlike(wanted: &Value, found: &Value, path: &str) -> Option<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let names: std::collections::BTreeSet<&String> =
                wanted.keys().chain(found.keys()).collect();
            names.into_iter().find_map(|name| {
                let (wanted, found) = (wanted.get(name), found.get(name));
                unlike(
                    wanted.unwrap_or(&Value::Null),
                    found.unwrap_or(&Value::Null),
                    &format!("{path}.{name}"),
                )
            })
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => wanted
            .iter()
            .zip(found)
            .enumerate()
            .find_map(|(index, (wanted, found))| {
                unlike(wanted, found, &format!("{path}[{index}]"))
            }),
        _ if wanted == found => None,
        _ => Some(format!("{path} as {found} in place of {wanted}")),
    }
}

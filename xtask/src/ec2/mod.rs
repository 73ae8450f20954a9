//! `cargo xtask gen-ec2-args`: the code between JSON and AWS's SDKs, and the table of what args may
//! hold, made from the services' models.
//!
//! In: the models of a pinned botocore, the sources of the SDKs of `Cargo.lock`. Out: the files of
//! `crates/ec2/src/client/generated` and `src/provider/aws/rules/members.rs`. May not: write a file where
//! model and SDK disagree.

mod calls;
mod members;
mod model;
pub(crate) mod proof;
mod sdk;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use nstance_ec2::Service;

use crate::{Failure, process, venv};

/// The models' version; one of the same weeks as the SDKs of `Cargo.lock`.
const BOTOCORE: &str = "botocore==1.43.127";

const GENERATED: &str = "crates/ec2/src/client/generated";
const MEMBERS: &str = "src/provider/aws/rules/members.rs";

/// A service: where its model and its SDK are.
struct Source {
    service: Service,
    /// Its name in botocore, and the version of its API.
    model: &'static str,
    version: &'static str,
    /// The crate that is its SDK; none if `crates/ec2/src/client/json.rs` calls it.
    sdk: Option<&'static str>,
    /// Our module for it, and the client's field.
    module: &'static str,
}

const SOURCES: &[Source] = &[
    Source {
        service: Service::Ec2,
        model: "ec2",
        version: "2016-11-15",
        sdk: Some("aws-sdk-ec2"),
        module: "ec2",
    },
    Source {
        service: Service::ElasticLoadBalancing,
        model: "elbv2",
        version: "2015-12-01",
        sdk: Some("aws-sdk-elasticloadbalancingv2"),
        module: "elastic_load_balancing",
    },
    Source {
        service: Service::ServiceQuotas,
        model: "service-quotas",
        version: "2019-06-24",
        sdk: None,
        module: "service_quotas",
    },
    Source {
        service: Service::Ssm,
        model: "ssm",
        version: "2014-11-06",
        sdk: None,
        module: "ssm",
    },
    Source {
        service: Service::Sts,
        model: "sts",
        version: "2011-06-15",
        sdk: Some("aws-sdk-sts"),
        module: "sts",
    },
];

/// Writes the files, or says which aren't as they would be written.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let check = match arguments {
        [] => false,
        ["--check"] => true,
        _ => return Err(Failure::say("usage: cargo xtask gen-ec2-args [--check]")),
    };
    let files = generate()?;
    let root = process::root();
    let mut stale: Vec<String> = Vec::new();
    for (path, text) in &files {
        let old = fs::read_to_string(root.join(path)).unwrap_or_default();
        if old != *text {
            stale.push(path.clone());
        }
    }
    let known = |path: &str| files.contains_key(path);
    let leftover: Vec<String> = rust_files(&root.join(GENERATED))?
        .into_iter()
        .map(|path| {
            path.strip_prefix(&root)
                .unwrap_or(&path)
                .display()
                .to_string()
        })
        .filter(|path| !known(path))
        .collect();
    if check {
        if stale.is_empty() && leftover.is_empty() {
            println!("{} generated files are as they should be", files.len());
            return Ok(());
        }
        stale.extend(leftover);
        return Err(Failure::say(format!(
            "not as `cargo xtask gen-ec2-args` writes them:\n  {}",
            stale.join("\n  ")
        )));
    }
    for path in &stale {
        let path_on_disk = root.join(path);
        if let Some(folder) = path_on_disk.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path_on_disk, &files[path])?;
    }
    for path in &leftover {
        fs::remove_file(root.join(path))?;
    }
    println!(
        "{} files, of which {} were written and {} removed",
        files.len(),
        stale.len(),
        leftover.len()
    );
    Ok(())
}

/// Every generated file by its path below the root.
fn generate() -> Result<BTreeMap<String, String>, Failure> {
    let python = venv::ensure("botocore", &[BOTOCORE])?.join("bin/python");
    let crates = sdk::crates()?;
    let mut files = BTreeMap::new();
    let mut complaints = Vec::new();
    for source in SOURCES {
        let Some(sdk_name) = source.sdk else {
            continue;
        };
        let model = model::load(&python, source.model, source.version)?;
        let found = crates.get(sdk_name).ok_or_else(|| {
            Failure::say(format!(
                "`{sdk_name}` isn't a dependency: see ec2/Cargo.toml"
            ))
        })?;
        let header = format!(
            "Made by `cargo xtask gen-ec2-args` from {}/{} of {BOTOCORE}, for {sdk_name} {}.",
            source.model, source.version, found.version
        );
        let sdk = sdk::Sdk::open(sdk_name, &found.folder)?;
        for (name, text) in calls::generate(source, &model, &sdk, &header, &mut complaints)? {
            files.insert(format!("{GENERATED}/{}/{name}", source.module), text);
        }
        if source.service == Service::Ec2 {
            let header = format!(
                "Made by `cargo xtask gen-ec2-args` from {}/{} of {BOTOCORE}.",
                source.model, source.version
            );
            files.insert(MEMBERS.to_owned(), members::generate(&model, &header)?);
        }
    }
    files.insert(format!("{GENERATED}/mod.rs"), calls::index(SOURCES));
    if !complaints.is_empty() {
        complaints.sort();
        complaints.dedup();
        return Err(Failure::say(format!(
            "the models and the SDKs disagree; take versions of the same weeks:\n  {}",
            complaints.join("\n  ")
        )));
    }
    files
        .into_iter()
        .map(|(path, text)| Ok((path, format_rust(&text)?)))
        .collect()
}

/// The text as rustfmt lays it out.
fn format_rust(text: &str) -> Result<String, Failure> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout", "--quiet"])
        .current_dir(process::root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::say(format!("rustfmt: {error}")))?;
    // rustfmt reads everything before it writes.
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(Failure::say(format!("rustfmt failed on:\n{text}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn rust_files(folder: &Path) -> Result<Vec<std::path::PathBuf>, Failure> {
    let mut found = Vec::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

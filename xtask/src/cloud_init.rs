//! `cargo xtask cloud-init --cases N [--from S]`: random layers of user data, given to the real
//! cloud-init as they are and as they were joined.
//!
//! In: a number of cases and a first seed. Out: a line for each case in which cloud-init makes
//! something else of the result than of the parts, or than was said; last `N passed, N failed`. May
//! not: take another cloud-init than Debian's, or install it into the machine.

mod generate;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nstance_cloudinit::layers::{Joined, Layer, Mode, join};
use nstance_cloudinit::yaml::emit;
use serde_json::{Value, json};

use crate::fuzz::random::Random;
use crate::{Failure, process, venv};

/// What cloud-init needs to merge user data.
const PACKAGES: [&str; 7] = [
    "PyYAML==6.0.3",
    "configobj==5.0.9",
    "jinja2==3.1.6",
    "jsonpatch==1.33",
    "jsonschema==4.26.0",
    "oauthlib==4.0.1",
    "requests==2.34.2",
];
const PROGRAM: &str = include_str!("cloud_init.py");

pub(crate) fn run(words: &[&str]) -> Result<(), Failure> {
    let (cases, from) = match words {
        ["--cases", cases] => (cases.parse()?, 0),
        ["--cases", cases, "--from", from] => (cases.parse()?, from.parse()?),
        _ => {
            let usage = "usage: cargo xtask cloud-init --cases N [--from S]";
            return Err(Failure::say(usage));
        }
    };
    compare(from, cases)
}

fn compare(from: u64, cases: u64) -> Result<(), Failure> {
    let library = library()?;
    let python = venv::ensure("cloud-init", &PACKAGES)?.join("bin/python");
    let mut child = Command::new(python)
        .args(["-c", PROGRAM])
        .env("PYTHONPATH", library)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Failure::say("Python has no input and output"));
    };
    let mut answers = BufReader::new(answers).lines();
    let (mut passed, mut failed) = (0, 0);
    for seed in from..from + cases {
        let layers = generate::layers(&mut Random::new(seed));
        for mode in [Mode::Append, Mode::CloudInit, Mode::Nstance] {
            let layers = in_mode(&layers, mode);
            let joined = join(&layers);
            writeln!(questions, "{}", question(&layers, mode, &joined))?;
            let answer = answers
                .next()
                .ok_or_else(|| Failure::say("Python ended before its time"))??;
            let answer: Value = serde_json::from_str(&answer)?;
            match answer["failure"].as_str() {
                None => passed += 1,
                Some(why) => {
                    failed += 1;
                    println!("FAIL seed {seed}, mode {mode}");
                    eprintln!("  {why}\n{}", shown(&layers, &joined));
                }
            }
        }
    }
    drop(questions);
    child.wait()?;
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        return Ok(());
    }
    Err(Failure(String::new()))
}

fn in_mode(layers: &[Layer], mode: Mode) -> Vec<Layer> {
    let layers = layers.iter().cloned();
    layers.map(|layer| Layer { mode, ..layer }).collect()
}

fn question(layers: &[Layer], mode: Mode, joined: &Joined) -> Value {
    let parts: Vec<Value> = layers
        .iter()
        .flat_map(|layer| &layer.parts)
        .map(|part| {
            json!({
                "type": part.content_type.as_deref().unwrap_or("text/plain"),
                "content": base64(&part.content),
                "merge": part.merge,
            })
        })
        .collect();
    let config = joined
        .config
        .as_ref()
        .and_then(|config| emit(config, 1 << 20).ok());
    json!({
        "mode": mode.name(),
        "parts": parts,
        "ours": base64(&joined.bytes),
        "config": config,
    })
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn shown(layers: &[Layer], joined: &Joined) -> String {
    let mut text = String::new();
    for (number, layer) in layers.iter().enumerate() {
        for part in &layer.parts {
            let content = String::from_utf8_lossy(&part.content);
            text.push_str(&format!(
                "--- layer {number}, merge {:?}\n{content}\n",
                part.merge
            ));
        }
    }
    let bytes = String::from_utf8_lossy(&joined.bytes);
    text + "--- result\n" + &bytes
}

/// Debian's cloud-init, unpacked under `target/`.
fn library() -> Result<PathBuf, Failure> {
    let folder = process::root().join("target/cloud-init/debian");
    let library = folder.join("usr/lib/python3/dist-packages");
    if library.join("cloudinit/user_data.py").is_file() {
        return Ok(library);
    }
    if !process::exists("apt-get") {
        let why = "cloud-init comes from Debian's packages, and there is no apt-get";
        return Err(Failure::say(why));
    }
    let downloads = folder.with_file_name("download");
    fs::create_dir_all(&downloads)?;
    let download = || {
        let mut apt = Command::new("apt-get");
        process::run(apt.args(["download", "cloud-init"]).current_dir(&downloads))
    };
    if download().is_err() {
        // A new machine knows no packages yet; only root may ask.
        process::run(Command::new("apt-get").args(["update", "-qq"]))?;
        download()?;
    }
    let package = fs::read_dir(&downloads)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|found| found == "deb"))
        .ok_or_else(|| Failure::say("apt-get downloaded no package"))?;
    process::run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&folder))?;
    Ok(library)
}

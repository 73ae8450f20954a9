//! `cargo xtask kill`: the real program, killed (SIGKILL) at random moments of `apply`, and run
//! again.
//!
//! In: how many rounds, from which seed, in which cloud. Out: what they saw; a failure where an
//! instance was lost, made twice, or isn't what is declared. May not: look anywhere but where a user
//! can: `show`, and the cloud.
//!
//! Each round declares something else, starts `apply`, and kills it: after so many of its events,
//! or after so many milliseconds. Often the next one is killed as well. The last one is left alone,
//! and then exactly what is declared must be there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::account::Account;
use crate::fuzz::random::Random;
use crate::moto::Moto;
use crate::postgres::Postgres;
use crate::project::Project;
use crate::{Failure, process};

/// How many rounds the tests run.
pub(crate) const IN_TESTS: &str = "20";

/// The cloud of a run.
enum Cloud {
    /// The embedded one, each ten rounds another.
    Embedded,
    /// The embedded one, with states on a `PostgreSQL` server.
    Shared(Postgres),
    /// A server that stands for another one.
    Server(Box<dyn Place>),
}

/// An account on a server that stands for a cloud.
pub(crate) trait Place {
    /// Gives a command what it needs to ask.
    fn equip(&self, command: &mut Command);

    /// Lets calls fail, get lost and take time, until [`Self::calm`].
    fn disturb(&self, chance: &mut Random);

    /// Ends all that [`Self::disturb`] began.
    fn calm(&self);

    /// What declares so many instances a group: types, images and tags by chance.
    fn configuration(&self, sizes: &BTreeMap<&'static str, u32>, chance: &mut Random) -> String;

    /// The instances that exist.
    fn live(&self) -> Result<Instances, Failure>;

    /// How long a killed apply might have taken at most; kills by time are spread over this.
    fn longest(&self) -> Duration;
}

/// The last part of a path.
pub(crate) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Cloud {
    fn longest(&self) -> Duration {
        match self {
            Self::Embedded => Duration::from_millis(250),
            Self::Shared(_) => Duration::from_millis(600),
            Self::Server(place) => place.longest(),
        }
    }
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let (mut rounds, mut from, mut built) = (200_u64, 0_u64, false);
    let mut provider = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let given = words.next().and_then(|number| number.parse().ok());
            given.ok_or_else(|| Failure::say(format!("`{word}` takes a number")))
        };
        match *word {
            "--rounds" => rounds = number()?,
            "--from" => from = number()?,
            // Takes the program as it is.
            "--built" => built = true,
            "--aws" | "--gcp" | "--postgres" => provider = word.strip_prefix("--"),
            other => return Err(Failure::say(format!("unknown argument: {other}"))),
        }
    }
    if !built {
        let mut build = process::cargo();
        build.args(["build", "--locked", "--bin", "nstance"]);
        process::run(build.args(provider.map(|provider| format!("--features={provider}"))))?;
    }
    let program = program()?;
    let moto = (provider == Some("aws")).then(Moto::start).transpose()?;
    let mut cloud = Cloud::Embedded;
    let mut tally = Tally::default();
    let began = Instant::now();
    for round in from..from + rounds {
        // Every tenth round begins with nothing; the others go on from what was there.
        let first = round - round % 10;
        if round == from || round == first {
            tally.folder = Some(tempfile::tempdir()?);
            if let Some(moto) = &moto {
                cloud = Cloud::Server(Box::new(Account::new(moto.address())?));
            } else if provider == Some("gcp") {
                cloud = Cloud::Server(Box::new(Project::new()?));
            } else if provider == Some("postgres") {
                let server = Postgres::start()?;
                cloud = Cloud::Shared(server);
                let folder = tally.folder.as_ref().expect("it was just made").path();
                Round::new(round, &program, folder, &cloud).prepare()?;
            }
        }
        let folder = tally.folder.as_ref().map(|folder| folder.path().to_owned());
        let folder = folder.expect("the first round makes one");
        Round::new(round, &program, &folder, &cloud)
            .go(&mut tally)
            .map_err(|Failure(text)| {
                let provider = provider.map(|provider| format!("--{provider} "));
                let provider = provider.unwrap_or_default();
                Failure::say(format!(
                    "round {round}: {text}\nagain: cargo xtask kill {provider}--from {first} --rounds {}",
                    round - first + 1
                ))
            })?;
    }
    println!(
        "{rounds} rounds in {:.0} s: {} applies killed ({} of them with calls open in the journal), \
         {} ended before the kill; {} instances made, {} deleted; nothing lost, nothing twice",
        began.elapsed().as_secs_f64(),
        tally.killed,
        tally.left_open,
        tally.too_late,
        tally.made,
        tally.deleted
    );
    if rounds >= 20 && tally.left_open == 0 {
        return Err(Failure::say("no kill hit anything: the moments are wrong"));
    }
    Ok(())
}

/// The program as it was built last, for development.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| process::root().join("target"), PathBuf::from);
    Ok(std::path::absolute(target.join("debug/nstance"))?)
}

/// What happened so far.
#[derive(Default)]
struct Tally {
    folder: Option<tempfile::TempDir>,
    killed: usize,
    left_open: usize,
    too_late: usize,
    made: usize,
    deleted: usize,
}

/// Instances as (address, our id, the cloud's id).
pub(crate) type Instances = BTreeSet<[String; 3]>;

struct Round<'a> {
    program: &'a Path,
    folder: &'a Path,
    cloud: &'a Cloud,
    chance: Random,
    /// What is declared.
    sizes: BTreeMap<&'static str, u32>,
}

impl<'a> Round<'a> {
    fn new(seed: u64, program: &'a Path, folder: &'a Path, cloud: &'a Cloud) -> Self {
        let mut chance = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let sizes = ["web", "store", "edge"]
            .map(|name| (name, chance.below(9) as u32))
            .into();
        Self {
            program,
            folder,
            cloud,
            chance,
            sizes,
        }
    }

    fn go(&mut self, tally: &mut Tally) -> Result<(), Failure> {
        std::fs::write(self.folder.join("nstance.jsonc"), self.configuration())?;
        let before = self.live()?;
        let kills = 1 + self.chance.below(3);
        for _ in 0..kills {
            if let Cloud::Server(place) = self.cloud {
                place.disturb(&mut self.chance);
            }
            if self.kill()? {
                tally.killed += 1;
            } else {
                tally.too_late += 1;
            }
            tally.left_open += usize::from(self.is_open()?);
        }
        if let Cloud::Server(place) = self.cloud {
            place.calm();
        }
        self.nstance(&["apply", "--auto-approve", "--allow-delete", "all"])?;
        let live = self.check()?;
        tally.made += live.difference(&before).count();
        tally.deleted += before.difference(&live).count();
        let plan = self.nstance(&["plan", "--detailed-exitcode"])?;
        if !plan.contains("No changes.") {
            return Err(Failure::say(format!("something is still to do:\n{plan}")));
        }
        Ok(())
    }

    fn configuration(&mut self) -> String {
        if let Cloud::Server(place) = self.cloud {
            return place.configuration(&self.sizes, &mut self.chance);
        }
        let mut groups = Vec::new();
        for (name, size) in self.sizes.clone() {
            let image = ["ami-1", "ami-2"][self.chance.below(2)];
            let colour = ["red", "blue"][self.chance.below(2)];
            groups.push(format!(
                r#""{name}": {{"kind": "web", "arch": "amd64", "instance_type": "small",
  "size": {size}, "args": {{"ImageId": "{image}", "TagSpecifications":
    [{{"ResourceType": "instance", "Tags": [{{"Key": "colour", "Value": "{colour}"}}]}}]}}}}"#
            ));
        }
        let latency = 2 + self.chance.below(30);
        let stale = [0, 0, 150][self.chance.below(3)];
        let mut text = String::from(r#"{"cluster": {"id": "kill"}, "shard": {"id": "one","#);
        let _ = write!(
            text,
            r#" "infra": {{"provider": "sim", "region": "r", "zone": "za", "options":
  {{"latency": "{latency}ms", "stale_listing": "{stale}ms"}}}}}},
"groups": {{"default": {{{}}}}}}}"#,
            groups.join(",\n")
        );
        text
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(arguments)
            .current_dir(self.folder)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        match self.cloud {
            Cloud::Embedded => {}
            Cloud::Shared(server) => {
                command.env("NSTANCE_STATE", server.url());
                command.env("NSTANCE_STATE_KEY", format!("nstance-key-1-{:064x}", 7));
            }
            Cloud::Server(place) => place.equip(&mut command),
        }
        command
    }

    /// Makes the tables of a server.
    fn prepare(&mut self) -> Result<(), Failure> {
        std::fs::write(self.folder.join("nstance.jsonc"), self.configuration())?;
        self.nstance(&["state", "migrate"]).map(drop)
    }

    /// Runs a command that must end well.
    fn nstance(&self, arguments: &[&str]) -> Result<String, Failure> {
        let output = self.command(arguments).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // 2 says that there are changes, which the output says, too.
        if output.status.success() || output.status.code() == Some(2) {
            return Ok(text(&output.stdout));
        }
        Err(Failure::say(format!(
            "nstance {}: {}\n{}",
            arguments.join(" "),
            output.status,
            text(&output.stderr)
        )))
    }

    /// Starts an apply and kills it; whether it was still running.
    fn kill(&mut self) -> Result<bool, Failure> {
        let mut child = self
            .command(&[
                "apply",
                "--auto-approve",
                "--allow-delete",
                "all",
                "--json",
                "--parallelism",
                "3",
            ])
            .spawn()?;
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        if self.chance.below(2) == 0 {
            let after = self.chance.below(40);
            let mut line = String::new();
            for _ in 0..after {
                line.clear();
                if out.read_line(&mut line)? == 0 {
                    break;
                }
            }
            // Somewhere between this event and the next.
            std::thread::sleep(Duration::from_micros(self.chance.below(20_000) as u64));
        } else {
            let longest = self.cloud.longest().as_millis() as usize;
            let after = self.chance.below(longest) as u64;
            std::thread::sleep(Duration::from_millis(after));
        }
        match self.cloud {
            // The server goes, and comes back; the apply may go on, or give up.
            Cloud::Shared(server) if self.chance.below(3) == 0 => server.crash()?,
            _ => child.kill()?,
        }
        let mut said = String::new();
        out.read_to_string(&mut said)?;
        let status = child.wait()?;
        match status.code() {
            // Ended by the signal.
            None => Ok(true),
            Some(0) => Ok(false),
            // Where calls fail by chance, an apply may give up.
            Some(_) if !matches!(self.cloud, Cloud::Embedded) => Ok(false),
            Some(code) => Err(Failure::say(format!(
                "an apply ended by itself with {code}:\n{said}"
            ))),
        }
    }

    /// Whether the journal holds something open, as `plan` says.
    fn is_open(&self) -> Result<bool, Failure> {
        let output = self.command(&["plan", "--refresh=false"]).output()?;
        Ok(String::from_utf8_lossy(&output.stderr).contains("an earlier apply ended with"))
    }

    fn document(&self, arguments: &[&str]) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&self.nstance(arguments)?)?)
    }

    fn live(&self) -> Result<Instances, Failure> {
        match self.cloud {
            Cloud::Embedded | Cloud::Shared(_) => {
                Ok(triples(&self.document(&["sim", "list", "--json"])?))
            }
            Cloud::Server(place) => place.live(),
        }
    }

    /// Everything that is declared is there once, recorded as what it is, and nothing else.
    fn check(&self) -> Result<Instances, Failure> {
        let live = self.live()?;
        let expected: BTreeSet<String> = self
            .sizes
            .iter()
            .flat_map(|(name, size)| (0..*size).map(move |slot| format!("default/{name}/{slot}")))
            .collect();
        let is_shared = matches!(self.cloud, Cloud::Shared(_)) && !expected.is_empty();
        let recorded = if is_shared || self.folder.join(".nstance/kill/one.db").exists() {
            self.document(&["show", "--json"])?
        } else {
            Value::Null
        };
        let count = recorded["instances"].as_array().map_or(0, Vec::len);
        let recorded = triples(&recorded);
        let addresses: BTreeSet<String> =
            live.iter().map(|[address, ..]| address.clone()).collect();
        if addresses != expected || live.len() != expected.len() {
            return Err(Failure::say(format!(
                "declared: {expected:#?}\nthere: {live:#?}"
            )));
        }
        if live != recorded || count != recorded.len() {
            return Err(Failure::say(format!(
                "there: {live:#?}\nrecorded ({count}): {recorded:#?}"
            )));
        }
        Ok(live)
    }
}

fn triples(document: &Value) -> Instances {
    let rows = document["instances"].as_array();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
    rows.into_iter()
        .flatten()
        .map(|row| ["address", "instance_id", "provider_id"].map(|key| text(row, key)))
        .collect()
}

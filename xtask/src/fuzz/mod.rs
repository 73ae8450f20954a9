//! `cargo xtask fuzz-gotemplate`: our engine against Go, on cases that nobody thought of.
//!
//! In: minutes, a seed, the corpora. Out: the first difference, made small, as a line of the corpus;
//! a count of cases where there was none. May not: be part of CI, since it fetches Go.

mod case;
mod generate;
mod grammar;
mod literals;
mod oracle;
pub(crate) mod random;
pub(crate) mod seeds;
mod shrink;
mod tokens;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nstance_gotemplate::conformance::run_case;
use serde_json::Value as Json;

use crate::conformance::{Verdict, judge};
use crate::{Failure, process};
use case::Case;
use generate::Generator;
use oracle::{Answer, Oracle};

const USAGE: &str = "\
usage: cargo xtask fuzz-gotemplate --minutes N [--seed S] [--keep-going] [--record] [--wording]
       cargo xtask fuzz-gotemplate --check-corpus";

/// How long our engine may take for a case, unoptimised and on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Cases that the oracle is asked at once.
const BATCH: usize = 250;
/// Differences after which even `--keep-going` doesn't.
const ENOUGH: usize = 25;

const CORPUS: &str = "tests/corpora/gotemplate.jsonl";
const FOUND: &str = "tests/corpora/gotemplate-found.jsonl";
const MORE_SEEDS: &str = "crates/gotemplate/tests/corpora/generated.jsonl";

#[derive(Debug, Default, PartialEq)]
struct Arguments {
    minutes: Option<u64>,
    seed: Option<u64>,
    keep_going: bool,
    record: bool,
    check_corpus: bool,
    /// Whether an error in other words than Go's is a difference, too.
    wording: bool,
}

impl Arguments {
    fn parse(words: &[&str]) -> Result<Self, Failure> {
        let mut arguments = Self::default();
        let mut words = words.iter().copied();
        let usage = || Failure::say(USAGE);
        while let Some(word) = words.next() {
            let mut number = || words.next()?.parse().ok();
            match word {
                "--minutes" => arguments.minutes = Some(number().ok_or_else(usage)?),
                "--seed" => arguments.seed = Some(number().ok_or_else(usage)?),
                "--keep-going" => arguments.keep_going = true,
                "--record" => arguments.record = true,
                "--wording" => arguments.wording = true,
                "--check-corpus" => arguments.check_corpus = true,
                _ => return Err(usage()),
            }
        }
        if arguments.minutes.is_none() && !arguments.check_corpus {
            return Err(usage());
        }
        Ok(arguments)
    }
}

pub(crate) fn run(words: &[&str]) -> Result<(), Failure> {
    let arguments = Arguments::parse(words)?;
    let mut oracle = Oracle::build()?;
    let seeds = check_corpus(&mut oracle)?;
    let Some(minutes) = arguments.minutes else {
        return Ok(());
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = arguments
        .seed
        .unwrap_or_else(|| now.map_or(0, |now| now.as_secs()));
    println!("seed {seed}");
    // A panic of the engine is reported as a difference.
    std::panic::set_hook(Box::new(|_| {}));
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    let generator = Generator::new(seed, &seeds);
    let counts = fuzz(generator, oracle, until, &arguments)?;
    println!(
        "{} cases, {} with an answer of Go, {} of them parsed by it, {} executed to the end; {} differences; seed {seed}",
        counts.cases, counts.answered, counts.parsed, counts.executed, counts.different
    );
    if counts.different == 0 {
        return Ok(());
    }
    Err(Failure(String::new()))
}

/// Holds the oracle to the answers that are recorded; returns the cases of all corpora.
fn check_corpus(oracle: &mut Oracle) -> Result<Vec<Case>, Failure> {
    let read = |path: &str| std::fs::read_to_string(process::root().join(path));
    let lines = read(CORPUS)? + &read(FOUND).unwrap_or_default();
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    let answers = oracle.ask(&lines)?;
    let mut wrong = Vec::new();
    for (line, answer) in lines.iter().zip(answers) {
        let recorded: Json = serde_json::from_str(line)?;
        let answer: Option<Json> = answer
            .map(|answer| serde_json::from_str(&answer))
            .transpose()?;
        if answer.as_ref() != Some(&recorded["expect"]) {
            wrong.push(recorded["id"].to_string());
        }
    }
    if !wrong.is_empty() {
        let wrong = wrong.join(", ");
        return Err(Failure::say(format!(
            "the oracle doesn't answer as recorded: {wrong}"
        )));
    }
    println!("the oracle answers {} cases as recorded", lines.len());
    let more = read(MORE_SEEDS)?;
    let all = lines.iter().map(String::as_str).chain(more.lines());
    Ok(all.filter_map(Case::parse).collect())
}

#[derive(Default)]
struct Counts {
    cases: u64,
    answered: u64,
    parsed: u64,
    executed: u64,
    different: u64,
}

/// Asks Go about the next batch while our engine works on this one.
fn fuzz(
    mut generator: Generator,
    mut oracle: Oracle,
    until: Instant,
    arguments: &Arguments,
) -> Result<Counts, Failure> {
    let mut finds = Finds::new(oracle.twin(), arguments);
    let (to_oracle, batches) = mpsc::sync_channel::<Vec<Case>>(1);
    let (to_judge, answered) = mpsc::sync_channel::<Result<Vec<(Case, Answer)>, Failure>>(1);
    let asking = thread::spawn(move || {
        for batch in batches {
            let questions: Vec<String> = batch.iter().map(Case::question).collect();
            let answers = oracle.ask(&questions);
            let answers = answers.map(|answers| batch.into_iter().zip(answers).collect());
            if to_judge.send(answers).is_err() {
                break;
            }
        }
    });
    let mut batch = || -> Vec<Case> { (0..BATCH).map(|_| generator.case()).collect() };
    let gone = || Failure::say("the thread that asks Go is gone");
    let mut counts = Counts::default();
    let mut said = Instant::now();
    to_oracle.send(batch()).map_err(|_| gone())?;
    while Instant::now() < until {
        to_oracle.send(batch()).map_err(|_| gone())?;
        let answers = answered.recv().map_err(|_| gone())??;
        for (case, answer) in answers {
            counts.cases += 1;
            let Some(answer) = answer else {
                continue;
            };
            counts.answered += 1;
            counts.parsed += u64::from(!answer.contains("\"stage\":\"parse\""));
            counts.executed += u64::from(answer.starts_with("{\"ok\":true"));
            if difference(&case, &answer, arguments.wording).is_some() && finds.take(&case)? {
                counts.different += 1;
                if !arguments.keep_going || finds.count() >= ENOUGH {
                    return Ok(counts);
                }
            }
        }
        if said.elapsed() > Duration::from_mins(1) {
            said = Instant::now();
            eprintln!("{} cases, {} differences", counts.cases, counts.different);
        }
    }
    drop(to_oracle);
    drop(answered);
    asking.join().map_err(|_| gone())?;
    Ok(counts)
}

/// What our engine does instead of Go's answer. Limits that only ours has make no difference.
fn difference(case: &Case, answer: &str, wording: bool) -> Option<String> {
    if names_an_address(case, answer) {
        return None;
    }
    let judged = if wording { same_words } else { same_kind };
    judge(&case.answered("", answer), PATIENCE, judged).err()
}

fn same_kind(line: &str) -> Verdict {
    let outcome = run_case(line);
    match (outcome.failure, outcome.limit) {
        (Some(_), Some("steps" | "output_bytes")) | (None, _) => Ok(()),
        (Some(why), _) => Err(why),
    }
}

fn same_words(line: &str) -> Verdict {
    same_kind(line)?;
    let outcome = run_case(line);
    if outcome.same_wording || outcome.limit.is_some() {
        return Ok(());
    }
    Err(format!("worded as {}", outcome.wording.unwrap_or_default()))
}

/// Whether Go printed where something lies in memory (`%p`), which is never the same.
fn names_an_address(case: &Case, answer: &str) -> bool {
    let question = case.question();
    let mut after_percents = question.split('%').skip(1);
    let asked = after_percents.any(|directive| {
        directive
            .trim_start_matches(|character: char| "+-# 0123456789.*[]".contains(character))
            .starts_with('p')
    });
    // What has no size lies in the program itself, at a short address.
    let digits = |text: &str| text.len() >= 6;
    asked
        && answer
            .split(|character: char| !character.is_ascii_hexdigit())
            .any(digits)
}

/// Differences, each made small, told once, and written down where that is asked for.
struct Finds {
    oracle: Oracle,
    known: BTreeSet<String>,
    record: Option<PathBuf>,
    recorded: usize,
    wording: bool,
}

impl Finds {
    fn new(oracle: Oracle, arguments: &Arguments) -> Self {
        let path = process::root().join(FOUND);
        let recorded = std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
        Self {
            oracle,
            known: BTreeSet::new(),
            record: arguments.record.then_some(path),
            recorded,
            wording: arguments.wording,
        }
    }

    fn count(&self) -> usize {
        self.known.len()
    }

    /// Reports a case that differs; false where one like it was.
    fn take(&mut self, case: &Case) -> Result<bool, Failure> {
        let (oracle, wording) = (&mut self.oracle, self.wording);
        let mut answer = |case: &Case| oracle.ask(&[case.question()]).ok()?.pop()?;
        let small = shrink::shrink(case, &mut |case| {
            answer(case).is_some_and(|answer| difference(case, &answer, wording).is_some())
        });
        let again = answer(&small).and_then(|expect| {
            let why = difference(&small, &expect, wording)?;
            Some((expect, why))
        });
        let Some((expect, why)) = again else {
            eprintln!("this differed once: {}", small.question());
            return Ok(false);
        };
        if !self.known.insert(likeness(&small)) {
            return Ok(false);
        }
        self.recorded += 1;
        let line = small.answered(&format!("found-{:03}", self.recorded), &expect);
        println!("{line}\n  {why}");
        if let Some(path) = &self.record {
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)?;
            writeln!(file, "{line}")?;
        }
        Ok(true)
    }
}

/// What cases that differ alike have in common: the template, one digit for many, one letter for
/// all beyond ASCII.
fn likeness(case: &Case) -> String {
    let mut likeness = String::new();
    for character in case.template.chars() {
        let class = match character {
            '0'..='9' => '0',
            other if !other.is_ascii() => 'é',
            other => other,
        };
        if !likeness.ends_with(class) {
            likeness.push(class);
        }
    }
    likeness
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let parsed = Arguments::parse(&["--minutes", "3", "--seed", "7", "--keep-going"]).ok();
        let expected = Arguments {
            minutes: Some(3),
            seed: Some(7),
            keep_going: true,
            ..Arguments::default()
        };
        assert_eq!(parsed, Some(expected));
        for wrong in [
            &[] as &[&str],
            &["--minutes"],
            &["--minutes", "x"],
            &["--record"],
            &["x"],
        ] {
            assert!(Arguments::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(Arguments::parse(&["--check-corpus"]).is_ok());
    }

    #[test]
    fn a_difference_is_one_that_matters() {
        let case = Case {
            template: "{{.}}".to_owned(),
            ..Case::default()
        };
        let output = |text: &str| {
            format!("{{\"ok\":true,\"output\":\"{text}\",\"stage\":\"\",\"error\":\"\"}}")
        };
        assert_eq!(difference(&case, &output("<no value>"), false), None);
        assert!(difference(&case, &output("x"), false).is_some());
        assert!(difference(&case, &output("0x3345294c59b0"), false).is_some());
        let address = Case {
            template: "{{printf \"%-20p\" .}}".to_owned(),
            data: case::Data::List(Vec::new()),
            ..Case::default()
        };
        for address_of_go in ["0x3345294c59b0      ", "0x7be440            "] {
            let answer = output(address_of_go);
            assert_eq!(difference(&address, &answer, false), None);
        }
        assert!(difference(&address, &output("%!p(int=1)"), false).is_some());
        // Only ours has a limit of steps.
        let long = Case {
            template: "{{range 100000000}}{{end}}".to_owned(),
            ..Case::default()
        };
        assert_eq!(difference(&long, &output(""), false), None);
    }

    #[test]
    fn cases_of_one_kind_are_alike() {
        let of = |template: &str| {
            likeness(&Case {
                template: template.to_owned(),
                ..Case::default()
            })
        };
        assert_eq!(of("{{printf \"%10d\" 123}}"), of("{{printf \"%2d\" 4}}"));
        assert_ne!(of("{{printf \"%10d\" 123}}"), of("{{printf \"%10s\" 123}}"));
    }
}

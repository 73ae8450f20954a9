//! `simulate`: lifetimes of many seeds, spread over processes; and faults of our own, each to be
//! found.
//!
//! In: which seeds, for how long. Out: how far it is, and for each lifetime that broke its seed and
//! the command that repeats it. Exit code 1 if any did. May not: run two lifetimes at once in one
//! process: its disk is for one thread at a time.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a program for a terminal, for tests only"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::panic::AssertUnwindSafe;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use nstance::fault_injection::InjectedFault;
use nstance_simulation::crash_points::{self, Ending};
use nstance_simulation::mutants::{self, MUTANTS, Mutant};
use nstance_simulation::{disk, ledger, lifetimes};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = "\
simulate [--seeds N] [--from S] [--minutes M] [--jobs J] [--tell]
simulate --mutants [--from S] [--jobs J]
simulate --points
simulate --disk

  --seeds N    lifetimes (10000)
  --from S     the first one's seed (0)
  --minutes M  end after that time, however many there were
  --jobs J     processes at once (as many as there are cores)
  --tell       say what happens in each
  --points     small fleets, with a death and a power cut at each point there is
  --disk       the store alone, with a fault at each operation of its disk
  --mutants    break nstance in each way there is, and see that it is noticed";

/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(10);
/// How many broken lifetimes are enough.
const ENOUGH: usize = 10;

#[derive(Clone)]
struct Options {
    seeds: u64,
    from: u64,
    minutes: Option<u64>,
    jobs: u64,
    tell: bool,
    mutants: bool,
    disk: bool,
    points: bool,
    /// Of a process's child: each how manieth seed is its own.
    every: Option<u64>,
    /// Of a process's child: the mutant to look for.
    mutant: Option<String>,
    /// Of a process's child: which of [`PARTS`] is its own.
    part: Option<u64>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Self {
            seeds: 10_000,
            from: 0,
            minutes: None,
            jobs: cores as u64,
            tell: false,
            mutants: false,
            disk: false,
            points: false,
            every: None,
            mutant: None,
            part: None,
        };
        while let Some(word) = words.next() {
            let mut number = |least: u64| {
                let given = words.next().and_then(|number| number.parse().ok());
                let given = given.filter(|number: &u64| *number >= least);
                given.ok_or_else(|| format!("`{word}` takes a number from {least}"))
            };
            match word.as_str() {
                "--seeds" => options.seeds = number(1)?,
                "--from" => options.from = number(0)?,
                "--minutes" => options.minutes = Some(number(1)?),
                "--jobs" => options.jobs = number(1)?,
                "--every" => options.every = Some(number(1)?),
                "--part" => options.part = Some(number(0)?),
                "--mutant" => options.mutant = words.next(),
                "--tell" => options.tell = true,
                "--mutants" => options.mutants = true,
                "--disk" => options.disk = true,
                "--points" => options.points = true,
                "--help" | "-h" => return Err(HELP.to_owned()),
                other => return Err(format!("unknown argument: {other}\n\n{HELP}")),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(part) = options.part {
        die_everywhere_in(part);
        return ExitCode::SUCCESS;
    }
    let went_well = match (&options.mutant, options.every) {
        (Some(name), _) => look_for(name, options.from),
        (None, Some(every)) => live_some(&options, every),
        (None, None) if options.tell => live_aloud(&options),
        (None, None) if options.points => die_everywhere(&options),
        (None, None) if options.disk => fail_everywhere(),
        (None, None) if options.mutants => all_mutants(&options),
        (None, None) => all_lifetimes(&options),
    };
    if went_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One lifetime; a panic is a way to break.
fn live(
    seed: u64,
    injected_fault: InjectedFault,
    tell: &mut dyn FnMut(&str),
) -> Result<(), String> {
    static LAST_WORDS: Mutex<String> = Mutex::new(String::new());
    std::panic::set_hook(Box::new(|panic| {
        *LAST_WORDS.lock().unwrap() = panic.to_string();
    }));
    std::panic::catch_unwind(AssertUnwindSafe(|| {
        lifetimes::live(seed, injected_fault, tell)
    }))
    .unwrap_or_else(|_| Err(LAST_WORDS.lock().unwrap().clone()))
}

fn live_aloud(options: &Options) -> bool {
    disk::mount();
    let mut went_well = true;
    for seed in options.from..options.from + options.seeds {
        println!("== {seed}");
        if let Err(broken) = live(seed, InjectedFault::None, &mut |text| println!("{text}")) {
            println!("broken: {broken}");
            went_well = false;
        }
    }
    went_well
}

/// Small fleets by size, and how they end.
const PARTS: [(u32, Ending); 12] = [
    (4, Ending::PowerCut),
    (4, Ending::Death),
    (3, Ending::PowerCut),
    (3, Ending::Death),
    (2, Ending::PowerCut),
    (2, Ending::Death),
    (1, Ending::PowerCut),
    (1, Ending::Death),
    (4, Ending::Stop),
    (3, Ending::Stop),
    (2, Ending::Stop),
    (1, Ending::Stop),
];

fn die_everywhere_in(part: u64) {
    disk::mount();
    let (size, ending) = PARTS[part as usize];
    match crash_points::exhaust_all(size, 1, ending) {
        Ok(cases) => println!("{cases} cases of {size} instances: {ending:?} at each point"),
        Err(broken) => println!("broken: {broken}"),
    }
}

/// Small fleets, and an end at each point.
fn die_everywhere(options: &Options) -> bool {
    let part = |part: usize| ["--part".to_owned(), part.to_string()].to_vec();
    let mut went_well = true;
    side_by_side(
        options.jobs,
        (0..PARTS.len()).map(part).collect(),
        |_, said| {
            went_well &= said.contains(" at each point");
            print!("{said}");
        },
    );
    went_well
}

/// The store alone on a failing disk.
fn fail_everywhere() -> bool {
    disk::mount();
    match ledger::exhaust() {
        Ok(cases) => {
            println!("{cases} failures of the disk; nothing lost, nothing by half");
            true
        }
        Err(broken) => {
            println!("{broken}");
            false
        }
    }
}

/// A child's part: says which seed it is at, and what broke.
fn live_some(options: &Options, every: u64) -> bool {
    disk::mount();
    let began = Instant::now();
    let until = options.minutes.map(Duration::from_mins);
    let mut out = std::io::stdout().lock();
    for seed in (options.from..options.from + options.seeds).step_by(every as usize) {
        if until.is_some_and(|until| began.elapsed() >= until) {
            break;
        }
        writeln!(out, "at {seed}").unwrap();
        if let Err(broken) = live(seed, InjectedFault::None, &mut |_| {}) {
            writeln!(out, "broken {}", broken.replace('\n', "\u{b}")).unwrap();
        }
    }
    writeln!(out, "end").unwrap();
    true
}

fn look_for(name: &str, from: u64) -> bool {
    disk::mount();
    let mutant = MUTANTS.iter().find(|mutant| mutant.name == name).unwrap();
    match mutants::find(mutant, from, |seed, s| live(seed, s, &mut |_| {})) {
        Some((seed, broken)) => println!("{seed} {}", broken.replace('\n', " ")),
        None => println!("unseen"),
    }
    true
}

fn child(arguments: &[String]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a child says.
enum Said {
    At,
    Broken(u64, String),
    Gone,
}

fn listen(mut child: Child, said: &mpsc::Sender<Said>) {
    let (mut at, mut ended) = (0, false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(seed) = line.strip_prefix("at ") {
            at = seed.parse().unwrap();
            said.send(Said::At).unwrap();
        } else if let Some(broken) = line.strip_prefix("broken ") {
            let broken = broken.replace('\u{b}', "\n");
            said.send(Said::Broken(at, broken)).unwrap();
        } else {
            ended = line == "end";
        }
    }
    let status = child.wait().unwrap();
    if !ended || !status.success() {
        let broken = format!("the process ended: {status}");
        said.send(Said::Broken(at, broken)).unwrap();
    }
    said.send(Said::Gone).unwrap();
}

fn all_lifetimes(options: &Options) -> bool {
    let began = Instant::now();
    let (sender, receiver) = mpsc::channel();
    for job in 0..options.jobs.min(options.seeds) {
        let mut arguments = vec![
            "--every".to_owned(),
            options.jobs.to_string(),
            "--from".to_owned(),
            (options.from + job).to_string(),
            "--seeds".to_owned(),
            (options.seeds - job).to_string(),
        ];
        if let Some(minutes) = options.minutes {
            arguments.extend(["--minutes".to_owned(), minutes.to_string()]);
        }
        let (child, sender) = (child(&arguments), sender.clone());
        std::thread::spawn(move || listen(child, &sender));
    }
    drop(sender);
    let (mut lived, mut broken, mut told) = (0_u64, Vec::new(), began);
    for said in receiver {
        match said {
            Said::At => lived += 1,
            Said::Gone => {}
            Said::Broken(seed, text) => {
                println!("\nseed {seed} broke; to see how:");
                println!("  cargo xtask simulate --from {seed} --seeds 1 --tell\n{text}\n");
                broken.push(seed);
                if broken.len() >= ENOUGH {
                    println!("That is enough.");
                    break;
                }
            }
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            let rate = lived as f64 / began.elapsed().as_secs_f64();
            let (seeds, count) = (options.seeds, broken.len());
            println!("{lived} of {seeds} lifetimes, {rate:.0} a second, {count} broken");
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!(
        "\n| seeds | lifetimes | broken | minutes | a second | processes |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: |\n\
         | from {} | {lived} | {} | {:.1} | {:.0} | {} |",
        options.from,
        broken.len(),
        took / 60.0,
        lived as f64 / took,
        options.jobs
    );
    broken.is_empty()
}

/// Runs children, so many at once, and hears what each had to say.
fn side_by_side(jobs: u64, children: Vec<Vec<String>>, mut hear: impl FnMut(usize, String)) {
    let waiting = Mutex::new(children.into_iter().enumerate());
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (sender, waiting) = (sender.clone(), &waiting);
            scope.spawn(move || {
                loop {
                    let Some((place, arguments)) = waiting.lock().unwrap().next() else {
                        return;
                    };
                    let output = child(&arguments).wait_with_output().unwrap();
                    let said = String::from_utf8_lossy(&output.stdout).into_owned();
                    sender.send((place, said)).unwrap();
                }
            });
        }
        drop(sender);
        for (place, said) in receiver {
            hear(place, said);
        }
    });
}

fn all_mutants(options: &Options) -> bool {
    println!("| what is broken | caught by seed | as |\n| --- | ---: | --- |");
    let from = options.from.to_string();
    let words = |mutant: &Mutant| ["--mutant", mutant.name, "--from", &from].map(str::to_owned);
    let children = MUTANTS.iter().map(|mutant| words(mutant).to_vec());
    let mut unseen = 0;
    side_by_side(options.jobs, children.collect(), |place, said| {
        let what = MUTANTS[place].what;
        let caught = said.split_once(' ').and_then(|(seed, broken)| {
            let seed: u64 = seed.parse().ok()?;
            Some((seed, broken.trim_end()))
        });
        if let Some((seed, broken)) = caught {
            println!("| {what} | {seed} | {} |", in_short(broken));
        } else {
            unseen += 1;
            println!("| {what} | **unseen** | |");
        }
    });
    if unseen > 0 {
        let lifetimes = mutants::LIFETIMES;
        println!("\n{unseen} went unseen through {lifetimes} lifetimes.");
    }
    unseen == 0
}

/// What broke, without the whole world around it.
fn in_short(broken: &str) -> String {
    let ends = [", Ran {", ", Course {", ", [Course {"];
    let end = ends.iter().filter_map(|end| broken.find(end)).min();
    let words = broken[..end.unwrap_or(broken.len())].split_whitespace();
    let text = words.collect::<Vec<_>>().join(" ").replace('|', "/");
    let short: String = text.chars().take(120).collect();
    if short.len() < text.len() {
        format!("{short}…")
    } else {
        short
    }
}

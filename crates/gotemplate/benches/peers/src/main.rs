//! How long this crate and its peers take for the templates of `gotemplate/benches/templates`.
//!
//! In: that folder, as the only argument. Out: one JSON object a line for each engine, template and
//! task: the median of several samples, and what was rendered. The engines take turns, so that a
//! busy moment of the machine is everybody's.

mod engines;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use engines::Engine;
use serde_json::json;

const SAMPLES: usize = 41;
const SAMPLE_TIME: Duration = Duration::from_millis(4);
const TEMPLATES: [&str; 2] = ["userdata", "control_flow"];

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let folder = std::env::args_os().nth(1).ok_or("usage: peers FOLDER")?;
    for template in TEMPLATES {
        let path = Path::new(&folder).join(template);
        let text = std::fs::read_to_string(path.with_extension("tmpl"))?;
        let data = std::fs::read_to_string(path.with_extension("json"))?;
        let engines = engines::all(&text, &serde_json::from_str(&data)?)?;
        let parses = medians(engines.iter().map(|engine| &*engine.parse));
        let renders = medians(engines.iter().map(|engine| &*engine.render));
        for (engine, (parse, render)) in engines.iter().zip(parses.into_iter().zip(renders)) {
            let Engine { name, output, .. } = engine;
            println!(
                "{}",
                json!({"engine": name, "template": template, "task": "parse", "nanoseconds": parse})
            );
            println!(
                "{}",
                json!({"engine": name, "template": template, "task": "render", "nanoseconds": render, "output": output})
            );
        }
    }
    Ok(())
}

/// The median time of one call of each task, in nanoseconds.
fn medians<'t>(tasks: impl Iterator<Item = &'t dyn Fn(u32)>) -> Vec<f64> {
    let tasks: Vec<(&dyn Fn(u32), u32)> = tasks.map(|task| (task, calls(task))).collect();
    let mut times = vec![Vec::with_capacity(SAMPLES); tasks.len()];
    for _ in 0..SAMPLES {
        for ((task, calls), times) in tasks.iter().zip(&mut times) {
            times.push(elapsed(task, *calls).as_nanos() as f64 / f64::from(*calls));
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[SAMPLES / 2]
    };
    times.into_iter().map(median).collect()
}

/// How many calls of a task make a sample.
fn calls(task: &dyn Fn(u32)) -> u32 {
    let mut calls = 1;
    while elapsed(task, calls) < SAMPLE_TIME {
        calls *= 2;
    }
    calls
}

fn elapsed(task: &dyn Fn(u32), calls: u32) -> Duration {
    let begin = Instant::now();
    task(calls);
    begin.elapsed()
}

//! Times the stages of a command, for the log and `--verbose`.
//!
//! In: the name of a stage, and its work. Out: the work's result, and an event with the duration.
//! Must not: change the work or its result; nothing decides by these durations.

use std::time::{Duration, Instant};

/// The target of the events. Each has the fields `stage` and `duration_ms`.
pub const TARGET: &str = "nstance::stage";

/// Runs a stage.
pub fn timed<T>(stage: &'static str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let duration_ms = millis(start.elapsed());
    tracing::info!(target: TARGET, stage, duration_ms, "stage ended");
    result
}

/// Milliseconds, to the microsecond.
pub fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1_000.0
}

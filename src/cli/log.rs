//! Logs to standard error, as `NSTANCE_LOG` says, and collects the times of stages for `--verbose`.
//!
//! In: the environment, and the events of nstance's own crates. Out: a line an event, with secrets
//! masked; the times of all stages. Must not: log events of other crates, because the clients of
//! clouds may log whole requests.

use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::console;
use super::failure::Failure;
use crate::diagnostic::Diagnostic;
use crate::redact;
use crate::stage;

/// What to log.
const FILTER: &str = "NSTANCE_LOG";
/// How to log it.
const FORMAT: &str = "NSTANCE_LOG_FORMAT";

/// The prefix of the targets that may be logged.
const OURS: &str = "nstance";

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
}

/// Begins to log, and to time stages if `times_stages`.
///
/// Fails if a variable of the environment is invalid.
pub(super) fn begin(times_stages: bool) -> Result<StageTimes, Failure> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let filter = variable(FILTER).map(|text| filter(&text)).transpose()?;
    let format = variable(FORMAT).map_or(Ok(Format::Text), |text| format(&text))?;
    let stages = StageTimes {
        begun: Instant::now(),
        times: Arc::default(),
    };
    if filter.is_none() && !times_stages {
        return Ok(stages);
    }
    let lines = filter.map(|filter| {
        let lines = fmt::layer().with_ansi(false).with_writer(|| Masked);
        match format {
            Format::Text => lines.with_filter(filter).boxed(),
            Format::Json => {
                let lines = lines.json().flatten_event(true);
                let lines = lines.with_current_span(false).with_span_list(false);
                lines.with_filter(filter).boxed()
            }
        }
    });
    let collector = times_stages.then(|| {
        let only_stages = Targets::new().with_target(stage::TARGET, LevelFilter::INFO);
        Collector(Arc::clone(&stages.times)).with_filter(only_stages)
    });
    let subscriber = tracing_subscriber::registry().with(lines).with(collector);
    // Only a second call fails, and then the first one logs.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(stages)
}

/// The filter of a text: a level, `target=level`, or several of them, separated by commas.
///
/// Fails if a level is unknown, or a target isn't one of nstance.
fn filter(text: &str) -> Result<Targets, Failure> {
    let mut targets = Targets::new();
    for part in text.split(',').map(str::trim) {
        let (target, level) = part.split_once('=').unwrap_or((OURS, part));
        let (target, level) = (target.trim(), level.trim());
        let is_ours = target.split("::").next().is_some_and(|name| {
            let rest = name.strip_prefix(OURS);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        });
        if !is_ours {
            return Err(invalid(
                format!("{FILTER} names the target `{target}`, which isn't one of nstance"),
                "Targets begin with `nstance`, such as `nstance::cloud` or `nstance_state`",
            ));
        }
        let known = LEVELS.iter().find(|(name, _)| *name == level);
        let Some((_, level)) = known else {
            return Err(invalid(
                format!("{FILTER} has an unknown level: `{level}`"),
                "Levels are `error`, `warn`, `info`, `debug` and `trace`; `off` silences a target",
            ));
        };
        targets = targets.with_target(target, *level);
    }
    Ok(targets)
}

/// The format of a text.
///
/// Fails if the format is unknown.
fn format(text: &str) -> Result<Format, Failure> {
    match text {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err(invalid(
            format!("{FORMAT} is `{text}`, which isn't a format"),
            "Formats are `text` and `json`",
        )),
    }
}

fn invalid(summary: String, hint: &str) -> Failure {
    let finding = Diagnostic::error(summary).hint(hint);
    Failure::new(finding.hint(format!("For example: {FILTER}=info,nstance::cloud=debug")))
}

/// Writes one event: a line without secrets.
struct Masked;

impl io::Write for Masked {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        console::error(&line(&String::from_utf8_lossy(event)));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An event as one line without secrets. They are masked first, since they may have several lines.
fn line(event: &str) -> String {
    let masked = redact::text(event.trim_end());
    format!("{}\n", masked.replace('\n', "\\n").replace('\r', "\\r"))
}

/// The times of stages, each with its name, in the order in which they first ended.
type Times = Arc<Mutex<Vec<(String, Duration)>>>;

/// The times of a command's stages.
pub(super) struct StageTimes {
    begun: Instant,
    times: Times,
}

impl StageTimes {
    /// A line for each stage, and the total.
    pub(super) fn lines(&self) -> String {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        stage_lines(&times, self.begun.elapsed())
    }
}

fn stage_lines(times: &[(String, Duration)], total: Duration) -> String {
    let timed = times.iter().map(|(_, time)| *time).sum();
    // Shards that are applied at once take longer together than the whole.
    let rest = total.saturating_sub(timed);
    let rest = (!rest.is_zero()).then_some(("other", rest));
    let stages = times.iter().map(|(stage, time)| (&**stage, *time));
    let all = stages.chain(rest).chain([("total", total)]);
    let mut lines = String::new();
    for (stage, time) in all {
        lines.push_str(&format!("  {stage:<22} {:>9.3} s\n", time.as_secs_f64()));
    }
    lines
}

/// Collects the times of stages.
struct Collector(Times);

impl<S: Subscriber> Layer<S> for Collector {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = StageFields::default();
        event.record(&mut fields);
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match times.iter_mut().find(|(stage, _)| *stage == fields.stage) {
            Some((_, time)) => *time += fields.duration,
            None => times.push((fields.stage, fields.duration)),
        }
    }
}

/// The fields of a stage's event.
#[derive(Default)]
struct StageFields {
    stage: String,
    duration: Duration,
}

impl Visit for StageFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "stage" {
            value.clone_into(&mut self.stage);
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if field.name() == "duration_ms" {
            self.duration = Duration::from_secs_f64(value / 1_000.0);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn only_own_targets_pass_a_filter() {
        let passes = |text: &str, target: &str, level: Level| {
            filter(text).unwrap().would_enable(target, &level)
        };
        for (text, target, level, expected) in [
            ("info", "nstance::cloud", Level::INFO, true),
            ("info", "nstance_state::store", Level::INFO, true),
            ("info", "nstance::cloud", Level::DEBUG, false),
            ("trace", "aws_smithy_runtime", Level::ERROR, false),
            ("trace", "hyper", Level::ERROR, false),
            ("off", "nstance::apply", Level::ERROR, false),
            (
                "warn, nstance::cloud=debug",
                "nstance::cloud",
                Level::DEBUG,
                true,
            ),
            (
                "warn,nstance::cloud=debug",
                "nstance::apply",
                Level::INFO,
                false,
            ),
            ("nstance_state=debug", "nstance::cloud", Level::ERROR, false),
        ] {
            assert_eq!(passes(text, target, level), expected, "{text}: {target}");
        }
    }

    #[test]
    fn an_invalid_filter_is_reported() {
        for (text, part) in [
            ("verbose", "unknown level: `verbose`"),
            ("INFO", "unknown level: `INFO`"),
            ("info,", "unknown level: ``"),
            ("nstance=loud", "unknown level: `loud`"),
            ("hyper=trace", "target `hyper`"),
            ("nstances=trace", "target `nstances`"),
            ("nstance::cloud", "unknown level"),
        ] {
            let failure = filter(text).unwrap_err();
            let summary = &failure.findings.iter().next().unwrap().summary;
            assert!(summary.contains(part), "{text}: {summary}");
        }
        assert_eq!(format("json").unwrap(), Format::Json);
        assert!(format("yaml").is_err());
    }

    #[test]
    fn an_event_is_one_line_without_secrets() {
        redact::know(["first line of it\nsecond line of it"]);
        assert_eq!(
            line("error=first line of it\nsecond line of it and\r\nmore\n"),
            "error=(sensitive value) and\\r\\nmore\n"
        );
    }

    #[test]
    fn stages_have_a_rest_and_a_total() {
        let times = [
            ("read configuration".to_owned(), Duration::from_millis(12)),
            ("list instances".to_owned(), Duration::from_millis(1_240)),
        ];
        insta::assert_snapshot!(stage_lines(&times, Duration::from_millis(1_300)), @r"
          read configuration         0.012 s
          list instances             1.240 s
          other                      0.048 s
          total                      1.300 s
        ");
        let total = Duration::from_secs(1);
        assert!(!stage_lines(&times, total).contains("other"));
    }
}

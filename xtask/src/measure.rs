//! The real binary against the targets: how long it takes, how much memory.
//!
//! In: the binary, fleets to try. Out: a row for each target. May not: judge a single run: medians
//! are judged. The fastest run stands beside them, since on a machine that is shared the rest of a
//! median is others' work.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// Runs of each measurement, at least.
const RUNS: usize = 11;

/// What is quick is run more often, for so long: on a machine that others use too, a few runs in a
/// row are all in the same good or bad moment.
const SPAN: Duration = Duration::from_secs(3);

/// One line of the table.
pub(crate) struct Row {
    /// What was measured.
    pub(crate) what: String,
    /// What it should be at most; `None` where nothing was promised.
    pub(crate) target: Option<String>,
    /// What it is.
    pub(crate) measured: String,
    /// The fastest of several runs.
    pub(crate) fastest: Option<String>,
    /// Whether that is within the target.
    pub(crate) met: Option<bool>,
}

impl Row {
    fn time(what: impl Into<String>, times: Times, target: Option<Duration>) -> Self {
        Self {
            what: what.into(),
            target: target.map(shown),
            measured: shown(times.median),
            fastest: Some(shown(times.fastest)),
            met: target.map(|target| times.median <= target),
        }
    }
}

/// How long runs of the binary took.
#[derive(Clone, Copy)]
struct Times {
    median: Duration,
    fastest: Duration,
}

/// Measures everything; no fleet is larger than `up_to`.
pub(crate) fn run(binary: &Path, up_to: u32) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();

    let start_up = times(binary, folder.path(), &["--version"])?;
    rows.push(Row::time("start-up (`--version`)", start_up, millis(10)));

    // So much JSON that it becomes a megabyte of each language.
    for (language, bytes) in [("jsonc", 1_000_000), ("yaml", 1_020_000), ("hcl", 880_000)] {
        std::fs::write(folder.path().join("nstance.jsonc"), of_size(bytes))?;
        let of_language = tempfile::tempdir()?;
        let file = of_language.path().join(format!("nstance.{language}"));
        let file = file.display().to_string();
        once(
            binary,
            folder.path(),
            &["convert", "--to", language, "--out", &file],
        )?;
        let validated = times(binary, of_language.path(), &["validate"])?;
        rows.push(Row::time(
            format!("`validate`, 1 MB of {}", language.to_uppercase()),
            validated,
            None,
        ));
    }

    std::fs::write(folder.path().join("nstance.jsonc"), groups_of_one())?;
    let planned = times(binary, folder.path(), &["plan", "--quiet"])?;
    rows.push(Row::time(
        "`plan`, 10,000 groups of one instance, all to create",
        planned,
        None,
    ));

    for (count, time, memory) in [
        (1_000, 30, None),
        (10_000, 150, None),
        (100_000, 1_000, Some(300)),
    ] {
        if count > up_to {
            continue;
        }
        eprintln!("measuring a fleet of {count}");
        rows.extend(fleet(binary, count, Duration::from_millis(time), memory)?);
    }
    Ok(rows)
}

/// A fleet is made once, then planned again and again with nothing to change.
fn fleet(
    binary: &Path,
    count: u32,
    time: Duration,
    memory: Option<u64>,
) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("nstance.jsonc"), configuration(count))?;
    let first_plan = times(binary, folder.path(), &["plan", "--quiet"])?;
    let applied = once(
        binary,
        folder.path(),
        &["apply", "--auto-approve", "--quiet"],
    )?;
    let plan = times(binary, folder.path(), &["plan", "--detailed-exitcode"])?;
    let each = applied / count;
    let mut rows = vec![
        Row::time(
            format!("`plan`, {} instances, no change", grouped(count)),
            plan,
            Some(time),
        ),
        Row::time(
            format!("`plan`, {} to create", grouped(count)),
            first_plan,
            None,
        ),
        Row {
            what: format!("`apply`, {} to create, each", grouped(count)),
            target: None,
            measured: shown(each),
            fastest: None,
            met: None,
        },
    ];
    if let Some(peak) = peak(binary, folder.path(), &["plan", "--detailed-exitcode"])? {
        let megabytes = peak.div_ceil(1_000_000);
        rows.insert(
            1,
            Row {
                what: format!("its memory, {} instances", grouped(count)),
                target: memory.map(|target| format!("{target} MB")),
                measured: format!("{megabytes} MB"),
                fastest: None,
                met: memory.map(|target| megabytes <= target),
            },
        );
    }
    Ok(rows)
}

/// Groups of a thousand, with an image, args and userdata that have templates; half of the groups
/// have userdata that is each instance's own, which is the slow case.
fn configuration(count: u32) -> String {
    let mut groups = String::new();
    for group in 0..count.div_ceil(1_000) {
        let size = (count - group * 1_000).min(1_000);
        let template = if group % 2 == 0 { "own" } else { "shared" };
        let _ = write!(
            groups,
            r#""g{group}": {{"template": "{template}", "size": {size}, "vars": {{"GROUP": "g{group}"}}}},"#
        );
    }
    format!(
        r##"{{
  "cluster": {{"id": "bench"}},
  "shard": {{"id": "bench", "infra": {{"provider": "sim", "region": "r", "zone": "z"}}}},
  "images": {{"debian": {{"provider": "sim", "filters": [{{"name": "name", "values": ["debian-13"]}}]}}}},
  "defaults": {{"args": {{"ImageId": "{{{{ .Image.debian }}}}", "Monitoring": {{"Enabled": true}}}}}},
  "templates": {{
    "own": {{
      "kind": "own", "arch": "amd64", "instance_type": "m1",
      "args": {{"Host": "{{{{ .Instance.Hostname }}}}"}},
      "userdata": "#cloud-config\nhostname: {{{{ .Instance.Hostname }}}}\nfqdn: {{{{ .Instance.FQDN }}}}\nruncmd:\n- [echo, {{{{ .Vars.GROUP }}}}, {{{{ .Instance.Index }}}}]\n"
    }},
    "shared": {{
      "kind": "shr", "arch": "amd64", "instance_type": "m1",
      "userdata": "#cloud-config\nruncmd:\n- [echo, {{{{ .Vars.GROUP }}}}, {{{{ .Cluster.ID }}}}]\n"
    }}
  }},
  "groups_form": "nested",
  "groups": {{"default": {{{groups}}}}}
}}
"##
    )
}

/// Ten thousand groups of one instance each.
fn groups_of_one() -> String {
    let mut groups = String::new();
    for group in 0..10_000 {
        let _ = write!(
            groups,
            r#""g{group}": {{"template": "shared", "vars": {{"GROUP": "g{group}"}}}},"#
        );
    }
    let shard = configuration(0);
    let (head, _) = shard.split_once(r#""groups":"#).unwrap_or_default();
    format!(r#"{head}"groups": {{"default": {{{groups}}}}}}}"#)
}

/// A configuration of about so many bytes: groups that each say what they are.
fn of_size(bytes: usize) -> String {
    let mut groups = String::new();
    let mut group = 0;
    while groups.len() < bytes {
        let _ = write!(
            groups,
            r##"
    "g{group}": {{
      "kind": "grp", "arch": "amd64", "instance_type": "m{group}", "size": 3,
      "args": {{"SecurityGroupIds": ["sg-{group}"], "MetadataOptions": {{"HttpTokens": "required"}}}},
      "vars": {{"NAME": "group {group}"}},
      "userdata": "#cloud-config\nhostname: {{{{ .Instance.Hostname }}}}\nruncmd:\n- [echo, {{{{ .Vars.NAME }}}}, of-{group}]\n",
    }},"##
        );
        group += 1;
    }
    format!(
        r#"{{
  "cluster": {{"id": "bench"}},
  "shard": {{"id": "large", "infra": {{"provider": "sim", "region": "r", "zone": "z"}}}},
  "groups_form": "nested",
  "groups": {{"default": {{{groups}}}}},
}}
"#
    )
}

fn times(binary: &Path, folder: &Path, arguments: &[&str]) -> Result<Times, Failure> {
    let began = Instant::now();
    let mut runs = Vec::with_capacity(RUNS);
    while runs.len() < RUNS || began.elapsed() < SPAN {
        runs.push(once(binary, folder, arguments)?);
    }
    runs.sort();
    Ok(Times {
        median: runs[runs.len() / 2],
        fastest: runs[0],
    })
}

fn once(binary: &Path, folder: &Path, arguments: &[&str]) -> Result<Duration, Failure> {
    let began = Instant::now();
    let mut child = start(binary, folder, arguments)?;
    let status = child.wait()?;
    let elapsed = began.elapsed();
    succeeded(status, arguments)?;
    Ok(elapsed)
}

/// The most memory that a run of its own has at once, in bytes; `None` where the system doesn't
/// tell. The kernel forgets it with the process, so it is asked all the time, which costs time.
fn peak(binary: &Path, folder: &Path, arguments: &[&str]) -> Result<Option<u64>, Failure> {
    let mut child = start(binary, folder, arguments)?;
    let mut peak = None;
    while let Some(seen) = peak_of(child.id()) {
        peak = Some(seen);
        std::thread::sleep(Duration::from_millis(2));
    }
    succeeded(child.wait()?, arguments)?;
    Ok(peak)
}

fn start(binary: &Path, folder: &Path, arguments: &[&str]) -> Result<Child, Failure> {
    let child = Command::new(binary)
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()?;
    Ok(child)
}

fn succeeded(status: ExitStatus, arguments: &[&str]) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    let words = arguments.join(" ");
    Err(Failure::say(format!("nstance {words}: {status}")))
}

/// The most memory a process has had; `None` once it is over, or where there is no such file.
fn peak_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a target, which a row may have or not"
)]
fn millis(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

/// A duration in three digits.
fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = match seconds {
        1.0.. => (seconds, "s"),
        0.001.. => (seconds * 1e3, "ms"),
        _ => (seconds * 1e6, "µs"),
    };
    let digits = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} {unit}")
}

/// `100,000`
fn grouped(count: u32) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_people_write_them() {
        for (micros, text) in [
            (12, "12 µs"),
            (1_500, "1.5 ms"),
            (30_000, "30 ms"),
            (1_234_567, "1.23 s"),
        ] {
            assert_eq!(shown(Duration::from_micros(micros)), text);
        }
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(count), text);
        }
    }

    #[test]
    fn a_target_is_met_up_to_itself() {
        let row = |millis| {
            let median = Duration::from_millis(millis);
            let fastest = Duration::from_millis(1);
            Row::time(
                "x",
                Times { median, fastest },
                Some(Duration::from_millis(10)),
            )
            .met
        };
        assert_eq!(row(10), Some(true));
        assert_eq!(row(11), Some(false));
    }

    #[test]
    fn a_megabyte_is_one() {
        assert!((1_000_000..1_010_000).contains(&of_size(1_000_000).len()));
    }
}

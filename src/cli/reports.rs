//! The formats of `plan`, `apply` and `drift`.
//!
//! In: the options, and what a run found. Out: the report on standard output, further ones in files,
//! and what GitHub Actions reads. Must not: plan, or decide an exit code but for a file that can't
//! be written.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

use clap::{Args, ValueEnum};

use super::exit::worst;
use super::failure::{Failure, Failures};
use super::fleet::{Fleet, Form};
use super::{Ending, Globals, console, exit, output};
use crate::config::source::SourceMap;
use crate::diagnostic::Diagnostic;
use crate::plan::change::{Plan, Summary};
use crate::redact;
use crate::report::diagnostic;
use crate::report::github::{self, Repository};
use crate::report::junit;
use crate::report::markdown::{self, markdown};
use crate::report::review::{Applied, Run, Shard, Subject};

/// Options for the result's format.
#[derive(Debug, Clone, Default, Args)]
pub struct Reports {
    /// Print the result in this format
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Write the result in another format, too (may repeat)
    ///
    /// FORMAT=FILE, such as markdown=plan.md; a FILE of - is standard output.
    #[arg(long, value_name = "FORMAT=FILE")]
    report: Vec<ReportFile>,
    /// Whether the files were checked, and one can't be used.
    #[arg(skip)]
    unusable: Cell<bool>,
}

/// The files of configurations, which no report may replace.
struct Sources(HashSet<PathBuf>);

impl Sources {
    fn of<'s>(sources: impl Iterator<Item = &'s SourceMap>) -> Self {
        let files = sources.flat_map(SourceMap::files);
        Self(files.map(|name| place(Path::new(name))).collect())
    }

    /// Fails if a file of the configuration, a saved plan, a state or a key has this name, or if the
    /// file can't be written.
    fn check(&self, path: &Path) -> Result<(), Failure> {
        if self.0.contains(&place(path)) {
            let name = path.display();
            let what = format!("will not overwrite {name}: a file of the configuration");
            return Err(Failure::say(what));
        }
        output::check_report(path)
    }
}

/// A path by which the same file is the same, as far as it exists.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
    /// For comments on pull requests
    Markdown,
    /// For GitHub Actions: annotations, job summary, outputs
    Github,
    /// The Terraform report of GitLab (not for drift)
    Gitlab,
    /// The tests that CI servers show (drift only)
    Junit,
}

impl Format {
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn fits(self, subject: Subject) -> bool {
        let is_drift = matches!(subject, Subject::Drift { .. });
        match self {
            Self::Text | Self::Json | Self::Markdown | Self::Github => true,
            Self::Gitlab => !is_drift,
            Self::Junit => is_drift,
        }
    }
}

/// A report for a file.
#[derive(Debug, Clone)]
struct ReportFile {
    format: Format,
    file: PathBuf,
}

impl FromStr for ReportFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').filter(|(_, file)| !file.is_empty());
        let (format, file) = parts.ok_or("expected FORMAT=FILE, such as markdown=plan.md")?;
        let known = || {
            let names = Format::value_variants().iter().map(|format| format.name());
            names.collect::<Vec<_>>().join(", ")
        };
        Ok(Self {
            format: Format::from_str(format, false)
                .map_err(|_| format!("`{format}` is not a format: {}", known()))?,
            file: file.into(),
        })
    }
}

/// What a run found in a shard.
#[derive(Debug, Default)]
pub struct Found {
    /// Its plan; `None` if planning failed.
    pub plan: Option<Plan>,
    /// The counts of the changes that are reported.
    pub planned: Summary,
    /// What was applied.
    pub applied: Option<Applied>,
}

impl Found {
    /// Whether there is drift; `None` if the shard wasn't examined.
    pub fn drifted(&self) -> Option<bool> {
        let plan = self.plan.as_ref()?;
        let drifted = plan.drift.iter().any(|drift| !drift.accepted);
        Some(drifted || self.planned.has_changes())
    }
}

impl Reports {
    /// Whether the text is printed.
    pub fn prints_text(&self) -> bool {
        matches!(self.format, None | Some(Format::Text | Format::Github))
    }

    /// Whether one of the files is a JSON document.
    pub fn have_document(&self) -> bool {
        self.report
            .iter()
            .any(|report| report.format == Format::Json)
    }

    /// How the replies of shards are combined.
    pub fn form(&self, globals: &Globals) -> Form {
        if globals.json {
            Form::Documents
        } else if self.prints_text() {
            Form::Headed
        } else {
            Form::Plain
        }
    }

    /// Whether anything is made of what a run found, beyond the text or documents that it prints.
    pub fn collects(&self) -> bool {
        let own = !matches!(self.format, None | Some(Format::Text | Format::Json));
        own || !self.report.is_empty()
    }

    /// Runs a command, and reports its failure if it stops before it found anything.
    pub fn around(&self, subject: Subject, run: impl FnOnce() -> Ending) -> Ending {
        self.check_formats(subject)?;
        if self.format == Some(Format::Github) {
            console::print(&format!("::stop-commands::{}\n", token()));
        }
        run().inspect_err(|failures| {
            let shards = failures.iter();
            let shards = shards.map(|(failure, sources)| shard_of(failure, sources));
            let run = Run {
                subject,
                shards: shards.collect(),
                mend: None,
                link: link(),
            };
            if let Err(failure) = self.write(&run, failures.code()) {
                let findings = diagnostic::render(&failure.findings, &SourceMap::default(), false);
                console::error(&findings);
            }
        })
    }

    fn check_formats(&self, subject: Subject) -> Result<(), Failures> {
        let files = self.report.iter().map(|report| report.format);
        let printed = self.report.iter().filter(|it| it.file.as_os_str() == "-");
        if printed.count() + usize::from(!self.prints_text()) > 1 {
            let finding = Diagnostic::error("standard output has room for one report")
                .hint("Write the others to files: --report FORMAT=FILE");
            return Err(Failure::new(finding).into());
        }
        let mut all = self.format.into_iter().chain(files);
        let Some(format) = all.find(|format| !format.fits(subject)) else {
            return Ok(());
        };
        let (name, command) = (format.name(), subject.name());
        let fitting = Format::value_variants().iter();
        let fitting: Vec<String> = fitting
            .filter(|format| format.fits(subject))
            .map(|format| format.name())
            .collect();
        let finding = Diagnostic::error(format!("`{command}` has no format `{name}`"))
            .hint(format!("its formats: {}", fitting.join(", ")));
        Err(Failure::new(finding).into())
    }

    /// Checks the files of reports before anything is done. `pages` are further reports of the
    /// command, `others` its other files.
    ///
    /// Fails if two results would have one file, if one is part of the configuration, or if one
    /// can't be written.
    pub fn check_files<'p>(
        &'p self,
        fleet: &Fleet<'_>,
        others: impl IntoIterator<Item = &'p Path>,
        pages: impl IntoIterator<Item = &'p Path>,
    ) -> Result<(), Failure> {
        let sources = fleet.shards.iter().map(|session| &session.loaded.sources);
        let sources = Sources::of(sources);
        let mut seen: HashSet<PathBuf> = others.into_iter().map(place).collect();
        let reports = self.files().map(|report| &*report.file);
        let checked = pages.into_iter().chain(reports).try_for_each(|path| {
            if !seen.insert(place(path)) {
                let name = path.display();
                return Err(Failure::say(format!(
                    "two results would have one file: {name}"
                )));
            }
            sources.check(path)
        });
        self.unusable.set(checked.is_err());
        checked
    }

    /// The reports for files.
    fn files(&self) -> impl Iterator<Item = &ReportFile> {
        self.report
            .iter()
            .filter(|report| report.file.as_os_str() != "-")
    }

    /// Writes all reports of a finished run; returns its exit code.
    pub fn publish(
        &self,
        fleet: &Fleet<'_>,
        subject: Subject,
        found: Vec<Found>,
        mend: Option<String>,
        code: u8,
    ) -> u8 {
        if !self.collects() {
            return code;
        }
        let shards = fleet.shards.iter().zip(found).map(|(session, found)| {
            let identity = session.identity();
            Shard {
                identity: Some((identity.cluster, identity.shard)),
                label: session.label.clone(),
                plan: found.plan,
                planned: found.planned,
                findings: session.reported(),
                sources: &session.loaded.sources,
                applied: found.applied,
            }
        });
        let run = Run {
            subject,
            shards: shards.collect(),
            mend,
            link: link(),
        };
        match self.write(&run, code) {
            Ok(()) => code,
            Err(failure) => {
                fleet.fail(&failure.findings);
                worst([code, exit::ERROR])
            }
        }
    }

    fn write(&self, run: &Run<'_>, code: u8) -> Result<(), Failure> {
        if self.format == Some(Format::Github) {
            console::print_report(&format!("::{}::\n", token()));
        }
        if let Some(format) = self.format
            && !matches!(format, Format::Text | Format::Json)
        {
            console::print_report(&rendered(run, format));
        }
        if self.unusable.get() {
            return Ok(());
        }
        // Without a valid configuration, the files weren't checked before.
        let sources = Sources::of(run.shards.iter().map(|shard| shard.sources));
        for report in &self.report {
            // Its counts can't say that planning failed.
            if report.format == Format::Gitlab && !run.is_planned() {
                continue;
            }
            let text = redact::text(&rendered(run, report.format)).into_owned();
            if report.file.as_os_str() == "-" {
                console::print_report(&text);
            } else {
                sources.check(&report.file)?;
                output::write(&report.file, &text)?;
            }
        }
        let files = self.report.iter().map(|report| report.format);
        if self
            .format
            .into_iter()
            .chain(files)
            .any(|it| it == Format::Github)
        {
            let summary = markdown(run, markdown::JOB_SUMMARY);
            append("GITHUB_STEP_SUMMARY", &summary)?;
            append("GITHUB_OUTPUT", &github::outputs(run, code))?;
        }
        Ok(())
    }
}

/// A shard that failed before it had a session.
fn shard_of<'f>(failure: &Failure, sources: &'f SourceMap) -> Shard<'f> {
    Shard {
        identity: None,
        label: None,
        plan: None,
        planned: Summary::default(),
        findings: failure.findings.clone(),
        sources,
        applied: None,
    }
}

fn rendered(run: &Run<'_>, format: Format) -> String {
    let pretty = |value| {
        let value = redact::json(&value).into_owned();
        let text = serde_json::to_string_pretty(&value);
        text.expect("a document's keys are strings") + "\n"
    };
    match format {
        Format::Text => run.text(),
        Format::Json => pretty(run.json()),
        Format::Markdown => markdown(run, markdown::COMMENT),
        Format::Github => {
            let working = std::env::current_dir().unwrap_or_default();
            let root = std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
            let repository = root.as_deref().map(|root| Repository {
                root,
                working: &working,
            });
            github::annotations(run, repository)
        }
        Format::Gitlab => pretty(run.gitlab()),
        Format::Junit => junit::junit(run),
    }
}

/// The URL of the job that runs this, on GitHub and GitLab.
fn link() -> Option<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let on_github = || {
        let server = variable("GITHUB_SERVER_URL")?;
        let repository = variable("GITHUB_REPOSITORY")?;
        let run = variable("GITHUB_RUN_ID")?;
        Some(format!("{server}/{repository}/actions/runs/{run}"))
    };
    on_github().or_else(|| variable("CI_JOB_URL"))
}

/// Appends to the file that a variable of GitHub Actions names, if it is set.
fn append(variable: &str, text: &str) -> Result<(), Failure> {
    let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = Path::new(&path);
    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(redact::text(text).as_bytes()));
    written.map_err(|error| Failure::say(format!("can't write ${variable}: {error}")))
}

/// The word that ends the part of a log without workflow commands. Nobody can guess it.
fn token() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(|| {
        let random = || RandomState::new().build_hasher().finish();
        format!("nstance-{:016x}{:016x}", random(), random())
    })
}

//! The command line: each subcommand's file parses, calls the stages and prints.
//!
//! In: arguments and the environment. Out: text, JSON, an exit code. Must not: make decisions of
//! the stages. Only this module and `main` print, or read the environment.

pub mod apply;
mod apply_log;
pub mod apply_shard;
pub mod approval;
mod backend;
pub mod completions;
pub mod console;
pub mod convert;
pub mod doctor;
pub mod drift;
pub mod exit;
pub mod explain;
pub mod failure;
pub mod fleet;
pub mod fmt;
pub mod graph;
pub mod history;
pub mod images;
pub mod import;
pub mod init;
pub mod jobs;
mod jobs_dns;
mod jobs_services;
pub mod keys;
pub mod live_page;
mod log;
mod migrate;
pub mod outcome;
pub mod output;
pub mod page;
pub mod plan;
pub mod plan_args;
pub mod plan_files;
pub mod progress;
pub mod rekey;
pub mod render;
mod render_userdata;
pub mod report;
pub mod reports;
pub mod rollout;
pub mod run_errand;
pub mod schema;
pub mod selection;
pub mod session;
pub mod show;
pub mod signals;
pub mod sim;
pub mod state;
pub mod state_edit;
pub mod tally;
pub mod transfer;
pub mod undo;
pub mod userdata;
pub mod validate;
pub mod watch;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::check::Purpose;
use crate::clock::Timestamp;
use crate::config::duration::parse_duration;
use crate::config::load::Loaded;
use crate::config::model::ProviderKind;
use crate::config::source::SourceMap;
use crate::config::variables::{Dialect, Given};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::dialect::bosh;
use crate::provider::sim::{DEFAULT_PATH, SimOptions};
use crate::render::erb;
use crate::report::{diagnostic, json, text};
use failure::{Failure, Failures};
use nstance_bosh::instances::Profile;
use reports::Format;

/// A declarative planner for fleets of cloud VMs.
#[derive(Debug, Parser)]
#[command(name = "nstance", version, after_long_help = exit::HELP, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// The values of `--from`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum From {
    /// Of nstance, or of the Nstance server
    Nstance,
    /// The specification of an instance group of Yandex Cloud
    Yandex,
    /// A deployment manifest of BOSH
    Bosh,
}

/// The values of `--profile`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ManifestProfile {
    /// In each zone; names as those of Quarks
    Quarks,
    /// In total; names as those of BOSH's DNS
    Bosh,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Read the configuration from this file or folder [default: .]
    ///
    /// May repeat, for a shard each. `NSTANCE_CONFIG` is used without it; several paths are
    /// separated as in PATH.
    #[arg(short, long, value_name = "PATH")]
    config: Vec<PathBuf>,
    /// Use the state at this URL
    ///
    /// `sqlite:PATH` or `postgresql://HOST/DATABASE`, in which {cluster} and {shard} are replaced.
    /// The default is the configuration's `state`, else .nstance/CLUSTER/SHARD.db beside the
    /// configuration.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "URL",
        env = "NSTANCE_STATE",
        hide_env_values = true
    )]
    state: Option<String>,
    /// Read the keys of states and saved plans from this file
    ///
    /// Without it, keys come from `NSTANCE_STATE_KEY`, `NSTANCE_STATE_PASSPHRASE`, or .nstance/key
    /// beside the configuration, which is made with the first state.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "FILE",
        env = "NSTANCE_KEY_FILE",
        hide_env_values = true
    )]
    key_file: Option<PathBuf>,
    /// Read the configuration as one of this program [default: by its shape]
    // `state mv` has an argument of this name.
    #[arg(
        id = "dialect",
        long = "from",
        global = true,
        hide_short_help = true,
        value_enum,
        value_name = "PROGRAM",
        env = "NSTANCE_FROM",
        hide_env_values = true
    )]
    from: Option<From>,
    /// Use the embedded cloud with the configured one's rules
    #[arg(long, global = true, env = "NSTANCE_SIM", hide_env_values = true, value_parser = |text: &str| switch("NSTANCE_SIM", text))]
    sim: bool,
    /// Print JSON
    #[arg(long, global = true, env = "NSTANCE_JSON", hide_env_values = true, value_parser = |text: &str| switch("NSTANCE_JSON", text))]
    json: bool,
    /// Print without colors
    ///
    /// `NO_COLOR` does the same.
    #[arg(long, global = true, hide_short_help = true, env = "NSTANCE_NO_COLOR", hide_env_values = true, value_parser = |text: &str| switch("NSTANCE_NO_COLOR", text))]
    no_color: bool,
    /// Add the groups in this file of the Nstance server's
    ///
    /// Of a group that is configured, too, its size, instance type and vars count.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "FILE",
        env = "NSTANCE_GROUPS",
        hide_env_values = true
    )]
    groups: Option<PathBuf>,
    /// Get the `.Nonce` of each new instance from this command
    ///
    /// A program and its arguments, separated by spaces, in place of the configuration's
    /// `nonce_command`.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "COMMAND",
        env = "NSTANCE_NONCE_COMMAND",
        hide_env_values = true
    )]
    nonce_command: Option<String>,
    /// Limit the calls to the cloud at once
    #[arg(long, global = true, hide_short_help = true, value_name = "N", env = "NSTANCE_PARALLELISM", hide_env_values = true, value_parser = clap::value_parser!(u16).range(1..=1000))]
    parallelism: Option<u16>,
    /// Wait for the state's lock, such as 30s or 5m
    #[arg(long, global = true, hide_short_help = true, value_name = "DURATION", default_value = "0s", env = "NSTANCE_LOCK_TIMEOUT", hide_env_values = true, value_parser = duration)]
    lock_timeout: Wait,
    /// Treat warnings of the configuration as errors
    #[arg(long, global = true, hide_short_help = true, env = "NSTANCE_STRICT", hide_env_values = true, value_parser = |text: &str| switch("NSTANCE_STRICT", text))]
    strict: bool,
    /// Override the current time (RFC 3339)
    #[arg(long, global = true, hide_short_help = true, value_name = "TIME", env = "NSTANCE_NOW", hide_env_values = true, value_parser = time)]
    now: Option<Timestamp>,
    /// Print results and errors only
    #[arg(
        short,
        long,
        global = true,
        hide_short_help = true,
        env = "NSTANCE_QUIET",
        hide_env_values = true,
        value_parser = |text: &str| switch("NSTANCE_QUIET", text)
    )]
    quiet: bool,
    /// Print details and the time of each stage
    ///
    /// `NSTANCE_LOG=info` logs events, and `NSTANCE_LOG_FORMAT=json` as JSON.
    #[arg(long, global = true, hide_short_help = true, env = "NSTANCE_VERBOSE", hide_env_values = true, value_parser = |text: &str| switch("NSTANCE_VERBOSE", text))]
    verbose: bool,
    /// Set a variable (may repeat)
    ///
    /// Without declared variables, it sets a top-level var. `NSTANCE_VAR_name` does the same.
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = key_value)]
    var: Vec<(String, String)>,
    /// Read variables from a file (may repeat)
    ///
    /// A .tfvars, .hcl, .json or .yaml file; the last one wins.
    #[arg(long = "var-file", value_name = "FILE")]
    var_file: Vec<PathBuf>,
    /// Read the releases of a BOSH manifest from this folder
    ///
    /// It has `RELEASE/jobs/JOB`, or `jobs/JOB` if the manifest names one release. nstance downloads
    /// nothing.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "DIR",
        env = "NSTANCE_RELEASES",
        hide_env_values = true
    )]
    releases: Option<PathBuf>,
    /// Apply an ops file to the BOSH manifest (may repeat)
    ///
    /// `NSTANCE_OPS_FILES` is used without it; several paths are separated as in PATH.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    ops_file: Vec<PathBuf>,
    /// Read variables of the BOSH manifest from a YAML file (may repeat)
    ///
    /// The last one wins. `NSTANCE_VARS_FILES` is used without it; several paths are separated as in
    /// PATH.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    vars_file: Vec<PathBuf>,
    /// Let links of the BOSH manifest come from another manifest (may repeat)
    ///
    /// `NSTANCE_LINKED_MANIFESTS` is used without it; several paths are separated as in PATH.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    linked_manifest: Vec<PathBuf>,
    /// Set what `instances` counts in a BOSH manifest
    ///
    /// It is required if a group has several zones.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_enum,
        value_name = "PROFILE",
        env = "NSTANCE_PROFILE",
        hide_env_values = true
    )]
    profile: Option<ManifestProfile>,
    /// Evaluate ERB with this Ruby [default: ruby on PATH]
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "PATH",
        env = "NSTANCE_RUBY",
        hide_env_values = true
    )]
    ruby: Option<PathBuf>,
    /// Those of `releases` and `profile` that are from the command line, not the environment.
    #[arg(skip)]
    on_command_line: Vec<&'static str>,
    /// The id of the errand that runs.
    #[arg(skip)]
    errand: Option<String>,
}

/// A duration of the command line.
#[derive(Debug, Clone, Copy)]
pub struct Wait(Duration);

impl Globals {
    /// Whether to color output, given whether it goes to a terminal.
    fn colors(&self, is_terminal: bool) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        is_terminal && !self.no_color && !set("NO_COLOR")
    }

    /// Whether to color standard error.
    fn colors_errors(&self) -> bool {
        self.colors(std::io::stderr().is_terminal())
    }

    /// The given configurations; empty means that of the working folder.
    fn configs(&self) -> Vec<PathBuf> {
        if !self.config.is_empty() {
            return self.config.clone();
        }
        paths_of("NSTANCE_CONFIG")
    }

    fn style(&self) -> text::Style<'static> {
        let is_terminal = std::io::stdout().is_terminal();
        let width = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok());
        text::Style {
            color: self.colors(is_terminal),
            width: width.unwrap_or(100),
            shard: None,
            signs: text::Signs::Indented,
        }
    }

    /// The values of variables from the environment and the command line.
    fn given(&self) -> Given {
        Given {
            environment: environment_vars(),
            files: self.var_file.clone(),
            command_line: self.var.clone(),
            identity_only: false,
            groups: self.groups.clone(),
            nonce_command: self
                .nonce_command
                .as_deref()
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            strict: self.strict,
            server_compatible: false,
            from: self.from.map(|from| match from {
                From::Nstance => Dialect::Nstance,
                From::Yandex => Dialect::Yandex,
                From::Bosh => Dialect::Bosh,
            }),
            deployment: self.deployment(),
            errand: self.errand.clone(),
            ruby: self
                .ruby
                .clone()
                .filter(|path| !path.as_os_str().is_empty()),
        }
    }

    /// The inputs of a BOSH deployment, without its manifest.
    fn deployment(&self) -> bosh::Inputs {
        let paths = |given: &[PathBuf], variable| {
            if given.is_empty() {
                paths_of(variable)
            } else {
                given.to_owned()
            }
        };
        let folder = self.releases.clone();
        bosh::Inputs {
            ops_files: paths(&self.ops_file, "NSTANCE_OPS_FILES"),
            vars_files: paths(&self.vars_file, "NSTANCE_VARS_FILES"),
            others: paths(&self.linked_manifest, "NSTANCE_LINKED_MANIFESTS"),
            environment: environment_vars(),
            vars: self.var.clone(),
            releases: folder.filter(|folder| !folder.as_os_str().is_empty()),
            resolution: nstance_bosh::resolve::Options {
                profile: self.profile.map(|profile| match profile {
                    ManifestProfile::Quarks => Profile::Quarks,
                    ManifestProfile::Bosh => Profile::Bosh,
                }),
                ..Default::default()
            },
            ..bosh::Inputs::default()
        }
    }

    /// Refuses options that don't belong to the configuration's language.
    fn check_dialect(&self, is_jobs: bool) -> Result<(), Failure> {
        let is_bosh = match self.from {
            Some(From::Bosh) => true,
            Some(_) => false,
            None => is_jobs,
        };
        if is_bosh {
            if self.var_file.is_empty() {
                return Ok(());
            }
            let finding = Diagnostic::error("`--var-file` doesn't apply to BOSH manifests");
            return Err(finding.hint("Use `--vars-file FILE`").into());
        }
        let mut given = self.on_command_line.clone();
        given.extend((!self.ops_file.is_empty()).then_some("--ops-file"));
        given.extend((!self.vars_file.is_empty()).then_some("--vars-file"));
        given.extend((!self.linked_manifest.is_empty()).then_some("--linked-manifest"));
        let Some(option) = given.first() else {
            return Ok(());
        };
        let finding = Diagnostic::error(format!("`{option}` applies to BOSH manifests only"));
        Err(finding.hint("Add `--from bosh`, or leave it out").into())
    }
}

/// The variables that `NSTANCE_VAR_x` sets, by name.
fn environment_vars() -> Vec<(String, String)> {
    let mut vars: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let name = name.strip_prefix("NSTANCE_VAR_")?.to_owned();
            Some((name, value.into_string().ok()?))
        })
        .collect();
    vars.sort();
    vars
}

/// The paths in a variable of the environment, separated as in PATH.
fn paths_of(variable: &str) -> Vec<PathBuf> {
    let value = std::env::var_os(variable).unwrap_or_default();
    std::env::split_paths(&value)
        .filter(|path| !path.as_os_str().is_empty())
        .collect()
}

fn duration(text: &str) -> Result<Wait, String> {
    parse_duration(text)
        .map(Wait)
        .map_err(|error| error.to_string())
}

/// A flag's variable in the environment; an empty one isn't set.
fn switch(name: &str, text: &str) -> Result<bool, String> {
    match &*text.to_ascii_lowercase() {
        "1" | "true" | "yes" => Ok(true),
        "" | "0" | "false" | "no" => Ok(false),
        _ => Err(format!("{name} takes 1 or 0, true or false, yes or no")),
    }
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).map_err(|_| "a time looks like 2026-12-01T00:00:00Z".to_owned())
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a var is given as KEY=VALUE".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a commented starter configuration
    Init(init::Init),
    /// Check the configuration without asking a cloud
    Validate(validate::Validate),
    /// Show what apply would do
    Plan(plan::PlanCommand),
    /// Apply a plan
    Apply(apply::Apply),
    /// Delete all recorded instances
    Destroy(apply::Destroy),
    /// Show and steer a rollout
    #[command(subcommand)]
    Rollout(rollout::RolloutCommand),
    /// Detect changes made outside nstance
    Drift(drift::DriftCommand),
    /// Write a page of a plan
    Report(report::Report),
    /// Show a saved plan, or what is recorded
    Show(show::Show),
    /// Show merged and rendered specs of instances
    Render(render::Render),
    /// Show where values come from
    Explain(explain::Explain),
    /// Interpolate, resolve and render BOSH manifests
    #[command(subcommand)]
    Jobs(jobs::JobsCommand),
    /// Show the dependency graph
    Graph(graph::GraphCommand),
    /// Show the id of each image, its source and its age
    Images(images::Images),
    /// Inspect and modify the state
    #[command(subcommand)]
    State(state::StateCommand),
    /// Adopt an existing instance
    Import(import::Import),
    /// Check state, journal, lock, files and cloud for problems
    Doctor(doctor::Doctor),
    /// Inspect and modify the embedded cloud
    Sim(sim::SimArgs),
    /// Merge and decode userdata
    #[command(subcommand)]
    Userdata(userdata::UserdataCommand),
    /// Format configuration files: HCL and JSONC
    Fmt(fmt::Fmt),
    /// Write the evaluated configuration in another language
    ///
    /// Variables, locals and `for_each` are replaced by their values; comments are left out.
    Convert(convert::Convert),
    /// Print the JSON Schema of configurations, for editors
    Schema(schema::Schema),
    /// Print completions for a shell
    Completions(completions::Completions),
}

/// The result of a command: an exit code, or failures.
pub(crate) type Ending = Result<u8, Failures>;

/// The global options that may repeat. They aren't global options of clap, which would drop the
/// values before the subcommand if there are some after it. So each command has its own.
const REPEATED: [&str; 6] = [
    "config",
    "var",
    "var_file",
    "ops_file",
    "vars_file",
    "linked_manifest",
];

impl Cli {
    fn command_line() -> clap::Command {
        repeated_everywhere(Self::command(), &REPEATED)
    }

    /// Parses a command line; its first word is the program's name.
    ///
    /// Fails with clap's error, also for help and version.
    pub fn read_from<W: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, clap::Error> {
        let command = Self::command_line();
        let names = long_names(&command);
        let words = words.into_iter().map(Into::into);
        let matches = command.try_get_matches_from(with_two_dashes(words, &names))?;
        let mut cli = Self::from_arg_matches(&matches)?;
        cli.globals.config = repeated_values(&matches, "config");
        cli.globals.var = repeated_values(&matches, "var");
        cli.globals.var_file = repeated_values(&matches, "var_file");
        cli.globals.ops_file = repeated_values(&matches, "ops_file");
        cli.globals.vars_file = repeated_values(&matches, "vars_file");
        cli.globals.linked_manifest = repeated_values(&matches, "linked_manifest");
        for (id, option) in [("releases", "--releases"), ("profile", "--profile")] {
            if matches.value_source(id) == Some(ValueSource::CommandLine) {
                cli.globals.on_command_line.push(option);
            }
        }
        // Only manifests have releases.
        if cli.globals.on_command_line.contains(&"--releases") {
            cli.globals.from.get_or_insert(From::Bosh);
        }
        if let Some(format) = cli.command.format() {
            cli.globals.json = format == Format::Json;
        }
        Ok(cli)
    }
}

impl Command {
    /// The format that was chosen for the result.
    fn format(&self) -> Option<Format> {
        match self {
            Self::Plan(command) => command.reports.format,
            Self::Apply(command) => command.reports.format,
            Self::Destroy(command) => command.reports.format,
            Self::Drift(command) => command.reports.format,
            _ => None,
        }
    }
}

/// The names of all long options.
fn long_names(command: &clap::Command) -> BTreeSet<String> {
    let own = command
        .get_arguments()
        .filter_map(|option| option.get_long());
    let below = command.get_subcommands().flat_map(long_names);
    own.map(str::to_owned).chain(below).collect()
}

/// Gives long options with one dash, as Terraform has them, a second one. Nothing changes after `--`.
fn with_two_dashes(
    words: impl Iterator<Item = OsString>,
    names: &BTreeSet<String>,
) -> Vec<OsString> {
    let mut is_open = true;
    let fix = |word: OsString| {
        is_open &= word != "--";
        let name = word.to_str().and_then(|word| word.strip_prefix('-'));
        let name = name.map(|rest| rest.split_once('=').map_or(rest, |(name, _)| name));
        if is_open && name.is_some_and(|name| names.contains(name)) {
            let mut long = OsString::from("-");
            long.push(word);
            return long;
        }
        word
    };
    words.map(fix).collect()
}

/// Adds the root's options of these names to every subcommand.
fn repeated_everywhere(command: clap::Command, names: &[&str]) -> clap::Command {
    let options = command.get_arguments();
    let options: Vec<_> = options
        .filter(|option| names.contains(&option.get_id().as_str()))
        .cloned()
        .collect();
    add_to_subcommands(command, &options)
}

fn add_to_subcommands(command: clap::Command, options: &[clap::Arg]) -> clap::Command {
    command.mut_subcommands(|subcommand| add_to_subcommands(subcommand.args(options), options))
}

/// The values of such an option, from all levels of a command line.
fn repeated_values<T: Clone + Send + Sync + 'static>(
    matches: &clap::ArgMatches,
    name: &str,
) -> Vec<T> {
    let mut values = Vec::new();
    let mut level = Some(matches);
    while let Some(matches) = level {
        values.extend(matches.get_many::<T>(name).into_iter().flatten().cloned());
        level = matches.subcommand().map(|(_, matches)| matches);
    }
    values
}

/// Runs the command line.
pub fn main() -> ExitCode {
    signals::install();
    report_panics();
    let cli = match Cli::read_from(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors. Other errors exit with 1, since clap's 2 would mean
            // "changes" in CI.
            if error.use_stderr() && asks_for_json() {
                report_wrong_flag(&error);
            } else if let Some(value) = wrong_var(&error) {
                console::error(&without_value(&error, &value));
            } else {
                let _ = error.print();
            }
            return if error.use_stderr() {
                exit::ERROR
            } else {
                exit::SUCCESS
            }
            .into();
        }
    };
    let globals = &cli.globals;
    let (stages, ending) = match log::begin(globals.verbose) {
        Ok(stages) => (Some(stages), run(&cli)),
        Err(failure) => (None, Err(unplaced(failure))),
    };
    let code = match ending {
        Ok(code) => code,
        Err(failures) => {
            let parts = failures.iter();
            console::report(
                globals,
                parts.map(|(failure, sources)| (&failure.findings, sources)),
            );
            failures.code()
        }
    };
    tracing::info!(target: "nstance::command", code, "command ended");
    if let Some(stages) = stages.filter(|_| globals.verbose) {
        console::error(&stages.lines());
    }
    code.into()
}

fn run(cli: &Cli) -> Ending {
    let globals = &cli.globals;
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(target: "nstance::command", version, "command began");
    let is_jobs = matches!(cli.command, Command::Jobs(_));
    globals.check_dialect(is_jobs).map_err(unplaced)?;
    if let Some(ruby) = globals.given().ruby {
        erb::set_ruby(ruby);
    }
    match &cli.command {
        Command::Init(command) => init::run(globals, command),
        Command::Validate(command) => validate::run(globals, command),
        Command::Plan(command) => plan::run(globals, command),
        Command::Apply(command) => apply::run(globals, command),
        Command::Destroy(command) => apply::destroy(globals, command),
        Command::Rollout(command) => rollout::run(globals, command),
        Command::Drift(command) => drift::run(globals, command),
        Command::Report(command) => report::run(globals, command),
        Command::Show(command) => show::run(globals, command),
        Command::Render(command) => render::run(globals, command),
        Command::Explain(command) => explain::run(globals, command),
        Command::Jobs(command) => jobs::run(globals, command),
        Command::Graph(command) => graph::run(globals, command),
        Command::Images(command) => images::run(globals, command),
        Command::State(command) => state::run(globals, command),
        Command::Import(command) => import::run(globals, command),
        Command::Doctor(command) => doctor::run(globals, command),
        Command::Sim(command) => run_sim(globals, command),
        Command::Userdata(command) => userdata::run(globals, command),
        Command::Fmt(command) => fmt::run(globals, command),
        Command::Convert(command) => convert::run(globals, command),
        Command::Schema(command) => schema::run(command),
        Command::Completions(command) => completions::run(command, &mut Cli::command_line()),
    }
}

/// Whether an invalid command line asks for JSON.
fn asks_for_json() -> bool {
    std::env::args_os().any(|argument| argument == "--json" || argument == "-json")
        || std::env::var_os("NSTANCE_JSON").is_some_and(|value| !value.is_empty())
}

/// Routes panic messages through the redacting console.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::capture();
        let trace = match trace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
            _ => String::new(),
        };
        console::error(&format!("{panic}{trace}\n"));
    }));
}

/// The value of an invalid `--var`, which may be a secret given without its name.
fn wrong_var(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg)?;
    let is_var = argument.starts_with("--var ");
    text(ContextKind::InvalidValue).filter(|value| is_var && !value.is_empty())
}

fn without_value(error: &clap::Error, value: &str) -> String {
    let text = error.render().to_string();
    text.replace(&format!("'{value}'"), "(not shown)")
}

/// Prints a command-line error as a document.
fn report_wrong_flag(error: &clap::Error) {
    let text = match wrong_var(error) {
        Some(value) => without_value(error, &value),
        None => error.render().to_string(),
    };
    let (summary, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let summary = summary.strip_prefix("error: ").unwrap_or(summary).trim();
    let finding = Diagnostic::error(summary).detail(rest.trim());
    let findings = diagnostic::to_json(&finding.into(), &SourceMap::default());
    console::print_json(&json::errors(findings));
}

/// A failure without places.
pub(crate) fn unplaced(failure: impl Into<Failure>) -> Failures {
    failure.into().into()
}

fn run_sim(globals: &Globals, command: &sim::SimArgs) -> Ending {
    let mut paths: Vec<PathBuf> = fleet::read(globals, Purpose::Identity)
        .iter()
        .map(sim_path)
        .collect();
    paths.dedup();
    let [path] = &paths[..] else {
        let listed: Vec<String> = paths.iter().map(|path| console::shown(path)).collect();
        return Err(unplaced(
            Diagnostic::error("these configurations have several embedded clouds")
                .detail(listed.join("\n"))
                .hint("Name one configuration: -c PATH"),
        ));
    };
    let clock = session::clock(globals);
    let mut answer = Vec::new();
    sim::run(command, path, clock, globals.json, &mut answer).map_err(unplaced)?;
    console::print(&String::from_utf8_lossy(&answer));
    Ok(exit::SUCCESS)
}

/// The embedded cloud's database: the configured path, or the default if the configuration is
/// invalid.
fn sim_path(loaded: &Loaded) -> PathBuf {
    let Some(config) = &loaded.config else {
        return PathBuf::from(DEFAULT_PATH);
    };
    let infra = &config.shard.infra;
    let options = match infra.provider.value {
        ProviderKind::Sim => {
            SimOptions::from_node(infra.options.as_ref(), &mut Diagnostics::default())
        }
        _ => SimOptions::default(),
    };
    loaded
        .directory
        .join(options.path.as_deref().unwrap_or(DEFAULT_PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands, by their words.
    fn commands(command: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
        found.push((words.to_owned(), command.clone()));
        for below in command.get_subcommands() {
            commands(below, &format!("{words} {}", below.get_name()), found);
        }
    }

    #[test]
    fn short_help_fits_a_screen() {
        let mut all = Vec::new();
        commands(&Cli::command_line(), "nstance", &mut all);
        let mut wrong = Vec::new();
        for (words, command) in all {
            let help = Cli::read_from(words.split(' ').chain(["-h"])).unwrap_err();
            let lines = help.to_string().lines().count();
            if lines > 40 {
                wrong.push(format!("{words}: {lines} lines"));
            }
            let about = command.get_about().map(ToString::to_string);
            let options = command.get_arguments().map(|option| {
                let help = option.get_help().map(ToString::to_string);
                (option.get_id().to_string(), help)
            });
            for (name, help) in options.chain([(String::new(), about)]) {
                let help = help.unwrap_or_default();
                if help.chars().count() > 72 || help.ends_with('.') {
                    wrong.push(format!("{words} {name}: {help}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn terraforms_long_options_have_one_dash() {
        let names = long_names(&Cli::command_line());
        for (given, expected) in [
            ("plan -var a=b -out x.plan", "plan --var a=b --out x.plan"),
            ("plan -refresh=false", "plan --refresh=false"),
            ("apply -auto-approve -json", "apply --auto-approve --json"),
            ("plan -c conf -q -h -V -cq", "plan -c conf -q -h -V -cq"),
            ("apply -- -json", "apply -- -json"),
            ("plan --var x=-json -", "plan --var x=-json -"),
        ] {
            let words = given.split(' ').map(OsString::from);
            let words = with_two_dashes(words, &names);
            assert_eq!(words.join(&OsString::from(" ")), OsString::from(expected));
        }
    }
}

//! `nstance jobs`: BOSH manifests, interpolated, resolved and rendered.
//!
//! In: a manifest, its releases, and the variables of Quarks's containers. Out: the manifest, the
//! documents and files of instance groups, DNS records, services. Must not: ask a cloud, other than
//! for an errand.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use nstance_bosh::bpm::group_bpm;
use nstance_bosh::documents::{self, Document};
use nstance_bosh::instances::Instance;
use nstance_bosh::interpolate;
use nstance_bosh::render::{
    RenderedFile, Selection, ordinal_of_host_name, render_instance, select,
};
use nstance_bosh::resolve::{Resolved, ResolvedGroup};
use nstance_bosh::value::{Place, Value};
use nstance_bosh::yaml;
use serde_json::{Map, Value as Json, json};

use super::failure::{Failure, Failures};
use super::fleet::{Fleet, Form, Reply};
use super::jobs_dns;
use super::jobs_services::{self, Services};
use super::run_errand::{self, RunErrand};
use super::session::who;
use super::{Ending, From, Globals, console, exit, unplaced};
use crate::check::Purpose;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, counted, nearest};
use crate::dialect::bosh::{self, Deployment, Inputs, Ruby, render_finding, without_tags};
use crate::report::diagnostic;
use crate::report::dns::{self, DnsRecord};
use crate::threads;

/// The subcommands of `jobs`.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Apply ops files and variables to a manifest
    Interpolate(Interpolate),
    /// Show the resolved properties and links of instance groups
    ///
    /// The output contains secrets of `properties`.
    Resolve(Resolve),
    /// Render the files of an instance group's jobs
    ///
    /// The output contains secrets of `properties`. `INSTANCE_GROUP_NAME`, `AZ_INDEX` and
    /// `POD_ORDINAL` choose an instance as in Quarks: without `POD_ORDINAL`, by the number at the end
    /// of the host name. `REPLICAS` is compared with the manifest.
    Render(RenderJobs),
    /// Show the DNS records of groups and instances
    Dns(Dns),
    /// Show the name of each index, and the instances behind it
    ///
    /// An instance's name has the version of the manifest that it was created or updated with.
    Services(Services),
    /// Run an errand: create its instance, wait until it stops, and remove it
    ///
    /// The exit status of the errand isn't known: nstance sees only that the instance stops. Its
    /// output is in `/var/log/cloud-init-output.log` on the instance; `--keep-alive` keeps it. If
    /// nstance is interrupted, the next `nstance apply` removes the instance.
    RunErrand(RunErrand),
}

/// Options of `jobs interpolate`.
#[derive(Debug, Args)]
pub struct Interpolate {
    /// The manifest [default: the configuration]
    manifest: Option<PathBuf>,
    /// Treat variables without a value as errors
    #[arg(long)]
    var_errs: bool,
    /// Treat values that no variable uses as errors
    #[arg(long)]
    var_errs_unused: bool,
}

/// Options of `jobs resolve`.
#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct Resolve {
    /// The instance group [default: all]
    group: Option<String>,
    /// Also render BPM, and show its document
    #[arg(long)]
    bpm: bool,
    /// The version of the manifest, in the names of documents
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    version: u32,
}

/// Options of `jobs render`.
#[derive(Debug, Args)]
pub struct RenderJobs {
    /// The instance group, or an instance [default: `INSTANCE_GROUP_NAME`]
    #[arg(value_name = "GROUP[/INDEX]", value_parser = target)]
    target: Option<Target>,
    /// Write the files to `DIR/GROUP/INDEX/JOB/`
    ///
    /// Files under `bin/` are executable. Existing files are overwritten.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Skip files that need Ruby
    #[arg(long)]
    no_render: bool,
}

/// Options of `jobs dns`.
#[derive(Debug, Args)]
pub struct Dns {
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "zone")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A zone file
    Zone,
    /// A hosts file
    Hosts,
    /// JSON
    Json,
}

/// `GROUP` or `GROUP/INDEX`.
#[derive(Debug, Clone)]
struct Target {
    group: String,
    index: Option<u32>,
}

fn target(text: &str) -> Result<Target, String> {
    let (group, index) = match text.split_once('/') {
        None => (text, None),
        Some((group, index)) => match index.parse() {
            Ok(index) => (group, Some(index)),
            Err(_) => return Err("an instance is given as GROUP/INDEX, such as web/0".to_owned()),
        },
    };
    Ok(Target {
        group: group.to_owned(),
        index,
    })
}

/// Runs `jobs`.
pub fn run(globals: &Globals, command: &JobsCommand) -> Ending {
    match command {
        JobsCommand::Interpolate(command) => interpolate(globals, command),
        JobsCommand::Resolve(command) => resolve(globals, command),
        JobsCommand::Render(command) => render(globals, command),
        JobsCommand::Dns(command) => show_dns(globals, command),
        JobsCommand::Services(command) => jobs_services::run(globals, command),
        JobsCommand::RunErrand(command) => run_errand::run(globals, command),
    }
}

/// The inputs of the deployment that the command line names.
fn inputs(globals: &Globals, manifest: Option<&Path>) -> Result<Inputs, Failures> {
    if let Some(From::Nstance | From::Yandex) = globals.from {
        let finding = Diagnostic::error("`nstance jobs` reads BOSH manifests");
        return Err(unplaced(finding.hint("Leave out `--from`")));
    }
    let manifest = match (manifest, &globals.configs()[..]) {
        (Some(manifest), _) => manifest.to_owned(),
        (None, [manifest]) => manifest.clone(),
        (None, given) => {
            let finding = match given {
                [] => Diagnostic::error("no manifest is named"),
                _ => Diagnostic::error("several manifests are named"),
            };
            return Err(unplaced(finding.hint("Name one: -c MANIFEST")));
        }
    };
    Ok(Inputs {
        working_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        manifest,
        ..globals.deployment()
    })
}

/// Texts and findings of a run.
struct Run<'g> {
    globals: &'g Globals,
    sources: SourceMap,
    findings: Diagnostics,
}

impl<'g> Run<'g> {
    fn new(globals: &'g Globals) -> Self {
        let mut sources = SourceMap::default();
        // Nothing says which values of a manifest are secrets.
        sources.leave_unsettled();
        Self {
            globals,
            sources,
            findings: Diagnostics::default(),
        }
    }

    fn load(&mut self) -> Result<Deployment, Failures> {
        let inputs = inputs(self.globals, None)?;
        let loaded = bosh::load(&inputs, &mut self.sources, &mut self.findings);
        self.unless_errors(loaded)
    }

    /// The result of a step that reports its errors. With `--strict`, warnings are errors.
    fn unless_errors<T, E>(&mut self, step: Result<T, E>) -> Result<T, Failures> {
        if self.globals.strict {
            for finding in &mut self.findings {
                finding.severity = Severity::Error;
            }
        }
        match step {
            Ok(value) if !self.findings.has_errors() => Ok(value),
            _ => Err(self.failed()),
        }
    }

    fn fail(&mut self, finding: Diagnostic) -> Failures {
        self.findings.push(finding);
        self.failed()
    }

    fn failed(&mut self) -> Failures {
        let findings = std::mem::take(&mut self.findings);
        let mut failures = Failures::default();
        failures.push(findings.into(), std::mem::take(&mut self.sources));
        failures
    }

    /// Prints the result, and warnings.
    fn end(&self, text: &str, members: Json) {
        // These commands are for looking at what templates and processes get.
        console::show_sensitive();
        if self.globals.json {
            let mut document = json!({"format_version": "1.0"});
            if let (Json::Object(document), Json::Object(members)) = (&mut document, members) {
                document.extend(members);
            }
            document["diagnostics"] = diagnostic::to_json(&self.findings, &self.sources);
            console::print_json(&document);
            return;
        }
        console::print(text);
        if !self.globals.quiet && !self.findings.is_empty() {
            let color = self.globals.colors_errors();
            let findings = diagnostic::render(&self.findings, &self.sources, color);
            console::error(&findings);
        }
    }
}

fn interpolate(globals: &Globals, command: &Interpolate) -> Ending {
    let mut run = Run::new(globals);
    let mut inputs = inputs(globals, command.manifest.as_deref())?;
    inputs.interpolation = interpolate::Options {
        var_errs: command.var_errs,
        var_errs_unused: command.var_errs_unused,
    };
    let manifest = bosh::interpolated(&inputs, &mut run.sources, &mut run.findings);
    let manifest = run.unless_errors(manifest)?;
    let text = yaml::write(&manifest);
    run.end(&text, json!({"manifest": manifest.to_json()}));
    Ok(exit::SUCCESS)
}

fn resolve(globals: &Globals, command: &Resolve) -> Ending {
    let mut run = Run::new(globals);
    let deployment = run.load()?;
    let resolved = &deployment.resolved;
    let groups: Vec<&ResolvedGroup> = match &command.group {
        None => resolved.groups.iter().collect(),
        Some(name) => vec![group(resolved, name).map_err(|finding| run.fail(*finding))?],
    };
    let mut documents = Vec::new();
    if command.bpm {
        let ruby = Ruby::new(globals.given().ruby);
        let bpm_only: Vec<ResolvedGroup> = groups.iter().map(|group| bpm_only(group)).collect();
        let needed: Vec<&ResolvedGroup> = bpm_only.iter().collect();
        ruby.check(&needed).map_err(|finding| run.fail(*finding))?;
        for group in groups {
            match group_bpm(resolved, group, &ruby) {
                Ok(bpm) => {
                    let version = command.version;
                    let of_group = documents::resolved_group(resolved, group, version, Some(&bpm));
                    documents.push(of_group);
                    documents.push(documents::bpm(resolved, group, version, &bpm));
                }
                Err(failures) => {
                    let finding = render_finding(&deployment, group, &failures, &run.sources);
                    run.findings.push(finding);
                }
            }
        }
        run.unless_errors(Ok::<_, ()>(()))?;
    } else {
        let groups = groups.into_iter();
        documents.extend(
            groups.map(|group| documents::resolved_group(resolved, group, command.version, None)),
        );
    }
    let mut text = String::new();
    for Document { name, content } in &documents {
        let content = Value::from_json(content, Place::default());
        text.push_str(&format!("---\n# {name}\n{}", yaml::write(&content)));
    }
    let documents: Json = documents
        .into_iter()
        .map(|document| json!({"name": document.name, "content": document.content}))
        .collect();
    run.end(&text, json!({"documents": documents}));
    Ok(exit::SUCCESS)
}

/// A group whose only templates are those of BPM.
fn bpm_only(group: &ResolvedGroup) -> ResolvedGroup {
    let mut group = group.clone();
    for job in &mut group.jobs {
        job.monit = None;
        job.templates
            .retain(|template| template.destination.rsplit('/').next() == Some("bpm.yml"));
    }
    group
}

fn render(globals: &Globals, command: &RenderJobs) -> Ending {
    let mut run = Run::new(globals);
    let deployment = run.load()?;
    let resolved = &deployment.resolved;
    let chosen = Surroundings::read()
        .and_then(|surroundings| surroundings.choose(resolved, command.target.as_ref()));
    let (group, instances) = chosen.map_err(|finding| run.fail(*finding))?;
    let ruby = Ruby::new(globals.given().ruby);
    let (rendered, skipped) = if command.no_render {
        without_tags(group)
    } else {
        ruby.check(&[group]).map_err(|finding| {
            run.fail(finding.hint("or render only files that need no Ruby: --no-render"))
        })?;
        (group.clone(), Vec::new())
    };
    let results = threads::map(&instances, 1, |instance| {
        render_instance(resolved, &rendered, instance, None, &ruby)
    });
    let mut files = Vec::new();
    let mut failures = Vec::new();
    for (instance, result) in instances.iter().zip(results) {
        match result {
            Ok(rendered) => files.push((*instance, rendered)),
            Err(failed) => failures.extend(failed),
        }
    }
    if !failures.is_empty() {
        let finding = render_finding(&deployment, group, &failures, &run.sources);
        return Err(run.fail(finding));
    }
    if let Some(folder) = &command.out {
        write(folder, &group.name, &files).map_err(unplaced)?;
    }
    let text = match &command.out {
        Some(_) => String::new(),
        None => shown(&group.name, &files),
    };
    run.end(&text, as_json(&group.name, &files, &skipped));
    if !globals.quiet {
        if !skipped.is_empty() {
            let skipped = skipped.join(", ");
            console::error(&format!("Skipped files that need Ruby: {skipped}\n"));
        }
        if let Some(folder) = &command.out {
            let count: usize = files.iter().map(|(_, files)| files.len()).sum();
            console::error(&format!(
                "Wrote {} of {} to {}\n",
                counted(count, "file"),
                counted(files.len(), "instance"),
                folder.display()
            ));
        }
    }
    Ok(exit::SUCCESS)
}

/// The group of a name.
fn group<'r>(resolved: &'r Resolved, name: &str) -> Result<&'r ResolvedGroup, Box<Diagnostic>> {
    resolved.group(name).ok_or_else(|| {
        let names = resolved.groups.iter().map(|group| group.name.as_str());
        Box::new(
            Diagnostic::error(format!("instance group '{name}' not found")).suggest_or_list(
                nearest(name, names.clone()),
                "the manifest has",
                names,
            ),
        )
    })
}

/// What the variables of Quarks's containers say.
struct Surroundings {
    group: Option<String>,
    az_index: Option<u32>,
    pod_ordinal: Option<u32>,
    replicas: Option<u32>,
}

impl Surroundings {
    fn read() -> Result<Self, Box<Diagnostic>> {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let number = |name: &str| match text(name).map(|text| (text.parse(), text)) {
            None => Ok(None),
            Some((Ok(number), _)) => Ok(Some(number)),
            Some((Err(_), text)) => Err(Box::new(Diagnostic::error(format!(
                "{name} must be a number, not `{text}`"
            )))),
        };
        Ok(Self {
            group: text("INSTANCE_GROUP_NAME"),
            az_index: number("AZ_INDEX")?,
            pod_ordinal: number("POD_ORDINAL")?,
            replicas: number("REPLICAS")?,
        })
    }

    /// The instances to render. An index of the command line wins over the environment.
    fn choose<'r>(
        self,
        resolved: &'r Resolved,
        target: Option<&Target>,
    ) -> Result<(&'r ResolvedGroup, Vec<&'r Instance>), Box<Diagnostic>> {
        let name = target.map(|target| target.group.clone()).or(self.group);
        let Some(name) = name else {
            let names = resolved.groups.iter().map(|group| group.name.as_str());
            return Err(Box::new(
                Diagnostic::error("no instance group is named").suggest_or_list(
                    None,
                    "name one: nstance jobs render GROUP; the manifest has",
                    names,
                ),
            ));
        };
        let group = group(resolved, &name)?;
        if let Some(index) = target.and_then(|target| target.index) {
            let mut instances = group.instances.iter();
            let Some(instance) = instances.find(|instance| instance.index == index) else {
                let count = counted(group.instances.len(), "instance");
                return Err(Box::new(
                    Diagnostic::error(format!("instance group '{name}' has no instance {index}"))
                        .hint(format!("it has {count}; the first one is {name}/0")),
                ));
            };
            return Ok((group, vec![instance]));
        }
        if self.az_index.is_none() && self.pod_ordinal.is_none() {
            return Ok((group, group.instances.iter().collect()));
        }
        let ordinal = self.pod_ordinal;
        let Some(pod_ordinal) = ordinal.or_else(|| ordinal_of_host_name(&who().host)) else {
            return Err(Box::new(
                Diagnostic::error("AZ_INDEX is set, but POD_ORDINAL isn't")
                    .hint("set POD_ORDINAL, or name the instance: GROUP/INDEX"),
            ));
        };
        let selection = Selection {
            instance_group: name,
            az_index: self.az_index.unwrap_or(1),
            pod_ordinal,
            replicas: self.replicas,
        };
        match select(resolved, &selection) {
            Ok((group, instance)) => Ok((group, vec![instance])),
            Err(error) => Err(Box::new(Diagnostic::error(error.message))),
        }
    }
}

type Files<'r> = [(&'r Instance, Vec<RenderedFile>)];

/// The files as text, each under a line with its path and mode.
fn shown(group: &str, files: &Files) -> String {
    let mut text = String::new();
    for (instance, files) in files {
        for file in files {
            let (index, path, mode) = (instance.index, &file.path, file.mode);
            text.push_str(&format!("# {group}/{index}: {path} ({mode:04o})\n"));
            text.push_str(&file.content);
            if !file.content.is_empty() && !file.content.ends_with('\n') {
                text.push('\n');
            }
        }
    }
    text
}

fn as_json(group: &str, files: &Files, skipped: &[String]) -> Json {
    let instances = files.iter().map(|(instance, files)| {
        let files = files.iter().map(|file| {
            let mode = format!("{:04o}", file.mode);
            (
                file.path.clone(),
                json!({"mode": mode, "content": file.content}),
            )
        });
        json!({
            "group": group,
            "index": instance.index,
            "az": instance.az,
            "address": instance.address,
            "files": files.collect::<Map<_, _>>(),
        })
    });
    json!({"instances": instances.collect::<Vec<_>>(), "skipped": skipped})
}

/// Writes the files of a group's instances below a folder.
fn write(folder: &Path, group: &str, files: &Files) -> Result<(), Failure> {
    let mut parts = Path::new(group).components();
    let is_name = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
    if !is_name {
        let finding = format!("the instance group's name can't be a folder's: {group}");
        return Err(Failure::say(finding));
    }
    for (instance, files) in files {
        let folder = folder.join(group).join(instance.index.to_string());
        for file in files {
            let path = folder.join(&file.path);
            write_file(&path, file).map_err(|error| {
                Failure::say(format!("can't write: {error}: {}", path.display()))
            })?;
        }
    }
    Ok(())
}

fn write_file(path: &Path, file: &RenderedFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, &file.content)?;
    fs::set_permissions(path, fs::Permissions::from_mode(file.mode))
}

fn show_dns(globals: &Globals, command: &Dns) -> Ending {
    let is_manifest = matches!(globals.from, Some(From::Bosh)) || globals.releases.is_some();
    if !is_manifest {
        let fleet = Fleet::load(globals, Purpose::Render)?;
        let form = Form::Plain.documents_or(globals.json || command.format == Format::Json);
        return Ok(fleet.each(form, |_, session| {
            let records = jobs_dns::records(session)?;
            Ok(match form {
                Form::Documents => Reply::document(dns_document(&records)),
                _ => Reply::text(command.format.text(&records)),
            })
        }));
    }
    let mut run = Run::new(globals);
    let records = manifest_records(globals, &mut run)?;
    run.end(
        &command.format.text(&records),
        json!({"records": dns::json(&records)}),
    );
    Ok(exit::SUCCESS)
}

fn dns_document(records: &[DnsRecord]) -> Json {
    json!({"format_version": "1.0", "records": dns::json(records)})
}

impl Format {
    fn text(self, records: &[DnsRecord]) -> String {
        match self {
            Self::Zone => dns::zone(records),
            Self::Hosts => dns::hosts(records),
            Self::Json => {
                let text = serde_json::to_string_pretty(&dns_document(records));
                text.expect("its keys are strings") + "\n"
            }
        }
    }
}

/// The records of a manifest's groups and instances, with the addresses that are recorded.
fn manifest_records(globals: &Globals, run: &mut Run<'_>) -> Result<Vec<DnsRecord>, Failures> {
    let deployment = run.load()?;
    let fleet = Fleet::load(globals, Purpose::Identity)?;
    let recorded = match fleet.shards.first() {
        Some(session) => jobs_dns::addresses(session).map_err(unplaced)?,
        None => BTreeMap::new(),
    };
    let records = dns::of_deployment(&deployment.resolved, &|group, index| {
        let group = bosh::id_of(group).map(|id| format!("default/{id}"));
        let known = group.and_then(|group| recorded.get(&(group, index)));
        known.cloned().unwrap_or_default()
    });
    Ok(records)
}

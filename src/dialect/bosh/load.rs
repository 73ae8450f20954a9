//! Reads the files of a deployment, and resolves it.
//!
//! In: paths. Out: a [`Deployment`], or all errors of the first step that has any. The steps: read
//! the manifest, ops files and vars files; apply them; check the manifest; read the releases;
//! resolve properties and links. Must not: render templates.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use indexmap::IndexMap;
use nstance_bosh::interpolate::{self, interpolate};
use nstance_bosh::manifest::{Job, Manifest};
use nstance_bosh::release::{JobSource, Releases};
use nstance_bosh::render::{Failure, report};
use nstance_bosh::resolve::{self, Resolved, ResolvedGroup, resolve};
use nstance_bosh::value::{Place, Value};
use nstance_bosh::{Error, yaml};
use nstance_erb::unterminated_tag;

use crate::config::source::{SourceId, SourceMap, Span};
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, Severity};
use crate::{credentials, limited, redact};

/// The size limit of each file, in bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// The name of vars files in messages, which don't show their values.
const VARS_FILE: &str = "vars file";

/// What describes a deployment. Paths start from `working_dir`; messages show them as they are.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The folder that other paths start from.
    pub working_dir: PathBuf,
    /// The manifest.
    pub manifest: PathBuf,
    /// The deployment's name, if it isn't the manifest's.
    pub name: Option<String>,
    /// The ops files, in the order in which they are applied.
    pub ops_files: Vec<PathBuf>,
    /// Variables of the environment, by name. Vars files win over them.
    pub environment: Vec<(String, String)>,
    /// The vars files; later ones win.
    pub vars_files: Vec<PathBuf>,
    /// Variables of the command line, by name; they win over vars files. A value is YAML, and
    /// strings are taken as written.
    pub vars: Vec<(String, String)>,
    /// What is an error in variables.
    pub interpolation: interpolate::Options,
    /// The folder of the releases: `RELEASE/jobs/JOB`, or `jobs/JOB` if there is one release only.
    pub releases: Option<PathBuf>,
    /// Manifests of other deployments, which links may come from. Each is resolved with those before
    /// it. Ops files and variables don't apply to them; they share the folder of releases.
    pub others: Vec<PathBuf>,
    /// How instances are counted and named.
    pub resolution: resolve::Options,
}

/// A deployment, read and resolved.
#[derive(Debug)]
pub struct Deployment {
    /// The manifest after ops files and variables.
    pub document: Value,
    /// The manifest's model.
    pub manifest: Manifest,
    /// The jobs that the manifest names, by release.
    pub releases: Releases,
    /// The instance groups, with properties, links and instances.
    pub resolved: Resolved,
    templates: HashMap<TemplateKey, SourceId>,
}

/// Release, job, and the template's path below the job's `templates/`, or `monit`.
type TemplateKey = (String, String, String);

impl Deployment {
    /// The source of a job's template, or of its `monit`.
    pub fn template(&self, release: &str, job: &str, template: &str) -> Option<SourceId> {
        let key = (release.to_owned(), job.to_owned(), template.to_owned());
        self.templates.get(&key).copied()
    }
}

/// The manifest after ops files and variables.
///
/// Fails after it reported all errors of reading, or all of interpolation.
pub fn interpolated(
    inputs: &Inputs,
    sources: &mut SourceMap,
    findings: &mut Diagnostics,
) -> Result<Value, Reported> {
    let mut reader = Reader {
        inputs,
        sources,
        findings,
        releases: Releases::new(),
        templates: HashMap::new(),
    };
    reader.interpolated()
}

/// Reads a deployment and resolves it.
///
/// Fails after it reported all errors of the first step that has any.
pub fn load(
    inputs: &Inputs,
    sources: &mut SourceMap,
    findings: &mut Diagnostics,
) -> Result<Deployment, Reported> {
    let mut reader = Reader {
        inputs,
        sources,
        findings,
        releases: Releases::new(),
        templates: HashMap::new(),
    };
    let document = reader.interpolated()?;
    let others = reader.others()?;
    let has = |key| document.get(key).is_some();
    if has("cluster") && !has("instance_groups") {
        let finding = Diagnostic::error("not a BOSH manifest")
            .at(first_line(document.place, reader.sources), "")
            .hint("Name the manifest of `source`: -c MANIFEST");
        reader.findings.push(finding);
        return Err(Reported);
    }
    let manifest = Manifest::read(&document);
    let mut manifest = reader.kept(manifest)?;
    if let Some(name) = &inputs.name {
        manifest.name.clone_from(name);
    }
    let resolved = reader.resolved(&manifest, &others)?;
    let (releases, templates) = (reader.releases, reader.templates);
    Ok(Deployment {
        document,
        manifest,
        releases,
        resolved,
        templates,
    })
}

/// A finding for an error of the manifest, its releases or its files.
pub fn finding(severity: Severity, error: &Error, sources: &SourceMap) -> Diagnostic {
    let has_unset = error.message.starts_with("Expected to find variables: ");
    let has_unused = error.message.starts_with("Expected to use variables: ");
    let message = if has_unset || has_unused {
        // bosh-cli writes each name on a line.
        error.message.replace('\n', ", ")
    } else {
        error.message.clone()
    };
    // BOSH quotes the whole object, with its secrets; the place shows which one it is.
    let message = match message.split_once(" in object (") {
        Some((start, _)) => start.to_owned(),
        None => message,
    };
    let (summary, detail) = match message.split_once('\n') {
        Some((summary, detail)) => (summary, Some(detail)),
        None => (message.as_str(), None),
    };
    let mut finding = Diagnostic::of(severity, summary);
    finding.detail = detail.map(str::to_owned);
    finding.hints.extend(error.hint.clone());
    if has_unset {
        let hint = "set them in a vars file, or with --var NAME=VALUE";
        finding.hints.push(hint.to_owned());
    }
    match error.place {
        Some(place) => finding.at(first_line(place, sources), ""),
        None => finding,
    }
}

/// A finding for the jobs of a group that can't be rendered, in BOSH's form, at the lines of the
/// templates. Failures that several instances have in common are reported once.
pub fn render_finding(
    deployment: &Deployment,
    group: &ResolvedGroup,
    failures: &[Failure],
    sources: &SourceMap,
) -> Diagnostic {
    let mut distinct: Vec<Failure> = Vec::new();
    for failure in failures {
        if !distinct.contains(failure) {
            distinct.push(failure.clone());
        }
    }
    let position = |failure: &Failure| {
        let mut jobs = group.jobs.iter();
        jobs.position(|job| job.name == failure.job())
    };
    distinct.sort_by_key(position);
    let message = report(&group.name, &distinct);
    let message = message.trim_start_matches("- ").replace("\n  ", "\n");
    let mut finding = finding(Severity::Error, &Error::new(message), sources);
    for failure in &distinct {
        let Failure::Template { error, .. } = failure else {
            continue;
        };
        let Some(span) = template_line(deployment, group, failure, sources) else {
            continue;
        };
        let text = error.message.lines().next().unwrap_or_default();
        finding = match finding.label {
            None => finding.at(span, text),
            Some(_) => finding.related(span, text),
        };
    }
    finding
}

/// The line of a template that failed.
fn template_line(
    deployment: &Deployment,
    group: &ResolvedGroup,
    failure: &Failure,
    sources: &SourceMap,
) -> Option<Span> {
    let Failure::Template {
        job,
        template,
        error,
    } = failure
    else {
        return None;
    };
    let job = group.jobs.iter().find(|resolved| resolved.name == *job)?;
    let id = deployment.template(&job.release.name, &job.name, template)?;
    let source = sources.get(id);
    let line = error.line? as usize;
    if line == 0 || line > source.text.lines().count() {
        return None;
    }
    let range = source.line_range(line);
    Some(Span::new(id, range.start, range.end))
}

/// The part of a place in its first line: an error about a long map marks its beginning.
pub(super) fn first_line(place: Place, sources: &SourceMap) -> Span {
    let source = SourceId(place.file);
    let text = &sources.get(source).text;
    let line = text.get(place.start..place.end).unwrap_or_default();
    let line = line.lines().next().unwrap_or_default();
    Span::new(source, place.start, place.start + line.len())
}

struct Reader<'a> {
    inputs: &'a Inputs,
    sources: &'a mut SourceMap,
    findings: &'a mut Diagnostics,
    releases: Releases,
    templates: HashMap<TemplateKey, SourceId>,
}

impl Reader<'_> {
    fn interpolated(&mut self) -> Result<Value, Reported> {
        let inputs = self.inputs;
        let manifest = self.document("manifest", &inputs.manifest, yaml::read_as_cli);
        let ops = inputs.ops_files.iter();
        let ops: Vec<_> = ops
            .map(|file| self.document("ops file", file, yaml::read_as_cli))
            .collect();
        let files = inputs.vars_files.iter();
        let files: Vec<_> = files
            .map(|file| self.document(VARS_FILE, file, yaml::read_vars))
            .collect();
        let environment = inputs.environment.iter();
        let environment: Vec<_> = environment
            .map(|(name, text)| self.var(&format!("NSTANCE_VAR_{name}"), name, text))
            .collect();
        let vars = inputs.vars.iter();
        let vars: Vec<_> = vars
            .map(|(name, text)| self.var(&format!("--var {name}"), name, text))
            .collect();
        let manifest = manifest?;
        let ops: Vec<Value> = ops.into_iter().collect::<Result<_, _>>()?;
        let values = environment.into_iter().chain(files).chain(vars);
        let values: Vec<Value> = values.collect::<Result<_, _>>()?;
        for value in &values {
            redact::know(secrets(value));
        }
        let document = interpolate(&manifest, &ops, &values, inputs.interpolation);
        self.kept(document)
    }

    /// Reads a file of YAML.
    fn document(
        &mut self,
        what: &str,
        path: &Path,
        read: fn(&str, u32) -> Result<Value, Error>,
    ) -> Result<Value, Reported> {
        match self.text(path) {
            Ok((source, text)) => {
                if what == VARS_FILE {
                    self.sources.hide_values(source);
                }
                let value = read(&text, source.0).map_err(|error| vec![error]);
                self.kept(value)
            }
            Err(why) => {
                let summary = format!("can't read the {what} {}", path.display());
                self.findings.push(Diagnostic::error(summary).detail(why));
                Err(Reported)
            }
        }
    }

    /// A variable with its origin, as a map with one entry. As in bosh-cli, a value that is a
    /// string in YAML isn't changed: `"a"` keeps its quotes.
    fn var(&mut self, origin: &str, name: &str, text: &str) -> Result<Value, Reported> {
        let source = self.sources.add_value(origin, text);
        self.sources.hide_values(source);
        let place = Place {
            file: source.0,
            start: 0,
            end: text.len(),
        };
        let value = yaml::read_as_cli(text, source.0).map_err(|error| vec![error]);
        let value = match self.kept(value)? {
            value if value.as_str().is_some() => Value::string(place, text),
            value => value,
        };
        let mut map = Value::empty_map(place);
        map.set(Value::string(place, name), value);
        Ok(map)
    }

    /// The other deployments, resolved.
    fn others(&mut self) -> Result<Vec<Resolved>, Reported> {
        let mut others = Vec::new();
        for path in &self.inputs.others {
            let document = self.document("manifest", path, yaml::read)?;
            let manifest = Manifest::read(&document);
            let manifest = self.kept(manifest)?;
            let resolved = self.resolved(&manifest, &others)?;
            others.push(resolved);
        }
        Ok(others)
    }

    /// Reads the jobs that a manifest names, and resolves it.
    fn resolved(&mut self, manifest: &Manifest, others: &[Resolved]) -> Result<Resolved, Reported> {
        self.read_releases(manifest)?;
        let options = &self.inputs.resolution;
        let resolved = resolve(manifest, &self.releases, others, options);
        let resolved = self.kept(resolved)?;
        for warning in &resolved.warnings {
            let warning = finding(Severity::Warning, warning, self.sources);
            self.findings.push(warning);
        }
        Ok(resolved)
    }

    fn read_releases(&mut self, manifest: &Manifest) -> Result<(), Reported> {
        let of_groups = manifest.instance_groups.iter();
        let of_addons = manifest.addons.iter();
        let jobs: Vec<&Job> = of_groups
            .flat_map(|group| &group.jobs)
            .chain(of_addons.flat_map(|addon| &addon.jobs))
            .collect();
        let Some(first) = jobs.first() else {
            return Ok(());
        };
        let Some(folder) = &self.inputs.releases else {
            let span = self.span(first.place);
            self.findings.push(
                Diagnostic::error("the folder of the releases is not set")
                    .at(span, "this job is in a release")
                    .hint("name the folder that has RELEASE/jobs/JOB: --releases DIR"),
            );
            return Err(Reported);
        };
        if !self.inputs.working_dir.join(folder).is_dir() {
            self.findings.push(
                Diagnostic::error(format!(
                    "the folder of the releases does not exist: {}",
                    folder.display()
                ))
                .hint("name the folder that has RELEASE/jobs/JOB: --releases DIR"),
            );
            return Err(Reported);
        }
        let is_only = manifest.releases.len() == 1;
        let (mut missing, mut known) = (HashSet::new(), HashSet::new());
        let mut outcome = Ok(());
        for job in jobs {
            let has_it = self.releases.get(&job.release);
            if has_it.is_some_and(|jobs| jobs.contains_key(&job.name))
                || missing.contains(&job.release)
                || !known.insert((&job.release, &job.name))
            {
                continue;
            }
            let Some(jobs) = self.jobs_folder(folder, &job.release, is_only) else {
                missing.insert(&job.release);
                let span = self.span(job.place);
                let release = &job.release;
                self.findings.push(
                    Diagnostic::error(format!("Release '{release}' not found"))
                        .at(span, "this job is in it")
                        .detail(looked_for(&job_folders(folder, release, is_only)))
                        .hint("--releases DIR names the folder that has RELEASE/jobs/JOB"),
                );
                outcome = Err(Reported);
                continue;
            };
            match self.job(&jobs, job) {
                Ok(source) => {
                    let jobs = self.releases.entry(job.release.clone()).or_default();
                    jobs.insert(job.name.clone(), source);
                }
                Err(Reported) => outcome = Err(Reported),
            }
        }
        outcome
    }

    /// The folder of a release's jobs.
    fn jobs_folder(&self, folder: &Path, release: &str, is_only: bool) -> Option<PathBuf> {
        let mut folders = job_folders(folder, release, is_only).into_iter();
        folders.find(|path| self.inputs.working_dir.join(path).is_dir())
    }

    /// Reads a job of a release.
    fn job(&mut self, jobs: &Path, job: &Job) -> Result<JobSource, Reported> {
        let folder = jobs.join(&job.name);
        let specs = [folder.join("spec"), folder.join("job.MF")];
        let is_file = |path: &&PathBuf| self.inputs.working_dir.join(path).is_file();
        let Some(path) = specs.iter().find(is_file).filter(|_| is_name(&job.name)) else {
            let span = self.span(job.place);
            let message = format!("Job '{}' not found in release '{}'", job.name, job.release);
            let detail = looked_for(&specs);
            let finding = Diagnostic::error(message).at(span, "").detail(detail);
            self.findings.push(finding);
            return Err(Reported);
        };
        let spec = self.document("job spec", path, yaml::read)?;
        let mut outcome = Ok(());
        let mut templates = IndexMap::new();
        // Other paths are errors of the spec.
        let listed = spec.get("templates").and_then(Value::as_map);
        for entry in listed.unwrap_or_default() {
            let name = entry.key.to_s();
            if !stays_below(&name) {
                continue;
            }
            let path = folder.join("templates").join(&name);
            match self.template(job, &name, &path) {
                Ok(Some(text)) => {
                    templates.insert(name, text);
                }
                // An error once it is rendered.
                Ok(None) => {}
                Err(why) => {
                    let span = self.span(entry.key.place);
                    let summary = format!("can't read the template {}", path.display());
                    self.findings
                        .push(Diagnostic::error(summary).at(span, "").detail(why));
                    outcome = Err(Reported);
                }
            }
        }
        let path = folder.join("monit");
        let monit = match self.template(job, "monit", &path) {
            Ok(monit) => monit,
            Err(why) => {
                let summary = format!("can't read {}", path.display());
                self.findings.push(Diagnostic::error(summary).detail(why));
                return Err(Reported);
            }
        };
        outcome.map(|()| JobSource {
            spec,
            templates,
            monit,
        })
    }

    /// The text of a template; `None` if there is no such file.
    fn template(&mut self, job: &Job, name: &str, path: &Path) -> Result<Option<String>, String> {
        if !self.inputs.working_dir.join(path).exists() {
            return Ok(None);
        }
        let (source, text) = self.text(path)?;
        self.sources.set_plain(source);
        if let Some(start) = unterminated_tag(&text) {
            self.findings.push(
                Diagnostic::warning("unterminated ERB tag")
                    .at(
                        Span::new(source, start, start + "<%".len()),
                        "no `%>` closes it",
                    )
                    .hint("BOSH takes the rest of the file as text; close the tag with `%>`"),
            );
        }
        let key = (job.release.clone(), job.name.clone(), name.to_owned());
        self.templates.insert(key, source);
        Ok(Some(text))
    }

    /// The text of a file, without its byte order mark; or why it can't be read.
    fn text(&mut self, path: &Path) -> Result<(SourceId, String), String> {
        let absolute = self.inputs.working_dir.join(path);
        let text = limited::read_text(&absolute, LARGEST_FILE).map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                "No such file".to_owned()
            } else {
                error.to_string()
            }
        })?;
        let text = match text.strip_prefix('\u{feff}') {
            Some(text) => text.to_owned(),
            None => text,
        };
        let source = self.sources.add(path.display().to_string(), text.as_str());
        Ok((source, text))
    }

    /// The value of a step, or its errors as findings.
    fn kept<T>(&mut self, step: Result<T, Vec<Error>>) -> Result<T, Reported> {
        step.map_err(|errors| {
            for error in errors {
                let error = finding(Severity::Error, &error, self.sources);
                self.findings.push(error);
            }
            Reported
        })
    }

    fn span(&self, place: Place) -> Span {
        first_line(place, self.sources)
    }
}

/// Where the jobs of a release may be.
fn job_folders(folder: &Path, release: &str, is_only: bool) -> Vec<PathBuf> {
    let of_release = is_name(release).then(|| folder.join(release).join("jobs"));
    let own = is_only.then(|| folder.join("jobs"));
    of_release.into_iter().chain(own).collect()
}

fn looked_for(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    format!("Looked for {}", paths.join(" and "))
}

/// Whether a text names something in a folder, and not a folder elsewhere.
fn is_name(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

/// Whether a path names something below its folder.
fn stays_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The strings of variables whose names say that they are secrets.
fn secrets(value: &Value) -> Vec<String> {
    fn collect(value: &Value, is_secret: bool, found: &mut Vec<String>) {
        if let Some(text) = value.as_str().filter(|_| is_secret) {
            found.push(text.to_owned());
        }
        for item in value.as_list().unwrap_or_default() {
            collect(item, is_secret, found);
        }
        for entry in value.as_map().unwrap_or_default() {
            let is_secret = is_secret || credentials::is_telling(&entry.key.to_s());
            collect(&entry.value, is_secret, found);
        }
    }
    let mut found = Vec::new();
    collect(value, false, &mut found);
    found
}

//! Renders the templates of an instance's jobs.
//!
//! In: a resolved deployment and something that evaluates ERB. Out: the files of one instance, or
//! every template that failed.

use serde_json::Value as Json;

use crate::Error;
use crate::context::{context, dns_tables};
use crate::instances::Instance;
use crate::resolve::{Resolved, ResolvedGroup, ResolvedJob};

/// Evaluates ERB. Another crate does it, so that this one needs no Ruby.
pub trait Erb {
    /// A text or an error for each template, in their order. Each gets its own copy of the context.
    ///
    /// # Errors
    ///
    /// Nothing can be evaluated: Ruby is missing, for example.
    fn render(&self, request: &Request) -> Result<Vec<Result<String, TemplateError>>, String>;
}

/// Templates that share a context.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What templates may ask for.
    pub context: &'a Json,
    /// The tables of BOSH's DNS encoder, for links without an address of their own.
    pub dns: Option<&'a Json>,
    /// Name and text of each template.
    pub templates: &'a [(&'a str, &'a str)],
}

/// Why a template failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The class of Ruby's exception.
    pub class: String,
    /// Its message.
    pub message: String,
    /// The line of the template, from 1.
    pub line: Option<u32>,
}

/// What kept a job from being rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A template failed.
    Template {
        /// The job.
        job: String,
        /// The template's path below the job's `templates/`, or `monit`.
        template: String,
        /// Why.
        error: TemplateError,
    },
    /// Something else failed: a template's file is missing, or a result can't be read.
    Other {
        /// The job.
        job: String,
        /// What failed.
        message: String,
    },
}

impl Failure {
    /// The job that can't be rendered.
    pub fn job(&self) -> &str {
        match self {
            Self::Template { job, .. } | Self::Other { job, .. } => job,
        }
    }

    /// The message in BOSH's form.
    pub fn message(&self) -> String {
        match self {
            Self::Template {
                template, error, ..
            } => {
                let name = template.rsplit('/').next().unwrap_or(template);
                let line = error
                    .line
                    .map_or("(unknown)".to_owned(), |line| line.to_string());
                format!(
                    "Error filling in template '{name}' (line {line}: {})",
                    error.message
                )
            }
            Self::Other { message, .. } => message.clone(),
        }
    }
}

/// The failures of a group in BOSH's form: under a line for the group, and one for each job.
pub fn report(group: &str, failures: &[Failure]) -> String {
    let mut text = format!("- Unable to render jobs for instance group '{group}'. Errors are:");
    let mut job = None;
    for failure in failures {
        if job != Some(failure.job()) {
            job = Some(failure.job());
            text.push_str(&format!(
                "\n  - Unable to render templates for job '{}'. Errors are:",
                failure.job()
            ));
        }
        let message = failure.message().replace('\n', "\n      ");
        text.push_str(&format!("\n    - {message}"));
    }
    text
}

/// Which instance of a group is rendered: what the variables of Quarks's containers say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// `INSTANCE_GROUP_NAME`
    pub instance_group: String,
    /// `AZ_INDEX`: the position of the zone, from 1.
    pub az_index: u32,
    /// `POD_ORDINAL`: the number in the zone, from 0.
    pub pod_ordinal: u32,
    /// `REPLICAS`: the instances in each zone, to be compared with the manifest's.
    pub replicas: Option<u32>,
}

/// The number at the end of a host name, which stands for `POD_ORDINAL` if that isn't set.
pub fn ordinal_of_host_name(host: &str) -> Option<u32> {
    let digits = host
        .rsplit(|character: char| !character.is_ascii_digit())
        .next()?;
    digits.parse().ok()
}

/// Finds the instance to be rendered.
///
/// # Errors
///
/// There is no such group or instance, or the number of replicas isn't the manifest's.
pub fn select<'r>(
    resolved: &'r Resolved,
    selection: &Selection,
) -> Result<(&'r ResolvedGroup, &'r Instance), Error> {
    let Selection {
        instance_group,
        az_index,
        pod_ordinal,
        replicas,
    } = selection;
    let Some(group) = resolved.group(instance_group) else {
        let message = format!("instance group '{instance_group}' not found");
        return Err(Error::new(message));
    };
    if let Some(replicas) = replicas
        && *replicas != group.replicas
    {
        return Err(Error::new(format!(
            "instance group '{instance_group}' has {} replicas, not {replicas}",
            group.replicas
        )));
    }
    let mut instances = group.instances.iter();
    let chosen = instances
        .find(|instance| instance.az_index == *az_index && instance.ordinal == *pod_ordinal);
    chosen.map(|instance| (group, instance)).ok_or_else(|| {
        Error::new(format!(
            "no instance for az_index {az_index}, pod_ordinal {pod_ordinal} in instance group \
             '{instance_group}'"
        ))
    })
}

/// A rendered file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// The path below the folder of all jobs: `<job>/<destination>`.
    pub path: String,
    /// The content.
    pub content: String,
    /// The permission bits.
    pub mode: u32,
}

/// Renders every file of an instance.
///
/// # Errors
///
/// Every template of every job that failed.
pub fn render_instance(
    resolved: &Resolved,
    group: &ResolvedGroup,
    instance: &Instance,
    ip: Option<&str>,
    erb: &dyn Erb,
) -> Result<Vec<RenderedFile>, Vec<Failure>> {
    let mut files = Vec::new();
    let mut failures = Vec::new();
    for job in &group.jobs {
        match render_job(resolved, group, job, instance, ip, erb) {
            Ok(rendered) => files.extend(rendered),
            Err(failed) => failures.extend(failed),
        }
    }
    if failures.is_empty() {
        Ok(files)
    } else {
        Err(failures)
    }
}

/// Renders every file of a job on an instance: `monit`, then the templates in the spec's order.
///
/// # Errors
///
/// Every template that failed, or whose file is missing.
pub fn render_job(
    resolved: &Resolved,
    group: &ResolvedGroup,
    job: &ResolvedJob,
    instance: &Instance,
    ip: Option<&str>,
    erb: &dyn Erb,
) -> Result<Vec<RenderedFile>, Vec<Failure>> {
    let mut failures = Vec::new();
    let mut texts = Vec::new();
    let mut targets = Vec::new();
    if let Some(monit) = &job.monit {
        texts.push(("monit", monit.as_str()));
        targets.push(("monit", 0o644));
    }
    for template in &job.templates {
        match &template.text {
            Some(text) => {
                texts.push((template.source.as_str(), text.as_str()));
                targets.push((template.destination.as_str(), template.mode()));
            }
            None => failures.push(missing(job, &template.source)),
        }
    }
    let context = context(resolved, group, job, instance, ip);
    let dns = dns_tables(resolved);
    let results = evaluate(job, &context, dns.as_ref(), &texts, erb);
    let mut files = Vec::new();
    for (result, (destination, mode)) in results.into_iter().zip(targets) {
        match result {
            Ok(content) => files.push(RenderedFile {
                path: format!("{}/{destination}", job.name),
                content,
                mode,
            }),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() {
        Ok(files)
    } else {
        Err(failures)
    }
}

/// Evaluates templates of a job: a text or a failure for each, or one failure for all.
pub(crate) fn evaluate(
    job: &ResolvedJob,
    context: &Json,
    dns: Option<&Json>,
    templates: &[(&str, &str)],
    erb: &dyn Erb,
) -> Vec<Result<String, Failure>> {
    let request = Request {
        context,
        dns,
        templates,
    };
    let results = match erb.render(&request) {
        Ok(results) => results,
        Err(message) => {
            let job = job.name.clone();
            return vec![Err(Failure::Other { job, message })];
        }
    };
    let results = results.into_iter().zip(templates);
    let failed = |name: &str, error| Failure::Template {
        job: job.name.clone(),
        template: name.to_owned(),
        error,
    };
    results
        .map(|(result, (name, _))| result.map_err(|error| failed(name, error)))
        .collect()
}

pub(crate) fn missing(job: &ResolvedJob, template: &str) -> Failure {
    Failure::Other {
        job: job.name.clone(),
        message: format!(
            "Template '{template}' of job '{}' not found in release '{}'",
            job.name, job.release.name
        ),
    }
}

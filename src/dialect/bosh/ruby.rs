//! Evaluates the ERB of job templates with Ruby.
//!
//! In: templates and contexts of [`nstance_bosh`]. Out: their texts, by [`nstance_erb`]. Must not:
//! start Ruby for templates without tags.

use std::path::PathBuf;

use nstance_bosh::render::{Erb, Request, TemplateError};
use nstance_bosh::resolve::{ResolvedGroup, ResolvedJob};
use nstance_erb::{Options, RenderError, Renderer, Template, needs_ruby};

use crate::diagnostic::Diagnostic;

/// Ruby, in processes that are started when the first template needs them.
#[derive(Debug)]
pub struct Ruby {
    renderer: Renderer,
}

impl Ruby {
    /// The Ruby of a path, or the one on `PATH`.
    pub fn new(ruby: Option<PathBuf>) -> Self {
        Self {
            renderer: Renderer::new(Options {
                ruby,
                ..Options::default()
            }),
        }
    }

    /// Checks that Ruby runs, if templates of these groups need it.
    ///
    /// Fails with an error that names the jobs that need it.
    pub fn check(&self, groups: &[&ResolvedGroup]) -> Result<(), Box<Diagnostic>> {
        let mut jobs = Vec::new();
        for group in groups {
            let tagged = group.jobs.iter().filter(|job| has_tags(job));
            jobs.extend(tagged.map(|job| format!("{}/{}", group.name, job.name)));
        }
        if jobs.is_empty() {
            return Ok(());
        }
        let probe = Template {
            name: "probe",
            text: "<%= 1 %>",
        };
        let request = nstance_erb::Request {
            context: "{}",
            dns: None,
            templates: &[probe],
        };
        let Err(error) = self.renderer.render(&request) else {
            return Ok(());
        };
        let summary = match &error {
            RenderError::RubyMissing { looked_for } if looked_for.as_os_str() != "ruby" => {
                format!("Ruby is missing: {}", looked_for.display())
            }
            RenderError::RubyMissing { .. } => "Ruby is not installed".to_owned(),
            other => other.to_string(),
        };
        let jobs = jobs.join(", ");
        Err(Box::new(
            Diagnostic::error(summary)
                .detail(format!("These jobs have ERB templates: {jobs}"))
                .hint("install Ruby 3; on Debian and Ubuntu: apt-get install ruby")
                .hint("or name a Ruby: --ruby PATH"),
        ))
    }
}

impl Erb for Ruby {
    fn render(&self, request: &Request) -> Result<Vec<Result<String, TemplateError>>, String> {
        let context = request.context.to_string();
        let dns = request.dns.map(ToString::to_string);
        let templates = request.templates.iter();
        let templates: Vec<Template> = templates
            .map(|(name, text)| Template { name, text })
            .collect();
        let request = nstance_erb::Request {
            context: &context,
            dns: dns.as_deref(),
            templates: &templates,
        };
        let results = self.renderer.render(&request);
        let results = results.map_err(|error| error.to_string())?.into_iter();
        let results = results.map(|result| {
            result.map_err(|error| TemplateError {
                class: error.class,
                message: error.message,
                line: error.line,
            })
        });
        Ok(results.collect())
    }
}

fn has_tags(job: &ResolvedJob) -> bool {
    let templates = job.templates.iter();
    let mut texts = templates
        .filter_map(|template| template.text.as_deref())
        .chain(job.monit.as_deref());
    texts.any(needs_ruby)
}

/// A group with only those files that need no Ruby, and the paths of the others: `JOB/DESTINATION`.
pub fn without_tags(group: &ResolvedGroup) -> (ResolvedGroup, Vec<String>) {
    let mut group = group.clone();
    let mut left_out = Vec::new();
    for job in &mut group.jobs {
        if job.monit.as_deref().is_some_and(needs_ruby) {
            job.monit = None;
            left_out.push(format!("{}/monit", job.name));
        }
        job.templates.retain(|template| {
            let is_tagged = template.text.as_deref().is_some_and(needs_ruby);
            if is_tagged {
                left_out.push(format!("{}/{}", job.name, template.destination));
            }
            !is_tagged
        });
    }
    (group, left_out)
}

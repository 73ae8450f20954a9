//! Renders templates with Ruby, through the crate that evaluates ERB.

use std::sync::LazyLock;

use nstance_bosh::render::{Erb, Request, TemplateError};
use nstance_erb::{Options, Renderer, Template};

/// Ruby, with one pool of processes for all cases.
pub(crate) struct Ruby;

static RENDERER: LazyLock<Renderer> = LazyLock::new(|| Renderer::new(Options::default()));

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
        let results = RENDERER
            .render(&request)
            .map_err(|error| error.to_string())?;
        let results = results.into_iter().map(|result| {
            result.map_err(|error| TemplateError {
                class: error.class,
                message: error.message,
                line: error.line,
            })
        });
        Ok(results.collect())
    }
}

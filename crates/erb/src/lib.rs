//! Renders ERB job templates as BOSH does, with Ruby for the ERB.
//!
//! In: the texts of templates, and a context in JSON. Out: a text for each, or an error with class,
//! message and line. Must not: know what the context describes, or read files.
//!
//! A [`Renderer`] starts Ruby when a template needs it. Each request is evaluated in a fork of a
//! long-lived process, by the script in `evaluate.rb`.
#![warn(missing_docs)]

mod error;
mod text;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use error::{RenderError, TemplateError};
pub use text::{needs_ruby, tags, unterminated_tag};
pub use worker::SCRIPT;
use worker::{Failure, Worker};

/// The largest output of a template, in bytes.
pub const LARGEST_OUTPUT: u64 = 16 * 1024 * 1024;

/// How much longer than the templates' limits Ruby may take, before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// How Ruby is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program; `ruby` on `PATH` if absent.
    pub ruby: Option<PathBuf>,
    /// How long a template may run.
    pub time_limit: Duration,
    /// How much address space a template may use, in bytes; Ruby itself takes about 80 MiB of it.
    /// Systems that don't limit address space (macOS) ignore it.
    pub memory_limit: u64,
    /// How many Ruby processes there are at most; one if zero.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ruby: None,
            time_limit: Duration::from_secs(10),
            memory_limit: 512 * 1024 * 1024,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Templates that share a context: those of one instance. No `Debug`: contexts have secrets.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What BOSH gives templates, as a JSON object: `index`, `id`, `job`, `networks`, `properties`,
    /// `links` and so on.
    pub context: &'a str,
    /// The numbers for `link.address`, as a JSON object with `azs`, `networks`, `instances` and
    /// `groups`. Without it, `link.address` is an error for links without an address of their own.
    pub dns: Option<&'a str>,
    /// The templates, in the order of the results.
    pub templates: &'a [Template<'a>],
}

/// A template.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Template<'a> {
    /// Its file's name, for errors.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// What the worker gets.
#[derive(Serialize)]
struct Question<'a> {
    templates: &'a [Template<'a>],
    context: &'a str,
    dns: Option<&'a str>,
    time_limit: f64,
    memory_limit: u64,
    output_limit: u64,
}

/// What the worker returns.
#[derive(Deserialize)]
struct Answer {
    results: Vec<Evaluated>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Evaluated {
    Output(String),
    Error {
        class: String,
        message: String,
        line: Option<u32>,
    },
}

/// Renders templates with a pool of Ruby processes, from as many threads as there are.
#[derive(Debug)]
pub struct Renderer {
    options: Options,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Worker>,
    /// Those that a thread has or starts.
    busy: usize,
}

impl Renderer {
    /// A renderer that has started nothing yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            pool: Mutex::default(),
            returned: Condvar::new(),
        }
    }

    /// Renders the templates of a request: an output or an error for each, in their order.
    ///
    /// Waits while all workers are busy. Templates without tags need no Ruby. Fails as a whole if
    /// Ruby can't be run, or ends twice.
    pub fn render(
        &self,
        request: &Request<'_>,
    ) -> Result<Vec<Result<String, TemplateError>>, RenderError> {
        let tagged: Vec<Template<'_>> = request
            .templates
            .iter()
            .copied()
            .filter(|template| needs_ruby(template.text))
            .collect();
        let mut evaluated = if tagged.is_empty() {
            Vec::new()
        } else {
            self.evaluate(request, &tagged)?
        }
        .into_iter();
        Ok(request
            .templates
            .iter()
            .map(|template| {
                if !needs_ruby(template.text) {
                    return Ok(template.text.to_owned());
                }
                match evaluated.next() {
                    Some(Evaluated::Output(output)) => Ok(output),
                    Some(Evaluated::Error {
                        class,
                        message,
                        line,
                    }) => Err(TemplateError {
                        template: template.name.to_owned(),
                        class,
                        message,
                        line,
                    }),
                    None => unreachable!("`evaluate` has counted them"),
                }
            })
            .collect())
    }

    /// One result for each template, from Ruby.
    fn evaluate(
        &self,
        request: &Request<'_>,
        templates: &[Template<'_>],
    ) -> Result<Vec<Evaluated>, RenderError> {
        let question = Question {
            templates,
            context: request.context,
            dns: request.dns,
            time_limit: self.options.time_limit.as_secs_f64(),
            memory_limit: self.options.memory_limit,
            output_limit: LARGEST_OUTPUT,
        };
        let mut line = serde_json::to_vec(&question).expect("strings and numbers are JSON");
        line.push(b'\n');
        let count = u32::try_from(templates.len()).unwrap_or(u32::MAX);
        let limit = self
            .options
            .time_limit
            .saturating_mul(count)
            .saturating_add(GRACE);
        // A template may have killed the process, in this request or before it.
        for _ in 0..2 {
            match self.ask(&line, limit)? {
                Ok(answer) => match serde_json::from_slice::<Answer>(&answer) {
                    Ok(answer) if answer.results.len() == templates.len() => {
                        return Ok(answer.results);
                    }
                    _ => {}
                },
                Err(Failure::Ended) => {}
                Err(Failure::Late) => return Err(RenderError::NoAnswer { waited: limit }),
            }
        }
        Err(RenderError::RubyEnded)
    }

    /// Asks a worker, which goes back to the pool if it answers and is killed otherwise.
    fn ask(&self, line: &[u8], limit: Duration) -> Result<Result<Vec<u8>, Failure>, RenderError> {
        let (place, idle) = self.take();
        let mut worker = match idle {
            Some(worker) => worker,
            None => Worker::start(&self.ruby()?)?,
        };
        let answer = worker.ask(line, limit);
        if answer.is_ok() {
            place.keep(worker);
        }
        Ok(answer)
    }

    /// A place among the busy workers, and an idle worker if there is one. Waits for a place.
    fn take(&self) -> (Place<'_>, Option<Worker>) {
        let most = self.options.workers.max(1);
        let mut pool = self
            .returned
            .wait_while(self.pool(), |pool| pool.busy >= most)
            .unwrap_or_else(PoisonError::into_inner);
        pool.busy += 1;
        (Place { renderer: self }, pool.idle.pop())
    }

    /// The pool, which is consistent after each statement that holds it.
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program. Looked up here, because the cleared environment has no `PATH`.
    fn ruby(&self) -> Result<PathBuf, RenderError> {
        let looked_for = self.options.ruby.as_deref().unwrap_or(Path::new("ruby"));
        if looked_for.components().count() > 1 {
            return Ok(looked_for.to_owned());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|folder| folder.join(looked_for))
            .find(|candidate| candidate.is_file())
            .ok_or_else(|| RenderError::RubyMissing {
                looked_for: looked_for.to_owned(),
            })
    }
}

/// A place among the busy workers, given up on drop.
struct Place<'a> {
    renderer: &'a Renderer,
}

impl Place<'_> {
    fn keep(self, worker: Worker) {
        self.renderer.pool().idle.push(worker);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.renderer.pool().busy -= 1;
        self.renderer.returned.notify_one();
    }
}

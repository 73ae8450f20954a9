//! One case of `bosh.jsonl`, of kind `render`. `cargo xtask conformance` includes this file, too.

use std::sync::OnceLock;

use nstance_erb::{Options, Renderer, Request, Template, TemplateError};
use serde_json::Value;

/// Runs a case. Where `volatile` or `match: class` says that the text differs between Rubies, only
/// success, or class and line, count.
pub(crate) fn check(case: &Value) -> Result<(), String> {
    static RENDERER: OnceLock<Renderer> = OnceLock::new();
    let renderer = RENDERER.get_or_init(|| Renderer::new(Options::default()));
    let text = case["template"]
        .as_str()
        .ok_or("the case has no template")?;
    let context = case["context"].to_string();
    let dns = case.get("dns").map(Value::to_string);
    let results = renderer
        .render(&Request {
            context: &context,
            dns: dns.as_deref(),
            templates: &[Template {
                name: "job/case.erb",
                text,
            }],
        })
        .map_err(|error| error.to_string())?;
    let result = results.into_iter().next().ok_or("there is no result")?;
    compare(case, result)
}

fn compare(case: &Value, result: Result<String, TemplateError>) -> Result<(), String> {
    let volatile = case.get("volatile").is_some();
    let expected = &case["expect"];
    match (expected["output"].as_str(), result) {
        (Some(output), Ok(actual)) if volatile || actual == output => Ok(()),
        (None, Err(error)) => {
            let expected = &expected["error"];
            let same_message = volatile
                || expected["match"] == "class"
                || expected["message"] == error.message.as_str();
            let same_class = expected["class"]
                .as_str()
                .is_some_and(|class| last_part(class) == last_part(&error.class));
            let line = expected["line"].as_u64();
            if same_class && same_message && line == error.line.map(u64::from) {
                Ok(())
            } else {
                Err(format!("expected {expected}, got {error:?}"))
            }
        }
        (_, result) => Err(format!("expected {expected}, got {result:?}")),
    }
}

/// The class without its modules: the corpus leaves them out.
fn last_part(class: &str) -> &str {
    class.rsplit("::").next().unwrap_or(class)
}

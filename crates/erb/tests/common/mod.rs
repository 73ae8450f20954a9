//! Whether the tests can run: they need Ruby.

use nstance_erb::{Options, RenderError, Renderer, Request, Template};

/// False where Ruby is missing, which CI must not accept.
#[expect(clippy::print_stdout, reason = "says why nothing was tested")]
pub(crate) fn is_installed() -> bool {
    let rendered = Renderer::new(Options::default()).render(&Request {
        context: "{}",
        dns: None,
        templates: &[Template {
            name: "probe.erb",
            text: "<%= 1 %>",
        }],
    });
    match rendered {
        Err(error @ RenderError::RubyMissing { .. }) => {
            let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!in_ci, "{error}");
            println!("skipped: {error}");
            false
        }
        _ => true,
    }
}

//! Whether the tests can run: they need Ruby.

use std::sync::OnceLock;

use nstance_erb::{Options, RenderError, Renderer, Request, Template};

/// False where Ruby is missing, which CI must not accept.
pub(crate) fn is_installed() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(probe)
}

#[expect(clippy::print_stdout, reason = "says why nothing was tested")]
fn probe() -> bool {
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

//! Handles SIGINT and SIGTERM.
//!
//! In: signals. Out: a count for an apply, which then finishes its operations. A second signal, and
//! any signal for other commands, ends the process with the signal's exit code. Must not: do other
//! work.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{console, exit};

static COUNT: AtomicUsize = AtomicUsize::new(0);
static LAST: AtomicI32 = AtomicI32::new(0);
static GRACEFUL: AtomicBool = AtomicBool::new(false);
static PLANNING: AtomicBool = AtomicBool::new(false);

/// Installs the handlers. If that fails, signals keep their default effect.
pub fn install() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            LAST.store(signal, Ordering::SeqCst);
            let count = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
            let graceful = GRACEFUL.load(Ordering::SeqCst);
            match (graceful, count) {
                (true, 1) => {
                    tracing::warn!(target: super::apply_log::TARGET, "interrupted");
                    console::error(
                        "\nInterrupted. Finishing operations in progress; press Ctrl-C again to stop immediately.\n",
                    );
                }
                // Calls in progress can't be awaited, but their intents are durable.
                (true, _) => {
                    console::error(
                        "\nStopped at once. The next apply settles what was under way.\n",
                    );
                    std::process::exit(i32::from(code()));
                }
                (false, _) => {
                    if PLANNING.load(Ordering::SeqCst) {
                        console::error("\nInterrupted. The plan was not applied.\n");
                    }
                    std::process::exit(i32::from(code()))
                }
            }
        }
    });
}

/// Says that no plan was applied, if a signal ends the process before [`graceful`].
pub fn plan_to_apply() {
    PLANNING.store(true, Ordering::SeqCst);
}

/// Counts signals until the guard is dropped; the caller decides when to end.
pub fn graceful() -> Graceful {
    GRACEFUL.store(true, Ordering::SeqCst);
    PLANNING.store(false, Ordering::SeqCst);
    Graceful
}

/// See [`graceful`].
pub struct Graceful;

impl Graceful {
    /// The number of signals so far.
    pub fn count(&self) -> &'static AtomicUsize {
        &COUNT
    }

    /// The exit code, if a signal arrived.
    pub fn code(&self) -> Option<u8> {
        (COUNT.load(Ordering::SeqCst) > 0).then(code)
    }
}

impl Drop for Graceful {
    fn drop(&mut self) {
        GRACEFUL.store(false, Ordering::SeqCst);
    }
}

fn code() -> u8 {
    if LAST.load(Ordering::SeqCst) == SIGTERM {
        exit::TERMINATED
    } else {
        exit::INTERRUPTED
    }
}

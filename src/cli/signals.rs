//! SIGINT and SIGTERM.
//!
//! In: signals. Out: a count for an apply that wants to end in its own way, once; for a second
//! signal, and for every other command, the end at once, with the exit code that names the signal.
//! Must not: do work.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{console, exit};

static COUNT: AtomicUsize = AtomicUsize::new(0);
static LAST: AtomicI32 = AtomicI32::new(0);
static GRACEFUL: AtomicBool = AtomicBool::new(false);

/// Starts listening. Where that fails, signals keep their ordinary effect.
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
                    console::error(
                        "\nInterrupted. Finishing operations in progress; press Ctrl-C again to stop immediately.\n",
                    );
                }
                // Calls may be under way and can't be waited for; what they were to do is on disk.
                (true, _) => {
                    console::error(
                        "\nStopped at once. The next apply settles what was under way.\n",
                    );
                    std::process::exit(i32::from(code()));
                }
                (false, _) => std::process::exit(i32::from(code())),
            }
        }
    });
}

/// From here on signals are counted, and the caller ends when it sees fit; until the guard is
/// dropped.
pub fn graceful() -> Graceful {
    GRACEFUL.store(true, Ordering::SeqCst);
    Graceful
}

/// See [`graceful`].
pub struct Graceful;

impl Graceful {
    /// How many signals came.
    pub fn count(&self) -> &'static AtomicUsize {
        &COUNT
    }

    /// The exit code, if one came.
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

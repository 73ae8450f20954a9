//! SIGINT and SIGTERM.
//!
//! In: signals. Out: a count for an apply that wants to end in its own way; for every other
//! command the end at once, with the exit code that names the signal. May not: do work.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit;

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
            COUNT.fetch_add(1, Ordering::SeqCst);
            if !GRACEFUL.load(Ordering::SeqCst) {
                std::process::exit(i32::from(code()));
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

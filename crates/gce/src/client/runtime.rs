//! The thread that connections live on.
//!
//! In: futures. Out: what they give. Must not: outlive its owner.

use std::future::Future;
use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A runtime with a thread of its own, so that a connection that the other side closed is noticed
/// between calls, rather than by the next request.
pub(super) struct Runtime {
    handle: Handle,
    /// Dropped, it ends the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = thread::Builder::new()
            .name("google".to_owned())
            .spawn(move || {
                // An error is the drop of the other half, which is what is waited for.
                let _ = runtime.block_on(ended);
                // Look-ups of names can't be interrupted, and nobody waits for them any more.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            handle,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Waits for a future. Many threads may do so at once.
    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say, even if it panicked.
            let _ = thread.join();
        }
    }
}

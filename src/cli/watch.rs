//! Waits for changes of files.
//!
//! In: the [`Inputs`] of configurations. Out: the changed paths, once changes have stopped. Must
//! not: load or validate.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::failure::Failure;
use crate::config::inputs::Inputs;
use crate::diagnostic::Diagnostic;

/// The pause that ends a series of changes: editors write a file in several steps.
const REST: Duration = Duration::from_millis(100);

/// The maximum wait for that pause.
const LONGEST: Duration = Duration::from_secs(1);

/// A watch over files.
pub struct Watch {
    watcher: RecommendedWatcher,
    events: Receiver<notify::Result<Event>>,
    places: BTreeSet<PathBuf>,
}

impl Watch {
    /// A watch without files.
    ///
    /// Fails if the system can't watch files.
    pub fn new() -> Result<Self, Failure> {
        let (sender, events) = channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Reading isn't a change, and nstance reads these files itself.
            let is_access = matches!(&event, Ok(event) if event.kind.is_access());
            if !is_access {
                // The receiver is gone, so the process is about to end.
                let _ = sender.send(event);
            }
        })
        .map_err(|error| failed(&error))?;
        Ok(Self {
            watcher,
            events,
            places: BTreeSet::new(),
        })
    }

    /// Watches the folders of `inputs`. Returns whether it added one, whose files may have changed
    /// since they were read.
    ///
    /// Fails if a folder can't be watched.
    pub fn over(&mut self, inputs: &Inputs) -> Result<bool, Failure> {
        let wanted = inputs.places();
        for place in self.places.difference(&wanted) {
            // A removed folder is no longer watched, so ignore the error.
            let _ = self.watcher.unwatch(place);
        }
        self.places.retain(|place| wanted.contains(place));
        let mut is_new = false;
        for place in wanted {
            if self.places.contains(&place) {
                continue;
            }
            match self.watcher.watch(&place, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // It was just removed; its parent reports when it comes back.
                Err(_) if !place.is_dir() => continue,
                // Parent folders may be inaccessible.
                Err(error) if !holds_files(inputs, &place) => {
                    let _ = error;
                    continue;
                }
                Err(error) => return Err(failed(&error)),
            }
            self.places.insert(place);
            is_new = true;
        }
        Ok(is_new)
    }

    /// Waits for a relevant change and the pause after it; returns the changed paths.
    ///
    /// Fails if watching fails.
    pub fn wait(&mut self, inputs: &Inputs) -> Result<BTreeSet<PathBuf>, Failure> {
        let mut changed = BTreeSet::new();
        let mut lost = false;
        while changed.is_empty() && !lost {
            let Ok(event) = self.events.recv() else {
                return Err(Failure::say("the watch over the files ended"));
            };
            lost |= self.note(event, inputs, &mut changed)?;
        }
        let end = Instant::now() + LONGEST;
        while let Some(left) = end.checked_duration_since(Instant::now())
            && let Ok(event) = self.events.recv_timeout(REST.min(left))
        {
            self.note(event, inputs, &mut changed)?;
        }
        Ok(changed)
    }

    /// Adds the paths of an event; returns whether events were lost.
    fn note(
        &mut self,
        event: notify::Result<Event>,
        inputs: &Inputs,
        changed: &mut BTreeSet<PathBuf>,
    ) -> Result<bool, Failure> {
        let event = event.map_err(|error| failed(&error))?;
        let comes_or_goes = !matches!(
            event.kind,
            EventKind::Modify(
                notify::event::ModifyKind::Data(_) | notify::event::ModifyKind::Metadata(_)
            )
        );
        for path in &event.paths {
            let is_place = self.places.contains(path);
            if is_place && !comes_or_goes {
                continue;
            }
            if is_place {
                // A new folder with this name isn't watched yet.
                let _ = self.watcher.unwatch(path);
                self.places.remove(path);
            }
            if inputs.concerns(path) {
                changed.insert(path.clone());
            }
        }
        Ok(event.need_rescan())
    }
}

fn holds_files(inputs: &Inputs, place: &Path) -> bool {
    inputs
        .files()
        .iter()
        .any(|file| file.parent() == Some(place))
}

fn failed(error: &notify::Error) -> Failure {
    let diagnostic = Diagnostic::error("files can't be watched").detail(error.to_string());
    Failure::new(match error.kind {
        notify::ErrorKind::MaxFilesWatch => diagnostic.hint(
            "The system's limit of watched files is reached: sysctl fs.inotify.max_user_watches",
        ),
        _ => diagnostic,
    })
}

//! The parser's events, in turn or ahead of who reads them.
//!
//! In: the text of a document. Out: its events, up to the end or the first error. May not: look at
//! what they say.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::vec::IntoIter;

use saphyr_parser::{Event, Parser, ScanError, Span};

use super::input::Text;
use crate::threads::WORTH_A_THREAD;

/// One event, or why there is none.
type Told<'t> = Result<(Event<'t>, Span), ScanError>;

/// How many events are handed over at once, and how many such batches wait.
const BATCH: usize = 128;
const BATCHES: usize = 8;

/// Events of a text.
pub(super) enum Events<'t> {
    /// Parsed when they are asked for.
    InTurn(Box<Parser<'t, Text<'t>>>),
    /// Parsed by another thread.
    Ahead {
        batch: IntoIter<Told<'t>>,
        batches: Receiver<Vec<Told<'t>>>,
    },
}

impl<'t> Events<'t> {
    /// The events of `body`, none of them parsed ahead.
    pub(super) fn in_turn(body: &'t str) -> Self {
        Self::InTurn(Box::new(Parser::new(Text::new(body))))
    }

    /// Calls `read` with the events of `body`: two thirds of the time goes into parsing them, so
    /// for a long text another thread does.
    pub(super) fn with<R>(body: &'t str, read: impl FnOnce(Self) -> R) -> R {
        if body.len() < WORTH_A_THREAD {
            return read(Self::in_turn(body));
        }
        let parser = Parser::new(Text::new(body));
        let (sender, batches) = sync_channel(BATCHES);
        std::thread::scope(|scope| {
            scope.spawn(move || parse_ahead(parser, &sender));
            let batch = Vec::new().into_iter();
            read(Self::Ahead { batch, batches })
        })
    }

    pub(super) fn next(&mut self) -> Option<Told<'t>> {
        match self {
            Self::InTurn(parser) => parser.next_event(),
            Self::Ahead { batch, batches } => loop {
                if let Some(told) = batch.next() {
                    return Some(told);
                }
                // None: the other thread has come to the end.
                *batch = batches.recv().ok()?.into_iter();
            },
        }
    }
}

/// Parses up to the end or the first error, or until nobody listens any more.
fn parse_ahead<'t>(mut parser: Parser<'t, Text<'t>>, sender: &SyncSender<Vec<Told<'t>>>) {
    let mut ended = false;
    while !ended {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH && !ended {
            let told = parser.next_event();
            ended = !matches!(told, Some(Ok(_)));
            batch.extend(told);
        }
        if sender.send(batch).is_err() {
            return;
        }
    }
}

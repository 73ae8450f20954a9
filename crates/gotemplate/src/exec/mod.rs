//! Execution: a small stack machine that runs a template's code.
//!
//! In: code and data. Out: bytes and a report, or the first error. The machine borrows the data,
//! clones only what it must keep, and keeps every stack on the heap: how deep templates call one
//! another is bounded by a count, not by the thread's stack.

mod calls;
mod failure;
mod field;
mod found;
mod include;
mod item;
mod machine;
mod range;
mod stacks;
mod texts;
mod unknown;

use crate::error::ExecError;
use crate::report::Report;
use crate::sensitive::Trace;
use crate::template::Set;
use crate::value::Value;

/// Runs a template of a set on data, appending to `out`; with a trace, records what is sensitive.
pub(crate) fn execute(
    set: &Set,
    main: u32,
    data: &Value,
    out: &mut Vec<u8>,
    trace: Option<&Trace>,
) -> Result<Report, ExecError> {
    let texts = texts::Texts::default();
    machine::Machine::new(set, main, data, &texts, out, trace).run()
}

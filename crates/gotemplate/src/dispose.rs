//! Dropping values within values without recursion: a template decides how deep they are nested.

use std::cell::RefCell;

use crate::value::Value;

thread_local! {
    /// What is still to be dropped, while something is.
    static PENDING: RefCell<Option<Vec<Value>>> = const { RefCell::new(None) };
}

/// Drops a value that is within one that is being dropped; for drops of what holds values.
pub(crate) fn dispose(value: Value) {
    let mut value = Some(value);
    let outermost = PENDING.try_with(|pending| {
        let mut pending = pending.borrow_mut();
        match &mut *pending {
            Some(pending) => {
                pending.extend(value.take());
                false
            }
            None => {
                *pending = Some(Vec::new());
                true
            }
        }
    });
    if outermost != Ok(true) {
        return;
    }
    // No borrow is held while a value is dropped, which brings those within it here.
    drop(value);
    while let Ok(Some(next)) = PENDING.try_with(|pending| pending.borrow_mut().as_mut()?.pop()) {
        drop(next);
    }
    let _ = PENDING.try_with(|pending| pending.borrow_mut().take());
}

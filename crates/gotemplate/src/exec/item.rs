//! A value on the machine's stacks: borrowed where that is possible.

use crate::value::Value;

/// A value, borrowed from data or code, or owned.
#[derive(Clone, Debug)]
pub(super) enum Held<'d> {
    Borrowed(&'d Value),
    Owned(Value),
}

/// A value and whether Go sees it through an interface, as items of `[]any` are seen.
#[derive(Clone, Debug)]
pub(super) struct Item<'d> {
    pub(super) held: Held<'d>,
    pub(super) interface: bool,
}

impl<'d> Item<'d> {
    pub(super) fn borrowed(value: &'d Value) -> Self {
        Self {
            held: Held::Borrowed(value),
            interface: false,
        }
    }

    pub(super) fn owned(value: Value) -> Self {
        Self {
            held: Held::Owned(value),
            interface: false,
        }
    }

    pub(super) fn through_interface(mut self, interface: bool) -> Self {
        self.interface = interface;
        self
    }

    pub(super) fn value(&self) -> &Value {
        match &self.held {
            Held::Borrowed(value) => value,
            Held::Owned(value) => value,
        }
    }

    pub(super) fn into_value(self) -> Value {
        match self.held {
            Held::Borrowed(value) => value.clone(),
            Held::Owned(value) => value,
        }
    }

    /// What an interface holds, in place of it: a nil interface holds no value.
    pub(super) fn unwrapped(mut self) -> Self {
        self.interface = false;
        if matches!(self.value(), Value::Nil) {
            self.held = Held::Owned(Value::Missing);
        }
        self
    }
}

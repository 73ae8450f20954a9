//! What is known of instances beyond what moto knows.
//!
//! In: instances as they are made, started, stopped, ended. Out: what one sees of them: nothing at
//! first, then states between states. May not: speak with anyone.

use std::collections::HashMap;

use crate::error::Refusal;
use crate::xml::Element;

/// How many looks it takes until something is seen as it is. A look is a call that would have shown
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// A new instance is nowhere to be found.
    pub hidden: u32,
    /// What was made or started is `pending`.
    pub pending: u32,
    /// What was stopped is `stopping`.
    pub stopping: u32,
    /// What was terminated is `shutting-down`.
    pub shutting_down: u32,
    /// A target that was registered is `initial`.
    pub initial: u32,
    /// A target that was deregistered is `draining`.
    pub draining: u32,
}

/// A state that passes, by its name; and the one that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    Pending,
    Stopping,
    ShuttingDown,
}

impl Between {
    fn looks(self, habits: &Habits) -> u32 {
        match self {
            Self::Pending => habits.pending,
            Self::Stopping => habits.stopping,
            Self::ShuttingDown => habits.shutting_down,
        }
    }

    fn shown(self) -> (&'static str, &'static str) {
        match self {
            Self::Pending => ("pending", "0"),
            Self::Stopping => ("stopping", "64"),
            Self::ShuttingDown => ("shutting-down", "32"),
        }
    }

    /// What moto says at once.
    fn settled(self) -> &'static str {
        match self {
            Self::Pending => "running",
            Self::Stopping => "stopped",
            Self::ShuttingDown => "terminated",
        }
    }
}

#[derive(Debug, Default)]
struct Instance {
    hidden: u32,
    between: Option<(Between, u32)>,
    monitoring: Option<&'static str>,
}

#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) habits: Habits,
    instances: HashMap<String, Instance>,
}

impl World {
    /// An instance was made.
    pub(crate) fn made(&mut self, id: &str) {
        let instance = Instance {
            hidden: self.habits.hidden,
            ..Instance::default()
        };
        self.instances.insert(id.to_owned(), instance);
        self.passes(id, Between::Pending);
    }

    /// An instance is on its way to another state.
    pub(crate) fn passes(&mut self, id: &str, between: Between) {
        let looks = between.looks(&self.habits);
        let instance = self.instances.entry(id.to_owned()).or_default();
        instance.between = (looks > 0).then_some((between, looks));
    }

    /// Somebody asks for an instance by its id; refused while it is hidden.
    pub(crate) fn look_for(&mut self, id: &str) -> Result<(), Refusal> {
        match self.instances.get_mut(id) {
            Some(instance) if instance.hidden > 0 => {
                instance.hidden -= 1;
                Err(Refusal::no_such_instance(id))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn set_monitoring(&mut self, id: &str, state: &'static str) {
        let instance = self.instances.entry(id.to_owned()).or_default();
        instance.monitoring = Some(state);
    }

    /// Makes of moto's description what is seen now, and counts this as a look. Whether there is
    /// something to be seen.
    pub(crate) fn show(&mut self, item: &mut Element) -> bool {
        let seen = self.peek(item);
        if let Some(instance) = self.instances.get_mut(item.text_at("instanceId")) {
            if instance.hidden > 0 {
                instance.hidden -= 1;
            } else if let Some((_, left)) = &mut instance.between {
                *left -= 1;
                if *left == 0 {
                    instance.between = None;
                }
            }
        }
        seen
    }

    /// The same, but for the look.
    pub(crate) fn peek(&self, item: &mut Element) -> bool {
        let Some(instance) = self.instances.get(item.text_at("instanceId")) else {
            return true;
        };
        if let Some(state) = instance.monitoring {
            let state = Element::leaf("state", state);
            item.put(Element::node("monitoring", vec![state]));
        }
        // Where somebody did something past this, moto knows better.
        if let Some((between, _)) = instance.between
            && between.settled() == item.text_at("instanceState/name")
        {
            let (name, code) = between.shown();
            let parts = vec![Element::leaf("code", code), Element::leaf("name", name)];
            item.put(Element::node("instanceState", parts));
        }
        instance.hidden == 0
    }
}

//! A proxy before moto, for tests: what EC2 does and moto doesn't.
//!
//! In: calls of AWS' APIs on loopback, and faults that a test asks for. Out: moto's answers, changed
//! where EC2's would be others; a log of the calls. May not: speak with anything but moto.
//!
//! moto takes a client token twice and makes two instances, is `running` at once, lists what was
//! made a moment ago, takes any size of user data, and counts reservations where EC2 counts
//! instances. This remembers tokens, hides what is new, has states between states, refuses what EC2
//! refuses; and it throttles, delays, and loses questions and answers. Its time is counted in
//! looks, not in seconds, so nothing here depends on how fast a machine is.
//!
//! Each [`Proxy`] is an account of its own at moto, so tests run side by side on one server.

mod calls;
mod chance;
mod describe;
mod error;
mod fault;
mod http;
mod launch;
mod moto;
mod proxy;
mod query;
mod quotas;
mod states;
mod targets;
mod world;
mod xml;

pub use calls::{Call, Outcome};
pub use chance::Chance;
pub use error::{ERRORS, Refusal};
pub use fault::{Fault, Rule};
pub use moto::{Moto, Refused};
pub use proxy::Proxy;
pub use query::Query;
pub use targets::Health;
pub use world::Habits;
pub use xml::Element;

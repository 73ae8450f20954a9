//! A fake of Compute Engine's REST API, for tests.
//!
//! In: calls of the API on loopback, and faults that a test asks for. Out: answers as Compute Engine
//! would give them; a log of the calls. Must not: speak with anyone, or depend on the time.
//!
//! Requests and answers are checked against Google's own discovery document, so a request that
//! Google wouldn't take is refused here, and an answer that Google couldn't give is an error of
//! this server, which tests find in [`Server::violations`]. What takes time at Google takes looks
//! here: an operation is done once it was asked for often enough.
//!
//! Each [`Server`] is a project of its own, so tests run side by side:
//!
//! ```no_run
//! use nstance_gce_server::{Document, Fault, Refusal, Rule, Server};
//!
//! let Some(document) = Document::for_tests() else { return };
//! let server = Server::start(&document).expect("loopback has a free port");
//! let throttled = Fault::Refuse(Refusal::named("rateLimitExceeded"));
//! server.add(Rule::next("instances.insert", throttled).times(2));
//! // Runs the program under test with `server.url()` as its endpoint.
//! assert_eq!(server.count("instances.insert"), 3);
//! assert_eq!(server.violations(), Vec::<String>::new());
//! ```

mod access;
mod balancing;
mod calls;
mod chance;
mod clock;
mod discovery;
mod error;
mod fault;
mod filter;
mod http;
mod images;
mod instances;
mod list;
mod machine;
mod operations;
mod quotas;
mod server;
mod world;

pub use calls::{Call, Outcome};
pub use chance::Chance;
pub use discovery::{DISCOVERY, Document};
pub use error::{OPERATION_ERRORS, OperationError, REFUSALS, Refusal};
pub use fault::{Fault, Rule};
pub use server::{PROJECT, Server};
pub use world::{Habits, LINK, PROJECT_NUMBER};

//! The client against servers on loopback, and against what botocore sends and reads.

mod botocore;
mod child;
mod credentials;
mod failures;
mod server;

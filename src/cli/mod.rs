//! The command line, one file a subcommand.
//!
//! In: arguments. Out: what is printed. May not: do anything that the library can't do without it.

pub mod sim;

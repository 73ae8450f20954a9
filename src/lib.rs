//! A declarative planner for fleets of cloud VMs, in the order the data flows.

pub mod address;
pub mod apply;
pub mod check;
pub mod cli;
pub mod clock;
pub mod config;
pub mod credentials;
pub mod diagnostic;
pub mod digest;
pub mod doctor;
pub mod fault_injection;
pub mod format;
pub mod graph;
mod limited;
pub mod load;
pub mod merge;
pub mod pipeline;
pub mod plan;
pub mod provider;
pub mod redact;
pub mod refresh;
pub mod render;
pub mod report;
pub mod resolve;
pub mod sensitivity;
pub mod spec;
mod threads;

//! The real binary, driven as people drive it: a module a subcommand, then whole lifetimes and bad
//! moments.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]

mod harness;
mod hcl;
mod hostile;

mod apply;
#[cfg(feature = "aws")]
mod aws;
mod bad_disks;
mod bad_moments;
mod bad_states;
mod bad_templates;
mod bosh;
mod ci;
mod cloud_conformance;
#[cfg(any(feature = "aws", feature = "gcp"))]
mod clouds;
mod completions;
mod convert;
mod corpus;
mod destroy;
mod doctor;
mod drift;
mod erb;
mod fmt;
#[cfg(feature = "gcp")]
mod gcp;
mod graph;
mod images;
mod import;
mod init;
mod interrupted;
mod jobs;
mod json_schemas;
mod keys;
mod lifecycle;
mod links;
mod locks;
mod log;
mod nonce;
mod nstance_case;
mod page;
mod plan;
mod plan_files;
#[cfg(feature = "postgres")]
mod postgres;
mod reference;
mod render;
mod replacements;
mod reports;
mod rollout;
mod schema;
mod secrets;
mod server;
mod shards;
mod shards_applied;
mod show;
mod sim;
mod state;
mod state_place;
mod store;
mod transfer;
mod undo;
mod upgrade;
mod userdata;
mod userdata_layers;
mod validate;
mod variables;
mod watch;
mod web;
mod yaml;
mod yandex;
mod yandex_case;
mod zones;

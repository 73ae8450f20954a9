//! Names into things the cloud has: images into ids, pools into subnets, URLs into bodies.
//!
//! In: the configuration, caches from the state, and the cloud. Out: facts for rendering, with
//! where each came from. This is the one stage before `apply` that asks anything; what it decides
//! from the answers is pure. Must not: write the state; what a cache should keep is handed back.

pub mod fetch;
pub mod images;
pub mod subnets;

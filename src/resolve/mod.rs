//! Resolves names to cloud objects: images to ids, pools to subnets, URLs to bodies.
//!
//! In: the configuration, caches from the state, and the cloud. Out: facts for rendering, each with
//! its source. Only this stage and `apply` query the cloud; its decisions are pure functions of the
//! answers. Must not: write the state; it returns new cache entries.

pub mod fetch;
pub mod images;
pub mod subnets;

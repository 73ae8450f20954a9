//! Reads deployment manifests of BOSH.

pub mod units;

//! placeholder
pub mod rules;

//! What people and programs read.
//!
//! In: findings and plans. Out: text and JSON. May not: print, or decide anything.

pub mod diagnostic;
mod excerpt;

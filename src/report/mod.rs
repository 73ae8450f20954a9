//! What people and programs read.
//!
//! In: findings and plans. Out: text and JSON. May not: print, or decide anything.

mod cover;
pub mod diagnostic;
pub mod doctor;
pub mod events;
mod excerpt;
pub mod graph;
pub mod json;
mod path;
mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod text;
pub mod variables;

pub use table::table;
pub use text::age;

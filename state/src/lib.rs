//! The record of what exists.

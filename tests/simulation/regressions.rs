//! regressions

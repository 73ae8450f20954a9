//! nstance

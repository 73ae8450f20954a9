//! Go's text/template, exactly.

//! Type constraints: `type = list(string)`. Comes in: an expression; goes out: a type.

//! The exit codes, for the code, the help and the docs.

/// Success; for `drift`: no drift.
pub const SUCCESS: u8 = 0;
/// An error, including invalid options.
pub const ERROR: u8 = 1;
/// With `--detailed-exitcode`: the plan has changes other than no-ops. For `drift`: there is drift.
/// For `doctor`: there are problems.
pub const CHANGES: u8 = 2;
/// A rollout waits: for `nstance rollout promote`, or longer than `--max-wait`.
pub const WAITING: u8 = 3;
/// After SIGINT.
pub const INTERRUPTED: u8 = 130;
/// After SIGTERM.
pub const TERMINATED: u8 = 143;

/// The table in `--help`.
pub const HELP: &str = "\
Exit codes:
  0    success
  1    an error
  2    changes (`plan --detailed-exitcode`), drift (`drift`), problems (`doctor`)
  3    a rollout waits (`apply`)
  130  stopped by SIGINT (Ctrl-C)
  143  stopped by SIGTERM";

/// The exit code of several results: an error outranks a signal, a signal a rollout that waits, and that
/// changes.
pub fn worst(codes: impl IntoIterator<Item = u8>) -> u8 {
    let rank = |code: &u8| match *code {
        SUCCESS => 0,
        CHANGES => 1,
        WAITING => 2,
        INTERRUPTED | TERMINATED => 3,
        _ => 4,
    };
    codes.into_iter().max_by_key(rank).unwrap_or(SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_one_shard_is_the_runs() {
        for (codes, expected) in [
            (&[][..], 0),
            (&[0, 0], 0),
            (&[0, 2, 0], 2),
            (&[2, 130], 130),
            (&[0, 3], 3),
            (&[3, 130], 130),
            (&[1, 3], 1),
            (&[143, 0], 143),
            (&[130, 1, 2], 1),
            (&[2, 1, 143], 1),
        ] {
            assert_eq!(worst(codes.iter().copied()), expected, "{codes:?}");
        }
    }
}

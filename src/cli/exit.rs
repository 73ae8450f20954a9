//! The exit codes, once: for the code, the help and the docs.

/// Done; `drift`: none.
pub const SUCCESS: u8 = 0;
/// An error, a wrong flag included.
pub const ERROR: u8 = 1;
/// With `--detailed-exitcode`: anything but no-op is planned. `drift`: there is some.
pub const CHANGES: u8 = 2;
/// After SIGINT.
pub const INTERRUPTED: u8 = 130;
/// After SIGTERM.
pub const TERMINATED: u8 = 143;

/// The table in `--help`.
pub const HELP: &str = "\
Exit codes:
  0    done; `drift`: none
  1    an error, a wrong flag included
  2    `plan --detailed-exitcode`: there are changes; `drift`: there is drift
  130  stopped by SIGINT (Ctrl-C)
  143  stopped by SIGTERM";

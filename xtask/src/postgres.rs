//! A `PostgreSQL` server for tests, on a socket of its own.
//!
//! In: the machine's server programs, installed from Debian's packages where that is allowed. Out: a
//! URL. Must not: listen on the network, or touch another server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{Failure, packages, process};

/// The variable that tells tests where the server is.
pub(crate) const URL: &str = "NSTANCE_TEST_POSTGRES";

/// The user that the server runs as where this runs as root, which it refuses.
const USER: &str = "postgres";

/// A server that runs until this is dropped.
pub(crate) struct Postgres {
    programs: PathBuf,
    folder: TempDir,
}

impl Postgres {
    /// Starts a new server.
    ///
    /// Fails with what to install.
    pub(crate) fn start() -> Result<Self, Failure> {
        let programs = match programs() {
            Some(programs) => programs,
            None if packages::may_install() => {
                packages::install("postgresql")?;
                programs().ok_or_else(missing)?
            }
            None => return Err(missing()),
        };
        let server = Self {
            programs,
            folder: tempfile::tempdir()?,
        };
        if packages::is_root() {
            process::run(Command::new("chown").arg(USER).arg(server.folder.path()))?;
        }
        let data = server.data();
        server.run(
            "initdb",
            &["-A", "trust", "-U", "nstance", "-E", "UTF8", "-D", &data],
        )?;
        server.go()?;
        Ok(server)
    }

    /// The URL of its first database, whose user may create others.
    pub(crate) fn url(&self) -> String {
        let folder = self.folder.path().display();
        format!("postgresql:///postgres?host={folder}&user=nstance")
    }

    /// Stops the server as a crash does, and starts it again.
    pub(crate) fn crash(&self) -> Result<(), Failure> {
        self.run(
            "pg_ctl",
            &["-D", &self.data(), "-m", "immediate", "-w", "stop"],
        )?;
        self.go()
    }

    fn go(&self) -> Result<(), Failure> {
        // A process that is killed loses nothing that it has written; only a machine would.
        let options = format!(
            "-k {} -c listen_addresses= -c max_connections=300 -c fsync=off",
            self.folder.path().display()
        );
        let log = self.folder.path().join("log").display().to_string();
        let arguments = [
            "-D",
            &self.data(),
            "-o",
            &options,
            "-l",
            &log,
            "-w",
            "start",
        ];
        self.run("pg_ctl", &arguments)
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), Failure> {
        let program = self.programs.join(program);
        let mut command = if packages::is_root() {
            let mut command = Command::new("setpriv");
            let user = format!("--reuid={USER}");
            command
                .args([&user, "--regid=postgres", "--clear-groups"])
                .arg(program);
            command
        } else {
            Command::new(program)
        };
        quietly(command.args(arguments).current_dir(self.folder.path()))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It is a server of tests: nothing is lost if it can't be stopped.
        let _ = self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "stop"]);
    }
}

fn quietly(command: &mut Command) -> Result<(), Failure> {
    // A server keeps what it is given open, so its output can't be waited for.
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .status()?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::say(format!("{command:?}: {status}")))
}

/// The folder with the programs of a server: on the path, or where Debian puts them.
fn programs() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort();
    let is_complete = |folder: &PathBuf| {
        let has = |program: &str| Path::new(folder).join(program).exists();
        has("initdb") && has("pg_ctl")
    };
    versions.into_iter().rev().chain(on_path).find(is_complete)
}

fn missing() -> Failure {
    Failure::say(
        "PostgreSQL's server programs (`initdb`, `pg_ctl`) are missing. States are kept on a server in tests.
Install PostgreSQL 15 or later:
  Debian, Ubuntu:  apt-get install --no-install-recommends postgresql
  Fedora:          dnf install postgresql-server
  macOS:           brew install postgresql@17",
    )
}

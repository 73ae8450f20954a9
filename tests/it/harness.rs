//! A folder of its own for each test, and commands run in it.
//!
//! In: configurations and command lines. Out: what a command left: exit code, standard output,
//! standard error, as one text that is the same on every machine. May not: let anything of the
//! surroundings through, neither environment nor time.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::json_schemas::assert_valid;

/// The example that `nstance init` writes.
pub(crate) const STARTER: &str = include_str!("../../src/cli/starter.jsonc");

/// Two groups without anything else to them.
pub(crate) const TWO: &str = include_str!("data/two.jsonc");

/// A group on a cloud that no build can ask yet.
pub(crate) const GCP: &str = include_str!("data/gcp.jsonc");

/// A small cluster on AWS, with images, files, tags and a load balancer.
pub(crate) const AWS: &str = include_str!("data/aws.jsonc");

/// Where the state of [`TWO`] lies.
pub(crate) const TWO_STATE: &str = ".nstance/test/one.db";

/// Where the starter's state lies.
pub(crate) const STARTER_STATE: &str = ".nstance/example/local.db";

/// A secret. No command may print it, unless a test says that it is to be shown.
pub(crate) const CANARY: &str = "c4Nary-huNter2-Q7";

/// When each test begins.
const BEGINNING: jiff::Timestamp = jiff::Timestamp::constant(1_796_083_200, 0);

/// A folder, and the commands run in it. Time stands still during a command; the next one is ten
/// minutes later.
pub(crate) struct Harness {
    folder: TempDir,
    commands: Cell<i64>,
    real_time: bool,
    shows_secrets: bool,
}

impl Harness {
    /// A folder with nothing in it.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::Builder::new().prefix("nstance-it-").tempdir();
        Self {
            folder: folder.unwrap(),
            commands: Cell::new(0),
            real_time: false,
            shows_secrets: false,
        }
    }

    /// A folder with a configuration.
    pub(crate) fn with(config: &str) -> Self {
        let harness = Self::empty();
        harness.configure(config);
        harness
    }

    /// A copy of one of the project's examples.
    pub(crate) fn example(name: &str) -> Self {
        let harness = Self::empty();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples")
            .join(name);
        let mut files = Vec::new();
        list(&root, &root, &mut files);
        // Who tries an example may leave a state in it.
        for file in files.iter().filter(|file| !file.starts_with(".nstance")) {
            harness.write(file, std::fs::read(root.join(file)).unwrap());
        }
        harness
    }

    /// A folder with the starter.
    pub(crate) fn starter() -> Self {
        Self::with(STARTER)
    }

    /// A configuration, applied.
    pub(crate) fn applied(config: &str) -> Self {
        let harness = Self::with(config);
        harness.ok("apply --auto-approve");
        harness
    }

    /// The same folder by the system's clock, for what has to take time.
    pub(crate) fn in_real_time(mut self) -> Self {
        self.real_time = true;
        self
    }

    /// The same folder, where commands may show the canary.
    pub(crate) fn showing_secrets(mut self) -> Self {
        self.shows_secrets = true;
        self
    }

    /// The folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// A key where the first apply would put one: what is sealed with it is always the same.
    pub(crate) fn give_key(&self) {
        let key = format!("nstance-key-1-{}", "5".repeat(64));
        self.write(".nstance/key", key);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(self.path(".nstance/key"), mode).unwrap();
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Writes the configuration.
    pub(crate) fn configure(&self, config: &str) {
        self.write("nstance.jsonc", config);
    }

    /// Changes what is written once in the configuration.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let config = String::from_utf8(self.read("nstance.jsonc")).unwrap();
        assert_eq!(config.matches(from).count(), 1, "`{from}` stands once");
        self.configure(&config.replacen(from, to, 1));
    }

    /// The bytes of a state, its log included.
    pub(crate) fn bytes(&self, state: &str) -> [Option<Vec<u8>>; 2] {
        [state.to_owned(), format!("{state}-wal")].map(|name| {
            let bytes = std::fs::read(self.path(&name)).ok();
            // An empty log is as good as none.
            bytes.filter(|bytes| !bytes.is_empty())
        })
    }

    /// Runs a command that must be refused: exit code 1, not a byte of the state changed.
    #[track_caller]
    pub(crate) fn refused(&self, state: &str, words: &str) -> Ended {
        let before = self.bytes(state);
        let ended = self.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(
            self.bytes(state) == before,
            "the state is as it was: {ended}"
        );
        ended
    }

    /// Looks for something until it comes; a process of its own between two looks keeps this from
    /// being over in no time. Whether it came in far more time than it should take.
    pub(crate) fn comes(&self, mut look: impl FnMut() -> bool) -> bool {
        const LOOKS: usize = 3_000;
        (0..LOOKS).any(|_| {
            look() || {
                self.run("--version");
                false
            }
        })
    }

    /// Every file below the folder, in order.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        list(self.folder.path(), self.folder.path(), &mut files);
        files.sort();
        files
    }

    /// A command, ready to run, its words parted by spaces.
    pub(crate) fn command(&self, words: &str) -> Command {
        self.command_of(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// A command, ready to run.
    pub(crate) fn command_of(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nstance"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("USER", "tester")
            .env("HOSTNAME", "testhost")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !self.real_time {
            let minutes = self.commands.replace(self.commands.get() + 1) * 10;
            let now = BEGINNING + jiff::SignedDuration::from_mins(minutes);
            // One call after the other, so that instances are made in one order.
            command
                .env("NSTANCE_NOW", now.to_string())
                .env("NSTANCE_PARALLELISM", "1");
        }
        command
    }

    /// Runs a command.
    pub(crate) fn run(&self, words: &str) -> Ended {
        self.end(words, self.command(words))
    }

    /// Runs a command whose arguments have spaces in them.
    pub(crate) fn run_of(&self, arguments: &[&str]) -> Ended {
        self.end(&arguments.join(" "), self.command_of(arguments))
    }

    /// Runs a prepared command.
    pub(crate) fn end(&self, words: &str, mut command: Command) -> Ended {
        let output = command.output().unwrap();
        let arguments = command.get_args().map(|word| word.to_str().unwrap());
        let mut arguments: Vec<String> = arguments.map(str::to_owned).collect();
        let mut variables = command.get_envs();
        let json = variables.find(|(name, _)| *name == "NSTANCE_JSON");
        let json = json.and_then(|(_, value)| value?.to_str());
        if json.is_some_and(|value| ["1", "true", "yes"].contains(&value)) {
            arguments.push("--json".to_owned());
        }
        self.ended(words, &arguments, &output)
    }

    /// What a child that was started from here left.
    pub(crate) fn wait(&self, words: &str, child: Child) -> Ended {
        let output = child.wait_with_output().unwrap();
        let arguments: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        self.ended(words, &arguments, &output)
    }

    /// What a command left. Its JSON, if the arguments ask for some, must be valid.
    #[track_caller]
    fn ended(&self, words: &str, arguments: &[String], output: &std::process::Output) -> Ended {
        let text = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).expect("it is UTF-8");
            let shown = self.shows_secrets || !text.contains(CANARY);
            assert!(shown, "{words} shows a secret:\n{text}");
            self.normalised(text)
        };
        let (code, stdout) = (output.status.code(), text(&output.stdout));
        assert_valid(arguments, &stdout, code.is_some());
        Ended {
            words: words.to_owned(),
            code,
            stdout,
            stderr: by_instance(&text(&output.stderr)),
        }
    }

    /// Runs a command that must end well.
    pub(crate) fn ok(&self, words: &str) -> Ended {
        let ended = self.run(words);
        assert_eq!(ended.code, Some(0), "{ended}");
        ended
    }

    /// Runs a command that must end well and print a JSON document.
    pub(crate) fn json(&self, words: &str) -> Value {
        let ended = self.ok(words);
        ended.json()
    }

    /// The live instances of the cloud, as (address, instance id, provider id).
    pub(crate) fn live(&self) -> BTreeSet<[String; 3]> {
        let document = self.json("sim list --json");
        triples(&document["instances"])
    }

    /// Asserts that record and cloud agree to the instance: nothing recorded that isn't there,
    /// nothing there that isn't recorded, no slot filled twice. Gives how many there are.
    #[track_caller]
    pub(crate) fn agrees(&self, options: &str) -> usize {
        let live = self.live();
        let document = self.json(&format!("{options} state list --json"));
        let records = &document["records"];
        assert_eq!(triples(records), live, "record and cloud disagree");
        let addresses: BTreeSet<_> = live.iter().map(|[address, ..]| address).collect();
        assert_eq!(addresses.len(), live.len(), "a slot is filled twice");
        assert_eq!(records.as_array().unwrap().len(), live.len());
        live.len()
    }

    /// Text as it would be on any machine, in any process.
    fn normalised(&self, text: &str) -> String {
        let folder = self.folder.path();
        let mut text = text.replace(&*folder.to_string_lossy(), "[FOLDER]");
        if let Ok(real) = folder.canonicalize() {
            text = text.replace(&*real.to_string_lossy(), "[FOLDER]");
        }
        let text = after(&text, "process ", "[PID]", |c| c.is_ascii_digit());
        let text = after(&text, "(id ", "[ID]", |c| c.is_ascii_hexdigit() || c == '-');
        let text = after(&text, "sealed with the key ", "[KEY]", |c| {
            c.is_ascii_hexdigit()
        });
        after(&text, "\"pid\": ", "0", |c| c.is_ascii_digit())
    }
}

/// Replaces what follows each `mark`, as far as `is_part` holds.
fn after(text: &str, mark: &str, put: &str, is_part: fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(is_part);
        out.push_str(mark);
        if rest.len() < part.len() {
            out.push_str(put);
        }
        out.push_str(rest);
    }
    out
}

/// Sorts lines of progress by instance and group: what happens to one has an order, what happens to
/// two has none.
fn by_instance(text: &str) -> String {
    let instance = |line: &str| {
        let (address, _) = line.split_once(": ")?;
        (matches!(address.matches('/').count(), 1 | 2) && !address.contains(' '))
            .then(|| address.to_owned())
    };
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    for part in lines.chunk_by_mut(|a, b| instance(a).is_some() == instance(b).is_some()) {
        if instance(part[0]).is_some() {
            part.sort_by_key(|line| instance(line));
        }
    }
    lines.concat()
}

fn list(root: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap();
            files.push(name.to_string_lossy().into_owned());
        }
    }
}

fn triples(rows: &Value) -> BTreeSet<[String; 3]> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
    let rows = rows.as_array().expect("a list");
    rows.iter()
        .map(|row| ["address", "instance_id", "provider_id"].map(|key| text(row, key)))
        .collect()
}

/// What a command left.
pub(crate) struct Ended {
    words: String,
    /// The exit code; none after a signal that it didn't handle.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Standard output as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// Standard output as JSON objects, one a line.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{self}"))
        };
        self.stdout.lines().map(parse).collect()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or("none".to_owned(), |code| code.to_string());
        writeln!(f, "$ nstance {}\nexit code: {code}", self.words)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "----- {name}\n{text}")?;
                if !text.ends_with('\n') {
                    writeln!(f, "⏎ (no line feed)")?;
                }
            }
        }
        Ok(())
    }
}

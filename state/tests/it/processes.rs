//! What holds between processes: a child is this test binary again, told by its environment what
//! to do, and killed in the middle of it.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nstance_state::{
    ApplyStatus, Intent, Lock, NewApply, NewRequest, NewRollout, Outcome, Record, RolloutStatus,
    SqliteStore, StateError, Timestamp,
};

use crate::common::{Place, creation, identity, put, put_in, record};
use crate::lock::info;

const TASK: &str = "NSTANCE_STATE_TEST_TASK";
const PATH: &str = "NSTANCE_STATE_TEST_PATH";

/// The part of the child. Ignored, so that it runs only where a test asks for it.
#[test]
#[ignore = "a part that other tests have played in a process of its own"]
fn child() {
    let path = std::path::PathBuf::from(std::env::var_os(PATH).unwrap());
    match std::env::var(TASK).unwrap().as_str() {
        "hold the lock" => {
            let mut store = SqliteStore::open(&path, None).unwrap();
            let _lock = Lock::acquire(&path, info("child"), Duration::ZERO).unwrap();
            store
                .transaction(Timestamp(1), |transaction| transaction.start_apply(apply()))
                .unwrap();
            say("held");
            forever();
        }
        "roll out until something is asked for" => {
            let _lock = Lock::acquire(&path, info("child"), Duration::ZERO).unwrap();
            let mut store = SqliteStore::open(&path, None).unwrap();
            let rollout = NewRollout {
                plan_digest: None,
                plan: Vec::new(),
                status: RolloutStatus::Waiting,
            };
            let id = store
                .transaction(Timestamp(1), |transaction| {
                    transaction.start_apply(apply())?;
                    transaction.start_rollout(&rollout)
                })
                .unwrap();
            say("waiting");
            let request = loop {
                if let Some(request) = store.rollout_requests().unwrap().pop() {
                    break request;
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            store
                .transaction(Timestamp(3), |transaction| {
                    transaction.remove_request(request.id)?;
                    transaction.set_rollout_status(id, RolloutStatus::Failed)
                })
                .unwrap();
            say(&format!("{} asked to {}", request.who, request.kind));
        }
        "stay in a transaction" => {
            let mut store = SqliteStore::open(&path, None).unwrap();
            store
                .transaction(Timestamp(1), |transaction| -> nstance_state::Result<()> {
                    let records: Vec<Record> =
                        (0..20_000).map(|slot| record("child/many", slot)).collect();
                    put_in(transaction, &records)?;
                    transaction.remove_record("knd-a/b-0")?;
                    say("inside");
                    forever()
                })
                .unwrap();
        }
        "commit again and again" => {
            let mut store = SqliteStore::open(&path, None).unwrap();
            for wave in 0_u32.. {
                let wave = wave * 8..(wave + 1) * 8;
                let intents: Vec<Intent> = wave
                    .clone()
                    .map(|slot| creation("child/wave", slot))
                    .collect();
                let ids = store
                    .transaction(Timestamp(1), |transaction| {
                        transaction.open_intents(&intents)
                    })
                    .unwrap();
                say(&format!("opened {}", wave.end));
                for (slot, id) in wave.zip(ids) {
                    store
                        .transaction(Timestamp(2), |transaction| {
                            put_in(transaction, &[record("child/wave", slot)])?;
                            transaction.close_intent(id, Outcome::Done)
                        })
                        .unwrap();
                    say(&format!("recorded {}", slot + 1));
                }
            }
        }
        "read and try to write" => {
            let reader = SqliteStore::open_read_only(&path, Some(&identity())).unwrap();
            let read = reader.snapshot().unwrap().records.len();
            assert_eq!(Lock::peek(&path).unwrap(), None);
            assert_eq!(reader.history(5).unwrap(), []);
            let refused = SqliteStore::open(&path, Some(&identity())).unwrap_err();
            assert!(
                matches!(refused, StateError::ReadOnly { .. }),
                "{refused:?}"
            );
            say(&format!("read {read}"));
        }
        other => panic!("no such task: {other}"),
    }
}

fn apply() -> NewApply {
    let info = info("child");
    NewApply {
        who: info.holder,
        host: info.host,
        pid: info.pid,
        operation: info.operation,
        plan_digest: None,
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "child: {text}").unwrap();
    out.flush().unwrap();
}

fn forever() -> ! {
    loop {
        std::thread::park();
    }
}

/// A child that is killed when this is dropped.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(task: &str, place: &Place) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, place)
    }

    fn spawn(mut command: Command, task: &str, place: &Place) -> Self {
        let mut child = command
            .args(["--exact", "processes::child", "--ignored", "--nocapture"])
            .env(TASK, task)
            .env(PATH, &place.path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next thing that the child says.
    fn hear(&mut self) -> Option<String> {
        let said = |line: String| Some(line.split_once("child: ")?.1.to_owned());
        self.lines.by_ref().map(Result::unwrap).find_map(said)
    }

    /// Kills the child, and answers what it had said that wasn't heard yet.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.hear()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Dead already where the test ended well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_lock_of_another_process_ends_with_it() {
    let (place, store) = Place::new();
    let mut child = Running::start("hold the lock", &place);
    assert_eq!(child.hear().unwrap(), "held");

    let holder = Lock::peek(&place.path).unwrap().unwrap();
    assert_eq!(holder.pid, child.child.id());
    match Lock::acquire(&place.path, info("mine"), Duration::ZERO).unwrap_err() {
        StateError::Locked { holder: found } => assert_eq!(*found, holder),
        error => panic!("{error:?}"),
    }
    let refused = Lock::break_stale(&place.path, "child").unwrap_err();
    assert!(matches!(refused, StateError::Locked { .. }));
    assert_eq!(store.history(9).unwrap()[0].status, ApplyStatus::Running);

    child.kill();
    assert_eq!(Lock::peek(&place.path).unwrap(), None);
    assert_eq!(
        store.history(9).unwrap()[0].status,
        ApplyStatus::Interrupted
    );
    // Someone else's lock doesn't bring the dead apply back.
    let lock = Lock::acquire(&place.path, info("mine"), Duration::ZERO).unwrap();
    assert_eq!(
        store.history(9).unwrap()[0].status,
        ApplyStatus::Interrupted
    );
    lock.release();
}

#[test]
fn a_request_reaches_the_process_that_holds_the_lock() {
    let (place, store) = Place::new();
    drop(store);
    let mut child = Running::start("roll out until something is asked for", &place);
    assert_eq!(child.hear().unwrap(), "waiting");
    let mut store = SqliteStore::open(&place.path, Some(&identity())).unwrap();
    let request = NewRequest {
        group: None,
        kind: "abort".into(),
        who: "ann".into(),
    };
    store
        .transaction(Timestamp(2), |transaction| {
            transaction.add_request(&request)
        })
        .unwrap();
    assert_eq!(child.hear().unwrap(), "ann asked to abort");
    let rollout = store.rollout().unwrap().unwrap();
    assert_eq!(rollout.status, RolloutStatus::Failed);
    assert_eq!(store.rollout_requests().unwrap(), []);
}

#[test]
fn a_lock_that_was_left_can_be_broken() {
    let (place, _store) = Place::new();
    let mut child = Running::start("hold the lock", &place);
    assert_eq!(child.hear().unwrap(), "held");
    child.kill();
    let wrong = Lock::break_stale(&place.path, "another").unwrap_err();
    assert!(matches!(wrong, StateError::WrongLock { .. }));
    assert_eq!(Lock::break_stale(&place.path, "child").unwrap().id, "child");
}

#[test]
fn a_process_killed_in_a_transaction_leaves_nothing_of_it() {
    let (place, mut store) = Place::new();
    put(&mut store, &[record("a/b", 0)]).unwrap();
    drop(store);
    let mut child = Running::start("stay in a transaction", &place);
    assert_eq!(child.hear().unwrap(), "inside");

    // While it lives: readers see what was there, another writer waits in vain.
    let reader = SqliteStore::open_read_only(&place.path, Some(&identity())).unwrap();
    assert_eq!(reader.snapshot().unwrap().records.len(), 1);
    let mut store = SqliteStore::open(&place.path, Some(&identity())).unwrap();
    store.set_busy_timeout(Duration::from_millis(50)).unwrap();
    let started = Instant::now();
    let busy = put(&mut store, &[record("a/b", 1)]).unwrap_err();
    assert!(matches!(busy, StateError::Busy { .. }), "{busy:?}");
    assert!(started.elapsed() >= Duration::from_millis(50));

    child.kill();
    for store in [&store, &reader] {
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.meta.serial, 1);
        assert_eq!(snapshot.records.len(), 1);
        assert_eq!(store.check().unwrap(), []);
    }
    put(&mut store, &[record("a/b", 1)]).unwrap();
    assert_eq!(store.meta().unwrap().serial, 2);
    drop((store, reader));
    assert_eq!(
        SqliteStore::open(&place.path, None)
            .unwrap()
            .snapshot()
            .unwrap()
            .records
            .len(),
        2
    );
}

#[test]
fn what_a_killed_process_had_committed_is_there_and_nothing_halfway() {
    for heard in [1, 2, 5, 9, 10, 23, 40, 61] {
        let (place, store) = Place::new();
        drop(store);
        let mut child = Running::start("commit again and again", &place);
        let mut said: Vec<String> = (0..heard)
            .map(|_| child.hear().expect("the child goes on for ever"))
            .collect();
        said.extend(child.kill());
        let last = |what: &str| -> usize {
            let mut numbers = said.iter().filter_map(|line| line.strip_prefix(what));
            numbers
                .next_back()
                .map_or(0, |number| number.trim().parse().unwrap())
        };
        let (opened, recorded) = (last("opened "), last("recorded "));

        // First as a plan would find it, then as the next apply would.
        let reader = SqliteStore::open_read_only(&place.path, Some(&identity())).unwrap();
        let writer = SqliteStore::open(&place.path, Some(&identity())).unwrap();
        for store in [reader, writer] {
            let snapshot = store.snapshot().unwrap();
            let records = snapshot.records.len();
            let intents = snapshot.intents.len();
            // It may have committed once more than it could say.
            assert!(
                records == recorded || records == recorded + 1,
                "{records} of {recorded}"
            );
            let known = records + intents;
            assert!(
                known == opened || known == opened + 8,
                "{known} of {opened}"
            );
            assert_eq!(known % 8, 0);
            assert_eq!(snapshot.meta.serial, records as u64);
            for (slot, record) in (0_u32..).zip(&snapshot.records) {
                assert_eq!(record.slot, slot);
            }
            for (slot, intent) in (records as u32..).zip(&snapshot.intents) {
                assert_eq!(intent.slot, slot);
                assert_eq!(intent.request, creation("child/wave", slot).request);
            }
            assert_eq!(store.check().unwrap(), []);
        }
    }
}

/// Who may do nothing that isn't allowed to everyone.
const NOBODY: u32 = 65_534;

/// Runs the child as a user whom permissions bind: as `NOBODY` where the tests run as root, who
/// may do everything, and as oneself otherwise.
fn read_as_nobody(place: &Place) -> String {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    // Where that user can reach it.
    let executable = tempfile::tempdir().unwrap();
    fs::set_permissions(executable.path(), Permissions::from_mode(0o755)).unwrap();
    let copy = executable.path().join("it");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = Command::new(copy);
    command.current_dir("/");
    if root {
        command.uid(NOBODY).gid(NOBODY);
    }
    Running::spawn(command, "read and try to write", place)
        .hear()
        .expect("the child can read")
}

#[test]
fn a_state_that_may_only_be_read_is_read_and_nothing_is_left_beside_it() {
    // Who may write what: the folder, the file. Never both.
    for (folder, file) in [(0o555, 0o444), (0o777, 0o444), (0o555, 0o666)] {
        // A log that one may write is as good as a folder that one may write.
        let crashes: &[bool] = if file == 0o666 {
            &[false]
        } else {
            &[false, true]
        };
        for &crashed in crashes {
            let (origin, mut store) = Place::new();
            put(&mut store, &[record("a/b", 0), record("a/b", 1)]).unwrap();
            let place = Place::empty();
            if !crashed {
                drop(store);
            }
            // Copied while it is open: what a crash would leave.
            for name in origin.names() {
                let to = place.folder.path().join(&name);
                fs::copy(origin.folder.path().join(&name), &to).unwrap();
                fs::set_permissions(&to, Permissions::from_mode(file)).unwrap();
            }
            let before = place.names();
            assert_eq!(before.len(), if crashed { 3 } else { 1 });
            let bytes = fs::read(&place.path).unwrap();
            fs::set_permissions(place.folder.path(), Permissions::from_mode(folder)).unwrap();
            let read = read_as_nobody(&place);
            // So that the folder can be removed.
            fs::set_permissions(place.folder.path(), Permissions::from_mode(0o700)).unwrap();
            assert_eq!(read, "read 2", "{folder:o} {file:o} {crashed}");
            assert_eq!(place.names(), before, "{folder:o} {file:o} {crashed}");
            assert_eq!(fs::read(&place.path).unwrap(), bytes);
        }
    }
}

//! Disks that are full, and file systems without locks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;

use crate::harness::{Harness, TWO, TWO_STATE};

/// `apply` where no file may grow beyond so many blocks of 512 bytes.
fn apply_with_limit(harness: &Harness, blocks: u32) -> Command {
    // Only the shell ignores the signal that a file too large brings; the program inherits that.
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let apply = harness.command("apply --auto-approve");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script, "sh"])
        .arg(apply.get_program())
        .args(apply.get_args())
        .current_dir(harness.path(""))
        .env_clear();
    for (name, value) in apply.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

#[test]
fn files_that_may_not_grow_lose_nothing() {
    let mut failures = 0;
    for blocks in [0, 8, 60, 120, 200, 240, 260, 300, 400] {
        let harness = Harness::with(TWO);
        harness.edit("\"size\": 3", "\"size\": 40");
        let ended = harness.end("apply", apply_with_limit(&harness, blocks));
        if ended.code != Some(0) {
            failures += 1;
            assert_eq!(ended.code, Some(1), "{blocks} blocks: {ended}");
            assert!(ended.stderr.contains("error: "), "{blocks} blocks: {ended}");
        }
        harness.ok("apply --auto-approve");
        assert_eq!(harness.agrees(""), 42, "{blocks} blocks: {ended}");
        harness.ok("plan --detailed-exitcode");
    }
    assert!(failures >= 4, "{failures}");
}

/// A small disk of its own, in memory; it takes root to have one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn at(path: &Path, kilobytes: u32) -> Option<Self> {
        fs::create_dir(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "none"])
            .arg(path)
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then(|| Self(path.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_full_disk_is_said_and_nothing_is_lost() {
    let mut said = 0;
    for kilobytes in [100, 200, 280, 320, 400, 520] {
        let harness = Harness::with(TWO);
        harness.edit("\"size\": 3", "\"size\": 40");
        let Some(disk) = SmallDisk::at(&harness.path("disk"), kilobytes) else {
            println!("no disk can be mounted here; limits of files are tried elsewhere");
            return;
        };
        let state = "--state sqlite:disk/state.db";
        let ended = harness.run(&format!("apply --auto-approve {state}"));
        if ended.code != Some(0) {
            assert_eq!(ended.code, Some(1), "{kilobytes} KB: {ended}");
            assert!(ended.stderr.contains("the disk is full"), "{ended}");
            said += 1;
        }
        let left = fs::read_dir(harness.path("disk")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert!(
            left.iter()
                .all(|name| !name.to_string_lossy().contains(".new")),
            "{left:?}"
        );
        let more = Command::new("mount")
            .args(["-o", "remount,size=8m"])
            .arg(&disk.0)
            .status();
        assert!(more.unwrap().success());
        harness.ok(&format!("apply --auto-approve {state}"));
        assert_eq!(harness.agrees(state), 42, "{kilobytes} KB: {ended}");
    }
    assert!(said >= 2, "{said}");
}

/// What a file system without locks answers, put in the place of the kernel's answer: no file system
/// at hand refuses them.
const NO_LOCKS: &str = "#include <errno.h>
int flock(int file, int operation) { (void)file; (void)operation; errno = ENOLCK; return -1; }
";

#[test]
#[cfg(target_os = "linux")]
fn a_file_system_without_locks_is_refused_and_readers_need_none() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 4");
    let before = harness.bytes(TWO_STATE);
    let elsewhere = tempfile::tempdir().unwrap();
    let (source, library) = (elsewhere.path().join("f.c"), elsewhere.path().join("f.so"));
    fs::write(&source, NO_LOCKS).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiled = Command::new(compiler)
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(compiled.unwrap().success());
    let without_locks = |words: &str| {
        let mut command = harness.command(words);
        command.env("LD_PRELOAD", &library);
        harness.end(words, command)
    };
    let ended = without_locks("apply --auto-approve");
    assert!(harness.bytes(TWO_STATE) == before);
    assert_snapshot!(ended);
    for words in ["plan", "show", "state list", "drift"] {
        let ended = without_locks(words);
        assert_eq!(ended.code, Some(0), "{ended}");
    }
    harness.ok("apply --auto-approve");
}

#[test]
fn a_lock_that_cannot_be_made_is_refused() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 4");
    let lock = harness.path(&format!("{TWO_STATE}.lock"));
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    assert_snapshot!(harness.refused(TWO_STATE, "apply --auto-approve"));
    harness.ok("plan");
    fs::remove_dir(&lock).unwrap();
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 6);
}

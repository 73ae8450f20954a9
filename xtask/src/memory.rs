//! How much memory this machine has.
//!
//! In: nothing. Out: bytes. May not: guess where the system doesn't say.

use std::fs;

/// What the clouds' clients take to build: aws-sdk-ec2 alone needs 7 GB at its peak.
pub(crate) const FOR_CLIENTS: u64 = 10_000_000_000;

/// The memory that processes here may use, in bytes: what the machine has, or what its control
/// group leaves. None where the system has no `/proc/meminfo`.
pub(crate) fn total() -> Option<u64> {
    let machine = in_meminfo(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let limits = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let limit = |path: &&str| fs::read_to_string(path).ok()?.trim().parse().ok();
    let limits = limits.iter().filter_map(limit);
    Some(limits.fold(machine, u64::min))
}

fn in_meminfo(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::in_meminfo;

    #[test]
    fn the_total_is_read() {
        let text = "MemTotal:       24689764 kB\nMemFree:          204320 kB\n";
        assert_eq!(in_meminfo(text), Some(24_689_764 * 1024));
        assert_eq!(in_meminfo("MemFree: 1 kB\n"), None);
    }
}

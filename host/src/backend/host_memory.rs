//! The memory of the host.

use std::fs;

/// Free bytes; `usize::MAX` if the system does not say.
pub(crate) fn free_bytes() -> usize {
    meminfo("MemAvailable").unwrap_or(usize::MAX)
}

/// A line of `/proc/meminfo`, in bytes. Without one, no limit is known.
pub(crate) fn meminfo(key: &str) -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kib| kib * 1024)
}

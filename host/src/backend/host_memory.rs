//! The memory of the host.

use std::fs;

/// The number of free bytes; `usize::MAX` if it is unknown.
pub(crate) fn free_bytes() -> usize {
    meminfo("MemAvailable").unwrap_or(usize::MAX)
}

/// The value of a line of `/proc/meminfo`, in bytes; `None` if there is no such line or file.
pub(crate) fn meminfo(key: &str) -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kib| kib * 1024)
}

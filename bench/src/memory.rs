//! Memory: checks whether enough is free before a command allocates, and allocations that return an error if they fail.
//!
//! Linux overcommits memory: an allocation succeeds even if there is too little, and the program is killed when it uses
//! the memory.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use warpfold::Gpu;

use crate::number::counted;

/// The bytes that a command needs at once. They are `u128`, so that the product of two `u64` lengths fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Bytes of device memory: inputs, with all of their copies, and results.
    pub device: u128,
    /// Bytes of host memory: inputs, expected results, and the results that are compared with these.
    pub host: u128,
}

/// The size of `len` elements in bytes.
pub fn bytes_of<T>(len: usize) -> u128 {
    len as u128 * size_of::<T>() as u128
}

impl Need {
    /// Refuses a need that exceeds the free memory. `what` names the work, and `instead` says how to reduce the need.
    pub fn check(self, gpu: &Gpu, what: &str, instead: &str) -> anyhow::Result<()> {
        let of_host = free_host_memory();
        if gpu.is_cuda() {
            enough(what, "the device's memory", self.device, gpu.free_memory()?, instead)?;
            enough(what, "the host's memory", self.host, of_host, instead)
        } else {
            // In the executor, device memory is host memory.
            let free = of_host.min(gpu.free_memory()?);
            enough(what, "memory", self.device.saturating_add(self.host), free, instead)
        }
    }
}

fn enough(what: &str, memory: &str, needed: u128, free: usize, instead: &str) -> anyhow::Result<()> {
    ensure!(
        needed <= free as u128,
        "{what} needs {} of {memory}, and {} is free: {instead}, or free memory",
        shown(needed),
        shown(free as u128)
    );
    Ok(())
}

/// An empty list with capacity for `len` elements.
pub fn list<T>(len: usize) -> anyhow::Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).with_context(|| {
        format!("cannot allocate {} of host memory: choose a smaller input", shown(bytes_of::<T>(len)))
    })?;
    Ok(list)
}

/// A number of bytes with a suitable unit.
pub fn shown(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    if unit == 0 { counted(bytes, "byte", "bytes") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// The bytes of host memory that this process can still use; `usize::MAX` if no limit is known.
pub fn free_host_memory() -> usize {
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    of_machine.into_iter().chain(of_groups(&groups, Path::new("/sys/fs/cgroup"))).min().unwrap_or(usize::MAX)
}

fn available(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// The remaining memory of the control groups of a process, which containers and `systemd-run` limit: its own group, by
/// `/proc/self/cgroup`, and the groups above.
fn of_groups(groups: &str, root: &Path) -> Option<usize> {
    let of_line = |line: &str| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let (root, files) = match controllers {
            "" => (root.to_owned(), ["memory.max", "memory.current", "inactive_file"]),
            "memory" => {
                (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"])
            }
            _ => return None,
        };
        // In a container, the path of the group may be that on the host. Then only some folders above it exist here.
        let own = root.join(group.trim_start_matches('/'));
        own.ancestors().take_while(|folder| folder.starts_with(&root)).filter_map(|folder| left(folder, files)).min()
    };
    groups.lines().filter_map(of_line).min()
}

/// The limit of a group minus its usage. Inactive file pages are reclaimed first, so they count as free.
fn left(folder: &Path, [limit, usage, inactive]: [&str; 3]) -> Option<usize> {
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<usize>().ok();
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let reclaimable = stat.lines().find_map(|line| line.strip_prefix(inactive)?.trim().parse::<usize>().ok());
    Some(number(limit)?.saturating_sub(number(usage)?.saturating_sub(reclaimable.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_needs_too_much_memory() {
        let free = 1 << 30;
        assert!(enough("a sum", "memory", 1 << 30, free, "").is_ok());
        let refused = enough("a sum of 2^45 f32", "memory", 1 << 47, free, "choose a smaller --n").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a sum of 2^45 f32 needs 128.0 TiB of memory, and 1.0 GiB is free: choose a smaller --n, or free memory"
        );
        let gpu = Gpu::simt();
        assert!(Need { device: 1, host: 1 }.check(&gpu, "", "").is_ok());
        assert!(Need { device: u128::MAX, host: u128::MAX }.check(&gpu, "", "").is_err());
    }

    #[test]
    fn a_failed_allocation_is_an_error() {
        assert!(list::<u64>(usize::MAX / 8).unwrap_err().to_string().contains("EiB"));
        assert!(list::<u64>(10).unwrap().capacity() >= 10);
    }

    #[test]
    fn limits_of_control_groups_count() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:      2 kB\n"), Some(2048));
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("memory.max", "max\n");
        write("a/memory.max", "5000\n");
        write("a/memory.current", "1500\n");
        write("a/memory.stat", "anon 1000\ninactive_file 500\n");
        write("memory/b/memory.limit_in_bytes", "700\n");
        write("memory/b/memory.usage_in_bytes", "900\n");
        assert_eq!(of_groups("0::/\n", root.path()), None);
        assert_eq!(of_groups("0::/a/not/here\n", root.path()), Some(4000));
        assert_eq!(of_groups("9:name=systemd:/\n4:memory:/b\n0::/a\n", root.path()), Some(0));
    }
}

//! Launches that fault repeatedly. The test has its own binary, because it measures the memory of the whole process.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use simt::Launch;
use simt::lane::{self, Barrier};

const FULL: u32 = u32::MAX;

fn sync() {
    lane::barrier(Barrier::Sync, false);
}

/// Counts the values that are alive.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(alive: &'a AtomicUsize) -> Self {
        alive.fetch_add(1, Relaxed);
        Self(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        // A destructor that waits returns at once when its lane unwinds.
        if std::thread::panicking() {
            sync();
            lane::sync_warp(FULL);
        }
        self.0.fetch_sub(1, Relaxed);
    }
}

#[test]
fn faulting_launches_leak_nothing_and_leave_the_executor_usable() {
    let round = |i: u32| {
        let alive = AtomicUsize::new(0);
        let fault = simt::run(&Launch::new("abandoned", 4, 256), &|| {
            let _counted = Counted::new(&alive);
            let _bytes = vec![1_u8; 1000];
            sync();
            match (lane::thread_idx().x, i % 4) {
                (200, 0) => panic!("on purpose"),
                (201, 1) => lane::fault("on purpose".to_owned()),
                (202, 2) => return,
                (203.., 3) => lane::sync_warp(FULL),
                _ => {}
            }
            sync();
        });
        let text = fault.unwrap_err().to_string();
        assert!(text.starts_with("kernel `abandoned`, block (0, 0, 0)"), "{text}");
        assert_eq!(alive.into_inner(), 0);
        let visits = AtomicUsize::new(0);
        simt::run(&Launch::new("after", 4, 256), &|| {
            sync();
            visits.fetch_add(1, Relaxed);
        })
        .unwrap();
        assert_eq!(visits.into_inner(), 1024);
    };
    (0..20).for_each(round);
    let before = resident_pages();
    (0..200).for_each(round);
    let grown = resident_pages().saturating_sub(before);
    // If each launch leaked one block's lanes, it would leak 200 times 200 stacks.
    assert!(grown < 512, "{grown} pages");
}

fn resident_pages() -> usize {
    let sizes = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    sizes.split(' ').nth(1).map_or(0, |pages| pages.parse().unwrap())
}

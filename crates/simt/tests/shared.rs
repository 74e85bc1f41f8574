//! Shared memory: static arrays and dynamic shared memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use simt::lane::{self, Barrier};
use simt::{Fault, Launch, Limits};

fn sync() {
    lane::barrier(Barrier::Sync, false);
}

fn read(array: *mut u32, index: u32) -> u32 {
    // SAFETY: the tests' indices are inside their arrays, and the lanes of a block run on one core.
    unsafe { array.add(index as usize).read() }
}

fn write(array: *mut u32, index: u32, value: u32) {
    // SAFETY: as in `read`.
    unsafe { array.add(index as usize).write(value) }
}

#[test]
fn a_block_reduces_through_shared_memory() {
    for threads in [1, 2, 32, 64, 256, 1024] {
        let blocks = 50;
        let total = AtomicU64::new(0);
        simt::run(&Launch::new("reduce", blocks, threads), &|| {
            let tile = lane::shared_array(7, threads as usize * 4, 4).cast::<u32>();
            let thread = lane::thread_idx().x;
            write(tile, thread, lane::block_idx().x * threads + thread);
            sync();
            let mut half = threads / 2;
            while half > 0 {
                if thread < half {
                    write(tile, thread, read(tile, thread) + read(tile, thread + half));
                }
                sync();
                half /= 2;
            }
            if thread == 0 {
                total.fetch_add(u64::from(read(tile, 0)), Relaxed);
            }
        })
        .unwrap();
        let n = u64::from(blocks * threads);
        assert_eq!(total.into_inner(), n * (n - 1) / 2);
    }
}

#[test]
fn arrays_are_apart_aligned_and_the_same_for_all_lanes() {
    simt::run(&Launch { dynamic_shared: 20, ..Launch::new("apart", 4, 64) }, &|| {
        let first = lane::shared_array(1, 10, 1);
        let second = lane::shared_array(2, 256, 16).cast::<u32>();
        let (dynamic, bytes) = lane::dynamic_shared();
        assert_eq!(bytes, 20);
        for address in [first, second.cast(), dynamic] {
            assert!(address.addr().is_multiple_of(16));
        }
        assert!(dynamic.addr() + 20 <= first.addr() && first.addr() + 10 <= second.addr());
        let thread = lane::thread_idx().x;
        write(second, thread, thread);
        if thread == 0 {
            (0..5).for_each(|i| write(dynamic.cast(), i, 100 + i));
        }
        sync();
        assert_eq!(read(second, 63 - thread), 63 - thread);
        assert_eq!(read(dynamic.cast(), thread % 5), 100 + thread % 5);
        assert_eq!(lane::shared_array(1, 10, 1), first);
    })
    .unwrap();
}

#[test]
fn nothing_is_left_of_the_block_before() {
    let launch = Launch { dynamic_shared: 64, ..Launch::new("fresh", 200, 16) };
    simt::run(&launch, &|| {
        let array = lane::shared_array(1, 64, 4).cast::<u32>();
        let dynamic = lane::dynamic_shared().0.cast::<u32>();
        let thread = lane::thread_idx().x;
        assert_eq!(read(array, thread), 0xA5A5_A5A5);
        assert_eq!(read(dynamic, thread), 0xA5A5_A5A5);
        write(array, thread, 1);
        write(dynamic, thread, 1);
    })
    .unwrap();
}

#[test]
fn without_dynamic_shared_memory_there_are_no_bytes() {
    simt::run(&Launch::new("none", 1, 1), &|| assert_eq!(lane::dynamic_shared().1, 0)).unwrap();
}

#[test]
fn one_array_has_one_size() {
    let fault = simt::run(&Launch::new("sizes", 1, 2), &|| {
        lane::shared_array(3, 128 + 4 * lane::thread_idx().x as usize, 4);
    })
    .unwrap_err();
    let text = fault.to_string();
    assert!(matches!(fault, Fault::Access { .. }));
    assert!(
        text.starts_with(
            "kernel `sizes`, block (0, 0, 0), thread (1, 0, 0): \
             one shared array is declared with 128 bytes and with 132 (at crates/simt/tests/shared.rs:"
        ),
        "{text}"
    );
}

#[test]
fn arrays_and_dynamic_part_share_one_limit() {
    let limits = Limits { shared_bytes: 100, ..Limits::default() };
    let launch = |dynamic_shared| Launch { dynamic_shared, limits, ..Launch::new("much", 1, 1) };
    let uses_36 = || {
        lane::shared_array(3, 36, 4);
    };
    simt::run(&launch(64), &uses_36).unwrap();
    let text = simt::run(&launch(65), &uses_36).unwrap_err().to_string();
    assert!(
        text.starts_with(
            "kernel `much`, block (0, 0, 0), thread (0, 0, 0): \
             the block's shared memory is 116 bytes, the limit is 100 (at crates/simt/tests/shared.rs:"
        ),
        "{text}"
    );
    assert_eq!(
        simt::run(&launch(101), &|| ()).unwrap_err().to_string(),
        "kernel `much` cannot be launched: dynamic shared memory is 101 bytes, the limit is 100 bytes"
    );
}

#[test]
fn an_unlimited_launch_still_has_an_end() {
    let limits = Limits { shared_bytes: usize::MAX, ..Limits::default() };
    let launch = Launch { limits, ..Launch::new("endless", 1, 1) };
    let fault = simt::run(&launch, &|| {
        lane::shared_array(3, usize::MAX, 4);
    });
    assert!(fault.unwrap_err().to_string().contains("the limit is 1048576"));
    assert!(simt::run(&Launch { dynamic_shared: usize::MAX, ..launch }, &|| ()).is_err());
}

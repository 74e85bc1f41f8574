//! Tests that need gigabytes of the device's memory. They are shown as ignored on a device with less.

use std::sync::Arc;

use libtest_mimic::Trial;
use test_support::large_transposes;
use test_support::reductions::large;
use warpfold::Gpu;

use crate::OTHERS;

/// The name of a test, the free memory that it needs, and its body.
type Large = (&'static str, usize, fn(&Gpu) -> Result<(), String>);

const LARGE: [Large; 4] = [
    ("reductions past 2^31 and 2^32 elements", large::BYTES, large::lengths),
    ("exact sums of 2^32 + 1 equal elements", large::BYTES_OF_EQUAL, large::equal_elements),
    ("transposes past 2^32 elements", large::BYTES + large_transposes::BYTES, |gpu| {
        large_transposes::check(gpu, &large_transposes::SIDES, large_transposes::SIDE_IN_PLACE)
    }),
    ("transposes of 3 bytes past 2^31 units", large::BYTES + large_transposes::BYTES_OF_THREE, |gpu| {
        large_transposes::check_three_bytes(gpu, large_transposes::SIDES_OF_THREE_BYTES)
    }),
];

/// The tests.
pub fn trials(gpu: Option<&Arc<Gpu>>) -> impl Iterator<Item = Trial> {
    LARGE.into_iter().map(move |(name, bytes, test)| {
        let free = gpu.and_then(|gpu| gpu.free_memory().ok()).unwrap_or(0);
        if gpu.is_some() && free <= bytes {
            println!("skipped: {name}: needs {bytes} bytes of memory, and the device has {free} bytes free");
        }
        let own = gpu.cloned();
        let run = move || {
            let _others = OTHERS.read();
            let gpu = own.as_deref().ok_or("no CUDA device")?;
            Ok(test(gpu)?)
        };
        Trial::test(name, run).with_ignored_flag(free <= bytes)
    })
}

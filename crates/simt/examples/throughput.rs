//! The executor's throughput in lanes per second.
//!
//! The kernels never wait, wait at barriers, or shuffle. Two more kernels show the cost of counting and checking: one
//! copies through shared memory, and one only accesses global memory.
//!
//! `cargo run --release -p warpfold-simt --example throughput`

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use simt::lane::{self, Access, Barrier, Shuffle, Space};
use simt::{Argument, Launch, Schedule, Watch};

const THREADS: u32 = 1 << 20;
const BLOCK: u32 = 256;
const ROUNDS: usize = 5;
/// Rows and columns of the matrix.
const SIDE: usize = 512;

fn main() -> Result<(), Box<dyn Error>> {
    let out: Vec<AtomicU32> = (0..THREADS).map(|_| AtomicU32::new(0)).collect();
    let index = || (lane::block_idx().x * lane::block_dim().x + lane::thread_idx().x) as usize;

    measure("trivial", &|| out[index()].store(lane::lane_id(), Ordering::Relaxed))?;
    measure("10 barriers", &|| {
        for _ in 0..10 {
            lane::barrier(Barrier::Sync, false);
        }
        out[index()].store(lane::lane_id(), Ordering::Relaxed);
    })?;
    measure("5 shuffles", &|| {
        let mut sum = lane::lane_id();
        for step in [16, 8, 4, 2, 1] {
            sum += lane::shuffle(Shuffle::Xor, u32::MAX, u64::from(sum), step, 32).0 as u32;
        }
        out[index()].store(sum, Ordering::Relaxed);
    })?;
    let copy = || {
        let shared = lane::shared_array(1, BLOCK as usize * 4, 4).addr() + 4 * lane::thread_idx().x as usize;
        lane::access(Space::Global, Access::Load, 4 * index(), 4);
        lane::access(Space::Shared, Access::Store, shared, 4);
        lane::barrier(Barrier::Sync, false);
        lane::access(Space::Shared, Access::Load, shared, 4);
        lane::access(Space::Global, Access::Store, 4 * index(), 4);
        out[index()].store(lane::lane_id(), Ordering::Relaxed);
    };
    let watches = [("copy", Watch::NOTHING), ("counted", Watch::COUNTERS), ("checked", Watch::CHECKS)];
    for (name, watch) in watches {
        let memory =
            [Argument { name: "memory", address: 0, bytes: 4 * THREADS as usize, element: 4, is_written: true }];
        let launch = Launch { watch, arguments: &memory, ..Launch::new(name, THREADS / BLOCK, BLOCK) };
        measure_launch(&launch, &copy)?;
    }
    // Each thread transposes a row of a matrix: two accesses for each of `SIDE` elements, and nothing else.
    let matrix: Vec<AtomicU32> = (0..SIDE * SIDE).map(|_| AtomicU32::new(0)).collect();
    let address = |memory: &[AtomicU32], i: usize| memory[i].as_ptr().addr();
    let argument = |name, memory| Argument {
        name,
        address: address(memory, 0),
        bytes: 4 * SIDE * SIDE,
        element: 4,
        is_written: true,
    };
    let transpose = || {
        let row = (lane::block_idx().x * lane::block_dim().x + lane::thread_idx().x) as usize;
        for column in 0..SIDE {
            let (from, to) = (column * SIDE + row, row * SIDE + column);
            lane::access(Space::Global, Access::Load, address(&matrix, from), 4);
            let value = matrix[from].load(Ordering::Relaxed);
            lane::access(Space::Global, Access::Store, address(&out, to), 4);
            out[to].store(value, Ordering::Relaxed);
        }
    };
    let arguments = [argument("matrix", &matrix[..]), argument("result", &out[..])];
    for (order, schedule) in [("", Schedule::InOrder), (", random", Schedule::Seed(1))] {
        for (name, watch) in
            [("rows off", Watch::NOTHING), ("rows counted", Watch::COUNTERS), ("rows checked", Watch::CHECKS)]
        {
            let name = format!("{name}{order}");
            let launch = Launch { watch, schedule, arguments: &arguments, ..Launch::new(&name, 2, SIDE as u32 / 2) };
            measure_launch(&launch, &transpose)?;
        }
    }
    Ok(())
}

/// Prints the best of a few rounds. The first also allocates the stacks.
fn measure(name: &str, kernel: &(dyn Fn() + Sync)) -> Result<(), Box<dyn Error>> {
    measure_launch(&Launch::new(name, THREADS / BLOCK, BLOCK), kernel)
}

fn measure_launch(launch: &Launch<'_>, kernel: &(dyn Fn() + Sync)) -> Result<(), Box<dyn Error>> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        simt::run(launch, kernel)?;
        best = best.min(start.elapsed());
    }
    let rate = (launch.grid.count() * launch.block.count()) as f64 / best.as_secs_f64() / 1e6;
    println!("{:>16}: {:7.2} ms, {rate:6.1} million lanes per second", launch.kernel, best.as_secs_f64() * 1e3);
    Ok(())
}

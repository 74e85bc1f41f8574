//! How many lanes the executor runs in a second: kernels that never wait, that meet at barriers, and that shuffle.
//!
//! `cargo run --release -p simt --example throughput`

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use simt::Launch;
use simt::lane::{self, Barrier, Shuffle};

const THREADS: u32 = 1 << 20;
const BLOCK: u32 = 256;
const ROUNDS: usize = 5;

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
    Ok(())
}

/// Prints the best of a few rounds: the first also makes the stacks.
fn measure(name: &str, kernel: &(dyn Fn() + Sync)) -> Result<(), Box<dyn Error>> {
    let launch = Launch::new(name, THREADS / BLOCK, BLOCK);
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        simt::run(&launch, kernel)?;
        best = best.min(start.elapsed());
    }
    let rate = f64::from(THREADS) / best.as_secs_f64() / 1e6;
    println!("{name:>12}: {:7.1} ms, {rate:6.1} million lanes per second", best.as_secs_f64() * 1e3);
    Ok(())
}

//! Runs of the kernels with atomic numbers.

use warpfold::{Error, Gpu};

use super::{compare, k};

pub fn atomic_operations(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut output = gpu.zeroed::<f64>(8 * 96)?;
    // SAFETY: 8 elements for each thread.
    let kernel = unsafe { k::atomics::atomic_operations::handle() }.with_block(48);
    gpu.launch(kernel, 2, k::atomics::atomic_operations::Args { output: output.view_mut() })?;
    // 2.75 & -0.0 is 0.0; 0.0 | 1.0 is 1.0; 1.0 ^ -2.0 has the sign and all bits of both exponents, which is infinite.
    let last = f32::from_bits((1_f32.to_bits() ^ (-2_f32).to_bits()) & 0xFF00_0000);
    let of_thread = [3.25, 4.25, 2.0, -1.0, 4.125, 2.0, 2.75, f64::from(last)];
    compare(gpu, "atomic_operations", &output, &of_thread.repeat(96))
}

pub fn atomic_float_sums(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let (mut narrow, mut wide) = (gpu.zeroed::<f32>(2 + 5)?, gpu.zeroed::<f64>(2 + 5)?);
    // SAFETY: an element for the grid, one for the system, and one for each block.
    let kernel = unsafe { k::atomics::atomic_float_sums::handle() }.with_block(64);
    let arguments = k::atomics::atomic_float_sums::Args { narrow: narrow.view_mut(), wide: wide.view_mut() };
    gpu.launch(kernel, 5, arguments)?;
    let sum = (0..320_u16).map(|i| f64::from(i % 100)).sum::<f64>();
    let of_blocks = |each: f64| std::iter::repeat_n(64.0 * each, 5);
    let expected: Vec<f64> = [sum * 1e12, -sum].into_iter().chain(of_blocks(0.5)).collect();
    let wide = compare(gpu, "sums of f64", &wide, &expected)?;
    let expected: Vec<f32> = [sum, -sum].into_iter().chain(of_blocks(1.0)).map(|sum| sum as f32).collect();
    Ok([compare(gpu, "sums of f32", &narrow, &expected)?, wide].concat())
}

pub fn atomic_integers(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let (blocks, threads) = (5_u32, 64_u32);
    let all = blocks * threads;
    let mut start = vec![0_u32; 9 + blocks as usize];
    start[4] = u32::MAX;
    let mut start_wide = vec![0_u64; 9 + blocks as usize];
    start_wide[4] = u64::MAX;
    let (mut words, mut wide) = (gpu.upload(&start)?, gpu.upload(&start_wide)?);
    // SAFETY: 9 elements, then one for each block.
    let kernel = unsafe { k::atomics::atomic_integers::handle() }.with_block(threads);
    let arguments = k::atomics::atomic_integers::Args { words: words.view_mut(), wide: wide.view_mut() };
    gpu.launch(kernel, blocks, arguments)?;
    let (sum, last) = ((0..all).sum::<u32>(), all - 1);
    let xor = (0..all).fold(0, |a, b| a ^ b);
    let mut expected = start.clone();
    expected[..8].copy_from_slice(&[
        sum,
        all.wrapping_neg(),
        last.wrapping_neg(),
        last - 5,
        !0x7F,
        (1 << 29) - 1,
        xor,
        all,
    ]);
    expected[9..].fill(2 * threads);
    let narrow = compare(gpu, "integers of 32 bits", &words, &expected)?;
    let mut expected = start_wide.clone();
    let (sum, last) = (u64::from(sum), u64::from(last));
    let sixty = (1 << 60) - 1;
    let xor = u64::from(xor) << 30;
    let minimum = last.wrapping_neg();
    expected[..8].copy_from_slice(&[sum << 33, sum.wrapping_neg(), minimum, last << 35, !sixty, sixty, xor, 7]);
    expected[9..].fill(u64::from(threads) << 32);
    Ok([narrow, compare(gpu, "integers of 64 bits", &wide, &expected)?].concat())
}

pub fn counters_that_wrap(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let (blocks, threads) = (6_u32, 64_u32);
    let start = [&[0, 0, 1000][..], &[3; 6]].concat();
    let (mut counters, mut private) = (gpu.upload(&start)?, gpu.zeroed::<u32>((blocks * threads) as usize)?);
    // SAFETY: 3 elements, then one for each block; a word for each thread.
    let kernel = unsafe { k::atomics::counters_that_wrap::handle() }.with_block(threads);
    let arguments = k::atomics::counters_that_wrap::Args { counters: counters.view_mut(), private: private.view_mut() };
    gpu.launch(kernel, blocks, arguments)?;
    // 384 steps: of a period of 18 upwards, then of 138 downwards. The third begins above its bound.
    let expected = [&[384 % 18, 138 - 384 % 138, 137 - 383 % 138][..], &[(3 + 2 * 64) % 10; 6]].concat();
    let counters = compare(gpu, "counters", &counters, &expected)?;
    // Up from 17 to 0, and to 1; down to 0, and to 17.
    let seen = [17, 0, 1, 0, 17].into_iter().fold(0, |digits, number| digits * 20 + number);
    Ok([counters, compare(gpu, "counters of a thread", &private, &[seen; 384])?].concat())
}

pub fn core_atomics_of_a_thread(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    const THREADS: u32 = 64;
    let mut output = gpu.zeroed::<u32>(8 * THREADS as usize)?;
    // SAFETY: 8 words for each thread.
    let kernel = unsafe { k::atomics::core_atomics_of_a_thread::handle() }.with_block(THREADS);
    gpu.launch(kernel, 1, k::atomics::core_atomics_of_a_thread::Args { output: output.view_mut() })?;
    let expected: Vec<u32> = (0..THREADS)
        .flat_map(|i| match i {
            3 => [7, 4, 0, 20, 2, 1 << 8, 0, 0],
            _ => [7, i + 1, 1, i.max(20), i + 2, 0, 0, 0],
        })
        .collect();
    compare(gpu, "core_atomics_of_a_thread", &output, &expected)
}

pub fn atomics_of_views(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let numbers: Vec<u32> = (0..1000).collect();
    let (numbers, mut counts) = (gpu.upload(&numbers)?, gpu.zeroed::<u32>(7)?);
    let kernel = k::atomics::atomics_of_views::handle().with_block(128);
    let arguments = k::atomics::atomics_of_views::Args { numbers: numbers.view(), counts: counts.view_mut() };
    gpu.launch(kernel, 8, arguments)?;
    compare(gpu, "atomics_of_views", &counts, &[143, 143, 143, 143, 143, 143, 142])
}

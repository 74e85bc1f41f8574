//! Runs of the kernels with operations of warps.

use warpfold::{Error, Gpu};

use super::{compare, k};

pub fn warp_functions(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut output = gpu.zeroed::<u32>(64)?;
    // SAFETY: a word for each thread.
    let kernel = unsafe { k::warps::warp_functions::handle() }.with_block(64);
    gpu.launch(kernel, 1, k::warps::warp_functions::Args { output: output.view_mut() })?;
    compare(gpu, "warp_functions", &output, &(0..64).map(|t| t % 32 + 100).collect::<Vec<u32>>())
}

pub fn warp_shuffle(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut output = gpu.zeroed::<u64>(32 * k::warps::SHUFFLE_WORDS)?;
    // SAFETY: the words of each lane of a warp.
    let kernel = unsafe { k::warps::warp_shuffle::handle() }.with_block(32);
    gpu.launch(kernel, 1, k::warps::warp_shuffle::Args { output: output.view_mut() })?;
    let expected = (0..32_u64).flat_map(|lane| {
        let xor = |lanes: u64| lane ^ lanes;
        // A segment of 8 lanes: a lane with bit 3 reads an earlier segment, the others would read a later one.
        let earlier = lane & 8 != 0;
        let wide = |lane: u64| u128::from(lane) << 100 | u128::from(lane);
        let down = if lane % 16 < 13 { lane + 3 } else { lane };
        let up = if lane >= 5 { lane - 5 } else { lane };
        [
            (xor(1) as i8 - 16) as u64,
            xor(2) * 1000,
            -(if earlier { xor(8) } else { lane } as i32) as u64,
            u64::from(earlier),
            (xor(16) as f64 + 0.5).to_bits(),
            (wide(xor(31)) >> 96) as u64 ^ xor(31),
            (-(wide(xor(1)) as i128) >> 64) as u64,
            xor(4),
            (down as f32).to_bits().into(),
            u64::from(lane % 16 < 13),
            up << 40,
            u64::from(lane >= 5),
            (lane as i64 / 8 * 8 + 5 - 7) as u64,
            u64::from(9_f32.to_bits()) << 32 | u64::from(2_f32.to_bits()),
        ]
    });
    compare(gpu, "warp_shuffle", &output, &expected.collect::<Vec<u64>>())
}

/// Values of 64 lanes: some equal in the lower 32 bits only, some equal altogether.
fn values_to_match() -> Vec<u64> {
    let of_first = (0..32_u64).map(|lane| lane % 3 + ((lane % 2) << 40));
    of_first.chain((0..32).map(|_| 77 << 32)).collect()
}

pub fn warp_match_any(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let values = values_to_match();
    let (input, mut output) = (gpu.upload(&values)?, gpu.zeroed::<u32>(128)?);
    // SAFETY: the elements of 64 lanes.
    let kernel = unsafe { k::warps::warp_match_any::handle() }.with_block(64);
    gpu.launch(kernel, 1, k::warps::warp_match_any::Args { values: input.view(), output: output.view_mut() })?;
    let lanes = |t: usize, matches: &dyn Fn(usize) -> bool| {
        (0..32).filter(|lane| matches(t / 32 * 32 + lane)).fold(0_u32, |mask, lane| mask | 1 << lane)
    };
    let of_thread = |t: usize| {
        let all = lanes(t, &|other| values[other] == values[t]);
        [all, lanes(t, &|other| values[other] as u32 == values[t] as u32 && other / 16 == t / 16)]
    };
    compare(gpu, "warp_match_any", &output, &(0..64).flat_map(of_thread).collect::<Vec<u32>>())
}

pub fn warp_match_all(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut all = Vec::new();
    // The lower halves of all values are equal in the second run.
    for values in [values_to_match(), (0..64).map(|lane| lane << 32 | 5).collect()] {
        let (input, mut output) = (gpu.upload(&values)?, gpu.zeroed::<u32>(128)?);
        // SAFETY: the elements of 64 lanes.
        let kernel = unsafe { k::warps::warp_match_all::handle() }.with_block(64);
        gpu.launch(kernel, 1, k::warps::warp_match_all::Args { values: input.view(), output: output.view_mut() })?;
        let expected: Vec<u32> = (0..64)
            .flat_map(|t: usize| {
                let warp = &values[t / 32 * 32..t / 32 * 32 + 32];
                let words = warp.iter().all(|&value| value == warp[0]);
                [words, warp.iter().all(|&value| value as u32 == warp[0] as u32)]
            })
            .map(|are_equal| if are_equal { u32::MAX } else { 0 })
            .collect();
        all.extend(compare(gpu, "warp_match_all", &output, &expected)?);
    }
    Ok(all)
}

pub fn warp_reduce(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let values: Vec<u32> = (1..=64_u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
    let (input, mut output) = (gpu.upload(&values)?, gpu.zeroed::<u32>(64 * 12)?);
    // SAFETY: the elements of 64 threads.
    let kernel = unsafe { k::warps::warp_reduce::handle() }.with_block(64);
    gpu.launch(kernel, 1, k::warps::warp_reduce::Args { values: input.view(), output: output.view_mut() })?;
    let of_thread = |t: usize| {
        let warp = || values[t / 32 * 32..t / 32 * 32 + 32].iter().copied();
        let signed = || warp().map(|value| value as i32);
        let (sum, and) = (warp().fold(0, u32::wrapping_add), warp().fold(u32::MAX, |a, b| a & b));
        let (or, xor) = (warp().fold(0, |a, b| a | b), warp().fold(0, |a, b| a ^ b));
        let unsigned = [warp().min().unwrap(), warp().max().unwrap()];
        let signed = [signed().min().unwrap() as u32, signed().max().unwrap() as u32];
        [sum, sum, unsigned[0], signed[0], unsigned[1], signed[1], and, and, or, or, xor, xor]
    };
    compare(gpu, "warp_reduce", &output, &(0..64).flat_map(of_thread).collect::<Vec<u32>>())
}

//! Runs of the kernels of the kinds that Rust-CUDA has. Each compares the output with a reference, and returns it, so
//! that a GPU and the executor can be compared word by word.

use cuda_std::element::Plain;
use num_bigint::BigInt;
use test_kernels::rust_cuda as k;
use warpfold::{Buffer, Error, Gpu};

mod atomics;
mod core_functions;
mod floats;
mod parameters;
mod vectors;
mod warps;

/// A run of one kind of kernel, or of several similar ones.
pub type Run = fn(&Gpu) -> Result<Vec<u64>, Error>;

/// Every run, by the name of the kind. The runs of floats are separate: they take longest.
pub static RUNS: [(&str, Run); 51] = [
    ("branches", branches),
    ("loops", loops),
    ("loops in loops", loops_in_loops),
    ("ranges", ranges),
    ("arrays", arrays),
    ("bits of integers", bits),
    ("integers of 128 bits", i128_operations),
    ("constants, references and pointers", language),
    ("copies of bytes", core_functions::copies),
    ("comparisons of bytes", core_functions::comparisons),
    ("a match of strings", core_functions::words_by_match),
    ("integers of 128 bits to floats", core_functions::integers_to_floats),
    ("floats to integers of 128 bits", core_functions::floats_to_integers),
    ("hello world, simple add, a kernel called main", small_kernels),
    ("indices and shapes", thread_indexing),
    ("barriers and fences", thread_sync),
    ("a lock with nanosleep", nanosleep_lock),
    ("lanes and masks", warps::warp_functions),
    ("shuffles of every width", warps::warp_shuffle),
    ("match any", warps::warp_match_any),
    ("match all", warps::warp_match_all),
    ("warp reductions", warps::warp_reduce),
    ("atomics of one thread", atomics::atomic_operations),
    ("sums by atomic floats", atomics::atomic_float_sums),
    ("atomic integers of every scope", atomics::atomic_integers),
    ("counters that wrap", atomics::counters_that_wrap),
    ("atomics of the language in variables", atomics::core_atomics_of_a_thread),
    ("atomics of views", atomics::atomics_of_views),
    ("static shared memory", static_shared_memory),
    ("shared memory of several types", shared_memory_of_types),
    ("reversal by shared memory", reversals),
    ("structs by value", vectors::structs_by_value),
    ("values as the only parameter", parameters::only_values),
    ("bools", parameters::bools),
    ("bytes that are no bools", parameters::bytes_that_are_no_bools),
    ("enums and letters", parameters::enums),
    ("names that are keywords", parameters::keywords),
    ("types of other crates by value", vectors::foreign_types_by_value),
    ("vectors of three floats", vectors::vec3_operations),
    ("a matrix times vectors", vectors::mat3_vec3_multiply),
    ("views of large elements", vectors::mat4_operations),
    ("rotations about an axis", vectors::rotations),
    ("rays against a sphere", vectors::issue_283),
    ("a ray tracer", vectors::ray_tracer),
    ("functions of another crate", checksum_by_a_crate),
    ("a visible function and a constant table", calls_externally_visible),
    ("assertions that hold", asserts),
    ("vecadd in a file of its name", vecadd),
    ("gemm in a file of its name", gemm),
    ("log10 and signum", floats::log10_and_signum),
    ("approximations", floats::approximations),
];

/// The runs of all functions of floats.
pub static FLOAT_RUNS: [(&str, Run); 4] = [
    ("functions of f32", floats::functions_f32),
    ("functions of f64", floats::functions_f64),
    ("special functions of f32", floats::special_f32),
    ("special functions of f64", floats::special_f64),
];

fn words<T: Plain>(values: &[T]) -> Vec<u64> {
    values.iter().flat_map(|value| value.to_four_words()[..size_of::<T>().div_ceil(8)].to_vec()).collect()
}

/// Downloads a buffer, compares it, and returns its words.
fn compare<T: Plain + PartialEq + std::fmt::Debug>(
    gpu: &Gpu,
    name: &str,
    found: &Buffer<T>,
    expected: &[T],
) -> Result<Vec<u64>, Error> {
    let found = gpu.download(found)?;
    assert_eq!(found, expected, "{name}");
    Ok(words(&found))
}

/// Runs kernels that write a function of each element, and compares the results with those of another implementation.
macro_rules! of_each {
    ($gpu:expr, $inputs:expr, $module:ident: $($kernel:ident = |$x:ident| $expected:expr;)*) => {{
        let inputs = $inputs;
        let input = $gpu.upload(&inputs)?;
        let mut all = Vec::new();
        $(
            let mut output = $gpu.upload(&inputs)?;
            // SAFETY: the output has as many elements as the input.
            let kernel = unsafe { k::$module::$kernel::handle() }.with_block(64);
            let arguments = k::$module::$kernel::Args { input: input.view(), output: output.view_mut() };
            $gpu.launch(kernel, (inputs.len() as u32).div_ceil(64), arguments)?;
            let expected: Vec<_> = inputs.iter().map(|&$x| $expected).collect();
            all.extend(compare($gpu, stringify!($kernel), &output, &expected)?);
        )*
        Ok(all)
    }};
}

/// Whole numbers around 0.
fn around_zero() -> Vec<i32> {
    (-50..=80).collect()
}

fn branches(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    of_each!(gpu, around_zero(), control_flow:
        if_ = |x| i32::from(x > 0);
        if_else = |x| 2 - i32::from(x > 0);
        if_else_if_else = |x| 2 - x.signum();
        if_if = |x| i32::from(x > 0 && x % 2 == 0);
        if_return_else = |x| if x > 0 { x } else { 1 - x };
        if_return_else_return = |x| x + [-2, 2][usize::from(x > 0)];
        if_while = |x| (0..x).sum();
        ifx2 = |x| [0, 1, 3][usize::from(x > 10) + usize::from(x > 20)];
    )
}

fn loops(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let next_multiple = |x: i32, of: i32| (x..x + 100).find(|y| y % of == 0).unwrap();
    of_each!(gpu, around_zero(), control_flow:
        loop_ = |x| 1 << (x.abs() + 1).ilog2();
        while_ = |x| (32 - x.unsigned_abs().leading_zeros()) as i32;
        while_break = |x| if x > 0 { 5 } else { 0 };
        while_continue = |x| x.max(0);
        while_if_break = |x| next_multiple(x, 7);
        while_if_break_else_break = |x| if x > 0 { x } else { 1 - x };
        while_if_break_if_break = |x| next_multiple(x, 5).min(next_multiple(x, 7));
        while_if_continue = |x| 20 / (x.abs() + 1);
        while_if_continue_else_continue = |x| 5 * x - 5;
        while_return = |x| (0..50).find(|y| y * y > x).unwrap();
    )
}

fn loops_in_loops(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    of_each!(gpu, around_zero(), control_flow:
        while_while = |x| (0..x).sum();
        while_while_break = |x| (0..8).fold(0, |sum, _| if sum < x { sum + 3 } else { sum });
        while_while_continue = |x| 6 * x.max(0);
        while_while_if_break = |x| 6 * if x < 0 { 10 } else { x.min(10) };
        while_while_if_continue = |x| 60 - 6 * i32::from((1..=10).contains(&x));
    )
}

fn ranges(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    of_each!(gpu, around_zero(), control_flow:
        for_range = |x| x.abs() * (x.abs() - 1) / 2;
        for_range_signed = |x| if x > -5 { x * (x - 1) / 2 - 15 } else { 0 };
        for_with_custom_range_iter = |x| if x > 3 { x * (x - 1) / 2 - 3 } else { 0 };
    )
}

fn arrays(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    macro_rules! of_type {
        ($kernel:ident: $type:ty) => {{
            let mut output = gpu.zeroed::<$type>(12)?;
            // SAFETY: the output has 4 elements for each of 3 threads.
            let kernel = unsafe { k::lang::$kernel::handle() }.with_block(3);
            gpu.launch(kernel, 1, k::lang::$kernel::Args { x: <$type>::MAX, output: output.view_mut() })?;
            let of_thread = [<$type>::MAX, <$type>::MAX, <$type>::MIN, <$type>::MAX];
            compare(gpu, stringify!($kernel), &output, &of_thread.repeat(3))?
        }};
    }
    let (bytes, words) = (of_type!(init_array_i8: i8), of_type!(init_array_i32: i32));
    Ok([bytes, of_type!(init_array_i16: i16), words, of_type!(init_array_i64: i64)].concat())
}

/// Words of any size, with those around 0 and the powers of two.
fn any_words() -> Vec<u32> {
    let powers = (0..32).flat_map(|bit| [1 << bit, (1 << bit) - 1, u32::MAX << bit]);
    (0..40).chain(powers).chain((0..60).map(|i: u32| i.wrapping_mul(0x9E37_79B9))).collect()
}

fn bits(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    of_each!(gpu, any_words(), lang:
        bswap = |x| u32::from_be_bytes(x.to_le_bytes());
        leading_zeros = |x| x.checked_ilog2().map_or(32, |log| 31 - log);
        trailing_zeros = |x| match (0..32).find(|bit| x >> bit & 1 == 1) {
            Some(zeros) => zeros * 101,
            None => 32 + 6400,
        };
        bit_reverse = |x| (0..32).map(|bit| (x >> bit & 1) << (31 - bit)).sum();
        count_ones = |x| (0..32).map(|bit| x >> bit & 1).sum();
    )
}

fn language(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    of_each!(gpu, any_words(), lang:
        create_uninitialized_memory = |x| x.wrapping_add(x ^ 1);
        allocate_null = |x| if x == 0 { 7 } else { 1 };
        allocate_vec_like = |x| x.wrapping_add(1);
        member_ref_arg = |x| x.wrapping_add(x / 2);
        zst_member_ref_arg = |x| 5 + x % 2;
        unwrap_or = |x| if x < 10 { 1000 } else { x - 10 };
        shallow_ref = |x| 8 + x % 3;
        logical_and = |x| u32::from(x % 3 == 0) & u32::from(x > 10);
        logical_or = |x| u32::from(x % 3 == 0) | u32::from(x > 10);
        range_contains = |x| u32::from(x.to_string().len() == 2);
    )
}

fn small_kernels(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut x = gpu.upload(&[1.0_f32, -2.0, 0.5])?;
    // SAFETY: as many threads as elements.
    let kernel = unsafe { k::lang::hello_world::handle() }.with_block(3);
    gpu.launch(kernel, 1, k::lang::hello_world::Args { x: x.view_mut() })?;
    let mut all = compare(gpu, "hello_world", &x, &[2.0, -1.0, 1.5])?;

    let (a, b, mut c) = (gpu.upload(&[1.5_f32])?, gpu.upload(&[2.25_f32])?, gpu.zeroed::<f32>(1)?);
    // SAFETY: one thread, and numbers.
    let kernel = unsafe { k::lang::simple_add::handle() }.with_block(1);
    gpu.launch(kernel, 1, k::lang::simple_add::Args { a: a.view(), b: b.view(), c: c.view_mut() })?;
    all.extend(compare(gpu, "simple_add", &c, &[3.75])?);

    let mut output = gpu.zeroed::<u32>(1)?;
    // SAFETY: the output has an element.
    let kernel = unsafe { k::lang::main::handle() }.with_block(32);
    gpu.launch(kernel, 2, k::lang::main::Args { output: output.view_mut() })?;
    all.extend(compare(gpu, "main", &output, &[99])?);
    Ok(all)
}

fn thread_indexing(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut all = Vec::new();
    for (grid, block) in [([3_u32, 1, 1], [64_u32, 1, 1]), ([2, 3, 2], [5, 4, 3]), ([1, 2, 4], [8, 8, 2])] {
        let count = |of: [u32; 3]| of.iter().product::<u32>();
        let indices = |of: [u32; 3]| (0..count(of)).map(move |i| [i % of[0], i / of[0] % of[1], i / of[0] / of[1]]);
        let mut expected = Vec::new();
        for (b, block_idx) in indices(grid).enumerate() {
            for (t, thread_idx) in indices(block).enumerate() {
                let of_axis = |axis: usize| block_idx[axis] * block[axis] + thread_idx[axis];
                expected.extend([thread_idx, block_idx, block, grid].concat());
                expected.extend([of_axis(0), of_axis(1), of_axis(0), of_axis(1), of_axis(2)]);
                let index = b as u32 * count(block) + t as u32;
                expected.extend([u32::from(index == 0), 32, index, of_axis(0)]);
            }
        }
        let mut output = gpu.zeroed::<u32>(expected.len())?;
        // SAFETY: the output has the words of each thread.
        let kernel = unsafe { k::threads::thread_indexing::handle() }.with_block((block[0], block[1], block[2]));
        let arguments = k::threads::thread_indexing::Args { output: output.view_mut() };
        gpu.launch(kernel, (grid[0], grid[1], grid[2]), arguments)?;
        all.extend(compare(gpu, "thread_indexing", &output, &expected)?);
    }
    Ok(all)
}

fn thread_sync(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut memory = gpu.zeroed::<u32>(192)?;
    // SAFETY: the memory has 2 words for each of 96 threads.
    let kernel = unsafe { k::threads::thread_sync::handle() }.with_block(96);
    gpu.launch(kernel, 1, k::threads::thread_sync::Args { memory: memory.view_mut() })?;
    let written = (0..96).map(|t| 3 * t);
    let expected: Vec<u32> = written.clone().chain((0..96).map(|t| 3 * ((t + 1) % 96) + 1048)).collect();
    let mut all = compare(gpu, "thread_sync", &memory, &expected)?;

    let mut output = gpu.zeroed::<u32>(150)?;
    // SAFETY: the output has a word for each thread.
    let kernel = unsafe { k::threads::thread_functions::handle() }.with_block(50);
    gpu.launch(kernel, 3, k::threads::thread_functions::Args { output: output.view_mut() })?;
    all.extend(compare(gpu, "thread_functions", &output, &(0..150).map(|i| i ^ 3).collect::<Vec<u32>>())?);
    Ok(all)
}

fn nanosleep_lock(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let (mut lock, mut sum) = (gpu.zeroed::<u32>(1)?, gpu.zeroed::<u32>(1)?);
    // SAFETY: both have one word, which is 0.
    let kernel = unsafe { k::threads::nanosleep_lock::handle() }.with_block(96);
    let arguments = k::threads::nanosleep_lock::Args { lock: lock.view_mut(), sum: sum.view_mut() };
    gpu.launch(kernel, 6, arguments)?;
    compare(gpu, "the lock is free", &lock, &[0])?;
    compare(gpu, "nanosleep_lock", &sum, &[6 * 96 * 95 / 2])
}

/// Compared with integers of any size.
fn i128_operations(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let numbers: Vec<u128> = [1, 2, 7, 1 << 31, (1 << 64) - 1, 1 << 64, 0xDEAD_BEEF << 70, u128::MAX - 5, 1 << 127]
        .into_iter()
        .chain((1..40).map(|i: u128| i.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835) >> (i % 90)))
        .collect();
    let pairs: Vec<(u128, u128)> = numbers.iter().flat_map(|&x| numbers.iter().map(move |&y| (x, y))).collect();
    let (a, b): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let (x, y, mut output) = (gpu.upload(&a)?, gpu.upload(&b)?, gpu.zeroed::<u128>(10 * a.len())?);
    // SAFETY: `b` has no zeros, and the output ten words for each pair.
    let kernel = unsafe { k::lang::i128_operations::handle() }.with_block(64);
    let arguments = k::lang::i128_operations::Args { a: x.view(), b: y.view(), output: output.view_mut() };
    gpu.launch(kernel, a.len().div_ceil(64) as u32, arguments)?;
    let found = gpu.download(&output)?;
    let modulus = BigInt::from(1) << 128;
    for (&(a, b), words) in pairs.iter().zip(found.chunks(10)) {
        let (x, y, bits) = (BigInt::from(a), BigInt::from(b), b % 128);
        let (signed_x, signed_y) = (BigInt::from(a as i128), BigInt::from(b as i128));
        let exact = [
            &x + &y,
            &x - &y,
            &x * &y,
            &x << bits,
            &x >> bits,
            &signed_x >> bits,
            &x / &y,
            &x % &y,
            &signed_x / &signed_y,
            &signed_x % &signed_y,
        ];
        for (k, (&word, exact)) in words.iter().zip(exact).enumerate() {
            let expected = ((exact % &modulus) + &modulus) % &modulus;
            assert_eq!(BigInt::from(word), expected, "operation {k} of {a} and {b}");
        }
    }
    Ok(words(&found))
}

fn static_shared_memory(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut output = gpu.zeroed::<i32>(256)?;
    // SAFETY: a word for each thread.
    let kernel = unsafe { k::shared::static_shared_memory::handle() }.with_block(256);
    gpu.launch(kernel, 1, k::shared::static_shared_memory::Args { output: output.view_mut() })?;
    compare(gpu, "static_shared_memory", &output, &(0..256).map(|t| (255 - t) * 5 - 1).collect::<Vec<i32>>())
}

fn shared_memory_of_types(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut output = gpu.zeroed::<f32>(32)?;
    // SAFETY: a word for each thread.
    let kernel = unsafe { k::shared::shared_memory_of_types::handle() }.with_block(32);
    gpu.launch(kernel, 1, k::shared::shared_memory_of_types::Args { output: output.view_mut() })?;
    let expected: Vec<f32> = (0..32_u8).rev().map(|t| 3.5 * f32::from(t) + 100.25).collect();
    compare(gpu, "shared_memory_of_types", &output, &expected)
}

fn reversals(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut all = Vec::new();
    for n in [1_usize, 33, 64] {
        let numbers: Vec<i32> = (0..n as i32).map(|i| 7 * i - 3).collect();
        let mut d = gpu.upload(&numbers)?;
        // SAFETY: as many elements as threads.
        let kernel = unsafe { k::shared::reverse_array::handle() }.with_block(n as u32);
        gpu.launch(kernel, 1, k::shared::reverse_array::Args { d: d.view_mut(), n })?;
        let expected: Vec<i32> = numbers.into_iter().rev().collect();
        all.extend(compare(gpu, "reverse_array", &d, &expected)?);
    }
    let numbers: Vec<f64> = (0..300_u16).map(|i| f64::from(i) + 0.5).collect();
    let mut d = gpu.upload(&numbers)?;
    // SAFETY: as many elements as threads, and 8 bytes of dynamic shared memory for each.
    let kernel = unsafe { k::shared::reverse_array_dynamic::handle() }.with_block(300).with_dynamic_shared(300 * 8);
    gpu.launch(kernel, 1, k::shared::reverse_array_dynamic::Args { d: d.view_mut(), n: 300 })?;
    let expected: Vec<f64> = numbers.into_iter().rev().collect();
    all.extend(compare(gpu, "reverse_array_dynamic", &d, &expected)?);
    Ok(all)
}

fn checksum_by_a_crate(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let bytes: Vec<u8> = (0..9 * 100_u32).map(|i| ((i * i) >> 3) as u8).chain(*b"123456789").collect();
    let (input, mut output) = (gpu.upload(&bytes)?, gpu.zeroed::<u32>(101)?);
    // SAFETY: a word for each 9 bytes.
    let kernel = unsafe { k::functions::checksum_by_a_crate::handle() }.with_block(64);
    let arguments = k::functions::checksum_by_a_crate::Args { bytes: input.view(), output: output.view_mut(), len: 9 };
    gpu.launch(kernel, 2, arguments)?;
    let by_bits = |bytes: &[u8]| {
        let shift = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| shift(crc)))
    };
    let expected: Vec<u32> = bytes.chunks(9).map(by_bits).collect();
    assert_eq!(expected[100], 0xCBF4_3926, "the checksum that every CRC-32 is tested by");
    compare(gpu, "checksum_by_a_crate", &output, &expected)
}

fn calls_externally_visible(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut output = gpu.zeroed::<u32>(100)?;
    // SAFETY: a word for each thread.
    let kernel = unsafe { k::functions::calls_externally_visible::handle() }.with_block(50);
    gpu.launch(kernel, 2, k::functions::calls_externally_visible::Args { output: output.view_mut() })?;
    let expected: Vec<u32> = (0..100).map(|i: u32| ((i * 32) ^ 0x5A) + [2, 3, 5, 7][i as usize % 4]).collect();
    compare(gpu, "calls_externally_visible", &output, &expected)
}

fn asserts(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let numbers: Vec<u32> = (5..70).collect();
    let (a, mut output) = (gpu.upload(&numbers)?, gpu.zeroed::<u32>(numbers.len())?);
    // SAFETY: all have as many elements.
    let kernel = unsafe { k::functions::asserts::handle() }.with_block(32);
    gpu.launch(kernel, 3, k::functions::asserts::Args { a: a.view(), b: a.view(), output: output.view_mut() })?;
    compare(gpu, "asserts", &output, &numbers)
}

fn vecadd(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let numbers: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let (a, mut c) = (gpu.upload(&numbers)?, gpu.zeroed::<f32>(1000)?);
    // SAFETY: all have as many elements.
    let kernel = unsafe { k::vecadd::handle() }.with_block(128);
    gpu.launch(kernel, 8, k::vecadd::Args { a: a.view(), b: a.view(), c: c.view_mut() })?;
    compare(gpu, "vecadd", &c, &numbers.iter().map(|x| 2.0 * x).collect::<Vec<f32>>())
}

fn gemm(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let (m, n, k_) = (20, 35, 18);
    let values = |count: usize, seed: usize| (0..count).map(move |i| ((i * seed) % 7) as f32 - 3.0).collect::<Vec<_>>();
    let (a, b, c) = (values(m * k_, 5), values(k_ * n, 3), values(m * n, 11));
    let product = |i: usize| (0..k_).map(|j| a[i / n * k_ + j] * b[j * n + i % n]).sum::<f32>();
    let expected: Vec<f32> = (0..m * n).map(|i| 2.0 * product(i) - c[i]).collect();
    let (a, b, mut c) = (gpu.upload(&a)?, gpu.upload(&b)?, gpu.upload(&c)?);
    // SAFETY: the matrices have as many elements as the kernel is told, and the block is a tile.
    let kernel = unsafe { k::gemm::handle() }.with_block((k::gemm::TILE as u32, k::gemm::TILE as u32));
    let (alpha, beta) = (2.0, -1.0);
    let arguments = k::gemm::Args { a: a.view(), b: b.view(), c: c.view_mut(), m, n, k: k_, alpha, beta };
    gpu.launch(kernel, (2, 3), arguments)?;
    compare(gpu, "gemm", &c, &expected)
}

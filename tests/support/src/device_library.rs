//! Runs of the test kernels. Each returns all outputs of a kernel as words, to be compared.

use cuda_std::element::Element;
use cuda_std::launch::ScalarParameter;
use test_kernels as k;
use warpfold::{Error, Gpu};

/// A run of one or more test kernels.
pub type Run = fn(&Gpu) -> Result<Vec<u64>, Error>;

/// Every run, by name.
pub static RUNS: [(&str, Run); 18] = [
    ("indices", indices),
    ("shuffles of 32 bits", shuffles_32),
    ("shuffles of 64 bits", shuffles_64),
    ("votes and reductions", votes),
    ("barriers that count", barriers),
    ("a barrier at which threads leave", last_barrier),
    ("shared memory", shared_memory),
    ("16-byte vectors", vectors),
    ("atomics of 32 bits", atomics_32),
    ("atomics of 64 bits", atomics_64),
    ("atomics in shared memory", shared_atomics),
    ("atomic float sums in shared memory", shared_float_atomics),
    ("tickets", tickets),
    ("half conversions", half_conversions),
    ("bytes of words", bytes_of_words),
    ("volatile and fences", volatile_and_fences),
    ("scalars", scalars),
    ("slices and pointers", raw_parameters),
];

/// Pseudorandom numbers, the same in every run: a 64-bit linear congruential generator (Knuth's MMIX).
fn noise(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |x| {
        Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    })
    .skip(1)
    .map(|x| x >> 16 ^ x << 48)
}

fn words<T: Element>(values: Vec<T>) -> impl Iterator<Item = u64> {
    values.into_iter().map(|value| value.to_pair()[0])
}

fn indices(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut all = Vec::new();
    for (grid, block) in [((3, 1, 1), (64, 1, 1)), ((2, 3, 2), (5, 4, 3)), ((1, 1, 4), (8, 8, 8))] {
        let threads = (grid.0 * grid.1 * grid.2 * block.0 * block.1 * block.2) as usize;
        let mut out = gpu.zeroed::<u32>(threads * k::INDEX_WORDS)?;
        gpu.launch(k::indices::handle().with_block(block), grid, k::indices::Args { out: out.view_mut() })?;
        all.extend(words(gpu.download(&out)?));
    }
    Ok(all)
}

fn shuffles<T: Element>(gpu: &Gpu) -> Result<Vec<u64>, Error>
where
    k::shuffles::Instance<T>: cuda_std::launch::Instance,
{
    let values: Vec<T> = noise(1).take(64).map(T::from_word).collect();
    let values = gpu.upload(&values)?;
    let mut all = Vec::new();
    for width in [2, 4, 8, 16, 32] {
        for operand in [0, 1, 2, 3, 5, 8, 15, 16, 31] {
            let mut out = gpu.zeroed::<T>(64 * 4)?;
            let mut in_range = gpu.zeroed::<u32>(64 * 4)?;
            let arguments = k::shuffles::Args {
                values: values.view(),
                out: out.view_mut(),
                in_range: in_range.view_mut(),
                operand,
                width,
            };
            gpu.launch(k::shuffles::handle::<T>(), 1, arguments)?;
            all.extend(words(gpu.download(&out)?));
            all.extend(words(gpu.download(&in_range)?));
        }
    }
    Ok(all)
}

fn shuffles_32(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    Ok([shuffles::<u32>(gpu)?, shuffles::<i32>(gpu)?, shuffles::<f32>(gpu)?].concat())
}

fn shuffles_64(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    Ok([shuffles::<u64>(gpu)?, shuffles::<f64>(gpu)?].concat())
}

fn votes(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut all = Vec::new();
    let same_parity = |parity: u64| noise(3).take(64).map(move |x| x as u32 & !1 | parity as u32).collect::<Vec<u32>>();
    for values in [noise(2).take(64).map(|x| x as u32).collect(), same_parity(0), same_parity(1)] {
        let values = gpu.upload(&values)?;
        let mut out = gpu.zeroed::<u32>(64 * k::VOTE_WORDS)?;
        gpu.launch(k::votes::handle(), 1, k::votes::Args { values: values.view(), out: out.view_mut() })?;
        all.extend(words(gpu.download(&out)?));
    }
    Ok(all)
}

fn barriers(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut values: Vec<u32> = noise(4).take(96 * 4).map(|x| x as u32).collect();
    values[96..192].fill(1);
    values[192..288].fill(2);
    let values = gpu.upload(&values)?;
    let mut out = gpu.zeroed::<u32>(96 * 4 * 3)?;
    gpu.launch(k::barriers::handle(), 4, k::barriers::Args { values: values.view(), out: out.view_mut() })?;
    Ok(words(gpu.download(&out)?).collect())
}

fn last_barrier(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let values = gpu.upload(&noise(8).take(96 * 3).map(|x| x as u32).collect::<Vec<_>>())?;
    let mut out = gpu.zeroed::<u32>(40 * 3)?;
    gpu.launch(k::last_barrier::handle(), 3, k::last_barrier::Args { values: values.view(), out: out.view_mut() })?;
    Ok(words(gpu.download(&out)?).collect())
}

fn through_shared<T: Element>(gpu: &Gpu) -> Result<Vec<u64>, Error>
where
    k::shared_memory::Instance<T>: cuda_std::launch::Instance,
{
    let input: Vec<T> = noise(5).take(64).map(T::from_word).collect();
    let input = gpu.upload(&input)?;
    let mut out = gpu.zeroed::<T>(64 * 5)?;
    let kernel = k::shared_memory::handle::<T>().with_dynamic_shared(64 * size_of::<T>());
    gpu.launch(kernel, 1, k::shared_memory::Args { input: input.view(), out: out.view_mut() })?;
    Ok(words(gpu.download(&out)?).collect())
}

fn shared_memory(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let small = [through_shared::<u8>(gpu)?, through_shared::<u16>(gpu)?, through_shared::<f32>(gpu)?];
    Ok([small.concat(), through_shared::<u64>(gpu)?, through_shared::<f64>(gpu)?].concat())
}

fn reversed_vectors<T: Element>(gpu: &Gpu) -> Result<Vec<u64>, Error>
where
    k::vectors::Instance<T>: cuda_std::launch::Instance,
{
    let input: Vec<T> = noise(6).take(1600).map(T::from_word).collect();
    let input = gpu.upload(&input)?;
    let mut out = gpu.zeroed::<T>(1600)?;
    gpu.launch(k::vectors::handle::<T>(), 20, k::vectors::Args { input: input.view(), out: out.view_mut() })?;
    Ok(words(gpu.download(&out)?).collect())
}

fn vectors(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    Ok([
        reversed_vectors::<i8>(gpu)?,
        reversed_vectors::<u16>(gpu)?,
        reversed_vectors::<f32>(gpu)?,
        reversed_vectors::<i64>(gpu)?,
    ]
    .concat())
}

fn combined<T>(gpu: &Gpu, one: T) -> Result<Vec<u64>, Error>
where
    T: Element + cuda_std::atomic::Atomic + std::ops::Add<Output = T> + ScalarParameter,
    k::atomics::Instance<T>: cuda_std::launch::Instance,
{
    let values: Vec<T> = noise(7).take(64 * 10).map(T::from_word).collect();
    let values = gpu.upload(&values)?;
    let mut out = gpu.zeroed::<T>(8 + 10)?;
    let arguments = k::atomics::Args { values: values.view(), out: out.view_mut(), one };
    gpu.launch(k::atomics::handle::<T>(), 10, arguments)?;
    Ok(words(gpu.download(&out)?).collect())
}

fn atomics_32(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    Ok([combined(gpu, 1_u32)?, combined(gpu, 1_i32)?].concat())
}

fn atomics_64(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    Ok([combined(gpu, 1_u64)?, combined(gpu, 1_i64)?].concat())
}

fn combined_in_blocks<T>(gpu: &Gpu, one: T) -> Result<Vec<u64>, Error>
where
    T: Element + cuda_std::shared::SharedAtomicInteger + std::ops::Add<Output = T> + ScalarParameter,
    k::shared_atomics::Instance<T>: cuda_std::launch::Instance,
{
    let values: Vec<T> = noise(8).take(64 * 10).map(T::from_word).collect();
    let values = gpu.upload(&values)?;
    let mut out = gpu.zeroed::<T>(k::SHARED_ATOMICS * 10)?;
    let arguments = k::shared_atomics::Args { values: values.view(), out: out.view_mut(), one };
    gpu.launch(k::shared_atomics::handle::<T>().with_dynamic_shared(size_of::<T>()), 10, arguments)?;
    Ok(words(gpu.download(&out)?).collect())
}

fn shared_atomics(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let of_32_bits = [combined_in_blocks(gpu, 1_u32)?, combined_in_blocks(gpu, 1_i32)?].concat();
    Ok([of_32_bits, combined_in_blocks(gpu, 1_u64)?, combined_in_blocks(gpu, 1_i64)?].concat())
}

/// The sum of each block's numbers, which are integers.
fn float_sums_of_blocks<T>(gpu: &Gpu, whole: fn(u16) -> T) -> Result<Vec<u64>, Error>
where
    T: Element + cuda_std::shared::SharedAtomic,
    k::shared_float_atomics::Instance<T>: cuda_std::launch::Instance,
{
    let values: Vec<T> = noise(9).take(64 * 10).map(|word| whole(word as u16)).collect();
    let values = gpu.upload(&values)?;
    let mut out = gpu.zeroed::<T>(10)?;
    let arguments = k::shared_float_atomics::Args { values: values.view(), out: out.view_mut() };
    gpu.launch(k::shared_float_atomics::handle::<T>(), 10, arguments)?;
    Ok(words(gpu.download(&out)?).collect())
}

fn shared_float_atomics(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    Ok([float_sums_of_blocks(gpu, f32::from)?, float_sums_of_blocks(gpu, f64::from)?].concat())
}

fn tickets(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut counter = gpu.zeroed::<u32>(1)?;
    let mut drawn = gpu.zeroed::<u32>(10)?;
    let arguments = k::tickets::Args { counter: counter.view_mut(), drawn: drawn.view_mut(), last: 9 };
    gpu.launch(k::tickets::handle(), 10, arguments)?;
    Ok(words(gpu.download(&drawn)?).chain(words(gpu.download(&counter)?)).collect())
}

fn half_conversions(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    // NaNs are left out, because the bits that a conversion gives them are unspecified.
    let floats: Vec<f32> =
        noise(8).map(|x| f32::from_bits(x as u32)).filter(|x| !x.is_nan()).take(bits.len()).collect();
    let mut out = gpu.zeroed::<u32>(4 * bits.len())?;
    let (bits, floats) = (gpu.upload(&bits)?, gpu.upload(&floats)?);
    let arguments = k::half_conversions::Args { bits: bits.view(), floats: floats.view(), out: out.view_mut() };
    gpu.launch(k::half_conversions::handle(), 1024, arguments)?;
    // All NaNs count as equal, because their bits are unspecified.
    let one_nan = |word: u64| if f32::from_bits(word as u32).is_nan() { u64::MAX } else { word };
    Ok(words(gpu.download(&out)?).map(one_nan).collect())
}

fn bytes_of_words(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let all: Vec<u32> = noise(9).map(|x| x as u32).take(1 << 14).collect();
    // Every pair of bytes; and other words, including the largest.
    let half = |i: u32| [i & 0xFF, i >> 8 & 0xFF, 0x7BFF - (i & 0x7F), 0x0400 + i % 0x3000][i as usize % 4];
    let halves: Vec<u32> =
        (0..1 << 14).map(|i: u32| half(i.wrapping_mul(2_654_435_761) >> 9) << 16 | half(i)).collect();
    let mut out = gpu.zeroed::<u32>(6 * all.len())?;
    let (all, halves) = (gpu.upload(&all)?, gpu.upload(&halves)?);
    let arguments = k::bytes_of_words::Args { words: all.view(), halves: halves.view(), out: out.view_mut() };
    gpu.launch(k::bytes_of_words::handle(), 256, arguments)?;
    Ok(words(gpu.download(&out)?).collect())
}

fn volatile_and_fences(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let input: Vec<f32> = (0..256_u16).map(f32::from).collect();
    let input = gpu.upload(&input)?;
    let mut out = gpu.zeroed::<f32>(256)?;
    let arguments = k::volatile_and_fences::Args { input: input.view(), out: out.view_mut() };
    gpu.launch(k::volatile_and_fences::handle(), 4, arguments)?;
    Ok(words(gpu.download(&out)?).collect())
}

fn scalars(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut out = gpu.zeroed::<u64>(7)?;
    let arguments =
        k::scalars::Args { out: out.view_mut(), a: 0x81, b: u64::MAX - 5, c: -7, d: 1.5, e: -9, f: -2.25, g: 1 << 40 };
    gpu.launch(k::scalars::handle(), 1, arguments)?;
    let found = gpu.download(&out)?;
    let expected =
        [0x81, u64::MAX - 5, -7_i64 as u64, 1.5_f32.to_bits().into(), -9_i64 as u64, (-2.25_f64).to_bits(), 1 << 40];
    assert_eq!(found, expected);
    Ok(found)
}

fn raw_parameters(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let numbers: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let (a, b) = (gpu.upload(&numbers)?, gpu.upload(&numbers)?);
    let mut c = gpu.zeroed::<f32>(1000)?;
    // SAFETY: `c` has 1000 elements.
    let kernel = unsafe { k::raw_parameters::handle() }.with_block(128);
    let arguments = k::raw_parameters::Args { a: a.view(), b: b.view(), c: c.view_mut(), n: 1000 };
    gpu.launch(kernel, 8, arguments)?;
    let sums = gpu.download(&c)?;
    assert!(sums.iter().zip(&numbers).all(|(sum, x)| *sum == 2.0 * x));
    Ok(words(sums).collect())
}

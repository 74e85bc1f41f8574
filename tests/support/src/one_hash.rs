//! The sums, means and norms of `tests/cases/one_hash.txt`, which Python's fractions have made, by every way to compute
//! them: one call, states, chunks, and the words of several ranks, on a device and on the host.

use std::fmt::Debug;
use std::io;

use half::{bf16, f16};
use warpfold::exact::words::{self, Words, WordsError};
use warpfold::exact::{ExactDot, ExactSum, Rounded};
use warpfold::ops::{Mean, Norm, Sum};
use warpfold::{Axes, Error, ExactState, ExactStates, Gpu, Layout, Reduces, SumFormat, host};

use crate::exact_sums::OnDevice;

/// The file.
const CASES: &str = include_str!("../../cases/one_hash.txt");

/// The smallest number of elements of a case.
pub const LEAST: usize = (1 << 20) + 12345;
/// The largest one.
pub const MOST: usize = (1 << 22) + 7;

/// Chunks of 1 to 2^24 elements.
const CHUNKS: [usize; 5] = [1, 7, 1000, 1 << 20, 1 << 24];

/// A type with bits.
trait Bits: Copy {
    const NAME: &str;
    const WIDTH: u32;
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($type:ident $bits:ident;)*) => {$(
        impl Bits for $type {
            const NAME: &str = stringify!($type);
            const WIDTH: u32 = $bits::BITS;
            fn of(bits: u64) -> Self {
                $type::from_bits(bits as $bits)
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    )*};
}

bits! { f16 u16; bf16 u16; f32 u32; f64 u64; }

/// A type of elements, with the constants of `numbers` in `one_hash.py`.
trait Numbers: Bits {
    const FRACTION_BITS: u32;
    const FIRST: u64;
    const SPAN: u64;

    /// The elements of a case: of two large ones, most cancel.
    fn numbers(count: usize) -> Vec<Self> {
        let half = count / 2;
        let place = |z: u64| (z >> 52 & 0x7FF) % Self::SPAN;
        let number = |index: usize| {
            let negated = index.checked_sub(half).map(mixed).filter(|&earlier| place(earlier) >= Self::SPAN / 2);
            let z = negated.unwrap_or_else(|| mixed(index));
            let sign = (z >> 63) ^ u64::from(negated.is_some());
            let fraction = z & ((1 << Self::FRACTION_BITS) - 1);
            Self::of(sign << (Self::WIDTH - 1) | (place(z) + Self::FIRST) << Self::FRACTION_BITS | fraction)
        };
        (0..count).map(number).collect()
    }
}

macro_rules! numbers {
    ($($type:ident $fraction_bits:literal $first:literal $span:literal;)*) => {$(
        impl Numbers for $type {
            const FRACTION_BITS: u32 = $fraction_bits;
            const FIRST: u64 = $first;
            const SPAN: u64 = $span;
        }
    )*};
}

numbers! {
    f16 10 1 19;
    bf16 7 87 80;
    f32 23 87 80;
    f64 52 723 600;
}

/// SplitMix64 of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
fn mixed(index: usize) -> u64 {
    let z = (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The sum, the mean and the norm of a case, by the name of the result's type.
fn expected<T: Bits, R: Bits>(count: usize) -> Option<[u64; 3]> {
    let start = format!("{} {count} {} ", T::NAME, R::NAME);
    let line = CASES.lines().find_map(|line| line.strip_prefix(&start))?;
    let bits: Vec<u64> = line.split(' ').map(|bits| u64::from_str_radix(bits, 16).expect("hexadecimal")).collect();
    Some(bits.try_into().expect("three results"))
}

fn same<T: Bits, R: Bits>(count: usize, way: &str, found: [R; 3]) -> Result<(), String> {
    let expected = expected::<T, R>(count).ok_or_else(|| format!("no case of {count} {} to {}", T::NAME, R::NAME))?;
    let found = found.map(R::bits);
    if found == expected {
        return Ok(());
    }
    Err(format!("{way}: sum, mean and norm of {count} {} to {}: {found:x?}, expected {expected:x?}", T::NAME, R::NAME))
}

/// Checks the roundings of states to the elements' type and to that of sums.
fn states<T>(count: usize, way: &str, sum: &ExactSum<T>, squares: &ExactDot<T>) -> Result<(), String>
where
    T: Bits + Rounded + OnDevice<Sum: Bits + Rounded>,
{
    same::<T, T>(count, way, [sum.rounded(), sum.mean(), squares.sqrt()])?;
    same::<T, T::Sum>(count, way, [sum.rounded(), sum.mean(), squares.sqrt()])
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// The shards of some ranks, uneven, the first one empty.
fn shards<T>(elements: &[T], ranks: usize) -> impl Iterator<Item = &[T]> {
    let end = move |rank: usize| if rank < 2 { 0 } else { elements.len() * rank * rank / (ranks * ranks) };
    (0..ranks).map(move |rank| &elements[end(rank)..if rank + 1 == ranks { elements.len() } else { end(rank + 1) }])
}

/// Checks every way on a device, for all types.
///
/// # Errors
/// If a result differs from the file's, or on an unexpected error.
pub fn on_device(gpu: &Gpu, count: usize) -> Result<(), String> {
    on_device_of::<f16>(gpu, count)?;
    on_device_of::<bf16>(gpu, count)?;
    on_device_of::<f32>(gpu, count)?;
    on_device_of::<f64>(gpu, count)
}

/// Checks every way on the host, for all types.
///
/// # Errors
/// As for [`on_device`].
pub fn on_host(count: usize) -> Result<(), String> {
    on_host_of::<f16>(count)?;
    on_host_of::<bf16>(count)?;
    on_host_of::<f32>(count)?;
    on_host_of::<f64>(count)
}

fn on_device_of<T>(gpu: &Gpu, count: usize) -> Result<(), String>
where
    T: Numbers + Rounded + OnDevice<Sum: Bits + Rounded> + SumFormat<T>,
    T::Sum: SumFormat<T>,
{
    let elements = T::numbers(count);
    let memory = gpu.upload(&elements).map_err(text)?;
    let [sum, mean, _, norm] = T::results(gpu, memory.view()).map_err(text)?;
    same::<T, T::Sum>(count, "one call", [sum, mean, norm])?;
    let of_states = |sums: &ExactStates<ExactSum<T>>, squares: &ExactStates<ExactDot<T>>, way: &str| {
        states(count, way, &sums.download().map_err(text)?[0], &squares.download().map_err(text)?[0])?;
        same::<T, T>(count, way, on_device_rounded(gpu, sums, squares).map_err(text)?)?;
        same::<T, T::Sum>(count, way, on_device_rounded(gpu, sums, squares).map_err(text)?)
    };
    let summed = |elements: &[T]| -> Result<_, Error> {
        let (mut sums, mut squares) = (gpu.exact_sums::<T>(1)?, gpu.exact_dots::<T>(1)?);
        let memory = gpu.upload(elements)?;
        sums.add(&memory, Axes::ALL)?;
        squares.add_squares(&memory, Axes::ALL)?;
        Ok((sums, squares))
    };
    let (sums, squares) = summed(&elements).map_err(text)?;
    of_states(&sums, &squares, "states")?;
    for chunk in CHUNKS {
        let chunks = || elements.chunks(chunk).map(Ok::<_, io::Error>);
        let sum = gpu.sum_chunks(chunks()).map_err(text)?;
        let squares = gpu.sum_squares_of_chunks(chunks()).map_err(text)?;
        states(count, &format!("chunks of {chunk}"), &sum, &squares)?;
    }
    for ranks in 2..=8 {
        let all = shards(&elements, ranks).map(summed).collect::<Result<Vec<_>, _>>().map_err(text)?;
        let (sums, squares): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let (sums, squares) = (merged(gpu, sums)?, merged(gpu, squares)?);
        of_states(&sums, &squares, &format!("{ranks} ranks"))?;
    }
    Ok(())
}

/// The sum, the mean and the norm, rounded on the device.
fn on_device_rounded<T: OnDevice, R: SumFormat<T>>(
    gpu: &Gpu,
    sums: &ExactStates<ExactSum<T>>,
    squares: &ExactStates<ExactDot<T>>,
) -> Result<[R; 3], Error> {
    let mut results = gpu.zeroed::<R>(3)?;
    let mut view = results.view_mut();
    sums.values_into(view.reborrow().slice(0, 1)?)?;
    sums.means_into(view.reborrow().slice(1, 1)?)?;
    squares.norms_into(view.slice(2, 1)?)?;
    let results = gpu.download(&results)?;
    Ok([results[0], results[1], results[2]])
}

/// The last rank's sums after an all-reduce.
fn merged<S: ExactState>(gpu: &Gpu, ranks: Vec<ExactStates<S>>) -> Result<ExactStates<S>, String> {
    let mut all = vec![0_i64; S::WORDS];
    for rank in &ranks {
        let words = gpu.download(rank.words().map_err(text)?).map_err(text)?;
        all.iter_mut().zip(words).for_each(|(all, word)| *all += word);
    }
    let count = ranks.len() as u32;
    let mut last = ranks.into_iter().next_back().ok_or("no ranks")?;
    last.all_reduce(count, |gpu, words| gpu.upload_into(&all, words)).map_err(text)?;
    Ok(last)
}

fn on_host_of<T>(count: usize) -> Result<(), String>
where
    T: Numbers + Rounded + OnDevice<Sum: Bits + Rounded>,
    Sum: Reduces<T, 1, Output = T::Sum>,
    Mean: Reduces<T, 1, Output = T::Sum>,
    Norm: Reduces<T, 1, Output = T::Sum>,
{
    let elements = T::numbers(count);
    let results = || -> Result<_, Error> {
        let layout = Layout::contiguous(&[count])?;
        let view = host::View::new(&elements, &layout)?;
        let sum = host::reduce(Sum, view, Axes::ALL)?.as_slice()[0];
        let mean = host::reduce(Mean, view, Axes::ALL)?.as_slice()[0];
        Ok([sum, mean, host::reduce(Norm, view, Axes::ALL)?.as_slice()[0]])
    };
    same::<T, T::Sum>(count, "one call on the host", results().map_err(text)?)?;
    let summed = |elements: &[T], chunk: usize| {
        let (mut sum, mut squares) = (ExactSum::<T>::new(), ExactDot::<T>::new());
        for chunk in elements.chunks(chunk) {
            sum.add_slice(chunk);
            squares.add_squares(chunk);
        }
        (sum, squares)
    };
    for chunk in CHUNKS {
        let (sum, squares) = summed(&elements, chunk);
        states(count, &format!("chunks of {chunk} on the host"), &sum, &squares)?;
    }
    for ranks in 2..=8 {
        let shards = shards(&elements, ranks).map(|shard| summed(shard, shard.len().max(1)));
        let (sums, squares): (Vec<_>, Vec<_>) = shards.unzip();
        let (sum, squares) = (merged_on_host(&sums)?, merged_on_host(&squares)?);
        states(count, &format!("{ranks} ranks on the host"), &sum, &squares)?;
    }
    Ok(())
}

/// The sum of all ranks, by the sums of their words.
fn merged_on_host<S: Words + Copy + Debug>(ranks: &[S]) -> Result<S, String> {
    let mut last = [ranks[ranks.len() - 1]];
    words::all_reduce(&mut last, ranks.len() as u32, |words| {
        for rank in &ranks[..ranks.len() - 1] {
            words.iter_mut().zip(rank.words()).for_each(|(all, word)| *all += word);
        }
        Ok::<(), WordsError>(())
    })
    .map_err(text)?;
    Ok(last[0])
}

//! Random inputs, and the expected transpose, computed on the CPU.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::element::Number;
use crate::memory;

/// A random integer from -8 to 8, or for an unsigned type from 0 to 16.
///
/// Partial sums of n signed numbers stay within about 20 times the square root of n. So up to n = 2^39 each of them is
/// an integer that f32 represents exactly, and every order of additions gives the same sum. No tolerance is needed,
/// which would hide a kernel that drops an element or uses one twice.
fn whole<T: Number>(source: &mut SmallRng) -> T {
    let least = if T::of_whole(-1).wide() < T::of_whole(0).wide() { -8 } else { 0 };
    T::of_whole(source.random_range(-8_i8..=8) + 8 + least)
}

/// `len` random numbers, different in every run.
pub fn random<T: Number>(len: usize) -> anyhow::Result<Vec<T>> {
    fill(len, SmallRng::from_os_rng(), whole)
}

/// `len` random numbers, which a seed determines. (On 64-bit machines; on 32-bit machines `SmallRng` is another
/// generator.)
pub fn random_of_seed<T: Number>(len: usize, seed: u64) -> anyhow::Result<Vec<T>> {
    fill(len, SmallRng::seed_from_u64(seed), whole)
}

/// `len` random numbers from 0 to 1, for transposes.
pub fn random_floats(len: usize) -> anyhow::Result<Vec<f32>> {
    fill(len, SmallRng::from_os_rng(), |source| source.random())
}

fn fill<T>(len: usize, mut source: SmallRng, mut next: impl FnMut(&mut SmallRng) -> T) -> anyhow::Result<Vec<T>> {
    let mut numbers = memory::list(len)?;
    numbers.extend((0..len).map(|_| next(&mut source)));
    Ok(numbers)
}

/// The transpose, computed by the CPU.
pub fn transposed<T: Copy>(elements: &[T], rows: usize, columns: usize) -> anyhow::Result<Vec<T>> {
    let mut result = memory::list(elements.len())?;
    result.extend_from_slice(elements);
    for (row, line) in elements.chunks_exact(columns.max(1)).enumerate() {
        for (column, &element) in line.iter().enumerate() {
            result[column * rows + row] = element;
        }
    }
    Ok(result)
}

/// `len` random words.
pub fn random_words(len: usize) -> anyhow::Result<Vec<u32>> {
    fill(len, SmallRng::from_os_rng(), |source| source.random())
}

/// Whether two lists have the same bits.
pub fn same_bits<T: Number>(a: &[T], b: &[T]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_pair() == b.to_pair())
}

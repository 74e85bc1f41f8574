//! Inputs, and what the CPU makes of them.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::ladder::LadderElement;

use crate::memory;
use crate::number::Number as Shown;

/// A number that `bench` reduces.
pub trait Number: LadderElement {
    /// A random number from -8 to 8, whole. Sums of n of them stay within some 20 times the root of n, so up to 2^39 of
    /// them each partial sum is a whole number that f32 has, and any order of additions gives the same: a kernel that
    /// drops one element, or takes it twice, is found out, where a tolerance would hide it.
    fn random(source: &mut SmallRng) -> Self;

    /// The sum of any numbers, and how far a result may be off.
    fn reference(numbers: &[Self]) -> Reference;

    /// The sum of numbers from [`Number::random`], to be met exactly.
    fn exact_reference(numbers: &[Self]) -> Reference {
        Reference { bound: 0.0, ..Self::reference(numbers) }
    }

    /// Whether a result is the reference, within its bound.
    fn agrees(self, reference: &Reference) -> bool;

    /// For printing.
    fn as_f64(self) -> f64;

    /// Its name.
    const NAME: &'static str;
}

/// The CPU's sum.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    pub sum: f64,
    /// The most that a float result may differ from it; 0 where sums are exact.
    pub bound: f64,
}

impl Number for f32 {
    const NAME: &'static str = "f32";

    fn random(source: &mut SmallRng) -> Self {
        source.random_range(-8_i8..=8).into()
    }

    fn reference(numbers: &[Self]) -> Reference {
        let sum: f64 = numbers.iter().map(|&x| f64::from(x)).sum();
        let magnitude: f64 = numbers.iter().map(|&x| f64::from(x.abs())).sum();
        // Each addition on the way from an element to the sum rounds once, by half an epsilon at most. No rung has more
        // of them than a thread's run over the input and a fold of 2^11 partials.
        let roundings = 64.0 + numbers.len() as f64 / 65_536.0;
        Reference { sum, bound: roundings * f64::from(Self::EPSILON) / 2.0 * magnitude }
    }

    fn agrees(self, reference: &Reference) -> bool {
        if !reference.sum.is_finite() || reference.sum.abs() > f64::from(Self::MAX) {
            return if reference.sum.is_nan() {
                self.is_nan()
            } else {
                f64::from(self) == f64::from(reference.sum as Self)
            };
        }
        (f64::from(self) - reference.sum).abs() <= reference.bound.max(0.0)
    }

    fn as_f64(self) -> f64 {
        self.into()
    }
}

impl Number for f64 {
    const NAME: &'static str = "f64";

    fn random(source: &mut SmallRng) -> Self {
        source.random_range(-8_i8..=8).into()
    }

    fn reference(numbers: &[Self]) -> Reference {
        // Of the whole numbers above, which is all that is summed in f64 here.
        Reference { sum: numbers.iter().sum(), bound: 0.0 }
    }

    fn agrees(self, reference: &Reference) -> bool {
        self == reference.sum
    }

    fn as_f64(self) -> f64 {
        self
    }
}

macro_rules! integers {
    ($($type:ident),*) => {$(
        impl Number for $type {
            const NAME: &'static str = stringify!($type);

            fn random(source: &mut SmallRng) -> Self {
                source.random_range(-8..=8)
            }

            fn reference(numbers: &[Self]) -> Reference {
                let sum = numbers.iter().fold(0 as $type, |sum, &x| sum.wrapping_add(x));
                Reference { sum: sum as f64, bound: 0.0 }
            }

            fn agrees(self, reference: &Reference) -> bool {
                self as f64 == reference.sum
            }

            fn as_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

integers!(i32, i64);

/// `len` random numbers, fresh in every run.
pub fn random<T: Number>(len: usize) -> anyhow::Result<Vec<T>> {
    fill(len, SmallRng::from_os_rng(), T::random)
}

/// `len` random numbers, the same for a seed in every run. (On any machine with 64 bits; `SmallRng` is another
/// generator on those with 32.)
pub fn random_of_seed<T: Number>(len: usize, seed: u64) -> anyhow::Result<Vec<T>> {
    fill(len, SmallRng::seed_from_u64(seed), T::random)
}

/// `len` random bit patterns that are no NaN, for what must move unchanged.
pub fn random_bits(len: usize) -> anyhow::Result<Vec<f32>> {
    fill(len, SmallRng::from_os_rng(), |source| source.random())
}

fn fill<T>(len: usize, mut source: SmallRng, mut next: impl FnMut(&mut SmallRng) -> T) -> anyhow::Result<Vec<T>> {
    let mut numbers = memory::list(len)?;
    numbers.extend((0..len).map(|_| next(&mut source)));
    Ok(numbers)
}

/// The transpose, by the CPU.
pub fn transposed(elements: &[f32], rows: usize, columns: usize) -> anyhow::Result<Vec<f32>> {
    let mut result = memory::list(elements.len())?;
    result.resize(elements.len(), 0.0);
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
pub fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// The sum of a type whose result is known to be `T`'s: for messages.
pub fn show<T: Number>(value: T) -> String {
    Shown(value.as_f64()).to_string()
}

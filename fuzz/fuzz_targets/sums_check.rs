//! Compares exact sums of any numbers with a reference that uses big integers. The fuzzer searches for numbers whose
//! results differ, and a test of `exact_sum` replays `corpus/exact_sums/`.

use exact_sum::Summand;
use half::{bf16, f16};

use super::check;

/// Compares all results for a file's numbers with the reference. The first byte selects the type of the numbers.
/// Returns how many numbers the file has.
///
/// # Panics
/// If a result differs in any bit.
pub fn check(file: &[u8]) -> usize {
    match file {
        [] => 0,
        [kind, bytes @ ..] => match kind % 4 {
            0 => of(bytes, |bytes| f16::from_bits(u16::from_le_bytes(bytes))),
            1 => of(bytes, |bytes| bf16::from_bits(u16::from_le_bytes(bytes))),
            2 => of(bytes, f32::from_le_bytes),
            _ => of(bytes, f64::from_le_bytes),
        },
    }
}

fn of<T: Summand + Into<f64>, const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> usize {
    let (chunks, _) = bytes.as_chunks::<N>();
    let x: Vec<T> = chunks.iter().map(|&bytes| number(bytes)).collect();
    let reversed: Vec<T> = x.iter().rev().copied().collect();
    check::check(&x, &reversed);
    x.len()
}

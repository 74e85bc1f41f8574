//! Hashes of the exact results of fixed inputs, compared with stored hashes.

use crc32fast::Hasher;
use half::{bf16, f16};
use serde::{Serialize, Serializer};
use warpfold::{Error, Gpu};

use super::numbers::{Kind, Random, vectors};
use super::operations::Exact;
use crate::element::ElementType;
use crate::interrupt;

/// The machines that the stored hashes are from.
pub const STORED_BY: &str = "an NVIDIA H200, and the SIMT executor on an x86-64 CPU, 2026-11-25";

/// The stored hashes of f32, f64, f16 and bf16. `hashes.py` computes the same hashes with Python's integers.
const STORED: [u32; 4] = [0x59cb_fde5, 0x9a60_2fca, 0x7121_e8c9, 0x8eee_f461];

/// The hash of a type's results.
#[derive(Debug, Serialize)]
pub struct Hashed {
    pub dtype: ElementType,
    /// The number of results.
    pub results: usize,
    /// The CRC-32 of all results' bits, as `u64`, little-endian.
    #[serde(serialize_with = "hex")]
    pub hash: u32,
    #[serde(serialize_with = "hex")]
    pub stored: u32,
    pub correct: bool,
    /// What is wrong, if anything.
    pub wrong: Option<String>,
}

fn hex<S: Serializer>(hash: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:#010x}"))
}

impl Hashed {
    /// `first_wrong` is the first result that differs from the host's.
    fn new(dtype: ElementType, results: usize, hash: u32, stored: u32, first_wrong: Option<String>) -> Self {
        let wrong = first_wrong.or_else(|| {
            let text =
                "the hash is not the stored one, though each result is the host's: the inputs or the rounding differ";
            (hash != stored).then(|| text.to_owned())
        });
        Self { dtype, results, hash, stored, correct: wrong.is_none(), wrong }
    }
}

/// The hashes of all types; after an interrupt, those finished so far.
pub fn all(gpu: &Gpu) -> Result<Vec<Hashed>, Error> {
    let types = [of::<f32>, of::<f64>, of::<f16>, of::<bf16>];
    let hashes = types.into_iter().zip(STORED).map_while(|(of, stored)| of(gpu, stored).transpose());
    hashes.collect()
}

/// A matrix with a result for each row or column.
#[derive(Clone, Copy)]
enum Layout {
    Rows(usize, usize),
    Columns(usize, usize),
}

/// Rows of lengths that are summed by one lane, a warp, a block and several blocks; short rows, of which a warp sums
/// several; and columns.
const LAYOUTS: [Layout; 8] = [
    Layout::Rows(1, 0),
    Layout::Rows(1, 1),
    Layout::Rows(1, 33),
    Layout::Rows(1, 1000),
    Layout::Rows(1, 20_011),
    Layout::Rows(37, 20),
    Layout::Rows(5, 700),
    Layout::Columns(150, 9),
];

impl Layout {
    fn extents(self) -> [usize; 2] {
        let (Self::Rows(rows, columns) | Self::Columns(rows, columns)) = self;
        [rows, columns]
    }

    /// The axis that is reduced.
    fn axis(self) -> isize {
        if matches!(self, Self::Rows(..)) { 1 } else { 0 }
    }

    /// The elements of one result.
    fn elements_of<T: Copy>(self, all: &[T], result: usize) -> Vec<T> {
        match self {
            Self::Rows(_, columns) => all[result * columns..][..columns].to_vec(),
            Self::Columns(_, columns) => all.iter().skip(result).step_by(columns).copied().collect(),
        }
    }
}

/// The hash of one type; `None` after an interrupt.
fn of<T: Exact>(gpu: &Gpu, stored: u32) -> Result<Option<Hashed>, Error> {
    let (mut random, mut hasher, mut results, mut first_wrong) = (Random(1), Hasher::new(), 0, None);
    for kind in Kind::HASHED {
        for layout in LAYOUTS {
            if interrupt::is_pending() {
                return Ok(None);
            }
            let extents = layout.extents();
            let [x, y] = vectors::<T>(kind, extents.iter().product(), &mut random);
            let on_device = gpu.upload(&x)?.reshape(&extents)?;
            let mut found = T::reductions(gpu, &on_device, layout.axis())?;
            if matches!(layout, Layout::Rows(..)) {
                found.push(T::dots(gpu, &on_device, &gpu.upload(&y)?.reshape(&extents)?)?);
            }
            for (operation, values) in found {
                for (i, value) in values.into_iter().enumerate() {
                    hasher.update(&value.bits().to_le_bytes());
                    results += 1;
                    let [x, y] = [&x, &y].map(|all| layout.elements_of(all, i));
                    let expected = operation.on_host(&x, &y);
                    if value.bits() != expected.bits() && first_wrong.is_none() {
                        let (found, expected) = (value.hex(), expected.hex());
                        let of = format!("{operation} of {} {kind} numbers", x.len());
                        first_wrong = Some(format!("the {of} is {found} instead of {expected}"));
                    }
                }
            }
        }
    }
    Ok(Some(Hashed::new(T::TYPE, results, hasher.finalize(), stored, first_wrong)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_hash_or_a_wrong_result_is_an_error() {
        let hashed = |hash, wrong: Option<&str>| Hashed::new(ElementType::F32, 9, hash, 7, wrong.map(str::to_owned));
        assert!(hashed(7, None).correct);
        assert!(
            !hashed(8, None).correct && hashed(8, None).wrong.is_some_and(|text| text.contains("not the stored one"))
        );
        assert!(!hashed(8, Some("the sum")).correct);
        assert_eq!(hashed(7, Some("the sum")).wrong.as_deref(), Some("the sum"));
    }
}

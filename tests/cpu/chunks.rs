//! Sums of chunks, in the executor and on the host.

use half::{bf16, f16};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use test_support::chunks;
use test_support::exact::{Data, Exact, numbers};
use test_support::one_hash;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::{Gpu, SimtOptions};

/// The executor without checks, for long inputs.
fn unchecked() -> Gpu {
    Gpu::simt_with(SimtOptions { checks: false, ..SimtOptions::default() })
}

#[test]
fn sums_of_chunks_are_those_of_the_whole() {
    let (gpu, mut source) = (unchecked(), SmallRng::seed_from_u64(60));
    for (len, chunk) in [(0, None), (1, Some(1)), (700, Some(1)), (3000, Some(7)), (5000, None), (5000, Some(4999))] {
        chunks::chunks(&gpu, len, chunk, &mut source).unwrap();
    }
    chunks::columns(&gpu, 20, 33, &mut source).unwrap();
    chunks::columns(&Gpu::simt(), 7, 300, &mut source).unwrap();
}

/// A buffer has 2^22 `f32`.
#[test]
fn chunks_may_be_longer_than_a_buffer() {
    let (gpu, mut source) = (unchecked(), SmallRng::seed_from_u64(61));
    chunks::chunks_of::<f32>(&gpu, Data::Uniform, (1 << 23) + 5, Some((1 << 22) + 1), &mut source).unwrap();
    chunks::chunks_of::<f16>(&gpu, Data::Uniform, (1 << 23) + 5, None, &mut source).unwrap();
}

/// The bytes of the sums, which have one form, are those of the whole for chunks of 1 to 2^24 elements.
#[test]
fn sums_on_the_host_do_not_depend_on_chunks() {
    fn of<T: Exact>(len: usize) {
        let elements = numbers::<T>(Data::AnyFinite, len, &mut SmallRng::seed_from_u64(62));
        let sums = |chunk: usize| {
            let (mut sum, mut squares) = (ExactSum::<T>::new(), ExactDot::<T>::new());
            for chunk in elements.chunks(chunk) {
                sum.add_slice(chunk);
                squares.add_squares(chunk);
            }
            (sum.to_bytes(), squares.to_bytes())
        };
        let whole = sums(len);
        for log in (0..=24).step_by(4).filter(|log| len >> log < 1 << 21) {
            assert_eq!(sums(1 << log), whole, "{} in chunks of 2^{log}", T::NAME);
        }
    }
    of::<f32>((1 << 24) + 3);
    for len in [1 << 20, 100_003] {
        of::<f32>(len);
        of::<f64>(len);
        of::<f16>(len);
        of::<bf16>(len);
    }
}

/// The same bits by every way, which are those of Python's fractions.
#[test]
fn every_way_in_the_executor_has_one_hash() {
    one_hash::on_device(&unchecked(), one_hash::LEAST).unwrap();
}

#[test]
fn every_way_on_the_host_has_one_hash() {
    one_hash::on_host(one_hash::LEAST).unwrap();
    one_hash::on_host(one_hash::MOST).unwrap();
}

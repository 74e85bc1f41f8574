//! The ways of adding up wide data in the executor: windows, superaccumulators that lanes share, and limbs, chosen by
//! the dynamic shared memory of a launch. Each has the bits of the host's sum.

use half::{bf16, f16};
use kernels::reduce::exact::long_rows::{ExactLongRowArgs, exact_long_rows, words_of_superaccumulator};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::by_shape::ByShape;
use test_support::exact::power;
use test_support::executor;
use test_support::shape::Shape;
use warpfold::Gpu;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::ops::{Sum, SumInF64, SumOfSquares};

/// Dynamic shared memory of a launch, in bytes: from none for windows alone to a superaccumulator for each lane.
const SHARED: [usize; 8] = [0, 100, 1000, 2048, 4096, 8192, 16_384, 25_000];

/// A reduction by blocks of `$threads`, each with one of the splits.
macro_rules! by_blocks {
    ($operator:ident of $type:ident to $output:ident: $gpu:expr, $numbers:expr, $launch:expr) => {{
        let (gpu, numbers, (threads, splits, shared)): (&Gpu, &[$type], (u32, u32, usize)) = ($gpu, $numbers, $launch);
        let tiles = numbers.len().div_ceil(threads as usize * 16 / size_of::<$type>()) as u32;
        let splits = splits.min(tiles);
        let input = gpu.upload(numbers).unwrap();
        let mut tile_states = gpu.zeroed::<[u64; 2]>(2 * splits as usize).unwrap();
        let mut superaccumulators = gpu.zeroed(words_of_superaccumulator::<$operator, $type>()).unwrap();
        let mut output = gpu.zeroed::<u8>(size_of::<$output>()).unwrap();
        // SAFETY: the arguments describe one segment, the whole input, with its tile states and a superaccumulator.
        let kernel = unsafe { exact_long_rows::handle::<$operator, $type>() };
        let kernel = kernel.with_block(threads).with_dynamic_shared(shared);
        let arguments = ExactLongRowArgs {
            input: input.view(),
            len: numbers.len(),
            pitch: 0,
            splits,
            tiles: tiles / splits,
            longer_splits: tiles % splits,
            tile_states: tile_states.view_mut(),
            superaccumulators: superaccumulators.view_mut(),
            finish: 0,
            output: output.view_mut(),
            term: 0,
        };
        gpu.launch(kernel, (splits, 1), arguments).unwrap();
        assert!(gpu.download(&superaccumulators).unwrap().iter().all(|&limb: &i64| limb == 0), "left clean");
        $output::from_le_bytes(gpu.download(&output).unwrap().try_into().unwrap()).to_bits()
    }};
}

fn squares<T: warpfold::exact::Summand + Copy>(numbers: &[T]) -> ExactDot<T> {
    numbers.iter().map(|&x| (x, x)).collect()
}

/// Checks all launches of numbers whose exponents are up to `reach` of the type's largest.
macro_rules! check {
    ($type:ident to $output:ident, reach $reach:expr, seed $seed:literal) => {{
        let (checks, fast, mut source) = (Gpu::simt(), executor(), SmallRng::seed_from_u64($seed));
        for (len, reach) in [(600, $reach / 8), (2049, $reach / 2), (5001, $reach)] {
            let mut number = |_| {
                let scale = power(source.random_range(-reach..reach));
                $type::nearest_to((source.random::<f64>() - 0.5) * scale)
            };
            let numbers: Vec<$type> = (0..len).map(&mut number).collect();
            let right = (
                numbers.iter().copied().collect::<ExactSum<$type>>().value().to_bits(),
                squares(&numbers).value().to_bits(),
            );
            for threads in [32, 256] {
                for splits in [1, 3] {
                    for shared in SHARED {
                        let gpu = if len == 600 && splits == 3 { &checks } else { &fast };
                        let launch = (threads, splits, shared);
                        let found = (
                            by_blocks!(Sum of $type to $output: gpu, &numbers, launch),
                            by_blocks!(SumOfSquares of $type to $output: gpu, &numbers, launch),
                        );
                        let what = stringify!($type);
                        assert!(found == right, "{len} {what} up to 2^{reach}, {launch:?}: {found:x?}, not {right:x?}");
                    }
                }
            }
        }
    }};
}

/// Conversion of test data.
trait Nearest {
    fn nearest_to(x: f64) -> Self;
}

macro_rules! nearest {
    ($($type:ident: $convert:expr;)*) => {$(
        impl Nearest for $type {
            fn nearest_to(x: f64) -> Self {
                let convert: fn(f64) -> Self = $convert;
                convert(x)
            }
        }
    )*};
}

nearest! {
    f32: |x| x as f32;
    f64: |x| x;
    f16: f16::from_f64;
    bf16: bf16::from_f64;
}

#[test]
fn each_way_has_the_same_bits_for_f32() {
    check!(f32 to f32, reach 120, seed 91);
}

#[test]
fn each_way_has_the_same_bits_for_f64() {
    check!(f64 to f64, reach 900, seed 92);
}

#[test]
fn each_way_has_the_same_bits_for_f16() {
    check!(f16 to f32, reach 15, seed 93);
}

#[test]
fn each_way_has_the_same_bits_for_bf16() {
    check!(bf16 to f32, reach 120, seed 94);
}

/// In each lane, numbers above all windows leave one unit of theirs, 2^102, beside numbers far below.
#[test]
fn one_unit_of_large_numbers_in_each_lane_is_not_lost() {
    let gpu = executor();
    let (large, above) = (2_f32.powi(125), 2_f32.powi(125) + 2_f32.powi(102));
    for lanes_log in 0..6 {
        for vectors in [1, 2, 4] {
            let vector =
                |k: usize| if k < 1 << lanes_log { [above, -large, 1e-30, 0.0] } else { [0.0, 1e-30, 0.0, 0.0] };
            let row: Vec<f32> = (0..vectors << lanes_log).flat_map(vector).collect();
            let all = row.repeat(100);
            let sums = gpu.reduce_to_buffer(SumInF64, &gpu.upload(&all).unwrap(), Shape::rows(100, row.len())).unwrap();
            let right = row.iter().copied().collect::<ExactSum<f32>>().rounded::<f64>();
            let found = gpu.download(&sums).unwrap();
            assert!(found.iter().all(|sum| sum.to_bits() == right.to_bits()), "{} elements: {found:?}", row.len());
        }
    }
}

/// Each lane has a number outside whole vectors, the smallest one, beside larger ones that cancel.
#[test]
fn one_unit_outside_whole_vectors_is_not_lost() {
    let gpu = executor();
    let least = f32::from_bits(1);
    // Each row begins one element after a multiple of 16 bytes, and ends one before.
    let row = [least, least, least, 1e20, -1e20, least, least, least, least, least];
    let all: Vec<f32> = [0.0].into_iter().chain(row.into_iter().chain([0.0; 2]).cycle().take(64 * 12)).collect();
    let buffer = gpu.upload(&all).unwrap();
    let shape = Shape::rows(64, row.len()).with_pitch(12).unwrap();
    let sums = gpu.reduce_to_buffer(Sum, buffer.view().slice(1, 64 * 12).unwrap(), shape).unwrap();
    assert_eq!(gpu.download(&sums).unwrap(), [8.0 * least; 64]);
}

//! Exact sums of short rows in the executor, with launches that plans rarely make.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::exact;
use warpfold::Gpu;
use warpfold::exact::ExactSum;

use crate::exact_launches::Launched;

/// Plans give a lane several rows only if there are thousands of rows. Here each row has other data, so that some rows
/// need another window than the row before, and some do not fit any.
#[test]
fn lanes_have_several_rows() {
    fn of<T: Launched>(gpu: &Gpu, source: &mut SmallRng) {
        let vector = 16 / size_of::<T>();
        for lanes in [4, 8, 16, 32] {
            let most = 4 * lanes * vector;
            for (len, pitch) in [(most, most), (most - vector, most), (most - 1, most + 3)] {
                let mut elements: Vec<T> = Vec::new();
                for _ in 0..45 {
                    let data = exact::ALL[source.random_range(0..exact::ALL.len())];
                    elements.extend(exact::numbers::<T>(data, pitch, source));
                }
                for rows_of_lane in [1, 4] {
                    let sums = T::of_rows(gpu, &elements, len, pitch, lanes as u32, rows_of_lane);
                    for (i, (row, sum)) in elements.chunks_exact(pitch).zip(sums).enumerate() {
                        let right: ExactSum<T> = row[..len].iter().copied().collect();
                        let case = format!("row {i} of {len} {}, {lanes} lanes of {rows_of_lane} rows", T::NAME);
                        exact::same(sum, right.value(), &case).unwrap();
                    }
                }
            }
        }
    }
    let (gpu, mut source) = (Gpu::simt(), SmallRng::seed_from_u64(76));
    for _ in 0..3 {
        of::<f32>(&gpu, &mut source);
        of::<f64>(&gpu, &mut source);
    }
}

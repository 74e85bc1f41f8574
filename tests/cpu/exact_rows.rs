//! Exact sums of short rows in the executor, with launches that plans rarely make.

use half::{bf16, f16};
use kernels::reduce::exact::few_columns::{FewColumnArgs, ROWS_OF_BLOCK, exact_few_columns, max_len, min_rows};
use kernels::reduce::exact::result::DERIVED;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::exact::{self, ALL, Data, Exact};
use test_support::executor;
use warpfold::exact::ExactSum;
use warpfold::ops::Sum;
use warpfold::{Gpu, Kernel};

use crate::exact_launches::Launched;

/// Rows of few elements have a kernel of their own; longer ones only if there are many.
#[test]
fn rows_of_few_elements() {
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(84));
    for len in 1..=5 {
        for rows in [3, min_rows(1), ROWS_OF_BLOCK + 5] {
            exact::rows_and_columns(&gpu, rows, len, &mut source).unwrap();
        }
    }
    exact::rows_and_columns(&Gpu::simt(), min_rows(1) + 1, 3, &mut source).unwrap();
}

/// Each length, by launches of a few rows: more than a block's, of ordinary and of any data, close together and apart,
/// aligned and not.
#[test]
fn launches_of_rows_of_few_elements() {
    fn of<T: Exact>(kernel: Kernel<FewColumnArgs<'static, T>>, gpu: &Gpu, source: &mut SmallRng) {
        let size_of_sum = if size_of::<T>() == 8 { 8 } else { 4 };
        for len in 1..=max_len(size_of::<T>()) {
            let (rows, pitch) = (ROWS_OF_BLOCK + 300, len + if len % 3 == 0 { source.random_range(0..4) } else { 0 });
            let mut elements: Vec<T> = Vec::new();
            for _ in 0..=rows {
                let is_ordinary = source.random_range(0..3) > 0;
                let data = if is_ordinary { Data::Normal } else { ALL[source.random_range(0..ALL.len())] };
                elements.extend(exact::numbers::<T>(data, pitch, source));
            }
            let input = gpu.upload(&elements).unwrap();
            for (first, finish) in [(0, 0), (1, DERIVED)] {
                let mut sums = gpu.zeroed::<u8>(rows * size_of_sum).unwrap();
                let arguments = FewColumnArgs {
                    input: input.view().slice(first, rows * pitch).unwrap(),
                    rows,
                    len,
                    pitch,
                    has_fours: u32::from(first == 0 && len.is_multiple_of(4) && pitch.is_multiple_of(4)),
                    finish,
                    output: sums.view_mut(),
                    term: 0,
                };
                gpu.launch(kernel, rows.div_ceil(ROWS_OF_BLOCK) as u32, arguments).unwrap();
                let sums = gpu.download(&sums).unwrap();
                for (i, bytes) in sums.chunks_exact(size_of_sum).enumerate() {
                    let found = match bytes.try_into() {
                        Ok(bytes) => f32::from_le_bytes(bytes).into(),
                        Err(_) => f64::from_le_bytes(bytes.try_into().unwrap()),
                    };
                    let of_row: ExactSum<T> = elements[first + i * pitch..][..len].iter().copied().collect();
                    let right: f64 = match (finish, size_of_sum) {
                        (0, _) => of_row.value().into(),
                        (_, 4) => of_row.mean::<f32>().into(),
                        _ => of_row.mean::<f64>(),
                    };
                    let case = format!("result {finish} of row {i} of {len} {}, {pitch} apart, from {first}", T::NAME);
                    exact::same(found, right, &case).unwrap();
                }
            }
        }
    }
    let (gpu, mut source) = (executor(), SmallRng::seed_from_u64(85));
    // SAFETY: the views have all rows, and the grid a block for each of a block's rows.
    unsafe {
        of(exact_few_columns::handle::<Sum, f32>(), &gpu, &mut source);
        of(exact_few_columns::handle::<Sum, f64>(), &gpu, &mut source);
        of(exact_few_columns::handle::<Sum, f16>(), &gpu, &mut source);
        of(exact_few_columns::handle::<Sum, bf16>(), &gpu, &mut source);
    }
}

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
                    let data = ALL[source.random_range(0..ALL.len())];
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

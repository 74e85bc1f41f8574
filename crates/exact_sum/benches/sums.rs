//! Times of exact sums on one core, beside those of plain sums and of the crates `xsum` and `bitrep`.
//!
//! `cargo bench -p warpfold-exact-sum --bench sums` runs all of them, in some minutes; a text after `--` selects those
//! whose names contain it.

use std::hint::black_box;
use std::time::Duration;

use bitrep::SumF64;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use exact_sum::{Elements, ExactDot, ExactSum, Matrix, Summand};
use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use xsum::{Xsum, XsumLarge};

/// The number of elements.
const LEN: usize = 1 << 24;
/// Rows and columns of a matrix.
const SIDE: usize = 1000;

/// Numbers of a normal distribution, times powers of two between `2^-range` and `2^range`.
fn numbers(len: usize, range: i32) -> Vec<f64> {
    let mut rng = SmallRng::seed_from_u64(1);
    let mut number = || {
        let (radius, angle) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
        let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        normal * f64::from(rng.random_range(-range..=range)).exp2()
    };
    (0..len).map(|_| number()).collect()
}

/// A sum by halves, as NumPy has it: inexact.
fn pairwise<T: Copy + Default + std::ops::Add<Output = T>>(elements: &[T]) -> T {
    if elements.len() > 128 {
        let (left, right) = elements.split_at(elements.len() / 16 * 8);
        return pairwise(left) + pairwise(right);
    }
    let (chunks, rest) = elements.as_chunks::<8>();
    let mut lanes = [T::default(); 8];
    for chunk in chunks {
        for (lane, &element) in lanes.iter_mut().zip(chunk) {
            *lane = *lane + element;
        }
    }
    lanes.into_iter().chain(rest.iter().copied()).fold(T::default(), |sum, element| sum + element)
}

fn exact<T: Summand>(elements: &[T]) -> T::Sum {
    let mut sum = ExactSum::new();
    sum.add_slice(elements);
    sum.value()
}

fn group<'a>(criterion: &'a mut Criterion, name: &str, len: usize) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(len as u64)).sample_size(20);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    group
}

fn sums(criterion: &mut Criterion) {
    for (name, range) in [("normal", 0), ("exponents over 2^120", 60)] {
        let x = numbers(LEN, range);
        let mut of_f64 = group(criterion, &format!("f64, {name}"), LEN);
        of_f64.bench_function("exact", |b| b.iter(|| exact(black_box(&x))));
        of_f64.bench_function("pairwise", |b| b.iter(|| pairwise(black_box(&x))));
        of_f64.bench_function("xsum", |b| {
            b.iter(|| {
                let mut sum = XsumLarge::new();
                sum.add_list(black_box(&x));
                sum.sum()
            });
        });
        of_f64.bench_function("bitrep", |b| {
            b.iter(|| {
                let mut sum = SumF64::default();
                black_box(&x).iter().for_each(|&element| sum.add(element));
                sum.value()
            });
        });
        of_f64.finish();
        let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let mut of_f32 = group(criterion, &format!("f32, {name}"), LEN);
        of_f32.bench_function("exact", |b| b.iter(|| exact(black_box(&x))));
        of_f32.bench_function("pairwise", |b| b.iter(|| pairwise(black_box(&x))));
        of_f32.bench_function("one by one", |b| b.iter(|| black_box(&x).iter().copied().collect::<ExactSum<f32>>()));
        of_f32.finish();
    }
    let x = numbers(LEN, 0);
    let short: Vec<f16> = x.iter().map(|&x| f16::from_f64(x)).collect();
    let brain: Vec<bf16> = x.iter().map(|&x| bf16::from_f64(x)).collect();
    let mut of_half = group(criterion, "half floats", LEN);
    of_half.bench_function("f16", |b| b.iter(|| exact(black_box(&short))));
    of_half.bench_function("bf16", |b| b.iter(|| exact(black_box(&brain))));
}

fn products(criterion: &mut Criterion) {
    fn of<T: Summand>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, x: &[T]) {
        group.bench_function(format!("squares of {name}"), |b| {
            b.iter(|| {
                let mut sum = ExactDot::new();
                sum.add_squares(black_box(x));
                sum.value()
            });
        });
        group.bench_function(format!("dot product of {name}"), |b| {
            b.iter(|| {
                let (left, right) = black_box(x).split_at(x.len() / 2);
                let mut sum = ExactDot::new();
                sum.add_slices(left, right).map(|()| sum.value())
            });
        });
    }
    let x = numbers(LEN, 0);
    let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let mut group = group(criterion, "products", LEN);
    of(&mut group, "f32", &single);
    of(&mut group, "f64", &x);
}

/// Sums along the axes of matrices.
fn axes(criterion: &mut Criterion) {
    fn rows(matrix: Matrix<'_, f32>) -> Vec<f32> {
        let mut sums = vec![0.0; matrix.rows()];
        matrix.sum_rows(&mut sums).expect("as many sums as rows");
        sums
    }
    let x: Vec<f32> = numbers(4 * SIDE * SIDE, 0).iter().map(|&x| x as f32).collect();
    let side = SIDE as isize;
    let of = |shape, strides| Matrix::strided(&x, 0, shape, strides).expect("enough elements");
    let cases = [
        ("1000 x 1000", of([SIDE, SIDE], [side, 1])),
        ("1000 x 1000, every other column", of([SIDE, SIDE / 2], [side, 2])),
        ("10^6 x 4", of([SIDE * SIDE, 4], [4, 1])),
    ];
    for (name, matrix) in cases {
        let mut group = group(criterion, &format!("f32, {name}"), matrix.rows() * matrix.columns());
        group.bench_function("axis 0", |b| b.iter(|| rows(black_box(matrix).transposed())));
        group.bench_function("axis 1", |b| b.iter(|| rows(black_box(matrix))));
    }
    let mut strided = group(criterion, "f32, stride 2", x.len() / 2);
    let elements = Elements::strided(&x, 0, 2, x.len() / 2).expect("enough elements");
    strided.bench_function("exact", |b| {
        b.iter(|| {
            let mut sum = ExactSum::new();
            sum.add_elements(black_box(elements));
            sum.value()
        });
    });
}

criterion_group!(benches, sums, products, axes);
criterion_main!(benches);

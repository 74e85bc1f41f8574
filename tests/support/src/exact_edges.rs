//! Exact sums with elements that take each path of the kernels, at each kind of position.

use crate::by_shape::ByShape;
use crate::shape::Shape;
use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::Gpu;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::ops::{Mean, Norm, Sum, SumOfSquares};

use crate::exact::{Data, Exact, RESULTS, numbers, power, same, text};

/// The name of a path of the kernels, and two factors. Sums of the first factor, and of the product, take the path.
type RarePath = (&'static str, f64, f64);

/// A type, with factors for each path of its sums and of its products.
trait Edges: Exact {
    const RARE_PATHS: &[RarePath];
}

const SMALLEST_DOUBLE: f64 = f64::from_bits(1);

impl Edges for f32 {
    const RARE_PATHS: &[RarePath] = &[
        ("in the window", 7.0, 1.0),
        ("a residual", power(-60), 1.0),
        ("a residual of residuals", power(-110), power(-30)),
        ("the smallest number", power(-149), power(-149)),
        ("above the window", power(50), power(40)),
        ("rounded up to 2^126", power(126) - power(102), power(-126)),
        ("above all windows", 3.0 * power(126), power(127)),
    ];
}

impl Edges for f64 {
    const RARE_PATHS: &[RarePath] = &[
        ("in the window", 7.0, 1.0),
        ("a product of two terms", 1.0 + power(-52), 1.0 - power(-53)),
        ("a residual", power(-120), 1.0),
        ("a product below its terms", 3.0 * power(-500), 5.0 * power(-500)),
        ("a product below the smallest number", 3.0 * power(-1000), 5.0 * power(-900)),
        ("the smallest number", SMALLEST_DOUBLE, SMALLEST_DOUBLE),
        ("above the window", power(200), power(100)),
        ("rounded up to 2^1022", power(1022) - power(969), power(-1022)),
        ("a product above its terms", 3.0 * power(505), 5.0 * power(505)),
        ("above all windows", 3.0 * power(1022), power(1023)),
    ];
}

impl Edges for f16 {
    const RARE_PATHS: &[RarePath] = &[
        ("in the window", 7.0, 1.0),
        ("the smallest number", power(-24), power(-24)),
        ("the largest number", 65_504.0, 65_504.0),
    ];
}

impl Edges for bf16 {
    const RARE_PATHS: &[RarePath] = &[
        ("in the window", 7.0, 1.0),
        ("a residual", power(-60), 1.0),
        ("the smallest number", power(-133), power(-133)),
        ("above the window", power(50), power(40)),
        ("above all windows", 1.5 * power(127), power(127)),
    ];
}

/// An input, and another one to multiply it with.
struct Case<T> {
    what: String,
    x: Vec<T>,
    y: Vec<T>,
}

/// Cases with the same ordinary elements, and two elements of one path that cancel: a case for each path and each pair
/// of neighbours in `places`. The first case has zeros at all places.
fn cases<T: Edges>(len: usize, places: &[usize], source: &mut SmallRng) -> Vec<Case<T>> {
    let mut ordinary = || T::nearest(f64::from(source.random_range(-32..32)) / 4.0);
    let (mut x, mut y): (Vec<T>, Vec<T>) = (0..len).map(|_| (ordinary(), ordinary())).unzip();
    for &place in places {
        (x[place], y[place]) = (T::nearest(0.0), T::nearest(0.0));
    }
    let mut all = vec![Case { what: "zeros".to_owned(), x: x.clone(), y: y.clone() }];
    for &(what, a, b) in T::RARE_PATHS {
        for (i, &first) in places.iter().enumerate() {
            let second = places[(i + 1) % places.len()];
            let (mut x, mut y) = (x.clone(), y.clone());
            (x[first], x[second]) = (T::nearest(a), T::nearest(-a));
            (y[first], y[second]) = (T::nearest(b), T::nearest(b));
            all.push(Case { what: format!("{what} at {first} and {second}"), x, y });
        }
    }
    all
}

/// The results of a case on the host, and its dot product.
fn on_host<T: Exact>(case: &Case<T>) -> ([T::Sum; 4], T::Sum) {
    let sum: ExactSum<T> = case.x.iter().copied().collect();
    let squares: ExactDot<T> = case.x.iter().map(|&x| (x, x)).collect();
    let dot: ExactDot<T> = case.x.iter().copied().zip(case.y.iter().copied()).collect();
    ([sum.value(), sum.mean(), squares.value(), squares.sqrt()], dot.value())
}

/// Compares the results of a case with those on the host; sum, mean and dot product also with those of `ordinary`.
fn compare<T: Exact>(
    (found, dot): ([T::Sum; 4], Option<T::Sum>),
    case: &Case<T>,
    ordinary: &Case<T>,
    how: &str,
) -> Result<(), String> {
    let (right, right_dot) = on_host(case);
    let (of_ordinary, ordinary_dot) = on_host(ordinary);
    let what = |of: &str| format!("the {of} of {how} of {} {}, {}", case.x.len(), T::NAME, case.what);
    for (i, result) in RESULTS.into_iter().enumerate() {
        same(found[i], right[i], &what(result))?;
        if i < 2 {
            same(found[i], of_ordinary[i], &what(result))?;
        }
    }
    if let Some(dot) = dot {
        same(dot, right_dot, &what("dot product"))?;
        same(dot, ordinary_dot, &what("dot product"))?;
    }
    Ok(())
}

/// Checks that elements on rare paths change no bit, at any position: before the first aligned vector, in a tile, in a
/// partial tile, and after the last vector; in whole inputs, rows, columns and segments.
///
/// # Errors
/// If a result is not the exact one, or on an unexpected error.
pub fn elements_on_rare_paths(gpu: &Gpu) -> Result<(), String> {
    elements_on_rare_paths_of::<f32>(gpu)?;
    elements_on_rare_paths_of::<f64>(gpu)?;
    elements_on_rare_paths_of::<f16>(gpu)?;
    elements_on_rare_paths_of::<bf16>(gpu)
}

/// The number of elements before the input, so that it is not aligned.
const BEFORE: usize = 3;

fn moved<T: Exact>(elements: &[T], after: usize) -> Vec<T> {
    let nan = T::nearest(f64::NAN);
    [&[nan; BEFORE][..], elements, &vec![nan; after]].concat()
}

fn elements_on_rare_paths_of<T: Edges>(gpu: &Gpu) -> Result<(), String> {
    let mut source = SmallRng::seed_from_u64(11);
    // One block, and several. A tile of a block of 256 threads has 256 vectors.
    for len in [2999, 9011] {
        let places = [0, 100, len / 2, len - 200, len - 1];
        let all = cases::<T>(len, &places, &mut source);
        for case in &all {
            let x = gpu.upload(&moved(&case.x, 0)).map_err(text)?;
            let y = gpu.upload(&case.y).map_err(text)?;
            let view = x.view().slice(BEFORE, len).map_err(text)?;
            let dot = T::dots(gpu, view, y.view(), Shape::all(len)).map_err(text)?[0];
            compare((T::results(gpu, view).map_err(text)?, Some(dot)), case, &all[0], "the whole input")?;
        }
    }
    // A row is summed by lanes of a warp or by a block, a column by one thread or by several.
    for len in [37, 301, 2050] {
        let places = [0, 1, len / 2, len - 5, len - 1];
        let all = cases::<T>(len, &places, &mut source);
        let (rows, after) = (all.len(), 1);
        let pitch = len + after;
        let of_rows = |of: fn(&Case<T>) -> &[T]| -> Vec<T> {
            let padding = vec![T::nearest(f64::NAN); after];
            all.iter().flat_map(|case| [of(case), &padding].concat()).collect()
        };
        let x = gpu.upload(&moved(&of_rows(|case| &case.x), 0)).map_err(text)?;
        let y = gpu.upload(&of_rows(|case| &case.y)).map_err(text)?;
        let view = x.view().slice(BEFORE, rows * pitch).map_err(text)?;
        let shape = Shape::rows(rows, len).with_pitch(pitch).map_err(text)?;
        let dots = T::dots(gpu, view, y.view(), shape).map_err(text)?;
        let of_rows = T::results_of_each(gpu, view, shape).map_err(text)?;
        let offsets: Vec<u64> = (0..=2 * rows).map(|i| (i / 2 * pitch + i % 2 * len) as u64).collect();
        let offsets = gpu.upload(&offsets).map_err(text)?;
        let of_segments = T::results_of_segments(gpu, view, offsets.view()).map_err(text)?;
        let transposed: Vec<T> = (0..len).flat_map(|i| all.iter().map(move |case| case.x[i])).collect();
        let x = gpu.upload(&moved(&transposed, 0)).map_err(text)?;
        let view = x.view().slice(BEFORE, rows * len).map_err(text)?;
        let of_columns = T::results_of_each(gpu, view, Shape::columns(len, rows)).map_err(text)?;
        for (i, case) in all.iter().enumerate() {
            let of = |results: &[Vec<T::Sum>; 4], i: usize| results.each_ref().map(|of_each| of_each[i]);
            compare((of(&of_rows, i), Some(dots[i])), case, &all[0], "a row")?;
            // Every other segment is the gap between two rows.
            compare((of(&of_segments, 2 * i), None), case, &all[0], "a segment")?;
            compare((of(&of_columns, i), None), case, &all[0], "a column")?;
        }
    }
    Ok(())
}

/// Checks a recording whose input alternates between extremes, each in another block, and ordinary data. The memory
/// that blocks share must be clean after each start.
///
/// # Errors
/// If a result is not the exact one, or on an unexpected error.
pub fn extremes_in_recordings(gpu: &Gpu) -> Result<(), String> {
    let gpu = &gpu.fork().map_err(text)?;
    extremes_of_f32(gpu)?;
    extremes_of_f64(gpu)?;
    extremes_of_bf16(gpu)
}

/// The number of elements, and their rows, columns and segments.
const LEN: usize = 60_000;
const ROWS: usize = 2;
const COLUMNS: usize = 3;
const OFFSETS: [u64; 4] = [1, 29_000, 29_100, 59_999];

/// Extremes, each in another sixth of the input, or ordinary data.
fn extremes_or_ordinary<T: Exact>(round: usize, source: &mut SmallRng) -> Vec<T> {
    if round % 2 == 1 {
        return numbers(Data::Normal, LEN, source);
    }
    let (highest, least) = T::EXPONENTS;
    let not_finite = [f64::INFINITY, f64::NAN, 1.0][round / 2 % 3];
    let extremes = [power(highest), -power(highest), 1.0, power(-T::DIGITS), power(least), not_finite];
    let mut all = vec![T::nearest(0.0); LEN];
    let distance = LEN / extremes.len();
    for (i, x) in extremes.into_iter().enumerate() {
        all[i * distance + source.random_range(0..distance)] = T::nearest(x);
    }
    all
}

macro_rules! extremes_in_recordings {
    ($($name:ident $type:ident)*) => {$(
        fn $name(gpu: &Gpu) -> Result<(), String> {
            type Output = <$type as warpfold::exact::Summand>::Sum;
            let mut source = SmallRng::seed_from_u64(12);
            let mut all: Vec<$type> = extremes_or_ordinary(0, &mut source);
            let mut x = gpu.upload(&all).map_err(text)?;
            let offsets = gpu.upload(&OFFSETS).map_err(text)?;
            let of_all = Shape::all(LEN);
            let mut sum = gpu.reducer_of::<_, $type>(Sum, of_all).map_err(text)?;
            let mut mean = gpu.reducer_of::<_, $type>(Mean, of_all).map_err(text)?;
            let mut squares = gpu.reducer_of::<_, $type>(SumOfSquares, of_all).map_err(text)?;
            let mut norm = gpu.reducer_of::<_, $type>(Norm, of_all).map_err(text)?;
            let mut dot = gpu.dots_of::<$type>(of_all).map_err(text)?;
            let mut rows = gpu.reducer_of::<_, $type>(Sum, Shape::rows(ROWS, LEN / ROWS)).map_err(text)?;
            let mut columns = gpu.reducer_of::<_, $type>(Sum, Shape::columns(LEN / COLUMNS, COLUMNS)).map_err(text)?;
            let mut segments = gpu.segment_reducer::<_, $type>(Sum, OFFSETS.len() - 1, LEN).map_err(text)?;
            let lens = [1, 1, 1, 1, 1, ROWS, COLUMNS, OFFSETS.len() - 1];
            let mut outputs = lens
                .into_iter()
                .map(|len| gpu.zeroed::<Output>(len))
                .collect::<Result<Vec<_>, _>>()
                .map_err(text)?;
            let recording = gpu
                .record(|| {
                    sum.start(&x, &mut outputs[0])?;
                    mean.start(&x, &mut outputs[1])?;
                    squares.start(&x, &mut outputs[2])?;
                    norm.start(&x, &mut outputs[3])?;
                    dot.start(&x, &x, &mut outputs[4])?;
                    rows.start(&x, &mut outputs[5])?;
                    columns.start(&x, &mut outputs[6])?;
                    segments.start(&x, &offsets, &mut outputs[7])
                })
                .map_err(text)?;
            for round in 0..7 {
                all = extremes_or_ordinary(round, &mut source);
                gpu.copy_array(&gpu.upload(&all).map_err(text)?, &mut x).map_err(text)?;
                recording.start().map_err(text)?;
                let sum_of = |elements: &mut dyn Iterator<Item = $type>| elements.collect::<ExactSum<$type>>();
                let (sum, squares) =
                    (sum_of(&mut all.iter().copied()), all.iter().map(|&x| (x, x)).collect::<ExactDot<$type>>());
                let right: [Vec<Output>; 8] = [
                    vec![sum.value()],
                    vec![sum.mean()],
                    vec![squares.value()],
                    vec![squares.sqrt()],
                    vec![squares.value()],
                    all.chunks(LEN / ROWS).map(|row| sum_of(&mut row.iter().copied()).value()).collect(),
                    (0..COLUMNS)
                        .map(|i| sum_of(&mut all[i..].iter().copied().step_by(COLUMNS)).value())
                        .collect(),
                    OFFSETS
                        .windows(2)
                        .map(|ends| sum_of(&mut all[ends[0] as usize..ends[1] as usize].iter().copied()).value())
                        .collect(),
                ];
                for (which, (output, right)) in outputs.iter().zip(right).enumerate() {
                    for (i, (found, right)) in gpu.download(output).map_err(text)?.into_iter().zip(right).enumerate() {
                        let of = format!("{} {which}.{i} in round {round}", <$type as Exact>::NAME);
                        same(found, right, &of)?;
                    }
                }
            }
            Ok(())
        }
    )*};
}

extremes_in_recordings! {
    extremes_of_f32 f32
    extremes_of_f64 f64
    extremes_of_bf16 bf16
}

//! Exact sums, compared with those of `bitrep` and of `exact_sum` on the host (which has further tests of its own).

use bitrep::SumF64;
use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use warpfold::exact::{ExactDot, ExactSum, Summand};
use warpfold::ops::{Dot, Mean, Norm, Sum, SumInF64, SumOfSquares};
use warpfold::{Element, Error, Gpu, Shape, View};

/// Kinds of data: each is a hard case for some path of the kernels.
#[derive(Clone, Copy, Debug)]
pub enum Data {
    /// One window contains all of it.
    Normal,
    /// All of one sign, so that sums grow.
    Uniform,
    /// The largest exceed the window of the first element, and the smallest are below it.
    Wide,
    /// Any finite bits.
    AnyFinite,
    /// Above all windows.
    Large,
    /// Subnormal numbers.
    Subnormal,
    /// Each magnitude is at least the one before.
    Rising,
    /// The reverse.
    Falling,
    /// The largest cancel completely.
    Cancelling,
    /// One number exceeds all others by far.
    Outlier,
    /// At a midpoint of two results, except for one bit far below.
    NearlyTied,
    /// The largest number and its negation, whose partial sums must not overflow.
    AtTheEdge,
    /// Zeros of both signs.
    Zeros,
    /// Mostly zeros, with a few other numbers, mostly after the first elements, which choose the windows.
    Sparse,
    /// Numbers with NaN.
    Nan,
    /// Infinities of one sign.
    Infinite,
    /// Infinities of both.
    BothInfinities,
}

/// All kinds.
pub const ALL: [Data; 17] = [
    Data::Normal,
    Data::Uniform,
    Data::Wide,
    Data::AnyFinite,
    Data::Large,
    Data::Subnormal,
    Data::Rising,
    Data::Falling,
    Data::Cancelling,
    Data::Outlier,
    Data::NearlyTied,
    Data::AtTheEdge,
    Data::Zeros,
    Data::Sparse,
    Data::Nan,
    Data::Infinite,
    Data::BothInfinities,
];

/// A type whose sums are exact.
pub trait Exact: Element + Summand<Sum: Into<f64> + Element> {
    /// The name in Rust.
    const NAME: &str;
    /// The exponents of the largest and the smallest number in the data.
    const EXPONENTS: (i32, i32);
    /// The number of mantissa bits.
    const DIGITS: i32;
    /// Rounds to the nearest number.
    fn nearest(x: f64) -> Self;
    /// Any number.
    fn any(source: &mut SmallRng) -> Self;
    /// The largest number.
    const GREATEST: f64;
    /// The results of [`RESULTS`] for a whole view.
    fn results(gpu: &Gpu, view: View<'_, Self>) -> Result<[Self::Sum; 4], Error>;
    /// The results of [`RESULTS`] for each row or column.
    fn results_of_each(gpu: &Gpu, view: View<'_, Self>, shape: Shape) -> Result<[Vec<Self::Sum>; 4], Error>;
    /// The dot products of two whole inputs, or of their rows.
    fn dots(gpu: &Gpu, x: View<'_, Self>, y: View<'_, Self>, shape: Shape) -> Result<Vec<Self::Sum>, Error>;
    /// The results of [`RESULTS`] for each segment.
    fn results_of_segments(
        gpu: &Gpu,
        view: View<'_, Self>,
        offsets: View<'_, u64>,
    ) -> Result<[Vec<Self::Sum>; 4], Error>;
}

/// The results that are derived from exact sums.
pub const RESULTS: [&str; 4] = ["sum", "mean", "sum of squares", "norm"];

macro_rules! exact {
    ($($type:ident, $exponents:expr, $digits:literal, $nearest:expr;)*) => {$(
        impl Exact for $type {
            const NAME: &str = stringify!($type);
            const EXPONENTS: (i32, i32) = $exponents;
            const DIGITS: i32 = $digits;
            fn nearest(x: f64) -> Self {
                ($nearest)(x)
            }
            fn any(source: &mut SmallRng) -> Self {
                Self::from_bits(source.random())
            }
            const GREATEST: f64 = (2.0 - 2.0 * power(-$digits)) * power(Self::EXPONENTS.0);
            fn results(gpu: &Gpu, view: View<'_, Self>) -> Result<[Self::Sum; 4], Error> {
                Ok([gpu.sum(view)?, gpu.mean(view)?, gpu.sum_of_squares(view)?, gpu.norm(view)?])
            }
            fn results_of_each(gpu: &Gpu, view: View<'_, Self>, shape: Shape) -> Result<[Vec<Self::Sum>; 4], Error> {
                Ok([
                    gpu.download(&gpu.reduce_to_buffer(Sum, view, shape)?)?,
                    gpu.download(&gpu.reduce_to_buffer(Mean, view, shape)?)?,
                    gpu.download(&gpu.reduce_to_buffer(SumOfSquares, view, shape)?)?,
                    gpu.download(&gpu.reduce_to_buffer(Norm, view, shape)?)?,
                ])
            }
            fn dots(gpu: &Gpu, x: View<'_, Self>, y: View<'_, Self>, shape: Shape) -> Result<Vec<Self::Sum>, Error> {
                gpu.download(&gpu.reduce_pairs(Dot, x, y, shape)?)
            }
            fn results_of_segments(
                gpu: &Gpu,
                view: View<'_, Self>,
                offsets: View<'_, u64>,
            ) -> Result<[Vec<Self::Sum>; 4], Error> {
                Ok([
                    gpu.download(&gpu.reduce_segments(Sum, view, offsets)?)?,
                    gpu.download(&gpu.reduce_segments(Mean, view, offsets)?)?,
                    gpu.download(&gpu.reduce_segments(SumOfSquares, view, offsets)?)?,
                    gpu.download(&gpu.reduce_segments(Norm, view, offsets)?)?,
                ])
            }
        }
    )*};
}

exact! {
    f32, (127, -149), 24, |x| x as f32;
    f64, (1023, -1074), 53, |x| x;
    f16, (15, -24), 11, f16::from_f64;
    bf16, (127, -133), 8, bf16::from_f64;
}

/// `2^exponent`.
pub const fn power(exponent: i32) -> f64 {
    if exponent < -1022 {
        f64::from_bits(1 << (exponent + 1074))
    } else {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    }
}

/// `len` numbers of a kind.
pub fn numbers<T: Exact>(data: Data, len: usize, source: &mut SmallRng) -> Vec<T> {
    let (highest, least) = T::EXPONENTS;
    let bell = |source: &mut SmallRng| (0..6).map(|_| source.random_range(-1.0_f64..1.0)).sum::<f64>();
    let any = |source: &mut SmallRng| loop {
        let x = T::any(source);
        if finite(x) {
            return x;
        }
    };
    let place = source.random_range(0..len.max(1));
    let reach = highest - 7;
    let exponent = |i: usize| (2 * reach as usize * i / len.max(1)) as i32 - reach;
    let sign = |source: &mut SmallRng| if source.random() { 1.0 } else { -1.0 };
    let mut all: Vec<T> = (0..len)
        .map(|i| match data {
            Data::Normal | Data::Cancelling | Data::Outlier | Data::Nan | Data::Infinite | Data::BothInfinities => {
                T::nearest(bell(source))
            }
            Data::Uniform => T::nearest(source.random()),
            Data::Wide => T::nearest(bell(source) * power(source.random_range(-highest / 2..highest / 2))),
            Data::AnyFinite => any(source),
            Data::Large => {
                let mantissa = source.random_range(1.0..2.0 - power(1 - T::DIGITS));
                T::nearest(sign(source) * mantissa * power(source.random_range(highest - 2..=highest)))
            }
            Data::Subnormal => T::nearest(sign(source) * source.random::<f64>() * power(least + T::DIGITS - 1)),
            Data::Rising => T::nearest(bell(source) * power(exponent(i))),
            Data::Falling => T::nearest(bell(source) * power(-exponent(i))),
            Data::NearlyTied => {
                let of_three = [1.0, power(-T::DIGITS), power(-T::DIGITS - highest / 4)];
                T::nearest(of_three.get(i).copied().unwrap_or(0.0))
            }
            Data::AtTheEdge => T::nearest(sign(source) * T::GREATEST),
            Data::Zeros => T::nearest(sign(source) * 0.0),
            Data::Sparse => match source.random_range(0..200) {
                0 => T::nearest(sign(source)),
                1 => any(source),
                _ => T::nearest(0.0),
            },
        })
        .collect();
    if let Data::Cancelling = data {
        let half = len / 2;
        for i in 0..half {
            let opposite = -to_f64(all[i]);
            all[half + i] = T::nearest(opposite * if i == place { 1.0 + power(1 - T::DIGITS) } else { 1.0 });
        }
    }
    let special = match data {
        Data::Outlier => sign(source) * power(highest - 27_i32.min(highest / 2)),
        Data::Nan => f64::NAN,
        Data::Infinite => f64::NEG_INFINITY,
        Data::BothInfinities => f64::INFINITY,
        _ => return all,
    };
    if len > 0 {
        all[place] = T::nearest(special);
        if let Data::BothInfinities = data {
            all[source.random_range(0..len)] = T::nearest(f64::NEG_INFINITY);
        }
    }
    all
}

fn to_f64<T: Exact>(x: T) -> f64 {
    ExactSum::from_iter([x]).rounded()
}

fn finite<T: Exact>(x: T) -> bool {
    to_f64(x).is_finite()
}

/// The expected [`RESULTS`].
fn expected<T: Exact>(elements: impl Iterator<Item = T>) -> [T::Sum; 4] {
    let (mut sum, mut squares) = (ExactSum::new(), ExactDot::new());
    elements.for_each(|x| {
        sum.add(x);
        squares.add(x, x);
    });
    [sum.value(), sum.mean(), squares.value(), squares.root()]
}

/// Checks results of one length for each kind of data and each type, in two orders and at two addresses.
///
/// # Errors
/// If a result is not the exact one, or on an unexpected error.
pub fn check(gpu: &Gpu, len: usize, source: &mut SmallRng) -> Result<(), String> {
    for data in ALL {
        every_way::<f32>(gpu, data, len, source)?;
        every_way::<f64>(gpu, data, len, source)?;
        every_way::<f16>(gpu, data, len, source)?;
        every_way::<bf16>(gpu, data, len, source)?;

        // By another implementation; and the f64 sum of f32.
        let (doubles, singles) = (numbers::<f64>(data, len, source), numbers::<f32>(data, len, source));
        let case = |what: &str| format!("compared with bitrep, the sum of {len} {what} of {data:?}");
        let of_bitrep = |all: &mut dyn Iterator<Item = f64>| {
            let mut sum = SumF64::new();
            all.for_each(|x| sum.add(x));
            // -0.0 becomes 0.0 here.
            sum.value() + 0.0
        };
        let found = gpu.sum(&gpu.upload(&doubles).map_err(text)?).map_err(text)?;
        same(found, of_bitrep(&mut doubles.iter().copied()), &case("f64"))?;
        let found = gpu.reduce(SumInF64, &gpu.upload(&singles).map_err(text)?).map_err(text)?;
        same(found, of_bitrep(&mut singles.iter().map(|&x| x.into())), &case("f32 in f64"))?;
    }
    Ok(())
}

/// An input's results; those of the elements in another order, unaligned; and products with another input.
fn every_way<T: Exact>(gpu: &Gpu, data: Data, len: usize, source: &mut SmallRng) -> Result<(), String> {
    let elements = numbers::<T>(data, len, source);
    let right = expected(elements.iter().copied());
    let mut others = elements.clone();
    others.shuffle(source);
    let offset = source.random_range(1..8);
    let moved: Vec<T> = (0..offset).map(|_| T::default()).chain(others.iter().copied()).collect();
    let (input, moved) = (gpu.upload(&elements).map_err(text)?, gpu.upload(&moved).map_err(text)?);
    let moved = moved.view().slice(offset, len).map_err(text)?;
    for (how, view) in [("", input.view()), (", in another order", moved)] {
        let found = T::results(gpu, view).map_err(text)?;
        for ((what, found), right) in RESULTS.into_iter().zip(found).zip(right) {
            same(found, right, &format!("the {what} of {len} {} of {data:?}{how}", T::NAME))?;
        }
    }
    let with = ALL[source.random_range(0..ALL.len())];
    let further = numbers::<T>(with, len + 3, source);
    let expected = elements.iter().zip(&further[3..]).map(|(&x, &y)| (x, y)).collect::<ExactDot<T>>();
    let case = format!("the dot product of {len} {} of {data:?} and {with:?}", T::NAME);
    let further = gpu.upload(&further).map_err(text)?;
    let dot = |x, y| T::dots(gpu, x, y, Shape::all(len)).map(|dots| dots[0]).map_err(text);
    same(dot(input.view(), further.view().slice(3, len).map_err(text)?)?, expected.value(), &case)?;
    let of_others = others.iter().zip(&elements).map(|(&x, &y)| (x, y)).collect::<ExactDot<T>>();
    same(dot(moved, input.view())?, of_others.value(), &format!("{case}, moved"))
}

/// Compares a result with the expected one, bit by bit. All NaN count as equal.
///
/// # Errors
/// If they differ, with both and what the result is of.
pub fn same<R: Into<f64>>(found: R, expected: R, what: &str) -> Result<(), String> {
    let (found, expected) = (found.into(), expected.into());
    let is_same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
    if is_same { Ok(()) } else { Err(format!("{what} is {found:e}, and {expected:e} is right")) }
}

/// An error's message.
pub fn text(error: Error) -> String {
    error.to_string()
}

/// Checks that extreme values, each in another block with ordinary data in between, leave the workspace clean.
///
/// # Errors
/// As for [`check`].
pub fn workspaces_are_left_clean(gpu: &Gpu) -> Result<(), String> {
    left_clean::<f32>(gpu)?;
    left_clean::<f64>(gpu)
}

fn left_clean<T: Exact>(gpu: &Gpu) -> Result<(), String> {
    const LEN: usize = 100_000;
    let mut source = SmallRng::seed_from_u64(7);
    let (highest, least) = T::EXPONENTS;
    let extremes = [power(highest), -power(highest), 1.0, power(-T::DIGITS), power(least), f64::INFINITY];
    for round in 0..20 {
        let mut all: Vec<T> =
            if round % 2 == 0 { vec![T::default(); LEN] } else { numbers(Data::Normal, LEN, &mut source) };
        if round % 2 == 0 {
            let few = if round % 4 == 0 { 5 } else { 6 };
            let distance = LEN / extremes.len();
            extremes[..few]
                .iter()
                .enumerate()
                .for_each(|(i, &x)| all[i * distance + source.random_range(0..distance)] = T::nearest(x));
        }
        let right = expected(all.iter().copied());
        let found = T::results(gpu, gpu.upload(&all).map_err(text)?.view()).map_err(text)?;
        for ((what, found), right) in RESULTS.into_iter().zip(found).zip(right) {
            same(found, right, &format!("the {what} of {} in round {round}", T::NAME))?;
        }
    }
    Ok(())
}

/// Checks results of the rows and the columns of one array, each row with another kind of data.
///
/// # Errors
/// As for [`check`].
pub fn rows_and_columns(gpu: &Gpu, rows: usize, len: usize, source: &mut SmallRng) -> Result<(), String> {
    rows_and_columns_of::<f32>(gpu, rows, len, source)?;
    rows_and_columns_of::<f64>(gpu, rows, len, source)?;
    rows_and_columns_of::<f16>(gpu, rows, len, source)?;
    rows_and_columns_of::<bf16>(gpu, rows, len, source)
}

fn rows_and_columns_of<T: Exact>(gpu: &Gpu, rows: usize, len: usize, source: &mut SmallRng) -> Result<(), String> {
    let pitch = len + if source.random() { source.random_range(0..9) } else { 0 };
    let offset = if source.random() { source.random_range(0..9) } else { 0 };
    let mut all = vec![T::nearest(f64::NAN); offset + rows * pitch];
    for row in 0..rows {
        let of_row = numbers(ALL[source.random_range(0..ALL.len())], len, source);
        all[offset + row * pitch..][..len].copy_from_slice(&of_row);
    }
    let input = gpu.upload(&all).map_err(text)?;
    let view = input.view().slice(offset, rows * pitch).map_err(text)?;
    for (what, shape, first, distance) in
        [("row", Shape::rows(rows, len), pitch, 1), ("column", Shape::columns(rows, len), 1, pitch)]
    {
        let shape = shape.with_pitch(pitch).map_err(text)?;
        let elements = |i: usize| (0..shape.elements_each()).map(move |k| offset + i * first + k * distance);
        let found = T::results_of_each(gpu, view, shape).map_err(text)?;
        for (which, found) in RESULTS.into_iter().zip(&found) {
            if found.len() != shape.outputs() {
                return Err(format!("{} {which}s of {} {what}s", found.len(), shape.outputs()));
            }
        }
        for i in 0..shape.outputs() {
            let right = expected(elements(i).map(|place| all[place]));
            for ((which, found), right) in RESULTS.into_iter().zip(&found).zip(right) {
                let (name, found) = (T::NAME, found[i]);
                let case = || format!("{name} {what} {i} of {rows} x {len}, {pitch} apart, {offset} in");
                same(found, right, &format!("the {which} of {}", case()))?;
            }
        }
        if what == "row" {
            let dots = T::dots(gpu, view, view, shape).map_err(text)?;
            for (i, &dot) in dots.iter().enumerate() {
                same(dot, found[2][i], &format!("the dot product of row {i} of {rows} x {len} with itself"))?;
            }
        }
    }
    Ok(())
}

/// Checks results of the columns of some matrices, each column with one kind of data, most of them ordinary.
///
/// # Errors
/// As for [`check`].
pub fn columns(gpu: &Gpu, batches: usize, rows: usize, columns: usize, source: &mut SmallRng) -> Result<(), String> {
    columns_of::<f32>(gpu, batches, rows, columns, source)?;
    columns_of::<f64>(gpu, batches, rows, columns, source)?;
    columns_of::<f16>(gpu, batches, rows, columns, source)?;
    columns_of::<bf16>(gpu, batches, rows, columns, source)
}

fn columns_of<T: Exact>(
    gpu: &Gpu,
    batches: usize,
    rows: usize,
    columns: usize,
    source: &mut SmallRng,
) -> Result<(), String> {
    let is_close = source.random();
    let pitch = columns + if is_close || batches > 1 { 0 } else { source.random_range(0..9) };
    let offset = if is_close { 0 } else { source.random_range(0..9) };
    let mut all = vec![T::nearest(f64::NAN); offset + batches * rows * pitch];
    for (batch, column) in (0..batches).flat_map(|batch| (0..columns).map(move |column| (batch, column))) {
        let data = if source.random_range(0..3) > 0 { Data::Normal } else { ALL[source.random_range(0..ALL.len())] };
        for (row, x) in numbers(data, rows, source).into_iter().enumerate() {
            all[offset + (batch * rows + row) * pitch + column] = x;
        }
    }
    let input = gpu.upload(&all).map_err(text)?;
    let view = input.view().slice(offset, batches * rows * pitch).map_err(text)?;
    let shape = if batches == 1 {
        Shape::columns(rows, columns).with_pitch(pitch)
    } else {
        Shape::axis(&[batches, rows, columns], 1)
    };
    let found = T::results_of_each(gpu, view, shape.map_err(text)?).map_err(text)?;
    for i in 0..batches * columns {
        let (batch, column) = (i / columns, i % columns);
        let elements = (0..rows).map(|row| all[offset + (batch * rows + row) * pitch + column]);
        for ((which, found), right) in RESULTS.into_iter().zip(&found).zip(expected(elements)) {
            let of = format!("{batches} x {rows} x {columns}, {pitch} apart, {offset} in");
            same(found[i], right, &format!("the {which} of {} column {column} in matrix {batch} of {of}", T::NAME))?;
        }
    }
    Ok(())
}

/// The lengths of segments for a type, given the number of elements of a vector.
pub type Lengths<'a> = &'a dyn Fn(usize, &mut SmallRng) -> Vec<usize>;

/// Checks results of segments, each with one of several kinds of data, with elements before the first and after the
/// last segment; and of some of them alone.
///
/// # Errors
/// As for [`check`].
pub fn segments(gpu: &Gpu, lengths: Lengths<'_>, kinds: &[Data], source: &mut SmallRng) -> Result<(), String> {
    segments_of::<f32>(gpu, lengths, kinds, source)?;
    segments_of::<f64>(gpu, lengths, kinds, source)?;
    segments_of::<f16>(gpu, lengths, kinds, source)?;
    segments_of::<bf16>(gpu, lengths, kinds, source)?;

    // The f64 sums of f32.
    let (all, offsets) = data_of_segments::<f32>(lengths, kinds, source);
    let (input, of_device) = (gpu.upload(&all).map_err(text)?, gpu.upload(&offsets).map_err(text)?);
    let found = gpu.reduce_segments(SumInF64, &input, &of_device).and_then(|sums| gpu.download(&sums)).map_err(text)?;
    for (i, (ends, found)) in offsets.windows(2).zip(found).enumerate() {
        let right: ExactSum<f64> = all[ends[0] as usize..ends[1] as usize].iter().map(|&x| f64::from(x)).collect();
        same(found, right.value(), &format!("the sum of f32 in f64 of segment {i}, {} to {}", ends[0], ends[1]))?;
    }
    Ok(())
}

/// The elements and the offsets of these segments.
fn data_of_segments<T: Exact>(lengths: Lengths<'_>, kinds: &[Data], source: &mut SmallRng) -> (Vec<T>, Vec<u64>) {
    let mut all = vec![T::nearest(f64::NAN); source.random_range(0..9)];
    let mut offsets = vec![all.len() as u64];
    for len in lengths(16 / size_of::<T>(), source) {
        all.extend(numbers::<T>(kinds[source.random_range(0..kinds.len())], len, source));
        offsets.push(all.len() as u64);
    }
    all.extend((0..source.random_range(0..9)).map(|_| T::nearest(f64::NAN)));
    (all, offsets)
}

fn segments_of<T: Exact>(gpu: &Gpu, lengths: Lengths<'_>, kinds: &[Data], source: &mut SmallRng) -> Result<(), String> {
    let (all, offsets) = data_of_segments::<T>(lengths, kinds, source);
    let of_device = gpu.upload(&offsets).map_err(text)?;
    // In a view that begins anywhere.
    let before = source.random_range(0..9);
    let moved: Vec<T> = (0..before).map(|_| T::nearest(f64::NAN)).chain(all.iter().copied()).collect();
    let moved = gpu.upload(&moved).map_err(text)?;
    let view = moved.view().slice(before, all.len()).map_err(text)?;
    let found = T::results_of_segments(gpu, view, of_device.view()).map_err(text)?;
    let segments = offsets.len() - 1;
    for (which, found) in RESULTS.into_iter().zip(&found) {
        if found.len() != segments {
            return Err(format!("{} {which}s of {segments} segments", found.len()));
        }
    }
    for i in 0..segments {
        let (begin, end) = (offsets[i] as usize, offsets[i + 1] as usize);
        let case = format!("{} segment {i}, {begin} to {end} of {}, {before} in, of {kinds:?}", T::NAME, all.len());
        let right = expected(all[begin..end].iter().copied());
        for ((which, found), right) in RESULTS.into_iter().zip(&found).zip(right) {
            same(found[i], right, &format!("the {which} of {case}"))?;
        }
        if source.random_range(0..segments) < 3 {
            let alone = T::results(gpu, view.slice(begin, end - begin).map_err(text)?).map_err(text)?;
            for ((which, found), alone) in RESULTS.into_iter().zip(&found).zip(alone) {
                same(found[i], alone, &format!("compared with its elements alone, the {which} of {case}"))?;
            }
        }
    }
    Ok(())
}

/// Checks that long segments with extreme values, each in another chunk, between short ones, leave the workspace clean.
///
/// # Errors
/// As for [`check`].
pub fn segments_leave_workspaces_clean(gpu: &Gpu) -> Result<(), String> {
    long_segments_of::<f32>(gpu)?;
    long_segments_of::<f64>(gpu)
}

fn long_segments_of<T: Exact>(gpu: &Gpu) -> Result<(), String> {
    let mut source = SmallRng::seed_from_u64(8);
    let (highest, least) = T::EXPONENTS;
    let extremes = [power(highest), -power(highest), 1.0, power(-T::DIGITS), power(least), f64::NEG_INFINITY];
    // At least two chunks, and five.
    let vector = 16 / size_of::<T>();
    let lens = [5120 * vector + 3, 100, 17_000 * vector, 0, 5200 * vector];
    for round in 0..6 {
        let (mut all, mut offsets) = (Vec::<T>::new(), vec![0]);
        for len in lens {
            let begin = all.len();
            all.resize(begin + len, T::default());
            let few = if round % 2 == 0 { 5 } else { 6 };
            if len > 0 {
                let distance = len / extremes.len();
                for (i, &x) in extremes[..few].iter().enumerate() {
                    all[begin + i * distance + source.random_range(0..distance)] = T::nearest(x);
                }
            }
            offsets.push(all.len() as u64);
        }
        let (input, of_device) = (gpu.upload(&all).map_err(text)?, gpu.upload(&offsets).map_err(text)?);
        let found = T::results_of_segments(gpu, input.view(), of_device.view()).map_err(text)?;
        for (i, ends) in offsets.windows(2).enumerate() {
            let right = expected(all[ends[0] as usize..ends[1] as usize].iter().copied());
            for ((which, found), right) in RESULTS.into_iter().zip(&found).zip(right) {
                same(found[i], right, &format!("the {which} of {} segment {i} in round {round}", T::NAME))?;
            }
        }
    }
    Ok(())
}

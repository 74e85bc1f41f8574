//! Exact sums, beside those of `bitrep` and of `exact_sum` on the host (which has its own tests beside further ones).

use bitrep::SumF64;
use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use warpfold::exact::{ExactSum, Summand};
use warpfold::{ExactElement, Gpu, Shape};

/// Kinds of data: each is the hard case of some way through the kernels.
#[derive(Clone, Copy, Debug)]
pub enum Data {
    /// One window has all of it.
    Normal,
    /// All of one sign, so that sums grow.
    Uniform,
    /// The largest are beyond the window of the first, and the least below it.
    Wide,
    /// Any bits that are finite.
    AnyFinite,
    /// Above all windows.
    Large,
    /// Below the least normal number.
    Subnormal,
    /// Each magnitude is larger, or less, than the one before.
    Rising,
    /// The reverse.
    Falling,
    /// Nothing is left of the largest.
    Cancelling,
    /// One number is beyond all others.
    Outlier,
    /// Halfway between two results, but for one bit far below.
    NearlyTied,
    /// The greatest number and its opposite, of which sums may not be infinite on the way.
    AtTheEdge,
    /// Zeros of both signs.
    Zeros,
    /// NaN among numbers.
    Nan,
    /// Infinities of one sign.
    Infinite,
    /// Infinities of both.
    BothInfinities,
}

/// All kinds.
pub const ALL: [Data; 16] = [
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
    Data::Nan,
    Data::Infinite,
    Data::BothInfinities,
];

/// `len` numbers of a kind.
pub fn numbers(data: Data, len: usize, source: &mut SmallRng) -> Vec<f32> {
    let bell = |source: &mut SmallRng| (0..6).map(|_| source.random_range(-1.0_f32..1.0)).sum::<f32>();
    let any = |source: &mut SmallRng| loop {
        let x = f32::from_bits(source.random());
        if x.is_finite() {
            return x;
        }
    };
    let place = source.random_range(0..len.max(1));
    let exponent = |i: usize| (240 * i / len.max(1)) as i32 - 120;
    let sign = |source: &mut SmallRng| if source.random() { 1.0 } else { -1.0 };
    let mut all: Vec<f32> = (0..len)
        .map(|i| match data {
            Data::Normal | Data::Cancelling | Data::Outlier | Data::Nan | Data::Infinite | Data::BothInfinities => {
                bell(source)
            }
            Data::Uniform => source.random(),
            Data::Wide => bell(source) * 2_f32.powi(source.random_range(-60..60)),
            Data::AnyFinite => any(source),
            Data::Large => sign(source) * source.random_range(1.0..2.0) * 2_f32.powi(source.random_range(125..128)),
            Data::Subnormal => f32::from_bits(source.random::<u32>() & 0x807f_ffff),
            Data::Rising => bell(source) * 2_f32.powi(exponent(i)),
            Data::Falling => bell(source) * 2_f32.powi(-exponent(i)),
            Data::NearlyTied => [1.0, 2_f32.powi(-24), 2_f32.powi(-60)].get(i).copied().unwrap_or(0.0),
            Data::AtTheEdge => sign(source) * f32::MAX,
            Data::Zeros => sign(source) * 0.0,
        })
        .collect();
    if let Data::Cancelling = data {
        let half = len / 2;
        for i in 0..half {
            all[half + i] = -all[i] * if i == place { 1.0 + f32::EPSILON } else { 1.0 };
        }
    }
    let special = match data {
        Data::Outlier => sign(source) * 1e30,
        Data::Nan => f32::NAN,
        Data::Infinite => f32::NEG_INFINITY,
        Data::BothInfinities => f32::INFINITY,
        _ => return all,
    };
    if len > 0 {
        all[place] = special;
        if let Data::BothInfinities = data {
            all[source.random_range(0..len)] = f32::NEG_INFINITY;
        }
    }
    all
}

/// Sums and means of one length of each kind of data, of each type, in two orders and at two places.
///
/// # Errors
/// A result is not the exact one, or an error that should not be.
pub fn check(gpu: &Gpu, len: usize, source: &mut SmallRng) -> Result<(), String> {
    for data in ALL {
        let numbers = numbers(data, len, source);
        let f16s: Vec<f16> = numbers.iter().map(|&x| f16::from_f32(x)).collect();
        let bf16s: Vec<bf16> = numbers.iter().map(|&x| bf16::from_f32(x)).collect();
        let case = |what: &str| format!("{what} of {len} of {data:?}");
        let sum = every_way(gpu, &numbers, source, &case("f32"))?;
        every_way(gpu, &f16s, source, &case("f16"))?;
        every_way(gpu, &bf16s, source, &case("bf16"))?;

        // Rounded to f64 and then to f32 it is the same, unless the first is in the middle between two of the second.
        let mut of_bitrep = SumF64::new();
        numbers.iter().for_each(|&x| of_bitrep.add(f64::from(x)));
        let of_bitrep = of_bitrep.value();
        let is_middle = of_bitrep.to_bits().trailing_zeros() >= 28 && of_bitrep != 0.0;
        if !is_middle && !is_tiny(of_bitrep) {
            same(sum, of_bitrep as f32, &case("beside bitrep the sum"))?;
        }
    }
    Ok(())
}

/// Whether it is below the normal numbers of `f32`, whose middles are elsewhere.
fn is_tiny(x: f64) -> bool {
    x != 0.0 && x.abs() < f64::from(f32::MIN_POSITIVE)
}

/// An input's sum and mean, then those of the elements in another order, not aligned. Gives the sum.
fn every_way<T>(gpu: &Gpu, elements: &[T], source: &mut SmallRng, case: &str) -> Result<f32, String>
where
    T: ExactElement + Summand<Sum = f32>,
{
    let mut exact = ExactSum::new();
    elements.iter().for_each(|&x| exact.add(x));
    let (sum, mean) = (exact.value(), exact.mean::<f32>());
    let input = gpu.upload(elements).map_err(text)?;
    same(gpu.exact_sum(&input).map_err(text)?, sum, &format!("the sum of {case}"))?;
    same(gpu.exact_mean(&input).map_err(text)?, mean, &format!("the mean of {case}"))?;

    let mut others = elements.to_vec();
    others.shuffle(source);
    let offset = source.random_range(1..8);
    let moved: Vec<T> = (0..offset).map(|_| T::default()).chain(others).collect();
    let input = gpu.upload(&moved).map_err(text)?;
    let view = || input.view().slice(offset, elements.len()).map_err(text);
    let moved = "in another order";
    same(gpu.exact_sum(view()?).map_err(text)?, sum, &format!("{moved} the sum of {case}"))?;
    same(gpu.exact_mean(view()?).map_err(text)?, mean, &format!("{moved} the mean of {case}"))?;
    Ok(sum)
}

fn same(found: f32, expected: f32, what: &str) -> Result<(), String> {
    let is_same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
    if is_same { Ok(()) } else { Err(format!("{what} is {found:e}, and {expected:e} is right")) }
}

fn text(error: warpfold::Error) -> String {
    error.to_string()
}

/// Extremes each in another block, with ordinary data in between: what blocks leave for each other is clean afterwards.
///
/// # Errors
/// As [`check`].
pub fn workspaces_are_left_clean(gpu: &Gpu) -> Result<(), String> {
    const LEN: usize = 100_000;
    let mut source = SmallRng::seed_from_u64(7);
    let extremes = [2_f32.powi(127), -2_f32.powi(127), 1.0, 2_f32.powi(-24), f32::from_bits(1), f32::INFINITY];
    for round in 0..20 {
        let mut all = if round % 2 == 0 { vec![0.0; LEN] } else { numbers(Data::Normal, LEN, &mut source) };
        if round % 2 == 0 {
            let few = if round % 4 == 0 { 5 } else { 6 };
            let distance = LEN / extremes.len();
            extremes[..few]
                .iter()
                .enumerate()
                .for_each(|(i, &x)| all[i * distance + source.random_range(0..distance)] = x);
        }
        let mut exact = ExactSum::new();
        all.iter().for_each(|&x| exact.add(x));
        let found = gpu.exact_sum(&gpu.upload(&all).map_err(text)?).map_err(text)?;
        same(found, exact.value(), &format!("round {round}"))?;
    }
    Ok(())
}

/// Sums and means of the rows and the columns of one array, each row of another kind of data.
///
/// # Errors
/// As [`check`].
pub fn rows_and_columns(gpu: &Gpu, rows: usize, len: usize, source: &mut SmallRng) -> Result<(), String> {
    let pitch = len + if source.random() { source.random_range(0..9) } else { 0 };
    let offset = if source.random() { source.random_range(0..9) } else { 0 };
    let mut all = vec![f32::NAN; offset + rows * pitch];
    for row in 0..rows {
        let of_row = numbers(ALL[source.random_range(0..ALL.len())], len, source);
        all[offset + row * pitch..][..len].copy_from_slice(&of_row);
    }
    let case = format!("{rows} x {len}, {pitch} apart, {offset} in");
    let (rows_of, columns_of) = (Shape::rows(rows, len), Shape::columns(rows, len));
    let pitched = |shape: Shape| shape.with_pitch(pitch).map_err(text);
    let shapes = [("row", pitched(rows_of)?), ("column", pitched(columns_of)?)];
    let f16s: Vec<f16> = all.iter().map(|&x| f16::from_f32(x)).collect();
    let bf16s: Vec<bf16> = all.iter().map(|&x| bf16::from_f32(x)).collect();
    for (what, shape) in shapes {
        let places = |i: usize| {
            let is_row = what == "row";
            let (first, distance) = if is_row { (i * pitch, 1) } else { (i, pitch) };
            (0..shape.elements_each()).map(move |k| offset + first + k * distance)
        };
        each_output(gpu, &all, offset, shape, places, &format!("f32 {what} of {case}"))?;
        each_output(gpu, &f16s, offset, shape, places, &format!("f16 {what} of {case}"))?;
        each_output(gpu, &bf16s, offset, shape, places, &format!("bf16 {what} of {case}"))?;
    }
    Ok(())
}

/// All outputs of a shape of what is behind `offset`, each of the elements at these places.
fn each_output<T, I>(
    gpu: &Gpu,
    elements: &[T],
    offset: usize,
    shape: Shape,
    places: impl Fn(usize) -> I,
    case: &str,
) -> Result<(), String>
where
    T: ExactElement + Summand<Sum = f32>,
    I: Iterator<Item = usize>,
{
    let input = gpu.upload(elements).map_err(text)?;
    let view = || input.view().slice(offset, elements.len() - offset).map_err(text);
    let download = |buffer| gpu.download(&buffer).map_err(text);
    let sums = download(gpu.exact_sums(view()?, shape).map_err(text)?)?;
    let means = download(gpu.exact_means(view()?, shape).map_err(text)?)?;
    if (sums.len(), means.len()) != (shape.outputs(), shape.outputs()) {
        return Err(format!("{} sums and {} means of {case}", sums.len(), means.len()));
    }
    for i in 0..shape.outputs() {
        let mut exact = ExactSum::new();
        places(i).for_each(|place| exact.add(elements[place]));
        same(sums[i], exact.value(), &format!("the sum of {i} {case}"))?;
        same(means[i], exact.mean::<f32>(), &format!("the mean of {i} {case}"))?;
    }
    Ok(())
}

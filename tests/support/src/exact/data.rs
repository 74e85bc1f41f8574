//! Types whose sums are exact, and data that are hard to sum.

use crate::by_shape::ByShape;
use crate::shape::Shape;
use half::{bf16, f16};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::index::sample;
use warpfold::exact::Summand;
use warpfold::ops::{Dot, Mean, Norm, Sum, SumOfSquares};
use warpfold::{Element, Error, Gpu, View};

/// Kinds of data: each is a hard case for some path of the kernels.
#[derive(Clone, Copy, Debug)]
pub enum Data {
    /// All in one window.
    Normal,
    /// All of one sign, so that sums grow.
    Uniform,
    /// The largest exceed the window of the first element, and the smallest are below it.
    Wide,
    /// Any finite bits.
    AnyFinite,
    /// Above all windows.
    Large,
    /// Subnormal numbers, of any of their exponents.
    Subnormal,
    /// One or two of the smallest number among zeros.
    Least,
    /// Subnormal numbers, and 1.
    SubnormalsBesideOne,
    /// With rising exponents, from the lowest to the highest.
    Rising,
    /// With falling exponents, from the highest to the lowest.
    Falling,
    /// The second half cancels the first, except for one element.
    Cancelling,
    /// One number is much larger than all others.
    Outlier,
    /// At a midpoint of two results, except for one bit far below.
    NearlyTied,
    /// At a midpoint of two results, except for the smallest number.
    TiedButForLeast,
    /// The largest number and its negation, whose partial sums must not overflow.
    AtTheEdge,
    /// The largest number alone, whose sums overflow.
    Greatest,
    /// Zeros of both signs.
    Zeros,
    /// Mostly zeros, with a few other numbers, mostly after the first elements, which choose the windows.
    Sparse,
    /// Numbers with NaN.
    Nan,
    /// Infinities of one sign.
    Infinite,
    /// Infinities of both signs.
    BothInfinities,
}

/// All kinds.
pub const ALL: [Data; 21] = [
    Data::Normal,
    Data::Uniform,
    Data::Wide,
    Data::AnyFinite,
    Data::Large,
    Data::Subnormal,
    Data::Least,
    Data::SubnormalsBesideOne,
    Data::Rising,
    Data::Falling,
    Data::Cancelling,
    Data::Outlier,
    Data::NearlyTied,
    Data::TiedButForLeast,
    Data::AtTheEdge,
    Data::Greatest,
    Data::Zeros,
    Data::Sparse,
    Data::Nan,
    Data::Infinite,
    Data::BothInfinities,
];

/// A type whose sums are exact.
pub trait Exact: Element + Into<f64> + Summand<Sum: Into<f64> + Element> {
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
                Ok([gpu.sum(view)?, gpu.mean(view)?, gpu.reduce_all(SumOfSquares, view)?, gpu.norm(view)?])
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
        if x.into().is_finite() {
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
            Data::Subnormal | Data::SubnormalsBesideOne => {
                let exponent = least + source.random_range(0..T::DIGITS - 1);
                T::nearest(sign(source) * source.random_range(1.0..2.0) * power(exponent))
            }
            Data::Rising => T::nearest(bell(source) * power(exponent(i))),
            Data::Falling => T::nearest(bell(source) * power(-exponent(i))),
            Data::NearlyTied => {
                let of_three = [1.0, power(-T::DIGITS), power(-T::DIGITS - highest / 4)];
                T::nearest(of_three.get(i).copied().unwrap_or(0.0))
            }
            Data::AtTheEdge => T::nearest(sign(source) * T::GREATEST),
            Data::Greatest => T::nearest(T::GREATEST),
            Data::Zeros | Data::Least | Data::TiedButForLeast => T::nearest(sign(source) * 0.0),
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
            let opposite = -all[i].into();
            all[half + i] = T::nearest(opposite * if i == place { 1.0 + power(1 - T::DIGITS) } else { 1.0 });
        }
    }
    if let Data::TiedButForLeast = data {
        // Half of the last place of 1, in the type of the elements or that of sums.
        let of_sums = if size_of::<T::Sum>() == size_of::<f64>() { 53 } else { 24 };
        let half = power(if source.random() { -T::DIGITS } else { -of_sums });
        let terms = [sign(source) * power(least), half, 1.0];
        for (i, x) in sample(source, len, terms.len().min(len)).into_iter().zip(terms) {
            all[i] = T::nearest(x);
        }
    }
    let special = match data {
        Data::Outlier => sign(source) * power(highest - 27_i32.min(highest / 2)),
        Data::Least => power(least),
        Data::SubnormalsBesideOne => sign(source),
        Data::Nan => f64::NAN,
        Data::Infinite => f64::NEG_INFINITY,
        Data::BothInfinities => f64::INFINITY,
        _ => return all,
    };
    if len > 0 {
        all[place] = T::nearest(special);
        if let Data::BothInfinities | Data::Least = data {
            let second = if let Data::Least = data { special } else { f64::NEG_INFINITY };
            all[source.random_range(0..len)] = T::nearest(second);
        }
    }
    all
}

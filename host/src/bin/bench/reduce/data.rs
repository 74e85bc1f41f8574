//! What is reduced, and what the CPU makes of it.

use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;

use super::cases::{Axis, Data, Extent, Operator};
use crate::memory;

/// A number of small whole value, which every type has.
pub trait Small: Copy + Sync {
    /// From 0 to 19.
    fn from_small(value: u8) -> Self;
    /// Of a float, any that the type has.
    fn from_f64(value: f64) -> Option<Self>;
    /// Exact.
    fn to_f64(self) -> f64;
    /// The lowest bits of an integer, as this type has them.
    fn wrapped(bits: u64) -> f64;
    /// An integer of 64 bits, with a sign where this type has one.
    fn wide(bits: u64) -> f64;
    /// Half the distance from 1 to the next in the type that sums are made in; 0 of integers.
    const ROUNDING: f64;
}

macro_rules! floats {
    ($($type:ident, $rounding:expr, $from_small:expr, $from:expr;)*) => {$(
        impl Small for $type {
            const ROUNDING: f64 = $rounding;
            fn from_small(value: u8) -> Self {
                ($from_small)(value)
            }
            fn from_f64(value: f64) -> Option<Self> {
                Some(($from)(value))
            }
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn wrapped(_: u64) -> f64 {
                f64::NAN
            }
            fn wide(_: u64) -> f64 {
                f64::NAN
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ident $wide:ident;)*) => {$(
        impl Small for $type {
            const ROUNDING: f64 = 0.0;
            fn from_small(value: u8) -> Self {
                value as Self
            }
            fn from_f64(_: f64) -> Option<Self> {
                None
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn wrapped(bits: u64) -> f64 {
                bits as Self as f64
            }
            fn wide(bits: u64) -> f64 {
                bits as $wide as f64
            }
        }
    )*};
}

const F32: f64 = f32::EPSILON as f64 / 2.0;

floats! {
    f16, F32, |value: u8| f16::from_f32(value.into()), f16::from_f64;
    bf16, F32, |value: u8| bf16::from_f32(value.into()), bf16::from_f64;
    f32, F32, f32::from, |value| value as f32;
    f64, f64::EPSILON / 2.0, f64::from, |value| value;
}

integers! { i8 i64; u8 u64; i16 i64; u16 u64; i32 i64; u32 u64; i64 i64; u64 u64; }

/// `len` numbers, random within a period, after `offset` others of 19.
///
/// Whole ones are from 1 to 16, with one 0 and one 17 late among them, so that a kernel that leaves out a part of the
/// input does not find the extremes. Factors are odd, or of floats 1 and -1 and a few times 2: no product on the way
/// rounds, and none hides the next. Of special ones a quarter is infinite, and an eighth NaN.
pub fn numbers<T: Small>(data: Data, offset: usize, len: usize) -> anyhow::Result<Vec<T>> {
    const PERIOD: usize = 1 << 16;
    const TWOS: usize = 6;
    let mut source = SmallRng::from_os_rng();
    let mut all: Vec<T> = memory::list(offset + len)?;
    all.resize(offset, T::from_small(19));
    let mut number = || {
        let whole = T::from_small(source.random_range(1..=16));
        let float = match (data, source.random_range(0..8)) {
            (Data::Whole, _) => return whole,
            (Data::Factors, sign) => T::from_f64(if sign < 4 { 1.0 } else { -1.0 }),
            (Data::Special, 0) => T::from_f64(f64::NAN),
            (Data::Special, 1) => T::from_f64(f64::INFINITY),
            (Data::Special, 2) => T::from_f64(f64::NEG_INFINITY),
            (Data::Special, _) => return whole,
        };
        float.unwrap_or_else(|| T::from_small(2 * source.random_range(0..8) + 1))
    };
    all.extend((0..len.min(PERIOD)).map(|_| number()));
    while all.len() < offset + len {
        let more = (all.len() - offset).min(offset + len - all.len());
        all.extend_from_within(offset..offset + more);
    }
    let numbers = &mut all[offset..];
    match data {
        Data::Whole if len > 1 => {
            let places = len / 8;
            numbers[len - 1 - source.random_range(0..=places / 2)] = T::from_small(0);
            let other = len - 1 - places / 2 - 1;
            numbers[other.min(len - 2)] = T::from_small(17);
        }
        Data::Factors if len > 0 => {
            for _ in 0..TWOS {
                let two = T::from_f64(2.0);
                two.into_iter().for_each(|two| numbers[source.random_range(0..len)] = two);
            }
        }
        _ => {}
    }
    Ok(all)
}

/// What a result should be, and how far it may be off.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub value: f64,
    pub bound: f64,
}

/// The offsets of as many segments as the extent has rows, whose lengths follow a power law: few have most of the
/// elements, most have few, and each has one. So are the degrees of a social graph (Barabasi and Albert, "Emergence of
/// Scaling in Random Networks", Science 286, 1999).
pub fn skewed_offsets(extent: &Extent) -> anyhow::Result<Vec<u64>> {
    const EXPONENT: f64 = 1.2;
    let mut source = SmallRng::seed_from_u64(20);
    let mut weights: Vec<f64> = memory::list(extent.rows)?;
    weights.extend((0..extent.rows).map(|_| (1.0 - source.random::<f64>()).powf(-1.0 / EXPONENT)));
    let total: f64 = weights.iter().sum();
    let spare = (extent.elements() - extent.rows) as f64;
    let mut offsets = memory::list(extent.rows + 1)?;
    offsets.push(0);
    let mut before = 0.0;
    for (i, weight) in weights.iter().enumerate() {
        before += weight;
        offsets.push(i as u64 + 1 + (before / total * spare) as u64);
    }
    // Rounding may have left one out.
    offsets[extent.rows] = extent.elements() as u64;
    Ok(offsets)
}

/// Bytes on the host: of the numbers, of segments' offsets and the weights that they come from, and of what is made of
/// the numbers for each result.
pub fn bytes_on_host<T>(extent: &Extent, offset: usize) -> u128 {
    let input = (offset as u128 + extent.elements() as u128) * size_of::<T>() as u128;
    let (results, threads) = (extent.results() as u128, rayon::current_num_threads() as u128);
    let (offsets, tallies) = match extent.axis {
        Axis::All => (0, extent.elements().div_ceil(EACH) as u128),
        Axis::Rows => (0, results),
        Axis::Skewed => (2 * size_of::<u64>() as u128 * (results + 1), results),
        Axis::Columns => (0, results * if extent.columns > COLUMNS_EACH { 2 } else { threads + 1 }),
    };
    // A result is 16 bytes at most.
    input + offsets + tallies * size_of::<Tally>() as u128 + results * (size_of::<Expected>() as u128 + 16)
}

/// The dot product of two inputs.
pub fn expected_dot<T: Small>(a: &[T], b: &[T]) -> anyhow::Result<Expected> {
    // Whole numbers far below 2^53: exact in any order.
    let of_part = |part: usize| -> f64 {
        let range = part * EACH..((part + 1) * EACH).min(a.len());
        a[range.clone()].iter().zip(&b[range]).map(|(a, b)| a.to_f64() * b.to_f64()).sum()
    };
    let value = in_parallel(a.len().div_ceil(EACH), &of_part)?.into_iter().sum();
    let bound = if T::ROUNDING == 0.0 { 0.0 } else { 8.0 * T::ROUNDING.max(f64::EPSILON) * value };
    Ok(Expected { value, bound })
}

/// What each result should be; `offsets` are those of segments.
pub fn expected<T: Small>(
    operator: Operator,
    extent: &Extent,
    offsets: &[u64],
    numbers: &[T],
) -> anyhow::Result<Vec<Expected>> {
    let Extent { rows, columns, axis } = *extent;
    let data = operator.data();
    let tallies = match axis {
        Axis::All => vec![tally(data, numbers)?],
        Axis::Rows => in_parallel(rows, &|row| tally_of(data, 0, &numbers[row * columns..][..columns]))?,
        Axis::Skewed => {
            let segment = |i: usize| offsets[i] as usize..offsets[i + 1] as usize;
            in_parallel(offsets.len().saturating_sub(1), &|i| tally_of(data, 0, &numbers[segment(i)]))?
        }
        Axis::Columns => tally_columns(data, columns, numbers)?,
    };
    let mut expected = memory::list(tallies.len())?;
    expected.extend(tallies.iter().map(|tally| tally.result::<T>(operator)));
    Ok(expected)
}

/// Numbers that one thread counts at a time.
const EACH: usize = 1 << 20;

/// Columns that one thread counts at a time, where there are more.
const COLUMNS_EACH: usize = 1 << 12;

/// `work` for each number below `count`, by as many threads as there are processors. Of a `dyn Fn`, so that it is
/// compiled once, not for each type of element.
fn in_parallel<R: Send>(count: usize, work: &(dyn Fn(usize) -> R + Sync)) -> anyhow::Result<Vec<R>> {
    let mut all = memory::list(count)?;
    (0..count).into_par_iter().map(work).collect_into_vec(&mut all);
    Ok(all)
}

/// Of some numbers, by as many threads as there are processors.
fn tally<T: Small>(data: Data, numbers: &[T]) -> anyhow::Result<Tally> {
    let of_part = |part: usize| {
        let first = part * EACH;
        tally_of(data, first, &numbers[first..numbers.len().min(first + EACH)])
    };
    Ok(in_parallel(numbers.len().div_ceil(EACH), &of_part)?.into_iter().fold(Tally::default(), Tally::join))
}

/// Of some numbers, the first of which is at `first`.
fn tally_of<T: Small>(data: Data, first: usize, numbers: &[T]) -> Tally {
    let mut tally = Tally::default();
    numbers.iter().enumerate().for_each(|(i, x)| tally.count(data, first + i, x.to_f64()));
    tally
}

/// Of each column: a thread has some of the rows, and some of the columns where they are many.
fn tally_columns<T: Small>(data: Data, columns: usize, numbers: &[T]) -> anyhow::Result<Vec<Tally>> {
    let rows = numbers.len() / columns.max(1);
    let rows_each = rows.div_ceil(if columns > COLUMNS_EACH { 1 } else { rayon::current_num_threads() }).max(1);
    let (wide, high) = (columns.div_ceil(COLUMNS_EACH), rows.div_ceil(rows_each));
    let of_part = |part: usize| {
        let (first, column) = (part / wide * rows_each, part % wide * COLUMNS_EACH);
        let mut tallies = vec![Tally::default(); COLUMNS_EACH.min(columns - column)];
        for row in first..(first + rows_each).min(rows) {
            let numbers = &numbers[row * columns + column..];
            tallies.iter_mut().zip(numbers).for_each(|(tally, x)| tally.count(data, row, x.to_f64()));
        }
        tallies
    };
    let mut all = memory::list(columns)?;
    all.resize(columns, Tally::default());
    for (part, tallies) in in_parallel(wide * high, &of_part)?.into_iter().enumerate() {
        let of_columns = &mut all[part % wide * COLUMNS_EACH..];
        of_columns.iter_mut().zip(tallies).for_each(|(tally, part)| *tally = tally.join(part));
    }
    Ok(all)
}

/// Everything that an operator asks of some numbers. The sums are whole numbers far below 2^53: exact.
#[derive(Clone, Copy)]
struct Tally {
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
    argmin: u64,
    argmax: u64,
    nonzero: u64,
    count: u64,
    /// Of floats, and the lowest bits of that of integers.
    product: f64,
    product_bits: u64,
    nan: u64,
    finite: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            sum: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            argmin: u64::MAX,
            argmax: u64::MAX,
            nonzero: 0,
            count: 0,
            product: 1.0,
            product_bits: 1,
            nan: 0,
            finite: 0,
        }
    }
}

impl Tally {
    fn count(&mut self, data: Data, i: usize, x: f64) {
        match data {
            Data::Whole => self.count_whole(i, x),
            Data::Factors => {
                self.product *= x;
                self.product_bits = self.product_bits.wrapping_mul(x as u64);
            }
            Data::Special => {
                self.nan += u64::from(x.is_nan());
                self.finite += u64::from(x.is_finite());
            }
        }
    }

    fn count_whole(&mut self, i: usize, x: f64) {
        self.count += 1;
        self.sum += x;
        self.squares += x * x;
        self.nonzero += u64::from(x != 0.0);
        if x < self.min {
            (self.min, self.argmin) = (x, i as u64);
        }
        if x > self.max {
            (self.max, self.argmax) = (x, i as u64);
        }
    }

    /// Of these and of others behind them, whose places were counted on.
    fn join(self, later: Self) -> Self {
        let (min, argmin) = if later.min < self.min { (later.min, later.argmin) } else { (self.min, self.argmin) };
        let (max, argmax) = if later.max > self.max { (later.max, later.argmax) } else { (self.max, self.argmax) };
        Self {
            sum: self.sum + later.sum,
            squares: self.squares + later.squares,
            min,
            max,
            argmin,
            argmax,
            nonzero: self.nonzero + later.nonzero,
            count: self.count + later.count,
            product: self.product * later.product,
            product_bits: self.product_bits.wrapping_mul(later.product_bits),
            nan: self.nan + later.nan,
            finite: self.finite + later.finite,
        }
    }

    fn result<T: Small>(&self, operator: Operator) -> Expected {
        let is_exact = T::ROUNDING == 0.0;
        let exactly = |value: f64| Expected { value, bound: 0.0 };
        let counted = |count: u64| exactly(count as f64);
        let near = |value: f64| Expected { value, bound: 8.0 * T::ROUNDING.max(f64::EPSILON) * value };
        match operator {
            Operator::Sum if is_exact => exactly(self.sum),
            Operator::SumOfSquares | Operator::Dot if is_exact => exactly(self.squares),
            Operator::Sum => near(self.sum),
            Operator::WrappingSum => exactly(T::wrapped(self.sum as u64)),
            Operator::SumInF64 => exactly(self.sum),
            Operator::Product => exactly(if is_exact { T::wide(self.product_bits) } else { self.product }),
            // Of an input with itself, if it had one.
            Operator::SumOfSquares | Operator::Dot => near(self.squares),
            Operator::Mean => near(self.sum / self.count as f64),
            Operator::Norm => near(self.squares.sqrt()),
            Operator::Min | Operator::MinMax => exactly(self.min),
            Operator::Max => exactly(self.max),
            Operator::Argmin => counted(self.argmin),
            Operator::Argmax => counted(self.argmax),
            Operator::Any => counted(u64::from(self.nonzero > 0)),
            Operator::All => counted(u64::from(self.nonzero == self.count)),
            Operator::CountNonzero => counted(self.nonzero),
            Operator::CountNan => counted(self.nan),
            Operator::CountFinite => counted(self.finite),
        }
    }
}

/// The first result that is not what it should be, in words.
pub fn first_wrong(found: impl Iterator<Item = f64>, expected: &[Expected]) -> Option<String> {
    let is_right = |found: f64, &Expected { value, bound }: &Expected| {
        // The mean of nothing is NaN; and two infinities have no difference.
        found == value || found.is_nan() && value.is_nan() || (found - value).abs() <= bound
    };
    let mut pairs = found.zip(expected).enumerate();
    let (i, (found, expected)) = pairs.find(|(_, (found, expected))| !is_right(*found, expected))?;
    Some(format!("result {i} is {found}, should be {}", expected.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_have_counted_is_what_one_would() {
        let rows_of_few = Extent { rows: 40_000, columns: 3, axis: Axis::Columns };
        let many_columns = Extent { rows: 3, columns: 40_000, axis: Axis::Columns };
        for extent in [rows_of_few, many_columns] {
            let numbers = numbers::<i32>(Data::Whole, 0, extent.elements()).unwrap();
            let column = |k: usize| numbers.iter().skip(k).step_by(extent.columns).copied().enumerate();
            let sums = expected(Operator::Sum, &extent, &[], &numbers).unwrap();
            let places = expected(Operator::Argmin, &extent, &[], &numbers).unwrap();
            for k in 0..extent.columns {
                assert_eq!(sums[k].value, f64::from(column(k).map(|(_, x)| x).sum::<i32>()));
                let first_of_least = column(k).min_by_key(|&(_, x)| x).map_or(0, |(i, _)| i);
                assert_eq!(places[k].value, first_of_least as f64);
            }
        }
    }

    #[test]
    fn of_equal_numbers_in_two_parts_the_first_counts() {
        let mut numbers = vec![1_u8; (1 << 20) + 10];
        (numbers[(1 << 20) - 1], numbers[(1 << 20) + 1]) = (9, 9);
        let all = Extent::all(numbers.len());
        let place = |operator| expected(operator, &all, &[], &numbers).unwrap()[0].value;
        assert_eq!([place(Operator::Argmax), place(Operator::Argmin)], [f64::from((1 << 20) - 1), 0.0]);
    }

    #[test]
    fn results_that_are_no_number_are_compared_too() {
        let wrong =
            |found: f64, value: f64| first_wrong([found].into_iter(), &[Expected { value, bound: 0.5 }]).is_some();
        let (infinite, nan) = (f64::INFINITY, f64::NAN);
        assert!(!wrong(nan, nan) && !wrong(infinite, infinite) && !wrong(1.5, 1.0));
        assert!(
            wrong(nan, 1.0) && wrong(1.0, nan) && wrong(infinite, -infinite) && wrong(infinite, 1.0) && wrong(1.6, 1.0)
        );
    }

    #[test]
    fn numbers_show_what_was_left_out() {
        let len = 5000;
        let all = Extent::all(len);
        let of = |operator, numbers: &[i8]| expected(operator, &all, &[], numbers).unwrap()[0].value;
        let factors = numbers::<i8>(Data::Factors, 0, len).unwrap();
        let product = factors.iter().fold(1_i64, |product, &x| product.wrapping_mul(x.into()));
        assert_eq!(of(Operator::Product, &factors), product as f64);
        let whole = numbers::<i8>(Data::Whole, 0, len).unwrap();
        let sum = whole.iter().fold(0_i8, |sum, &x| sum.wrapping_add(x));
        assert_eq!(of(Operator::WrappingSum, &whole), f64::from(sum));

        let factors = numbers::<f16>(Data::Factors, 3, len).unwrap();
        assert_eq!(factors.len(), 3 + len);
        let product: f64 = factors[3..].iter().map(|&x| f64::from(x)).product();
        assert!(product.abs() > 1.0 && product.abs() <= 64.0, "{product}");
        assert_eq!(expected(Operator::Product, &all, &[], &factors[3..]).unwrap()[0].value, product);
        let special = numbers::<bf16>(Data::Special, 0, len).unwrap();
        let count = |operator| expected(operator, &all, &[], &special).unwrap()[0].value;
        assert_eq!(count(Operator::CountNan), special.iter().filter(|x| x.is_nan()).count() as f64);
        assert_eq!(count(Operator::CountFinite), special.iter().filter(|x| x.is_finite()).count() as f64);
        assert!(count(Operator::CountNan) > 100.0 && count(Operator::CountFinite) < len as f64 - 1000.0);
    }
}

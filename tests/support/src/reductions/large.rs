//! Reductions of more than 2^31 and 2^32 elements, ten million segments, and inputs of special values.

use crate::by_shape::ByShape;
use crate::shape::Shape;
use half::f16;
use warpfold::ops::{ArgMax, ArgMin, CountNan, CountNonzero, Max, Mean, Min, MinMax, Sum, SumOfSquares};
use warpfold::{Error, Gpu};

/// The memory that the largest of them need on the device, and also on the host.
pub const BYTES: usize = 6 << 30;

/// The length of the longest input, which does not fit in 32 bits.
const LONGEST: usize = (1 << 32) + 7;

/// The memory that [`equal_elements`] needs on the device, and also on the host.
pub const BYTES_OF_EQUAL: usize = 9 << 30;

/// `2^32 + 1`, which is 641 * 6,700,417.
const EQUAL: usize = (1 << 32) + 1;

/// Compares a result. The error has the result and the expected one.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, should be {expected:?}")) }
}

/// One period of the elements: 1 to 250. Its length divides no power of two.
fn period() -> Vec<u8> {
    (1..=250).collect()
}

/// The sum of the elements before `end`.
fn sum_before(end: usize) -> u64 {
    let whole = (end / 250) as u64 * period().iter().map(|&x| u64::from(x)).sum::<u64>();
    whole + (1..=(end % 250) as u64).sum::<u64>()
}

/// Checks reductions of 2^31 - 1, 2^31 and 2^32 + 7 elements of `u8`, also by rows, columns and segments.
///
/// # Errors
/// If a result is wrong, or on an error of the library.
pub fn lengths(gpu: &Gpu) -> Result<(), String> {
    check_lengths(gpu).map_err(|error| error.to_string())?
}

fn check_lengths(gpu: &Gpu) -> Result<Result<(), String>, Error> {
    let mut numbers = period();
    while numbers.len() < LONGEST {
        let more = numbers.len().min(LONGEST - numbers.len());
        numbers.extend_from_within(..more);
    }
    // The only minimum and the only maximum, at indices that do not fit in 32 bits.
    let (zero, most) = (LONGEST - 3, LONGEST - 2);
    let replaced = u64::from(numbers[zero]) + u64::from(numbers[most]);
    (numbers[zero], numbers[most]) = (0, 255);
    let input = gpu.upload(&numbers)?;
    drop(numbers);
    let all = sum_before(LONGEST) - replaced + 255;
    let view = |start, len| input.view().slice(start, len);

    let mut checks = Vec::new();
    for len in [(1 << 31) - 1, 1 << 31, (1 << 31) + 1] {
        checks.push(same("a sum of about 2^31", gpu.sum(view(0, len)?)?, sum_before(len)));
        let shifted = gpu.sum(view(1, len)?)?;
        checks.push(same("a sum of about 2^31 after one element", shifted, sum_before(len + 1) - 1));
    }
    checks.push(same("the sum of 2^32 + 7", gpu.sum(&input)?, all));
    checks.push(same("the index of the minimum", gpu.argmin(&input)?, zero as u64));
    checks.push(same("the index of the maximum", gpu.argmax(&input)?, most as u64));
    checks.push(same("both extremes", gpu.min_max(&input)?, [0, 255]));
    checks.push(same("the number of nonzero elements", gpu.count_nonzero(&input)?, LONGEST as u64 - 1));

    let half = LONGEST / 2;
    let rows = gpu.download(&gpu.reduce_to_buffer(Sum, view(0, 2 * half)?, Shape::rows(2, half))?)?;
    let second = sum_before(2 * half) - sum_before(half) - replaced + 255;
    checks.push(same("the sums of two rows", rows, vec![sum_before(half), second]));
    let wide = gpu.download(&gpu.reduce_to_buffer(MinMax, view(0, 2 * half)?, Shape::columns(2, half))?)?;
    checks.push(same("a column of two", wide[5], [6, period()[(half + 5) % 250]]));
    drop(wide);
    // Each of 250 columns repeats one number, except for the two elements at the end.
    let long = gpu.reduce_to_buffer(Sum, view(0, LONGEST / 250 * 250)?, Shape::columns(LONGEST / 250, 250))?;
    let long = gpu.download(&long)?;
    let of_column = |column: u64| (column + 1) * (LONGEST / 250) as u64;
    checks.push(same("the sum of a column of 17 million", long[17], of_column(17)));

    let ends = [0, 3, 3 + (1 << 31) + 11, LONGEST as u64];
    let offsets = gpu.upload(&ends)?;
    let sums = gpu.download(&gpu.reduce_segments(Sum, &input, &offsets)?)?;
    let between = |start: u64, end: u64| sum_before(end as usize) - sum_before(start as usize);
    let expected = vec![between(0, 3), between(ends[1], ends[2]), between(ends[2], ends[3]) - replaced + 255];
    checks.push(same("the sums of segments past 2^31", sums, expected));
    let places = gpu.download(&gpu.reduce_segments(ArgMin, &input, &offsets)?)?;
    checks.push(same("the indices in segments past 2^31", places[2], zero as u64 - ends[2]));
    Ok(checks.into_iter().collect())
}

/// Checks sums, means and sums of squares of `2^32 + 1` equal elements of `f16`, and sums of 641 rows and columns.
///
/// # Errors
/// If a result is wrong, or on an error of the library.
pub fn equal_elements(gpu: &Gpu) -> Result<(), String> {
    equal(gpu, EQUAL, 641).map_err(|error| error.to_string())?
}

/// [`equal_elements`] of `len` elements, a multiple of `sides`.
///
/// # Errors
/// On an error of the library.
pub fn equal(gpu: &Gpu, len: usize, sides: usize) -> Result<Result<(), String>, Error> {
    // A third, of which all bits are used: an integer times 2^-12.
    const INTEGER: u64 = 1365;
    let x = f16::from_f64(INTEGER as f64 / 4096.0);
    let input = gpu.upload(&vec![x; len])?;
    let mut checks = Vec::new();
    // Integers are converted with one rounding, and powers of two are exact.
    let sum = |len: usize| (len as u64 * INTEGER) as f32 / 4096.0;
    checks.push(same("the sum", gpu.sum(&input)?, sum(len)));
    // An odd address, and a length that ends inside a vector.
    checks.push(same("the sum but for one", gpu.sum(input.view().slice(1, len - 1)?)?, sum(len - 1)));
    checks.push(same("the mean", gpu.reduce_all(Mean, &input)?, x.to_f32()));
    let squares = (len as u64 * INTEGER * INTEGER) as f32 / (4096.0 * 4096.0);
    checks.push(same("the sum of squares", gpu.reduce_all(SumOfSquares, &input)?, squares));
    let rows = gpu.download(&gpu.reduce_to_buffer(Sum, &input, Shape::rows(sides, len / sides))?)?;
    checks.push(same("the sums of rows", rows, vec![sum(len / sides); sides]));
    let columns = gpu.download(&gpu.reduce_to_buffer(Sum, &input, Shape::columns(len / sides, sides))?)?;
    checks.push(same("the sums of columns", columns, vec![sum(len / sides); sides]));
    Ok(checks.into_iter().collect())
}

/// Checks ten million segments that are all empty, and that are all empty but one.
///
/// # Errors
/// If a result is wrong, or on an error of the library.
pub fn empty_segments(gpu: &Gpu) -> Result<(), String> {
    let check = || {
        const COUNT: usize = 10_000_000;
        let input = gpu.upload(&[3.0_f32, 4.0])?;
        let mut ends = vec![0_u64; COUNT + 1];
        let offsets = gpu.upload(&ends)?;
        let sums = gpu.download(&gpu.reduce_segments(Sum, &input, &offsets)?)?;
        let least = gpu.download(&gpu.reduce_segments(Min, &input, &offsets)?)?;
        ends[COUNT] = 2;
        let last = gpu.download(&gpu.reduce_segments(Sum, &input, &gpu.upload(&ends)?)?)?;
        Ok::<_, Error>([
            same("the number of sums", sums.len(), COUNT),
            same("the sum of an empty segment", sums.iter().position(|&x| x.to_bits() != 0), None),
            same("the minimum of an empty segment", least.iter().position(|&x| x != f32::INFINITY), None),
            same("the sum of the last segment", last[COUNT - 1], 7.0),
            same("the sums of the other segments", last[..COUNT - 1].iter().position(|&x| x.to_bits() != 0), None),
        ])
    };
    check().map_err(|error| error.to_string())?.into_iter().collect()
}

/// Checks inputs of infinities, of NaN, and of ordinary numbers with some signalling NaN.
///
/// # Errors
/// If a result is wrong, or on an error of the library.
pub fn special(gpu: &Gpu, len: usize) -> Result<(), String> {
    let check = || {
        let infinite = gpu.upload(&vec![f32::INFINITY; len])?;
        let below = gpu.upload(&vec![f32::NEG_INFINITY; len])?;
        let nan = gpu.upload(&vec![f32::from_bits(0xFFC1_2345); len])?;
        // The first NaN is not the first element of a lane, a warp or a block.
        let (first, every) = ((len / 3) | 1, 100_003);
        let scattered: Vec<f32> =
            (0..len)
                .map(|i| {
                    if i >= first && (i - first).is_multiple_of(every) { f32::from_bits(0x7F80_0001) } else { i as f32 }
                })
                .collect();
        let count = (len - first).div_ceil(every) as u64;
        let scattered = gpu.upload(&scattered)?;
        let rows = Shape::rows(len / 1000, 1000);
        let first_row = gpu.download(&gpu.reduce_to_buffer(Max, &scattered, rows)?)?;
        let nan_row = first_row.iter().position(|x| x.is_nan());
        let one_nan = f32::NAN.to_bits();
        Ok::<_, Error>([
            same("the sum of infinities", gpu.sum(&infinite)?, f32::INFINITY),
            same("the minimum of infinities", gpu.min(&infinite)?, f32::INFINITY),
            same("the index of the minimum of infinities", gpu.argmin(&infinite)?, 0),
            same("the maximum of negative infinities", gpu.max(&below)?, f32::NEG_INFINITY),
            same("the index of the maximum of negative infinities", gpu.argmax(&below)?, 0),
            same("the sum of NaN", gpu.sum(&nan)?.to_bits(), one_nan),
            same("the maximum of NaN", gpu.max(&nan)?.to_bits(), one_nan),
            same("the index of NaN", gpu.argmax(&nan)?, 0),
            same("the number of NaN", gpu.reduce_all(CountNan, &nan)?, len as u64),
            same("the sum with signalling NaN", gpu.sum(&scattered)?.to_bits(), one_nan),
            same("the minimum with signalling NaN", gpu.min(&scattered)?.to_bits(), one_nan),
            same("the index of the first signalling NaN", gpu.reduce_all(ArgMax, &scattered)?, first as u64),
            same("the number of signalling NaN", gpu.reduce_all(CountNan, &scattered)?, count),
            same("the number of nonzero elements", gpu.reduce_all(CountNonzero, &scattered)?, len as u64 - 1),
            same("the first row with a signalling NaN", nan_row, Some(first / 1000)),
        ])
    };
    check().map_err(|error| error.to_string())?.into_iter().collect()
}

//! The expected results of each operator, computed with big integers and exact sums.

use approx::abs_diff_eq;
use num_bigint::BigUint;
use warpfold::exact::{ExactDot, ExactSum};

use super::value::Value;

macro_rules! operators {
    ($($operator:ident, $name:literal of $([$type:ident])*;)*) => {
        /// The operators.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Operator {
            $(
                #[doc = $name]
                $operator,
            )*
        }
    };
}

kernels::for_each_builtin! { operators }

/// An expected number.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// This number, including the sign of zero.
    Exactly(Value),
    /// A number and the maximum distance from it.
    Near(f64, f64),
    /// NaN.
    Nan,
    /// Any number, because in some orders of combination an intermediate result overflows.
    Anything,
}

impl Expected {
    /// Whether `found` is as expected.
    pub fn is(self, found: Value) -> bool {
        match (self, found) {
            (Self::Exactly(Value::Int(expected)), Value::Int(found)) => expected == found,
            (Self::Exactly(Value::Float(expected)), Value::Float(found)) => expected.to_bits() == found.to_bits(),
            (Self::Near(expected, bound), Value::Float(found)) => abs_diff_eq!(found, expected, epsilon = bound),
            (Self::Nan, found) => found.is_nan(),
            (Self::Anything, _) => true,
            _ => false,
        }
    }
}

/// The properties of a float type.
struct Float {
    /// The unit roundoff: half the distance from 1 to the next number.
    u: f64,
    max: f64,
}

/// The float type of sums of `dtype`; `None` for integers.
fn float_of_sums(dtype: &str) -> Option<Float> {
    match dtype {
        "f16" | "bf16" | "f32" => Some(Float { u: f64::from(f32::EPSILON) / 2.0, max: f32::MAX.into() }),
        "f64" => Some(Float { u: f64::EPSILON / 2.0, max: f64::MAX }),
        _ => None,
    }
}

impl Operator {
    /// The operator's name.
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// Whether it has no result for no elements.
    pub fn needs_elements(self) -> bool {
        matches!(self, Self::Min | Self::Max | Self::MinMax | Self::ArgMin | Self::ArgMax)
    }

    /// The expected result for elements of type `dtype`.
    pub fn expected(self, dtype: &str, elements: &[Value]) -> Vec<Expected> {
        let int = |x: usize| Expected::Exactly(Value::Int(x as i128));
        if elements.is_empty()
            && let Some(nothing) = self.of_empty(dtype)
        {
            return nothing;
        }
        let count = |predicate: fn(f64) -> bool| elements.iter().filter(|x| predicate(x.as_f64())).count();
        match self {
            Self::Sum => vec![sum(dtype, elements)],
            Self::SumOfSquares => vec![sum_of_squares(dtype, elements)],
            Self::SumInF64 => vec![Expected::float(exact_sum(elements).rounded())],
            Self::WrappingSum => {
                let total: i128 = elements.iter().map(|x| x.as_int()).sum();
                vec![Expected::Exactly(Value::Int(wrap(total, dtype)))]
            }
            Self::Product => vec![product(dtype, elements)],
            Self::PairwiseSum => vec![near_sum(dtype, elements, 1.0)],
            Self::PairwiseMean => vec![near_sum(dtype, elements, elements.len() as f64)],
            Self::Mean => vec![mean(dtype, elements)],
            Self::Norm => vec![norm(dtype, elements)],
            Self::Min => vec![extreme(elements, false)],
            Self::Max => vec![extreme(elements, true)],
            Self::MinMax => vec![extreme(elements, false), extreme(elements, true)],
            Self::ArgMin => vec![int(place_of_extreme(elements, false))],
            Self::ArgMax => vec![int(place_of_extreme(elements, true))],
            Self::Any => vec![int(usize::from(count(|x| x != 0.0) > 0))],
            Self::All => vec![int(usize::from(count(|x| x != 0.0) == elements.len()))],
            Self::CountNonzero => vec![int(count(|x| x != 0.0))],
            Self::CountNan => vec![int(count(f64::is_nan))],
            Self::CountFinite => vec![int(count(f64::is_finite))],
        }
    }
}

impl Operator {
    /// The result of an empty segment for an operator that needs elements.
    fn of_empty(self, dtype: &str) -> Option<Vec<Expected>> {
        let (least, most) = match dtype {
            "i8" => (i8::MIN.into(), i8::MAX.into()),
            "i16" => (i16::MIN.into(), i16::MAX.into()),
            "i32" => (i32::MIN.into(), i32::MAX.into()),
            "i64" => (i64::MIN.into(), i64::MAX.into()),
            "u8" => (0, u8::MAX.into()),
            "u16" => (0, u16::MAX.into()),
            "u32" => (0, u32::MAX.into()),
            _ => (0, i128::from(u64::MAX)),
        };
        let [least, most] = match float_of_sums(dtype) {
            None => [least, most].map(Value::Int),
            Some(_) => [f64::NEG_INFINITY, f64::INFINITY].map(Value::Float),
        }
        .map(Expected::Exactly);
        match self {
            Self::Min => Some(vec![most]),
            Self::Max => Some(vec![least]),
            Self::MinMax => Some(vec![most, least]),
            Self::ArgMin | Self::ArgMax => Some(vec![Expected::Exactly(Value::Int(i128::from(u64::MAX)))]),
            _ => None,
        }
    }
}

/// An integer, wrapped to type `dtype`.
fn wrap(x: i128, dtype: &str) -> i128 {
    match dtype {
        "i8" => i128::from(x as i8),
        "i16" => i128::from(x as i16),
        "i32" => i128::from(x as i32),
        "i64" => i128::from(x as i64),
        "u8" => i128::from(x as u8),
        "u16" => i128::from(x as u16),
        "u32" => i128::from(x as u32),
        _ => i128::from(x as u64),
    }
}

/// An integer, wrapped to the 64-bit type of sums of `dtype`.
fn wrap_to_64_bits(x: i128, dtype: &str) -> i128 {
    wrap(x, if dtype.starts_with('i') { "i64" } else { "u64" })
}

/// A number of twice the precision, as the unevaluated sum of two floats.
#[derive(Clone, Copy)]
struct DoubleDouble(f64, f64);

impl Expected {
    /// Exactly this float; for NaN, any NaN.
    fn float(x: f64) -> Self {
        if x.is_nan() { Self::Nan } else { Self::Exactly(Value::Float(x)) }
    }
}

fn exact_sum(elements: &[Value]) -> ExactSum<f64> {
    elements.iter().map(|x| x.as_f64()).collect()
}

fn exact_squares(elements: &[Value]) -> ExactDot<f64> {
    elements.iter().map(|x| (x.as_f64(), x.as_f64())).collect()
}

/// Whether results of `dtype` are `f32`.
fn is_single(dtype: &str) -> bool {
    matches!(dtype, "f16" | "bf16" | "f32")
}

fn sum(dtype: &str, elements: &[Value]) -> Expected {
    match float_of_sums(dtype) {
        None => wrapped(dtype, elements, |x| x),
        Some(_) if is_single(dtype) => Expected::float(exact_sum(elements).rounded::<f32>().into()),
        Some(_) => Expected::float(exact_sum(elements).rounded()),
    }
}

fn sum_of_squares(dtype: &str, elements: &[Value]) -> Expected {
    match float_of_sums(dtype) {
        None => wrapped(dtype, elements, |x| x.wrapping_mul(x)),
        Some(_) => dot(dtype, &exact_squares(elements)),
    }
}

/// The expected dot product of floats.
pub(super) fn dot(dtype: &str, exact: &ExactDot<f64>) -> Expected {
    Expected::float(if is_single(dtype) { exact.rounded::<f32>().into() } else { exact.rounded() })
}

fn wrapped(dtype: &str, elements: &[Value], term: fn(i128) -> i128) -> Expected {
    let total = elements.iter().fold(0_i128, |sum, x| sum.wrapping_add(term(x.as_int())));
    Expected::Exactly(Value::Int(wrap_to_64_bits(total, dtype)))
}

fn product(dtype: &str, elements: &[Value]) -> Expected {
    let Some(float) = float_of_sums(dtype) else {
        let total = elements.iter().fold(1_i128, |product, x| wrap_to_64_bits(product.wrapping_mul(x.as_int()), dtype));
        return Expected::Exactly(Value::Int(total));
    };
    let all = || elements.iter().map(|x| x.as_f64());
    let (zero, infinite) = (all().any(|x| x == 0.0), all().any(f64::is_infinite));
    if all().any(f64::is_nan) || (zero && infinite) {
        return Expected::Nan;
    }
    // If this is small, no product of some of the elements overflows or underflows, in any order.
    let swing: f64 = all().filter(|&x| x != 0.0).map(|x| x.abs().log2().abs()).sum();
    if !zero && (infinite || swing > float.max.log2() - 3.0) || zero && swing > float.max.log2() - 3.0 {
        return Expected::Anything;
    }
    let negative = all().filter(|x| x.is_sign_negative()).count() % 2 == 1;
    if zero {
        return Expected::Exactly(Value::Float(if negative { -0.0 } else { 0.0 }));
    }
    let exact = all().fold(DoubleDouble(1.0, 0.0), |DoubleDouble(product, rest), x| {
        let next = product * x;
        DoubleDouble(next, rest * x + product.mul_add(x, -next))
    });
    let exact = exact.0 + exact.1;
    Expected::Near(exact, 1.01 * (elements.len() as f64 + 1.0) * float.u * exact.abs())
}

/// The expected sum by additions that round, over a divisor. (`exact_cross` expects the bits.)
fn near_sum(dtype: &str, elements: &[Value], divisor: f64) -> Expected {
    let Some(float) = float_of_sums(dtype) else { return Expected::Anything };
    let (sum, all) = (exact_sum(elements), || elements.iter().map(|x| x.as_f64()));
    if elements.is_empty() && divisor == 0.0 {
        return Expected::Nan;
    }
    let (exact, magnitude) = (sum.rounded::<f64>(), all().map(f64::abs).sum::<f64>());
    if !exact.is_finite() && !all().all(f64::is_finite) {
        return Expected::float(exact);
    }
    if magnitude > float.max / 2.0 {
        return Expected::Anything;
    }
    // No depth exceeds the number of elements.
    let depth = elements.len().min(300) as f64 + 1.0;
    Expected::Near(exact / divisor, 1.02 * depth * float.u * magnitude / divisor + f64::from(f32::from_bits(1)))
}

fn mean(dtype: &str, elements: &[Value]) -> Expected {
    if elements.is_empty() {
        return Expected::Nan;
    }
    if float_of_sums(dtype).is_some() {
        let sum = exact_sum(elements);
        return Expected::float(if is_single(dtype) { sum.mean::<f32>().into() } else { sum.mean() });
    }
    let sum: i128 = elements.iter().map(|x| x.as_int()).sum();
    let (dividend, count) = (BigUint::from(sum.unsigned_abs()) << BITS_BELOW, BigUint::from(elements.len()));
    let (quotient, rest) = (&dividend / &count, &dividend % &count);
    Expected::Exactly(Value::Float(rounded(&quotient, rest > BigUint::ZERO) * if sum < 0 { -1.0 } else { 1.0 }))
}

fn norm(dtype: &str, elements: &[Value]) -> Expected {
    if float_of_sums(dtype).is_some() {
        let squares = exact_squares(elements);
        return Expected::float(if is_single(dtype) { squares.sqrt::<f32>().into() } else { squares.sqrt() });
    }
    let square = |x: &Value| BigUint::from(x.as_int().unsigned_abs()).pow(2);
    let sum = elements.iter().map(square).sum::<BigUint>() << (2 * BITS_BELOW);
    let root = sum.sqrt();
    Expected::Exactly(Value::Float(rounded(&root, root.pow(2) != sum)))
}

/// The number of fractional bits of a quotient or a root: more than `f64` keeps of a result that is not exact.
const BITS_BELOW: usize = 128;

/// `number / 2^BITS_BELOW`, rounded to nearest even. If `is_left`, the exact number is larger, by less than 1 in units
/// of `number`.
fn rounded(number: &BigUint, is_left: bool) -> f64 {
    // Bits below the highest 100 become a sticky bit, so that no tie is mistaken.
    let dropped = number.bits().saturating_sub(100);
    let kept = number >> dropped;
    let is_inexact = is_left || &kept << dropped != *number;
    let kept: u128 = kept.try_into().unwrap_or(u128::MAX);
    // The conversion rounds to nearest even, and the product with a power of two is exact.
    (kept | u128::from(is_inexact)) as f64 * 2.0_f64.powi(dropped as i32 - BITS_BELOW as i32)
}

/// Whether `x` is preferred to `y` in a minimum (or maximum). NaN is preferred to all; zeros are equal.
fn is_before(x: Value, y: Value, is_max: bool) -> bool {
    let less = |x: Value, y: Value| match (x, y) {
        (Value::Int(x), Value::Int(y)) => x < y,
        (x, y) => x.as_f64() < y.as_f64(),
    };
    if x.is_nan() || y.is_nan() {
        return x.is_nan() && !y.is_nan();
    }
    if is_max { less(y, x) } else { less(x, y) }
}

fn place_of_extreme(elements: &[Value], is_max: bool) -> usize {
    let mut best = 0;
    for (i, &x) in elements.iter().enumerate() {
        if is_before(x, elements[best], is_max) {
            best = i;
        }
    }
    best
}

fn extreme(elements: &[Value], is_max: bool) -> Expected {
    let found = elements[place_of_extreme(elements, is_max)];
    match found {
        Value::Float(x) if x.is_nan() => Expected::Nan,
        Value::Float(0.0) => {
            let has = |negative: bool| {
                elements.iter().any(|x| x.as_f64() == 0.0 && x.as_f64().is_sign_negative() == negative)
            };
            let is_negative = if is_max { !has(false) } else { has(true) };
            Expected::Exactly(Value::Float(if is_negative { -0.0 } else { 0.0 }))
        }
        other => Expected::Exactly(other),
    }
}

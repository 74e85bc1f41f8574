//! Custom operators, with kernels for every shape.

use cuda_std::element::Plain;
use cuda_std::float::multiply_add;
use kernels::ops::{Fields, Operator};
use kernels::reduce::exact::custom::{ExactTerm, LowTerm};

/// The largest absolute value up to a limit, without NaN. The operator has a parameter, and a fixed order.
#[derive(Clone, Copy, Default, cuda_std::Plain)]
#[repr(C)]
pub struct Peak {
    /// Larger absolute values are ignored.
    pub limit: f32,
}

impl Operator<f32> for Peak {
    type State = f32;
    type Output = f32;
    const NEUTRAL: f32 = 0.0;
    const FIELDS: Fields<Self> = Fields::plain();

    fn lift(self, element: f32, _index: u64) -> f32 {
        if element.abs() <= self.limit { element.abs() } else { 0.0 }
    }
    fn combine(a: f32, b: f32) -> f32 {
        if a > b { a } else { b }
    }
    fn finish(self, state: f32, _count: u64) -> f32 {
        state
    }
}

/// The product of `1 + x` over all elements, which depends on the order.
#[derive(Clone, Copy, Default)]
pub struct Growth;

impl Operator<f64> for Growth {
    type State = f64;
    type Output = f64;
    const NEUTRAL: f64 = 1.0;

    fn lift(self, element: f64, _index: u64) -> f64 {
        1.0 + element
    }
    fn combine(a: f64, b: f64) -> f64 {
        a * b
    }
    fn finish(self, state: f64, _count: u64) -> f64 {
        state
    }
}

/// The distance between the first and the last nonzero element, and the number of nonzero elements: an operator of any
/// order, with a state of 32 bytes for elements of one byte.
#[derive(Clone, Copy, Default)]
pub struct Extent;

impl Operator<u8> for Extent {
    type State = [u64; 4];
    type Output = [u64; 2];
    const NEUTRAL: [u64; 4] = [u64::MAX, 0, 0, 0];
    const ANY_ORDER: bool = true;
    const HAS_EMPTY_RESULT: bool = false;

    fn lift(self, element: u8, index: u64) -> [u64; 4] {
        if element == 0 { Self::NEUTRAL } else { [index, index, 1, 0] }
    }
    fn combine(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
        let least = if a[0] < b[0] { a[0] } else { b[0] };
        let most = if a[1] > b[1] { a[1] } else { b[1] };
        [least, most, a[2] + b[2], 0]
    }
    fn finish(self, [least, most, found, _]: [u64; 4], _count: u64) -> [u64; 2] {
        if found == 0 { [0, 0] } else { [most - least, found] }
    }
}

/// An operator of a type with arguments: the number of elements above a limit, as another type.
#[derive(Clone, Copy, Default)]
pub struct Above<const LIMIT: i16, R>(core::marker::PhantomData<R>);

macro_rules! above {
    ($($element:ident)*) => {$(
        impl<const LIMIT: i16, R: Plain + Default + From<u32>> Operator<$element> for Above<LIMIT, R> {
            type State = u32;
            type Output = R;
            const NEUTRAL: u32 = 0;
            const ANY_ORDER: bool = true;
            const USES_INDEX: bool = false;

            fn lift(self, element: $element, _index: u64) -> u32 {
                u32::from(element > $element::from(LIMIT))
            }
            fn combine(a: u32, b: u32) -> u32 {
                a + b
            }
            fn finish(self, state: u32, _count: u64) -> R {
                R::from(state)
            }
        }
    )*};
}

above!(f32 i16);

kernels::reductions! {
    Above<3, u64> of f32, i16: "the number of elements above 3";
    Above<{ -1 }, u32> of f32: "the number of elements above -1";
    Peak of f32: "the peak";
    Growth of f64: "the growth";
    Extent of u8: "the extent";
}

/// The element if it is positive.
#[derive(Clone, Copy, Default)]
pub struct Positive;

impl ExactTerm for Positive {
    type Element = f32;
    type Term = f32;
    type Sum = f32;
    fn term(self, x: f32) -> f32 {
        if x > 0.0 { x } else { 0.0 }
    }
}

/// A square, which is exact in `f64`.
#[derive(Clone, Copy, Default)]
pub struct Square;

impl ExactTerm for Square {
    type Element = f32;
    type Term = f64;
    type Sum = f64;
    fn term(self, x: f32) -> f64 {
        f64::from(x) * f64::from(x)
    }
}

/// A product with a constant, as two terms.
#[derive(Clone, Copy, Default)]
pub struct Third;

/// The `f64` nearest to a third.
pub const THIRD: f64 = 1.0 / 3.0;

impl ExactTerm for Third {
    type Element = f64;
    type Term = f64;
    type Sum = f64;
    const LOW: Option<LowTerm<Self>> = Some(|_, x, term| multiply_add(x, THIRD, -term));
    fn term(self, x: f64) -> f64 {
        x * THIRD
    }
}

/// The absolute value of an `f64`.
#[derive(Clone, Copy, Default)]
pub struct Magnitude;

impl ExactTerm for Magnitude {
    type Element = f64;
    type Term = f64;
    type Sum = f64;
    fn term(self, x: f64) -> f64 {
        x.abs()
    }
}

/// An integer, which is exact in `f64`.
#[derive(Clone, Copy, Default)]
pub struct Integer;

impl ExactTerm for Integer {
    type Element = i32;
    type Term = f64;
    type Sum = f64;
    fn term(self, x: i32) -> f64 {
        f64::from(x)
    }
}

/// Terms near the greatest `f64`: an element times 2^1020.
#[derive(Clone, Copy, Default)]
pub struct Huge;

impl ExactTerm for Huge {
    type Element = f32;
    type Term = f64;
    type Sum = f64;
    fn term(self, x: f32) -> f64 {
        f64::from(x) * f64::from_bits((1023 + 1020) << 52)
    }
}

/// A term that is not 0 for an element of 0, which is refused.
#[derive(Clone, Copy, Default)]
pub struct Successor;

impl ExactTerm for Successor {
    type Element = f32;
    type Term = f32;
    type Sum = f32;
    fn term(self, x: f32) -> f32 {
        x + 1.0
    }
}

/// A term of a type with a const argument: the number times it, which is a power of two.
#[derive(Clone, Copy, Default)]
pub struct Times<const FACTOR: i32>;

impl<const FACTOR: i32> ExactTerm for Times<FACTOR> {
    type Element = f32;
    type Term = f64;
    type Sum = f64;
    fn term(self, x: f32) -> f64 {
        f64::from(x) * f64::from(FACTOR)
    }
}

/// The element if it is greater than a limit.
#[derive(Clone, Copy, Default, cuda_std::Plain)]
#[repr(C)]
pub struct Over {
    /// Elements up to it are not summed.
    pub limit: f32,
}

impl ExactTerm for Over {
    type Element = f32;
    type Term = f32;
    type Sum = f32;
    const FIELDS: Fields<Self> = Fields::plain();
    fn term(self, x: f32) -> f32 {
        if x > self.limit { x } else { 0.0 }
    }
}

/// A product with a factor, as two terms.
#[derive(Clone, Copy, Default, cuda_std::Plain)]
#[repr(C)]
pub struct Scaled {
    /// What elements are multiplied by.
    pub factor: f64,
}

impl ExactTerm for Scaled {
    type Element = f64;
    type Term = f64;
    type Sum = f64;
    const FIELDS: Fields<Self> = Fields::plain();
    const LOW: Option<LowTerm<Self>> = Some(|scaled, x, term| multiply_add(x, scaled.factor, -term));
    fn term(self, x: f64) -> f64 {
        x * self.factor
    }
}

/// A term of two fields, of elements of 16 bits: elements in a range, as integers.
#[derive(Clone, Copy, Default, cuda_std::Plain)]
#[repr(C)]
pub struct Between {
    /// The least element that is summed.
    pub from: i16,
    /// The greatest.
    pub to: i16,
}

impl ExactTerm for Between {
    type Element = i16;
    type Term = f32;
    type Sum = f64;
    const FIELDS: Fields<Self> = Fields::plain();
    fn term(self, x: i16) -> f32 {
        if self.from <= x && x <= self.to { f32::from(x) } else { 0.0 }
    }
}

/// The distance from an element to a center. It is refused unless that is 0: then the term of 0 is not 0.
#[derive(Clone, Copy, Default, cuda_std::Plain)]
#[repr(C)]
pub struct Distance {
    /// The center.
    pub center: f64,
}

impl ExactTerm for Distance {
    type Element = f64;
    type Term = f64;
    type Sum = f64;
    const FIELDS: Fields<Self> = Fields::plain();
    fn term(self, x: f64) -> f64 {
        (x - self.center).abs()
    }
}

kernels::exact_reductions! {
    Over of f32: "the sum over a limit";
    Scaled of f64: "the sum of scaled numbers";
    Between of i16: "the sum of a range";
    Distance of f64: "the sum of distances";
    Positive of f32: "the sum of positives";
    Times<4> of f32: "the sum of four times each number";
    Times<{ -2 }> of f32: "the sum of minus two times each number";
    Square of f32: "the sum of squares";
    Third of f64: "the sum of thirds";
    Magnitude of f64: "the sum of magnitudes";
    Integer of i32: "the sum of integers";
    Huge of f32: "the sum of huge terms";
    Successor of f32: "the sum of successors";
}

//! The terms of a sum: elements, their squares, or products of two inputs' elements.

use core::marker::PhantomData;

use cuda_std::element::VectorVisitor;
use cuda_std::float::{f32_from_bf16, f32_from_f16, multiply_subtract};
use cuda_std::prelude::*;
use exact_sum::Binary;
use half::{bf16, f16};

use super::formula::ResultFormat;
use super::grid::{DoubleProducts, Doubles, Grid, SingleProducts, Singles};
use super::superaccumulator_words::Special;
use super::unrolled::each;
use crate::reduce::tile_range::elements_to_alignment;

/// The terms of a sum: one or two of each item. An item is an element, or a pair of two inputs' elements.
pub trait Terms: Copy + 'static {
    /// The grid of the terms.
    type Grid: Grid;
    /// The type of the inputs' elements.
    type Element: Element;
    /// An item, which has terms: an element or a pair.
    type Item: Copy + Default;
    /// The format to which sums are rounded.
    type Sum: ResultFormat;
    /// Another format to which sums can be rounded, if any.
    type Other: ResultFormat;

    /// The exponent of a window in which no finite term leaves a residual, if one exists.
    const WINDOW: Option<i32>;
    /// Whether an item has two terms: a rounded product, and its rounding error.
    const HAS_LOW: bool = false;
    /// The number of elements that are multiplied to a term.
    const DEGREE: i32 = 1;
    /// Whether [`Terms::Other`] is another format.
    const HAS_OTHER: bool = size_of::<Self::Sum>() != size_of::<Self::Other>();

    /// The terms with the value of a kernel's argument `term`. Built-in terms ignore it.
    fn of_word(word: u64) -> Self;
    /// The term.
    fn term(self, item: Self::Item) -> Float<Self>;
    /// The second term. Meaningless if the two terms do not add up to the exact product: see [`Terms::has_exact_low`].
    #[inline(always)]
    fn low(self, item: Self::Item, term: Float<Self>) -> Float<Self> {
        let _ = item;
        term
    }
    /// Whether the two terms add up to the exact product. Also true if the product is infinite or NaN, which no window
    /// takes.
    #[inline(always)]
    fn has_exact_low(item: Self::Item) -> bool {
        let _ = item;
        true
    }
    /// The number that is summed instead of an item's terms, if these are out of range.
    #[inline(always)]
    fn out_of_range(item: Self::Item) -> Option<OutOfRange> {
        let _ = item;
        None
    }
}

/// The product of an item whose terms are out of the format's range.
pub enum OutOfRange {
    /// An integer, in units of the grid's unit times this power of two.
    Integer(i128, u32),
    /// The item is not finite.
    Special(Special),
}

/// The format of the terms.
pub type Float<K> = <<K as Terms>::Grid as Grid>::Format;

/// A float that is summed exactly, on a device.
pub trait Summand: Element {
    /// The grid of elements.
    type Grid: Grid;
    /// The grid of products of two elements.
    type Products: Grid;
    /// The format to which sums are rounded.
    type Sum: ResultFormat;
    /// Another format to which sums can be rounded, if any.
    type Other: ResultFormat;
    /// [`Terms::WINDOW`] of elements.
    const WINDOW: Option<i32> = None;
    /// [`Terms::WINDOW`] of products.
    const WINDOW_OF_PRODUCTS: Option<i32> = None;
    /// [`Terms::HAS_LOW`] of products.
    const HAS_LOW: bool = false;

    /// Converts exactly.
    fn float(self) -> <Self::Grid as Grid>::Format;
    /// The product: exact, if products have no second term.
    fn product(self, other: Self) -> <Self::Products as Grid>::Format;
    /// [`Terms::low`] of products.
    #[inline(always)]
    fn low(self, other: Self, product: <Self::Products as Grid>::Format) -> <Self::Products as Grid>::Format {
        let _ = other;
        product
    }
    /// [`Terms::has_exact_low`] of products.
    #[inline(always)]
    fn has_exact_low(self, other: Self) -> bool {
        let _ = other;
        true
    }
    /// [`Terms::out_of_range`] of products.
    #[inline(always)]
    fn out_of_range(self, other: Self) -> Option<OutOfRange> {
        let _ = other;
        None
    }
}

impl Summand for f32 {
    type Grid = Singles;
    type Products = SingleProducts;
    type Sum = f32;
    type Other = f64;
    #[inline(always)]
    fn float(self) -> f32 {
        self
    }
    #[inline(always)]
    fn product(self, other: Self) -> f64 {
        f64::from(self) * f64::from(other)
    }
}

impl Summand for f16 {
    type Grid = Singles;
    type Products = SingleProducts;
    type Sum = f32;
    type Other = f16;
    // Elements have 40 bits, from 2^-24 to 2^16, and a window of `f32` has 45.
    const WINDOW: Option<i32> = Some(16);
    // Products have 80 bits, from 2^-48 to 2^32, and a window of `f64` has 103: this one reaches down to 2^-48.
    const WINDOW_OF_PRODUCTS: Option<i32> = Some(55);
    #[inline(always)]
    fn float(self) -> f32 {
        f32_from_f16(self)
    }
    #[inline(always)]
    fn product(self, other: Self) -> f64 {
        f64::from(self.float() * other.float())
    }
}

impl Summand for bf16 {
    type Grid = Singles;
    // Products have 16 bits, and exponents outside the range of `f32`.
    type Products = SingleProducts;
    type Sum = f32;
    type Other = bf16;
    #[inline(always)]
    fn float(self) -> f32 {
        f32_from_bf16(self)
    }
    #[inline(always)]
    fn product(self, other: Self) -> f64 {
        f64::from(self.float()) * f64::from(other.float())
    }
}

impl Summand for f64 {
    type Grid = Doubles;
    type Products = DoubleProducts;
    type Sum = f64;
    type Other = f64;
    const HAS_LOW: bool = true;
    #[inline(always)]
    fn float(self) -> f64 {
        self
    }
    #[inline(always)]
    fn product(self, other: Self) -> f64 {
        self * other
    }
    #[inline(always)]
    fn low(self, other: Self, product: f64) -> f64 {
        multiply_subtract(self, other, product)
    }
    #[inline(always)]
    fn has_exact_low(self, other: Self) -> bool {
        // The rounding error of a product below this may have bits below 2^-1074, the smallest number.
        const TINY: f64 = f64::from_bits((1023 - 960) << 52);
        let is_tiny = (self * other).abs() < TINY;
        !is_tiny | (self == 0.0) | (other == 0.0)
    }
    #[inline(always)]
    fn out_of_range(self, other: Self) -> Option<OutOfRange> {
        let product = self * other;
        // A product below this, and its rounding error, are not above all windows.
        const HUGE: f64 = f64::from_bits((1023 + 1000) << 52);
        if product.abs() < HUGE && self.has_exact_low(other) {
            return None;
        }
        Some(match (self.decompose(), other.decompose()) {
            (Some((a, above)), Some((b, further))) => {
                OutOfRange::Integer(i128::from(a) * i128::from(b), above + further)
            }
            _ if product.is_nan() => OutOfRange::Special(Special::Nan),
            _ if product < 0.0 => OutOfRange::Special(Special::NegativeInfinity),
            _ => OutOfRange::Special(Special::Infinity),
        })
    }
}

/// Elements.
#[derive(Clone, Copy)]
pub struct Elements<T>(PhantomData<T>);

impl<T: Summand> Terms for Elements<T> {
    type Grid = T::Grid;
    type Element = T;
    type Item = T;
    type Sum = T::Sum;
    type Other = T::Other;
    const WINDOW: Option<i32> = T::WINDOW;
    #[inline(always)]
    fn of_word(_word: u64) -> Self {
        Self(PhantomData)
    }
    #[inline(always)]
    fn term(self, item: T) -> Float<Self> {
        item.float()
    }
}

/// Squares of elements.
#[derive(Clone, Copy)]
pub struct Squares<T>(PhantomData<T>);

impl<T: Summand> Terms for Squares<T> {
    type Grid = T::Products;
    type Element = T;
    type Item = T;
    type Sum = T::Sum;
    type Other = T::Other;
    const WINDOW: Option<i32> = T::WINDOW_OF_PRODUCTS;
    const HAS_LOW: bool = T::HAS_LOW;
    const DEGREE: i32 = 2;
    #[inline(always)]
    fn of_word(_word: u64) -> Self {
        Self(PhantomData)
    }
    #[inline(always)]
    fn term(self, item: T) -> Float<Self> {
        item.product(item)
    }
    #[inline(always)]
    fn low(self, item: T, term: Float<Self>) -> Float<Self> {
        item.low(item, term)
    }
    #[inline(always)]
    fn has_exact_low(item: T) -> bool {
        item.has_exact_low(item)
    }
    #[inline(always)]
    fn out_of_range(item: T) -> Option<OutOfRange> {
        item.out_of_range(item)
    }
}

/// Products of two inputs' elements.
#[derive(Clone, Copy)]
pub struct Products<T>(PhantomData<T>);

impl<T: Summand> Terms for Products<T> {
    type Grid = T::Products;
    type Element = T;
    type Item = [T; 2];
    type Sum = T::Sum;
    type Other = T::Other;
    const WINDOW: Option<i32> = T::WINDOW_OF_PRODUCTS;
    const HAS_LOW: bool = T::HAS_LOW;
    const DEGREE: i32 = 2;
    #[inline(always)]
    fn of_word(_word: u64) -> Self {
        Self(PhantomData)
    }
    #[inline(always)]
    fn term(self, [a, b]: [T; 2]) -> Float<Self> {
        a.product(b)
    }
    #[inline(always)]
    fn low(self, [a, b]: [T; 2], term: Float<Self>) -> Float<Self> {
        a.low(b, term)
    }
    #[inline(always)]
    fn has_exact_low([a, b]: [T; 2]) -> bool {
        a.has_exact_low(b)
    }
    #[inline(always)]
    fn out_of_range([a, b]: [T; 2]) -> Option<OutOfRange> {
        a.out_of_range(b)
    }
}

/// Whether [`Terms::has_exact_low`] holds for each item of the vectors.
#[inline(always)]
pub fn all_have_exact_low<K: Terms, I: Inputs<K>, const N: usize>(vectors: &[I::Vectors; N]) -> bool {
    if !K::HAS_LOW {
        return true;
    }
    let mut all = true;
    each::<N>(|k| I::each(vectors[k], |_, item| all &= K::has_exact_low(item)));
    all
}

/// One input, or two whose elements at the same places form pairs.
pub trait Inputs<K: Terms>: Copy {
    /// The number of inputs.
    const COUNT: usize;
    /// A vector of each input: 16 bytes of elements.
    type Vectors: Copy;

    /// The number of elements before the first at which all vectors can begin, of `len` from `start` on.
    fn head(self, start: usize, len: usize) -> usize;

    /// Loads `N` vectors of each input from element `i` on, `stride` elements apart. Vectors that do not begin before
    /// `end` are zeros.
    ///
    /// # Safety
    /// The other vectors are inside the inputs. They begin at [`Inputs::head`], or a multiple of a vector after it.
    unsafe fn load_before<const N: usize>(self, i: usize, stride: usize, end: usize) -> [Self::Vectors; N];

    /// Loads vectors that all exist, as [`Inputs::load_before`] does.
    ///
    /// # Safety
    /// As for [`Inputs::load_before`].
    unsafe fn load<const N: usize>(self, i: usize, stride: usize) -> [Self::Vectors; N];

    /// Prefetches the 128-byte line of element `i` of each input to L2.
    fn prefetch_line(self, i: usize);

    /// The item at `i`.
    ///
    /// # Safety
    /// The item is inside the inputs.
    unsafe fn item(self, i: usize) -> K::Item;

    /// Calls a function with the index of each item, and the item.
    fn each(vectors: Self::Vectors, f: impl FnMut(usize, K::Item));
}

/// One input.
#[derive(Clone, Copy)]
pub struct One<'a, T: Element>(pub &'a Global<'a, T>);

impl<K: Terms<Item = T, Element = T>, T: Element> Inputs<K> for One<'_, T> {
    const COUNT: usize = 1;
    type Vectors = T::Vector;

    #[inline(always)]
    fn head(self, start: usize, len: usize) -> usize {
        elements_to_alignment(self.0, start, len)
    }
    #[inline(always)]
    unsafe fn load_before<const N: usize>(self, i: usize, stride: usize, end: usize) -> [T::Vector; N] {
        // SAFETY: as promised by the caller.
        unsafe { self.0.load_aligned_vectors_before::<N>(i, stride, end) }
    }
    #[inline(always)]
    unsafe fn load<const N: usize>(self, i: usize, stride: usize) -> [T::Vector; N] {
        // SAFETY: as promised by the caller.
        unsafe { self.0.load_aligned_vectors_unchecked::<N>(i, stride) }
    }
    #[inline(always)]
    fn prefetch_line(self, i: usize) {
        self.0.prefetch_line(i);
    }
    #[inline(always)]
    unsafe fn item(self, i: usize) -> T {
        // SAFETY: as promised by the caller.
        unsafe { self.0.load_unchecked(i) }
    }
    #[inline(always)]
    fn each(vectors: T::Vector, f: impl FnMut(usize, T)) {
        vectors.visit(Each(f));
    }
}

struct Each<F>(F);

impl<T: Copy, F: FnMut(usize, T)> VectorVisitor<T> for Each<F> {
    type Result = ();

    #[inline(always)]
    fn elements<const LEN: usize>(mut self, elements: [T; LEN]) {
        each::<LEN>(|i| (self.0)(i, elements[i]));
    }
}

/// Two inputs.
#[derive(Clone, Copy)]
pub struct Two<'a, T: Element>(pub &'a Global<'a, T>, pub &'a Global<'a, T>);

impl<K: Terms<Item = [T; 2], Element = T>, T: Element> Inputs<K> for Two<'_, T> {
    const COUNT: usize = 2;
    type Vectors = [T::Vector; 2];

    /// The first input's head. Unless vectors of the second input are then aligned, too, each is taken from two aligned
    /// vectors.
    #[inline(always)]
    fn head(self, start: usize, len: usize) -> usize {
        elements_to_alignment(self.0, start, len)
    }
    #[inline(always)]
    unsafe fn load_before<const N: usize>(self, i: usize, stride: usize, end: usize) -> [[T::Vector; 2]; N] {
        // SAFETY: as promised by the caller.
        let (a, b) = unsafe {
            (self.0.load_aligned_vectors_before::<N>(i, stride, end), self.1.load_vectors_before::<N>(i, stride, end))
        };
        zip(a, b)
    }
    #[inline(always)]
    unsafe fn load<const N: usize>(self, i: usize, stride: usize) -> [[T::Vector; 2]; N] {
        // SAFETY: as promised by the caller.
        let (a, b) = unsafe {
            (self.0.load_aligned_vectors_unchecked::<N>(i, stride), self.1.load_vectors_unchecked::<N>(i, stride))
        };
        zip(a, b)
    }
    #[inline(always)]
    fn prefetch_line(self, i: usize) {
        self.0.prefetch_line(i);
        self.1.prefetch_line(i);
    }
    #[inline(always)]
    unsafe fn item(self, i: usize) -> [T; 2] {
        // SAFETY: as promised by the caller.
        unsafe { [self.0.load_unchecked(i), self.1.load_unchecked(i)] }
    }
    #[inline(always)]
    fn each([a, b]: [T::Vector; 2], mut f: impl FnMut(usize, [T; 2])) {
        a.visit(Each(|i, a| f(i, [a, b.get(i)])));
    }
}

#[inline(always)]
fn zip<P: Copy, const N: usize>(a: [P; N], b: [P; N]) -> [[P; 2]; N] {
    let mut both = [[a[0], b[0]]; N];
    each::<N>(|k| both[k] = [a[k], b[k]]);
    both
}

//! What a warp has summed: exactly, of any elements.

use core::marker::PhantomData;

use cuda_std::element::PackVisitor;
use cuda_std::float::{f32_from_bf16, f32_from_f16};
use cuda_std::hint::compute_now;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WarpReduceValue, lane_id, warp_vote_any};
use exact_sum::{Accumulator, Binary, Bins, Window, digit};
use half::{bf16, f16};

use super::rest::{IN_LIMBS, INFINITY, NAN, NEGATIVE_INFINITY, Rest};

/// Elements that are summed exactly, as the `f32` that they are.
pub trait Single: Element {
    /// The exponent of a window in which no finite element leaves anything, if there is one.
    const WINDOW: Option<i32>;
    /// The same number.
    fn single(self) -> f32;
}

impl Single for f32 {
    const WINDOW: Option<i32> = None;
    #[inline(always)]
    fn single(self) -> f32 {
        self
    }
}

impl Single for f16 {
    // From 2^-24 to 2^16 are 40 bits, and a window has 45.
    const WINDOW: Option<i32> = Some(16);
    #[inline(always)]
    fn single(self) -> f32 {
        f32_from_f16(self)
    }
}

impl Single for bf16 {
    const WINDOW: Option<i32> = None;
    #[inline(always)]
    fn single(self) -> f32 {
        f32_from_bf16(self)
    }
}

/// The exact sum of what the lanes of a warp have taken.
///
/// A lane adds its elements as two integers, in a [window](Window) that all lanes of the warp share. What has no room
/// in them goes to the warp's [`Rest`], which all functions are given. All lanes of the warp call each function, and
/// have taken as many elements.
#[derive(Clone, Copy)]
pub struct WarpSum {
    /// What has been taken since integers of 32 bits were last full.
    own: Accumulator<f32>,
    /// All before, in units of the window.
    value: i64,
    /// As [`WarpSum::in_rest`] gives it.
    in_rest: u32,
}

/// The largest magnitude in the vectors of a warp. NaN counts as nothing.
#[inline(always)]
pub fn largest_of_warp<T: Single, const VECTORS: usize>(vectors: &[T::Pack; VECTORS]) -> f32 {
    let mut of_vectors = [0.0; 4];
    each::<VECTORS>(|k| of_vectors[k] = vectors[k].visit(Largest));
    let [a, b, c, d] = of_vectors;
    f32::from_bits(u32::reduce_max(FULL_MASK, a.max(b).max(c.max(d)).to_bits()))
}

/// The exponent of a window that has room for a magnitude. Of magnitudes that are near to each other it is mostly the
/// same, so that the sums of several warps can be added as they are.
#[inline(always)]
pub fn window_above(largest: f32) -> i32 {
    const STEP: i32 = 4;
    (largest.magnitude() + STEP - 1) & !(STEP - 1)
}

/// Calls a function with each number below `N`, which is at most 8. Not a loop: a compiler need not unroll one, and
/// then what is indexed by its counter lies in memory.
#[inline(always)]
pub fn each<const N: usize>(mut with: impl FnMut(usize)) {
    const { assert!(N <= 8) };
    macro_rules! each {
        ($($k:literal)*) => {$(
            if N > $k {
                with($k);
            }
        )*};
    }
    each!(0 1 2 3 4 5 6 7);
}

/// [`each`] of up to 16.
#[inline(always)]
fn each_of<const N: usize>(mut with: impl FnMut(usize)) {
    const { assert!(N <= 16) };
    each::<2>(|k| {
        each::<8>(|i| {
            if 8 * k + i < N {
                with(8 * k + i);
            }
        });
    });
}

impl WarpSum {
    /// The sum of nothing, in the window of elements below `2^exponent`.
    #[inline(always)]
    pub fn in_window(exponent: i32) -> Self {
        Self { own: Accumulator::in_window(exponent), value: 0, in_rest: 0 }
    }

    /// Adds the elements of `vectors`, if the sum has room for all of them, and exactly; whether it has. If not,
    /// nothing is added.
    #[inline(always)]
    pub fn take<T: Single, const VECTORS: usize>(&mut self, vectors: [T::Pack; VECTORS]) -> bool {
        let count = (VECTORS * T::Pack::LEN) as u32;
        let mut has_room = true;
        if !self.own.has_room(count) {
            self.value = self.end();
            self.own = self.own.emptied();
            has_room = self.value.unsigned_abs() < FULL;
        }
        let (window, mut bins) = (self.own.window(), Bins::EMPTY);
        each::<VECTORS>(|k| bins = vectors[k].visit(Extract { window, bins, element: PhantomData::<T> }));
        // Now, as all elements would have to be kept for a later addition.
        self.own = self.own.with(bins, count).map_words(compute_now);
        if warp_vote_any(FULL_MASK, !(bins.is_exact() & has_room)) {
            self.own = self.own.without(bins, count);
            return false;
        }
        true
    }

    /// Which parts of the rest have something of the sum: [`IN_LIMBS`], [`IN_BELOW`](super::rest::IN_BELOW).
    #[inline(always)]
    pub fn in_rest(&self) -> u32 {
        self.in_rest
    }

    /// Adds any elements of `vectors`, which are `N`; whether [`WarpSum::take`] would have done.
    #[inline(always)]
    pub fn take_any<T: Single, const VECTORS: usize, const N: usize>(
        &mut self,
        vectors: [T::Pack; VECTORS],
        rest: &Rest,
    ) -> bool {
        let mut elements = [0.0; N];
        each::<VECTORS>(|k| vectors[k].visit(CopyTo { elements: &mut elements, first: k * T::Pack::LEN }));
        self.take_elements(elements, T::WINDOW.is_some(), rest)
    }

    /// Adds any element.
    #[inline(always)]
    pub fn take_one<T: Single>(&mut self, element: T, rest: &Rest) {
        self.take_elements([element.single()], T::WINDOW.is_some(), rest);
    }

    /// Adds any elements, in the window of the largest; what they leave in the window below, and so on until nothing is
    /// left: of elements within `2^40` of each other that is twice, of any at most seven times. Whether they were all
    /// in the window that was there, and left nothing.
    #[inline(always)]
    pub fn take_elements<const N: usize>(&mut self, mut left: [f32; N], keeps_window: bool, rest: &Rest) -> bool {
        self.value = self.end();
        self.own = self.own.emptied();
        let mut largest = largest_of(&left);
        let mut is_exact = true;
        if warp_vote_any(FULL_MASK, f32::from_bits(largest).magnitude() > Window::<f32>::HIGHEST) {
            rest.add(take_large(&mut left));
            self.in_rest |= IN_LIMBS;
            largest = largest_of(&left);
            is_exact = false;
        }
        let before = self.own.window();
        let (needed, mut exponent) =
            (window_above(f32::from_bits(u32::reduce_max(FULL_MASK, largest))), before.exponent());
        // Elements that are far below the window leave too much.
        const NEAR: i32 = 8;
        if !keeps_window && ((needed > exponent) | (needed + NEAR < exponent)) {
            exponent = Window::<f32>::nearest(needed);
        }
        let is_full = warp_vote_any(FULL_MASK, self.value.unsigned_abs() >= FULL);
        if is_full || exponent != before.exponent() {
            rest.add(digit(sum_of_lanes(self.value), before.position(), lane_id()));
            rest.add_below_to_limbs(before.below().position());
            *self = Self { in_rest: IN_LIMBS, ..Self::in_window(exponent) };
            is_exact = false;
        }

        let mut window = self.own.window();
        let (value, has_residual) = extract_all(window, &mut left);
        self.value += value;
        if has_residual {
            is_exact = false;
            window = window.below();
            let (value, mut has_residual) = extract_all(window, &mut left);
            self.in_rest |= rest.add_below(sum_of_lanes(value), window.position());
            while has_residual {
                window = window.below();
                let value;
                (value, has_residual) = extract_all(window, &mut left);
                rest.add(digit(sum_of_lanes(value), window.position(), lane_id()));
                self.in_rest |= IN_LIMBS;
            }
        }
        is_exact
    }

    /// The lanes' sums, in units of the window at [`WarpSum::position`].
    #[inline(always)]
    pub fn end(self) -> i64 {
        self.value + self.own.value() as i64
    }

    /// The position of the window.
    #[inline(always)]
    pub fn position(&self) -> u32 {
        self.own.position()
    }
}

/// From here on a lane's integer of 64 bits goes to limbs: with what is added until that is noticed it has 58 bits, of
/// which the sum over a warp has 63.
const FULL: u64 = 1 << 57;

/// Extracts elements that are in a window: this lane's sum, in its units, and whether one of the warp's has left
/// something. What they have left is in their place.
#[inline(always)]
fn extract_all<const N: usize>(window: Window<f32>, left: &mut [f32; N]) -> (i64, bool) {
    let mut bins = Bins::EMPTY;
    each_of::<N>(|i| left[i] = window.extract_from(&mut bins, left[i]));
    let value = window.drain(bins.upper, bins.lower, N as u32) as i64;
    (value, warp_vote_any(FULL_MASK, bins.has_residual()))
}

/// The largest magnitude, as its bits.
#[inline(always)]
fn largest_of<const N: usize>(elements: &[f32; N]) -> u32 {
    let mut largest = 0;
    each_of::<N>(|i| {
        let bits = elements[i].to_bits() & !f32::SIGN;
        largest = if bits > largest { bits } else { largest };
    });
    largest
}

/// This lane's limb of the elements that no window has, and of how many are not finite; leaves zeros in their place.
#[inline(always)]
fn take_large<const N: usize>(elements: &mut [f32; N]) -> i64 {
    // Multiples of 2^102, at most 2^26 of it.
    const SCALE: f32 = f32::from_bits((127 - 102) << 23);
    const POSITION: u32 = 102 + 149;
    let (mut sum, mut has_nan, mut has_infinity, mut has_negative_infinity) = (0, false, false, false);
    each_of::<N>(|i| {
        let element = elements[i];
        let is_large = element.magnitude() > Window::<f32>::HIGHEST;
        has_nan |= element.is_nan();
        has_infinity |= element == f32::INFINITY;
        has_negative_infinity |= element == f32::NEG_INFINITY;
        let units = (element * SCALE) as i32;
        sum += i64::from(if is_large & element.is_finite() { units } else { 0 });
        elements[i] = if is_large { 0.0 } else { element };
    });
    let lane = lane_id();
    let mut limb = digit(sum_of_lanes(sum), POSITION, lane);
    for (has_some, of_lane) in [(has_nan, NAN), (has_infinity, INFINITY), (has_negative_infinity, NEGATIVE_INFINITY)] {
        limb += i64::from(warp_vote_any(FULL_MASK, has_some) & (lane == of_lane));
    }
    limb
}

/// The sum of the lanes' values, each of at most 58 bits and a sign.
#[inline(always)]
pub fn sum_of_lanes(value: i64) -> i64 {
    // 26 bits of 32 lanes have room in 32.
    const BITS: u32 = 26;
    let piece = |k: u32| u32::reduce_add(FULL_MASK, (value >> (k * BITS)) as u32 & ((1 << BITS) - 1));
    let (low, middle) = (i64::from(piece(0)), i64::from(piece(1)));
    let high = i64::from(i32::reduce_add(FULL_MASK, (value >> (2 * BITS)) as i32));
    low + (middle << BITS) + (high << (2 * BITS))
}

/// The largest magnitude in a vector. NaN counts as nothing.
pub struct Largest;

impl<T: Single> PackVisitor<T> for Largest {
    type Result = f32;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> f32 {
        let mut of_pairs = [0.0_f32; 4];
        each::<4>(|k| {
            if 2 * k < LEN {
                of_pairs[k] = elements[2 * k].single().abs().max(elements[2 * k + 1].single().abs());
            }
        });
        let [a, b, c, d] = of_pairs;
        a.max(b).max(c.max(d))
    }
}

/// Adds a vector's elements to bins.
pub struct Extract<T> {
    /// The window that they are extracted in.
    pub window: Window<f32>,
    /// What there was before.
    pub bins: Bins<f32>,
    /// Their type.
    pub element: PhantomData<T>,
}

impl<T: Single> PackVisitor<T> for Extract<T> {
    type Result = Bins<f32>;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> Bins<f32> {
        let Self { window, mut bins, .. } = self;
        each::<LEN>(|i| {
            let element = elements[i].single();
            bins = match T::WINDOW {
                Some(_) => window.extract_all(bins, element),
                None => window.extract(bins, element),
            };
        });
        bins
    }
}

/// Copies a vector's elements.
struct CopyTo<'a, const N: usize> {
    elements: &'a mut [f32; N],
    first: usize,
}

impl<T: Single, const N: usize> PackVisitor<T> for CopyTo<'_, N> {
    type Result = ();

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) {
        each::<LEN>(|i| self.elements[self.first + i] = elements[i].single());
    }
}

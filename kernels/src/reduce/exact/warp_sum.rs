//! What a warp has summed: exactly, of any elements.

use core::marker::PhantomData;

use cuda_std::element::PackVisitor;
use cuda_std::float::{f32_from_bf16, f32_from_f16};
use cuda_std::hint::{compute_now, keep_rolled};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WarpReduceValue, lane_id, warp_vote_any};
use exact_sum::{Accumulator, Binary, Bins, Window, digit};
use half::{bf16, f16};

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

/// Limbs of a sum of `f32`, in units of its least number: lane `k` of a warp holds limb `k`.
///
/// Further lanes hold how often there was something that is not finite.
pub const LIMBS: usize = 12;
const NAN: u32 = LIMBS as u32;
const INFINITY: u32 = NAN + 1;
const NEGATIVE_INFINITY: u32 = NAN + 2;

/// Lanes that hold something.
pub const WORDS: usize = 16;

/// The most elements that a lane takes at once.
const MOST: usize = 32;

/// The exact sum of what the lanes of a warp have taken.
///
/// A lane adds its elements as two integers, in a [window](Window) that all lanes share. Sums of several lanes, or of
/// more elements than an integer has room for, go to limbs: so do elements that are not in the window, or that leave
/// something below it (`take_any`). All lanes of the warp call each function, and have taken as many elements.
#[derive(Clone, Copy)]
pub struct WarpSum {
    own: Accumulator<f32>,
    limb: i64,
    /// Whether something has gone to limbs; of all lanes the same.
    has_limbs: u32,
}

/// The largest magnitude in the packs of a warp, as its bits.
#[inline(always)]
pub fn largest_of_warp<T: Single, const PACKS: usize>(packs: &[T::Pack; PACKS]) -> u32 {
    let mut largest = 0;
    each::<PACKS>(|k| {
        let of_pack = packs[k].visit(Largest);
        largest = if of_pack > largest { of_pack } else { largest };
    });
    u32::reduce_max(FULL_MASK, largest)
}

/// A window that has room for the magnitude with these bits. Of magnitudes that are near to each other it is mostly
/// the same, so that the sums of several blocks can be added as they are.
#[inline(always)]
pub fn window_above(largest: u32) -> i32 {
    const STEP: i32 = 4;
    (f32::from_bits(largest).magnitude() + STEP - 1) & !(STEP - 1)
}

/// Calls a function with each number below `N`, which is at most 4. Not a loop: a compiler need not unroll one, and
/// then what is indexed by its counter lies in memory.
#[inline(always)]
fn each<const N: usize>(mut with: impl FnMut(usize)) {
    const { assert!(N <= 4) };
    with(0);
    if N > 1 {
        with(1);
    }
    if N > 2 {
        with(2);
    }
    if N > 3 {
        with(3);
    }
}

impl WarpSum {
    /// The sum of nothing, in the window of elements below `2^exponent`.
    #[inline(always)]
    pub fn in_window(exponent: i32) -> Self {
        Self { own: Accumulator::in_window(exponent), limb: 0, has_limbs: 0 }
    }

    /// The position of the window.
    #[inline(always)]
    pub fn position(&self) -> u32 {
        self.own.position()
    }

    /// Adds the elements of `packs`.
    #[inline(always)]
    pub fn take<T: Single, const PACKS: usize>(&mut self, packs: [T::Pack; PACKS]) {
        const { assert!(PACKS * T::Pack::LEN <= MOST) };
        let count = PACKS * T::Pack::LEN;
        self.make_room(count);
        let (window, mut bins) = (self.own.window(), Bins::EMPTY);
        each::<PACKS>(|k| bins = packs[k].visit(Extract { window, bins, element: PhantomData::<T> }));
        if self.add(bins, count) {
            return;
        }
        let mut elements = [0.0; MOST];
        each::<PACKS>(|k| packs[k].visit(CopyTo { elements: &mut elements, first: k * T::Pack::LEN }));
        self.take_other::<T>(bins, &mut elements, count);
    }

    /// Adds two elements, for which tiles leave room.
    #[inline(always)]
    pub fn take_two<T: Single>(&mut self, two: [T; 2]) {
        const { assert!(Window::<f32>::CAPACITY % 16 >= 2 && Window::<f32>::CAPACITY % 32 >= 2) };
        let window = self.own.window();
        let bins = window.extract(window.extract(Bins::EMPTY, two[0].single()), two[1].single());
        if self.add(bins, 2) {
            return;
        }
        let mut elements = [0.0; MOST];
        (elements[0], elements[1]) = (two[0].single(), two[1].single());
        self.take_other::<T>(bins, &mut elements, 2);
    }

    /// The sum: this lane's part of an integer, in units of the window that the sum began with, and its limb of all
    /// else.
    #[inline(always)]
    pub fn end(self) -> Ended {
        let Self { own, mut limb, has_limbs } = self;
        let mut value = own.value() as i64;
        if has_limbs != 0 {
            // The window may be another one.
            limb += digit(sum_of_lanes(value), own.position(), lane_id());
            value = 0;
        }
        Ended { value, limb, has_limbs: has_limbs != 0 }
    }

    /// Sees to it that `count` elements more have room.
    #[inline(always)]
    fn make_room(&mut self, count: usize) {
        if !self.own.has_room(count as u32) {
            self.limb += digit(sum_of_lanes(self.own.value() as i64), self.own.position(), lane_id());
            self.own = self.own.emptied();
            self.has_limbs = 1;
        }
    }

    /// Adds the bins of `count` elements; whether they are exact in all lanes.
    #[inline(always)]
    fn add(&mut self, bins: Bins<f32>, count: usize) -> bool {
        // Now, as all elements would have to be kept for a later addition.
        self.own = self.own.with(bins, count as u32).map_words(compute_now);
        !warp_vote_any(FULL_MASK, !bins.is_exact())
    }

    /// Adds elements whose bins were added and are not exact.
    #[inline(always)]
    fn take_other<T: Single>(&mut self, bins: Bins<f32>, elements: &mut [f32; MOST], count: usize) {
        let [upper, lower, so_far, window] = self.own.without(bins, count as u32).to_words();
        let mut words = [upper, lower, so_far, window, self.limb as u32, (self.limb >> 32) as u32];
        take_any(&mut words, elements, count);
        let [upper, lower, so_far, window, low, high] = words;
        self.own = match T::WINDOW {
            Some(exponent) => Accumulator::in_window(exponent),
            None => Accumulator::from_words([upper, lower, so_far, window]),
        };
        self.limb = (u64::from(low) | u64::from(high) << 32) as i64;
        self.has_limbs = 1;
    }
}

/// What a lane has of a [`WarpSum`].
#[derive(Clone, Copy)]
pub struct Ended {
    /// Its part of the sum, if nothing has gone to limbs; else 0.
    pub value: i64,
    /// Its limb.
    pub limb: i64,
    /// Whether something has gone to limbs; of all lanes the same.
    pub has_limbs: bool,
}

/// Empties an accumulator into limbs, adds elements of any values to them, and leaves an empty accumulator in the
/// window of the largest. Words are those of a [`WarpSum`].
///
/// Out of line, with arguments in memory: so the registers of whoever calls it are his.
#[cold]
#[inline(never)]
fn take_any(words: &mut [u32; 6], elements: &mut [f32; MOST], count: usize) {
    let [upper, lower, so_far, window, low, high] = *words;
    let own = Accumulator::<f32>::from_words([upper, lower, so_far, window]);
    let lane = lane_id();
    let mut limb = (u64::from(low) | u64::from(high) << 32) as i64;
    limb += digit(sum_of_lanes(own.value() as i64), own.position(), lane);

    let mut large = [0.0; MOST];
    let (mut has_large, mut has_nan, mut has_infinity, mut has_negative_infinity) = (false, false, false, false);
    let mut i = 0;
    while i < count {
        i = keep_rolled(i as u32) as usize;
        let element = elements[i];
        let is_finite = element.is_finite();
        let is_large = element.magnitude() > Window::<f32>::HIGHEST;
        has_nan |= element.is_nan();
        has_infinity |= element == f32::INFINITY;
        has_negative_infinity |= element == f32::NEG_INFINITY;
        has_large |= is_large & is_finite;
        large[i] = if is_large & is_finite { element * SCALE } else { 0.0 };
        elements[i] = if is_large { 0.0 } else { element };
        i += 1;
    }
    for (has_some, of_lane) in [(has_nan, NAN), (has_infinity, INFINITY), (has_negative_infinity, NEGATIVE_INFINITY)] {
        limb += i64::from(warp_vote_any(FULL_MASK, has_some) & (lane == of_lane));
    }
    if warp_vote_any(FULL_MASK, has_large) {
        extract_all(&mut large, count, SCALED_BY, &mut limb);
    }
    let exponent = extract_all(elements, count, 0, &mut limb);
    let [upper, lower, so_far, window] = Accumulator::<f32>::in_window(exponent).to_words();
    *words = [upper, lower, so_far, window, limb as u32, (limb >> 32) as u32];
}

/// What elements above all windows are multiplied by; none of them loses a bit.
const SCALE: f32 = 1.0 / (1 << SCALED_BY) as f32;
const SCALED_BY: u32 = 8;

/// Adds elements times `2^above` to limbs, in the window of the largest, then what they leave in that of the largest
/// of it, and so on until nothing is left: of elements within `2^40` of each other that is twice, of any at most
/// seven times. Gives the exponent of the first window, and leaves zeros in place of the elements.
#[inline(never)]
fn extract_all(elements: &mut [f32; MOST], count: usize, above: u32, limb: &mut i64) -> i32 {
    let mut first = None;
    loop {
        let (mut largest, mut i) = (0, 0);
        while i < count {
            i = keep_rolled(i as u32) as usize;
            let bits = elements[i].to_bits() & !f32::SIGN;
            largest = if bits > largest { bits } else { largest };
            i += 1;
        }
        let exponent = f32::from_bits(u32::reduce_max(FULL_MASK, largest)).magnitude();
        let (window, mut bins, mut i) = (Window::<f32>::new(exponent), Bins::EMPTY, 0);
        while i < count {
            i = keep_rolled(i as u32) as usize;
            elements[i] = window.extract_from(&mut bins, elements[i]);
            i += 1;
        }
        let value = window.drain(bins.upper, bins.lower, count as u32) as i64;
        *limb += digit(sum_of_lanes(value), window.position() + above, lane_id());
        let first = *first.get_or_insert(exponent);
        if !warp_vote_any(FULL_MASK, bins.has_residual()) {
            return first;
        }
    }
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

/// The largest magnitude in a pack, as its bits.
struct Largest;

impl<T: Single> PackVisitor<T> for Largest {
    type Result = u32;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> u32 {
        let (mut largest, mut i) = (0, 0);
        while i < LEN {
            let bits = elements[i].single().to_bits() & !f32::SIGN;
            largest = if bits > largest { bits } else { largest };
            i += 1;
        }
        largest
    }
}

/// Adds a pack's elements to bins.
struct Extract<T> {
    window: Window<f32>,
    bins: Bins<f32>,
    element: PhantomData<T>,
}

impl<T: Single> PackVisitor<T> for Extract<T> {
    type Result = Bins<f32>;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> Bins<f32> {
        let Self { window, mut bins, .. } = self;
        let mut i = 0;
        while i < LEN {
            let element = elements[i].single();
            bins = match T::WINDOW {
                Some(_) => window.extract_all(bins, element),
                None => window.extract(bins, element),
            };
            i += 1;
        }
        bins
    }
}

/// Copies a pack's elements.
struct CopyTo<'a> {
    elements: &'a mut [f32; MOST],
    first: usize,
}

impl<T: Single> PackVisitor<T> for CopyTo<'_> {
    type Result = ();

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) {
        let mut i = 0;
        while i < LEN {
            self.elements[self.first + i] = elements[i].single();
            i += 1;
        }
    }
}

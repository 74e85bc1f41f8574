//! Sums of blocks of elements at the speed of memory.

use core::ops::Range;

use crate::binary::Binary;
use crate::elements::BLOCK;
use crate::sum::{State, Superaccumulator, special};
use crate::window::{Bins, Window};

/// The number of elements that are extracted between two tests whether that was exact: below [`Window::CAPACITY`] of
/// each format, and a multiple of 32 elements, which several vectors hold.
const EXTRACTIONS: usize = BLOCK / 2;

/// Where sums of blocks are added: the state of a sum.
pub(crate) struct Sink<'a, L> {
    pub state: &'a mut State<L>,
    /// The position of the unit of the blocks' format in the state. If it is negative, the bits below the state's unit
    /// are 0 in all elements.
    pub offset: i32,
}

impl<L: Superaccumulator> Sink<'_, L> {
    /// Adds `value * 2^position`, in units of the blocks' format.
    #[inline]
    pub fn add(&mut self, value: i128, position: u32) {
        let position = position as i32 + self.offset;
        if value == 0 {
            return;
        }
        match u32::try_from(position) {
            Ok(position) => self.state.limbs.add(value, position),
            Err(_) => self.state.limbs.add(value >> (-position).min(127), 0),
        }
    }
}

/// Elements that are summed at a time, in memory or computed.
pub(crate) trait Block<F>: Copy {
    /// At most [`BLOCK`] elements.
    fn len(self) -> usize;
    /// A part, within the block.
    fn part(self, range: Range<usize>) -> Self;
    /// The elements.
    fn iter(self) -> impl Iterator<Item = F>;
}

impl<F: Binary> Block<F> for &[F] {
    #[inline(always)]
    fn len(self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn part(self, range: Range<usize>) -> Self {
        &self[range]
    }
    #[inline(always)]
    fn iter(self) -> impl Iterator<Item = F> {
        self.iter().copied()
    }
}

/// The largest magnitude of a block, or NaN.
#[inline(always)]
pub(crate) fn largest<F: Binary>(block: impl Block<F>) -> F {
    block.iter().fold(F::default(), F::larger)
}

/// The exponent of a window for elements up to this magnitude. A few exponents higher, so that the window of some
/// elements is that of most that follow, and so that no element rounds up to the window's edge.
#[inline(always)]
pub(crate) fn window_for<F: Binary>(largest: F) -> i32 {
    Window::<F>::nearest((largest.exponent_bound() + 4) & !3)
}

/// A sum of blocks, as an integer of a window, which moves to where the blocks' elements are.
pub(crate) struct Stream<F: Binary> {
    window: Window<F>,
    /// In units of the window's lower bin.
    sum: i128,
    /// How many blocks the sum has.
    blocks: u32,
    /// How many blocks in succession were in no window.
    failures: u32,
}

/// The maximum number of blocks in a sum. An element is an integer below 2^104, so that of this many blocks is below
/// 2^124.
const BLOCKS: u32 = 1 << 10;
/// After this many blocks that were in no window, the following ones are not tried.
const FAILURES: u32 = 3;
/// How many blocks are not tried.
const UNTRIED: u32 = 13;

impl<F: Binary> Stream<F> {
    #[inline(always)]
    pub fn new() -> Self {
        Self { window: Window::new(Window::<F>::LOWEST), sum: 0, blocks: 0, failures: 0 }
    }

    /// Adds at most [`BLOCK`] elements.
    #[inline(always)]
    pub fn add<L: Superaccumulator>(&mut self, block: impl Block<F>, sink: &mut Sink<'_, L>) {
        // An empty stream has no window yet.
        let is_tried = self.blocks > 0 && self.failures == 0;
        if is_tried && let Some(sum) = extract_all(&self.window, block) {
            self.sum += sum;
            self.blocks += 1;
            if self.blocks == BLOCKS {
                self.flush(sink);
            }
            return;
        }
        if self.failures < FAILURES {
            let largest = largest(block);
            let window = Window::new(window_for(largest));
            let is_finite = largest.exponent_bound() <= F::MAX_EXPONENT;
            if is_finite && let Some(sum) = extract_all(&window, block) {
                self.flush(sink);
                *self = Self { window, sum, blocks: 1, failures: 0 };
                return;
            }
        }
        self.failures = if self.failures < FAILURES + UNTRIED { self.failures + 1 } else { 0 };
        add_to_digits(block, sink);
    }

    /// Adds the sum to the sink, and leaves 0 in the same window.
    #[inline(always)]
    pub fn flush<L: Superaccumulator>(&mut self, sink: &mut Sink<'_, L>) {
        sink.add(self.sum, self.window.position());
        (self.sum, self.blocks) = (0, self.blocks.min(1));
    }
}

/// The sum of a block in units of the window's lower bin, if it is exact.
#[inline(always)]
pub(crate) fn extract_all<F: Binary>(window: &Window<F>, block: impl Block<F>) -> Option<i128> {
    let (mut sum, len) = (0, block.len());
    let mut at = 0;
    while at < len {
        let end = len.min(at + EXTRACTIONS);
        // Sums of integers, which the compiler divides among the lanes of vectors.
        let part = block.part(at..end).iter();
        let bins = part.fold(Bins::EMPTY, |bins, element| window.extract(bins, element));
        if !bins.is_exact() {
            return None;
        }
        sum += window.drain(bins.upper, bins.lower, (end - at) as u32);
        at = end;
    }
    Some(sum)
}

/// The number of digits of 32 bits that hold elements of any format, and one for the upper half of an element.
const DIGITS: usize = 65;
/// Elements are added to one of several sets of digits by turns: an addition then need not wait for the one before it.
const SETS: usize = 4;

/// Adds at most [`BLOCK`] elements, whatever they are, to digits of 32 bits in words of 64 bits.
///
/// Source: Neal, "Fast exact summation using small and large superaccumulators", 2015.
#[inline(always)]
pub(crate) fn add_to_digits<F: Binary, L: Superaccumulator>(block: impl Block<F>, sink: &mut Sink<'_, L>) {
    // An integer that was shifted by up to 31 places. Of `f32` it fits in a digit, as do sums of 2^8 of them. Of `f64`
    // the lower 32 bits, and the up to 53 others, go to two digits, which hold sums of 2^9.
    const { assert!(BLOCK / SETS <= 1 << 8 && u64::BITS - (f32::MANTISSA + 1 + 31) > 8) };
    let mut digits = [[0_i64; DIGITS]; SETS];
    for (index, element) in block.iter().enumerate() {
        if element.exponent_bound() > F::MAX_EXPONENT {
            sink.state.specials = sink.state.specials.union(special(element));
            continue;
        }
        let digits = &mut digits[index % SETS];
        let (integer, position) = element.integer_and_position();
        let (digit, shift) = ((position / 32) as usize, position % 32);
        if F::MANTISSA < 32 {
            digits[digit] += integer << shift;
        } else {
            digits[digit] += i64::from((integer << shift) as u32);
            digits[digit + 1] += integer >> (32 - shift);
        }
    }
    add_digits(&digits, sink);
}

/// Adds the sum of all sets of digits to the sink.
#[inline(never)]
fn add_digits<L: Superaccumulator>(digits: &[[i64; DIGITS]; SETS], sink: &mut Sink<'_, L>) {
    for digit in 0..DIGITS {
        let sum = digits.iter().map(|digits| i128::from(digits[digit])).sum();
        sink.add(sum, 32 * digit as u32);
    }
}

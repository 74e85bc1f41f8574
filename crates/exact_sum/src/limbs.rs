//! A superaccumulator: a fixed-point number wide enough for every sum.

/// An integer in limbs of 32 bits, each with 31 more bits for carries that have not been propagated.
///
/// The number is the sum of `limbs[k] * 2^(32 k)`. An addition changes a limb by less than `2^32`, so
/// [`Limbs::ADDITIONS`] additions fit before carries must be propagated. [`Limbs::add`] then propagates them.
///
/// Source: Kulisch and Miranker, "The arithmetic of the digital computer: a new approach", SIAM Review 28 (1986); Neal,
/// "Fast exact summation using small and large superaccumulators", 2015, for delayed carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limbs<const N: usize> {
    limbs: [i64; N],
    additions: u32,
}

impl<const N: usize> Default for Limbs<N> {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<const N: usize> Limbs<N> {
    /// 0.
    pub const ZERO: Self = Self { limbs: [0; N], additions: 0 };

    /// The number of additions before carries must be propagated. Each adds less than `2^32`, and a limb is below
    /// `2^32` after carries were propagated.
    pub const ADDITIONS: u32 = {
        const ADDITIONS: u32 = (1 << 30) - 1;
        assert!((ADDITIONS as i128 + 1) << 32 < 1 << 63);
        ADDITIONS
    };

    /// Adds `value * 2^position`. Bits beyond the last limb are lost: choose `N` large enough.
    #[inline]
    pub fn add(&mut self, value: i128, position: u32) {
        self.count_addition();
        let (mut limb, shift) = ((position / 32) as usize, position % 32);
        // The bits of the shifted value in the lowest limb, and those above.
        let mut low = (value as u32) << shift;
        let mut rest = value >> (32 - shift);
        while limb + 1 < N {
            self.limbs[limb] += i64::from(low);
            limb += 1;
            if rest == 0 {
                return;
            }
            if rest == -1 {
                self.limbs[limb] -= 1;
                return;
            }
            low = rest as u32;
            rest >>= 32;
        }
        if limb < N {
            self.limbs[limb] += i64::from(low) + ((rest as i64) << 32);
        }
    }

    /// Adds another number.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        // Limbs of each are below 2^62.
        let mut k = 0;
        while k < N {
            self.limbs[k] += other.limbs[k];
            k += 1;
        }
        self.propagate_carries();
    }

    #[inline]
    fn count_addition(&mut self) {
        if self.additions == Self::ADDITIONS {
            self.propagate_carries();
        }
        self.additions += 1;
    }

    /// Propagates carries, so that all limbs but the last are in `0..2^32` and equal numbers have equal limbs.
    #[inline]
    pub fn propagate_carries(&mut self) {
        let mut k = 0;
        while k + 1 < N {
            let carry = self.limbs[k] >> 32;
            self.limbs[k] -= carry << 32;
            self.limbs[k + 1] += carry;
            k += 1;
        }
        self.additions = 0;
    }

    /// Limb `k`.
    #[inline(always)]
    pub fn limb(&self, k: usize) -> i64 {
        self.limbs[k]
    }

    /// Replaces limb `k` with a value below `2^62` in magnitude; propagate carries next.
    #[inline]
    pub fn set_limb(&mut self, k: usize, limb: i64) {
        self.limbs[k] = limb;
        self.additions = Self::ADDITIONS;
    }

    /// Adds to limb `k` only, less than `2^32` in magnitude.
    #[inline]
    pub fn add_to_limb(&mut self, k: usize, amount: i64) {
        self.count_addition();
        self.limbs[k] += amount;
    }

    /// The number's sign, and the highest 128 bits of its magnitude.
    #[inline]
    pub fn leading(&self) -> Leading {
        let mut magnitude = *self;
        magnitude.propagate_carries();
        let is_negative = magnitude.limbs[N - 1] < 0;
        if is_negative {
            let mut k = 0;
            while k < N {
                magnitude.limbs[k] = -magnitude.limbs[k];
                k += 1;
            }
            magnitude.propagate_carries();
        }
        let limbs = &magnitude.limbs;
        let mut top = N;
        while top > 0 && limbs[top - 1] == 0 {
            top -= 1;
        }
        if top == 0 {
            return Leading::ZERO;
        }
        // Only the last limb may have more than 32 bits.
        let (mut bits, mut position) = (limbs[top - 1] as u128, 32 * (top as i32 - 1));
        let mut next = top - 1;
        while next > 0 && bits.leading_zeros() >= 32 {
            next -= 1;
            bits = (bits << 32) | limbs[next] as u128;
            position -= 32;
        }
        let zeros = bits.leading_zeros();
        bits <<= zeros;
        position -= zeros as i32;
        let mut is_inexact = false;
        if next > 0 {
            next -= 1;
            bits |= (limbs[next] as u128) >> (32 - zeros);
            is_inexact = (limbs[next] as u32) << zeros != 0;
        }
        while next > 0 {
            next -= 1;
            is_inexact |= limbs[next] != 0;
        }
        Leading { is_negative, bits, position, is_inexact }
    }
}

/// The highest 128 bits of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leading {
    /// Whether the number is negative.
    pub is_negative: bool,
    /// The bits, with the highest bit set; 0 for the number 0.
    pub bits: u128,
    /// The exponent of the lowest bit, in units of the number.
    pub position: i32,
    /// Whether any lower bit is one.
    pub is_inexact: bool,
}

impl Leading {
    /// 0.
    pub const ZERO: Self = Self { is_negative: false, bits: 0, position: 0, is_inexact: false };

    /// The leading bits of `value * 2^position`.
    #[inline(always)]
    pub fn of(value: i128, position: i32) -> Self {
        if value == 0 {
            return Self::ZERO;
        }
        let magnitude = value.unsigned_abs();
        let zeros = magnitude.leading_zeros();
        Self { is_negative: value < 0, bits: magnitude << zeros, position: position - zeros as i32, is_inexact: false }
    }

    /// The leading bits of `a * 2^i + b * 2^j`, for two numbers of at most 120 bits. `None` if `i` and `j` are 128 or
    /// more apart.
    #[inline]
    pub fn of_two(a: (i128, u32), b: (i128, u32)) -> Option<Self> {
        let ((above, i), (below, j)) = if a.1 >= b.1 { (a, b) } else { (b, a) };
        let distance = i - j;
        if distance >= 128 {
            return None;
        }
        // Two words of 128 bits; the upper one carries the sign.
        let carried = (above >> 1) >> (127 - distance);
        let (low, has_carry) = ((above << distance) as u128).overflowing_add(below as u128);
        let high = carried + (below >> 127) + i128::from(has_carry);
        let is_negative = high < 0;
        let (low, high) = match is_negative {
            true => (low.wrapping_neg(), (!high as u128).wrapping_add(u128::from(low == 0))),
            false => (low, high as u128),
        };
        let words = [low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64];
        let magnitude = Self::of_words(words);
        let is_zero = magnitude.bits == 0;
        Some(if is_zero {
            magnitude
        } else {
            Self { is_negative, position: magnitude.position + j as i32, ..magnitude }
        })
    }

    /// The leading bits of an integer of `N` words, lowest first.
    #[inline]
    pub fn of_words<const N: usize>(words: [u64; N]) -> Self {
        const { assert!(N >= 2) };
        let (mut words, mut position, mut k) = (words, 64 * (N as i32 - 2), 1);
        // Moves the highest nonzero word to the last index. All indices are constants: other indices would force the
        // array into memory.
        while k < N {
            if words[N - 1] == 0 {
                let mut i = N - 1;
                while i > 0 {
                    words[i] = words[i - 1];
                    i -= 1;
                }
                words[0] = 0;
                position -= 64;
            }
            k += 1;
        }
        if words[N - 1] == 0 {
            return Self::ZERO;
        }
        let zeros = words[N - 1].leading_zeros();
        let (mut bits, mut is_inexact) = ((words[N - 1] as u128) << 64 | words[N - 2] as u128, false);
        bits <<= zeros;
        if N > 2 {
            bits |= ((words[N - 3] as u128) << zeros) >> 64;
            is_inexact = words[N - 3] << zeros != 0;
            let mut i = 0;
            while i + 3 < N {
                is_inexact |= words[i] != 0;
                i += 1;
            }
        }
        Self { is_negative: false, bits, position: position - zeros as i32, is_inexact }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_are_propagated_after_the_maximum_of_additions() {
        let mut limbs = Limbs::<2> { limbs: [1 << 40, 0], additions: Limbs::<2>::ADDITIONS - 2 };
        limbs.add(1, 0);
        limbs.add_to_limb(0, 1);
        assert_eq!(limbs.limbs, [(1 << 40) + 2, 0]);
        limbs.add(1, 0);
        assert_eq!((limbs.limbs, limbs.additions), ([3, 1 << 8], 1));
    }
}

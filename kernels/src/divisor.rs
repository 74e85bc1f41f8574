//! Division by a runtime constant: one multiplication.

use cuda_std::bits::mul_hi;

/// A divisor of at least 2, for dividends below 2^16. A division takes one multiplication; preparing the divisor takes
/// one division.
#[derive(Clone, Copy)]
pub(crate) struct Divisor {
    value: u32,
    /// 2^32 divided by `value`, rounded up.
    reciprocal: u32,
}

impl Divisor {
    #[inline(always)]
    pub fn new(value: u32) -> Self {
        Self { value, reciprocal: u32::MAX / value + 1 }
    }

    /// The number that this divides by.
    #[inline(always)]
    pub fn value(self) -> u32 {
        self.value
    }

    /// The quotient and the remainder.
    #[inline(always)]
    pub fn div_rem(self, number: u32) -> (u32, u32) {
        let quotient = mul_hi(number, self.reciprocal);
        (quotient, number - quotient * self.value)
    }

    /// [`Divisor::div_rem`] by a 64-bit product, which compiles to two instructions. Not for a dividend that changes in
    /// a loop: `ptxas` compiles some of those [wrongly](mul_hi). This form is faster for short rows (sums of 1000003 x
    /// 127 `f32` take 127.3 us on an H200 instead of 132.8) and for aligned interleaved rows (8192 x 512 x 3 `u16`
    /// reversed takes 13.1 us instead of 13.7). (`docs/notes/division.md`)
    #[inline(always)]
    pub fn div_rem_outside_loops(self, number: u32) -> (u32, u32) {
        let quotient = ((u64::from(number) * u64::from(self.reciprocal)) >> 32) as u32;
        (quotient, number - quotient * self.value)
    }

    /// The quotient and remainder of `first`, and then of `first + step`, `first + 2 * step`, ..., without further
    /// multiplications.
    #[inline(always)]
    pub fn walk(self, first: u32, step: u32) -> Walk {
        let (quotient, remainder) = self.div_rem(first);
        Walk { quotient, remainder, step: self.div_rem(step), divisor: self.value }
    }
}

/// The quotient and remainder of a dividend that grows in equal steps.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    pub quotient: u32,
    pub remainder: u32,
    step: (u32, u32),
    divisor: u32,
}

impl Walk {
    /// The quotient and remainder one step later.
    #[inline(always)]
    pub fn next(self) -> Self {
        let (quotient, remainder) = (self.quotient + self.step.0, self.remainder + self.step.1);
        if remainder < self.divisor {
            Self { quotient, remainder, ..self }
        } else {
            Self { quotient: quotient + 1, remainder: remainder - self.divisor, ..self }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_gives_each_quotient_and_remainder() {
        for (by, step) in [(2, 256), (3, 256), (127, 256), (256, 256), (1000, 256), (7, 1)] {
            let (divisor, mut walk) = (Divisor::new(by), Divisor::new(by).walk(5, step));
            for number in (5..60000).step_by(step as usize) {
                assert_eq!((walk.quotient, walk.remainder), divisor.div_rem(number), "{number} / {by}");
                walk = walk.next();
            }
        }
    }

    #[test]
    fn quotients_are_exact() {
        for by in (2..1000).chain([4096, 32767, 65535]) {
            let divisor = Divisor::new(by);
            for number in (0..3000).chain([by - 1, by, 65534, 65535]) {
                assert_eq!(divisor.div_rem(number), (number / by, number % by), "{number} / {by}");
                assert_eq!(divisor.div_rem_outside_loops(number), divisor.div_rem(number), "{number} / {by}");
            }
        }
    }
}

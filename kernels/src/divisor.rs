//! Division by a number that a kernel is given.

/// A divisor of at least 2, for numbers below 2^16: a quotient is a multiplication, and one division is done to prepare it.
#[derive(Clone, Copy)]
pub(crate) struct Divisor {
    by: u32,
    /// 2^32 divided by it, rounded up.
    reciprocal: u32,
}

impl Divisor {
    #[inline(always)]
    pub fn new(by: u32) -> Self {
        Self { by, reciprocal: u32::MAX / by + 1 }
    }

    /// What it divides by.
    #[inline(always)]
    pub fn by(self) -> u32 {
        self.by
    }

    /// The quotient and the remainder.
    #[inline(always)]
    pub fn divide(self, number: u32) -> (u32, u32) {
        let quotient = ((u64::from(number) * u64::from(self.reciprocal)) >> 32) as u32;
        (quotient, number - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_exact() {
        for by in (2..1000).chain([4096, 32767, 65535]) {
            let divisor = Divisor::new(by);
            for number in (0..3000).chain([by - 1, by, 65534, 65535]) {
                assert_eq!(divisor.divide(number), (number / by, number % by), "{number} / {by}");
            }
        }
    }
}

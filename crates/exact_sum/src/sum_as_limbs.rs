//! Sums from limbs and as limbs, for devices that keep sums in another form.

use crate::compact::Specials;
use crate::sum::{ExactSum, MAX_ELEMENTS, State, Summand, Superaccumulator, TooManyElements};

impl<T: Summand> ExactSum<T> {
    /// A sum of `count` elements from its limbs, lowest first: the sum of `limbs[k] * 2^(32 k)`, in units of the
    /// smallest subnormal number of [`Summand::Binary`]. A limb is below `2^62` in magnitude; limbs beyond those of
    /// [`ExactSum::limbs`] only extend the sign.
    ///
    /// # Errors
    /// If `count` exceeds [`MAX_ELEMENTS`].
    pub fn from_limbs(
        limbs: impl IntoIterator<Item = i64>,
        specials: Specials,
        count: u64,
    ) -> Result<Self, TooManyElements> {
        if count > MAX_ELEMENTS {
            return Err(TooManyElements { count });
        }
        let last = T::Limbs::LEN - 1;
        let mut state = State { specials, count, ..State::<T::Limbs>::default() };
        let (mut carry, mut top) = (0, 0_i128);
        for (k, limb) in limbs.into_iter().enumerate().take(last + 2) {
            if k < last {
                let sum = limb + carry;
                state.limbs.add_to_limb(k, sum & 0xffff_ffff);
                carry = sum >> 32;
            } else {
                top += i128::from(limb) << (32 * (k - last));
            }
        }
        state.limbs.add_to_limb(last, top as i64 + carry);
        Ok(Self { state })
    }

    /// The sum's limbs, as [`ExactSum::from_limbs`] takes them. Equal sums have equal limbs, all but the last in
    /// `0..2^32`; the limbs are 0 if any element is not finite.
    pub fn limbs(&self) -> impl Iterator<Item = i64> + use<T> {
        let state = self.state.canonical();
        (0..T::Limbs::LEN).map(move |k| state.limbs.limb(k))
    }

    /// The non-finite elements.
    pub fn specials(&self) -> Specials {
        self.state.specials
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn limbs_round_trip() {
        let numbers = [1.0, -1.0, 1e300, -1e300, 5e-324, -5e-324, f64::MAX, -f64::MAX, 0.1, f64::NAN, f64::INFINITY];
        for first in numbers {
            for second in numbers {
                let sum = ExactSum::<f64>::from_iter([first, second, second]);
                let again = ExactSum::from_limbs(sum.limbs(), sum.specials(), sum.count());
                assert_eq!(again, Ok(sum), "{first} and twice {second}");
            }
        }
        let least = |limbs: &[i64]| ExactSum::<f32>::from_limbs(limbs.iter().copied(), Specials::EMPTY, 1).unwrap();
        // Unpropagated carries, and one more limb, which carries the sign.
        assert_eq!(least(&[5 << 32, -3]).value(), 2.0 * 2.0_f32.powi(32 - 149));
        assert_eq!(least(&[-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).value(), -f32::from_bits(1));
        let negative: Vec<i64> = (0..12).map(|k| if k < 11 { 0xffff_ffff } else { -1 }).collect();
        assert_eq!(least(&negative).value(), -f32::from_bits(1));
        let of_all = ExactSum::<f32>::from_limbs([1], Specials::EMPTY, MAX_ELEMENTS).unwrap();
        assert_eq!((of_all.count(), of_all.value()), (MAX_ELEMENTS, f32::from_bits(1)));
        let count = MAX_ELEMENTS + 1;
        assert_eq!(ExactSum::<f32>::from_limbs([], Specials::EMPTY, count), Err(TooManyElements { count }));
    }
}

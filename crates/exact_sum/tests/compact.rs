//! The states that blocks exchange: as words, and their sums, against big integers.

use exact_sum::{Compact, Specials};
use num_bigint::BigInt;

/// The integers at the edges of `bits` bits, and some others.
fn values(bits: u32) -> Vec<i128> {
    let edge = 1_i128 << (bits - 2);
    let others = [0, 1, 2, 3, 1 << 40, (1 << 63) - 1, edge - 1, edge, edge + (edge - 1)];
    others.into_iter().flat_map(|x| [x, -x, -x - 1]).collect()
}

#[test]
fn words_keep_every_field() {
    for value in values(112) {
        for position in [0, 1, 32, 2047, 4095] {
            for bits in 0..8 {
                for has_limbs in [false, true] {
                    let specials = Specials::from_bits(bits).unwrap();
                    let state = Compact::<112> { value, position, specials, has_limbs };
                    assert_eq!(Compact::from_bits(state.to_bits()), state);
                }
            }
        }
    }
    assert_eq!(Compact::<112>::ZERO.to_bits(), 0);
    assert_eq!((Specials::from_bits(8), Specials::from_bits(u8::MAX)), (None, None));
}

fn number(value: i128, position: u32) -> BigInt {
    BigInt::from(value) << position
}

/// A sum is exact. If it fits in `BITS` bits, it is one integer. Otherwise it is the integer with the higher position
/// (the first if the positions are equal), and the other integer is the remainder.
fn sums_are_exact<const BITS: u32>() {
    let limit: BigInt = BigInt::from(1) << (BITS - 1);
    let fits = |value: &BigInt| *value >= -limit.clone() && *value < limit;
    for value in values(BITS) {
        assert!(Compact::<BITS>::fits(value));
        for other in values(BITS) {
            for (at, of_other) in [(0, 0), (40, 40), (41, 40), (5, 9), (0, BITS - 1), (BITS, 0), (200, 201), (500, 0)] {
                let (one, none) = (Specials::nan(), Specials::EMPTY);
                let first = Compact::<BITS> { value, position: at, specials: one, has_limbs: false };
                let second = Compact::<BITS> { value: other, position: of_other, specials: none, has_limbs: true };
                let (sum, left) = first.combine(second);
                assert_eq!((sum.specials, sum.has_limbs), (one, true));
                let case = format!("{value} at {at} and {other} at {of_other}");
                let total = number(value, at) + number(other, of_other);
                let (left_value, left_at) = left.unwrap_or((0, 0));
                assert_eq!(number(sum.value, sum.position) + number(left_value, left_at), total, "{case}");
                let lowest = at.min(of_other);
                let both = [number(value, at - lowest), number(other, of_other - lowest), total >> lowest];
                let is_one = both.iter().all(fits) || value == 0 || other == 0;
                assert_eq!(left.is_none(), is_one, "{case}");
                if !is_one {
                    let (high, low) = if at >= of_other { (first, second) } else { (second, first) };
                    assert_eq!(
                        ((sum.value, sum.position), left),
                        ((high.value, high.position), Some((low.value, low.position)))
                    );
                }
            }
        }
    }
}

#[test]
fn sums_are_exact_and_leave_a_remainder_only_if_they_do_not_fit() {
    sums_are_exact::<112>();
    sums_are_exact::<128>();
    sums_are_exact::<65>();
}

#[test]
fn integers_are_shifted_if_they_fit() {
    for value in values(112) {
        for places in [0, 1, 5, 63, 64, 110, 111, 112, 200] {
            let shifted = number(value, places);
            let limit: BigInt = BigInt::from(1) << 111;
            let fits = shifted >= -limit.clone() && shifted < limit && places < 112;
            let found = Compact::<112>::shifted(value, places).map(BigInt::from);
            assert_eq!(found, if fits { Some(shifted) } else { None }, "{value} * 2^{places}");
        }
    }
    // 112 bits, of which the highest is the sign.
    assert!(!Compact::<112>::fits(1 << 111) && !Compact::<112>::fits(-(1 << 111) - 1));
    assert!(Compact::<112>::fits((1 << 111) - 1) && Compact::<112>::fits(-1 << 111));
}

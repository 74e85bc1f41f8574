//! Changes to the input that leave a sum unchanged, or change it in a known way.

use exact_sum::{Elements, ExactDot, ExactSum};
use proptest::prelude::*;

/// Properties of sums and of dot products of a type. In the scaling tests, exponents of elements and of factors are
/// below `$scale` in magnitude.
macro_rules! properties {
    ($($type:ident within $scale:literal;)*) => {$(mod $type {
        use super::*;

        type Pairs = Vec<($type, $type)>;

        /// Any pairs, including NaN and infinities.
        fn pairs() -> impl Strategy<Value = Pairs> {
            use prop::num::$type::{ANY, INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
            let finite = POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO;
            let of = |number: prop::num::$type::Any| prop::collection::vec((number, number), 0..60);
            prop_oneof![4 => of(finite), 1 => of(finite | INFINITE), 1 => of(ANY)]
        }

        /// Pairs that can be scaled without rounding.
        fn moderate() -> impl Strategy<Value = Pairs> {
            let number = || (-1.0..1.0 as $type, -$scale..$scale).prop_map(|(x, e)| x * $type::powi(2.0, e));
            prop::collection::vec((number(), number()), 0..60)
        }

        fn sums(pairs: &[($type, $type)]) -> (ExactSum<$type>, ExactDot<$type>) {
            (pairs.iter().map(|(x, _)| *x).collect(), pairs.iter().copied().collect())
        }

        fn norm(pairs: &[($type, $type)]) -> $type {
            pairs.iter().map(|(x, _)| (*x, *x)).collect::<ExactDot<$type>>().sqrt()
        }

        fn merged(mut parts: Vec<(ExactSum<$type>, ExactDot<$type>)>) -> (ExactSum<$type>, ExactDot<$type>) {
            // Each iteration merges two neighbours in the middle.
            while parts.len() > 1 {
                let (sum, dot) = parts.remove(parts.len() / 2);
                let at = (parts.len() - 1) / 2;
                parts[at].0.merge(&sum).unwrap();
                parts[at].1.merge(&dot).unwrap();
            }
            parts.pop().unwrap_or_default()
        }

        proptest! {
            #[test]
            fn a_permutation_changes_no_bit(
                (all, shuffled) in pairs().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
            ) {
                let (before, after) = (sums(&all), sums(&shuffled));
                prop_assert_eq!(before.0.to_bytes(), after.0.to_bytes());
                prop_assert_eq!(before.1.to_bytes(), after.1.to_bytes());
                prop_assert_eq!(before.0.value().to_bits(), after.0.value().to_bits());
                prop_assert_eq!(before.0.mean::<$type>().to_bits(), after.0.mean::<$type>().to_bits());
                prop_assert_eq!(before.1.value().to_bits(), after.1.value().to_bits());
                prop_assert_eq!(norm(&all).to_bits(), norm(&shuffled).to_bits());
            }

            #[test]
            fn a_sum_can_be_extended(first in pairs(), then in pairs()) {
                let (mut sum, mut dot) = sums(&first);
                sum.extend(then.iter().map(|(x, _)| *x));
                dot.extend(then.iter().copied());
                let whole = sums(&[first, then].concat());
                prop_assert_eq!((sum, dot), whole);
                prop_assert_eq!(sum.to_bytes(), whole.0.to_bytes());
                prop_assert_eq!(dot.to_bytes(), whole.1.to_bytes());
            }

            #[test]
            fn slices_have_the_sums_of_their_elements(first in pairs(), then in pairs(), stride in 1_usize..4) {
                let (mut sum, mut dot) = sums(&first);
                let (x, y): (Vec<_>, Vec<_>) = then.iter().copied().unzip();
                sum.add_slice(&x);
                dot.add_slices(&x, &y).unwrap();
                dot.add_squares(&x);
                let squares: Pairs = x.iter().map(|x| (*x, *x)).collect();
                prop_assert_eq!(sum, sums(&[&first[..], &then].concat()).0);
                prop_assert_eq!(dot.to_bytes(), sums(&[&first[..], &then, &squares].concat()).1.to_bytes());
                let few: Vec<_> = x.iter().copied().step_by(stride).collect();
                let elements = Elements::strided(&x, 0, stride as isize, few.len()).unwrap();
                let expected = few.iter().copied().collect::<ExactSum<_>>().value();
                prop_assert_eq!(elements.sum::<$type>().to_bits(), expected.to_bits());
            }

            #[test]
            fn merged_parts_equal_the_whole(
                parts in prop::collection::vec(pairs(), 0..8).prop_flat_map(|parts| Just(parts).prop_shuffle()),
            ) {
                let merged = merged(parts.iter().rev().map(|part| sums(part)).collect());
                let whole = sums(&parts.concat());
                prop_assert_eq!(merged, whole);
                prop_assert_eq!(merged.0.to_bytes(), whole.0.to_bytes());
                prop_assert_eq!(merged.1.to_bytes(), whole.1.to_bytes());
            }

            #[test]
            fn scaling_by_a_power_of_two_scales_the_results(all in moderate(), places in -$scale..$scale) {
                let scale = $type::powi(2.0, places);
                let scaled: Pairs = all.iter().map(|(x, y)| (x * scale, *y)).collect();
                let (before, after) = (sums(&all), sums(&scaled));
                prop_assert_eq!(after.0.value(), before.0.value() * scale);
                prop_assert_eq!(after.1.value(), before.1.value() * scale);
                prop_assert_eq!(norm(&scaled), norm(&all) * scale);
                if !all.is_empty() {
                    prop_assert_eq!(after.0.mean::<$type>(), before.0.mean::<$type>() * scale);
                }
            }

            #[test]
            fn negating_the_input_negates_the_sums(all in pairs()) {
                let negated: Pairs = all.iter().map(|(x, y)| (-x, *y)).collect();
                let (before, after) = (sums(&all), sums(&negated));
                let is_opposite = |x: $type, y: $type| x == -y || x.is_nan() && y.is_nan();
                prop_assert!(is_opposite(after.0.value(), before.0.value()));
                prop_assert!(is_opposite(after.0.mean(), before.0.mean()));
                prop_assert!(is_opposite(after.1.value(), before.1.value()));
                prop_assert_eq!(norm(&negated).to_bits(), norm(&all).to_bits());
                let nothing = sums(&[&all[..], &negated].concat());
                let is_finite = all.iter().all(|(x, y)| x.is_finite() && y.is_finite());
                prop_assert!(!is_finite || (nothing.0.value().to_bits(), nothing.1.value().to_bits()) == (0, 0));
            }

            #[test]
            fn bytes_and_json_round_trip(all in pairs()) {
                let (sum, dot) = sums(&all);
                prop_assert_eq!(ExactSum::from_bytes(&sum.to_bytes()), Ok(sum));
                prop_assert_eq!(ExactDot::from_bytes(&dot.to_bytes()), Ok(dot));
                let json = serde_json::to_string(&(sum, dot)).unwrap();
                prop_assert_eq!(serde_json::from_str::<(ExactSum<$type>, ExactDot<$type>)>(&json).unwrap(), (sum, dot));
            }
        }
    })*};
}

properties! {
    f32 within 20;
    f64 within 200;
}

proptest! {
    #[test]
    fn any_bytes_are_a_sum_or_an_error(bytes: Vec<u8>) {
        let _ = ExactSum::<f32>::from_bytes(&bytes);
        let mut with_header = b"xsum\x01\x03\x00\x00".to_vec();
        with_header.extend(bytes);
        let _ = ExactSum::<f32>::from_bytes(&with_header);
    }
}

#[test]
fn json_of_another_type_is_an_error() {
    let json = serde_json::to_string(&ExactSum::<f32>::from_iter([1.0])).unwrap();
    let error = serde_json::from_str::<ExactSum<f64>>(&json).unwrap_err();
    assert!(error.to_string().contains("an exact sum of f32, expected one of f64"), "{error}");
    assert!(serde_json::from_str::<ExactSum<f32>>("[120, 115]").is_err());
}

#[test]
fn a_sum_is_displayed_as_its_value() {
    let sum: ExactSum<f64> = [0.1, 0.2].into_iter().collect();
    assert_eq!(format!("{sum} {sum:.3}"), "0.30000000000000004 0.300");
}

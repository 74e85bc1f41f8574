//! What must not change a sum, and how it is written.

use exact_sum::bytes::FromBytesError;
use exact_sum::{ExactDot, ExactSum};
use proptest::prelude::*;

fn sum(elements: &[f64]) -> ExactSum<f64> {
    elements.iter().copied().collect()
}

fn elements() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(any::<f64>(), 0..60)
}

/// Finite, and small enough to be scaled.
fn moderate() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-1.0..1.0, -200..200), 0..60)
        .prop_map(|all| all.into_iter().map(|(x, e): (f64, i32)| x * 2_f64.powi(e)).collect())
}

proptest! {
    #[test]
    fn order_does_not_count(mut all in elements(), seed: u64) {
        let before = sum(&all);
        let len = all.len().max(1) as u64;
        for i in 0..all.len() {
            all.swap(i, (seed.wrapping_mul(i as u64 + 7) % len) as usize);
        }
        prop_assert_eq!(before.to_bytes(), sum(&all).to_bytes());
        prop_assert_eq!(before.value().to_bits(), sum(&all).value().to_bits());
    }

    #[test]
    fn parts_make_the_whole(all in elements(), at in 0.0..1.0) {
        let (first, last) = all.split_at((all.len() as f64 * at) as usize);
        let mut merged = sum(last);
        merged.merge(&sum(first)).unwrap();
        prop_assert_eq!(merged, sum(&all));
        prop_assert_eq!(merged.to_bytes(), sum(&all).to_bytes());
    }

    #[test]
    fn powers_of_two_and_signs_go_through(all in moderate(), places in -100..100) {
        let scale = 2_f64.powi(places);
        let scaled: Vec<f64> = all.iter().map(|x| x * scale).collect();
        prop_assert_eq!(sum(&scaled).value(), sum(&all).value() * scale);
        let negated: Vec<f64> = all.iter().map(|x| -x).collect();
        prop_assert_eq!(sum(&negated).value(), -sum(&all).value());
    }

    #[test]
    fn a_sum_comes_back_from_its_bytes(all in elements()) {
        let before = sum(&all);
        let bytes = before.to_bytes();
        prop_assert_eq!(ExactSum::<f64>::from_bytes(&bytes).unwrap(), before);
        let json = serde_json::to_string(&before).unwrap();
        prop_assert_eq!(serde_json::from_str::<ExactSum<f64>>(&json).unwrap(), before);
    }

    #[test]
    fn altered_bytes_are_no_sum(all in elements(), place: prop::sample::Index, bit in 0..8_u32) {
        let mut bytes = sum(&all).to_bytes();
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(ExactSum::<f64>::from_bytes(&bytes).is_err());
        let cut = &sum(&all).to_bytes()[..at];
        prop_assert!(ExactSum::<f64>::from_bytes(cut).is_err());
    }

    #[test]
    fn any_bytes_are_a_sum_or_an_error(bytes: Vec<u8>) {
        let _ = ExactSum::<f32>::from_bytes(&bytes);
        let mut with_header = b"xsum\x01\x03\x00\x00".to_vec();
        with_header.extend(bytes);
        let _ = ExactSum::<f32>::from_bytes(&with_header);
    }
}

#[test]
fn what_is_wrong_with_bytes_is_said() {
    let bytes = [1.0_f32, 2.0].into_iter().collect::<ExactSum<f32>>().to_bytes();
    let error = |bytes: &[u8]| ExactSum::<f32>::from_bytes(bytes).unwrap_err();
    assert_eq!(error(b"PK\x03\x04"), FromBytesError::NotASum);
    assert_eq!(error(&bytes[..3]), FromBytesError::Length { found: 3, expected: bytes.len() });
    assert_eq!(error(&bytes[..20]), FromBytesError::Length { found: 20, expected: bytes.len() });
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(error(&longer), FromBytesError::Length { found: bytes.len() + 1, expected: bytes.len() });
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        error(&bytes)
    };
    assert_eq!(with(4, 2), FromBytesError::Version { found: 2 });
    assert_eq!(with(5, 4), FromBytesError::Type { found: 4, expected: 3 });
    assert_eq!(with(8, 9), FromBytesError::Altered);
    let other = ExactDot::<f32>::from_bytes(&bytes).unwrap_err();
    assert_eq!(other.to_string(), "an exact sum of f32, where one of products of f32 is read");
}

#[test]
fn the_bytes_of_version_1_stay() {
    let sum: ExactSum<f32> = [1.0, -2.5, 1e-40].into_iter().collect();
    let hex: String = sum.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let (header, limbs) = (
        "7873756d010300000300000000000000",
        "c21601000000000000000000000000000000d0ffffffffffffffffffffffffffffffffffffffffffffffffff",
    );
    assert_eq!(hex, format!("{header}{limbs}dfdad398"));
}

#[test]
fn a_sum_is_shown_as_its_value() {
    let sum: ExactSum<f64> = [0.1, 0.2].into_iter().collect();
    assert_eq!(format!("{sum} {sum:.3}"), "0.30000000000000004 0.300");
}

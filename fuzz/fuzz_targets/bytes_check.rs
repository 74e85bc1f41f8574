//! Properties of reading any bytes as an exact sum. The fuzzer searches for bytes that violate them, and a test of
//! `exact_sum` replays `corpus/exact_bytes/`.

use exact_sum::{ExactDot, ExactSum};
use half::{bf16, f16};

/// Reads bytes as each type of sum, first unchanged, then with a correct checksum. Returns whether they are a sum.
///
/// # Panics
/// - A sum that was read is written as other bytes.
/// - Twice the sum cannot be written and read.
/// - Two types read the same bytes.
/// - An error message has 200 or more characters.
pub fn check(bytes: &[u8]) -> bool {
    // Random bytes almost never have a correct checksum.
    let with_checksum = bytes.split_last_chunk::<4>().map(|(content, _)| {
        let checksum = crc32fast::hash(content).to_le_bytes();
        [content, &checksum].concat()
    });
    let is_sum = read(bytes);
    with_checksum.is_some_and(|bytes| read(&bytes)) || is_sum
}

macro_rules! count_readers {
    ($bytes:ident as $($sum:ident of $($type:ident)*),*) => {0 $($(+ match $sum::<$type>::from_bytes($bytes) {
        Ok(sum) => {
            assert_eq!(sum.to_bytes(), $bytes);
            let mut twice = sum;
            if twice.merge(&sum).is_ok() {
                assert_eq!($sum::<$type>::from_bytes(&twice.to_bytes()).as_ref(), Ok(&twice));
            }
            assert!(!sum.value().is_finite() || !sum.rounded::<f64>().is_nan());
            1
        }
        Err(error) => {
            assert!(error.to_string().len() < 200, "{error}");
            0
        }
    })*)*};
}

fn read(bytes: &[u8]) -> bool {
    let readers = count_readers!(bytes as ExactSum of f16 bf16 f32 f64, ExactDot of f16 bf16 f32 f64);
    assert!(readers <= 1, "{readers} types read the same bytes");
    readers == 1
}

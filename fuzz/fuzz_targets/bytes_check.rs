//! What is true of any bytes that are read as an exact sum. The fuzzer looks for bytes of which it is not, and a test
//! of `exact_sum` replays `corpus/exact_bytes/`.

use exact_sum::{ExactDot, ExactSum};
use half::{bf16, f16};

/// Reads bytes as each type of sum, as they are and with the checksum that belongs to them. Gives whether they are one.
///
/// # Panics
/// If a sum is read that is written in another way, twice the sum is not read, two types read the same bytes, or an
/// error is too long for a terminal.
pub fn check(bytes: &[u8]) -> bool {
    // Hardly any bytes have the right checksum.
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

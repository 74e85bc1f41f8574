//! Stored sums stay readable: `stored_version_1.txt`, which `stored.py` has made by the documented formats alone.

use std::fmt::Debug;

use exact_sum::words::Words;
use exact_sum::{ExactDot, ExactSum, Summand};
use half::{bf16, f16};

/// A line of the file.
struct Stored<'a> {
    line: &'a str,
    elements: Vec<u64>,
    bytes: Vec<u8>,
    words: Vec<i64>,
}

fn parsed(line: &str) -> (&str, Stored<'_>) {
    let parts: Vec<&str> = line.split(": ").collect();
    let &[kind, elements, bytes, words] = &parts[..] else { panic!("`{line}` has four parts") };
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let bytes = bytes.as_bytes().chunks(2).map(|byte| hexadecimal(str::from_utf8(byte).unwrap()) as u8);
    let stored = Stored {
        line,
        elements: elements.split_whitespace().map(hexadecimal).collect(),
        bytes: bytes.collect(),
        words: words.split(' ').map(|word| word.parse().unwrap()).collect(),
    };
    (kind, stored)
}

impl Stored<'_> {
    fn verify_sum<T: Summand + Debug>(&self, of_bits: fn(u64) -> T) {
        let sum: ExactSum<T> = self.elements.iter().map(|&bits| of_bits(bits)).collect();
        let read = ExactSum::<T>::from_bytes(&self.bytes).expect(self.line);
        assert_eq!((read, sum.to_bytes()), (sum, self.bytes.clone()), "{}", self.line);
        let of_words = ExactSum::<T>::from_words(&self.words).expect(self.line);
        assert_eq!((of_words, of_words.to_bytes()), (sum, self.bytes.clone()), "{}", self.line);
        assert_eq!(ExactSum::<T>::from_words(&sum.words().collect::<Vec<_>>()), Ok(sum), "{}", self.line);
    }

    fn verify_products<T: Summand + Debug>(&self, of_bits: fn(u64) -> T) {
        let elements = || self.elements.iter().map(|&bits| of_bits(bits));
        let dot: ExactDot<T> = elements().zip(elements().cycle().skip(1)).collect();
        let read = ExactDot::<T>::from_bytes(&self.bytes).expect(self.line);
        assert_eq!((read, dot.to_bytes()), (dot, self.bytes.clone()), "{}", self.line);
        let of_words = ExactDot::<T>::from_words(&self.words).expect(self.line);
        assert_eq!((of_words, of_words.to_bytes()), (dot, self.bytes.clone()), "{}", self.line);
        assert_eq!(ExactDot::<T>::from_words(&dot.words().collect::<Vec<_>>()), Ok(dot), "{}", self.line);
    }
}

#[test]
fn version_1_is_read_and_written() {
    let mut count = 0;
    for line in include_str!("stored_version_1.txt").lines().filter(|line| !line.starts_with('#')) {
        let (kind, stored) = parsed(line);
        match kind {
            "sum f16" => stored.verify_sum(|bits| f16::from_bits(bits as u16)),
            "sum bf16" => stored.verify_sum(|bits| bf16::from_bits(bits as u16)),
            "sum f32" => stored.verify_sum(|bits| f32::from_bits(bits as u32)),
            "sum f64" => stored.verify_sum(f64::from_bits),
            "products f16" => stored.verify_products(|bits| f16::from_bits(bits as u16)),
            "products bf16" => stored.verify_products(|bits| bf16::from_bits(bits as u16)),
            "products f32" => stored.verify_products(|bits| f32::from_bits(bits as u32)),
            "products f64" => stored.verify_products(f64::from_bits),
            other => panic!("`{other}` is unknown"),
        }
        count += 1;
    }
    assert_eq!(count, 120);
}

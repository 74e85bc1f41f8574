//! Exact sums, means, norms and dot products of any numbers: `cargo +nightly fuzz run exact_sums`, after
//! `cargo install cargo-fuzz`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/exact_sum/tests/proofs/check.rs"]
#[allow(dead_code)]
mod check;
#[path = "../../crates/exact_sum/tests/proofs/integers.rs"]
#[allow(dead_code)]
mod integers;
mod sums_check;

fuzz_target!(|file: &[u8]| {
    sums_check::check(file);
});

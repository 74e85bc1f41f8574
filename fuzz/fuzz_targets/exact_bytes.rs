//! Reads any bytes as exact sums: `cargo +nightly fuzz run exact_bytes`, after `cargo install cargo-fuzz`.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod bytes_check;

fuzz_target!(|bytes: &[u8]| {
    bytes_check::check(bytes);
});

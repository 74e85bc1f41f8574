//! Reads any bytes as the header of an `.npy` file: `cargo +nightly fuzz run npy_header`, after
//! `cargo install cargo-fuzz`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../bench/src/npy/header.rs"]
mod header;
mod header_check;

fuzz_target!(|file: &[u8]| header_check::check(file));

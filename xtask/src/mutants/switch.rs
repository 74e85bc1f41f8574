//! Activates one of the mutants that `cargo xtask mutants` has compiled in: the one whose number is in `MUTANT`. With
//! `MUTANT=reached` no mutant is active, and the numbers of the reached sites are written at exit to the file that
//! `MUTANT_REACHED` names.
#![no_std]
#![feature(core_intrinsics, const_eval_select)]
#![allow(internal_features)]

extern crate std;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::string::String;

/// The value of [`ACTIVE`] that records the reached sites.
const RECORD: u32 = u32::MAX;

/// The number of the active mutant; 0 for none.
static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// A bit for each mutant: whether its site was reached.
static REACHED: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// Whether this mutant is active. In code that the compiler evaluates, none is.
#[inline(always)]
pub const fn is_active(number: u32) -> bool {
    core::intrinsics::const_eval_select((number,), is_active_in_const, is_active_at_run_time)
}

const fn is_active_in_const(_: u32) -> bool {
    false
}

#[inline(always)]
fn is_active_at_run_time(number: u32) -> bool {
    let active = ACTIVE.load(Ordering::Relaxed);
    if active == RECORD {
        record(number);
    }
    active == number
}

#[cold]
#[inline(never)]
fn record(number: u32) {
    let (word, bit) = (&REACHED[number as usize / 64 % 1024], 1 << (number % 64));
    if word.load(Ordering::Relaxed) & bit == 0 {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Runs before `main`, so that kernels never read the environment.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALIZER: extern "C" fn() = initialize;

extern "C" fn initialize() {
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> i32;
    }
    match std::env::var("MUTANT").as_deref() {
        Ok("reached") => {
            ACTIVE.store(RECORD, Ordering::Relaxed);
            // SAFETY: the function is valid until the process exits.
            unsafe { atexit(write_reached) };
        }
        Ok(number) => ACTIVE.store(number.parse().unwrap_or(0), Ordering::Relaxed),
        Err(_) => {}
    }
}

extern "C" fn write_reached() {
    let is_reached = |number: &u32| REACHED[*number as usize / 64].load(Ordering::Relaxed) >> (number % 64) & 1 == 1;
    let mut numbers = String::new();
    for number in (0..65536).filter(is_reached) {
        numbers += &std::format!("{number}\n");
    }
    if let Ok(path) = std::env::var("MUTANT_REACHED") {
        let _ = std::fs::write(path, numbers);
    }
}

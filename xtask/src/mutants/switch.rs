//! Selects one of the errors that `cargo xtask mutants` has compiled in: the one whose number is in `MUTANT`. With
//! `MUTANT=reached` it selects none, and at exit writes the numbers of the reached places to the file in
//! `MUTANT_REACHED`.
#![no_std]
#![feature(core_intrinsics, const_eval_select)]
#![allow(internal_features)]

extern crate std;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::string::String;

const REACHED: u32 = u32::MAX;

static CHOSEN: AtomicU32 = AtomicU32::new(0);
static MARKS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// Whether this error is selected. Never for the compiler, which evaluates constant functions.
#[inline(always)]
pub const fn is(number: u32) -> bool {
    core::intrinsics::const_eval_select((number,), never, now)
}

const fn never(_: u32) -> bool {
    false
}

#[inline(always)]
fn now(number: u32) -> bool {
    let chosen = CHOSEN.load(Ordering::Relaxed);
    if chosen == REACHED {
        mark(number);
    }
    chosen == number
}

#[cold]
#[inline(never)]
fn mark(number: u32) {
    let (word, bit) = (&MARKS[number as usize / 64 % 1024], 1 << (number % 64));
    if word.load(Ordering::Relaxed) & bit == 0 {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Before `main`, so that kernels never read the environment.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    unsafe extern "C" {
        fn atexit(at_end: extern "C" fn()) -> i32;
    }
    match std::env::var("MUTANT").as_deref() {
        Ok("reached") => {
            CHOSEN.store(REACHED, Ordering::Relaxed);
            // SAFETY: the function exists until the program ends.
            unsafe { atexit(end) };
        }
        Ok(number) => CHOSEN.store(number.parse().unwrap_or(0), Ordering::Relaxed),
        Err(_) => {}
    }
}

extern "C" fn end() {
    let is_marked = |number: &u32| MARKS[*number as usize / 64].load(Ordering::Relaxed) >> (number % 64) & 1 == 1;
    let mut numbers = String::new();
    for number in (0..65536).filter(is_marked) {
        numbers += &std::format!("{number}\n");
    }
    if let Ok(path) = std::env::var("MUTANT_REACHED") {
        let _ = std::fs::write(path, numbers);
    }
}

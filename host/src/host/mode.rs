//! The mode of the floating-point unit.
//!
//! Libraries that were compiled for fast arithmetic are known to change the mode of the threads that load them, so that
//! subnormal numbers are taken for 0. Comparisons would then be wrong, and products of floats, too.

use exact_sum::simd::is_mode_default;

/// The default mode, until this is dropped: round to nearest, with subnormal numbers.
pub(super) struct DefaultMode {
    /// The thread's mode before, if it was another one.
    before: Option<Register>,
}

impl DefaultMode {
    pub fn enter() -> Self {
        if is_mode_default() {
            return Self { before: None };
        }
        let before = read();
        write(DEFAULT);
        Self { before }
    }
}

impl Drop for DefaultMode {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            write(before);
        }
    }
}

#[cfg(target_arch = "x86_64")]
type Register = u32;
/// All exceptions masked, and all else 0.
#[cfg(target_arch = "x86_64")]
const DEFAULT: Register = 0x1F80;

#[cfg(target_arch = "x86_64")]
fn read() -> Option<Register> {
    let mut register = 0;
    // SAFETY: stores the register MXCSR to a variable.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut register, options(nostack, preserves_flags)) };
    Some(register)
}

#[cfg(target_arch = "x86_64")]
fn write(register: Register) {
    // SAFETY: loads MXCSR with the default, or with what the thread had before it was the default: values that the
    // processor accepts. The first gives compiled code the mode that it assumes. The compiler moves no access of memory
    // across this, so that all arithmetic on elements is between the two.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const register, options(nostack)) };
}

#[cfg(target_arch = "aarch64")]
type Register = u64;
#[cfg(target_arch = "aarch64")]
const DEFAULT: Register = 0;

#[cfg(target_arch = "aarch64")]
fn read() -> Option<Register> {
    let register;
    // SAFETY: reads the register FPCR.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) register, options(nostack, preserves_flags)) };
    Some(register)
}

#[cfg(target_arch = "aarch64")]
fn write(register: Register) {
    // SAFETY: writes FPCR with the default, or with what the thread had before it was the default. The first gives
    // compiled code the mode that it assumes. The compiler moves no access of memory across this, so that all
    // arithmetic on elements is between the two.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) register, options(nostack)) };
}

/// Other processors keep their mode.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type Register = ();
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const DEFAULT: Register = ();

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read() -> Option<Register> {
    None
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn write(_register: Register) {}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::{Layout, host, ops};

    /// Subnormal numbers as 0, as operands and as results; rounding down, up and to 0; in a thread of its own.
    #[test]
    fn results_do_not_depend_on_the_mode() {
        let tiny = f32::from_bits;
        let x: Vec<f32> = (0..1000).map(|i| tiny(1 + i) * if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let results = || {
            let columns = host::View::new(&x, &Layout::contiguous(&[50, 20]).unwrap()).unwrap();
            let bits = |array: host::Array<f32>| array.as_slice().iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            (
                bits(host::reduce(ops::Max, columns, 0).unwrap()),
                bits(host::reduce(ops::Sum, columns, 1).unwrap()),
                host::reduce(ops::ArgMin, columns, 0).unwrap().into_vec(),
                host::reduce_all(ops::CountNonzero, &x).unwrap(),
                host::reduce_all(ops::Mean, &x).unwrap().to_bits(),
                host::reduce_all(ops::All, columns).unwrap(),
            )
        };
        let expected = results();
        assert_eq!((expected.3, expected.5), (1000, 1));
        for mode in [0x8000, 0x0040, 0x8040, 0x2000, 0x4000, 0x6000] {
            let (found, after) = std::thread::scope(|scope| {
                let work = || {
                    write(DEFAULT | mode);
                    let found = results();
                    let after = read();
                    write(DEFAULT);
                    (found, after)
                };
                scope.spawn(work).join().unwrap()
            });
            assert_eq!(found, expected, "mode {mode:#x}");
            // The lowest bits say which exceptions there were.
            assert_eq!(after.map(|after| after & !0x3F), Some(DEFAULT | mode), "the mode is as it was");
        }
    }
}

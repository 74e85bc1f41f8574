//! Which instructions a processor has, and whether its floating-point unit is in its default mode.

use core::hint::black_box;

/// Instructions that code is compiled for.
pub trait Instructions {
    /// What the rounded product `x * y` lacks, exactly, where neither it nor a part of it underflows or overflows.
    fn error_of_product(x: f64, y: f64) -> f64;
}

/// The instructions of the compilation's target.
pub(crate) struct Baseline;

impl Instructions for Baseline {
    #[inline(always)]
    fn error_of_product(x: f64, y: f64) -> f64 {
        // Source: Dekker, "A floating-point technique for extending the available precision", 1971.
        let split = |number: f64| {
            let scaled = number * 134_217_729.0;
            let high = scaled - (scaled - number);
            (high, number - high)
        };
        let (product, (x_high, x_low), (y_high, y_low)) = (x * y, split(x), split(y));
        x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low)
    }
}

/// AVX2, and FMA and BMI, which processors with AVX2 have.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
pub(crate) struct Avx2;

#[cfg(all(feature = "std", target_arch = "x86_64"))]
impl Instructions for Avx2 {
    #[inline(always)]
    fn error_of_product(x: f64, y: f64) -> f64 {
        x.mul_add(y, -(x * y))
    }
}

/// Code that is compiled once for each set of instructions. All that it calls in loops must be `#[inline(always)]`.
pub trait Task {
    /// The result.
    type Output;
    /// Runs with these instructions.
    fn run<I: Instructions>(self) -> Self::Output;
}

/// Runs a task with the best instructions that the processor has.
#[inline]
pub fn dispatch<T: Task>(task: T) -> T::Output {
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    if has_avx2() {
        // SAFETY: The processor has the instructions.
        return unsafe { run_avx2(task) };
    }
    task.run::<Baseline>()
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[inline]
pub(crate) fn has_avx2() -> bool {
    use std::is_x86_feature_detected as has;
    has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2")
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
pub(crate) fn run_avx2<T: Task>(task: T) -> T::Output {
    task.run::<Avx2>()
}

/// Whether the floating-point unit rounds to nearest, and neither takes subnormal numbers for 0 nor replaces them by
/// it. Libraries that were compiled for fast arithmetic are known to change the mode of the threads that load them.
#[inline]
pub fn is_mode_default() -> bool {
    if cfg!(all(target_arch = "x86", not(target_feature = "sse2"))) {
        // The x87 unit has more bits than the formats.
        return false;
    }
    let (one, least) = black_box((1.0_f64, f64::from_bits(1)));
    let (quarter, three_quarters) = black_box((f64::EPSILON * 0.25, f64::EPSILON * 0.75));
    // Rounded down, then up. In the last sum, the operands and the result are subnormal.
    (one + quarter).to_bits() == 1.0_f64.to_bits()
        && (one + three_quarters).to_bits() == (1.0 + f64::EPSILON).to_bits()
        && (least + least).to_bits() == 2
}

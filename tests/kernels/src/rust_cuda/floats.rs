//! The functions of floats. The kernels call `GpuFloat::sin(x)`, because `x.sin()` would be the function of `std` on
//! the CPU: see `cuda_std::float`.

use cuda_std::float::FloatApprox;
use cuda_std::prelude::*;
use cuda_std::{FloatExt, GpuFloat};

/// The logarithm to base 10.
///
/// # Safety
/// `output` has as many elements as `input`.
#[kernel]
pub unsafe fn log10(input: &[f32], output: *mut f32) {
    let i = thread::index_1d() as usize;
    if i < input.len() {
        // SAFETY: as promised by the launch.
        unsafe { *output.add(i) = GpuFloat::log10(input[i]) };
    }
}

/// The sign.
///
/// # Safety
/// `output` has as many elements as `input`.
#[kernel]
pub unsafe fn signum(input: &[f32], output: *mut f32) {
    let i = thread::index_1d() as usize;
    if i < input.len() {
        // SAFETY: as promised by the launch.
        unsafe { *output.add(i) = GpuFloat::signum(input[i]) };
    }
}

/// The number of results of `GpuFloat` functions for each element.
pub const FUNCTIONS: usize = 43;

/// Every function of [`GpuFloat`], of two floats.
#[inline(always)]
fn of_float<T: GpuFloat + core::ops::Add<Output = T>>(x: T, y: T) -> [T; FUNCTIONS] {
    let (sin, cos) = x.sin_cos();
    [
        x.floor(),
        x.ceil(),
        x.round(),
        x.trunc(),
        x.fract(),
        x.abs(),
        x.signum(),
        x.copysign(y),
        x.mul_add(y, x),
        x.div_euclid(y),
        x.rem_euclid(y),
        x.powi(5),
        x.powi(-3),
        x.powf(y),
        x.abs().powf(y),
        x.sqrt(),
        x.abs().sqrt(),
        x.exp(),
        x.exp2(),
        x.abs().ln(),
        x.abs().log(y.abs()),
        x.abs().log2(),
        x.abs().log10(),
        x.cbrt(),
        x.hypot(y),
        x.sin(),
        x.cos(),
        x.tan(),
        x.fract().asin(),
        x.fract().acos(),
        x.atan(),
        x.atan2(y),
        sin,
        cos,
        x.exp_m1(),
        x.abs().ln_1p(),
        x.sinh(),
        x.cosh(),
        x.tanh(),
        x.asinh(),
        x.abs().acosh(),
        x.fract().atanh(),
        x + y,
    ]
}

/// The number of results of `FloatExt` functions for each element.
pub const SPECIAL: usize = 26;

/// Every function of [`FloatExt`]. Integer results are converted to floats.
#[inline(always)]
fn of_special<T: FloatExt + GpuFloat>(x: T, float: impl Fn(i32) -> T) -> [T; SPECIAL] {
    let (fraction, exponent) = x.frexp();
    let (sinpi, cospi) = x.sincospi();
    let unit = x.fract().abs();
    [
        x.cospi(),
        x.sinpi(),
        sinpi,
        cospi,
        x.error_function(),
        x.complementary_error_function(),
        unit.inv_complementary_error_function(),
        x.scaled_complementary_error_function(),
        fraction,
        float(exponent),
        float(x.unbiased_exp()),
        x.ldexp(3),
        x.scale_by_n(-4),
        x.j0(),
        x.j1(),
        x.jn(2),
        x.abs().y0(),
        x.abs().y1(),
        x.abs().yn(3),
        x.gamma(),
        x.log_gamma(),
        unit.log1p(),
        x.norm_cdf(),
        unit.inv_norm_cdf(),
        x.rcbrt(),
        x.saturate(),
    ]
}

macro_rules! functions {
    ($($functions:ident, $special:ident: $type:ty;)*) => {$(
        /// Every function of `GpuFloat`, of each element and the next one; and the sum of the two.
        ///
        /// # Safety
        /// `output` has [`FUNCTIONS`] elements for each of `input` but the last.
        #[kernel]
        pub unsafe fn $functions(input: &[$type], output: *mut $type) {
            let i = thread::index_1d() as usize;
            if i + 1 < input.len() {
                for (at, value) in of_float(input[i], input[i + 1]).into_iter().enumerate() {
                    // SAFETY: as promised by the launch.
                    unsafe { *output.add(FUNCTIONS * i + at) = value };
                }
            }
        }

        /// Every function of `FloatExt`, of each element.
        ///
        /// # Safety
        /// `output` has [`SPECIAL`] elements for each of `input`.
        #[kernel]
        pub unsafe fn $special(input: &[$type], output: *mut $type) {
            let i = thread::index_1d() as usize;
            if i < input.len() {
                for (at, value) in of_special(input[i], |integer| integer as $type).into_iter().enumerate() {
                    // SAFETY: as promised by the launch.
                    unsafe { *output.add(SPECIAL * i + at) = value };
                }
            }
        }
    )*};
}

functions! {
    float_functions_f32, float_extensions_f32: f32;
    float_functions_f64, float_extensions_f64: f64;
}

/// The number of approximations that [`float_approximations`](fn@float_approximations) writes for each element.
pub const APPROXIMATIONS: usize = 12;

/// Every approximation that a GPU has an instruction for, of positive numbers.
///
/// # Safety
/// `output` has [`APPROXIMATIONS`] elements for each of `input`.
#[kernel]
pub unsafe fn float_approximations(input: &[f32], output: *mut f32) {
    let i = thread::index_1d() as usize;
    if i < input.len() {
        let x = input[i];
        let approximations = [
            x.sin_approx(),
            x.cos_approx(),
            x.tan_approx(),
            x.exp_approx(),
            x.exp2_approx(),
            x.ln_approx(),
            x.log2_approx(),
            x.sqrt_approx(),
            x.rsqrt_approx(),
            x.recip_approx(),
            x.tanh_approx(),
            x.powf_approx(1.75),
        ];
        for (at, value) in approximations.into_iter().enumerate() {
            // SAFETY: as promised by the launch.
            unsafe { *output.add(APPROXIMATIONS * i + at) = value };
        }
    }
}

//! Special functions that `libm` lacks, in `f64`.

use core::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use super::GpuFloat;

/// `1 / sqrt(pi)`.
const FRAC_1_SQRT_PI: f64 = 0.564_189_583_547_756_3;

/// The sine and the cosine of `pi * x`.
pub(super) fn sincospi(x: f64) -> (f64, f64) {
    if !x.is_finite() {
        return (f64::NAN, f64::NAN);
    }
    // Every number of this size is an even integer.
    if GpuFloat::abs(x) >= 9_007_199_254_740_992.0 {
        return (GpuFloat::copysign(0.0, x), 1.0);
    }
    // The nearest multiple of a half. Doubling, halving and the difference are exact.
    let halves = GpuFloat::round(2.0 * x);
    let (sine, cosine) = GpuFloat::sin_cos(PI * (x - 0.5 * halves));
    match halves as i64 & 3 {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// `exp(x * x) * erfc(x)`.
pub(super) fn erfc_scaled(x: f64) -> f64 {
    if x < 10.0 {
        return exp_of_square(x, 1.0) * libm::erfc(x);
    }
    // The asymptotic series: 1 - 1/2x^2 + 1*3/(2x^2)^2 - ... Its 13th term is below 2^-53 from 10 on.
    let over = 0.5 / (x * x);
    let mut sum = 1.0;
    let mut k = 13;
    while k > 0 {
        sum = 1.0 - f64::from(2 * k - 1) * over * sum;
        k -= 1;
    }
    FRAC_1_SQRT_PI / x * sum
}

/// `exp(sign * x * x)`, with the rounding error of the square.
fn exp_of_square(x: f64, sign: f64) -> f64 {
    let square = x * x;
    let residual = GpuFloat::mul_add(x, x, -square);
    let power = GpuFloat::exp(sign * square);
    // An infinite square has a NaN residual, which is left out.
    if power.is_finite() && square.is_finite() { power + power * (sign * residual) } else { power }
}

/// The cumulative distribution function of the standard normal distribution.
pub(super) fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// The inverse of [`normal`]: P. Acklam's rational approximation, and one step of Halley's method.
pub(super) fn normal_inv(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 6] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 5] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0];
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    // The smaller tail: `1 - p` is exact for `p` of one half or more.
    let tail = if p < 0.5 { p } else { 1.0 - p };
    let lower = if tail < 0.02425 {
        let q = GpuFloat::sqrt(-2.0 * GpuFloat::ln(tail));
        polynomial(&C, q) / polynomial(&D, q)
    } else {
        let q = tail - 0.5;
        q * polynomial(&A, q * q) / polynomial(&B, q * q)
    };
    let error = (normal(lower) - tail) * (SQRT_2 / FRAC_1_SQRT_PI) / exp_of_square(lower * FRAC_1_SQRT_2, -1.0);
    let lower = lower - error / (1.0 + 0.5 * lower * error);
    if p < 0.5 { lower } else { -lower }
}

/// The polynomial with these coefficients, the highest first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    let mut sum = 0.0;
    let mut i = 0;
    while i < coefficients.len() {
        sum = sum * x + coefficients[i];
        i += 1;
    }
    sum
}

/// The inverse of the complementary error function.
pub(super) fn erfc_inv(y: f64) -> f64 {
    -FRAC_1_SQRT_2 * normal_inv(0.5 * y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two numbers differ by less than `ulps` units in the last place.
    fn is_near(a: f64, b: f64, ulps: f64) -> bool {
        (a - b).abs() <= ulps * f64::EPSILON * b.abs()
    }

    #[test]
    fn sines_of_multiples_of_pi() {
        for (x, sine, cosine) in [
            (0.0, 0.0, 1.0),
            (0.5, 1.0, 0.0),
            (1.0, 0.0, -1.0),
            (-0.5, -1.0, 0.0),
            (1e15 + 0.5, 1.0, 0.0),
            (9e15 + 1.0, 0.0, -1.0),
            (1e300, 0.0, 1.0),
        ] {
            assert_eq!(sincospi(x), (sine, cosine), "{x}");
        }
        let (sine, cosine) = sincospi(-1234.2);
        assert!(is_near(sine, -(PI * 0.2).sin(), 1e4) && is_near(cosine, (PI * 0.2).cos(), 1e4), "{sine} {cosine}");
        let (sine, cosine) = sincospi(0.3);
        assert!(is_near(sine, 0.809_016_994_374_947_5, 2.0) && is_near(cosine, 0.587_785_252_292_473_1, 2.0));
        assert!(sincospi(f64::INFINITY).0.is_nan() && sincospi(f64::NAN).1.is_nan());
    }

    /// Values of `exp(x^2) erfc(x)` to 17 digits, by arbitrary precision.
    #[test]
    fn scaled_error_functions() {
        for (x, expected) in [
            (-2.0, 108.940_904_389_977_97),
            (0.0, 1.0),
            (0.5, 0.615_690_344_192_925_9),
            (1.0, 0.427_583_576_155_807),
            (5.0, 0.110_704_637_733_068_62),
            (10.0, 0.056_140_992_743_822_58),
            (100.0, 0.005_641_613_782_989_433),
        ] {
            let found = erfc_scaled(x);
            assert!(is_near(found, expected, 8.0), "{x}: {found}, not {expected}");
        }
    }

    #[test]
    fn quantiles_of_the_normal_distribution() {
        assert_eq!(normal_inv(0.5), 0.0);
        for (p, expected) in [
            (0.975, 1.959_963_984_540_054),
            (0.1, -1.281_551_565_544_600_5),
            (1e-10, -6.361_340_902_404_056),
            (0.841_344_746_068_542_9, 1.0),
        ] {
            let found = normal_inv(p);
            assert!(is_near(found, expected, 16.0), "{p}: {found}, not {expected}");
        }
        for p in [1e-300, 1e-30, 0.001, 0.02, 0.03, 0.3, 0.49, 0.7, 0.999] {
            assert!(is_near(normal(normal_inv(p)), p, 2000.0), "{p}: {}", normal(normal_inv(p)));
        }
        for y in [0.25, 0.9, 1.0, 1.5] {
            assert!(is_near(libm::erfc(erfc_inv(y)), y, 16.0), "{y}");
        }
        assert_eq!((normal_inv(0.0), normal_inv(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(normal_inv(-0.1).is_nan() && normal_inv(1.1).is_nan() && normal_inv(f64::NAN).is_nan());
    }
}

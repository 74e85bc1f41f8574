//! Runs of the functions of floats.

use warpfold::{Error, Gpu};

use super::{compare, k, words};

/// A float's bits, with all NaNs equal: the bits of a NaN are unspecified.
fn one_nan(words: Vec<u64>, is_nan: impl Fn(u64) -> bool) -> Vec<u64> {
    words.into_iter().map(|word| if is_nan(word) { u64::MAX } else { word }).collect()
}

pub fn log10_and_signum(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let numbers: Vec<f32> =
        (0..200_u16).map(|i| f32::from(i) * 0.75 - 3.0).chain([-0.0, 1e-40, f32::INFINITY]).collect();
    let (input, mut output) = (gpu.upload(&numbers)?, gpu.zeroed::<f32>(numbers.len())?);
    // SAFETY: as many elements.
    let kernel = unsafe { k::floats::signum::handle() }.with_block(64);
    gpu.launch(kernel, 4, k::floats::signum::Args { input: input.view(), output: output.view_mut() })?;
    let signs: Vec<f32> = numbers.iter().map(|x| x.signum()).collect();
    let mut all = compare(gpu, "signum", &output, &signs)?;

    // SAFETY: as many elements.
    let kernel = unsafe { k::floats::log10::handle() }.with_block(64);
    gpu.launch(kernel, 4, k::floats::log10::Args { input: input.view(), output: output.view_mut() })?;
    let found = gpu.download(&output)?;
    for (x, found) in numbers.iter().zip(&found) {
        let expected = f64::from(*x).log10();
        let is_near = (f64::from(*found) - expected).abs() <= 1e-6 * expected.abs();
        assert!(
            is_near || found.is_nan() && expected.is_nan() || f64::from(*found) == expected,
            "log10({x}) = {found}"
        );
    }
    all.extend(one_nan(words(&found), |word| f32::from_bits(word as u32).is_nan()));
    Ok(all)
}

/// Numbers of every size and kind.
const NUMBERS: [f64; 34] = [
    1.0,
    2.5,
    -0.0,
    0.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.0,
    -2.0,
    3.999,
    -7.25,
    0.1,
    -0.1,
    1e-10,
    -1e-10,
    100.3,
    -33.3,
    1e5,
    -12345.678,
    8388608.5,
    3e9,
    -5e15,
    1e30,
    -1e30,
    1e-38,
    5e-39,
    f64::INFINITY,
    0.25,
    f64::NEG_INFINITY,
    0.75,
    f64::NAN,
    11.0,
    0.7,
];

/// The functions of `of_float`, by `std`.
fn by_std(x: f64, y: f64) -> [f64; k::floats::FUNCTIONS] {
    let a = x.abs();
    [
        x.floor(),
        x.ceil(),
        x.round(),
        x.trunc(),
        x.fract(),
        a,
        x.signum(),
        x.copysign(y),
        x.mul_add(y, x),
        x.div_euclid(y),
        x.rem_euclid(y),
        x * x * x * x * x,
        1.0 / (x * x * x),
        x.powf(y),
        a.powf(y),
        x.sqrt(),
        a.sqrt(),
        x.exp(),
        x.exp2(),
        a.ln(),
        a.log(y.abs()),
        a.log2(),
        a.log10(),
        x.cbrt(),
        x.hypot(y),
        x.sin(),
        x.cos(),
        x.tan(),
        x.fract().asin(),
        x.fract().acos(),
        x.atan(),
        x.atan2(y),
        x.sin(),
        x.cos(),
        x.exp_m1(),
        a.ln_1p(),
        x.sinh(),
        x.cosh(),
        x.tanh(),
        x.asinh(),
        a.acosh(),
        x.fract().atanh(),
        x + y,
    ]
}

/// The functions whose results are exact, or rounded once: `floor` to `mul_add`, and `sqrt`.
fn is_exact(function: usize) -> bool {
    function < 9 || function == 15 || function == 16
}

/// Whether a result is within a relative tolerance of the expected one, which `std` has computed in `f64`.
fn is_near(found: f64, expected: f64, tolerance: f64) -> bool {
    found == expected || found.is_nan() && expected.is_nan() || (found - expected).abs() <= tolerance * expected.abs()
}

macro_rules! functions {
    ($name:ident, $special:ident: $type:ident, $kernel:ident, $special_kernel:ident, $tolerance:literal) => {
        pub fn $name(gpu: &Gpu) -> Result<Vec<u64>, Error> {
            let numbers = NUMBERS.map(|x| x as $type);
            let (count, functions) = (numbers.len() - 1, k::floats::FUNCTIONS);
            let (input, mut output) = (gpu.upload(&numbers)?, gpu.zeroed::<$type>(count * functions)?);
            // SAFETY: the functions of each number but the last.
            let kernel = unsafe { k::floats::$kernel::handle() }.with_block(32);
            gpu.launch(kernel, 2, k::floats::$kernel::Args { input: input.view(), output: output.view_mut() })?;
            let found = gpu.download(&output)?;
            for (i, found) in found.chunks(functions).enumerate() {
                let (x, y) = (numbers[i], numbers[i + 1]);
                let expected = by_std(f64::from(x), f64::from(y));
                for (function, (&found, expected)) in found.iter().zip(expected).enumerate() {
                    // Euclidean quotients and remainders, `powi` and `log` depend on the type's own rounding.
                    let is_of_type = matches!(function, 9 | 10 | 11 | 12 | 20);
                    let rounded = expected as $type;
                    let is_right = match is_exact(function) {
                        true => found.to_bits() == rounded.to_bits() || found.is_nan() && rounded.is_nan(),
                        false => is_of_type || is_near(f64::from(found), f64::from(rounded), $tolerance),
                    };
                    assert!(is_right, "function {function} of {x} and {y}: {found}, not {rounded}");
                }
                let (last, sum) = (found[functions - 1], x + y);
                // The bits of a NaN are unspecified.
                let is_right = last.is_nan() && sum.is_nan() || last.to_bits() << 1 == sum.to_bits() << 1;
                assert!(is_right, "{x} + {y} is {sum}, and not {last}");
            }
            let is_nan = |word: u64| $type::from_bits(word as _).is_nan();
            Ok(one_nan(words(&found), is_nan))
        }

        pub fn $special(gpu: &Gpu) -> Result<Vec<u64>, Error> {
            // Bessel functions of order n take time for the largest numbers.
            let numbers: Vec<$type> =
                NUMBERS.iter().filter(|x| x.abs() < 1e6 || !x.is_finite()).map(|&x| x as $type).collect();
            let functions = k::floats::SPECIAL;
            let (input, mut output) = (gpu.upload(&numbers)?, gpu.zeroed::<$type>(numbers.len() * functions)?);
            // SAFETY: the functions of each number.
            let kernel = unsafe { k::floats::$special_kernel::handle() }.with_block(32);
            let arguments = k::floats::$special_kernel::Args { input: input.view(), output: output.view_mut() };
            gpu.launch(kernel, 1, arguments)?;
            let found = gpu.download(&output)?;
            for (found, expected) in found.chunks(functions).zip([OF_1, OF_2_5]) {
                for (function, (&found, expected)) in found.iter().zip(expected).enumerate() {
                    let is_right = is_near(f64::from(found), f64::from(expected as $type), 8.0 * $tolerance);
                    assert!(is_right || found.abs() < $tolerance, "function {function}: {found}, not {expected}");
                }
            }
            let is_nan = |word: u64| $type::from_bits(word as _).is_nan();
            Ok(one_nan(words(&found), is_nan))
        }
    };
}

/// The special functions of 1, to 16 digits.
const OF_1: [f64; k::floats::SPECIAL] = [
    -1.0,
    0.0,
    0.0,
    -1.0,
    0.842_700_792_949_714_9,
    0.157_299_207_050_285_1,
    f64::INFINITY,
    0.427_583_576_155_807,
    0.5,
    1.0,
    0.0,
    8.0,
    0.0625,
    0.765_197_686_557_966_6,
    0.440_050_585_744_933_5,
    0.114_903_484_931_900_5,
    0.088_256_964_215_676_98,
    -0.781_212_821_300_288_7,
    -5.821_517_605_964_729,
    1.0,
    0.0,
    0.0,
    0.841_344_746_068_542_9,
    f64::NEG_INFINITY,
    1.0,
    1.0,
];

/// The special functions of 2.5.
const OF_2_5: [f64; k::floats::SPECIAL] = [
    0.0,
    1.0,
    1.0,
    0.0,
    0.999_593_047_982_555,
    4.069_520_174_449_589e-4,
    0.476_936_276_204_469_9,
    0.210_806_364_061_143_2,
    0.625,
    2.0,
    1.0,
    20.0,
    0.15625,
    -0.048_383_776_468_198_0,
    0.497_094_102_464_274_1,
    0.446_059_058_439_617_2,
    0.498_070_359_615_232_1,
    0.145_918_137_966_786_2,
    -0.756_055_496_753_671_1,
    1.329_340_388_179_137,
    0.284_682_870_472_919_2,
    0.405_465_108_108_164_4,
    0.993_790_334_674_223_8,
    0.0,
    0.736_806_299_728_077_3,
    1.0,
];

functions!(functions_f32, special_f32: f32, float_functions_f32, float_extensions_f32, 1e-6);
functions!(functions_f64, special_f64: f64, float_functions_f64, float_extensions_f64, 4e-15);

/// Checks that a GPU's approximations are near. Their bits depend on the GPU, so none are returned.
pub fn approximations(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let numbers: Vec<f32> = (1..100_u8).map(|i| f32::from(i) * 0.03).collect();
    let count = k::floats::APPROXIMATIONS;
    let (input, mut output) = (gpu.upload(&numbers)?, gpu.zeroed::<f32>(numbers.len() * count)?);
    // SAFETY: the approximations of each number.
    let kernel = unsafe { k::floats::float_approximations::handle() }.with_block(128);
    let arguments = k::floats::float_approximations::Args { input: input.view(), output: output.view_mut() };
    gpu.launch(kernel, 1, arguments)?;
    for (x, found) in numbers.iter().zip(gpu.download(&output)?.chunks(count)) {
        let x = f64::from(*x);
        let expected = [
            x.sin(),
            x.cos(),
            x.tan(),
            x.exp(),
            x.exp2(),
            x.ln(),
            x.log2(),
            x.sqrt(),
            1.0 / x.sqrt(),
            1.0 / x,
            x.tanh(),
            x.powf(1.75),
        ];
        for (function, (&found, expected)) in found.iter().zip(expected).enumerate() {
            // `tanh.approx` has a relative error of 2^-11; a tangent near its pole multiplies that of the cosine.
            let tolerance = if function == 10 { 6e-4 } else { 2e-6 * (1.0 + expected * expected) };
            assert!((f64::from(found) - expected).abs() <= tolerance, "approximation {function} of {x}: {found}");
        }
    }
    Ok(Vec::new())
}

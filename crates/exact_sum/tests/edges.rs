//! Each bound, at its edge.

use exact_sum::words::Words;
use exact_sum::{
    Accumulator, Binary, Bins, Compact, DOUBLE_LIMBS, DOUBLE_PRODUCT_LIMBS, ExactDot, ExactSum, Leading, Limbs,
    MAX_ELEMENTS, Rounded, SINGLE_LIMBS, SINGLE_PRODUCT_LIMBS, Superaccumulator, Window, round,
};

fn bins<F: Binary>(window: &Window<F>, elements: impl IntoIterator<Item = F>) -> Bins<F> {
    elements.into_iter().fold(Bins::EMPTY, |bins, element| window.extract(bins, element))
}

#[test]
fn bins_hold_their_capacity_of_extremes() {
    for exponent in [Window::<f32>::LOWEST, -3, 0, 100, Window::<f32>::HIGHEST] {
        let window = Window::<f32>::new(exponent);
        let largest = -2_f32.powi(exponent);
        let sum = |count: u32| {
            let bins = bins(&window, (0..count).map(|_| largest));
            assert!(bins.is_exact());
            window.drain(bins.upper, bins.lower, count)
        };
        let each = sum(1);
        assert_eq!(each, -1_i128 << (23 + 22));
        assert_eq!(sum(511), 511 * each);
        // One more element overflows the word, which breaks the contract but shows that 511 is the maximum.
        let bins = bins(&window, (0..512).map(|_| -largest * (1.0 - f32::EPSILON / 2.0)));
        assert_ne!(window.drain(bins.upper, bins.lower, 512), -512 * each);
    }
    let empty = Accumulator::<f32>::in_window(0);
    assert!(empty.has_capacity(511) && !empty.has_capacity(512));
    assert!(empty.with(Bins::EMPTY, 500).has_capacity(11) && !empty.with(Bins::EMPTY, 500).has_capacity(12));
    let window = Window::<f64>::new(7);
    let bins = bins(&window, (0..4095).map(|_| -128.0));
    assert_eq!(window.drain(bins.upper, bins.lower, 4095), -4095_i128 << (52 + 51));
}

#[test]
fn an_element_at_the_edge_of_a_window_is_inside_or_reported() {
    for exponent in [Window::<f32>::LOWEST, -40, 0, 60, Window::<f32>::HIGHEST] {
        let window = Window::<f32>::new(exponent);
        let edge = 2_f32.powi(exponent);
        let below = f32::from_bits(edge.to_bits() - 1);
        let above = f32::from_bits(edge.to_bits() + 1);
        for (element, is_in) in [(below, false), (edge, false), (-edge, true), (above, false), (-above, false)] {
            let bins = window.extract(Bins::EMPTY, element);
            // An element that rounds up to the edge is reported as outside, too, which is allowed.
            assert_eq!(!bins.is_outside(), is_in, "{element:e} in a window below 2^{exponent}");
        }
        // The residual is a number even in the highest window, so that the windows below can extract it.
        let left = window.extract_with_residual(&mut { Bins::EMPTY }, below);
        assert!(left == 0.0 || left.is_normal(), "{below:e} leaves {left} in a window below 2^{exponent}");
        // The largest element that does not round up to the edge: one upper unit below the edge.
        let inside = f32::from_bits(edge.to_bits() - 4);
        for element in [inside, -inside, -below, 0.0, -0.0] {
            let bins = window.extract(Bins::EMPTY, element);
            assert!(bins.is_exact(), "{element:e} in a window below 2^{exponent}");
            let exact = window.drain(bins.upper, bins.lower, 1);
            assert_eq!(exact as f64 * 2_f64.powi(exponent - 45), f64::from(element));
        }
        for element in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(window.extract(Bins::EMPTY, element).is_outside());
        }
    }
}

#[test]
fn bits_below_the_lower_bin_are_the_residual() {
    let window = Window::<f32>::new(0);
    // The lower bin's unit is 2^-45.
    let unit = 2_f32.powi(-45);
    assert!(bins(&window, [unit, -3.0 * unit]).is_exact());
    let half = unit / 2.0;
    for element in [half, -half, unit + half, 2_f32.powi(-126), f32::from_bits(1)] {
        let bins = window.extract(Bins::EMPTY, element);
        assert!(bins.has_residual() && !bins.is_outside(), "{element:e}");
        let kept = window.drain(bins.upper, bins.lower, 1) as f64 * f64::from(unit);
        let residual = window.extract_with_residual(&mut { Bins::EMPTY }, element);
        assert_eq!(kept + f64::from(residual), f64::from(element));
    }
    // 2^(exponent + 1 - p) and more never leaves a residual.
    let least = 2_f32.powi(-22);
    for bits in 0..1000 {
        assert!(bins(&window, [f32::from_bits(least.to_bits() + bits)]).is_exact());
    }
    assert!(bins(&window, [f32::from_bits(least.to_bits() - 1)]).has_residual());
}

/// All extraction functions give the same bins, and the bins and the residual add up to the element.
#[test]
fn all_extractions_agree() {
    fn check<F: Binary + Into<f64>>(window: &Window<F>, all: &[F], unit: f64) {
        for &element in all {
            let (bins, mut others) = (window.extract(Bins::EMPTY, element), Bins::EMPTY);
            let residual = window.extract_with_residual(&mut others, element);
            assert_eq!((bins.upper, bins.lower), (others.upper, others.lower), "{element:?}");
            assert_eq!((bins.is_outside(), bins.has_residual()), (others.is_outside(), others.has_residual()));
            assert_eq!(bins.has_residual(), !residual.is_zero(), "{element:?}");
            let merged = [bins.merge(Bins::EMPTY), Bins::EMPTY.merge(bins)];
            for (bins, of) in [(bins, bins), (merged[0], bins), (merged[1], bins)] {
                assert_eq!((bins.upper, bins.lower, bins.is_exact()), (of.upper, of.lower, of.is_exact()));
                assert_eq!((bins.is_outside(), bins.has_residual()), (of.is_outside(), of.has_residual()));
            }
            assert_eq!(bins.is_exact(), !bins.is_outside() && !bins.has_residual());
            assert!(!bins.is_outside(), "{element:?}");
            let kept = window.drain(bins.upper, bins.lower, 1) as f64 * unit;
            assert_eq!(kept + residual.into(), element.into(), "{element:?}");
        }
        assert!(!Bins::<F>::EMPTY.is_outside() && !Bins::<F>::EMPTY.has_residual());
        // A number outside the window, after one inside.
        let (mut outside, within) = (window.extract(Bins::EMPTY, all[1]), window.extract(Bins::EMPTY, all[1]));
        window.extract_with_residual(&mut outside, F::one_and_a_half(window.exponent() + 1));
        assert!(outside.is_outside() && outside.merge(within).is_outside() && within.merge(outside).is_outside());
    }
    let tiny = [2_f32.powi(-60), -2_f32.powi(-46), 3.0 * 2_f32.powi(-47)];
    check(
        &Window::<f32>::new(0),
        &[&[0.0, 0.1, -0.7, 0.5, 1e-3, 1.0 / 3.0, -1e-6, -0.0][..], &tiny].concat(),
        2_f64.powi(-45),
    );
    let tiny = [2_f64.powi(-120), -2_f64.powi(-104)];
    check(
        &Window::<f64>::new(0),
        &[&[0.0, 0.5, 2_f64.powi(-60), -0.75, -2_f64.powi(-80)][..], &tiny].concat(),
        2_f64.powi(-103),
    );
}

/// The sum of all elements, in tiles of four, in a window chosen by the first tile; and whether limbs were needed.
fn accumulate(elements: &[f32]) -> (f32, bool) {
    let (mut all, mut has_limbs) = (ExactSum::<f32>::new(), false);
    let first = elements.iter().take(4).map(|x| x.exponent_bound()).max().unwrap_or(0);
    let mut sum = Accumulator::<f32>::in_window(first);
    let state = |sum: Accumulator<f32>| {
        let state = Compact::<112> { value: sum.value(), position: sum.position(), ..Compact::ZERO };
        assert_eq!(Compact::from_bits(state.to_bits()), state);
        state
    };
    for tile in elements.chunks_exact(4) {
        let tile: [f32; 4] = tile.try_into().unwrap();
        if !sum.has_capacity(4) {
            all.add_compact(state(sum), 0).unwrap();
            (sum, has_limbs) = (sum.cleared(), true);
        }
        let bins = bins(&sum.window(), tile);
        let with = sum.with(bins, 4);
        assert_eq!(with.without(bins, 4).value(), sum.value());
        if bins.is_exact() {
            sum = with;
        } else {
            all.extend(tile);
            has_limbs = true;
        }
    }
    all.add_compact(state(sum), 0).unwrap();
    (all.value(), has_limbs)
}

#[test]
fn tiles_outside_the_window_are_summed_exactly() {
    let tiles = |exponents: &mut dyn Iterator<Item = i32>| -> Vec<f32> {
        exponents.flat_map(|e| [1.5, -1.25, 1.0, 1.75].map(|x| x * 2_f32.powi(e))).collect()
    };
    for elements in [tiles(&mut (0..40)), tiles(&mut (0..60).rev()), tiles(&mut (0..20).flat_map(|e| [e, e, -e, -e]))] {
        let expected: ExactSum<f32> = elements.iter().copied().collect();
        assert_eq!(accumulate(&elements), (expected.value(), true));
    }
    // A tile that spans all windows.
    let wide = [0, 1, 2, 3].map(|k| 1.5 * 2_f32.powi(126 - 60 * k));
    let expected: ExactSum<f32> = wide.into_iter().collect();
    assert_eq!(accumulate(&wide), (expected.value(), true));
    let (_, has_limbs) = accumulate(&tiles(&mut [3, 2, 1, 0, 3, 2, -3].into_iter()));
    assert!(!has_limbs, "within one window there are no residuals");
}

#[test]
fn a_million_equal_extremes() {
    for (element, count) in [(f32::MAX, 1 << 20), (-f32::MAX, 1 << 20), (f32::from_bits(1), 1 << 20), (1.0, 1 << 20)] {
        let elements = vec![element; count];
        let expected: ExactSum<f32> = elements.iter().copied().collect();
        assert_eq!(accumulate(&elements).0, expected.value());
        assert_eq!(expected.value(), if element.abs() == f32::MAX { element * 2.0 } else { element * count as f32 });
    }
}

#[test]
fn ties_at_every_position_are_broken_by_anything_below() {
    for exponent in -125..127 {
        let one = 2_f32.powi(exponent);
        let half = f64::from(one) * 2_f64.powi(-24);
        let half = if half >= f64::from(f32::from_bits(1)) { half as f32 } else { continue };
        let next = f32::from_bits(one.to_bits() + 1);
        let least = f32::from_bits(1);
        let sum = |elements: &[f32]| elements.iter().copied().collect::<ExactSum<f32>>().value();
        assert_eq!(sum(&[one, half]), one, "a tie to even, 2^{exponent}");
        assert_eq!(sum(&[next, half]), f32::from_bits(one.to_bits() + 2), "a tie to even, 2^{exponent}");
        if half > least {
            assert_eq!(sum(&[one, half, least]), next);
            assert_eq!(sum(&[next, half, -least]), next);
        }
        let (found, _) = accumulate(&[one, half, if half > least { least } else { 0.0 }, 0.0]);
        assert_eq!(found, if half > least { next } else { one });
    }
    let sum: ExactSum<f64> = [1.0, 2_f64.powi(-53), 2_f64.powi(-1000)].into_iter().collect();
    assert_eq!(sum.value(), 1.0 + f64::EPSILON);
}

#[test]
fn overflow_is_decided_at_the_rounding() {
    let sum = |elements: &[f32]| elements.iter().copied().collect::<ExactSum<f32>>().value();
    assert_eq!(sum(&[3e38, 3e38, -3e38, -3e38]), 0.0);
    assert_eq!(sum(&[f32::MAX, f32::MAX, -f32::MAX]), f32::MAX);
    let half_a_unit = 2_f32.powi(103);
    assert_eq!(sum(&[f32::MAX, half_a_unit]), f32::INFINITY);
    assert_eq!(sum(&[f32::MAX, half_a_unit, -f32::from_bits(1)]), f32::MAX);
    assert_eq!(sum(&[-f32::MAX, -half_a_unit]), f32::NEG_INFINITY);
}

#[test]
fn non_finite_sums_and_zeros() {
    let bits = |elements: &[f32]| elements.iter().copied().collect::<ExactSum<f32>>().value().to_bits();
    assert_eq!(bits(&[]), 0);
    assert_eq!(bits(&[-0.0, -0.0]), 0);
    assert_eq!(bits(&[1.0, -1.0]), 0);
    assert_eq!(bits(&[1.0, f32::INFINITY, f32::MAX]), f32::INFINITY.to_bits());
    assert_eq!(bits(&[f32::NEG_INFINITY, f32::MAX, f32::NEG_INFINITY]), f32::NEG_INFINITY.to_bits());
    assert_eq!(bits(&[f32::INFINITY, f32::NEG_INFINITY]), f32::NAN.to_bits());
    assert_eq!(bits(&[f32::from_bits(0xFF80_0001), 1.0]), f32::NAN.to_bits());
    let dot = |pairs: &[(f32, f32)]| pairs.iter().copied().collect::<ExactDot<f32>>().value();
    assert!(dot(&[(0.0, f32::INFINITY)]).is_nan());
    assert_eq!(dot(&[(-2.0, f32::INFINITY), (f32::MAX, f32::MAX)]), f32::NEG_INFINITY);
    assert_eq!(dot(&[(f32::MAX, f32::MAX), (-f32::MAX, f32::MAX), (2.0, 3.0)]), 6.0);
    assert!(ExactSum::<f32>::new().mean::<f32>().is_nan());
    // The square roots of a negative number, of negative infinity, of infinity and of nothing.
    let root = |pairs: &[(f32, f32)]| pairs.iter().copied().collect::<ExactDot<f32>>().sqrt::<f32>();
    assert!(root(&[(-1.0, 1.0)]).is_nan() && root(&[(-1.0, f32::INFINITY)]).is_nan());
    assert_eq!((root(&[(2.0, f32::INFINITY)]), root(&[]).to_bits()), (f32::INFINITY, 0));
}

#[test]
fn limbs_add_integers_of_either_sign() {
    let mut limbs = Limbs::<3>::ZERO;
    let mut expected = 0_i128;
    for value in [u32::MAX.into(), -1, i128::from(i64::MAX), i128::from(i64::MIN), 1 << 63] {
        limbs.add(value, 5);
        expected += value << 5;
    }
    let leading = limbs.leading();
    assert_eq!((leading.is_negative, leading.bits >> -leading.position), (expected < 0, expected.unsigned_abs()));
}

#[test]
fn carries_are_propagated_before_a_limb_overflows() {
    // A limb that was set counts as full: the next addition first propagates its carries.
    let mut limbs = Limbs::<2>::ZERO;
    limbs.set_limb(0, (1 << 62) - 1);
    limbs.add(i128::from(u32::MAX), 0);
    assert_eq!((limbs.limb(0), limbs.limb(1)), (2 * i64::from(u32::MAX), (1 << 30) - 1));
}

#[test]
fn too_many_elements_are_refused() {
    let mut sum = ExactSum::<f32>::new();
    sum.add_compact(Compact::<112>::ZERO, MAX_ELEMENTS).unwrap();
    let one: ExactSum<f32> = [1.0].into_iter().collect();
    let error = sum.merge(&one).unwrap_err();
    assert_eq!(error.count, MAX_ELEMENTS + 1);
    assert!(error.to_string().contains("the maximum is 2^50"), "{error}");
    assert_eq!((sum.value(), sum.count()), (0.0, MAX_ELEMENTS));
}

#[test]
#[should_panic = "an exact sum of 1125899906842625 elements: the maximum is 2^50"]
fn one_element_too_many_is_refused() {
    let mut sum = ExactSum::<f32>::new();
    sum.add_compact(Compact::<112>::ZERO, MAX_ELEMENTS - 1).unwrap();
    sum.add(1.0);
    assert_eq!((sum.count(), sum.value()), (MAX_ELEMENTS, 1.0));
    sum.add(1.0);
}

#[test]
fn limbs_hold_the_largest_sums() {
    fn check<L: Superaccumulator>(bits_of_one: u32) {
        // 2^50 of the largest elements, also negative.
        for sign in [1, -1] {
            let mut limbs = L::default();
            limbs.add(sign << 50, bits_of_one);
            assert_eq!(limbs.leading().is_negative, sign < 0);
            assert_eq!(limbs.leading().position + 127, bits_of_one as i32 + 50);
        }
    }
    check::<Limbs<{ SINGLE_LIMBS }>>(277);
    check::<Limbs<{ SINGLE_PRODUCT_LIMBS }>>(554);
    check::<Limbs<{ DOUBLE_LIMBS }>>(2098);
    check::<Limbs<{ DOUBLE_PRODUCT_LIMBS }>>(4196);
}

#[test]
fn an_i64_is_rounded_like_its_leading_bits() {
    let values = [0, 1, -1, 3, (1 << 24) + 1, (1 << 25) + 3, -(1 << 24) - 1, i64::MAX >> 3, (1 << 53) + 1, -(5 << 57)];
    for value in values {
        for exponent in -149..=81 {
            let leading = Leading::of(value.into(), 0);
            let (single, double) = (f32::round_i64(value, exponent), f64::round_i64(value, exponent));
            assert_eq!(
                single.to_bits(),
                <f32 as Rounded>::round(leading, exponent).to_bits(),
                "{value} * 2^{exponent}"
            );
            assert_eq!(
                double.to_bits(),
                <f64 as Rounded>::round(leading, exponent).to_bits(),
                "{value} * 2^{exponent}"
            );
        }
    }
}

/// Each format, including those that use the default methods.
#[test]
fn integers_are_rounded_in_each_format() {
    fn check<R: Rounded>(bits: fn(R) -> u64) {
        for (value, exponent) in [(3, 0), (-5, 4), (1, -10), (0, 0), (2049, 1), (257, -3), (-0x7fff_ffff, -24)] {
            let right = bits(R::round(Leading::of(value.into(), 0), exponent));
            assert_eq!(bits(R::round_i64(value, exponent)), right, "{value} * 2^{exponent}");
            assert_eq!(bits(R::round_i128(value.into(), exponent)), right, "{value} * 2^{exponent}");
        }
    }
    check::<half::f16>(|x| x.to_bits().into());
    check::<half::bf16>(|x| x.to_bits().into());
    check::<f32>(|x| x.to_bits().into());
    check::<f64>(f64::to_bits);
}

#[test]
fn the_root_and_the_quotient_of_zero_are_zero() {
    for unit in [-298, 0, 5] {
        assert_eq!(round::root(Leading::ZERO, unit), Leading::ZERO);
    }
    assert_eq!(round::divide(Leading::ZERO, 7), Leading::ZERO);
    assert_eq!(round::divide(Leading::ZERO, 1 << 40), Leading::ZERO);
}

#[test]
fn merging_limbs_propagates_carries() {
    let mut limbs = Limbs::<3>::ZERO;
    limbs.set_limb(0, (1 << 62) - 1);
    limbs.set_limb(1, -(1 << 62) + 1);
    let other = limbs;
    limbs.merge(&other);
    // 2^63 - 2 and -2^63 + 2, in units of the first limb and of the second.
    assert_eq!([0, 1, 2].map(|k| limbs.limb(k)), [0xffff_fffe, 0x8000_0001, -0x8000_0000]);
}

#[test]
fn leading_bits_of_words_are_those_of_the_number() {
    fn check<const N: usize>(words: [u64; N]) {
        let mut limbs = Limbs::<9>::ZERO;
        for (k, word) in (0..).zip(words) {
            limbs.add(word.into(), 64 * k);
        }
        assert_eq!(Leading::of_words(words), limbs.leading(), "{words:x?}");
    }
    for words in [[0, 0, 0, 0], [1, 0, 0, 0], [3, 0, 5, 0], [0, 1, 0, 1 << 63], [1, 0, 0, 1], [u64::MAX; 4]] {
        let [a, b, c, _] = words;
        check(words);
        check([a, b, c]);
        check([a, b]);
    }
    check([1, 1, 1 << 63]);
    check([5, 7, 9]);
}

/// Sums that differ in any one limb are not equal, nor are sums with different counts.
#[test]
fn each_limb_counts_in_a_comparison() {
    // Of enough elements to have a bit in each limb.
    let of = |limbs: [i64; SINGLE_LIMBS]| {
        let words: Vec<i64> = limbs.into_iter().chain([0, 0, 0, 0, MAX_ELEMENTS as i64]).collect();
        ExactSum::<f32>::from_words(&words).unwrap()
    };
    for k in 0..SINGLE_LIMBS {
        let mut limbs = [0; SINGLE_LIMBS];
        limbs[k] = 1;
        assert_ne!(of(limbs), of([0; SINGLE_LIMBS]), "limb {k}");
        assert_eq!(of(limbs), of(limbs));
    }
    assert_ne!(of([0; SINGLE_LIMBS]), ExactSum::from_iter([0.0, -0.0]));
    // Numbers that cancel leave neither limbs nor carries.
    let mut limbs = Limbs::<3>::ZERO;
    limbs.add(-5, 30);
    limbs.add(5, 30);
    limbs.propagate_carries();
    assert_eq!(limbs, Limbs::ZERO);
}

#[test]
fn an_i128_is_rounded_like_its_leading_bits() {
    let tie = (1_i128 << 100) + (1 << 76);
    let ties = [tie, (3 << 99) + (1 << 75), tie + 1, tie - 1, tie + (1 << 20), tie + (1 << 35), tie - (1 << 35)];
    let others =
        [0, 1, -1, i128::from(i64::MAX), i128::from(i64::MIN), 1 << 61, (1 << 62) + 1, -(1 << 110) + 3, 1 << 126];
    for value in ties.into_iter().chain(others).flat_map(|value: i128| [value, -value]) {
        for exponent in -149..=20 {
            let leading = Leading::of(value, 0);
            let (single, double) = (f32::round_i128(value, exponent), f64::round_i128(value, exponent));
            let expected = <f32 as Rounded>::round(leading, exponent);
            assert_eq!(single.to_bits(), expected.to_bits(), "{value} * 2^{exponent}");
            assert_eq!(
                double.to_bits(),
                <f64 as Rounded>::round(leading, exponent).to_bits(),
                "{value} * 2^{exponent}"
            );
        }
    }
}

#[test]
fn extraction_without_a_residual_agrees_with_extraction() {
    let window = Window::<f32>::new(16);
    for element in [0.0, -0.0, 65504.0, -1.5, 2_f32.powi(-24), f32::INFINITY, f32::NAN, 1e30] {
        let (all, any) = (window.extract_without_residual(Bins::EMPTY, element), window.extract(Bins::EMPTY, element));
        assert_eq!((all.upper, all.is_outside()), (any.upper, any.is_outside()), "{element}");
        assert!(all.lower == any.lower || any.is_outside(), "{element}");
    }
}

#[test]
fn six_windows_below_each_other_hold_all_bits_of_any_f32() {
    let mut windows = vec![Window::<f32>::new(Window::<f32>::HIGHEST)];
    while windows[windows.len() - 1].exponent() > Window::<f32>::LOWEST {
        windows.push(windows[windows.len() - 1].below());
    }
    assert_eq!(windows.len(), 6);
    let all_bits = f32::from_bits((1 << 23) - 1);
    assert!(bins(&windows[5], [all_bits, -f32::from_bits(1)]).is_exact());
}

//! Inputs of reductions.

use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::form::Form;
use super::operators::Data;
use crate::element::{ElementType, Number};
use crate::exact::{Kind, OfBits, Random, vectors};
use crate::memory;

/// `offset` numbers of value 19, followed by `len` random numbers that repeat after a period.
///
/// Whole numbers are from 1 to 16, with one 0 and one 17 near the end: a kernel that skips a part of the input misses
/// these extremes. Integer factors are odd. Float factors are 1 and -1, and a few are 2. So no partial product is
/// rounded, and each factor changes the product. A quarter of the special numbers are infinite, and an eighth are NaN.
pub fn numbers<T: Number>(data: Data, offset: usize, len: usize) -> anyhow::Result<Vec<T>> {
    const PERIOD: usize = 1 << 16;
    const TWOS: usize = 6;
    let mut source = SmallRng::from_os_rng();
    let mut all: Vec<T> = memory::list(offset + len)?;
    all.resize(offset, T::of_whole(19));
    let mut number = || {
        let whole = T::of_whole(source.random_range(1..=16));
        let float = match (data, source.random_range(0..8)) {
            (Data::Whole, _) => return whole,
            (Data::Factors, sign) => T::of_f64(if sign < 4 { 1.0 } else { -1.0 }),
            (Data::Special, 0) => T::of_f64(f64::NAN),
            (Data::Special, 1) => T::of_f64(f64::INFINITY),
            (Data::Special, 2) => T::of_f64(f64::NEG_INFINITY),
            (Data::Special, _) => return whole,
        };
        float.unwrap_or_else(|| T::of_whole(2 * source.random_range(0..8) + 1))
    };
    all.extend((0..len.min(PERIOD)).map(|_| number()));
    while all.len() < offset + len {
        let more = (all.len() - offset).min(offset + len - all.len());
        all.extend_from_within(offset..offset + more);
    }
    let numbers = &mut all[offset..];
    match data {
        Data::Whole if len > 1 => {
            let places = len / 8;
            numbers[len - 1 - source.random_range(0..=places / 2)] = T::of_whole(0);
            let other = len - 1 - places / 2 - 1;
            numbers[other.min(len - 2)] = T::of_whole(17);
        }
        Data::Factors if len > 0 => {
            for _ in 0..TWOS {
                let two = T::of_f64(2.0);
                two.into_iter().for_each(|two| numbers[source.random_range(0..len)] = two);
            }
        }
        _ => {}
    }
    Ok(all)
}

/// `len` numbers of a kind, the same on every machine. They repeat after 65,536, unless they depend on their index.
pub fn numbers_of_kind<T: Number>(kind: Kind, len: usize) -> anyhow::Result<Vec<T>> {
    const PERIOD: usize = 1 << 16;
    fn wide<T: OfBits + Into<f64>>(kind: Kind, len: usize) -> Vec<f64> {
        let [numbers, _] = vectors::<T>(kind, len, &mut Random(1));
        numbers.into_iter().map(Into::into).collect()
    }
    let period = if kind.depends_on_index() { len } else { len.min(PERIOD) };
    let period: Vec<f64> = match T::TYPE {
        ElementType::F32 => wide::<f32>(kind, period),
        ElementType::F64 => wide::<f64>(kind, period),
        ElementType::F16 => wide::<f16>(kind, period),
        ElementType::Bf16 => wide::<bf16>(kind, period),
        dtype => anyhow::bail!("--data is for floats, not for {dtype}"),
    };
    let mut all: Vec<T> = memory::list(len)?;
    all.extend(period.into_iter().filter_map(T::of_f64));
    while all.len() < len {
        let more = all.len().min(len - all.len());
        all.extend_from_within(..more);
    }
    Ok(all)
}

/// Offsets of segments whose lengths follow a power law, one segment for each row of the form.
///
/// A few segments have most of the elements, most segments have few, and each has at least one. The degrees of a social
/// graph have such a distribution (Barabasi and Albert, "Emergence of Scaling in Random Networks", Science 286, 1999).
pub fn skewed_offsets(form: &Form) -> anyhow::Result<Vec<u64>> {
    const EXPONENT: f64 = 1.2;
    let mut source = SmallRng::seed_from_u64(20);
    let mut weights: Vec<f64> = memory::list(form.rows)?;
    weights.extend((0..form.rows).map(|_| (1.0 - source.random::<f64>()).powf(-1.0 / EXPONENT)));
    let total: f64 = weights.iter().sum();
    let spare = (form.elements() - form.rows) as f64;
    let mut offsets = memory::list(form.rows + 1)?;
    offsets.push(0);
    let mut before = 0.0;
    for (i, weight) in weights.iter().enumerate() {
        before += weight;
        offsets.push(i as u64 + 1 + (before / total * spare) as u64);
    }
    // The last segment ends at the last element, which rounding may have left out.
    offsets[form.rows] = form.elements() as u64;
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::super::expected::expected;
    use super::super::extent::Extent;
    use super::super::operators::Operator;
    use super::*;

    #[test]
    fn results_depend_on_every_element() {
        let len = 5000;
        let all = Extent::all(len);
        let of = |operator, numbers: &[i8]| expected(operator, &all, &[], numbers).unwrap()[0].value.to_f64();
        let factors = numbers::<i8>(Data::Factors, 0, len).unwrap();
        let product = factors.iter().fold(1_i64, |product, &x| product.wrapping_mul(x.into()));
        assert_eq!(of(Operator::Product, &factors), product as f64);
        let whole = numbers::<i8>(Data::Whole, 0, len).unwrap();
        let sum = whole.iter().fold(0_i8, |sum, &x| sum.wrapping_add(x));
        assert_eq!(of(Operator::WrappingSum, &whole), f64::from(sum));

        let factors = numbers::<f16>(Data::Factors, 3, len).unwrap();
        assert_eq!(factors.len(), 3 + len);
        let product: f64 = factors[3..].iter().map(|&x| f64::from(x)).product();
        assert!(product.abs() > 1.0 && product.abs() <= 64.0, "{product}");
        assert_eq!(expected(Operator::Product, &all, &[], &factors[3..]).unwrap()[0].value.to_f64(), product);
        let special = numbers::<bf16>(Data::Special, 0, len).unwrap();
        let count = |operator| expected(operator, &all, &[], &special).unwrap()[0].value.to_f64();
        assert_eq!(count(Operator::CountNan), special.iter().filter(|x| x.is_nan()).count() as f64);
        assert_eq!(count(Operator::CountFinite), special.iter().filter(|x| x.is_finite()).count() as f64);
        assert!(count(Operator::CountNan) > 100.0 && count(Operator::CountFinite) < len as f64 - 1000.0);
    }

    #[test]
    fn numbers_of_a_kind_keep_their_bits() {
        let subnormal = numbers_of_kind::<f32>(Kind::Subnormal, 70_000).unwrap();
        let [expected, _] = vectors::<f32>(Kind::Subnormal, 1 << 16, &mut Random(1));
        assert_eq!(subnormal[..1 << 16], expected[..]);
        assert_eq!(subnormal[1 << 16..], expected[..70_000 - (1 << 16)]);
        assert!(numbers_of_kind::<f16>(Kind::Subnormal, 9).unwrap().iter().all(|x| *x < f16::MIN_POSITIVE));
        assert!(numbers_of_kind::<i8>(Kind::Wide, 9).is_err());
    }
}

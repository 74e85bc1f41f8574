//! Exact sums that stay on the device, compared with those on the host and with the same elements in one call.

use crate::by_shape::AddByShape;
use crate::shape::Shape;
use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use warpfold::exact::words::Words;
use warpfold::exact::{ExactSum, MAX_ELEMENTS, TooManyElements};
use warpfold::{Error, ExactElement, ExactSums, Gpu, View};

use crate::exact::{ALL, Data, Exact, numbers};

/// An element type with test data, and with exact sums on the device.
pub trait OnDevice: Exact + ExactElement + Send + Sync {
    /// The sum in one call.
    fn whole(gpu: &Gpu, view: View<'_, Self>) -> Result<Self::Sum, Error>;
}

macro_rules! on_device_types {
    ($($type:ident)*) => {$(
        impl OnDevice for $type {
            fn whole(gpu: &Gpu, view: View<'_, Self>) -> Result<Self::Sum, Error> {
                gpu.sum(view)
            }
        }
    )*};
}

on_device_types!(f32 f64 f16 bf16);

fn text(error: Error) -> String {
    error.to_string()
}

fn bits<R: Into<f64>>(x: R) -> u64 {
    let x: f64 = x.into();
    if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }
}

fn equal<V: PartialEq + std::fmt::Debug>(found: V, expected: V, what: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, expected {expected:?}")) }
}

/// Checks parts of an input, for each kind of data and each type, merged in any order on the host and on the device.
///
/// # Errors
/// If a sum differs from that of the whole input, or on an unexpected error.
pub fn parts(gpu: &Gpu, len: usize, source: &mut SmallRng) -> Result<(), String> {
    for data in ALL {
        parts_of::<f32>(gpu, data, len, source)?;
        parts_of::<f64>(gpu, data, len, source)?;
        parts_of::<f16>(gpu, data, len, source)?;
        parts_of::<bf16>(gpu, data, len, source)?;
    }
    Ok(())
}

fn parts_of<T: OnDevice>(gpu: &Gpu, data: Data, len: usize, source: &mut SmallRng) -> Result<(), String> {
    let case = format!("{len} {} of {data:?}", T::NAME);
    let elements = numbers::<T>(data, len, source);
    let input = gpu.upload(&elements).map_err(text)?;
    let right: ExactSum<T> = elements.iter().copied().collect();
    let whole = gpu.exact_sum(&input).map_err(text)?;
    equal(whole, right, &format!("the sum of {case}"))?;

    // Cuts at random positions, two of them equal, so that a part is empty.
    let mut cuts: Vec<usize> = (0..source.random_range(1..6)).map(|_| source.random_range(0..=len)).collect();
    cuts.extend([0, len, len / 2, len / 2]);
    cuts.sort_unstable();
    let mut parts: Vec<(usize, usize)> = cuts.windows(2).map(|cut| (cut[0], cut[1] - cut[0])).collect();
    parts.shuffle(source);
    let mut on_host = ExactSum::new();
    let mut on_device = gpu.exact_sums::<T>(1).map_err(text)?;
    for &(start, len) in &parts {
        let view = input.view().slice(start, len).map_err(text)?;
        let part = gpu.exact_sum(view).map_err(text)?;
        on_host.merge(&part).map_err(|error| error.to_string())?;
        // By an addition or by a merge.
        if source.random() {
            on_device.add_shape(view, Shape::all(len)).map_err(text)?;
        } else {
            on_device.merge(&gpu.upload_exact_sums(&[part]).map_err(text)?).map_err(text)?;
        }
    }
    equal(on_host, right, &format!("the sum of {} parts of {case}", parts.len()))?;
    let found = on_device.download().map_err(text)?;
    equal(found, vec![right], &format!("the device's sum of {} parts of {case}", parts.len()))?;
    let value = bits(gpu.download(&on_device.values().map_err(text)?).map_err(text)?[0]);
    let in_one_call = bits(T::whole(gpu, input.view()).map_err(text)?);
    equal(value, in_one_call, &format!("the value of {} parts of {case}", parts.len()))?;
    equal(bits(on_host.value()), in_one_call, &format!("the host's value of {} parts of {case}", parts.len()))
}

/// The elements of each output of a shape, and the number of elements of its view.
struct Layout {
    shape: Shape,
    len: usize,
    output: Box<dyn Fn(usize) -> Option<usize>>,
}

/// Shapes of `outputs` outputs of up to `most` elements each.
fn layouts(outputs: usize, most: usize, source: &mut SmallRng) -> Result<Vec<Layout>, Error> {
    let mut all = Vec::new();
    let mut add = |shape: Shape, len: usize, output: Box<dyn Fn(usize) -> Option<usize>>| {
        all.push(Layout { shape, len, output });
    };
    let (each, gap) = (source.random_range(0..=most), source.random_range(1..9));
    add(Shape::rows(outputs, each), outputs * each, Box::new(move |i| Some(i / each)));
    let pitch = each + gap;
    let of_row = move |i: usize| (i % pitch < each).then_some(i / pitch);
    add(Shape::rows(outputs, each).with_pitch(pitch)?, outputs * pitch, Box::new(of_row));
    let rows = source.random_range(0..=most);
    add(Shape::columns(rows, outputs), rows * outputs, Box::new(move |i| Some(i % outputs)));
    let pitch = outputs + gap;
    let of_column = move |i: usize| (i % pitch < outputs).then_some(i % pitch);
    add(Shape::columns(rows, outputs).with_pitch(pitch)?, rows * pitch, Box::new(of_column));
    if outputs.is_multiple_of(3) {
        let (rows, columns) = (source.random_range(1..=most), outputs / 3);
        let of_axis = move |i: usize| Some(i / (rows * columns) * columns + i % columns);
        add(Shape::axis(&[3, rows, columns], 1)?, outputs * rows, Box::new(of_axis));
    }
    Ok(all)
}

/// Checks additions of inputs of several shapes and kinds of data to `outputs` sums each, of up to `most` elements
/// each.
///
/// # Errors
/// As for [`parts`].
pub fn shapes(gpu: &Gpu, outputs: usize, most: usize, source: &mut SmallRng) -> Result<(), String> {
    shapes_of::<f32>(gpu, outputs, most, source)?;
    shapes_of::<f64>(gpu, outputs, most, source)?;
    shapes_of::<f16>(gpu, outputs, most, source)?;
    shapes_of::<bf16>(gpu, outputs, most, source)
}

fn shapes_of<T: OnDevice>(gpu: &Gpu, outputs: usize, most: usize, source: &mut SmallRng) -> Result<(), String> {
    let mut right = vec![ExactSum::<T>::new(); outputs];
    let mut sums = [gpu.exact_sums::<T>(outputs).map_err(text)?, gpu.exact_sums::<T>(outputs).map_err(text)?];
    let mut case = format!("{outputs} sums of {}", T::NAME);
    for Layout { shape, len, output } in layouts(outputs, most, source).map_err(text)? {
        // Mostly finite: a sum that is NaN stays NaN.
        let kinds = if source.random_range(0..8) == 0 { ALL.len() } else { ALL.len() - 3 };
        let data = ALL[source.random_range(0..kinds)];
        let elements = numbers::<T>(data, len + 3, source);
        // Not aligned.
        let offset = source.random_range(0..4);
        let input = gpu.upload(&elements).map_err(text)?;
        let view = input.view().slice(offset, len).map_err(text)?;
        sums[source.random_range(0..2)].add_shape(view, shape).map_err(text)?;
        for (i, &element) in elements[offset..offset + len].iter().enumerate() {
            if let Some(output) = output(i) {
                right[output].add(element);
            }
        }
        case += &format!(", {shape:?} of {data:?}");
    }
    let [mut sums, others] = sums;
    sums.merge(&others).map_err(text)?;
    check(gpu, &sums, &right, &case)?;
    // Uploads the sums, and merges them.
    let again = gpu.upload_exact_sums(&right).map_err(text)?;
    check(gpu, &again, &right, &format!("{case}, uploaded"))?;
    sums.merge(&again).map_err(text)?;
    let twice: Vec<ExactSum<T>> = right.iter().map(|sum| twice(*sum)).collect();
    check(gpu, &sums, &twice, &format!("{case}, twice"))?;
    sums.clear().map_err(text)?;
    check(gpu, &sums, &vec![ExactSum::new(); outputs], &format!("{case}, cleared"))
}

fn twice<T: OnDevice>(sum: ExactSum<T>) -> ExactSum<T> {
    let mut both = sum;
    both.merge(&sum).expect("few elements");
    both
}

/// Checks the sums on the device, their values and their means.
fn check<T: OnDevice>(gpu: &Gpu, sums: &ExactSums<T>, right: &[ExactSum<T>], case: &str) -> Result<(), String> {
    let found = sums.download().map_err(text)?;
    let values = gpu.download(&sums.values().map_err(text)?).map_err(text)?;
    let means = gpu.download(&sums.means().map_err(text)?).map_err(text)?;
    equal(found.len(), right.len(), &format!("the number of {case}"))?;
    for (i, right) in right.iter().enumerate() {
        equal(found[i], *right, &format!("sum {i} of {case}"))?;
        equal(bits(values[i]), bits(right.value()), &format!("value {i} of {case}"))?;
        equal(bits(means[i]), bits(right.mean::<T::Sum>()), &format!("mean {i} of {case}"))?;
    }
    Ok(())
}

/// Checks many additions to the same sums, of data that make limbs grow: `launches` of each of several shapes.
///
/// # Errors
/// As for [`parts`].
pub fn many_additions(gpu: &Gpu, launches: usize) -> Result<(), String> {
    many_of::<f32>(gpu, launches)?;
    many_of::<f64>(gpu, launches)
}

fn many_of<T: OnDevice>(gpu: &Gpu, launches: usize) -> Result<(), String> {
    let mut source = SmallRng::seed_from_u64(8);
    let greatest = T::nearest(T::GREATEST);
    for data in [Data::AnyFinite, Data::AtTheEdge, Data::Wide] {
        let mut elements = numbers::<T>(data, 40, &mut source);
        // All of one sign, so that all limbs grow in one direction.
        if let Data::AtTheEdge = data {
            elements.fill(greatest);
        }
        let input = gpu.upload(&elements).map_err(text)?;
        let of_output = |output: &dyn Fn(usize) -> usize| {
            let mut sums = vec![ExactSum::<T>::new(); 4];
            elements.iter().enumerate().for_each(|(i, &element)| sums[output(i)].add(element));
            sums
        };
        let (of_rows, of_columns) = (of_output(&|i| i / 10), of_output(&|i| i % 4));
        let mut sums = gpu.exact_sums::<T>(4).map_err(text)?;
        let mut right = vec![ExactSum::<T>::new(); 4];
        for _ in 0..launches {
            sums.add_shape(&input, Shape::rows(4, 10)).map_err(text)?;
            sums.add_shape(&input, Shape::columns(10, 4)).map_err(text)?;
            for (k, sum) in right.iter_mut().enumerate() {
                sum.merge(&of_rows[k]).and_then(|()| sum.merge(&of_columns[k])).map_err(|error| error.to_string())?;
            }
        }
        check(gpu, &sums, &right, &format!("{launches} additions of {} of {data:?}", T::NAME))?;
    }
    Ok(())
}

/// Checks that an invalid addition is a typed error, and changes nothing.
///
/// # Errors
/// If the result is different.
pub fn errors(gpu: &Gpu) -> Result<(), String> {
    let input = gpu.upload(&[1.0_f32; 12]).map_err(text)?;
    let mut sums = gpu.exact_sums::<f32>(3).map_err(text)?;
    sums.add_shape(&input, Shape::rows(3, 4)).map_err(text)?;
    let is_length = |found: Result<(), Error>, numbers: (usize, usize)| match found {
        Err(Error::Length { found, expected, .. }) => equal((found, expected), numbers, "the lengths of an error"),
        other => Err(format!("expected the error that {} are not {}, found {other:?}", numbers.0, numbers.1)),
    };
    let is_too_short = |found: Result<(), Error>, numbers: (usize, usize)| match found {
        Err(Error::TooShort { found, minimum, .. }) => equal((found, minimum), numbers, "the lengths of an error"),
        other => Err(format!("expected the error that {} are fewer than {}, found {other:?}", numbers.0, numbers.1)),
    };
    is_length(sums.add_shape(&input, Shape::rows(4, 3)), (4, 3))?;
    is_length(sums.add_shape(&input, Shape::columns(3, 4)), (4, 3))?;
    is_too_short(sums.add_shape(&input, Shape::rows(3, 5)), (12, 15))?;
    is_length(sums.merge(&gpu.exact_sums(2).map_err(text)?), (2, 3))?;
    is_length(sums.values_into(&mut gpu.zeroed::<f32>(4).map_err(text)?), (4, 3))?;
    is_length(sums.means_into(&mut gpu.zeroed::<f32>(0).map_err(text)?), (0, 3))?;

    // Three elements below the maximum.
    let nearly = |count: u64| {
        let words: [i64; 16] = std::array::from_fn(|k| if k == 15 { count as i64 } else { 0 });
        ExactSum::<f32>::from_words(&words).expect("not too many")
    };
    let mut full = gpu.upload_exact_sums(&[nearly(1), nearly(MAX_ELEMENTS - 3), nearly(0)]).map_err(text)?;
    let before = full.download().map_err(text)?;
    let is_too_many = |found: Result<(), Error>, most: u64| match found {
        Err(Error::TooManyElements(TooManyElements { count })) => equal(count, most, "the elements of an error"),
        other => Err(format!("expected the error that {most} elements are too many, found {other:?}")),
    };
    is_too_many(full.add_shape(&input, Shape::rows(3, 4)), MAX_ELEMENTS + 1)?;
    is_too_many(full.merge(&sums), MAX_ELEMENTS + 1)?;
    equal(full.download().map_err(text)?, before, "the sums after a refused addition")?;
    full.add_shape(&input, Shape::rows(3, 3)).map_err(text)?;
    equal(full.download().map_err(text)?[1].count(), MAX_ELEMENTS, "the number of elements")?;

    let elsewhere = Gpu::simt();
    let other = elsewhere.upload(&[1.0_f32; 12]).map_err(text)?;
    let others = elsewhere.exact_sums::<f32>(3).map_err(text)?;
    for found in [sums.add_shape(&other, Shape::rows(3, 4)), sums.merge(&others)] {
        if !matches!(found, Err(Error::OtherDevice { .. })) {
            return Err(format!("expected an error for another device's memory, found {found:?}"));
        }
    }
    check(gpu, &sums, &[ExactSum::from_iter([1.0; 4]); 3], "the sums after errors")
}

/// Checks a recording that adds, merges and rounds, started several times.
///
/// # Errors
/// As for [`parts`].
pub fn recorded(gpu: &Gpu) -> Result<(), String> {
    let input = gpu.upload(&[1e20_f32, 1.0, -1e20, 2.0]).map_err(text)?;
    let mut sums = gpu.exact_sums::<f32>(2).map_err(text)?;
    let mut all = gpu.exact_sums::<f32>(2).map_err(text)?;
    let mut values = gpu.zeroed::<f32>(2).map_err(text)?;
    let work = || {
        sums.add_shape(&input, Shape::columns(2, 2))?;
        all.merge(&sums)?;
        all.values_into(&mut values)
    };
    let recording = gpu.record(work).map_err(text)?;
    for _ in 0..3 {
        recording.start().map_err(text)?;
    }
    // Three sums of 0 and 3, merged after each addition: once, twice and three times.
    equal(gpu.download(&values).map_err(text)?, vec![0.0, 18.0], "the values of a recording")?;
    let counts: Vec<u64> = all.download().map_err(text)?.iter().map(ExactSum::count).collect();
    equal(counts, vec![12, 12], "the numbers of elements of a recording")
}

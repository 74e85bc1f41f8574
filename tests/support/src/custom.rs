//! Custom operators and custom exact sums, in every shape, compared with plain Rust.

use crate::by_shape::ByShape;
use crate::shape::Shape;
use rand::Rng;
use rand::rngs::SmallRng;
use test_kernels::operators::{
    Above, Between, Distance, Extent, Growth, Integer, Over, Peak, Positive, Scaled, Square, Successor, THIRD, Third,
    Times,
};
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::ops::Product;
use warpfold::{Element, Error, Gpu, Reduction};

use crate::exact::{Data, numbers};

/// The elements of a matrix.
struct Case<'a, T> {
    elements: &'a [T],
    rows: usize,
    columns: usize,
}

impl<T: Copy> Case<'_, T> {
    fn row(&self, row: usize) -> Vec<T> {
        self.elements[row * self.columns..][..self.columns].to_vec()
    }

    fn column(&self, column: usize) -> Vec<T> {
        (0..self.rows).map(|row| self.elements[row * self.columns + column]).collect()
    }
}

/// A result as bits, with all NaN equal.
trait Bits {
    fn bits(&self) -> Vec<u64>;
}

macro_rules! bits {
    ($($float:ident)*) => {$(
        impl Bits for $float {
            fn bits(&self) -> Vec<u64> {
                vec![if self.is_nan() { u64::MAX } else { u64::from(self.to_bits()) }]
            }
        }
    )*};
}

bits!(f32 f64);

impl Bits for u32 {
    fn bits(&self) -> Vec<u64> {
        vec![u64::from(*self)]
    }
}

impl Bits for u64 {
    fn bits(&self) -> Vec<u64> {
        vec![*self]
    }
}

impl Bits for [u64; 2] {
    fn bits(&self) -> Vec<u64> {
        self.to_vec()
    }
}

fn all_bits<R: Bits>(results: &[R]) -> Vec<u64> {
    results.iter().flat_map(Bits::bits).collect()
}

/// Checks a reduction in every shape: the whole, rows, columns, the middle axis, segments by offsets, and by a reducer
/// that runs twice.
fn in_every_shape<O, T>(
    gpu: &Gpu,
    operator: O,
    case: &Case<'_, T>,
    expected: &dyn Fn(&[T]) -> O::Output,
) -> Result<(), String>
where
    O: Reduction<T, Output: Bits> + Copy,
    T: Element,
{
    let Case { elements, rows, columns } = *case;
    let name = std::any::type_name::<O>();
    let text = |error: Error| format!("{name}, {rows} x {columns}: {error}");
    let input = gpu.upload(elements).map_err(text)?;
    let same = |what: &str, found: &[O::Output], expected: &[O::Output]| {
        let (found, expected) = (all_bits(found), all_bits(expected));
        match found.iter().zip(&expected).position(|(a, b)| a != b) {
            None if found.len() == expected.len() => Ok(()),
            at => Err(format!("{name} of {what}, {rows} x {columns}: {found:x?} and not {expected:x?} ({at:?})")),
        }
    };
    let of_shape = |shape| gpu.download(&gpu.reduce_to_buffer(operator, &input, shape)?);
    same("all", &[gpu.reduce_all(operator, &input).map_err(text)?], &[expected(elements)])?;
    let of_rows: Vec<O::Output> = (0..rows).map(|row| expected(&case.row(row))).collect();
    same("rows", &of_shape(Shape::rows(rows, columns)).map_err(text)?, &of_rows)?;
    let of_columns: Vec<O::Output> = (0..columns).map(|column| expected(&case.column(column))).collect();
    same("columns", &of_shape(Shape::columns(rows, columns)).map_err(text)?, &of_columns)?;
    let middle = Shape::axis(&[1, rows, columns], 1).map_err(text)?;
    same("the middle axis", &of_shape(middle).map_err(text)?, &of_columns)?;
    // Rows as segments; every third row is joined to the previous one.
    let ends: Vec<usize> = (0..=rows).filter(|row| row % 3 != 1 || *row == rows).map(|row| row * columns).collect();
    let offsets: Vec<u64> = ends.iter().map(|&end| end as u64).collect();
    let offsets = gpu.upload(&offsets).map_err(text)?;
    let found = gpu.download(&gpu.reduce_segments(operator, &input, &offsets).map_err(text)?).map_err(text)?;
    let of_segments: Vec<O::Output> = ends.windows(2).map(|ends| expected(&elements[ends[0]..ends[1]])).collect();
    same("segments", &found, &of_segments)?;
    let mut reducer = gpu.reducer_of(operator, Shape::rows(rows, columns)).map_err(text)?;
    let mut output = gpu.upload(&of_columns[..0]).map_err(text)?;
    if rows > 0 {
        output = gpu.upload(&vec![of_rows[0]; rows]).map_err(text)?;
    }
    for _ in 0..2 {
        reducer.start(&input, &mut output).map_err(text)?;
        same("rows, by a reducer", &gpu.download(&output).map_err(text)?, &of_rows)?;
    }
    Ok(())
}

/// The exact sum of the elements above a limit.
fn sum_over(limit: f32, elements: &[f32]) -> f32 {
    elements.iter().copied().filter(|&x| x > limit).collect::<ExactSum<f32>>().value()
}

/// The exact sum of the products with a factor.
fn sum_scaled(factor: f64, elements: &[f64]) -> f64 {
    elements.iter().map(|&x| (x, factor)).collect::<ExactDot<f64>>().value()
}

/// Checks custom operators and custom exact sums of a matrix of random elements, in every shape.
///
/// # Errors
/// If a result is wrong, or on an error of the library.
pub fn check(gpu: &Gpu, rows: usize, columns: usize, data: Data, source: &mut SmallRng) -> Result<(), String> {
    let singles = numbers::<f32>(data, rows * columns, source);
    let case = Case { elements: &singles, rows, columns };
    for limit in [f32::INFINITY, 2.0] {
        in_every_shape(gpu, Peak { limit }, &case, &|elements| {
            let magnitudes = elements.iter().map(|x| x.abs()).filter(|&x| x <= limit);
            magnitudes.fold(0.0, f32::max)
        })?;
    }
    let above = |limit: f32, elements: &[f32]| elements.iter().filter(|&&x| x > limit).count();
    in_every_shape(gpu, Above::<3, u64>::default(), &case, &|elements| above(3.0, elements) as u64)?;
    in_every_shape(gpu, Above::<{ -1 }, u32>::default(), &case, &|elements| above(-1.0, elements) as u32)?;
    in_every_shape(gpu, Times::<{ -2 }>, &case, &|elements| {
        let products = elements.iter().map(|&x| (x, -2.0));
        products.collect::<ExactDot<f32>>().rounded::<f64>()
    })?;
    let bytes: Vec<u8> = (0..rows * columns).map(|_| u8::from(source.random_ratio(1, 9))).collect();
    in_every_shape(gpu, Extent, &Case { elements: &bytes, rows, columns }, &|elements| {
        let places = || elements.iter().enumerate().filter(|(_, x)| **x != 0).map(|(i, _)| i as u64);
        [places().max().unwrap_or(0) - places().min().unwrap_or(0), places().count() as u64]
    })?;
    // Terms without fields, and with several values of their fields one after the other. Large matrices take long, so
    // they have one value. Above the second limit are no elements, above the last are all numbers.
    let is_small = rows * columns <= 6000;
    let most = if is_small { usize::MAX } else { 1 };
    if is_small {
        in_every_shape(gpu, Positive, &case, &|elements| sum_over(0.0, elements))?;
    }
    for limit in [0.5, f32::INFINITY, -1.0, f32::NEG_INFINITY].into_iter().take(most) {
        in_every_shape(gpu, Over { limit }, &case, &|elements| sum_over(limit, elements))?;
    }
    in_every_shape(gpu, Square, &case, &|elements| {
        let squares = elements.iter().map(|&x| (x, x));
        squares.collect::<ExactDot<f32>>().rounded::<f64>()
    })?;
    let integers: Vec<i32> = singles.iter().map(|x| x.to_bits() as i32).collect();
    in_every_shape(gpu, Integer, &Case { elements: &integers, rows, columns }, &|elements| {
        elements.iter().map(|&x| i64::from(x)).sum::<i64>() as f64
    })?;
    let shorts: Vec<i16> = singles.iter().map(|x| x.to_bits() as i16).collect();
    for (from, to) in [(-300, 20_000), (i16::MIN, -1)].into_iter().take(most) {
        in_every_shape(gpu, Between { from, to }, &Case { elements: &shorts, rows, columns }, &|elements| {
            elements.iter().filter(|x| (from..=to).contains(*x)).map(|&x| i64::from(x)).sum::<i64>() as f64
        })?;
    }
    // Numbers whose products with a third do not underflow.
    let doubles = numbers::<f64>(Data::Normal, rows * columns, source);
    let case = Case { elements: &doubles, rows, columns };
    if is_small {
        in_every_shape(gpu, Third, &case, &|elements| sum_scaled(THIRD, elements))?;
    }
    for factor in [-THIRD, 1e10 / 7.0, 0.0].into_iter().take(most) {
        in_every_shape(gpu, Scaled { factor }, &case, &|elements| sum_scaled(factor, elements))?;
    }
    Ok(())
}

/// Checks a reduction of the rows and the columns of a matrix with a pitch at odd addresses, recorded and replayed, and
/// of the columns of three matrices.
fn in_every_layout<O, T>(
    gpu: &Gpu,
    operator: O,
    case: &Case<'_, T>,
    expected: &dyn Fn(&[T]) -> O::Output,
) -> Result<(), String>
where
    O: Reduction<T, Output: Bits> + Copy,
    T: Element,
{
    let Case { elements, rows, columns } = *case;
    let name = std::any::type_name::<O>();
    let of_rows: Vec<O::Output> = (0..rows).map(|row| expected(&case.row(row))).collect();
    let of_columns: Vec<O::Output> = (0..columns).map(|column| expected(&case.column(column))).collect();
    for (offset, pad) in [(1, 0), (2, 3)] {
        let pitch = columns + pad;
        // What lies around the rows would change a result.
        let mut all = vec![elements[0]; offset];
        for row in 0..rows {
            all.extend(case.row(row));
            all.resize(all.len() + pad, elements[0]);
        }
        let check = || {
            let buffer = gpu.upload(&all)?;
            for (shape, expected) in
                [(Shape::rows(rows, columns), &of_rows), (Shape::columns(rows, columns), &of_columns)]
            {
                let view = || buffer.view().slice(offset, rows * pitch);
                let shape = shape.with_pitch(pitch)?;
                let found = gpu.download(&gpu.reduce_to_buffer(operator, view()?, shape)?)?;
                let mut reducer = gpu.reducer_of(operator, shape)?;
                let mut output = gpu.upload(&vec![expected[0]; expected.len()])?;
                let recording = gpu.record(|| reducer.start(view()?, &mut output))?;
                recording.start()?;
                recording.start()?;
                for (how, found) in [("at once", found), ("recorded", gpu.download(&output)?)] {
                    if all_bits(&found) != all_bits(expected) {
                        return Ok(Err(format!("{shape:?}, {offset} past 16 bytes, {how}: other results")));
                    }
                }
            }
            Ok(Ok(()))
        };
        check().map_err(|error: Error| format!("{name}: {error}"))?.map_err(|what| format!("{name}: {what}"))?;
    }
    let of_matrix = rows / 3;
    let check = || {
        let input = gpu.upload(&elements[..3 * of_matrix * columns])?;
        gpu.download(&gpu.reduce_to_buffer(operator, &input, Shape::axis(&[3, of_matrix, columns], 1)?)?)
    };
    let found = check().map_err(|error: Error| format!("{name}: {error}"))?;
    let matrices = (0..3).map(|k| &elements[k * of_matrix * columns..][..of_matrix * columns]);
    let of_matrices: Vec<O::Output> = matrices
        .flat_map(|elements| {
            let case = Case { elements, rows: of_matrix, columns };
            (0..columns).map(|column| expected(&case.column(column))).collect::<Vec<_>>()
        })
        .collect();
    if all_bits(&found) == all_bits(&of_matrices) { Ok(()) } else { Err(format!("{name}: columns of three matrices")) }
}

/// Checks a custom operator and custom exact sums of a matrix of at least three rows with a pitch, at odd addresses, in
/// recordings, and of several matrices.
///
/// # Errors
/// If a result is wrong, or on an error of the library.
pub fn check_layouts(gpu: &Gpu, rows: usize, columns: usize, data: Data, source: &mut SmallRng) -> Result<(), String> {
    let singles = numbers::<f32>(data, rows * columns, source);
    let case = Case { elements: &singles, rows, columns };
    in_every_layout(gpu, Peak { limit: 2.0 }, &case, &|elements| {
        elements.iter().map(|x| x.abs()).filter(|&x| x <= 2.0).fold(0.0, f32::max)
    })?;
    in_every_layout(gpu, Positive, &case, &|elements| {
        elements.iter().copied().filter(|&x| x > 0.0).collect::<ExactSum<f32>>().value()
    })?;
    in_every_layout(gpu, Square, &case, &|elements| {
        elements.iter().map(|&x| (x, x)).collect::<ExactDot<f32>>().rounded::<f64>()
    })?;
    for limit in [-0.5, 0.5] {
        in_every_layout(gpu, Over { limit }, &case, &|elements| sum_over(limit, elements))?;
    }
    let doubles = numbers::<f64>(Data::Normal, rows * columns, source);
    let case = Case { elements: &doubles, rows, columns };
    in_every_layout(gpu, Third, &case, &|elements| sum_scaled(THIRD, elements))?;
    in_every_layout(gpu, Scaled { factor: -1.0 / 3.0 }, &case, &|elements| sum_scaled(-THIRD, elements))
}

/// Checks that each reducer of one custom exact sum keeps its own fields: reducers of rows, columns and segments that
/// run in turn, at once and in a recording that is started twice.
///
/// # Errors
/// If a result is wrong, or on an error of the library.
pub fn fields_of_reducers(gpu: &Gpu, rows: usize, columns: usize, source: &mut SmallRng) -> Result<(), String> {
    let elements = numbers::<f32>(Data::Wide, rows * columns, source);
    let case = Case { elements: &elements, rows, columns };
    let limits = [-0.25, 0.0, 1.5];
    let shapes = [Shape::rows(rows, columns), Shape::columns(rows, columns), Shape::all(rows * columns)];
    let of_rows = |limit| (0..rows).map(|row| sum_over(limit, &case.row(row))).collect::<Vec<f32>>();
    let expected = |shape, limit| match shape {
        _ if shape == shapes[0] => of_rows(limit),
        _ if shape == shapes[1] => (0..columns).map(|column| sum_over(limit, &case.column(column))).collect(),
        _ => vec![sum_over(limit, &elements)],
    };
    let run = || {
        let input = gpu.upload(&elements)?;
        let offsets = gpu.upload(&(0..=rows).map(|row| (row * columns) as u64).collect::<Vec<_>>())?;
        let (mut reducers, mut of_segments) = (Vec::new(), Vec::new());
        // Each with an output for the reduction at once, and one for the recording.
        for limit in limits {
            for shape in shapes {
                let outputs = [gpu.zeroed::<f32>(shape.outputs())?, gpu.zeroed(shape.outputs())?];
                reducers.push((limit, shape, gpu.reducer_of(Over { limit }, shape)?, outputs));
            }
            let outputs = [gpu.zeroed::<f32>(rows)?, gpu.zeroed(rows)?];
            of_segments.push((limit, gpu.segment_reducer(Over { limit }, rows, elements.len())?, outputs));
        }
        let mut start = |k: usize| {
            for (_, _, reducer, outputs) in &mut reducers {
                reducer.start(&input, &mut outputs[k])?;
            }
            of_segments
                .iter_mut()
                .try_for_each(|(_, reducer, outputs)| reducer.start(&input, &offsets, &mut outputs[k]))
        };
        let recording = gpu.record(|| start(1))?;
        start(0)?;
        recording.start()?;
        recording.start()?;
        for (k, how) in ["at once", "recorded"].into_iter().enumerate() {
            for (limit, shape, _, outputs) in &reducers {
                let (found, expected) = (gpu.download(&outputs[k])?, expected(*shape, *limit));
                if all_bits(&found) != all_bits(&expected) {
                    return Ok(Err(format!("{shape:?} over {limit}, {how}: {found:?} and not {expected:?}")));
                }
            }
            for (limit, reducer, outputs) in &mut of_segments {
                reducer.check()?;
                let (found, expected) = (gpu.download(&outputs[k])?, of_rows(*limit));
                if all_bits(&found) != all_bits(&expected) {
                    return Ok(Err(format!("segments over {limit}, {how}: {found:?} and not {expected:?}")));
                }
            }
        }
        Ok(Ok(()))
    };
    run().map_err(|error: Error| error.to_string())?
}

/// Checks that a custom operator with a fixed order has the order of the built-in ones: products of numbers near 1, in
/// every shape.
///
/// # Errors
/// If a result has other bits than the product, or on an error of the library.
pub fn order_of_products(gpu: &Gpu, rows: usize, columns: usize, source: &mut SmallRng) -> Result<(), String> {
    // `f64` represents each number exactly, and 1 plus the number.
    let small: Vec<f64> = (0..rows * columns).map(|_| f64::from(source.random_range(-0.01_f32..0.01))).collect();
    let factors: Vec<f64> = small.iter().map(|x| 1.0 + x).collect();
    let run = || {
        let (small, factors) = (gpu.upload(&small)?, gpu.upload(&factors)?);
        for shape in [Shape::all(rows * columns), Shape::rows(rows, columns), Shape::columns(rows, columns)] {
            let growth = gpu.download(&gpu.reduce_to_buffer(Growth, &small, shape)?)?;
            let products = gpu.download(&gpu.reduce_to_buffer(Product, &factors, shape)?)?;
            if all_bits(&growth) != all_bits(&products) {
                return Ok(Err(format!("{shape:?}: {growth:?} and not {products:?}")));
            }
        }
        Ok(Ok(()))
    };
    run().map_err(|error: Error| error.to_string())?
}

/// Checks that invalid reductions are refused: an operator without an identity on no elements, an exact sum whose term
/// of 0 is not 0, and shapes larger than any memory.
///
/// # Errors
/// If one is not refused, or with another error.
pub fn errors(gpu: &Gpu) -> Result<(), String> {
    fn expect<R>(found: Result<R, Error>, is_right: impl Fn(&Error) -> bool) -> Result<(), String> {
        match found {
            Err(error) if is_right(&error) => Ok(()),
            Err(error) => Err(format!("another error: {error}")),
            Ok(_) => Err("no error".to_owned()),
        }
    }
    let text = |error: Error| error.to_string();
    let (nothing, none) = (gpu.zeroed::<u8>(0).map_err(text)?, gpu.zeroed::<f32>(0).map_err(text)?);
    expect(gpu.reduce_all(Extent, &nothing), |error| matches!(error, Error::Empty { operator: "the extent" }))?;
    let is_of_zero = |error: &Error| matches!(error, Error::TermOfZero { operator: "the sum of successors" });
    expect(gpu.reduce_all(Successor, &none), is_of_zero)?;
    expect(gpu.reducer_of(Successor, Shape::columns(3, 2)), is_of_zero)?;
    expect(gpu.segment_reducer(Successor, 1, 1), is_of_zero)?;
    let of_center = |center| Distance { center };
    let is_of_zero = |error: &Error| matches!(error, Error::TermOfZero { operator: "the sum of distances" });
    let numbers = gpu.upload(&[-1.5_f64, 4.0]).map_err(text)?;
    for center in [2.0, f64::from_bits(1), f64::NAN] {
        expect(gpu.reduce_all(of_center(center), &numbers), is_of_zero)?;
        expect(gpu.reducer_of(of_center(center), Shape::columns(3, 2)), is_of_zero)?;
        expect(gpu.segment_reducer(of_center(center), 1, 1), is_of_zero)?;
    }
    for center in [0.0, -0.0] {
        if gpu.reduce_all(of_center(center), &numbers).map_err(text)? != 5.5 {
            return Err("another sum of distances".to_owned());
        }
    }
    // Of a second term, too.
    let is_of_scaled = |error: &Error| matches!(error, Error::TermOfZero { operator: "the sum of scaled numbers" });
    expect(gpu.reduce_all(Scaled { factor: f64::INFINITY }, &numbers), is_of_scaled)?;
    expect(gpu.reducer_of(Positive, Shape::rows(usize::MAX, 2)), |error| matches!(error, Error::ArrayTooLarge { .. }))?;
    let mut of_none = gpu.reducer_of(Positive, Shape::rows(0, 2)).map_err(text)?;
    of_none.start(&none, &mut gpu.zeroed(0).map_err(text)?).map_err(text)?;
    let sums = gpu.reduce_to_buffer(Positive, &none, Shape::rows(3, 0)).map_err(text)?;
    if gpu.download(&sums).map_err(text)? == [0.0; 3] { Ok(()) } else { Err("empty rows have a sum".to_owned()) }
}

/// The shapes to try with each kind of data: short and long rows, few and many columns, several blocks for one result.
pub const SHAPES: [(usize, usize); 8] =
    [(1, 1), (7, 5), (300, 4), (40, 127), (5, 600), (2000, 33), (3, 40_000), (20_000, 3)];

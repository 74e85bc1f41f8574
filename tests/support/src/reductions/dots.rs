//! Dot products.

use crate::by_shape::ByShape;
use crate::shape::Shape;
use half::{bf16, f16};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use warpfold::ops::Dot;
use warpfold::{Element, Gpu, Reduces};

use super::data::{Kind, Random};
use super::reference::{Operator, dot};
use super::value::{Value, Values};

/// Two inputs of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The kind of data.
    pub kind: Kind,
    /// The seed of the elements.
    pub seed: u64,
    /// The number of rows.
    pub rows: usize,
    /// The number of elements of a row.
    pub len: usize,
    /// The distance between the starts of two rows.
    pub pitch: usize,
    /// The number of elements before each view.
    pub offsets: [usize; 2],
}

/// Computes the dot products of rows on a device, checks them, and returns their bits.
pub type Check = fn(&Gpu, &Case) -> Result<Vec<u8>, String>;

macro_rules! checks {
    ($($type:ident)*) => {
        /// One check for each type.
        pub static CHECKS: &[(&str, Check)] = &[$((stringify!($type), check::<$type>)),*];
    };
}

checks!(f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64);

fn check<T: Element + Random>(gpu: &Gpu, case: &Case) -> Result<Vec<u8>, String>
where
    Dot: Reduces<T, 2, Output: Values>,
    Value: From<T>,
{
    let Case { kind, rows, len, pitch, .. } = *case;
    let mut source = SmallRng::seed_from_u64(case.seed);
    let elements = if rows == 0 { 0 } else { (rows - 1) * pitch + len };
    let inputs =
        case.offsets.map(|offset| -> Vec<T> { (0..offset + elements).map(|_| T::random(kind, &mut source)).collect() });
    let dots = || {
        let buffers = [gpu.upload(&inputs[0])?, gpu.upload(&inputs[1])?];
        let x = buffers[0].view().slice(case.offsets[0], elements)?;
        let y = buffers[1].view().slice(case.offsets[1], elements)?;
        gpu.download(&gpu.reduce_pairs(Dot, x, y, Shape::rows(rows, len).with_pitch(pitch)?)?)
    };
    let found = dots().map_err(|error: warpfold::Error| format!("{case:?}: {error}"))?;
    let dtype = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
    for (row, found) in found.iter().enumerate() {
        let at = |which: usize, i: usize| Value::from(inputs[which][case.offsets[which] + row * pitch + i]);
        let pairs = (0..len).map(|i| (at(0, i), at(1, i)));
        let expected = if dtype.contains('f') {
            dot(dtype, &pairs.map(|(x, y)| (x.as_f64(), y.as_f64())).collect())
        } else {
            let products: Vec<Value> = pairs.map(|(x, y)| Value::Int(x.as_int().wrapping_mul(y.as_int()))).collect();
            Operator::Sum.expected(dtype, &products)[0]
        };
        let found = found.values()[0];
        if !expected.is(found) {
            return Err(format!("dot of {dtype}, {case:?}: row {row} is {found:?}, should be {expected:?}"));
        }
    }
    Ok(found.iter().flat_map(Values::bytes).collect())
}

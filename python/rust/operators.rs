//! The table of functions: which operator of warpfold reduces which elements.

use bytemuck::Pod;
use half::{bf16, f16};
use warpfold::host::{self, View};
use warpfold::ops::{self, InElementType};
use warpfold::{Axes, Element, Error, Gpu, Reduces};

use crate::array::HostArray;
use crate::dtype::DType;
use crate::gpu::elements::Elements;

/// A function of the package that reduces an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Sum,
    Mean,
    Prod,
    Min,
    Max,
    ArgMin,
    ArgMax,
    Any,
    All,
    CountNonzero,
    CountNan,
    CountFinite,
    VectorNorm,
    SumOfSquares,
    MinMax,
}

use Function::*;

impl Function {
    /// The function's name in Python.
    pub fn name(self) -> &'static str {
        match self {
            Sum => "sum",
            Mean => "mean",
            Prod => "prod",
            Min => "min",
            Max => "max",
            ArgMin => "argmin",
            ArgMax => "argmax",
            Any => "any",
            All => "all",
            CountNonzero => "count_nonzero",
            CountNan => "count_nan",
            CountFinite => "count_finite",
            VectorNorm => "vector_norm",
            SumOfSquares => "sum_of_squares",
            MinMax => "min_max",
        }
    }
}

/// An element type of Rust.
trait Item {
    const DTYPE: DType;
    type Element: Element;
}

macro_rules! items {
    ($($type:ident as $element:ident is $dtype:ident;)*) => {$(
        impl Item for $type {
            const DTYPE: DType = DType::$dtype;
            type Element = $element;
        }
    )*};
}

items! {
    // NumPy's `bool` is a byte, 0 or 1.
    bool as u8 is Bool;
    i8 as i8 is Int8;
    i16 as i16 is Int16;
    i32 as i32 is Int32;
    i64 as i64 is Int64;
    u8 as u8 is UInt8;
    u16 as u16 is UInt16;
    u32 as u32 is UInt32;
    u64 as u64 is UInt64;
    f16 as f16 is Float16;
    bf16 as bf16 is BFloat16;
    f32 as f32 is Float32;
    f64 as f64 is Float64;
}

/// The type of the elements.
fn own(dtype: DType) -> DType {
    dtype
}

/// The integer type of 64 bits with or without a sign, as the elements.
fn wide(dtype: DType) -> DType {
    if dtype.is_signed() { DType::Int64 } else { DType::UInt64 }
}

/// The same type for elements of any type.
macro_rules! fixed {
    ($($name:ident is $dtype:ident;)*) => {$(
        fn $name(_: DType) -> DType {
            DType::$dtype
        }
    )*};
}

fixed! {
    float32 is Float32;
    float64 is Float64;
    int64 is Int64;
    logical is Bool;
}

/// Makes the functions below from rows: a function, the types of the elements, the type of the results, and an
/// operator in parentheses. `direct`: the results of the operator have the bits of that type, or, for a type of
/// integers, more bits, which are then cut off. `rounded`: they are `f32`, and are rounded once more. If a function has
/// several results for a type of elements, the first is that without `dtype`.
///
/// `direct` and `rounded` are modules, each with a function for arrays in host memory and one for arrays on a GPU.
macro_rules! operators {
    ($($function:ident of [$($type:ident)+] to $result:ident, $how:ident($operator:expr);)*) => {
        /// The types of a function's results for a type of elements.
        pub fn results(function: Function, dtype: DType) -> Vec<DType> {
            let mut results = Vec::new();
            $(if function == $function && [$(<$type as Item>::DTYPE),+].contains(&dtype) {
                results.push($result(dtype));
            })*
            results
        }

        /// Reduces an array, to results of one of the types in [`results`].
        pub fn reduce(function: Function, array: &Operand<'_>, axes: Axes, result: DType) -> Result<Reduced, Error> {
            $($(
                if (function, array.dtype, result) == ($function, <$type as Item>::DTYPE, $result(array.dtype)) {
                    return $how::on_host::<$type, _>($operator, array, axes);
                }
            )+)*
            unreachable!("{} of {} to {}", function.name(), array.dtype.name(), result.name())
        }

        /// Reduces an array on a GPU to an array, with results of one of the types in [`results`] that is not
        /// [rounded](rounded_from) from another one.
        pub fn reduce_on_gpu(
            function: Function,
            dtype: DType,
            gpu: &Gpu,
            elements: &Elements,
            axes: Axes,
            result: DType,
            output: &mut Elements,
        ) -> Result<(), Error> {
            $($(
                if (function, dtype, result) == ($function, <$type as Item>::DTYPE, $result(dtype)) {
                    return $how::on_gpu::<$type, _>($operator, gpu, elements, axes, output);
                }
            )+)*
            unreachable!("{} of {} to {}", function.name(), dtype.name(), result.name())
        }

        /// The type that results are rounded from, if the operator's results have another one.
        pub fn rounded_from(function: Function, dtype: DType, result: DType) -> Option<DType> {
            $($(
                if (function, dtype, result) == ($function, <$type as Item>::DTYPE, $result(dtype)) {
                    return $how::FROM;
                }
            )+)*
            None
        }
    };
}

operators! {
    Sum of [f16 bf16] to own, direct(InElementType(ops::Sum));
    Sum of [f16 bf16] to float32, direct(ops::Sum);
    Sum of [f32 f64] to own, direct(ops::Sum);
    Sum of [f32] to float64, direct(ops::SumInF64);
    Sum of [i8 i16 i32 i64 u8 u16 u32 u64] to wide, direct(ops::Sum);
    Sum of [bool] to int64, direct(ops::CountNonzero);

    Mean of [f16 bf16] to own, direct(InElementType(ops::Mean));
    Mean of [f16 bf16] to float32, direct(ops::Mean);
    Mean of [f32 f64] to own, direct(ops::Mean);
    Mean of [i8 i16 i32 i64 u8 u16 u32 u64 bool] to float64, direct(ops::Mean);

    Prod of [f16 bf16] to own, rounded(ops::Product);
    Prod of [f16 bf16] to float32, direct(ops::Product);
    Prod of [f32 f64] to own, direct(ops::Product);
    Prod of [i8 i16 i32 i64 u8 u16 u32 u64] to wide, direct(ops::Product);
    Prod of [bool] to int64, direct(ops::Product);

    Min of [i8 i16 i32 i64 u8 u16 u32 u64 bool f16 bf16 f32 f64] to own, direct(ops::Min);
    Max of [i8 i16 i32 i64 u8 u16 u32 u64 bool f16 bf16 f32 f64] to own, direct(ops::Max);
    MinMax of [i8 i16 i32 i64 u8 u16 u32 u64 bool f16 bf16 f32 f64] to own, direct(ops::MinMax);
    ArgMin of [i8 i16 i32 i64 u8 u16 u32 u64 bool f16 bf16 f32 f64] to int64, direct(ops::ArgMin);
    ArgMax of [i8 i16 i32 i64 u8 u16 u32 u64 bool f16 bf16 f32 f64] to int64, direct(ops::ArgMax);
    Any of [i8 i16 i32 i64 u8 u16 u32 u64 bool f16 bf16 f32 f64] to logical, direct(ops::Any);
    All of [i8 i16 i32 i64 u8 u16 u32 u64 bool f16 bf16 f32 f64] to logical, direct(ops::All);
    CountNonzero of [i8 i16 i32 i64 u8 u16 u32 u64 bool f16 bf16 f32 f64] to int64, direct(ops::CountNonzero);
    CountNan of [f16 bf16 f32 f64] to int64, direct(ops::CountNan);
    CountFinite of [f16 bf16 f32 f64] to int64, direct(ops::CountFinite);

    VectorNorm of [f16 bf16] to own, direct(InElementType(ops::Norm));
    VectorNorm of [f32 f64] to own, direct(ops::Norm);
    VectorNorm of [i8 i16 i32 i64 u8 u16 u32 u64] to float64, direct(ops::Norm);
    SumOfSquares of [f16 bf16] to own, direct(InElementType(ops::SumOfSquares));
    SumOfSquares of [f32 f64] to own, direct(ops::SumOfSquares);
    SumOfSquares of [i8 i16 i32 i64 u8 u16 u32 u64] to wide, direct(ops::SumOfSquares);
}

/// An array that is reduced: what a thread without Python's lock needs of a [`HostArray`].
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    pub dtype: DType,
    pub bytes: &'a [u8],
    pub extents: &'a [usize],
    pub strides: &'a [isize],
    pub start: usize,
}

impl<'a> From<&'a HostArray> for Operand<'a> {
    fn from(array: &'a HostArray) -> Self {
        let layout = &array.layout;
        let (extents, strides, start) = (&layout.extents, &layout.strides, layout.start);
        Self { dtype: array.dtype, bytes: array.bytes(), extents, strides, start }
    }
}

impl<'a> Operand<'a> {
    /// The elements.
    pub fn view<T: Element>(&self) -> Result<View<'a, T>, Error> {
        View::from_bytes(self.bytes, self.extents, self.strides, self.start)
    }
}

/// Results in C order.
pub struct Reduced {
    pub extents: Vec<usize>,
    results: Box<dyn Bytes + Send>,
    /// The distance of two results in bytes.
    pub stride: usize,
}

impl Reduced {
    /// The bytes of the results.
    pub fn bytes(&self) -> &[u8] {
        self.results.bytes()
    }
}

trait Bytes {
    fn bytes(&self) -> &[u8];
}

impl<T: Pod> Bytes for host::Array<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.as_slice())
    }
}

impl<T: Pod> Bytes for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

impl<T: Pod + Send> From<host::Array<T>> for Reduced {
    fn from(results: host::Array<T>) -> Self {
        Self { extents: results.extents().to_vec(), results: Box::new(results), stride: size_of::<T>() }
    }
}

mod direct {
    use super::*;

    pub const FROM: Option<DType> = None;

    pub fn on_host<I, O>(operator: O, array: &Operand<'_>, axes: Axes) -> Result<Reduced, Error>
    where
        I: Item,
        O: Reduces<I::Element, 1>,
    {
        host::reduce(operator, array.view()?, axes).map(Reduced::from)
    }

    pub fn on_gpu<I, O>(
        operator: O,
        gpu: &Gpu,
        elements: &Elements,
        axes: Axes,
        output: &mut Elements,
    ) -> Result<(), Error>
    where
        I: Item,
        O: Reduces<I::Element, 1>,
    {
        let elements = elements.borrow::<I::Element>(gpu)?;
        gpu.reduce_into(operator, elements.view(), axes, output.borrow_mut(gpu)?.view_mut())
    }
}

/// Reduces to `f32`, and rounds to the type of the elements.
mod rounded {
    use super::*;

    pub const FROM: Option<DType> = Some(DType::Float32);

    pub fn on_host<I, O>(operator: O, array: &Operand<'_>, axes: Axes) -> Result<Reduced, Error>
    where
        I: Element + FromF32,
        O: Reduces<I, 1, Output = f32>,
    {
        let results = host::reduce(operator, array.view()?, axes)?;
        let halves: Vec<I> = results.as_slice().iter().map(|&result| I::from_f32(result)).collect();
        Ok(Reduced { extents: results.extents().to_vec(), results: Box::new(halves), stride: size_of::<I>() })
    }

    pub fn on_gpu<I, O>(_: O, _: &Gpu, _: &Elements, _: Axes, _: &mut Elements) -> Result<(), Error>
    where
        I: Element,
        O: Reduces<I, 1>,
    {
        unreachable!("no operator has these results")
    }
}

/// A type that an `f32` is rounded to.
trait FromF32 {
    fn from_f32(number: f32) -> Self;
}

impl FromF32 for f16 {
    fn from_f32(number: f32) -> Self {
        Self::from_f32(number)
    }
}

impl FromF32 for bf16 {
    fn from_f32(number: f32) -> Self {
        Self::from_f32(number)
    }
}

/// Makes the functions below from rows: a type of elements, the type of the operator's results, and the operator.
macro_rules! dot_products {
    ($($type:ident to $result:ident: $operator:expr;)*) => {
        /// The dot products of two arrays of the same type along an axis. The low bits of each are one of that type.
        pub fn vecdot(x: &Operand<'_>, y: &Operand<'_>, axis: isize) -> Result<Reduced, Error> {
            match x.dtype {
                $(<$type as Item>::DTYPE => {
                    host::reduce($operator, (x.view::<$type>()?, y.view::<$type>()?), axis).map(Reduced::from)
                })*
                other => unreachable!("vecdot of {}", other.name()),
            }
        }

        /// The dot products of two arrays on a GPU, in the type of [`of_dot`].
        pub fn vecdot_on_gpu(
            dtype: DType,
            gpu: &Gpu,
            [x, y]: [&Elements; 2],
            axis: isize,
            output: &mut Elements,
        ) -> Result<(), Error> {
            match dtype {
                $(<$type as Item>::DTYPE => {
                    let (x, y) = (x.borrow::<$type>(gpu)?, y.borrow::<$type>(gpu)?);
                    gpu.reduce_into($operator, (x.view(), y.view()), axis, output.borrow_mut(gpu)?.view_mut())
                })*
                other => unreachable!("vecdot of {}", other.name()),
            }
        }

        /// The type of the operator's results for a type of elements.
        pub fn of_dot(dtype: DType) -> DType {
            match dtype {
                $(<$type as Item>::DTYPE => $result(dtype),)*
                other => other,
            }
        }
    };
}

dot_products! {
    i8 to wide: ops::Dot;
    i16 to wide: ops::Dot;
    i32 to wide: ops::Dot;
    i64 to wide: ops::Dot;
    u8 to wide: ops::Dot;
    u16 to wide: ops::Dot;
    u32 to wide: ops::Dot;
    u64 to wide: ops::Dot;
    f16 to own: InElementType(ops::Dot);
    bf16 to own: InElementType(ops::Dot);
    f32 to own: ops::Dot;
    f64 to own: ops::Dot;
}

//! Results derived from exact sums, on the device and on the host.

use std::fmt;

use half::{bf16, f16};
use warpfold::exact::{ExactDot, ExactSum, Summand};
use warpfold::{Array, Buffer, Error, Gpu, ops};

use super::numbers::OfBits;
use crate::element::Number;
use crate::number::Value;

/// A result that is rounded only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Sum,
    Mean,
    SumOfSquares,
    Norm,
    SumInF64,
    Dot,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::SumOfSquares => "sum of squares",
            Self::Norm => "norm",
            Self::SumInF64 => "sum in f64",
            Self::Dot => "dot product",
        })
    }
}

impl Operation {
    /// The result on the host, by [`ExactSum`] or [`ExactDot`].
    pub fn on_host<T: Exact>(self, x: &[T], y: &[T]) -> Value {
        let sum = || x.iter().copied().collect::<ExactSum<T>>();
        let squares = || x.iter().map(|&x| (x, x)).collect::<ExactDot<T>>();
        match self {
            Self::Sum => sum().value().value(),
            Self::Mean => sum().mean::<T::Sum>().value(),
            Self::SumOfSquares => squares().value().value(),
            Self::Norm => squares().sqrt::<T::Sum>().value(),
            Self::SumInF64 => sum().rounded::<f64>().value(),
            Self::Dot => x.iter().copied().zip(y.iter().copied()).collect::<ExactDot<T>>().value().value(),
        }
    }
}

/// A type whose sums are exact.
pub trait Exact: OfBits + Number + Summand<Sum: Number> {
    /// The operations along one axis of a matrix, each with its results.
    fn reductions(gpu: &Gpu, x: &Array<Self>, axis: isize) -> Result<Vec<(Operation, Vec<Value>)>, Error>;
    /// The dot products of the rows of two matrices.
    fn dots(gpu: &Gpu, x: &Array<Self>, y: &Array<Self>) -> Result<(Operation, Vec<Value>), Error>;
}

macro_rules! exact {
    ($($type:ident: $($operation:ident)*;)*) => {$(
        impl Exact for $type {
            fn reductions(gpu: &Gpu, x: &Array<Self>, axis: isize) -> Result<Vec<(Operation, Vec<Value>)>, Error> {
                Ok(vec![$((
                    Operation::$operation,
                    values(gpu, gpu.reduce(ops::$operation, x, axis)?.into_buffer())?,
                )),*])
            }

            fn dots(gpu: &Gpu, x: &Array<Self>, y: &Array<Self>) -> Result<(Operation, Vec<Value>), Error> {
                Ok((Operation::Dot, values(gpu, gpu.reduce(ops::Dot, (x, y), 1)?.into_buffer())?))
            }
        }
    )*};
}

exact! {
    f32: Sum Mean SumOfSquares Norm SumInF64;
    f64: Sum Mean SumOfSquares Norm;
    f16: Sum Mean SumOfSquares Norm;
    bf16: Sum Mean SumOfSquares Norm;
}

fn values<R: Number>(gpu: &Gpu, results: Buffer<R>) -> Result<Vec<Value>, Error> {
    Ok(gpu.download(&results)?.into_iter().map(Number::value).collect())
}

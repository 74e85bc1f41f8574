//! Exact sums of any float type: of elements, of products, and of squares.

use bytemuck::AnyBitPattern;
use half::{bf16, f16};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfold::exact::bytes::FromBytesError;
use warpfold::exact::words::Words;
use warpfold::exact::{Elements, ExactDot, ExactSum, MAX_ELEMENTS, Summand, TooManyElements};

use crate::array::HostArray;
use crate::dtype::DType;
use crate::gpu::array::GpuArray;
use crate::gpu::work::Work;
use crate::rows::{Row, Rows};
use crate::words;

/// A state whose elements have one of the float types.
#[derive(Clone, Debug, PartialEq)]
pub enum OfFloat<A, B, C, D> {
    F16(A),
    Bf16(B),
    F32(C),
    F64(D),
}

/// The exact sum of elements.
pub type Sum = OfFloat<ExactSum<f16>, ExactSum<bf16>, ExactSum<f32>, ExactSum<f64>>;
/// The exact sum of products.
pub type Dot = OfFloat<ExactDot<f16>, ExactDot<bf16>, ExactDot<f32>, ExactDot<f64>>;

/// Evaluates an expression with the state of an [`OfFloat`].
macro_rules! with_state {
    ($of_float:expr, $state:ident => $value:expr) => {
        match $of_float {
            OfFloat::F16($state) => $value,
            OfFloat::Bf16($state) => $value,
            OfFloat::F32($state) => $value,
            OfFloat::F64($state) => $value,
        }
    };
}

/// The state that an expression makes for a type of elements, which it calls `$Float`.
macro_rules! for_dtype {
    ($dtype:expr, $Float:ident => $value:expr) => {
        match $dtype {
            DType::Float16 => OfFloat::F16({
                type $Float = f16;
                $value
            }),
            DType::BFloat16 => OfFloat::Bf16({
                type $Float = bf16;
                $value
            }),
            DType::Float32 => OfFloat::F32({
                type $Float = f32;
                $value
            }),
            DType::Float64 => OfFloat::F64({
                type $Float = f64;
                $value
            }),
            other => return Err(no_float(other)),
        }
    };
}

/// The error of elements that are no floats.
pub fn no_float(dtype: DType) -> PyErr {
    let remedy = match dtype {
        DType::Complex64 | DType::Complex128 => "add x.real and x.imag to two sums",
        _ => "use x.astype('float64')",
    };
    let name = dtype.name();
    PyTypeError::new_err(format!("exact sums are of float16, bfloat16, float32 and float64, not {name}: {remedy}"))
}

/// What the two kinds of sums have in common.
pub trait State: Sized + Clone + Send + PartialEq {
    /// The empty sum.
    fn empty(dtype: DType) -> PyResult<Self>;
    /// The type of the elements.
    fn dtype(&self) -> DType;
    /// The number of terms.
    fn count(&self) -> u64;
    /// Adds the terms of another sum, whose elements have the same type.
    fn merge(&mut self, other: &Self) -> PyResult<()>;
    /// The sum, rounded once to a type, as an `f64`, which represents it exactly.
    fn value(&self, dtype: DType) -> PyResult<f64>;
    /// The bytes of version 1.
    fn to_bytes(&self) -> Vec<u8>;
    /// The sum with these bytes.
    fn from_bytes(bytes: &[u8]) -> PyResult<Self>;
    /// The words.
    fn words(&self) -> Vec<i64>;
    /// The sum of the same type with these words.
    fn with_words(&self, words: &[i64]) -> PyResult<Self>;
}

macro_rules! state {
    ($kind:ident, $of:ident) => {
        impl State for $kind {
            fn empty(dtype: DType) -> PyResult<Self> {
                Ok(for_dtype!(dtype, Float => $of::<Float>::new()))
            }

            fn dtype(&self) -> DType {
                match self {
                    Self::F16(_) => DType::Float16,
                    Self::Bf16(_) => DType::BFloat16,
                    Self::F32(_) => DType::Float32,
                    Self::F64(_) => DType::Float64,
                }
            }

            fn count(&self) -> u64 {
                with_state!(self, state => state.count())
            }

            fn merge(&mut self, other: &Self) -> PyResult<()> {
                let merged = match (&mut *self, other) {
                    (Self::F16(a), Self::F16(b)) => a.merge(b),
                    (Self::Bf16(a), Self::Bf16(b)) => a.merge(b),
                    (Self::F32(a), Self::F32(b)) => a.merge(b),
                    (Self::F64(a), Self::F64(b)) => a.merge(b),
                    _ => return Err(different(self.dtype(), other.dtype())),
                };
                merged.map_err(|error| PyValueError::new_err(error.to_string()))
            }

            fn value(&self, dtype: DType) -> PyResult<f64> {
                with_state!(self, state => rounded(dtype, Rounding {
                    f16: || state.rounded(),
                    bf16: || state.rounded(),
                    f32: || state.rounded(),
                    f64: || state.rounded(),
                }))
            }

            fn to_bytes(&self) -> Vec<u8> {
                with_state!(self, state => state.to_bytes())
            }

            fn words(&self) -> Vec<i64> {
                with_state!(self, state => state.words().collect())
            }

            fn with_words(&self, words: &[i64]) -> PyResult<Self> {
                Ok(for_dtype!(self.dtype(), Float => $of::<Float>::from_words(words).map_err(words::exception)?))
            }

            fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
                // If they are of another kind or damaged, the error for any type says so.
                const PRODUCTS: u8 = 16;
                let state = match bytes.get(5).map(|code| code & !PRODUCTS) {
                    Some(1) => $of::from_bytes(bytes).map(Self::F16),
                    Some(2) => $of::from_bytes(bytes).map(Self::Bf16),
                    Some(3) => $of::from_bytes(bytes).map(Self::F32),
                    _ => $of::from_bytes(bytes).map(Self::F64),
                };
                state.map_err(|error: FromBytesError| PyValueError::new_err(error.to_string()))
            }
        }
    };
}

state!(Sum, ExactSum);
state!(Dot, ExactDot);

/// The error of two types that must be the same.
pub fn different(a: DType, b: DType) -> PyErr {
    let (a, b) = (a.name(), b.name());
    PyTypeError::new_err(format!("elements of {a} and of {b} have no common exact sum: use x.astype('{a}')"))
}

/// A number, rounded to each type.
struct Rounding<A, B, C, D> {
    f16: A,
    bf16: B,
    f32: C,
    f64: D,
}

/// The number, rounded to one type.
fn rounded(
    dtype: DType,
    to: Rounding<impl FnOnce() -> f16, impl FnOnce() -> bf16, impl FnOnce() -> f32, impl FnOnce() -> f64>,
) -> PyResult<f64> {
    match dtype {
        DType::Float16 => Ok(f64::from((to.f16)())),
        DType::BFloat16 => Ok(f64::from((to.bf16)())),
        DType::Float32 => Ok(f64::from((to.f32)())),
        DType::Float64 => Ok((to.f64)()),
        other => Err(not_rounded_to(other)),
    }
}

/// The error of a type that no value is rounded to.
pub fn not_rounded_to(dtype: DType) -> PyErr {
    PyTypeError::new_err(format!(
        "a value is rounded to float16, bfloat16, float32 or float64, not to {}",
        dtype.name()
    ))
}

impl Sum {
    /// The exact sum of an array's elements.
    pub fn of(py: Python<'_>, x: &HostArray) -> PyResult<Self> {
        check_count(x)?;
        let rows = Rows::new([&x.layout]);
        let (dtype, bytes) = (x.dtype, x.bytes());
        py.detach(|| Ok(for_dtype!(dtype, Float => sum_of_rows::<Float>(&rows, bytes))))
    }

    /// The exact sum of the elements of an array on a GPU. The host waits for it.
    pub fn of_gpu(py: Python<'_>, x: &GpuArray) -> PyResult<Self> {
        let (elements, work) = (&x.elements, Work::new(py, &[x])?);
        let sum = for_dtype!(x.dtype, Float => {
            work.run_and_wait(py, |gpu| gpu.exact_sum(elements.borrow::<Float>(gpu)?.view()))?
        });
        work.finish(py)?;
        Ok(sum)
    }

    /// The mean, rounded once to a type.
    pub fn mean(&self, dtype: DType) -> PyResult<f64> {
        with_state!(self, state => rounded(dtype, Rounding {
            f16: || state.mean(),
            bf16: || state.mean(),
            f32: || state.mean(),
            f64: || state.mean(),
        }))
    }
}

impl Dot {
    /// The exact sum of the products of two arrays' elements.
    pub fn of(py: Python<'_>, x: &HostArray, y: &HostArray) -> PyResult<Self> {
        check_same((x.dtype, &x.layout.extents), (y.dtype, &y.layout.extents))?;
        check_count(x)?;
        let rows = Rows::new([&x.layout, &y.layout]);
        let (dtype, bytes) = (x.dtype, [x.bytes(), y.bytes()]);
        py.detach(|| Ok(for_dtype!(dtype, Float => dot_of_rows::<Float>(&rows, bytes))))
    }

    /// The exact sum of the products of the elements of two arrays on a GPU. The host waits for it.
    pub fn of_gpu(py: Python<'_>, x: &GpuArray, y: &GpuArray) -> PyResult<Self> {
        check_same((x.dtype, &x.elements.extents), (y.dtype, &y.elements.extents))?;
        let (a, b, work) = (&x.elements, &y.elements, Work::new(py, &[x, y])?);
        let sum = for_dtype!(x.dtype, Float => {
            work.run_and_wait(py, |gpu| {
                gpu.exact_dot((a.borrow::<Float>(gpu)?.view(), b.borrow::<Float>(gpu)?.view()))
            })?
        });
        work.finish(py)?;
        Ok(sum)
    }

    /// The exact sum of the squares of the elements of an array on a GPU. The host waits for it.
    pub fn of_squares_on_gpu(py: Python<'_>, x: &GpuArray) -> PyResult<Self> {
        let (elements, work) = (&x.elements, Work::new(py, &[x])?);
        let sum = for_dtype!(x.dtype, Float => {
            work.run_and_wait(py, |gpu| gpu.exact_sum_of_squares(elements.borrow::<Float>(gpu)?.view()))?
        });
        work.finish(py)?;
        Ok(sum)
    }

    /// The exact sum of the squares of an array's elements.
    pub fn of_squares(py: Python<'_>, x: &HostArray) -> PyResult<Self> {
        check_count(x)?;
        let rows = Rows::new([&x.layout]);
        let (dtype, bytes) = (x.dtype, x.bytes());
        py.detach(|| Ok(for_dtype!(dtype, Float => squares_of_rows::<Float>(&rows, bytes))))
    }

    /// The square root, rounded once to a type.
    pub fn sqrt(&self, dtype: DType) -> PyResult<f64> {
        with_state!(self, state => rounded(dtype, Rounding {
            f16: || state.sqrt(),
            bf16: || state.sqrt(),
            f32: || state.sqrt(),
            f64: || state.sqrt(),
        }))
    }
}

/// Refuses two arrays of different types or shapes.
fn check_same((x, a): (DType, &[usize]), (y, b): (DType, &[usize])) -> PyResult<()> {
    if x != y {
        return Err(different(x, y));
    }
    match a == b {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!("arrays of shapes {a:?} and {b:?}: they must be equal"))),
    }
}

/// Refuses more elements than a sum can have. (A stride of 0 makes them cheap.)
fn check_count(x: &HostArray) -> PyResult<()> {
    let count = x.layout.count as u64;
    match count > MAX_ELEMENTS {
        true => Err(PyValueError::new_err(TooManyElements { count }.to_string())),
        false => Ok(()),
    }
}

/// The elements of a row.
fn elements<'a, T: Summand + AnyBitPattern, const N: usize>(
    row: &Row<N>,
    of: usize,
    bytes: &'a [u8],
) -> Elements<'a, T> {
    let (start, stride) = (row.starts[of], row.strides[of]);
    if stride == size_of::<T>() as isize {
        // Aligned and contiguous elements are read without a copy.
        if let Ok(slice) = bytemuck::try_cast_slice(&bytes[start..start + row.len * size_of::<T>()]) {
            return Elements::from(slice);
        }
    }
    Elements::strided_bytes(bytes, start, stride, row.len).expect("a layout's rows are within its bytes")
}

fn sum_of_rows<T: Summand + AnyBitPattern>(rows: &Rows<1>, bytes: &[u8]) -> ExactSum<T>
where
    ExactSum<T>: Send,
{
    let sums = rows.on_threads(|rows| {
        let mut sum = ExactSum::new();
        rows.for_each(|row| sum.add_elements(elements(&row, 0, bytes)));
        sum
    });
    merged(sums, |sum, other| sum.merge(other))
}

fn dot_of_rows<T: Summand + AnyBitPattern>(rows: &Rows<2>, [x, y]: [&[u8]; 2]) -> ExactDot<T>
where
    ExactDot<T>: Send,
{
    let sums = rows.on_threads(|rows| {
        let mut sum = ExactDot::new();
        rows.for_each(|row| {
            sum.add_elements(elements(&row, 0, x), elements(&row, 1, y)).expect("a row has one length");
        });
        sum
    });
    merged(sums, |sum, other| sum.merge(other))
}

fn squares_of_rows<T: Summand + AnyBitPattern>(rows: &Rows<1>, bytes: &[u8]) -> ExactDot<T>
where
    ExactDot<T>: Send,
{
    let sums = rows.on_threads(|rows| {
        let mut sum = ExactDot::new();
        rows.for_each(|row| sum.add_squares_of(elements(&row, 0, bytes)));
        sum
    });
    merged(sums, |sum, other| sum.merge(other))
}

/// The sum of the sums of parts.
fn merged<S>(sums: Vec<S>, merge: impl Fn(&mut S, &S) -> Result<(), TooManyElements>) -> S {
    let mut sums = sums.into_iter();
    let mut sum = sums.next().expect("there is at least one part");
    sums.for_each(|other| merge(&mut sum, &other).expect("the number of elements was checked"));
    sum
}

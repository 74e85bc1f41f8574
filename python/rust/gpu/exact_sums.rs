//! Arrays of exact sums on a GPU, whose words lie in an array of the caller's library.

use half::{bf16, f16};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfold::exact::words::Words;
use warpfold::exact::{ExactDot, ExactSum};
use warpfold::{ArrayView, Axes, Error, ExactElement, ExactState, ExactStates, Gpu, SumFormat, interop};

use super::array::GpuArray;
use super::elements::Elements;
use super::permute::copy;
use super::target::Target;
use super::work::Work;
use crate::arguments::{AxesArgument, exception};
use crate::array::AnyArray;
use crate::dtype::DType;
use crate::exact_sums::{Finish, Kind};

/// Exact sums of one kind in C order, on a GPU.
pub struct GpuSums {
    pub kind: Kind,
    pub dtype: DType,
    pub extents: Vec<usize>,
    /// Integers of 64 bits: the words of each sum along a last axis.
    words: Py<PyAny>,
    /// An upper bound of the number of terms of any sum.
    max_count: u64,
    /// Whether an all-reduce has failed, which may have changed some of the words.
    is_unusable: bool,
}

/// Evaluates an expression with the type of a kind of sums of elements, which it calls `$Sum`.
macro_rules! for_sums {
    ($kind:expr, $dtype:expr, $Sum:ident => $value:expr) => {
        match ($kind, $dtype) {
            (Kind::Sum, DType::Float16) => for_sums!(@ ExactSum<f16>, $Sum => $value),
            (Kind::Sum, DType::BFloat16) => for_sums!(@ ExactSum<bf16>, $Sum => $value),
            (Kind::Sum, DType::Float32) => for_sums!(@ ExactSum<f32>, $Sum => $value),
            (Kind::Sum, DType::Float64) => for_sums!(@ ExactSum<f64>, $Sum => $value),
            (Kind::SumOfSquares, DType::Float16) => for_sums!(@ ExactDot<f16>, $Sum => $value),
            (Kind::SumOfSquares, DType::BFloat16) => for_sums!(@ ExactDot<bf16>, $Sum => $value),
            (Kind::SumOfSquares, DType::Float32) => for_sums!(@ ExactDot<f32>, $Sum => $value),
            (Kind::SumOfSquares, DType::Float64) => for_sums!(@ ExactDot<f64>, $Sum => $value),
            (kind, dtype) => unreachable!("{} of {}", kind.name(), dtype.name()),
        }
    };
    (@ $sum:ty, $Sum:ident => $value:expr) => {{
        type $Sum = $sum;
        $value
    }};
}

/// What the kinds of sums do in different ways.
trait OnGpu: ExactState {
    /// Adds the terms of an array along axes.
    fn add_terms(states: &mut ExactStates<Self>, x: ArrayView<'_, Self::Element>, axes: Axes) -> Result<(), Error>;
    /// Writes results in a format of sums.
    fn write_results<R: SumFormat<Self::Element>>(
        states: &ExactStates<Self>,
        finish: Finish,
        gpu: &Gpu,
        output: &mut Elements,
    ) -> Result<(), Error>;
}

impl<T: ExactElement> OnGpu for ExactSum<T> {
    fn add_terms(states: &mut ExactStates<Self>, x: ArrayView<'_, T>, axes: Axes) -> Result<(), Error> {
        states.add(x, axes)
    }

    fn write_results<R: SumFormat<T>>(
        states: &ExactStates<Self>,
        finish: Finish,
        gpu: &Gpu,
        output: &mut Elements,
    ) -> Result<(), Error> {
        let mut output = output.borrow_mut::<R>(gpu)?;
        let output = output.view_mut().into_view()?;
        match finish {
            Finish::Value => states.values_into(output),
            Finish::Mean => states.means_into(output),
            Finish::Norm => unreachable!("a norm of elements"),
        }
    }
}

impl<T: ExactElement> OnGpu for ExactDot<T> {
    fn add_terms(states: &mut ExactStates<Self>, x: ArrayView<'_, T>, axes: Axes) -> Result<(), Error> {
        states.add_squares(x, axes)
    }

    fn write_results<R: SumFormat<T>>(
        states: &ExactStates<Self>,
        finish: Finish,
        gpu: &Gpu,
        output: &mut Elements,
    ) -> Result<(), Error> {
        let mut output = output.borrow_mut::<R>(gpu)?;
        let output = output.view_mut().into_view()?;
        match finish {
            Finish::Value => states.values_into(output),
            Finish::Norm => states.norms_into(output),
            Finish::Mean => unreachable!("a mean of squares"),
        }
    }
}

/// The states in these words.
fn states<S: ExactState>(gpu: &Gpu, words: &Elements, max_count: u64) -> Result<ExactStates<S>, Error> {
    // SAFETY: the sums' own array has these words, and its library orders their uses by the stream of the work. The
    // states are dropped before the call ends, in which a Python object keeps the array.
    let words = unsafe { interop::borrow_mut(gpu, words.address, &[words.len()], &[1])? };
    interop::exact_states(gpu, words, max_count)
}

impl GpuSums {
    /// The sums of an array along axes.
    pub fn of(py: Python<'_>, kind: Kind, array: &GpuArray, axes: &AxesArgument) -> PyResult<Self> {
        let (dtype, extents) = (array.dtype, axes.output_extents(&array.elements.extents));
        let extents = extents.map_err(|error| exception(&error))?;
        let work = Work::new(py, &[array])?;
        let of_words: Vec<usize> = extents.iter().copied().chain([words_of(kind, dtype)]).collect();
        let words = Target::new(py, &work, array, DType::Int64, &of_words)?;
        let max_count = work.run(|gpu| {
            for_sums!(kind, dtype, Sum => {
                let mut states = states::<Sum>(gpu, &words.elements, 0)?;
                states.clear()?;
                Sum::add_terms(&mut states, array.elements.borrow(gpu)?.view(), axes.axes)?;
                Ok(states.max_count())
            })
        })?;
        work.finish(py)?;
        Ok(Self { kind, dtype, extents, words: words.object.unbind(), max_count, is_unusable: false })
    }

    /// The array of the words.
    pub fn words(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.check_usable()?;
        Ok(self.words.clone_ref(py))
    }

    fn check_usable(&self) -> PyResult<()> {
        match self.is_unusable {
            false => Ok(()),
            true => Err(PyValueError::new_err("an all-reduce of these sums failed, and left them unusable: sum again")),
        }
    }

    /// The array of the words, for the work of a call.
    fn array(&self, py: Python<'_>) -> PyResult<GpuArray> {
        self.check_usable()?;
        match AnyArray::new(self.words.bind(py), "ExactSums")? {
            AnyArray::Gpu(array) if array.elements.is_contiguous() && array.dtype == DType::Int64 => Ok(array),
            _ => Err(PyTypeError::new_err("the words of these sums are no longer in the array that had them")),
        }
    }

    /// Adds the terms of other sums of the same kind, type and shape.
    pub fn merge(&mut self, py: Python<'_>, other: &Self) -> PyResult<()> {
        let (own, others) = (self.array(py)?, other.array(py)?);
        let work = Work::new(py, &[&own, &others])?;
        self.max_count = work.run(|gpu| {
            for_sums!(self.kind, self.dtype, Sum => {
                let mut merged = states::<Sum>(gpu, &own.elements, self.max_count)?;
                merged.merge(&states::<Sum>(gpu, &others.elements, other.max_count)?)?;
                Ok(merged.max_count())
            })
        })?;
        work.finish(py)
    }

    /// The same sums in another array.
    pub fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let own = self.array(py)?;
        let work = Work::new(py, &[&own])?;
        let mut words = Target::new(py, &work, &own, DType::Int64, &own.elements.extents)?;
        work.run(|gpu| copy(gpu, 8, &own.elements, &mut words.elements))?;
        work.finish(py)?;
        let Self { kind, dtype, max_count, .. } = *self;
        let extents = self.extents.clone();
        Ok(Self { kind, dtype, extents, words: words.object.unbind(), max_count, is_unusable: false })
    }

    /// The number of terms of each sum, as an array of the same library.
    pub fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.array(py)?;
        let work = Work::new(py, &[&own])?;
        let mut counts = Target::new(py, &work, &own, DType::Int64, &self.extents)?;
        let words = words_of(self.kind, self.dtype);
        let of_counts = Elements::contiguous(own.elements.address, &self.extents).part(words, words - 1, 8);
        work.run(|gpu| copy(gpu, 8, &of_counts, &mut counts.elements))?;
        work.finish(py)?;
        Ok(counts.object)
    }

    /// Each sum, mean or norm, rounded once to a type, as an array of the same library.
    pub fn finish<'py>(&self, py: Python<'py>, finish: Finish, to: DType) -> PyResult<Bound<'py, PyAny>> {
        let own = self.array(py)?;
        let work = Work::new(py, &[&own])?;
        let mut results = Target::new(py, &work, &own, to, &self.extents)?;
        macro_rules! finish {
            ($Sum:ident<$type:ident> to $result:ident) => {
                work.run(|gpu| {
                    let states = states::<$Sum<$type>>(gpu, &own.elements, self.max_count)?;
                    $Sum::write_results::<$result>(&states, finish, gpu, &mut results.elements)
                })?
            };
            ($($dtype:ident as $type:ident: $($to:ident as $result:ident),*;)*) => {
                match (self.kind, self.dtype, to) {
                    $($(
                        (Kind::Sum, DType::$dtype, DType::$to) => finish!(ExactSum<$type> to $result),
                        (Kind::SumOfSquares, DType::$dtype, DType::$to) => finish!(ExactDot<$type> to $result),
                    )*)*
                    (_, dtype, to) => {
                        let (dtype, to) = (dtype.name(), to.name());
                        return Err(PyTypeError::new_err(format!(
                            "on a GPU, sums of {dtype} are rounded to it, to float32 if it is narrower, or from \
                             float32 to float64; not to {to}"
                        )));
                    }
                }
            };
        }
        finish! {
            Float16 as f16: Float16 as f16, Float32 as f32;
            BFloat16 as bf16: BFloat16 as bf16, Float32 as f32;
            Float32 as f32: Float32 as f32, Float64 as f64;
            Float64 as f64: Float64 as f64;
        }
        work.finish(py)?;
        Ok(results.object)
    }

    /// The words, copied to the host, which waits for them.
    pub fn download(&self, py: Python<'_>) -> PyResult<Vec<i64>> {
        let own = self.array(py)?;
        let work = Work::new(py, &[&own])?;
        let words = work.run_and_wait(py, |gpu| gpu.download(own.elements.borrow::<i64>(gpu)?.view()))?;
        work.finish(py)?;
        Ok(words)
    }

    /// Begins an all-reduce over this number of ranks: the array whose elements are to be replaced by their sums. Until
    /// [`GpuSums::end_all_reduce`] the sums are unusable.
    pub fn begin_all_reduce(&mut self, py: Python<'_>, ranks: u32) -> PyResult<Py<PyAny>> {
        self.check_usable()?;
        if self.max_count.saturating_mul(ranks.into()) > warpfold::exact::MAX_ELEMENTS {
            let count = self.max_count.saturating_mul(ranks.into());
            return Err(exception(&Error::from(warpfold::exact::TooManyElements { count })));
        }
        self.is_unusable = true;
        Ok(self.words.clone_ref(py))
    }

    /// Carries between the limbs of added words.
    pub fn end_all_reduce(&mut self, py: Python<'_>, ranks: u32) -> PyResult<()> {
        self.is_unusable = false;
        let done = self.array(py).and_then(|own| {
            let work = Work::new(py, &[&own])?;
            let max_count = work.run(|gpu| {
                for_sums!(self.kind, self.dtype, Sum => {
                    let mut states = states::<Sum>(gpu, &own.elements, self.max_count)?;
                    states.all_reduce(ranks, |_, _| Ok::<(), Error>(()))?;
                    Ok(states.max_count())
                })
            })?;
            work.finish(py)?;
            Ok(max_count)
        });
        self.is_unusable = done.is_err();
        self.max_count = done?;
        Ok(())
    }
}

/// The number of words of a sum.
fn words_of(kind: Kind, dtype: DType) -> usize {
    for_sums!(kind, dtype, Sum => <Sum as Words>::WORDS)
}

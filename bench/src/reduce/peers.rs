//! CUB, cuBLAS, cuTENSOR and PyTorch, if they are installed: PyTorch in a process, the others in libraries.

use std::ffi::{c_int, c_void};
use std::path::Path;

use anyhow::{Context, bail};
use libloading::Library;
use warpfold::{Buffer, Error, Gpu, View};

use super::cases::Case;
use super::form::{Axis, Form};
use super::operators::Operator;
use crate::element::ElementType;
use crate::measure::{Plan, Timing};
use crate::memory;
use crate::peers::{self, Called, CuTensor, Reduction, stream_of, time_of};
use crate::pytorch::PyTorch;

/// The peers that were requested and found.
#[derive(Default)]
pub struct Peers {
    cub: Option<Library>,
    cublas: Option<Library>,
    cutensor: Option<CuTensor>,
    pytorch: Option<PyTorch>,
}

/// `warpfold_cub_TYPE` of `peers/cub.cu`.
type Reduce = unsafe extern "C" fn(
    operator: c_int,
    input: *const c_void,
    output: *mut c_void,
    index: *mut c_void,
    rows: i64,
    length: i64,
    offsets: *const c_void,
    scratch: *mut c_void,
    scratch_bytes: *mut usize,
    stream: *mut c_void,
) -> c_int;

/// `warpfold_cub_reproducible_TYPE` of `peers/cub_reproducible.cu`.
type ReproducibleSum =
    unsafe extern "C" fn(input: *const c_void, output: *mut c_void, length: i64, stream: *mut c_void) -> c_int;

/// `warpfold_cublas_reduce` of `peers/cublas.cu`.
type NormOrDot = unsafe extern "C" fn(
    dtype: c_int,
    input: *const c_void,
    other: *const c_void,
    output: *mut c_void,
    length: i64,
    stream: *mut c_void,
) -> c_int;

/// `warpfold_cublas_sums` of `peers/cublas.cu`.
type Sums = unsafe extern "C" fn(
    dtype: c_int,
    of_columns: c_int,
    input: *const c_void,
    ones: *const c_void,
    output: *mut c_void,
    rows: i64,
    columns: i64,
    stream: *mut c_void,
) -> c_int;

/// What peers compute for an operator. The numbers are those of `enum Operator` in `peers/cub.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Sum = 0,
    Min = 1,
    Max = 2,
    ArgMin = 3,
    ArgMax = 4,
    Product = 5,
    SumOfSquares = 6,
    Mean = 7,
    Norm = 8,
    Dot,
}

impl Work {
    /// The work that is compared with an operator; `None` if no peer has it.
    fn of(operator: Operator) -> Option<Self> {
        match operator {
            Operator::Sum | Operator::PairwiseSum => Some(Self::Sum),
            Operator::Min => Some(Self::Min),
            Operator::Max => Some(Self::Max),
            Operator::ArgMin => Some(Self::ArgMin),
            Operator::ArgMax => Some(Self::ArgMax),
            Operator::Product => Some(Self::Product),
            Operator::SumOfSquares => Some(Self::SumOfSquares),
            Operator::Mean | Operator::PairwiseMean => Some(Self::Mean),
            Operator::Norm => Some(Self::Norm),
            Operator::Dot => Some(Self::Dot),
            Operator::SumInF64
            | Operator::WrappingSum
            | Operator::MinMax
            | Operator::Any
            | Operator::All
            | Operator::CountNonzero
            | Operator::CountNan
            | Operator::CountFinite => None,
        }
    }

    /// The name in a question to `peers/pytorch.py`.
    const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::ArgMin => "argmin",
            Self::ArgMax => "argmax",
            Self::Product => "product",
            Self::SumOfSquares => "sum-of-squares",
            Self::Mean => "mean",
            Self::Norm => "norm",
            Self::Dot => "dot",
        }
    }
}

/// How CUB gets the segments of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segments {
    /// There is only one.
    None,
    /// By the size that they all have.
    BySize,
    /// By their offsets.
    ByOffsets,
    /// By offsets, although they have one size: this CUB cannot take it.
    WithoutSize,
}

/// The function of CUB that `peers/cub.cu` calls.
fn cub_call(work: Work, segments: Segments) -> String {
    let (class, suffix) = match segments {
        Segments::None => ("DeviceReduce", ""),
        Segments::BySize => ("DeviceSegmentedReduce", " by segment size"),
        Segments::ByOffsets => ("DeviceSegmentedReduce", " by offsets"),
        Segments::WithoutSize => ("DeviceSegmentedReduce", " by offsets (this CUB takes no segment size)"),
    };
    let (function, iterators) = match work {
        Work::Sum | Work::Product => ("Reduce", ""),
        Work::SumOfSquares if segments == Segments::None => ("TransformReduce", ""),
        Work::Norm if segments == Segments::None => ("TransformReduce", " to a transform iterator"),
        Work::Mean | Work::SumOfSquares | Work::Norm | Work::Dot => ("Reduce", " with transform iterators"),
        Work::Min => ("Min", ""),
        Work::Max => ("Max", ""),
        Work::ArgMin => ("ArgMin", ""),
        Work::ArgMax => ("ArgMax", ""),
    };
    format!("{class}::{function}{iterators}{suffix}")
}

/// The number of a float type in `peers/cublas.cu` and `peers/cutensor.cu`.
fn float_number(dtype: ElementType) -> Option<c_int> {
    match dtype {
        ElementType::F32 => Some(0),
        ElementType::F64 => Some(1),
        ElementType::F16 => Some(2),
        ElementType::Bf16 => Some(3),
        _ => None,
    }
}

impl Peers {
    /// Looks for the peers in `folder`, and reports the missing ones.
    pub fn find(folder: &Path) -> Self {
        Self {
            cub: peers::load(folder, "CUB", "cub"),
            cublas: peers::load(folder, "cuBLAS", "cublas"),
            cutensor: CuTensor::find(folder),
            pytorch: PyTorch::find(folder),
        }
    }

    /// The version of CUB that the library was compiled with: `3.6.0`.
    pub fn cub_version(&self) -> Option<String> {
        // SAFETY: `peers/cub.cu` defines it with this signature, and it returns a constant.
        let version = unsafe { peers::constant(self.cub.as_ref()?, b"warpfold_cub_version") }?;
        Some(format!("{}.{}.{}", version / 100_000, version / 100 % 1000, version % 100))
    }

    /// The version of cuTENSOR that was loaded.
    pub fn cutensor_version(&self) -> Option<String> {
        self.cutensor.as_ref()?.version()
    }

    /// CUB's times, back to back and alone, if CUB has such a reduction. `offsets` are the offsets of segments, if any.
    pub fn cub(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[u64],
        offsets: View<'_, u64>,
    ) -> anyhow::Result<Option<Called<(Timing, Timing)>>> {
        let Some(library) = &self.cub else { return Ok(None) };
        // `peers/cub.cu` has no reduction of two inputs.
        let Some(work) = Work::of(case.operator).filter(|&work| work != Work::Dot) else { return Ok(None) };
        let Some(Form { rows, columns, axis }) = case.extent.form() else { return Ok(None) };
        let segments = match axis {
            Axis::Columns | Axis::Middle(_) => return Ok(None),
            Axis::All => Segments::None,
            Axis::Skewed => Segments::ByOffsets,
            Axis::Rows if rows == 1 => Segments::None,
            Axis::Rows if takes_size(library, columns) => Segments::BySize,
            Axis::Rows => Segments::WithoutSize,
        };
        let name = format!("warpfold_cub_{}", case.dtype);
        // SAFETY: `peers/cub.cu` defines it with this signature.
        let reduce = unsafe { library.get::<Reduce>(name.as_bytes()) }.context("the library has no such function")?;
        let (output, index) = (gpu.zeroed::<[u64; 2]>(rows)?, gpu.zeroed::<u64>(rows)?);
        let (output, index) = (output.view(), index.view());
        let offsets = match segments {
            Segments::ByOffsets => offsets.device_address() as *const c_void,
            Segments::None | Segments::BySize | Segments::WithoutSize => std::ptr::null(),
        };
        let call = |input: u64, scratch: *mut c_void, bytes: &mut usize| {
            // SAFETY: the memory is the device's and large enough: `bytes` is the size that a first call returned, the
            // input has the case's elements, and outputs have 16 and 8 bytes for each result.
            unsafe {
                reduce(
                    work as c_int,
                    input as *const c_void,
                    output.device_address() as *mut c_void,
                    index.device_address() as *mut c_void,
                    rows as i64,
                    columns as i64,
                    offsets,
                    scratch,
                    bytes,
                    stream_of(gpu),
                )
            }
        };
        let mut bytes = 0;
        match call(inputs[0], std::ptr::null_mut(), &mut bytes) {
            0 => {}
            -1 => return Ok(None),
            error => bail!("CUB, asked for its scratch size: CUDA error {error}"),
        }
        let scratch = gpu.zeroed::<u8>(bytes.max(1))?;
        let scratch = scratch.view().device_address() as *mut c_void;
        let mut failed = 0;
        let mut start = |i: usize| {
            let error = call(inputs[i % inputs.len()], scratch, &mut bytes);
            if error != 0 {
                failed = error;
            }
            Ok::<_, Error>(())
        };
        let time = (plan.time_recorded(gpu, &mut start)?, plan.time_alone(gpu, &mut start)?);
        if failed != 0 {
            bail!("CUB: CUDA error {failed}");
        }
        Ok(Some(Called::new(cub_call(work, segments), time)))
    }

    /// The time of CUB's sum with the same result on every GPU (`gpu_to_gpu`), if CUB has it for this case.
    pub fn reproducible_cub(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[u64],
    ) -> anyhow::Result<Option<Timing>> {
        let is_sum = case.operator == Operator::Sum && axis_of(case) == Some(Axis::All);
        let Some(library) = self.cub.as_ref().filter(|_| is_sum && case.data.is_some()) else { return Ok(None) };
        let name = format!("warpfold_cub_reproducible_{}", case.dtype);
        // SAFETY: `peers/cub_reproducible.cu` defines it with this signature, for some types.
        let Ok(sum) = (unsafe { library.get::<ReproducibleSum>(name.as_bytes()) }) else { return Ok(None) };
        let output = gpu.zeroed::<u64>(1)?;
        let call = |i: usize| {
            let (input, output) = (inputs[i % inputs.len()], output.view().device_address());
            // SAFETY: the memory is the device's; the input has the case's elements, and the output has 8 bytes.
            unsafe { sum(input as *const c_void, output as *mut c_void, case.extent.elements() as i64, stream_of(gpu)) }
        };
        time_of(gpu, plan, call).context("CUB's gpu_to_gpu sum").map(Some)
    }

    /// cuBLAS's time, if it has the case: norms, dot products, sums of squares (the dot product of the input with
    /// itself), and sums of rows and columns (a product with a vector of ones). The dot product is that of `inputs` and
    /// `others`.
    pub fn cublas(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[u64],
        others: Option<&[u64]>,
    ) -> anyhow::Result<Option<Called<Timing>>> {
        let work = Work::of(case.operator).filter(|_| case.data.is_none());
        let (Some(library), Some(work), Some(dtype)) = (&self.cublas, work, float_number(case.dtype)) else {
            return Ok(None);
        };
        let Some(axis) = axis_of(case) else { return Ok(None) };
        let (call, others) = match (work, axis) {
            (Work::Sum, Axis::Rows | Axis::Columns) => return cublas_sums(library, gpu, plan, case, inputs),
            (Work::Norm, Axis::All) => ("cublasNrm2Ex", None),
            (Work::Dot, Axis::All) => ("cublasDotEx", others),
            (Work::SumOfSquares, Axis::All) => ("cublasDotEx of the input with itself", Some(inputs)),
            _ => return Ok(None),
        };
        // SAFETY: `peers/cublas.cu` defines it with this signature.
        let reduce = unsafe { library.get::<NormOrDot>(b"warpfold_cublas_reduce") }
            .context("the library has no such function")?;
        let output = gpu.zeroed::<u64>(1)?;
        let output = output.view().device_address() as *mut c_void;
        let time = time_of(gpu, plan, |i: usize| {
            let input = inputs[i % inputs.len()] as *const c_void;
            let other = others.map_or(std::ptr::null(), |others| others[i % others.len()] as *const c_void);
            // SAFETY: the memory is the device's; each input has the case's elements, and the output has 8 bytes.
            unsafe { reduce(dtype, input, other, output, case.extent.elements() as i64, stream_of(gpu)) }
        });
        Ok(Some(Called::new(call, time.context("cuBLAS")?)))
    }

    /// cuTENSOR's time, if it has such a reduction.
    pub fn cutensor(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        case: &Case,
        inputs: &[u64],
    ) -> anyhow::Result<Option<Called<Timing>>> {
        // cuTENSOR's kernels fault on inputs that are less aligned than an allocation.
        let work = Work::of(case.operator).filter(|_| case.data.is_none() && case.offset == 0);
        let (Some(library), Some(work), Some(dtype)) = (&self.cutensor, work, float_number(case.dtype)) else {
            return Ok(None);
        };
        // It has the extents of an array in C order.
        let (layout, _) = case.extent.array();
        if axis_of(case) == Some(Axis::Skewed) || !layout.is_contiguous() {
            return Ok(None);
        }
        let operator = match work {
            Work::Sum | Work::Mean => 0,
            Work::Min => 1,
            Work::Max => 2,
            Work::Product => 3,
            Work::ArgMin | Work::ArgMax | Work::SumOfSquares | Work::Norm | Work::Dot => return Ok(None),
        };
        let each = case.extent.elements() / case.extent.results().max(1);
        let factor = if work == Work::Mean { 1.0 / each as f64 } else { 1.0 };
        let (extents, kept) = (layout.extents(), &case.extent.kept()[..]);
        library.reduce(gpu, plan, &Reduction { operator, dtype, factor, extents, kept }, inputs)
    }

    /// PyTorch's time in microseconds, if PyTorch has such a reduction.
    pub fn pytorch(&mut self, case: &Case) -> Option<Called<f64>> {
        self.pytorch.as_mut()?.time(&question(case)?)
    }
}

/// Whether this CUB reduces segments of `length` elements by their size.
fn takes_size(library: &Library, length: usize) -> bool {
    // SAFETY: `peers/cub.cu` defines it with this signature; an older library lacks it, and takes offsets.
    let takes = unsafe { library.get::<unsafe extern "C" fn(i64) -> c_int>(b"warpfold_cub_by_segment_size") };
    // SAFETY: it only compares the length.
    takes.is_ok_and(|takes| unsafe { takes(length as i64) } != 0)
}

/// The time of cuBLAS's sums of rows or columns, if it has the type.
fn cublas_sums(
    library: &Library,
    gpu: &Gpu,
    plan: &Plan,
    case: &Case,
    inputs: &[u64],
) -> anyhow::Result<Option<Called<Timing>>> {
    match case.dtype {
        ElementType::F32 => sums_of::<f32>(library, gpu, plan, case, inputs, (0, "cublasSgemv", 1.0)).map(Some),
        ElementType::F64 => sums_of::<f64>(library, gpu, plan, case, inputs, (1, "cublasDgemv", 1.0)).map(Some),
        _ => Ok(None),
    }
}

/// [`cublas_sums`] for a type: its number, the name of the function, and the number one.
fn sums_of<T: warpfold::Element>(
    library: &Library,
    gpu: &Gpu,
    plan: &Plan,
    case: &Case,
    inputs: &[u64],
    (dtype, function, one): (c_int, &str, T),
) -> anyhow::Result<Called<Timing>> {
    let Some(Form { rows, columns, axis }) = case.extent.form() else { bail!("there are no rows and no columns") };
    let of_columns = axis == Axis::Columns;
    // SAFETY: `peers/cublas.cu` defines it with this signature.
    let sums = unsafe { library.get::<Sums>(b"warpfold_cublas_sums") }.context("the library has no such function")?;
    let each = case.extent.elements() / case.extent.results().max(1);
    let mut ones = memory::list(each)?;
    ones.resize(each, one);
    let ones: Buffer<T> = gpu.upload(&ones)?;
    let output = gpu.zeroed::<T>(case.extent.results())?;
    let time = time_of(gpu, plan, |i| {
        let (input, ones) = (inputs[i % inputs.len()] as *const c_void, ones.view().device_address() as *const c_void);
        let output = output.view().device_address() as *mut c_void;
        // SAFETY: the memory is the device's; the input has the case's elements, `ones` an element for each of a sum,
        // and the output an element for each result.
        unsafe { sums(dtype, of_columns.into(), input, ones, output, rows as i64, columns as i64, stream_of(gpu)) }
    });
    Ok(Called::new(format!("{function} with a vector of ones"), time.context("cuBLAS")?))
}

/// Which axis of the form is reduced, if the case has a form.
fn axis_of(case: &Case) -> Option<Axis> {
    case.extent.form().map(|form| form.axis)
}

/// The question for PyTorch, if PyTorch has such a reduction, and `peers/pytorch.py` knows it.
fn question(case: &Case) -> Option<serde_json::Value> {
    let Case { operator, dtype, extent, offset, data } = case;
    let Form { rows, columns, axis } = extent.form()?;
    // `torch.dot`, which squares are summed with, takes whole inputs.
    let work = Work::of(*operator).filter(|&work| work != Work::SumOfSquares || axis == Axis::All)?;
    let is_known = matches!(axis, Axis::All | Axis::Rows | Axis::Columns);
    (*offset == 0 && data.is_none() && is_known).then(|| {
        serde_json::json!({
            "op": work.name(), "dtype": dtype, "rows": rows, "columns": columns, "axis": axis,
        })
    })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::super::cases::name_of;
    use super::*;

    #[test]
    fn the_calls_of_cub() {
        for (work, segments, call) in [
            (Work::Sum, Segments::None, "DeviceReduce::Reduce"),
            (Work::SumOfSquares, Segments::None, "DeviceReduce::TransformReduce"),
            (Work::Norm, Segments::None, "DeviceReduce::TransformReduce to a transform iterator"),
            (Work::Norm, Segments::BySize, "DeviceSegmentedReduce::Reduce with transform iterators by segment size"),
            (Work::ArgMax, Segments::BySize, "DeviceSegmentedReduce::ArgMax by segment size"),
            (Work::Sum, Segments::ByOffsets, "DeviceSegmentedReduce::Reduce by offsets"),
            (
                Work::Min,
                Segments::WithoutSize,
                "DeviceSegmentedReduce::Min by offsets (this CUB takes no segment size)",
            ),
        ] {
            assert_eq!(cub_call(work, segments), call);
        }
    }

    #[test]
    fn pytorch_is_asked_by_the_names_of_operators() {
        let names: Vec<String> = Operator::value_variants().iter().map(name_of).collect();
        for work in Operator::value_variants().iter().filter_map(|&operator| Work::of(operator)) {
            assert!(names.iter().any(|name| name == work.name()), "{work:?}");
        }
    }

    /// A stand-in for `libwarpfold_cub.so`, with these functions.
    fn fake_cub(functions: &str) -> (tempfile::TempDir, Peers) {
        let folder = tempfile::tempdir().unwrap();
        let (source, build) = (folder.path().join("cub.rs"), folder.path().join("build"));
        std::fs::write(&source, functions).unwrap();
        std::fs::create_dir(&build).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut compile = std::process::Command::new(rustc);
        compile.args(["--edition", "2024", "--crate-type", "cdylib", "-o"]).arg(build.join("libwarpfold_cub.so"));
        assert!(compile.arg(source).status().unwrap().success());
        let cub = peers::load(folder.path(), "CUB", "cub");
        assert!(cub.is_some());
        (folder, Peers { cub, ..Peers::default() })
    }

    #[test]
    fn a_cub_says_whether_it_takes_segment_sizes() {
        let version = "#[unsafe(no_mangle)] pub extern \"C\" fn warpfold_cub_version() -> i32";
        let by_size = "#[unsafe(no_mangle)] pub extern \"C\" fn warpfold_cub_by_segment_size(n: i64) -> i32";
        let shown = |functions: &str| {
            let (_folder, peers) = fake_cub(functions);
            let cub = peers.cub.as_ref().unwrap();
            (peers.cub_version().unwrap_or_default(), takes_size(cub, 256), takes_size(cub, 1 << 40))
        };
        let new = format!("{version} {{ 300600 }} {by_size} {{ (n < 1 << 31).into() }}");
        assert_eq!(shown(&new), ("3.6.0".to_owned(), true, false));
        // One that was built before the function existed.
        assert_eq!(shown(&format!("{version} {{ 300001 }}")), ("3.0.1".to_owned(), false, false));
    }
}

//! The one error type of the library.

use std::fmt;

use cuda_driver::DriverVersion;
use exact_sum::words::WordsError;

/// What to do without a GPU, for messages.
#[cfg(feature = "simt")]
const WITHOUT_A_GPU: &str = "to run on the CPU, use `Gpu::simt()` or `Gpu::first_or_simt()`";

/// What to do without a GPU, for messages.
#[cfg(not(feature = "simt"))]
const WITHOUT_A_GPU: &str =
    "to run on the CPU, enable the feature `simt` of `warpfold`, and use `Gpu::first_or_simt()`";

/// Why a call failed.
///
/// `Debug` shows the same message as `Display`, because a program whose `main` returns the error prints its `Debug`
/// form.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This machine has no CUDA driver.
    #[error("{0}; {WITHOUT_A_GPU}")]
    NoDriver(#[from] cuda_driver::LoadError),

    /// The driver is older than the kernel's PTX.
    #[error(
        "the CUDA driver is {have}, and kernel `{kernel}` needs at least {need}: install a newer driver; \
         {WITHOUT_A_GPU}"
    )]
    DriverTooOld {
        /// The driver's CUDA version.
        have: DriverVersion,
        /// The version that the PTX needs.
        need: DriverVersion,
        /// The kernel.
        kernel: String,
    },

    /// This process was forked from one that uses CUDA.
    #[error(
        "this process was forked from one that uses CUDA, which does not work in the child: start the process by \
         `spawn` or `forkserver`, or make the first `Gpu` after the fork"
    )]
    Forked,

    /// There is no such device.
    #[error("there is no CUDA device {ordinal}: {}; {WITHOUT_A_GPU}", devices_found(*count))]
    NoDevice {
        /// The requested number.
        ordinal: u32,
        /// The number of devices.
        count: u32,
    },

    /// The program was built for the executor only.
    #[error(
        "this program has no PTX of `{library}`: it was built with `WARPFOLD_ARCHS=none`, for the executor alone; \
         build it without that variable to launch kernels on this device (sm_{device})"
    )]
    NoPtx {
        /// The crate of the kernels.
        library: String,
        /// The device's compute capability, without its dot.
        device: u32,
    },

    /// The embedded PTX is damaged.
    #[error(
        "the kernels of `{library}` in this program are damaged ({what}): get the program's sources again, and rebuild \
         it"
    )]
    DamagedKernels {
        /// The crate of the kernels.
        library: String,
        /// What is wrong.
        what: &'static str,
    },

    /// The driver does not compile the kernel's PTX for the device.
    #[error(
        "the CUDA driver ({driver}) refuses the PTX of kernel `{kernel}` for this device (sm_{device}): {name} (error \
         {code} of the CUDA driver){}. Update the driver; if a newer one refuses the PTX too, report it with this \
         message to the authors of `{library}`; {WITHOUT_A_GPU}",
        lines_of(log)
    )]
    RefusedPtx {
        /// The kernel.
        kernel: String,
        /// The crate that it is from.
        library: String,
        /// The device's compute capability, without its dot.
        device: u32,
        /// The driver's CUDA version.
        driver: DriverVersion,
        /// CUDA's error.
        code: u32,
        /// CUDA's name for it.
        name: String,
        /// The messages of the driver's compiler; empty if there are none.
        log: String,
    },

    /// The device is older than every PTX that the kernel was built for.
    #[error(
        "kernel `{kernel}` was built for sm_{oldest} and later, and the device is sm_{device}: use a newer device, or \
         build the kernels for this one if they support it (feature `build-kernels` of `warpfold`, with \
         `WARPFOLD_ARCHS=sm_{device}`); {WITHOUT_A_GPU}"
    )]
    UnsupportedDevice {
        /// The kernel.
        kernel: String,
        /// The device's compute capability, without its dot.
        device: u32,
        /// The oldest architecture for which the kernel has PTX.
        oldest: u32,
    },

    /// The crates of two libraries have the same name.
    #[error(
        "two libraries of kernels are called `{library}`: a kernel's PTX is looked up by the name of its crate, so \
         rename one of the two crates"
    )]
    DuplicateLibrary {
        /// The name.
        library: String,
    },

    /// No PTX library of this [`crate::Gpu`] has the kernel.
    #[error(
        "this `Gpu` has no PTX of kernel `{entry}` of the crate `{library}`: add the crate's library with \
         `Gpu::with_libraries`"
    )]
    UnknownKernel {
        /// The kernel's entry.
        entry: String,
        /// The crate that it is from.
        library: String,
    },

    /// The device does not have enough free memory.
    #[error("out of memory: {operation} needs {requested} bytes, and {device} has {free} bytes free")]
    OutOfMemory {
        /// The operation.
        operation: &'static str,
        /// Bytes requested.
        requested: usize,
        /// Free bytes.
        free: usize,
        /// The device.
        device: String,
    },

    /// An argument does not have the required length.
    #[error("{operation}: {what} has {found} elements, expected {expected}")]
    Length {
        /// The operation.
        operation: &'static str,
        /// The argument with the wrong length.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The required length.
        expected: usize,
    },

    /// The bits of a downloaded element are no value of its type: a kernel has written them by a view of another type.
    #[error(
        "download: the bits of element {index} are no value of `{ty}`: download the memory as integers, or let the \
         kernel write values of `{ty}`"
    )]
    NotAValue {
        /// The element's index in the view.
        index: usize,
        /// The type.
        ty: &'static str,
    },

    /// An argument is too short. It may be longer than required.
    #[error("{operation}: {what} has {found} elements, expected at least {minimum}")]
    TooShort {
        /// The operation.
        operation: &'static str,
        /// The argument that is too short.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The minimum length.
        minimum: usize,
    },

    /// A shape's size overflows.
    #[error(
        "a matrix of {rows} x {columns} elements of {size} bytes, at its pitch if it has one, is larger than any memory"
    )]
    ShapeOverflow {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
        /// Bytes of an element.
        size: usize,
    },

    /// A reduction of no elements has no result.
    #[error("{operator} of no elements has no value: reduce at least one element")]
    Empty {
        /// The operator.
        operator: &'static str,
    },

    /// A shape is invalid, or does not fit what is reduced.
    #[error("{operation}: {what} is {found}, {expected}")]
    Shape {
        /// The operation.
        operation: &'static str,
        /// What is out of range.
        what: &'static str,
        /// Its value.
        found: usize,
        /// What is allowed.
        expected: String,
    },

    /// An array does not have an axis.
    #[error("{operation}: there is no axis {axis}: {}", axes_of(*rank))]
    Axis {
        /// The operation.
        operation: &'static str,
        /// The given axis.
        axis: isize,
        /// The number of the array's axes.
        rank: usize,
    },

    /// An axis is named twice.
    #[error("{operation}: axis {axis} is named twice, as {first} and as {second}: name each axis at most once")]
    RepeatedAxis {
        /// The operation.
        operation: &'static str,
        /// The axis.
        axis: usize,
        /// The first name.
        first: isize,
        /// The second name.
        second: isize,
    },

    /// An axis is missing in an order of all axes.
    #[error("{operation}: axis {axis} is missing: name each axis once")]
    MissingAxis {
        /// The operation.
        operation: &'static str,
        /// The axis.
        axis: usize,
    },

    /// There are more axes than an array can have.
    #[error("{operation}: an array has at most {max} axes, not {found}: merge some that are never used apart")]
    TooManyAxes {
        /// The operation.
        operation: &'static str,
        /// Their number.
        found: usize,
        /// The maximum.
        max: usize,
    },

    /// An array has fewer axes than an operation needs.
    #[error("{operation}: the array has {found} axes, expected at least {minimum}: `reshape` gives it more")]
    TooFewAxes {
        /// The operation.
        operation: &'static str,
        /// Their number.
        found: usize,
        /// The minimum.
        minimum: usize,
    },

    /// An array would have more elements than any memory could hold.
    #[error(
        "{operation}: with axis {axis} of extent {extent}, the array has more elements than any memory could hold \
         (extents of 0 do not count)"
    )]
    ArrayTooLarge {
        /// The operation.
        operation: &'static str,
        /// The axis with which the product of the extents overflows.
        axis: usize,
        /// Its extent.
        extent: usize,
    },

    /// Something along one axis is out of range.
    #[error("{operation}: {what} is {found} on axis {axis}, expected {expected}")]
    Extent {
        /// The operation.
        operation: &'static str,
        /// The axis.
        axis: usize,
        /// What is out of range.
        what: &'static str,
        /// Its value.
        found: usize,
        /// What is allowed.
        expected: String,
    },

    /// A layout has an element before the start of its view.
    #[error(
        "{operation}: the lowest element is at position {position}: the offset must be at least what the negative \
         strides reach back"
    )]
    BelowStart {
        /// The operation.
        operation: &'static str,
        /// The position.
        position: i128,
    },

    /// A layout has an element further away than any memory reaches.
    #[error("{operation}: the last element is at position {position}, and no memory could hold so many")]
    PositionOverflow {
        /// The operation.
        operation: &'static str,
        /// The position.
        position: i128,
    },

    /// A shape that only a copy of the elements has.
    #[error(
        "reshape: the elements along the axes {axis} and {next} of {layout} are not equally far apart, so only a copy \
         has this shape: use `gpu.contiguous`, and reshape its result"
    )]
    NeedsCopy {
        /// The first of two axes that are not one.
        axis: usize,
        /// The second.
        next: usize,
        /// The layout.
        layout: String,
    },

    /// The elements of an array are not neighbours.
    #[error("the elements of {layout} are not neighbours in C order: use `gpu.contiguous`, which copies them")]
    NotNeighbours {
        /// The layout.
        layout: String,
    },

    /// Two elements of an array that is written could share memory.
    #[error(
        "an array to be written may not have two elements in the same place: along axis {axis} of {layout}, neighbours \
         are {stride} apart, and the axes with smaller strides reach {reach}; expected a larger stride"
    )]
    Overlap {
        /// The axis.
        axis: usize,
        /// Its stride.
        stride: isize,
        /// How far the axes with smaller strides reach, in elements.
        reach: usize,
        /// The layout.
        layout: String,
    },

    /// An array has another layout than the one that a reduction was planned for.
    #[error("{operation}: the input is {found}, and the reducer was made for {expected}: make one for this layout")]
    OtherLayout {
        /// The operation.
        operation: &'static str,
        /// The array's layout.
        found: String,
        /// The planned layout.
        expected: String,
    },

    /// A call would read and write the same memory.
    #[error("{operation}: the input and the output lie in the same range of memory: write to another array")]
    SharedMemory {
        /// The operation.
        operation: &'static str,
    },

    /// An operator that uses an index was given several axes, but not all.
    #[error(
        "{operator} over {found} of {rank} axes: an index counts along one axis, or along all in C order; reduce one \
         of them, or `reshape` the array so that they are one"
    )]
    IndexOverAxes {
        /// The operator.
        operator: &'static str,
        /// The number of axes.
        found: usize,
        /// The number of the array's axes.
        rank: usize,
    },

    /// A segment's offsets are invalid.
    #[error(
        "the offsets of segment {segment} are not ascending, or exceed the input: each offset must be at least the \
         previous one, and at most the input's length"
    )]
    Offsets {
        /// The first such segment.
        segment: u64,
    },

    /// An exact sum would have more elements than its limit.
    #[error(transparent)]
    TooManyElements(#[from] exact_sum::TooManyElements),

    /// The words of exact sums cannot be added, or are not those of sums.
    #[error("all-reduce of exact sums: {0}")]
    Words(WordsError),

    /// An all-reduce of exact sums has failed, and may have changed some of their words.
    #[error(
        "an all-reduce of these exact sums failed, and left them unusable: `clear` them and add the elements again, or \
         upload a copy that was downloaded before"
    )]
    UnusableSums,

    /// The host does not have enough memory.
    #[error("{operation}: the host has no {bytes} bytes of memory left: reduce a part of the array at a time")]
    HostMemory {
        /// The operation.
        operation: &'static str,
        /// Bytes requested.
        bytes: u64,
    },

    /// A chunk of the input could not be read.
    #[error("chunk {index} of the input, counted from 0, cannot be read: {source}")]
    Chunk {
        /// The number of chunks before it.
        index: u64,
        /// Why.
        source: std::io::Error,
    },

    /// An operator has an order of its own, which only kernels keep.
    #[error(
        "reduce on the host: the operator has an order of its own, that of its kernels: enable warpfold's feature \
         `simt`, which runs them on the host, or reduce on a GPU"
    )]
    OrderOfKernels,

    /// A custom term of an exact sum is not 0 for an element of 0.
    #[error("{operator}: the term of 0 must be 0, because threads without an element add it: return 0 for 0")]
    TermOfZero {
        /// The operator.
        operator: &'static str,
    },

    /// A kernel cannot be launched like this.
    #[error("kernel `{kernel}` cannot be launched: {what} is {value}, the limit is {limit}")]
    InvalidLaunch {
        /// The kernel.
        kernel: String,
        /// What is out of range.
        what: &'static str,
        /// The requested value.
        value: String,
        /// The limit.
        limit: String,
    },

    /// A ladder has no rung with that name, type or block size.
    #[error("there is no {what} `{value}`: choose from {}", allowed.join(", "))]
    NoSuchRung {
        /// What does not exist: a rung, or a kernel for a type or a block size.
        what: &'static str,
        /// The requested value.
        value: String,
        /// The existing values.
        allowed: Vec<String>,
    },

    /// A buffer of one [`crate::Gpu`] was given to another.
    #[error("{operation}: the buffer was made by another `Gpu`; make both with the same one, or copy through the host")]
    OtherDevice {
        /// The operation.
        operation: &'static str,
    },

    /// Memory of another library cannot be used.
    #[error("the memory at {address:#x} {found}: pass an address in this device's memory, and extents that fit")]
    NotDeviceMemory {
        /// The address.
        address: u64,
        /// What is there.
        found: String,
    },

    /// The address of an element is not a multiple of its alignment.
    #[error("the memory at {address:#x} is not aligned for `{ty}`: pass a multiple of {alignment}")]
    Unaligned {
        /// The address.
        address: u64,
        /// The type of the elements.
        ty: &'static str,
        /// Its alignment in bytes.
        alignment: usize,
    },

    /// A stream of another library is of another CUDA context.
    #[error(
        "the stream is of another CUDA context than the `Gpu`, which has its device's primary context: pass a stream \
         of that device that was created in its primary context"
    )]
    OtherContext,

    /// The per-thread default stream.
    #[error(
        "the per-thread default stream (handle 2) is another stream on each thread, and a `Gpu` is used by any thread: \
         pass a stream that was created, or the legacy default stream (handle 0 or 1)"
    )]
    PerThreadStream,

    /// The executor has no streams.
    #[error("{operation}: the executor has no CUDA streams; use a CUDA device")]
    NoStreams {
        /// The operation.
        operation: &'static str,
    },

    /// A call that waits for the device was made while another library captures the stream.
    #[error(
        "{operation}: another library captures the stream into a graph, and a graph cannot return data to the host: \
         write the result to memory of the device, or do it before or after the capture"
    )]
    Captured {
        /// The operation.
        operation: &'static str,
    },

    /// Memory of another library without an owner was used in a recording.
    #[error(
        "{operation}: a recording keeps the memory that it uses, and this is borrowed from another library without an \
         owner: give it one by `with_owner`"
    )]
    BorrowedInRecording {
        /// The operation.
        operation: &'static str,
    },

    /// A call that cannot be recorded was made during a recording.
    #[error("{operation}: this cannot be recorded; do it before or after `Gpu::record`")]
    Recording {
        /// The operation.
        operation: &'static str,
    },

    /// A kernel requested something that only the host can do.
    #[cfg(feature = "simt")]
    #[error(
        "{operation}: called inside a kernel, which cannot wait for other work; call it before or after the launch"
    )]
    InsideKernel {
        /// The operation.
        operation: &'static str,
    },

    /// A kernel stopped itself, after an access outside of a view, a failed check, or a panic.
    #[error(
        "a kernel trapped before `{operation}` was done: an index was outside of a view, or another check failed. To \
         see which kernel, thread and line, run it in the executor (`Gpu::simt()`, feature `simt`). This device's \
         context is lost"
    )]
    Trap {
        /// The call that reported the trap, which may be later than the launch.
        operation: &'static str,
    },

    /// The executor found a fault in a kernel.
    #[cfg(feature = "simt")]
    #[error(transparent)]
    Fault(Box<simt::Fault>),

    /// This library does not read the counters of a CUDA device.
    #[cfg(feature = "simt")]
    #[error("only the executor (`Gpu::simt()`) has counters; on a CUDA device, use Nsight Compute (`ncu`)")]
    NoCounters,

    /// An error occurred under one order of the lanes.
    #[cfg(feature = "simt")]
    #[error("with the lanes in the order of seed {seed}: {error}")]
    Schedule {
        /// The seed: [`crate::Schedule::Seed`] with it gives the same order.
        seed: u64,
        /// The error.
        error: Box<Error>,
    },

    /// Any other error of the driver.
    #[error("cannot {operation}: {name} (error {code} of the CUDA driver)")]
    Cuda {
        /// The operation.
        operation: &'static str,
        /// CUDA's error.
        code: u32,
        /// CUDA's name for it.
        name: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<WordsError> for Error {
    fn from(error: WordsError) -> Self {
        match error {
            WordsError::TooManyElements(error) => Self::TooManyElements(error),
            other => Self::Words(other),
        }
    }
}

#[cfg(feature = "simt")]
impl From<simt::Fault> for Error {
    fn from(fault: simt::Fault) -> Self {
        match fault {
            simt::Fault::InvalidLaunch { kernel, what, value, limit } => {
                Self::InvalidLaunch { kernel, what, value, limit }
            }
            other => Self::Fault(Box::new(other)),
        }
    }
}

/// The messages of the driver's compiler, for the end of a message's first line.
fn lines_of(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; its compiler says:\n{log}\n") }
}

/// The axes of an array, for messages.
fn axes_of(rank: usize) -> String {
    match rank {
        0 => "the array has none".to_owned(),
        1 => "the array has one, 0 or -1".to_owned(),
        _ => format!("the array has the axes 0 to {}, or -{rank} to -1", rank - 1),
    }
}

fn devices_found(count: u32) -> String {
    match count {
        0 => "the driver found none".to_owned(),
        1 => "the only one is 0".to_owned(),
        _ => format!("there are {count}, from 0 to {}", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_gpu_is_told_what_to_do() {
        let error = Error::NoDevice { ordinal: 0, count: 0 };
        let message = "there is no CUDA device 0: the driver found none; to run on the CPU, ";
        assert!(error.to_string().starts_with(message) && error.to_string().contains("first_or_simt"), "{error}");
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[test]
    fn a_device_that_is_too_old_is_told_what_to_do() {
        let error = Error::UnsupportedDevice { kernel: "a".to_owned(), device: 70, oldest: 75 }.to_string();
        for part in ["`a`", "sm_75 and later", "the device is sm_70", "use a newer device", "Gpu::simt()"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn refused_ptx_is_reported_with_the_kernel_the_log_and_what_to_do() {
        let refused = |log: &str| {
            let driver = DriverVersion { major: 12, minor: 4 };
            let (kernel, library) = ("long_rows_Sum_i32".to_owned(), "kernels".to_owned());
            let name = "CUDA_ERROR_INVALID_PTX".to_owned();
            let log = log.to_owned();
            Error::RefusedPtx { kernel, library, device: 90, driver, code: 218, name, log }.to_string()
        };
        let error = refused("ptxas application ptx input, line 9; fatal   : Parsing error near 'x'");
        for part in ["`long_rows_Sum_i32`", "sm_90", "12.4", "CUDA_ERROR_INVALID_PTX (error 218", "Update the driver"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(
            error.contains(":\nptxas application ptx input, line 9; fatal   : Parsing error near 'x'\n"),
            "{error}"
        );
        assert!(error.contains("report it with this message to the authors of `kernels`"), "{error}");
        let error = refused("");
        assert!(error.contains("(error 218 of the CUDA driver). Update") && !error.contains('\n'), "{error}");
    }
}

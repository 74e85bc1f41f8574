//! NumPy's files. All fields are validated when a file is read, and a file is written completely or not at all.

mod header;
#[cfg(test)]
#[path = "../../../fuzz/fuzz_targets/header_check.rs"]
mod header_check;
#[cfg(test)]
mod tests;
mod types;

use std::any::Any;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use npyz::WriterBuilder;
use warpfold::{Gpu, Layout};

use crate::element::{ElementType, Number, with_type};
use crate::files::{self, Existing};
use crate::memory::{self, Need};
use crate::number::{Value, counted};
use crate::outcome::{Failure, Outcome, wrote};
use crate::strided;
pub use types::{Stored, Wanted};

/// What to do with a file that does not fit in memory.
pub const TOO_LARGE: &str = "give --memory, as in `--memory 2G`: `bench sum`, and `bench reduce` for sums, means and \
    norms, read the file a chunk at a time";

/// An array in memory without gaps.
#[derive(Debug)]
pub struct Array {
    pub dtype: ElementType,
    /// Where the elements are: in C order, or as a file in Fortran order has them.
    pub layout: Layout,
    /// Whether the elements, of type u8, are NumPy's bool. Each is then 0 or 1.
    is_bool: bool,
    /// The elements in memory order, as a `Vec` of the element type.
    elements: Box<dyn Any>,
}

impl Array {
    pub fn new<T: Number>(elements: Vec<T>, layout: Layout) -> Self {
        Self { dtype: T::TYPE, layout, is_bool: false, elements: Box::new(elements) }
    }

    /// An array with one axis.
    pub fn of_list<T: Number>(elements: Vec<T>) -> Self {
        let layout = Layout::contiguous(&[elements.len()]).expect("memory has the elements");
        Self::new(elements, layout)
    }

    /// The same elements in another order.
    ///
    /// # Panics
    /// If `T` is not the array's element type.
    pub fn reordered<T: Number>(&self, elements: Vec<T>, layout: Layout) -> Self {
        assert_eq!(T::TYPE, self.dtype);
        Self { is_bool: self.is_bool, ..Self::new(elements, layout) }
    }

    /// The elements in memory order.
    ///
    /// # Panics
    /// If `T` is not the array's element type.
    pub fn elements<T: Number>(&self) -> &[T] {
        self.elements.downcast_ref::<Vec<T>>().expect("the array has that type")
    }

    /// The elements in C order.
    ///
    /// # Errors
    /// There is too little memory for a copy.
    ///
    /// # Panics
    /// If `T` is not the array's element type.
    pub fn in_c_order<T: Number>(&self) -> anyhow::Result<Cow<'_, [T]>> {
        let elements = self.elements();
        if self.layout.is_contiguous() {
            return Ok(elements.into());
        }
        Ok(strided::in_c_order(elements, &self.layout)?.into())
    }

    /// The elements, for printing.
    pub fn values(&self) -> Vec<Value> {
        with_type!(self.dtype, T => self.elements::<T>().iter().map(|x| x.value()).collect())
    }
}

/// The name of a file in messages. `-` is standard input.
pub fn name(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { format!("`{}`", path.display()) }
}

pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a file of numbers: a regular file, a pipe (a process substitution), or standard input, whose name is `-`. An
/// element type other than the wanted one is an error.
pub fn read(gpu: &Gpu, path: &Path, wanted: Wanted) -> anyhow::Result<Array> {
    let shown = name(path);
    if is_standard_input(path) {
        ensure!(!io::stdin().is_terminal(), "--input -: standard input is a terminal; redirect an .npy file to it");
        return read_from(gpu, io::stdin().lock(), None, &shown, wanted);
    }
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let data = file.metadata().with_context(|| format!("cannot read {shown}"))?;
    ensure!(!data.is_dir(), "{shown} is a folder, not an .npy file");
    // The length of a pipe's contents is not known in advance.
    let size = data.is_file().then_some(data.len());
    read_from(gpu, BufReader::new(file), size, &shown, wanted)
}

/// What the header of a file says, checked.
#[derive(Debug)]
pub struct Described {
    pub stored: Stored,
    pub shape: Vec<usize>,
    pub is_fortran: bool,
    pub elements: usize,
    pub bytes: usize,
}

impl Described {
    /// Where the elements are.
    pub fn layout(&self) -> Result<Layout, warpfold::Error> {
        if self.is_fortran { strided::fortran(&self.shape) } else { Layout::contiguous(&self.shape) }
    }
}

/// Reads the header of an open file of `size` bytes, if the size is known. The elements follow.
pub fn describe(file: &mut impl BufRead, size: Option<u64>, shown: &str, wanted: Wanted) -> anyhow::Result<Described> {
    let is_empty = file.fill_buf().with_context(|| format!("cannot read {shown}"))?.is_empty();
    ensure!(!is_empty, "{shown} is empty");
    let header = header::read(file).with_context(|| format!("{shown} is not an .npy file"))?;
    let stored = types::stored(&header.dtype, wanted, shown)?;
    let each = with_type!(stored.dtype, T => size_of::<T>());
    // These products are checked before any allocation.
    let shape: Option<Vec<usize>> = header.shape.iter().map(|&extent| extent.try_into().ok()).collect();
    let elements =
        shape.as_ref().and_then(|shape| shape.iter().try_fold(1_usize, |all, &extent| all.checked_mul(extent)));
    let bytes = elements.and_then(|elements| elements.checked_mul(each));
    let (Some(shape), Some(elements), Some(bytes)) = (shape, elements, bytes) else {
        bail!("the shape in {shown} is larger than any memory");
    };
    // This check ignores the length of the header. A file that lacks fewer bytes than that is detected when the
    // elements are read.
    match size.filter(|&size| (bytes as u64) > size) {
        Some(size) => Err(truncated(shown, elements, size)),
        None => Ok(Described { stored, shape, is_fortran: header.is_fortran, elements, bytes }),
    }
}

/// The error for a file whose elements do not fit in its bytes.
pub fn truncated(shown: &str, elements: usize, size: u64) -> anyhow::Error {
    anyhow!(
        "{shown} is truncated: according to its header it has {}, and the whole file has {}",
        counted(elements, "element", "elements"),
        counted(size, "byte", "bytes")
    )
}

/// [`read`] from an open file of `size` bytes, if the size is known.
fn read_from(
    gpu: &Gpu,
    mut file: impl BufRead,
    size: Option<u64>,
    shown: &str,
    wanted: Wanted,
) -> anyhow::Result<Array> {
    let described = describe(&mut file, size, shown, wanted)?;
    let Described { stored, elements, bytes, .. } = described;
    let layout = described.layout().with_context(|| format!("the shape in {shown}"))?;
    let need = Need { device: 0, host: bytes as u128 };
    need.check(gpu, &format!("the array in {shown}"), TOO_LARGE)?;
    with_type!(stored.dtype, T => {
        let mut array = Array::new(elements_of::<T>(file, elements, &stored, shown)?, layout);
        array.is_bool = stored.is_bool;
        check_bool(&array, shown)?;
        Ok(array)
    })
}

fn elements_of<T: Number>(
    mut file: impl Read,
    elements: usize,
    stored: &Stored,
    shown: &str,
) -> anyhow::Result<Vec<T>> {
    const BYTES_AT_ONCE: usize = 1 << 16;
    let each = size_of::<T>();
    let element = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..each].copy_from_slice(bytes);
        if stored.is_big {
            word[..each].reverse();
        }
        T::from_word(u64::from_le_bytes(word))
    };
    let mut all = memory::list(elements)?;
    let mut bytes = [0; BYTES_AT_ONCE];
    while all.len() < elements {
        let some = &mut bytes[..BYTES_AT_ONCE.min((elements - all.len()) * each)];
        file.read_exact(some).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                anyhow!("{shown} is truncated: its header promises {}", counted(elements, "element", "elements"))
            }
            _ => anyhow::Error::new(error).context(format!("cannot read {shown}")),
        })?;
        all.extend(some.chunks_exact(each).map(element));
    }
    Ok(all)
}

/// Refuses an array of bool with a byte other than 0 and 1.
fn check_bool(array: &Array, shown: &str) -> anyhow::Result<()> {
    if !array.is_bool {
        return Ok(());
    }
    let bytes = array.elements::<u8>();
    let Some(position) = bytes.iter().position(|byte| *byte > 1) else { return Ok(()) };
    Err(not_bool(shown, &strided::index_at(&array.layout, position), bytes[position]))
}

/// The error for a byte of an array of bool that is neither 0 nor 1.
pub fn not_bool(shown: &str, index: &[usize], byte: u8) -> anyhow::Error {
    anyhow!(
        "{shown} holds NumPy's bool, whose bytes are 0 and 1, and the element at {index:?} is {byte}: save it as \
         numpy.uint8"
    )
}

/// Checks, before a long computation, whether `write` will be able to write the file.
pub fn check_writable(path: &Path, force: bool) -> anyhow::Result<()> {
    files::check_writable(path)?;
    ensure!(force || !path.exists(), "`{}` exists: give --force to replace it", path.display());
    Ok(())
}

/// Writes results to a file, unless they are wrong.
pub fn write_if_right(outcome: &mut Outcome, file: &Path, results: &Array, force: bool, are_right: bool) {
    if !are_right {
        outcome.fail(Failure::Wrong, &anyhow!("the result is wrong: `{}` is not written", file.display()));
        return;
    }
    match write(file, results, force) {
        Ok(()) => wrote(file),
        Err(error) => outcome.fail(Failure::Output, &error),
    }
}

/// Writes an array. If writing is interrupted, there is no file of that name.
fn write(path: &Path, array: &Array, force: bool) -> anyhow::Result<()> {
    check_writable(path, force)?;
    let existing = if force { Existing::Replace } else { Existing::Keep };
    files::write(path, existing, |file| with_type!(array.dtype, T => write_to::<T>(BufWriter::new(file), array)))
}

fn write_to<T: Number>(mut out: impl Write, array: &Array) -> io::Result<()> {
    let dtype = types::in_file(T::TYPE, array.is_bool);
    let shape: Vec<u64> = array.layout.extents().iter().map(|&extent| extent as u64).collect();
    let header = npyz::WriteOptions::new_header_only().dtype(dtype).shape(&shape);
    header.writer(&mut out).write_header_only()?;
    for element in array.elements::<T>() {
        let [word, _] = element.to_pair();
        out.write_all(&word.to_le_bytes()[..size_of::<T>()])?;
    }
    out.flush()
}

//! Views of elements in memory: contiguous or strided, aligned or not.

use core::fmt;
use core::ops::Range;

use crate::sum::Summand;

/// The number of elements that sums process at a time.
pub(crate) const BLOCK: usize = 960;

/// Memory for copies of up to `N` elements, if there are any.
pub(crate) type Buffer<F, const N: usize> = Option<[F; N]>;

/// The memory of a view.
#[derive(Clone, Copy, Debug)]
enum Memory<'a, T> {
    Slice(&'a [T]),
    /// Elements in little-endian order, at any address.
    Bytes(&'a [u8]),
}

impl<T: Summand> Memory<'_, T> {
    /// The length, in units of the strides: elements of a slice, or bytes.
    fn len(&self) -> usize {
        match self {
            Self::Slice(slice) => slice.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// The size of an element, in units of the strides.
    fn size(&self) -> usize {
        match self {
            Self::Slice(_) => 1,
            Self::Bytes(_) => size_of::<T>(),
        }
    }
}

/// A view of elements at a stride: a row, a column or a part of an array, or bytes at any address.
///
/// ```
/// use exact_sum::{Elements, ExactSum};
///
/// let matrix = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let mut column = ExactSum::new();
/// column.add_elements(Elements::strided(&matrix, 1, 2, 3)?);
/// assert_eq!(column.value(), 2.0 + 4.0 + 6.0);
/// # Ok::<(), exact_sum::ElementsError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a, T> {
    memory: Memory<'a, T>,
    /// Where the first element is. All elements are within the memory.
    start: usize,
    stride: isize,
    len: usize,
}

impl<'a, T: Summand> From<&'a [T]> for Elements<'a, T> {
    #[inline]
    fn from(slice: &'a [T]) -> Self {
        Self { memory: Memory::Slice(slice), start: 0, stride: 1, len: slice.len() }
    }
}

impl<'a, T: Summand> Elements<'a, T> {
    /// `len` elements of a slice: that at `start`, and each `stride` further than the one before it. The stride may be
    /// 0 or negative.
    ///
    /// # Errors
    /// If an element would be outside of the slice.
    pub fn strided(slice: &'a [T], start: usize, stride: isize, len: usize) -> Result<Self, ElementsError> {
        Matrix::new(Memory::Slice(slice), start, [1, len], [0, stride]).map(|matrix| matrix.row(0))
    }

    /// Contiguous elements from their bytes, little-endian, at any address.
    ///
    /// # Errors
    /// If the number of bytes is not a multiple of the element's size.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, ElementsError> {
        let size = size_of::<T>();
        if !bytes.len().is_multiple_of(size) {
            return Err(ElementsError::Length { bytes: bytes.len(), size });
        }
        Ok(Self { memory: Memory::Bytes(bytes), start: 0, stride: size as isize, len: bytes.len() / size })
    }

    /// `len` elements from their bytes, little-endian: that at byte `start`, and each `stride` bytes further than the
    /// one before it. The stride may be 0 or negative, and need not be a multiple of the element's size.
    ///
    /// # Errors
    /// If an element would be outside of the bytes.
    pub fn strided_bytes(bytes: &'a [u8], start: usize, stride: isize, len: usize) -> Result<Self, ElementsError> {
        Matrix::new(Memory::Bytes(bytes), start, [1, len], [0, stride]).map(|matrix| matrix.row(0))
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements of a range within the length.
    #[inline]
    pub(crate) fn range(self, range: Range<usize>) -> Self {
        let start = self.start.wrapping_add_signed(self.stride.wrapping_mul(range.start as isize));
        Self { start, len: range.len(), ..self }
    }

    /// The elements.
    pub fn iter(self) -> impl Iterator<Item = T> + use<'a, T> {
        (0..self.len).map(move |index| self.get(index))
    }

    /// The element at an index below the length.
    #[inline(always)]
    fn get(&self, index: usize) -> T {
        let at = self.start.wrapping_add_signed(self.stride.wrapping_mul(index as isize));
        match self.memory {
            Memory::Slice(slice) => slice[at],
            Memory::Bytes(bytes) => T::from_le_bytes(&bytes[at..][..size_of::<T>()]),
        }
    }

    /// The `len` elements from `at` on, in the format in which they are decomposed: those in memory if they have this
    /// format and are contiguous, else copies in `buffer`, which has the capacity for them.
    #[inline(always)]
    pub(crate) fn block<'b, const N: usize>(
        &self,
        at: usize,
        len: usize,
        buffer: &'b mut Buffer<T::Binary, N>,
    ) -> &'b [T::Binary]
    where
        'a: 'b,
    {
        let size = self.memory.size();
        // The compiler vectorizes loops over contiguous elements, and over every other element.
        let (is_contiguous, is_halved) = (self.stride == size as isize, self.stride == 2 * size as isize);
        let start = self.start.wrapping_add_signed(self.stride.wrapping_mul(at as isize));
        match self.memory {
            Memory::Slice(slice) if is_contiguous => {
                let slice = &slice[start..][..len];
                if let Some(block) = T::as_binary(slice) {
                    return block;
                }
                let buffer = &mut buffer.get_or_insert([T::Binary::default(); N])[..len];
                for (to, from) in buffer.iter_mut().zip(slice) {
                    *to = from.to_binary();
                }
                buffer
            }
            memory => {
                let buffer = &mut buffer.get_or_insert([T::Binary::default(); N])[..len];
                let converted = match memory {
                    _ if !(is_contiguous || is_halved) || len == 0 => 0,
                    Memory::Slice(slice) => {
                        let (pairs, _) = slice[start..].as_chunks::<2>();
                        buffer.iter_mut().zip(pairs).map(|(to, [from, _])| *to = from.to_binary()).count()
                    }
                    Memory::Bytes(bytes) => match (size, is_halved) {
                        (2, false) => convert::<T, 2>(&bytes[start..], buffer),
                        (2, true) | (4, false) => convert::<T, 4>(&bytes[start..], buffer),
                        (4, true) | (8, false) => convert::<T, 8>(&bytes[start..], buffer),
                        (8, true) => convert::<T, 16>(&bytes[start..], buffer),
                        _ => 0,
                    },
                };
                for (index, to) in buffer.iter_mut().enumerate().skip(converted) {
                    *to = self.get(at + index).to_binary();
                }
                buffer
            }
        }
    }
}

/// Converts the elements at the beginning of each `N` bytes, until these or `to` end. Returns how many.
#[inline(always)]
fn convert<T: Summand, const N: usize>(bytes: &[u8], to: &mut [T::Binary]) -> usize {
    let (chunks, _) = bytes.as_chunks::<N>();
    for (to, chunk) in to.iter_mut().zip(chunks) {
        *to = T::from_le_bytes(chunk).to_binary();
    }
    chunks.len().min(to.len())
}

/// A view of rows of elements at strides: an array of two axes, or bytes at any address.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    first: Elements<'a, T>,
    row_stride: isize,
    rows: usize,
}

impl<'a, T: Summand> Matrix<'a, T> {
    fn new(
        memory: Memory<'a, T>,
        start: usize,
        [rows, columns]: [usize; 2],
        [row_stride, column_stride]: [isize; 2],
    ) -> Result<Self, ElementsError> {
        if rows == 0 || columns == 0 {
            // Without elements, all rows are at the beginning of the memory, wherever they would be.
            return Ok(Self { first: Elements { memory, start: 0, stride: 0, len: columns }, row_stride: 0, rows });
        }
        // The lowest and the highest element, each the first or the last along either axis.
        let along = |count: usize, stride: isize| (count - 1) as i128 * stride as i128;
        let (down, right) = (along(rows, row_stride), along(columns, column_stride));
        let lowest = start as i128 + down.min(0) + right.min(0);
        let highest = start as i128 + down.max(0) + right.max(0);
        if lowest < 0 || highest + memory.size() as i128 > memory.len() as i128 {
            return Err(ElementsError::OutOfBounds { len: memory.len() });
        }
        Ok(Self { first: Elements { memory, start, stride: column_stride, len: columns }, row_stride, rows })
    }

    /// The contiguous rows of a slice.
    ///
    /// # Errors
    /// If the slice has no whole number of rows.
    pub fn from_slice(slice: &'a [T], columns: usize) -> Result<Self, ElementsError> {
        if !slice.len().is_multiple_of(columns) {
            return Err(ElementsError::OutOfBounds { len: slice.len() });
        }
        let rows = slice.len().checked_div(columns).unwrap_or(0);
        Self::new(Memory::Slice(slice), 0, [rows, columns], [columns as isize, 1])
    }

    /// Rows and columns of a slice: the element at `start`, others at the strides of rows and of columns, in elements.
    ///
    /// # Errors
    /// If an element would be outside of the slice.
    pub fn strided(
        slice: &'a [T],
        start: usize,
        shape: [usize; 2],
        strides: [isize; 2],
    ) -> Result<Self, ElementsError> {
        Self::new(Memory::Slice(slice), start, shape, strides)
    }

    /// Rows and columns of elements from their bytes, little-endian: the element at byte `start`, others at the strides
    /// of rows and of columns, in bytes.
    ///
    /// # Errors
    /// If an element would be outside of the bytes.
    pub fn strided_bytes(
        bytes: &'a [u8],
        start: usize,
        shape: [usize; 2],
        strides: [isize; 2],
    ) -> Result<Self, ElementsError> {
        Self::new(Memory::Bytes(bytes), start, shape, strides)
    }

    /// The matrix whose rows are the columns of this one.
    #[must_use]
    pub fn transposed(self) -> Self {
        let first = Elements { stride: self.row_stride, len: self.rows, ..self.first };
        Self { first, row_stride: self.first.stride, rows: self.first.len }
    }

    /// The number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[inline]
    pub fn columns(&self) -> usize {
        self.first.len
    }

    /// A row.
    ///
    /// # Panics
    /// If there are not that many rows.
    #[inline(always)]
    pub fn row(&self, index: usize) -> Elements<'a, T> {
        assert!(index < self.rows, "row {index} of {}", self.rows);
        let start = self.first.start.wrapping_add_signed(self.row_stride.wrapping_mul(index as isize));
        Elements { start, ..self.first }
    }
}

#[cfg(feature = "host")]
impl<T: Summand> Matrix<'_, T> {
    /// Whether several rows are closer together than the elements of a row.
    pub(crate) fn has_adjacent_rows(&self) -> bool {
        self.rows > 1 && self.first.len > 1 && self.row_stride.unsigned_abs() < self.first.stride.unsigned_abs()
    }

    /// `len` rows from `first` on.
    pub(crate) fn some_rows(self, first: usize, len: usize) -> Self {
        Self { first: self.row(first), rows: len, ..self }
    }

    /// The matrix whose rows are `fold` rows of this one; without the last rows, if these are fewer. If rows are not
    /// next to each other, so that no view has them, a matrix without rows.
    pub(crate) fn folded(self, fold: usize) -> Self {
        let Elements { memory, stride, len, .. } = self.first;
        let is_contiguous = stride == memory.size() as isize && self.row_stride == stride * len as isize;
        match fold {
            1 => self,
            _ if is_contiguous => Self {
                first: Elements { len: len * fold, ..self.first },
                row_stride: self.row_stride * fold as isize,
                rows: self.rows / fold,
            },
            _ => Self { rows: 0, ..self },
        }
    }
}

/// The reason that memory has no such elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElementsError {
    /// The number of bytes is not a multiple of the element's size.
    Length {
        /// The number of bytes.
        bytes: usize,
        /// The size of an element.
        size: usize,
    },
    /// An element would be outside of the memory, or the last row would be.
    OutOfBounds {
        /// The length of the memory, in elements of a slice, or in bytes.
        len: usize,
    },
}

impl fmt::Display for ElementsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes, size } => {
                write!(f, "{bytes} bytes are not a whole number of elements of {size} bytes")
            }
            Self::OutOfBounds { len } => write!(f, "a start, shape and strides that exceed a memory of length {len}"),
        }
    }
}

impl core::error::Error for ElementsError {}

/// The error of two inputs of different lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferentLengths {
    /// The length of the first.
    pub first: usize,
    /// The length of the second.
    pub second: usize,
}

impl fmt::Display for DifferentLengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements and {}: the lengths must be equal", self.first, self.second)
    }
}

impl core::error::Error for DifferentLengths {}

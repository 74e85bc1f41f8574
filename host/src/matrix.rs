//! Matrices in a device's memory.

use std::mem::size_of;

use cuda_std::element::Stored;

use crate::{Buffer, Error, Gpu, View};

/// A matrix in row-major order, without gaps between its rows.
#[derive(Debug)]
pub struct Matrix<T> {
    buffer: Buffer<T>,
    rows: usize,
    columns: usize,
}

impl<T: Stored> Matrix<T> {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The elements, row after row.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The elements, row after row.
    pub fn buffer_mut(&mut self) -> &mut Buffer<T> {
        &mut self.buffer
    }
}

impl<'a, T: Stored> From<&'a Matrix<T>> for View<'a, T> {
    fn from(matrix: &'a Matrix<T>) -> Self {
        matrix.buffer.view().of_matrix(matrix.rows, matrix.columns)
    }
}

/// Rows times columns, if memory could hold that many elements of this size.
fn elements_of<T>(rows: usize, columns: usize) -> Result<usize, Error> {
    let overflow = Error::ShapeOverflow { rows, columns, size: size_of::<T>() };
    let Some(elements) = rows.checked_mul(columns) else { return Err(overflow) };
    match elements.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(elements),
        _ => Err(overflow),
    }
}

impl Gpu {
    /// A matrix with a copy of `elements`, row after row.
    ///
    /// # Errors
    /// The length of `elements` is not `rows * columns`, that product overflows, or the device is out of memory.
    pub fn upload_matrix<T: Stored>(&self, elements: &[T], rows: usize, columns: usize) -> Result<Matrix<T>, Error> {
        let expected = elements_of::<T>(rows, columns)?;
        if elements.len() != expected {
            let found = elements.len();
            return Err(Error::Length { operation: "upload a matrix", what: "the data", found, expected });
        }
        Ok(Matrix { buffer: self.upload(elements)?, rows, columns })
    }

    /// A matrix whose elements' bits are all 0.
    ///
    /// # Errors
    /// `rows * columns` overflows, or the device is out of memory.
    pub fn zeroed_matrix<T: Stored>(&self, rows: usize, columns: usize) -> Result<Matrix<T>, Error> {
        let len = elements_of::<T>(rows, columns)?;
        Ok(Matrix { buffer: self.zeroed(len)?, rows, columns })
    }

    /// Downloads a matrix's elements, row after row, after all work on them that was started earlier.
    ///
    /// # Errors
    /// The matrix belongs to another device, earlier work has failed, or the bits of an element are no value of its
    /// type.
    pub fn download_matrix<T: Stored>(&self, matrix: &Matrix<T>) -> Result<Vec<T>, Error> {
        self.download(&matrix.buffer)
    }
}

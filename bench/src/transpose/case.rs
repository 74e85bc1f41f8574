//! One measurement of `bench transpose`.

use std::fmt;

use warpfold::{ArrayView, ArrayViewMut, Buffer, Error, Gpu, Layout, Plain};

use super::kind::Kind;
use crate::number::counted;

/// An operation, a layout of its input, and the size of an element.
#[derive(Clone, Debug)]
pub struct Case {
    pub kind: Kind,
    pub input: Layout,
    /// For each of the output's axes, the input's.
    axes: Vec<usize>,
    pub size: usize,
}

impl Case {
    /// An operation on the matrices along the last two axes.
    ///
    /// # Errors
    /// There are no two axes.
    pub fn of_matrices(kind: Kind, input: Layout, size: usize) -> Result<Self, Error> {
        let rank = input.rank();
        if rank < 2 {
            return Err(Error::TooFewAxes { operation: "transpose", found: rank, minimum: 2 });
        }
        let axes = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        Ok(Self { kind, input, axes, size })
    }

    /// A permutation of the axes: axis `i` of the output is axis `axes[i]` of the input.
    ///
    /// # Errors
    /// `axes` does not name each axis once.
    pub fn permutation(input: Layout, axes: &[isize], size: usize) -> Result<Self, Error> {
        input.permute_axes(axes)?;
        let rank = input.rank() as isize;
        let axes = axes.iter().map(|axis| axis.rem_euclid(rank).unsigned_abs()).collect();
        Ok(Self { kind: Kind::Permute, input, axes, size })
    }

    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// The input with its axes in the output's order.
    pub fn permuted(&self) -> Layout {
        self.input.permute_axes(&self.signed_axes()).expect("it names each axis once")
    }

    fn signed_axes(&self) -> Vec<isize> {
        self.axes.iter().map(|&axis| axis as isize).collect()
    }

    /// The number of matrices, their rows and their columns.
    pub fn matrices(&self) -> Option<[usize; 3]> {
        let (columns, others) = self.input.extents().split_last()?;
        let (rows, batches) = others.split_last()?;
        Some([batches.iter().product(), *rows, *columns])
    }

    /// The operation's name in JSON: that of `--kind`, or `permute-` and the axes as `--permute` has them.
    pub fn name(&self) -> String {
        let separator = if self.axes.len() > 10 { "," } else { "" };
        match self.kind {
            Kind::Permute => format!("permute-{}", joined(&self.axes, separator)),
            kind => kind.name().to_owned(),
        }
    }

    /// The shape, and the operation if it is not a plain transpose.
    pub fn shape_and_operation(&self) -> String {
        let operation = match self.kind {
            Kind::Transpose => String::new(),
            Kind::Scaled => ", scaled".to_owned(),
            Kind::InPlace => ", in place".to_owned(),
            Kind::Permute => format!(", axes {}", joined(&self.axes, " ")),
        };
        self.shape() + &operation
    }

    /// The extents, and the order of the input.
    pub fn shape(&self) -> String {
        let order = if self.input.is_contiguous() { "" } else { " in Fortran order" };
        joined(self.input.extents(), " x ") + order
    }

    /// Starts the operation. [`Kind::Scaled`] is started elsewhere, because it needs the type of the elements.
    pub fn start<T: Plain>(&self, gpu: &Gpu, input: &mut Buffer<T>, output: &mut Buffer<T>) -> Result<(), Error> {
        if self.kind == Kind::InPlace {
            return gpu.transpose_in_place(input.view_mut().reshape(self.input.extents())?);
        }
        let (from, to) = self.arrays(input, output)?;
        gpu.copy_array(from, to)
    }

    /// The input with its axes in the output's order, and the output.
    pub fn arrays<'a, T: Plain>(
        &self,
        input: &'a Buffer<T>,
        output: &'a mut Buffer<T>,
    ) -> Result<(ArrayView<'a, T>, ArrayViewMut<'a, T>), Error> {
        let from = ArrayView::new(input.view(), &self.permuted())?;
        let to = output.view_mut().reshape(from.extents())?;
        Ok((from, to))
    }

    /// The question for PyTorch, if `peers/pytorch.py` knows the operation.
    pub fn question(&self) -> Option<serde_json::Value> {
        let known = [[0, 2, 1], [1, 0, 2], [2, 1, 0]].iter().any(|axes| axes[..] == self.axes);
        let is_known = match self.kind {
            Kind::Transpose | Kind::Scaled => true,
            // PyTorch has no transpose in place.
            Kind::InPlace => false,
            Kind::Permute => known,
        };
        let [batch, rows, columns] = self.matrices().filter(|_| is_known && self.input.is_contiguous())?;
        Some(serde_json::json!({
            "op": "transpose", "kind": self.name(), "size": self.size, "batch": batch, "rows": rows, "columns": columns,
        }))
    }
}

fn joined(numbers: &[usize], by: &str) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(by)
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.shape_and_operation(), counted(self.size, "byte", "bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_names() {
        let of = |extents: &[usize], axes: Option<&[isize]>| {
            let input = Layout::contiguous(extents).unwrap();
            let case = match axes {
                Some(axes) => Case::permutation(input, axes, 4)?,
                None => Case::of_matrices(Kind::Transpose, input, 4)?,
            };
            Ok::<_, Error>((case.name(), case.to_string(), case.permuted().extents().to_vec()))
        };
        let named = |name: &str, shown: &str, extents: &[usize]| (name.to_owned(), shown.to_owned(), extents.to_vec());
        assert_eq!(of(&[3, 5], None).unwrap(), named("transpose", "3 x 5 of 4 bytes", &[5, 3]));
        assert_eq!(of(&[2, 3, 5], None).unwrap(), named("transpose", "2 x 3 x 5 of 4 bytes", &[2, 5, 3]));
        let permuted = named("permute-0231", "2 x 3 x 4 x 5, axes 0 2 3 1 of 4 bytes", &[2, 4, 5, 3]);
        assert_eq!(of(&[2, 3, 4, 5], Some(&[0, 2, -1, 1])).unwrap(), permuted);
        assert_eq!(
            of(&[1; 11], Some(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 9])).unwrap().0,
            "permute-0,1,2,3,4,5,6,7,8,10,9"
        );
        for (axes, part) in [
            (None, "1 axes"),
            (Some(&[1][..]), "no axis 1"),
            (Some(&[]), "axis 0 is missing"),
            (Some(&[0, -1]), "axis 0 is named twice, as 0 and as -1"),
        ] {
            let error = of(&[3], axes).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
